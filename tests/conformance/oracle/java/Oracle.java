import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.*;

/** Plays scenarios (JSON lines on standard input) on the real Kafka Streams and prints each with what it gave. */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String line;
        while ((line = in.readLine()) != null) {
            JsonNode read = JSON.readTree(line);
            JsonNode scenario = read.has("scenario") ? read.get("scenario") : read;
            ObjectNode both = JSON.createObjectNode();
            both.set("scenario", scenario);
            both.set("expected", play(scenario));
            out.println(JSON.writeValueAsString(both));
        }
    }

    private static ObjectNode play(JsonNode scenario) {
        List<Build.Sent> sent = new ArrayList<>();
        ObjectNode result = JSON.createObjectNode();
        result.put("name", scenario.get("name").asText());
        ArrayNode steps = result.putArray("steps");
        result.putNull("error");
        result.putObject("stores");
        Properties settings = new Properties();
        JsonNode config = scenario.path("config");
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "dummy:1");
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, config.path("cache_bytes").asLong(0));
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Words.Values.class);
        settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, config.path("max_task_idle_ms").asLong(0));
        settings.put(StreamsConfig.DEFAULT_DSL_STORE_CONFIG, config.path("store").asText("rocksdb").equals("in_memory") ? "in_memory" : "rocksDB");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/oracle-" + ProcessHandle.current().pid());
        Tasks tasks;
        try {
            tasks = new Tasks(scenario, settings, sent);
        } catch (RuntimeException error) {
            fail(result, "build", -1, error);
            return result;
        }
        try {
            if (!sent.isEmpty()) {
                flush(result.putArray("init"), sent);
            }
            int number = 0;
            for (JsonNode step : scenario.get("steps")) {
                ObjectNode seen = steps.addObject();
                seen.put("i", number);
                try {
                    take(tasks, scenario, step);
                } catch (RuntimeException error) {
                    fail(result, "step", number, error);
                }
                flush(seen.putArray("out"), sent);
                if (!result.get("error").isNull()) {
                    return result;
                }
                number++;
            }
            boolean isCached = config.path("cache_bytes").asLong() > 0; // a cache shows windows that have expired
            for (Tasks.Task task : isCached ? List.<Tasks.Task>of() : tasks.all) {
                stores(task, scenario, (ObjectNode) result.get("stores"));
            }
        } finally {
            try {
                tasks.close();
            } catch (RuntimeException ignored) {
                // What it could not close is in a temporary folder.
            }
        }
        return result;
    }

    private static void take(Tasks tasks, JsonNode scenario, JsonNode step) {
        if (step.has("advance_wall_clock")) {
            Duration by = Duration.ofMillis(step.get("advance_wall_clock").asLong());
            tasks.all.forEach(task -> task.driver().advanceWallClockTime(by));
            tasks.complete();
            return;
        }
        if (scenario.path("config").path("clock").asText().equals("records")) {
            follow(tasks, step.has("batch") ? step.get("batch") : List.of(step));
        }
        if (step.has("batch")) {
            for (JsonNode one : step.get("batch")) {
                enqueue(tasks, scenario, one.get("topic").asText(), one);
            }
        } else {
            enqueue(tasks, scenario, step.get("pipe").asText(), step);
        }
        tasks.complete();
    }

    /** Advances the wall clock to the largest timestamp, in steps of a millisecond, so that each punctuation fires when it is due. */
    private static void follow(Tasks tasks, Iterable<JsonNode> records) {
        for (JsonNode record : records) {
            for (; tasks.now < record.get("ts").asLong(); tasks.now++) {
                tasks.all.forEach(task -> task.driver().advanceWallClockTime(Duration.ofMillis(1)));
            }
        }
        tasks.complete();
    }

    private static void enqueue(Tasks tasks, JsonNode scenario, String topic, JsonNode record) {
        String type = "string", kind = "";
        for (JsonNode source : scenario.get("sources")) {
            if (source.get("name").asText().equals(topic)) {
                type = source.get("value").asText();
                kind = source.get("kind").asText();
            }
        }
        JsonNode said = record.get("value");
        byte[] key = record.get("key").isNull() ? null : Words.KEYS.serializer().serialize(topic, Words.key(record.get("key")));
        byte[] value = said.isNull() ? null : type.equals("long")
            ? Serdes.Long().serializer().serialize(topic, said.asLong())
            : Serdes.String().serializer().serialize(topic, said.asText());
        if (kind.equals("global")) {
            tasks.pipeGlobal(topic, record.get("ts").asLong(), key, value, new RecordHeaders());
        } else {
            Tasks.enqueue(tasks.reading(topic, key), topic, record.get("ts").asLong(), key, value, new RecordHeaders());
        }
    }

    private static void fail(ObjectNode result, String phase, int step, RuntimeException error) {
        ObjectNode said = JSON.createObjectNode();
        said.put("phase", phase);
        if (step >= 0) {
            said.put("step", step);
        }
        said.put("class", error.getClass().getSimpleName());
        said.put("message", String.valueOf(error.getMessage()));
        result.set("error", said);
    }

    private static void flush(ArrayNode into, List<Build.Sent> sent) {
        for (Build.Sent one : sent) {
            ObjectNode row = into.addObject();
            row.put("sink", one.sink());
            row.set("key", key(one.key(), true));
            row.set("value", JSON.valueToTree(one.value()));
            row.put("ts", one.ts());
        }
        sent.clear();
    }

    private static JsonNode key(Object key, boolean withEnd) {
        if (!(key instanceof Windowed)) {
            return JSON.valueToTree(key);
        }
        Windowed<?> windowed = (Windowed<?>) key;
        ObjectNode node = JSON.createObjectNode();
        node.set("key", JSON.valueToTree(windowed.key()));
        node.put("start", windowed.window().start());
        if (withEnd) {
            node.put("end", windowed.window().end());
        }
        return node;
    }

    private static void stores(Tasks.Task task, JsonNode scenario, ObjectNode into) {
        Set<String> named = new HashSet<>();
        scenario.get("sources").forEach(one -> named.add(one.get("name").asText()));
        scenario.get("nodes").forEach(one -> {
            named.add(one.get("name").asText());
            if (one.has("store")) {
                named.add(one.get("store").asText());
            }
        });
        for (Map.Entry<String, StateStore> entry : new TreeMap<>(task.driver().getAllStateStores()).entrySet()) {
            if (named.contains(entry.getKey()) && task.owned().contains(entry.getKey())) {
                List<ObjectNode> rows = rows(task.driver(), entry.getKey(), scenario.get("steps"));
                if (rows != null) {
                    into.path(entry.getKey()).forEach(other -> rows.add((ObjectNode) other)); // of another partition
                    rows.sort(Oracle::byKey);
                    ArrayNode array = into.putArray(entry.getKey());
                    rows.forEach(array::add);
                }
            }
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static List<ObjectNode> rows(TopologyTestDriver driver, String name, JsonNode steps) {
        List<ObjectNode> rows = new ArrayList<>();
        if (driver.getSessionStore(name) != null) {
            SessionStore<Object, Object> sessions = driver.getSessionStore(name);
            try (KeyValueIterator<Windowed<Object>, Object> found = sessions.fetch(null, null)) {
                found.forEachRemaining(one -> rows.add(row(key(one.key, true), one.value, null)));
            }
        } else if (driver.getVersionedKeyValueStore(name) != null) {
            versions(driver.getVersionedKeyValueStore(name), steps).forEach(rows::add);
        } else if (driver.getTimestampedWindowStore(name) != null) {
            WindowStore<Object, ValueAndTimestamp<Object>> windows = driver.getTimestampedWindowStore(name);
            try (KeyValueIterator<Windowed<Object>, ValueAndTimestamp<Object>> found = windows.all()) {
                found.forEachRemaining(one -> rows.add(row(key(one.key, false), one.value.value(), one.value.timestamp())));
            }
        } else if (driver.getTimestampedKeyValueStore(name) != null) {
            try (KeyValueIterator<Object, ValueAndTimestamp<Object>> found = driver.getTimestampedKeyValueStore(name).all()) {
                found.forEachRemaining(one -> rows.add(row(key(one.key, false), one.value.value(), one.value.timestamp())));
            }
        } else if (driver.getKeyValueStore(name) != null) {
            try (KeyValueIterator<Object, Object> found = driver.getKeyValueStore(name).all()) {
                found.forEachRemaining(one -> rows.add(row(key(one.key, false), one.value, null)));
            }
        } else {
            return null;
        }
        return rows;
    }

    private static int byKey(ObjectNode one, ObjectNode other) {
        int byKey = Bytes.wrap(keyText(one).getBytes(StandardCharsets.UTF_8)).compareTo(Bytes.wrap(keyText(other).getBytes(StandardCharsets.UTF_8)));
        return byKey != 0 ? byKey : Long.compare(one.get("key").path("start").asLong(), other.get("key").path("start").asLong());
    }

    /** What a versioned store has for each key at each time of the steps. */
    private static List<ObjectNode> versions(VersionedKeyValueStore<Object, Object> store, JsonNode steps) {
        Set<Object> keys = new TreeSet<>();
        Set<Long> times = new TreeSet<>();
        for (JsonNode step : steps) {
            for (JsonNode one : step.has("batch") ? step.get("batch") : List.of(step)) {
                if (one.has("ts")) {
                    times.add(one.get("ts").asLong());
                }
                if (one.hasNonNull("key")) {
                    keys.add(one.get("key").asText());
                }
            }
        }
        List<ObjectNode> rows = new ArrayList<>();
        for (Object key : keys) {
            for (long time : times) {
                VersionedRecord<Object> found = store.get(key, time);
                if (found != null) {
                    rows.add(row(key(key, false), found.value(), found.timestamp()).put("as_of", time));
                }
            }
        }
        return rows;
    }

    private static String keyText(ObjectNode row) {
        JsonNode key = row.get("key").isObject() ? row.get("key").get("key") : row.get("key");
        return key.isArray() ? key.toString() : key.asText();
    }

    private static ObjectNode row(JsonNode key, Object value, Long timestamp) {
        ObjectNode row = JSON.createObjectNode();
        row.set("key", key);
        row.set("value", JSON.valueToTree(value));
        if (timestamp != null) {
            row.put("ts", timestamp);
        }
        return row;
    }
}
