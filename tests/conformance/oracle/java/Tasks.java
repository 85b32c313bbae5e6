import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.TopologyTestDriver;

/**
 * The tasks of a scenario. Kafka's test driver runs all sub-topologies as one task. With {@code "tasks": "separate"} in the
 * scenario's configuration each sub-topology has a driver of its own, as each has a task of its own in a live application,
 * and with {@code "partitions"} one for each partition; what one sends to a repartition topic is handed to the one that reads it.
 */
final class Tasks implements AutoCloseable {
    /**
     * A driver, and the names of the nodes and stores of the sub-topology that it runs, and of the topics that it writes.
     * Routed are the topics that extractors named and that no record has reached yet.
     */
    record Task(TopologyTestDriver driver, Set<String> owned, List<String> routed) {}

    final List<Task> all = new ArrayList<>();
    long now;
    private final String prefix;
    private final int partitions;

    Tasks(JsonNode scenario, Properties settings, List<Build.Sent> sent) {
        prefix = settings.get(StreamsConfig.APPLICATION_ID_CONFIG) + "-";
        now = scenario.path("config").path("wall_clock").asLong(0);
        Instant start = Instant.ofEpochMilli(now);
        partitions = scenario.path("config").path("partitions").asInt(1);
        boolean areSeparate = partitions > 1 || scenario.path("config").path("tasks").asText().equals("separate");
        int parts = areSeparate ? new Build(new ArrayList<>(), name -> true).build(scenario).describe().subtopologies().size() : 1;
        for (int task = 0; task < parts * partitions; task++) {
            int number = task / partitions;
            Set<String> owned = new HashSet<>(), read = new HashSet<>();
            Build build = new Build(areSeparate ? onlyFrom(owned, sent) : sent, owned::contains);
            Topology topology = build.build(scenario);
            for (TopologyDescription.Subtopology part : topology.describe().subtopologies()) {
                if (!areSeparate || part.id() == number) {
                    part.nodes().forEach(node -> own(node, owned, read));
                }
            }
            Properties own = new Properties();
            own.putAll(settings);
            own.put(StreamsConfig.STATE_DIR_CONFIG, settings.get(StreamsConfig.STATE_DIR_CONFIG) + "-" + task);
            TopologyTestDriver driver = new TopologyTestDriver(topology, own, start);
            all.add(new Task(driver, owned, build.routed));
            partitions(driver).keySet().removeIf(topic -> !read.contains(topic) && !read.contains(plain(topic)));
        }
    }

    /** Returns the driver that reads a topic's partition of a key, which is rewindow's: CRC-32 of the key's bytes. */
    TopologyTestDriver reading(String topic, byte[] key) {
        CRC32 crc = new CRC32();
        crc.update(key == null ? new byte[0] : key);
        return all.stream().map(Task::driver).filter(driver -> partitions(driver).containsKey(topic))
            .skip(key == null ? 0 : crc.getValue() % partitions).findFirst().orElseThrow();
    }

    /** Processes what is queued, and what that sends to the other tasks, until nothing is left that can be processed. */
    void complete() {
        boolean isDone;
        do {
            isDone = true;
            for (Task task : all) {
                call(task.driver(), "completeAllProcessableWork", new Class<?>[] {});
                isDone &= !handOver(task);
            }
        } while (!isDone);
        for (Task task : all) {
            if (!task.routed().isEmpty()) {
                throw new Error("nothing reached " + task.routed());
            }
        }
    }

    /** Hands a record of a global table to every task: each has a copy of the table. */
    void pipeGlobal(String topic, long ts, byte[] key, byte[] value, Headers headers) {
        for (Task task : all) {
            call(task.driver(), "pipeRecord", new Class<?>[] {String.class, long.class, byte[].class, byte[].class, Headers.class},
                topic, ts, key, value, headers);
        }
    }

    @Override
    public void close() {
        all.forEach(task -> task.driver().close());
    }

    static void enqueue(TopologyTestDriver driver, String topic, long ts, byte[] key, byte[] value, Headers headers) {
        TopicPartition partition = partitions(driver).get(topic);
        call(driver, "enqueueTaskRecord",
            new Class<?>[] {String.class, TopicPartition.class, long.class, byte[].class, byte[].class, Headers.class},
            topic, partition, ts, key, value, headers);
    }

    private boolean handOver(Task from) {
        boolean isAny = false;
        for (Map.Entry<String, Queue<ProducerRecord<byte[], byte[]>>> sent : output(from.driver()).entrySet()) {
            boolean isElsewhere = !partitions(from.driver()).containsKey(sent.getKey()) && from.owned().contains(plain(sent.getKey()));
            for (ProducerRecord<byte[], byte[]> one = sent.getValue().poll(); one != null; one = sent.getValue().poll()) {
                from.routed().remove(one.topic());
                if (isElsewhere) {
                    enqueue(reading(one.topic(), one.key()), one.topic(), one.timestamp(), one.key(), one.value(), one.headers());
                    isAny = true;
                }
            }
        }
        return isAny;
    }

    private String plain(String topic) {
        return topic.startsWith(prefix) ? topic.substring(prefix.length()) : topic;
    }

    private static void own(TopologyDescription.Node node, Set<String> owned, Set<String> read) {
        owned.add(node.name());
        if (node instanceof TopologyDescription.Source) {
            read.addAll(((TopologyDescription.Source) node).topicSet());
        } else if (node instanceof TopologyDescription.Processor) {
            owned.addAll(((TopologyDescription.Processor) node).stores());
        } else if (node instanceof TopologyDescription.Sink) {
            owned.add(((TopologyDescription.Sink) node).topic());
        }
    }

    private static List<Build.Sent> onlyFrom(Set<String> owned, List<Build.Sent> sent) {
        return new ArrayList<>() {
            @Override
            public boolean add(Build.Sent one) {
                return owned.contains(one.sink()) && sent.add(one);
            }
        };
    }

    @SuppressWarnings("unchecked")
    private static Map<String, TopicPartition> partitions(TopologyTestDriver driver) {
        return (Map<String, TopicPartition>) field(driver, "partitionsByInputTopic");
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Queue<ProducerRecord<byte[], byte[]>>> output(TopologyTestDriver driver) {
        return (Map<String, Queue<ProducerRecord<byte[], byte[]>>>) field(driver, "outputRecordsByTopic");
    }

    private static Object field(TopologyTestDriver driver, String name) {
        try {
            Field field = TopologyTestDriver.class.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(driver);
        } catch (ReflectiveOperationException error) {
            throw new Error(error);
        }
    }

    private static void call(Object target, String name, Class<?>[] types, Object... arguments) {
        try {
            Method method = target.getClass().getDeclaredMethod(name, types);
            method.setAccessible(true);
            method.invoke(target, arguments);
        } catch (java.lang.reflect.InvocationTargetException error) {
            if (error.getCause() instanceof RuntimeException) {
                throw (RuntimeException) error.getCause();
            }
            throw new IllegalStateException(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new Error(error);
        }
    }
}
