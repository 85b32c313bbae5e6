import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.kstream.Windows;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Windows in local time as a user of Kafka Streams can write them, with the calendar of java.time. Kafka asks for one size, which
 * must be that of the longest window. It takes the windows of a record from {@link #windowsFor}, with their true ends.
 */
final class CalendarWindows extends Windows<TimeWindow> {
    private final String unit;
    private final int step, steps;
    private final ZoneId zone;
    private final long grace;

    CalendarWindows(String unit, int step, int steps, String zone, long grace) {
        this.unit = unit;
        this.step = step;
        this.steps = steps;
        this.zone = ZoneId.of(zone);
        this.grace = grace;
    }

    @Override
    public Map<Long, TimeWindow> windowsFor(long timestamp) {
        LocalDateTime shown = LocalDateTime.ofInstant(Instant.ofEpochMilli(timestamp), zone);
        // Start early enough that all windows are found which contain the time, although the clock may show times twice.
        LocalDateTime point = plus(floor(shown), -steps - 1);
        TreeMap<Long, TimeWindow> found = new TreeMap<>();
        while (instant(point) <= timestamp) {
            long start = Math.max(0, instant(point)), end = instant(plus(point, steps));
            if (end > timestamp && end > start) {
                found.put(start, new TimeWindow(start, end));
            }
            point = plus(point, 1);
        }
        return new LinkedHashMap<>(found);
    }

    @Override
    public long size() {
        long day = 86_400_000L;
        long nominal = unit.equals("m") ? 60_000L : unit.equals("h") ? 3_600_000L : unit.equals("d") ? day : unit.equals("w") ? 7 * day
            : unit.equals("mo") ? 31 * day : unit.equals("q") ? 92 * day : 366 * day;
        return steps * step * nominal + 3 * 3_600_000L;
    }

    @Override
    public long gracePeriodMs() {
        return grace;
    }

    private LocalDateTime floor(LocalDateTime time) {
        LocalDate date = time.toLocalDate();
        switch (unit) {
            case "m":
            case "h":
                int minutes = step * (unit.equals("h") ? 60 : 1);
                return date.atStartOfDay().plusMinutes((time.getHour() * 60 + time.getMinute()) / minutes * minutes);
            case "d":
                return date.atStartOfDay();
            case "w":
                return date.minusDays(date.getDayOfWeek().getValue() - 1).atStartOfDay();
            case "mo":
                return date.withDayOfMonth(1).atStartOfDay();
            case "q":
                return date.withMonth((date.getMonthValue() - 1) / 3 * 3 + 1).withDayOfMonth(1).atStartOfDay();
            default:
                return date.withDayOfYear(1).atStartOfDay();
        }
    }

    private LocalDateTime plus(LocalDateTime point, long count) {
        switch (unit) {
            case "m":
                return point.plusMinutes(count * step);
            case "h":
                return point.plusHours(count * step);
            case "d":
                return point.plusDays(count);
            case "w":
                return point.plusWeeks(count);
            case "mo":
                return point.plusMonths(count);
            case "q":
                return point.plusMonths(3 * count);
            default:
                return point.plusYears(count);
        }
    }

    /** The first instant after a gap for a time that the clock skips, the earlier one for a time that it shows twice. */
    private long instant(LocalDateTime time) {
        ZoneOffsetTransition change = zone.getRules().getTransition(time);
        if (change != null && change.isGap()) {
            return change.getInstant().toEpochMilli();
        }
        ZoneOffset offset = change == null ? zone.getRules().getOffset(time) : change.getOffsetBefore();
        return time.toInstant(offset).toEpochMilli();
    }
}
