import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.coordinator.group.generated.*;
import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;

/**
 * Prints one JSON object a line: records filled in many styles, as Kafka's own classes write and describe them;
 * with the argument "damaged": records damaged in many ways, and what Kafka's own classes read in them.
 */
public class Golden {
    static final HexFormat HEX = HexFormat.of();
    static final ObjectMapper JSON = new ObjectMapper();
    static final String[] TEXTS = {"", "g1", "orders-service", "grüße", "消費者", "😀 emoji", "a[b], c", "x".repeat(200)};
    static final int TEXT_BYTES_MAX = 32767;

    /** How a record is filled; the number of times says how many rows of it each version gets. */
    enum Style {
        FULL(2), NULLS(1), EMPTY(1), DEFAULT(1), LEAST(1), MOST(1), SPARSE(4), UNKNOWN_TAGS(2), LONG(1), MANY(1), SMALL(0);

        final int times;
        Style(int times) { this.times = times; }
    }

    static Random random = new Random(0);
    static Style style = Style.FULL;
    static boolean inKey = false;

    // --- filling ----------------------------------------------------------------------------------------

    static String text() {
        return switch (style) {
            case EMPTY, LEAST -> "";
            case MOST -> "\uffff\udbff\udfff\u0000";
            case SMALL -> random.nextBoolean() ? "g" : "é";
            case LONG -> random.nextBoolean() ? "x".repeat(TEXT_BYTES_MAX) : "者".repeat(TEXT_BYTES_MAX / 3) + "x";
            default -> TEXTS[random.nextInt(TEXTS.length)];
        };
    }

    static byte[] bytes() {
        int size = switch (style) {
            case EMPTY, LEAST -> 0;
            case MANY -> 20_000;
            case SMALL -> 2;
            default -> random.nextInt(20);
        };
        byte[] made = new byte[size];
        random.nextBytes(made);
        if (style == Style.MOST) Arrays.fill(made, (byte) 0xff);
        if (style == Style.MANY) Arrays.fill(made, (byte) size);
        return made;
    }

    static int count() {
        return switch (style) {
            case EMPTY -> 0;
            case MANY -> 150;
            case LEAST, MOST, LONG, SMALL -> 1;
            default -> 1 + random.nextInt(3);
        };
    }

    static long number(long least, long most) {
        return switch (style) {
            case EMPTY -> 0;
            case LEAST -> least;
            case MOST -> most;
            default -> least + (long) ((most - (double) least) * random.nextDouble());
        };
    }

    static Uuid uuid() {
        return switch (style) {
            case EMPTY, LEAST -> Uuid.ZERO_UUID;
            case MOST -> new Uuid(-1, -1);
            default -> new Uuid(random.nextLong(), random.nextLong());
        };
    }

    static Object value(Type type) throws Exception {
        if (type == int.class || type == Integer.class) return (int) number(Integer.MIN_VALUE, Integer.MAX_VALUE);
        if (type == long.class) return number(Long.MIN_VALUE, Long.MAX_VALUE);
        if (type == short.class || type == Short.class) return (short) number(Short.MIN_VALUE, Short.MAX_VALUE);
        if (type == byte.class) return (byte) number(Byte.MIN_VALUE, Byte.MAX_VALUE);
        if (type == String.class) return text();
        if (type == Uuid.class) return uuid();
        if (type == byte[].class) return bytes();
        if (type instanceof ParameterizedType many) {
            List<Object> list = new ArrayList<>();
            Style before = style;
            int count = count();
            if (style == Style.MANY) style = Style.SMALL; // many of many would be too many
            for (int i = 0; i < count; i++) list.add(value(many.getActualTypeArguments()[0]));
            style = before;
            return list;
        }
        return fill((Message) ((Class<?>) type).getDeclaredConstructor().newInstance());
    }

    static List<Method> setters(Object message) {
        return Arrays.stream(message.getClass().getDeclaredMethods())
            .filter(m -> m.getName().startsWith("set") && m.getParameterCount() == 1)
            .sorted(Comparator.comparing(Method::getName)).toList();
    }

