import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** The small functions that scenarios name: predicates, maps, key selectors, reducers. Values are Long or String. */
final class Words {
    /** Keys are text, or lists of texts (columns), whose bytes are then rewindow's: each item's length and bytes. */
    static final Serde<Object> KEYS = Serdes.serdeFrom(Words::keyBytes, Words::keyOf);

    private Words() {}

    /** The default serde of values, for a buffer below a verb without serdes. A text never begins with the first byte of a number. */
    public static final class Values extends Serdes.WrapperSerde<Object> {
        public Values() {
            super(
                (topic, value) -> value instanceof Long
                    ? Serdes.Long().serializer().serialize(topic, (Long) value)
                    : Serdes.String().serializer().serialize(topic, (String) value),
                (topic, bytes) -> bytes != null && bytes.length == 8 && (bytes[0] == 0 || bytes[0] == -1)
                    ? Serdes.Long().deserializer().deserialize(topic, bytes)
                    : Serdes.String().deserializer().deserialize(topic, bytes));
        }
    }

    static Object key(JsonNode said) {
        List<String> items = new ArrayList<>();
        said.forEach(item -> items.add(item.asText()));
        return said.isArray() ? items : said.asText();
    }

    private static byte[] keyBytes(String topic, Object key) {
        if (!(key instanceof List)) {
            return key == null ? null : ((String) key).getBytes(StandardCharsets.UTF_8);
        }
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        for (Object item : (List<?>) key) {
            byte[] bytes = ((String) item).getBytes(StandardCharsets.UTF_8);
            buffer.putInt(bytes.length).put(bytes);
        }
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    private static Object keyOf(String topic, byte[] bytes) {
        if (bytes == null || bytes.length == 0 || bytes[0] != 0) {
            return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
        }
        List<String> items = new ArrayList<>();
        for (ByteBuffer left = ByteBuffer.wrap(bytes); left.hasRemaining();) {
            byte[] item = new byte[left.getInt()];
            left.get(item);
            items.add(new String(item, StandardCharsets.UTF_8));
        }
        return items;
    }

    static TimestampExtractor extractor(String word) {
        switch (word) {
            case "value":
                return (record, partitionTime) -> (Long) record.value();
            case "value_or_partition_time":
                return (record, partitionTime) -> (Long) record.value() >= 0 ? (Long) record.value() : partitionTime;
            case "one_later":
                return (record, partitionTime) -> partitionTime < 0 ? record.timestamp() : partitionTime + 1;
            default:
                throw new IllegalArgumentException("extractor " + word);
        }
    }

    static Predicate<Object> predicate(JsonNode said) {
        String word = said.fieldNames().next();
        JsonNode operand = said.get(word);
        switch (word) {
            case "not": {
                Predicate<Object> inner = predicate(operand);
                return value -> !inner.test(value);
            }
            case "is_null":
                return value -> (value == null) == operand.asBoolean();
            case "gt":
                return value -> value != null && (Long) value > operand.asLong();
            case "lt":
                return value -> value != null && (Long) value < operand.asLong();
            case "mod":
                return value -> value != null && Math.floorMod((Long) value, operand.get(0).asLong()) == operand.get(1).asLong();
            case "eq":
                return value -> value != null && text(value).equals(operand.asText());
            case "ne":
                return value -> value != null && !text(value).equals(operand.asText());
            case "prefix":
                return value -> value != null && text(value).startsWith(operand.asText());
            default:
                throw new IllegalArgumentException("predicate " + word);
        }
    }

    /** The remainder of the value; no answer for a null value, so that the key decides. */
    static StreamPartitioner<Object, Object> partitioner(JsonNode said) {
        long divisor = said.get("value_mod").asLong();
        return (topic, key, value, partitions) -> value == null ? Optional.empty()
            : Optional.of(Set.of((int) (Math.floorMod((Long) value, divisor) % partitions)));
    }

    static Function<Object, Object> mapper(JsonNode said) {
        if (said.isTextual()) {
            return value -> value == null ? null : text(value);
        }
        String word = said.fieldNames().next();
        JsonNode operand = said.get(word);
        switch (word) {
            case "add":
                return value -> value == null ? null : (Object) ((Long) value + operand.asLong());
            case "mul":
                return value -> value == null ? null : (Object) ((Long) value * operand.asLong());
            case "append":
                return value -> value == null ? null : text(value) + operand.asText();
            case "to_string":
                return value -> value == null ? null : text(value);
            case "null_if": {
                Predicate<Object> gone = predicate(operand);
                return value -> value == null || gone.test(value) ? null : value;
            }
            default:
                throw new IllegalArgumentException("map " + word);
        }
    }

    static boolean makesString(JsonNode said) {
        return said.isTextual() || said.has("append") || said.has("to_string");
    }

    static BiFunction<Object, Object, String> selector(JsonNode said) {
        if (said.isTextual()) {
            return selectorOf(said.asText(), null);
        }
        String word = said.fieldNames().next();
        return selectorOf(word, said.get(word));
    }

    private static BiFunction<Object, Object, String> selectorOf(String word, JsonNode operand) {
        switch (word) {
            case "key_prefix":
                return (key, value) -> key == null ? null : prefix(keyText(key), operand.asInt());
            case "value_mod":
                return (key, value) -> value == null ? null : text(Math.floorMod((Long) value, operand.asLong()));
            case "value_prefix":
                return (key, value) -> value == null ? null : prefix(text(value), operand.asInt());
            case "const":
                return (key, value) -> operand.asText();
            case "window_key":
                return (key, value) -> key == null ? null : (String) ((Windowed<?>) key).key();
            case "key_text":
                return (key, value) -> key == null ? null : keyText(key);
            default:
                throw new IllegalArgumentException("key " + word);
        }
    }

    static Object reduce(String word, Object aggregate, Object value) {
        if (word.equals("last")) {
            return value;
        }
        if (value == null || aggregate == null) {
            return value == null ? aggregate : value;
        }
        switch (word) {
            case "sum":
                return aggregate instanceof Long ? (Object) ((Long) aggregate + (Long) value) : text(aggregate) + text(value);
            case "min":
                return compare(aggregate, value) <= 0 ? aggregate : value;
            case "max":
                return compare(aggregate, value) >= 0 ? aggregate : value;
            case "first":
                return aggregate;
            case "last":
                return value;
            default:
                throw new IllegalArgumentException("reducer " + word);
        }
    }

    static String concat(String aggregate, Object value) {
        String more = text(value);
        return aggregate.isEmpty() || more.isEmpty() ? aggregate + more : aggregate + "," + more;
    }

    static String text(Object value) {
        return value == null ? "null" : value.toString();
    }

    static String keyText(Object key) {
        if (key instanceof Windowed) {
            Windowed<?> windowed = (Windowed<?>) key;
            return windowed.key() + "@" + windowed.window().start();
        }
        return (String) key;
    }

    private static String prefix(String text, int length) {
        return text.length() <= length ? text : text.substring(0, length);
    }

    @SuppressWarnings("unchecked")
    private static int compare(Object one, Object other) {
        return ((Comparable<Object>) one).compareTo(other);
    }
}
