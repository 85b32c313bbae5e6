import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.function.Predicate;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** Cogroups, whose aggregate is a text: each stream adds its values with its own tag. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Cogroups {
    private Cogroups() {}

    private static final Initializer<Object> EMPTY = () -> "";

    static CogroupedKStream of(JsonNode node, List<KGroupedStream> grouped) {
        CogroupedKStream made = grouped.get(0).cogroup(aggregator(node.get("fns").get(0)));
        for (int number = 1; number < grouped.size(); number++) {
            made = made.cogroup(grouped.get(number), aggregator(node.get("fns").get(number)));
        }
        return made;
    }

    static Object aggregate(JsonNode node, String name, Object parent) {
        Named named = Named.as(name);
        if (parent instanceof SessionWindowedCogroupedKStream) {
            Materialized<String, Object, SessionStore<Bytes, byte[]>> kept =
                Materialized.<String, Object, SessionStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde((org.apache.kafka.common.serialization.Serde) Serdes.String());
            Merger<Object, Object> merger = (key, one, other) -> Words.concat((String) one, other);
            return ((SessionWindowedCogroupedKStream) parent).aggregate(EMPTY, merger, named, kept(kept, node));
        }
        if (parent instanceof TimeWindowedCogroupedKStream) {
            Materialized<String, Object, WindowStore<Bytes, byte[]>> kept =
                Materialized.<String, Object, WindowStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde((org.apache.kafka.common.serialization.Serde) Serdes.String());
            return ((TimeWindowedCogroupedKStream) parent).aggregate(EMPTY, named, kept(kept, node));
        }
        Materialized<String, Object, KeyValueStore<Bytes, byte[]>> kept =
            Materialized.<String, Object, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde((org.apache.kafka.common.serialization.Serde) Serdes.String());
        return ((CogroupedKStream) parent).aggregate(EMPTY, named, kept);
    }

    private static Materialized kept(Materialized store, JsonNode node) {
        return node.has("retention") ? store.withRetention(java.time.Duration.ofMillis(node.get("retention").asLong())) : store;
    }

    private static Aggregator<Object, Object, Object> aggregator(JsonNode said) {
        String tag = said.get("tag").asText();
        Predicate<Object> deletes = said.has("null_if") ? Words.predicate(said.get("null_if")) : value -> false;
        return (key, value, aggregate) ->
            deletes.test(value) ? null : Words.concat((String) aggregate, tag + Words.text(value));
    }
}
