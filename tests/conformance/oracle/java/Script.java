import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.Punctuator;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/** A processor whose code is data. */
final class Script implements Processor<Object, Object, Object, Object> {
    private final JsonNode node;
    private final Map<String, Cancellable> handles = new HashMap<>();
    private ProcessorContext<Object, Object> context;
    private KeyValueStore<String, Long> store;

    Script(JsonNode node) {
        this.node = node;
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
        this.context = context;
        if (node.has("store")) {
            store = context.getStateStore(node.get("store").asText());
        }
        if (node.has("on_init")) {
            run(node.get("on_init"), new Record<>(null, null, 0));
        }
    }

    @Override
    public void process(Record<Object, Object> record) {
        if (node.has("on_record")) {
            run(node.get("on_record"), record);
        } else {
            context.forward(record);
        }
    }

    private void punctuate(String id, long now) {
        Record<Object, Object> record = new Record<>(id, id + "@" + now, now);
        JsonNode actions = node.path("on_punctuate").get(id);
        if (actions == null) {
            context.forward(record);
        } else {
            run(actions, record);
        }
    }

    private void run(JsonNode actions, Record<Object, Object> record) {
        for (JsonNode action : actions) {
            act(action, record);
        }
    }

    private void act(JsonNode action, Record<Object, Object> record) {
        switch (action.get("do").asText()) {
            case "forward":
                forward(action, record, record.key(), record.value());
                break;
            case "forward_times":
                forward(action, record, record.key(), "ts=" + record.timestamp() + ",stream=" + context.currentStreamTimeMs()
                    + ",system=" + context.currentSystemTimeMs());
                break;
            case "forward_headers":
                forward(action, record, record.key(), Arrays.stream(record.headers().toArray()).map(Header::key).collect(Collectors.joining(",")));
                break;
            case "store_count": {
                Long before = store.get((String) record.key());
                store.put((String) record.key(), before == null ? 1 : before + 1);
                break;
            }
            case "store_put":
                store.put((String) record.key(), action.has("value") ? Long.valueOf(action.get("value").asLong()) : (Long) record.value());
                break;
            case "store_delete":
                store.delete((String) record.key());
                break;
            case "forward_count":
                forward(action, record, record.key(), store.get((String) record.key()));
                break;
            case "forward_store_all": {
                List<KeyValue<String, Long>> all = new ArrayList<>();
                try (KeyValueIterator<String, Long> entries = store.all()) {
                    entries.forEachRemaining(all::add);
                }
                for (KeyValue<String, Long> entry : all) {
                    forward(action, record, entry.key, entry.value);
                    if (action.path("clear").asBoolean()) {
                        store.delete(entry.key);
                    }
                }
                break;
            }
            case "schedule": {
                String id = action.get("id").asText();
                Duration interval = Duration.ofMillis(action.get("interval").asLong());
                PunctuationType type = PunctuationType.valueOf(action.get("type").asText());
                Punctuator call = now -> punctuate(id, now);
                handles.put(id, action.has("start")
                    ? context.schedule(Instant.ofEpochMilli(action.get("start").asLong()), interval, type, call)
                    : context.schedule(interval, type, call));
                break;
            }
            case "cancel": {
                Cancellable handle = handles.get(action.get("id").asText());
                if (handle != null) {
                    handle.cancel();
                }
                break;
            }
            case "if":
                run(Words.predicate(action.get("pred")).test(record.value()) ? action.path("then") : action.path("else"), record);
                break;
            case "throw":
                throw new RuntimeException("the script throws");
            default:
                throw new IllegalArgumentException("action " + action);
        }
    }

    private void forward(JsonNode action, Record<Object, Object> record, Object key, Object value) {
        Object newKey = action.has("key") ? action.get("key").textValue() : key;
        Object newValue = value;
        if (action.has("value")) {
            JsonNode said = action.get("value");
            newValue = said.isNull() ? null : said.isNumber() ? (Object) said.asLong() : said.asText();
        }
        long timestamp = record.timestamp();
        if (action.has("ts_add")) {
            timestamp += action.get("ts_add").asLong();
        }
        if (action.has("ts_set")) {
            timestamp = action.get("ts_set").asLong();
        }
        Record<Object, Object> made = record.withKey(newKey).withValue(newValue).withTimestamp(timestamp);
        if (action.has("header")) {
            made = made.withHeaders(new RecordHeaders(record.headers()).add(action.get("header").asText(), new byte[0]));
        }
        if (action.has("to")) {
            context.forward(made, action.get("to").asText());
        } else {
            context.forward(made);
        }
    }
}
