import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;

/** The transformer of a table's values. With a store it numbers its calls, by key. */
final class Transform implements ValueTransformerWithKey<Object, Object, Object> {
    private final JsonNode node;
    private KeyValueStore<String, Long> calls;

    Transform(JsonNode node) {
        this.node = node;
    }

    @Override
    public void init(ProcessorContext context) {
        if (node.has("store")) {
            calls = context.getStateStore(node.get("store").asText());
        }
    }

    @Override
    public Object transform(Object key, Object value) {
        String name = Words.keyText(key), text = name + "=" + Words.text(value);
        if (calls != null) {
            Long before = calls.get(name);
            long number = before == null ? 1 : before + 1;
            calls.put(name, number);
            text += "#" + number;
        }
        return value == null && !node.path("keeps_null").asBoolean() ? null : text;
    }

    @Override
    public void close() {}
}
