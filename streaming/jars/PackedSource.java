package groupwatch;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.kafka010.KafkaSource;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Spark's Kafka source, whose records come as blocks of many ({@link Packing}). */
final class PackedSource implements Source, SupportsTriggerAvailableNow {

    private final SQLContext context;
    private final KafkaSource kafka;
    private final int tasks;
    private final Packing packing;

    /**
     * @param tasks how many tasks share the partitions
     * @param packing makes the blocks
     */
    PackedSource(SQLContext context, KafkaSource kafka, int tasks, Packing packing) {
        this.context = context;
        this.kafka = kafka;
        this.tasks = tasks;
        this.packing = packing;
    }

    @Override
    public StructType schema() {
        return kafka.schema(); // fixed by the connector
    }

    @Override
    public Dataset<Row> getBatch(Option<Offset> start, Offset end) {
        Dataset<Row> rows = kafka.getBatch(start, end);
        LogicalRDD plan = (LogicalRDD) ((org.apache.spark.sql.classic.Dataset<Row>) rows).logicalPlan();
        if (plan.rdd().dependencies().isEmpty()) {
            return rows; // a batch of nothing, after a restart
        }
        @SuppressWarnings("unchecked") // of these Spark makes its rows
        RDD<ConsumerRecord<byte[], byte[]>> records =
                (RDD<ConsumerRecord<byte[], byte[]>>) plan.rdd().dependencies().head().rdd();
        // Packed behind the coalescing: a block holds the records of many partitions.
        JavaRDD<InternalRow> blocks = records.toJavaRDD().coalesce(tasks).mapPartitions(packing);
        return ((org.apache.spark.sql.classic.SQLContext) context).internalCreateDataFrame(blocks.rdd(), schema(), true);
    }

    // The rest is Spark's.

    @Override
    public Option<Offset> getOffset() {
        return kafka.getOffset();
    }

    @Override
    public void commit(Offset end) {
        kafka.commit(end);
    }

    @Override
    public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {
        kafka.commit(end);
    }

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
        return kafka.initialOffset();
    }

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) {
        return kafka.deserializeOffset(json);
    }

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
            org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
        return kafka.latestOffset(start, limit);
    }

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
        return kafka.reportLatestOffset();
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return kafka.getDefaultReadLimit();
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        kafka.prepareForTriggerAvailableNow();
    }

    @Override
    public void stop() {
        kafka.stop();
    }

    @Override
    public String toString() {
        return kafka.toString();
    }
}