    static Object got(Object message, Method setter) throws Exception {
        String name = Character.toLowerCase(setter.getName().charAt(3)) + setter.getName().substring(4);
        return message.getClass().getMethod(name).invoke(message);
    }

    static Message fill(Message message) throws Exception {
        for (Method m : setters(message)) {
            if (style == Style.DEFAULT || style == Style.SPARSE && !inKey && random.nextBoolean()) continue;
            boolean isPort = m.getName().equals("setPort");
            m.invoke(message, isPort ? (Object) (int) number(0, 65535) : value(m.getGenericParameterTypes()[0]));
        }
        if (style == Style.UNKNOWN_TAGS && !inKey)
            for (int tag : new int[] {100, 16384, Integer.MAX_VALUE - 1})
                if (random.nextBoolean()) message.unknownTaggedFields().add(new RawTaggedField(tag, bytes()));
        return message;
    }

    /** Sets to null whatever the schema lets be null, at any depth: what may not be null refuses to be written. */
    static void setNulls(Object message, ApiMessage whole, short version) throws Exception {
        for (Method m : setters(message)) {
            if (m.getParameterTypes()[0].isPrimitive()) continue;
            Object before = got(message, m);
            if (before instanceof List<?> list)
                for (Object part : list) if (part instanceof Message) setNulls(part, whole, version);
            m.invoke(message, new Object[] {null});
            try { MessageUtil.toVersionPrefixedBytes(version, whole); }
            catch (RuntimeException notNullable) { m.invoke(message, before); }
        }
    }

    // --- whole records ----------------------------------------------------------------------------------

    static ApiMessage key(CoordinatorRecordType type) throws Exception {
        Style before = style;
        if (style != Style.LONG && style != Style.SMALL) style = Style.FULL;
        inKey = true;
        ApiMessage key = (ApiMessage) fill(type.newRecordKey());
        inKey = false;
        style = before;
        return key;
    }

    static ApiMessage value(CoordinatorRecordType type, short version) throws Exception {
        Style wanted = style;
        if (style == Style.NULLS) style = Style.FULL;
        ApiMessage value = (ApiMessage) fill(type.newRecordValue());
        style = wanted;
        if (style == Style.NULLS) setNulls(value, value, version);
        return value;
    }

