package groupwatch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Factory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/**
 * Packs records into blocks, one a row.  Spark copies each record three times, with its topic's name and its
 * time in two forms, before Python gets it; of a block the copies cost little.
 *
 * <p>A block is, in little-endian numbers: how many records, how many bytes of keys and of values, to how many
 * LZ4 has compressed the values or 0, how many numbers {@link Cutting} tells of each record or 0 if it tells
 * nothing of any, and 0 (int32 each); each record's offset, and its timestamp in epoch ms (int64); its partition,
 * where its key ends behind a 0 and where its value does (int32); its feed (int8); whether it has a key, and a
 * value (bits, the least significant first); what is told of it (int32 each); the keys; the values.  Each of
 * these begins and the block ends at a multiple of 8 bytes.
 */
public final class Packing implements FlatMapFunction<Iterator<ConsumerRecord<byte[], byte[]>>, InternalRow> {

    private static final long serialVersionUID = 1;
    private static final int RECORDS_MAX = 16_000;
    /** Of keys and values, before the last record of a block. */
    private static final int BYTES_MAX = 8 << 20;
    /** Log lines shrink to a tenth; of fewer bytes the copies cost nothing. */
    private static final int COMPRESSED_MIN = 64 << 10;

    private final Map<String, Integer> feeds;
    private final int lines;
    private final String words;

    /**
     * @param feeds the number of each topic
     * @param lines the number of the topic whose values are lines to be cut, or another
     * @param words where they are cut ({@link Cutting})
     */
    public Packing(Map<String, Integer> feeds, int lines, String words) {
        this.feeds = feeds;
        this.lines = lines;
        this.words = words;
    }

    @Override
    public Iterator<InternalRow> call(Iterator<ConsumerRecord<byte[], byte[]>> records) {
        Block block = new Block(lines, words);
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                boolean isMore = records.hasNext();
                if (!isMore) {
                    block.end();
                }
                return isMore;
            }

            @Override
            public InternalRow next() {
                block.clear();
                do {
                    block.add(records.next(), feeds);
                } while (!block.isFull() && records.hasNext());
                // The columns of Spark's source, of which the value counts alone.
                return new GenericInternalRow(new Object[] {null, block.packed(), null, 0, 0L, 0L, 0});
            }
        };
    }

    /** Records, column by column. */
    private static final class Block {
        private static final int HEAD = 6 * Integer.BYTES;

        private final long[] offsets = new long[RECORDS_MAX];
        private final long[] timestamps = new long[RECORDS_MAX];
        private final int[] partitions = new int[RECORDS_MAX];
        private final byte[] feeds = new byte[RECORDS_MAX];
        private final Texts keys = new Texts();
        private final Texts values = new Texts();
        private final LZ4Compressor compressor = LZ4Factory.fastestInstance().fastCompressor();
        private final int lines;
        private final String words;
        /** None before the first line. */
        private Cutting cutting;
        private byte[] compressed = {};
        private int[] told = {};
        private boolean isAnyCut;
        private int count;

        Block(int lines, String words) {
            this.lines = lines;
            this.words = words;
        }

        void clear() {
            count = 0;
            isAnyCut = false;
            if (cutting != null) {
                cutting.begin();
            }
            keys.clear();
            values.clear();
        }

        /** Lets another task have what it knows of lines; no record comes any more. */
        void end() {
            if (cutting != null) {
                cutting.rest();
                cutting = null;
            }
        }

        boolean isFull() {
            return count == RECORDS_MAX || keys.size + values.size >= BYTES_MAX;
        }

        void add(ConsumerRecord<byte[], byte[]> record, Map<String, Integer> numbers) {
            offsets[count] = record.offset();
            timestamps[count] = record.timestamp();
            partitions[count] = record.partition();
            feeds[count] = numbers.get(record.topic()).byteValue();
            keys.add(count, record.key());
            int start = values.size;
            values.add(count, record.value());
            tell(feeds[count] == lines ? cut(start) : Cutting.NOTHING);
            count++;
        }

        private int[] cut(int start) {
            if (cutting == null) {
                cutting = Cutting.taken(words);
                cutting.begin();
            }
            return cutting.cut(values.bytes, start, values.size);
        }

        private void tell(int[] numbers) {
            int place = count * Cutting.NUMBERS;
            if (place == told.length) {
                told = Arrays.copyOf(told, Math.max(64 * Cutting.NUMBERS, 2 * place));
            }
            System.arraycopy(numbers, 0, told, place, Cutting.NUMBERS);
            isAnyCut |= numbers[0] >= 0;
        }

        byte[] packed() {
            int small = compress();
            int length = small > 0 ? small : values.size;
            int bits = (count + 7) / 8;
            int numbers = 2 * Long.BYTES * count + even(Integer.BYTES * count) + 2 * even(Integer.BYTES * (count + 1));
            int perLine = isAnyCut ? Cutting.NUMBERS : 0;
            int size = HEAD + numbers + even(count) + 2 * even(bits) + even(Integer.BYTES * perLine * count)
                    + even(keys.size) + even(length);
            ByteBuffer out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
            out.putInt(count).putInt(keys.size).putInt(values.size).putInt(small).putInt(perLine).putInt(0);
            put(out, offsets);
            put(out, timestamps);
            put(out, partitions, count);
            put(out, keys.ends, count + 1);
            put(out, values.ends, count + 1);
            put(out, feeds, count);
            put(out, keys.present, bits);
            put(out, values.present, bits);
            put(out, told, perLine * count);
            put(out, keys.bytes, keys.size);
            out.put(small > 0 ? compressed : values.bytes, 0, length);
            return out.array();
        }

        /** Returns how many bytes the values are when compressed; 0 if they stay as they are. */
        private int compress() {
            if (values.size < COMPRESSED_MIN) {
                return 0;
            }
            int most = compressor.maxCompressedLength(values.size);
            if (compressed.length < most) {
                compressed = new byte[most];
            }
            int small = compressor.compress(values.bytes, 0, values.size, compressed, 0);
            return small < values.size ? small : 0;
        }

        private void put(ByteBuffer out, long[] numbers) {
            out.asLongBuffer().put(numbers, 0, count);
            out.position(out.position() + Long.BYTES * count);
        }

        private static void put(ByteBuffer out, int[] numbers, int count) {
            out.asIntBuffer().put(numbers, 0, count);
            out.position(out.position() + even(Integer.BYTES * count));
        }

        private static void put(ByteBuffer out, byte[] bytes, int count) {
            out.put(bytes, 0, count).position(even(out.position()));
        }

        private static int even(int size) {
            return (size + 7) & ~7;
        }
    }

    /** Byte strings, one behind the other. */
    private static final class Texts {
        final int[] ends = new int[RECORDS_MAX + 1];
        final byte[] present = new byte[(RECORDS_MAX + 7) / 8];
        byte[] bytes = new byte[1 << 16];
        int size;

        void clear() {
            size = 0;
            Arrays.fill(present, (byte) 0);
        }

        void add(int index, byte[] text) {
            if (text != null) {
                present[index >> 3] |= (byte) (1 << (index & 7));
                if (text.length > bytes.length - size) {
                    bytes = Arrays.copyOf(bytes, Math.max(size + text.length, 2 * bytes.length));
                }
                System.arraycopy(text, 0, bytes, size, text.length);
                size += text.length;
            }
            ends[index + 1] = size;
        }
    }
}
