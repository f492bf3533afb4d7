package groupwatch;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaOffsetReader;
import org.apache.spark.sql.kafka010.KafkaSource;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's Kafka source, which tells a batch's partitions in an order whose equal parts hold equally many
 * records.  Spark's own order is by hash, in which the partitions of one topic stand together, and "coalesce"
 * cuts it into parts of equally many partitions: all log lines would be one task's.
 */
public final class EvenKafka extends KafkaSourceProvider {

    /** The option that names how many tasks share the partitions. */
    private static final String TASKS = "groupwatch.tasks";
    /** The option that has records packed, and gives the number of each topic: "one=0,another=1". */
    private static final String FEEDS = "groupwatch.feeds";
    /** The option that gives the number of the topic whose lines are cut. */
    private static final String LINES = "groupwatch.lines";
    /** The option that gives the words at which they are ({@link Cutting}). */
    private static final String WORDS = "groupwatch.words";

    @Override
    public Source createSource(
            SQLContext context,
            String metadata,
            Option<StructType> schema,
            String name,
            scala.collection.immutable.Map<String, String> options) {
        Source source = super.createSource(context, metadata, schema, name, options);
        int tasks = Integer.parseInt(options.apply(TASKS));
        try {
            spread((KafkaSource) source, tasks);
        } catch (ReflectiveOperationException | RuntimeException error) {
            log().warn("the partitions of a batch keep Spark's own order", error);
        }
        Map<String, Integer> feeds = feeds(options);
        if (feeds.isEmpty()) {
            return source;
        }
        int lines = Integer.parseInt(options.getOrElse(LINES, () -> "-1"));
        Packing packing = new Packing(feeds, lines, options.getOrElse(WORDS, () -> ""));
        return new PackedSource(context, (KafkaSource) source, tasks, packing);
    }

    private static Map<String, Integer> feeds(scala.collection.immutable.Map<String, String> options) {
        Map<String, Integer> feeds = new HashMap<>();
        for (String one : options.getOrElse(FEEDS, () -> "").split(",")) {
            if (!one.isEmpty()) {
                String[] pair = one.split("=");
                feeds.put(pair[0], Integer.valueOf(pair[1]));
            }
        }
        return feeds;
    }

    private static void spread(KafkaSource source, int tasks) throws ReflectiveOperationException {
        Field field = KafkaSource.class.getDeclaredField("kafkaReader");
        field.setAccessible(true);
        Object reader = field.get(source);
        Class<?>[] kind = {KafkaOffsetReader.class};
        Object spreading = Proxy.newProxyInstance(kind[0].getClassLoader(), kind, (proxy, method, given) -> {
            Object told = ask(reader, method, given);
            return method.getName().equals("getOffsetRangesFromResolvedOffsets") ? inOrder(told, tasks) : told;
        });
        field.set(source, spreading);
    }

    /** Calls a method; a thread that is stopped meanwhile ends by an error that Spark takes for a stop. */
    public static Object ask(Object asked, Method method, Object... given) throws Throwable {
        try {
            return method.invoke(asked, given);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof InterruptedException) { // which Spark's Scala does not declare
                throw new UncheckedIOException((IOException) new InterruptedIOException().initCause(error.getCause()));
            }
            throw error.getCause();
        }
    }

    @SuppressWarnings("unchecked")
    private static Seq<KafkaOffsetRange> inOrder(Object told, int tasks) {
        Seq<KafkaOffsetRange> ranges = (Seq<KafkaOffsetRange>) told;
        List<KafkaOffsetRange> all = new ArrayList<>(CollectionConverters.asJava(ranges));
        if (all.stream().anyMatch(one -> one.preferredLoc().isDefined())) {
            return ranges; // Spark gives each to the executor that has its consumer
        }
        return CollectionConverters.asScala(even(all, tasks)).toSeq();
    }

    /**
     * Returns the ranges so that the i-th of so many equal parts goes to the i-th task: the largest topic is
     * dealt out first, its largest ranges first, one to each task a round, the largest to whoever has least.
     */
    public static List<KafkaOffsetRange> even(List<KafkaOffsetRange> ranges, int tasks) {
        Map<String, Long> topics = new HashMap<>();
        ranges.forEach(one -> topics.merge(one.topic(), one.size(), Long::sum));
        List<KafkaOffsetRange> left = new ArrayList<>(ranges);
        left.sort(Comparator.comparing((KafkaOffsetRange one) -> -topics.get(one.topic()))
                .thenComparing(KafkaOffsetRange::topic)
                .thenComparing(one -> -one.size())
                .thenComparing(KafkaOffsetRange::partition));
        List<Part> parts = new ArrayList<>();
        for (int i = 0; i < tasks; i++) {
            long begin = (long) i * left.size() / tasks;
            parts.add(new Part((int) ((i + 1L) * left.size() / tasks - begin)));
        }
        List<Part> round = new ArrayList<>();
        for (KafkaOffsetRange range : left) {
            if (round.isEmpty()) {
                parts.stream().filter(Part::hasRoom).sorted(Comparator.comparing(one -> one.records)).forEach(round::add);
            }
            round.remove(0).add(range);
        }
        List<KafkaOffsetRange> told = new ArrayList<>();
        parts.forEach(part -> told.addAll(part.ranges));
        return told;
    }

    private static final class Part {
        final List<KafkaOffsetRange> ranges = new ArrayList<>();
        final int room;
        long records;

        Part(int room) {
            this.room = room;
        }

        boolean hasRoom() {
            return ranges.size() < room;
        }

        void add(KafkaOffsetRange range) {
            ranges.add(range);
            records += range.size();
        }
    }
}
