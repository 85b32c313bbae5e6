import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** From a scenario's nodes to a topology of the real DSL. What reaches a sink goes to {@code sent}, in order. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Build {
    /** What a sink got. */
    record Sent(String sink, Object key, Object value, long ts) {}

    /** The topics that extractors named since the last step. */
    final List<String> routed = new ArrayList<>();

    private final List<Sent> sent;
    private final Predicate<String> isHere;
    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, Object> made = new HashMap<>();
    private final Map<String, String> types = new HashMap<>();
    private final Map<String, Boolean> isWindowed = new HashMap<>();
    private final Map<String, JsonNode> windows = new HashMap<>();

    /** {@code isHere}: whether a node is of the task that runs the topology. Processors of other tasks do nothing. */
    Build(List<Sent> sent, Predicate<String> isHere) {
        this.sent = sent;
        this.isHere = isHere;
    }

    Topology build(JsonNode scenario) {
        for (JsonNode source : scenario.get("sources")) {
            String name = source.get("name").asText(), type = source.get("value").asText();
            Consumed consumed = Consumed.with(Words.KEYS, serde(type)).withName(name);
            if (source.has("extractor")) {
                consumed = consumed.withTimestampExtractor(Words.extractor(source.get("extractor").asText()));
            }
            types.put(name, type);
            String kind = source.get("kind").asText();
            made.put(name, kind.equals("global") ? builder.globalTable(name, consumed, Materialized.as(name))
                : kind.equals("table") ? builder.table(name, consumed, source.has("history")
                    ? Materialized.as(Stores.persistentVersionedKeyValueStore(name, ms(source.get("history"))))
                    : Materialized.as(name))
                : builder.stream(name, consumed));
        }
        for (JsonNode node : scenario.get("nodes")) {
            String name = node.get("name").asText();
            made.put(name, op(node, name, parents(node)));
        }
        for (JsonNode sink : scenario.get("sinks")) {
            String name = sink.get("name").asText();
            Object parent = made.get(sink.get("in").asText());
            KStream stream = parent instanceof KTable ? ((KTable) parent).toStream() : (KStream) parent;
            if (sink.has("route")) {
                route(sink.get("route"), name, stream, types.get(sink.get("in").asText()));
                continue;
            }
            ProcessorSupplier collector = () -> new Collector(name);
            stream.process(collector, Named.as(name));
        }
        return builder.build();
    }

    /** A sink whose topics a function names. They are real topics, so the extractor notes what it was asked. */
    private void route(JsonNode by, String name, KStream stream, String type) {
        BiFunction<Object, Object, String> select = Words.selector(by);
        TopicNameExtractor<Object, Object> extractor = (key, value, context) -> {
            String topic = name + "-" + Words.text(select.apply(key, value));
            sent.add(new Sent(topic, key, value, context.timestamp()));
            routed.add(topic);
            return topic;
        };
        stream.to(extractor, Produced.with(Serdes.String(), serde(type)).withName(name));
    }

    private final class Collector extends ContextualProcessor<Object, Object, Void, Void> {
        private final String sink;

        Collector(String sink) {
            this.sink = sink;
        }

        @Override
        public void process(Record<Object, Object> record) {
            sent.add(new Sent(sink, record.key(), record.value(), record.timestamp()));
        }
    }

    private List<String> parents(JsonNode node) {
        List<String> names = new ArrayList<>();
        JsonNode in = node.get("in");
        if (in.isArray()) {
            in.forEach(one -> names.add(one.asText()));
        } else {
            names.add(in.asText());
        }
        return names;
    }

    private Object op(JsonNode node, String name, List<String> parents) {
        String first = parents.get(0), type = types.get(first);
        Object parent = made.get(first);
        types.put(name, type);
        isWindowed.put(name, isWindowed.getOrDefault(first, false));
        windows.put(name, windows.get(first));
        boolean materialize = node.path("materialize").asBoolean();
        switch (node.get("op").asText()) {
            case "filter": {
                Predicate<Object> test = Words.predicate(node.get("pred"));
                if (parent instanceof KStream) {
                    return ((KStream<Object, Object>) parent).filter((key, value) -> test.test(value), Named.as(name));
                }
                KTable<Object, Object> table = (KTable<Object, Object>) parent;
                return materialize
                    ? table.filter((key, value) -> test.test(value), Named.as(name), keyed(name, type))
                    : table.filter((key, value) -> test.test(value), Named.as(name));
            }
            case "map_values": {
                Function<Object, Object> map = Words.mapper(node.get("fn"));
                String made = Words.makesString(node.get("fn")) ? "string" : type;
                types.put(name, made);
                ValueMapper<Object, Object> mapper = map::apply;
                if (parent instanceof KStream) {
                    return ((KStream<Object, Object>) parent).mapValues(mapper, Named.as(name));
                }
                KTable<Object, Object> table = (KTable<Object, Object>) parent;
                return materialize ? table.mapValues(mapper, Named.as(name), keyed(name, made)) : table.mapValues(mapper, Named.as(name));
            }
            case "select_key": {
                BiFunction<Object, Object, String> select = Words.selector(node.get("by"));
                isWindowed.put(name, false);
                return ((KStream<Object, Object>) parent).selectKey((key, value) -> select.apply(key, value), Named.as(name));
            }
            case "merge": {
                KStream<Object, Object> all = (KStream<Object, Object>) parent;
                for (String other : parents.subList(1, parents.size())) {
                    boolean isLast = other.equals(parents.get(parents.size() - 1));
                    KStream<Object, Object> more = (KStream<Object, Object>) made.get(other);
                    all = isLast ? all.merge(more, Named.as(name)) : all.merge(more);
                }
                return all;
            }
            case "repartition": {
                Repartitioned<Object, Object> crossing = (Repartitioned) Repartitioned.with(Serdes.String(), serde(type)).withName(name);
                isWindowed.put(name, false);
                return ((KStream) parent).repartition(node.has("partitioner")
                    ? crossing.withStreamPartitioner(Words.partitioner(node.get("partitioner"))) : crossing);
            }
            case "global_table_join": {
                GlobalKTable other = (GlobalKTable) made.get(parents.get(1));
                BiFunction<Object, Object, String> select = Words.selector(node.get("by"));
                KeyValueMapper<Object, Object, String> selector = select::apply;
                types.put(name, "string");
                boolean isInner = node.get("how").asText().equals("inner");
                if (node.path("keys").asBoolean()) {
                    return isInner ? ((KStream) parent).join(other, selector, KEYS_JOINER, Named.as(name))
                        : ((KStream) parent).leftJoin(other, selector, KEYS_JOINER, Named.as(name));
                }
                return isInner ? ((KStream) parent).join(other, selector, JOINER, Named.as(name))
                    : ((KStream) parent).leftJoin(other, selector, JOINER, Named.as(name));
            }
            case "group_by_key":
                return ((KStream) parent).groupByKey(Grouped.with(name, Serdes.String(), serde(type)));
            case "group_by": {
                BiFunction<Object, Object, String> select = Words.selector(node.get("by"));
                isWindowed.put(name, false);
                Grouped grouped = Grouped.with(name, Serdes.String(), serde(type));
                if (parent instanceof KStream) {
                    return ((KStream<Object, Object>) parent).groupBy((key, value) -> select.apply(key, value), grouped);
                }
                KeyValueMapper<Object, Object, KeyValue<String, Object>> mapper =
                    (key, value) -> KeyValue.pair(select.apply(key, value), value);
                return ((KTable<Object, Object>) parent).groupBy(mapper, grouped);
            }
            case "cogroup": {
                List<KGroupedStream> grouped = new ArrayList<>();
                parents.forEach(one -> grouped.add((KGroupedStream) made.get(one)));
                types.put(name, "string");
                return Cogroups.of(node, grouped);
            }
            case "transform_values": {
                KTable<Object, Object> table = (KTable<Object, Object>) parent;
                ValueTransformerWithKeySupplier<Object, Object, Object> transform = () -> new Transform(node);
                String[] stores = keyedStore(node);
                types.put(name, "string");
                return materialize
                    ? table.transformValues(transform, keyed(name, "string"), Named.as(name), stores)
                    : table.transformValues(transform, Named.as(name), stores);
            }
            case "window":
                windows.put(name, node);
                isWindowed.put(name, true);
                return parent instanceof CogroupedKStream ? windowed(node, (CogroupedKStream) parent) : window(node, (KGroupedStream) parent);
            case "aggregate":
                return aggregate(node, name, parent, type, windows.get(first));
            case "suppress":
                return ((KTable) parent).suppress(suppressed(node, name));
            case "to_stream":
                return ((KTable) parent).toStream(Named.as(name));
            case "to_table":
                return ((KStream) parent).toTable(Named.as(name), keyed(name, type));
            case "stream_stream_join":
                return streamJoin(node, name, (KStream) parent, parents.get(1));
            case "stream_table_join": {
                Joined joined = Joined.with(Serdes.String(), serde(type), serde(types.get(parents.get(1)))).withName(name);
                KTable other = (KTable) made.get(parents.get(1));
                types.put(name, "string");
                return node.get("how").asText().equals("inner")
                    ? ((KStream) parent).join(other, JOINER, joined)
                    : ((KStream) parent).leftJoin(other, JOINER, joined);
            }
            case "table_table_join": {
                KTable left = (KTable) parent, right = (KTable) made.get(parents.get(1));
                types.put(name, "string");
                Named named = Named.as(name);
                switch (node.get("how").asText()) {
                    case "inner":
                        return materialize ? left.join(right, JOINER, named, keyed(name, "string")) : left.join(right, JOINER, named);
                    case "left":
                        return materialize ? left.leftJoin(right, JOINER, named, keyed(name, "string")) : left.leftJoin(right, JOINER, named);
                    default:
                        return materialize ? left.outerJoin(right, JOINER, named, keyed(name, "string")) : left.outerJoin(right, JOINER, named);
                }
            }
            case "foreign_key_join": {
                KTable left = (KTable) parent, right = (KTable) made.get(parents.get(1));
                BiFunction<Object, Object, String> select = Words.selector(node.get("by"));
                Function<Object, Object> foreignKey = value -> select.apply(null, value);
                TableJoined joined = TableJoined.as(name);
                types.put(name, "string");
                Materialized kept = Materialized.<Object, Object, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(Words.KEYS).withValueSerde(serde("string"));
                return node.get("how").asText().equals("inner")
                    ? left.join(right, foreignKey, JOINER, joined, kept)
                    : left.leftJoin(right, foreignKey, JOINER, joined, kept);
            }
            case "processor": {
                types.put(name, node.has("value") ? node.get("value").asText() : type);
                ProcessorSupplier script = () -> isHere.test(name) ? new Script(node) : new Collector(name);
                return ((KStream) parent).process(script, Named.as(name), keyedStore(node));
            }
            default:
                throw new IllegalArgumentException("op " + node.get("op"));
        }
    }

    private static final ValueJoinerWithStreamAndMappedKey<Object, Object, Object, Object, Object> KEYS_JOINER =
        (key, mapped, left, right) -> String.join("|", Words.text(key), Words.text(mapped), Words.text(left), Words.text(right));
    private static final ValueJoiner<Object, Object, Object> JOINER = (left, right) -> Words.text(left) + "|" + Words.text(right);

    private String[] keyedStore(JsonNode node) {
        if (!node.has("store")) {
            return new String[] {};
        }
        String store = node.get("store").asText();
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(store), Serdes.String(), Serdes.Long()));
        return new String[] {store};
    }

    private static Object windowed(JsonNode node, CogroupedKStream cogrouped) {
        Duration grace = ms(node.path("grace"));
        switch (node.get("type").asText()) {
            case "tumbling":
                return cogrouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(node.get("size")), grace));
            case "hopping":
                return cogrouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(node.get("size")), grace).advanceBy(ms(node.get("advance"))));
            case "sliding":
                return cogrouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(node.get("diff")), grace));
            case "session":
                return cogrouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(node.get("gap")), grace));
            default:
                return cogrouped.windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(node.path("start").asLong())));
        }
    }

    private Object window(JsonNode node, KGroupedStream grouped) {
        Duration grace = ms(node.path("grace"));
        Object windowed;
        switch (node.get("type").asText()) {
            case "tumbling":
                windowed = grouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(node.get("size")), grace));
                break;
            case "hopping":
                windowed = grouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(node.get("size")), grace).advanceBy(ms(node.get("advance"))));
                break;
            case "sliding":
                windowed = grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(node.get("diff")), grace));
                break;
            case "session":
                windowed = grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(node.get("gap")), grace));
                break;
            case "calendar":
                windowed = grouped.windowedBy(new CalendarWindows(node.get("unit").asText(), node.get("step").asInt(), node.get("steps").asInt(),
                    node.get("zone").asText(), grace.toMillis()));
                break;
            case "unlimited":
                windowed = grouped.windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(node.path("start").asLong())));
                break;
            default:
                throw new IllegalArgumentException("window " + node);
        }
        if (!node.path("emit").asText("update").equals("window_close")) {
            return windowed;
        }
        return windowed instanceof SessionWindowedKStream
            ? ((SessionWindowedKStream) windowed).emitStrategy(EmitStrategy.onWindowClose())
            : ((TimeWindowedKStream) windowed).emitStrategy(EmitStrategy.onWindowClose());
    }

    private Object aggregate(JsonNode node, String name, Object parent, String type, JsonNode window) {
        String fn = node.get("fn").asText();
        String made = fn.equals("count") ? "long" : fn.equals("concat") ? "string" : type;
        types.put(name, made);
        Reducer<Object> reducer = (aggregate, value) -> Words.reduce(fn, aggregate, value);
        Initializer<Object> empty = () -> "";
        Aggregator<Object, Object, Object> concat = (key, value, aggregate) -> Words.concat((String) aggregate, value);
        if (parent instanceof CogroupedKStream || parent instanceof TimeWindowedCogroupedKStream || parent instanceof SessionWindowedCogroupedKStream) {
            return Cogroups.aggregate(node, name, parent);
        }
        Named named = Named.as(name);
        if (parent instanceof KGroupedTable) {
            KGroupedTable table = (KGroupedTable) parent;
            Aggregator<Object, Object, Object> plus = (key, value, aggregate) -> aggregate + "+" + Words.text(value);
            Aggregator<Object, Object, Object> minus = (key, value, aggregate) -> aggregate + "-" + Words.text(value);
            Reducer<Object> add = (aggregate, value) -> (Long) aggregate + (Long) value;
            Reducer<Object> subtract = (aggregate, value) -> (Long) aggregate - (Long) value;
            return fn.equals("count") ? table.count(named, keyed(name, made))
                : fn.equals("concat") ? table.aggregate(empty, plus, minus, named, keyed(name, made))
                : table.reduce(add, subtract, named, keyed(name, made));
        }
        if (parent instanceof KGroupedStream) {
            KGroupedStream stream = (KGroupedStream) parent;
            return fn.equals("count") ? stream.count(named, keyed(name, made))
                : fn.equals("concat") ? stream.aggregate(empty, concat, named, keyed(name, made))
                : stream.reduce(reducer, named, keyed(name, made));
        }
        if (parent instanceof SessionWindowedKStream) {
            SessionWindowedKStream stream = (SessionWindowedKStream) parent;
            Materialized<String, Object, SessionStore<Bytes, byte[]>> kept =
                Materialized.<String, Object, SessionStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde(serde(made));
            if (node.has("retention")) {
                kept = kept.withRetention(ms(node.get("retention")));
            }
            Merger<Object, Object> merger = (key, one, other) -> Words.concat((String) one, other);
            return fn.equals("count") ? stream.count(named, kept)
                : fn.equals("concat") ? stream.aggregate(empty, concat, merger, named, kept)
                : stream.reduce(reducer, named, kept);
        }
        TimeWindowedKStream stream = (TimeWindowedKStream) parent;
        Materialized<String, Object, WindowStore<Bytes, byte[]>> kept =
            Materialized.<String, Object, WindowStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde(serde(made));
        if (node.has("retention")) {
            kept = kept.withRetention(ms(node.get("retention")));
        }
        return fn.equals("count") ? stream.count(named, kept)
            : fn.equals("concat") ? stream.aggregate(empty, concat, named, kept)
            : stream.reduce(reducer, named, kept);
    }

    private Suppressed suppressed(JsonNode node, String name) {
        JsonNode buffer = node.path("buffer");
        boolean hasRecords = buffer.has("max_records"), hasBytes = buffer.has("max_bytes");
        Suppressed.EagerBufferConfig eager = null;
        if (hasRecords) {
            eager = Suppressed.BufferConfig.maxRecords(buffer.get("max_records").asLong());
        }
        if (hasBytes) {
            long bytes = buffer.get("max_bytes").asLong();
            eager = eager == null ? Suppressed.BufferConfig.maxBytes(bytes) : (Suppressed.EagerBufferConfig) eager.withMaxBytes(bytes);
        }
        Suppressed.BufferConfig config = eager == null ? Suppressed.BufferConfig.unbounded()
            : buffer.path("full").asText("emit").equals("shutdown") ? eager.shutDownWhenFull() : eager;
        return node.get("until").asText().equals("window_closes")
            ? Suppressed.untilWindowCloses((Suppressed.StrictBufferConfig) config).withName(name)
            : Suppressed.untilTimeLimit(ms(node.get("ms")), config).withName(name);
    }

    private KStream streamJoin(JsonNode node, String name, KStream left, String right) {
        long before = node.get("before").asLong(), after = node.get("after").asLong();
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(Math.max(before, after)), ms(node.path("grace")))
            .before(Duration.ofMillis(before)).after(Duration.ofMillis(after));
        StreamJoined joined = StreamJoined.with(Serdes.String(), serde(types.get(node.get("in").get(0).asText())), serde(types.get(right)))
            .withName(name).withStoreName(name);
        KStream other = (KStream) made.get(right);
        types.put(name, "string");
        switch (node.get("how").asText()) {
            case "inner":
                return left.join(other, JOINER, windows, joined);
            case "left":
                return left.leftJoin(other, JOINER, windows, joined);
            default:
                return left.outerJoin(other, JOINER, windows, joined);
        }
    }

    private static Materialized keyed(String name, String type) {
        return Materialized.<String, Object, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(Serdes.String()).withValueSerde(serde(type));
    }

    private static Duration ms(JsonNode said) {
        return Duration.ofMillis(said.asLong());
    }

    static Serde serde(String type) {
        return type.equals("long") ? Serdes.Long() : Serdes.String();
    }
}