    static ObjectNode row(CoordinatorRecordType type, short version, ApiMessage key, ApiMessage value) {
        ObjectNode line = JsonNodeFactory.instance.objectNode();
        line.put("type", type.id());
        line.put("name", type.newRecordValue().getClass().getSimpleName().replaceAll("Value$", ""));
        line.put("version", version);
        line.put("style", style.name().toLowerCase());
        line.put("key", HEX.formatHex(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
        line.put("value", HEX.formatHex(MessageUtil.toVersionPrefixedBytes(version, value)));
        line.set("key_json", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(key));
        line.set("value_json", CoordinatorRecordJsonConverters.writeRecordValueAsJson(value, version));
        return line;
    }

    static void printWhole() throws Exception {
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            ApiMessage probe = type.newRecordValue();
            for (short version = probe.lowestSupportedVersion(); version <= probe.highestSupportedVersion(); version++) {
                for (Style one : Style.values()) {
                    for (int time = 0; time < one.times; time++) {
                        style = one;
                        random = new Random(Objects.hash(type.id(), version, one.name(), time));
                        ApiMessage key = key(type), value = value(type, version);
                        try { System.out.println(JSON.writeValueAsString(row(type, version, key, value))); }
                        catch (UnsupportedVersionException noTagsInThisVersion) { }
                    }
                }
            }
        }
    }

    // --- damage -----------------------------------------------------------------------------------------

    static final byte[][] PIECES = {
        {-1, -1}, {-1, -2}, {127, -1}, {-1, -1, -1, -1}, {127, -1, -1, -1}, {-128, 0, 0, 0}, {0}, {1}, {2}, {-1},
        {-1, -1, -1, -1, 15}, {-1, -1, -1, -1, 7}, {-128, -128, -128, -128, 16}, {-128, -128, -128, -128, -128, 1}, {-128, 1},
        {1, 0, 0}, {1, 1, 0}, {2, 0, 0, 5, 1, 7}, {(byte) 0xc3, 0x28}, {(byte) 0xed, (byte) 0xa0, (byte) 0x80}
    };

    static byte[] joined(byte[] head, byte[] middle, byte[] tail) {
        ByteBuffer all = ByteBuffer.allocate(head.length + middle.length + tail.length);
        return all.put(head).put(middle).put(tail).array();
    }

    static byte[] damaged(byte[] whole) {
        int at = random.nextInt(whole.length), piece = random.nextInt(PIECES.length);
        byte[] head = Arrays.copyOf(whole, at), tail = Arrays.copyOfRange(whole, at, whole.length);
        byte[] rest = Arrays.copyOfRange(whole, Math.min(at + PIECES[piece].length, whole.length), whole.length);
        byte[] one = whole.clone();
        switch (random.nextInt(8)) {
            case 0: return head;
            case 1: one[at] ^= (byte) (1 << random.nextInt(8)); return one;
            case 2: one[at] = (byte) random.nextInt(256); return one;
            case 3: return joined(head, PIECES[piece], tail);
            case 4: return joined(head, PIECES[piece], rest);
            case 5: return joined(head, new byte[0], Arrays.copyOfRange(tail, 1, tail.length));
            case 6: one[Math.min(1, at)] = (byte) random.nextInt(26); return one;
            default: return joined(whole, PIECES[piece], new byte[0]);
        }
    }

    /** What Kafka makes of it: key and value, and how many bytes it left over; or why it refuses. */
    static ObjectNode read(byte[] key, byte[] value) {
        ObjectNode read = JsonNodeFactory.instance.objectNode();
        try {
            ByteBuffer keyBuffer = ByteBuffer.wrap(key), valueBuffer = ByteBuffer.wrap(value);
            CoordinatorRecordType type = CoordinatorRecordType.fromId(keyBuffer.getShort());
            ApiMessage readKey = type.newRecordKey(), readValue = type.newRecordValue();
            readKey.read(new ByteBufferAccessor(keyBuffer), (short) 0);
            short version = valueBuffer.getShort();
            if (version < readValue.lowestSupportedVersion() || version > readValue.highestSupportedVersion())
                throw new UnsupportedVersionException("version " + version);
            readValue.read(new ByteBufferAccessor(valueBuffer), version);
            read.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(readKey));
            read.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(readValue, version));
            read.put("left", keyBuffer.remaining() + valueBuffer.remaining());
        } catch (RuntimeException refused) {
            read.removeAll();
            read.put("refused", refused.getClass().getSimpleName());
        }
        return read;
    }

    static void printDamaged(int perVersion) throws Exception {
        style = Style.SMALL;
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            ApiMessage probe = type.newRecordValue();
            for (short version = probe.lowestSupportedVersion(); version <= probe.highestSupportedVersion(); version++) {
                random = new Random(Objects.hash(type.id(), version, "damaged"));
                for (int time = 0; time < perVersion * (type.id() < 2 ? 3 : 1); time++) {
                    byte[] key = MessageUtil.toCoordinatorTypePrefixedBytes(key(type));
                    byte[] value = MessageUtil.toVersionPrefixedBytes(version, value(type, version));
                    if (random.nextInt(5) == 0) key = damaged(key); else value = damaged(value);
                    if (value.length > 0 && random.nextInt(3) == 0) value = damaged(value);
                    ObjectNode line = JsonNodeFactory.instance.objectNode();
                    line.put("key", HEX.formatHex(key));
                    line.put("value", HEX.formatHex(value));
                    line.set("kafka", read(key, value));
                    System.out.println(JSON.writeValueAsString(line));
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        System.setOut(new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8));
        if (args.length > 0 && args[0].equals("damaged")) printDamaged(Integer.parseInt(args[1]));
        else printWhole();
    }
}
