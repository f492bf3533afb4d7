import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.coordinator.group.generated.*;
import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;

/** Prints one JSON object a line: a record filled at random, as Kafka's own classes write and describe it. */
public class Golden {
    static final Random random = new Random(20260101);
    static final String[] TEXTS = {"", "g1", "orders-service", "grüße", "消費者", "😀 emoji", "a[b], c", "x".repeat(200)};

    static String text() { return TEXTS[random.nextInt(TEXTS.length)]; }

    static Object value(Type type, String style) throws Exception {
        if (type == int.class) return style.equals("empty") ? 0 : random.nextInt();
        if (type == long.class) return style.equals("empty") ? 0L : random.nextLong();
        if (type == short.class) return (short) random.nextInt();
        if (type == byte.class) return (byte) random.nextInt();
        if (type == String.class) return style.equals("empty") ? "" : text();
        if (type == Uuid.class) return style.equals("empty") ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
        if (type == byte[].class) { byte[] b = new byte[style.equals("empty") ? 0 : random.nextInt(20)]; random.nextBytes(b); return b; }
        if (type instanceof ParameterizedType p) {
            List<Object> list = new ArrayList<>();
            int n = style.equals("empty") ? 0 : 1 + random.nextInt(3);
            for (int i = 0; i < n; i++) list.add(value(boxed(p.getActualTypeArguments()[0]), style));
            return list;
        }
        return fill(((Class<?>) type).getDeclaredConstructor().newInstance(), style);
    }

    static Type boxed(Type t) {
        if (t == Integer.class) return int.class;
        if (t == Short.class) return short.class;
        if (t == Long.class) return long.class;
        return t;
    }

    static Object fill(Object message, String style) throws Exception {
        Method[] methods = message.getClass().getDeclaredMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method m : methods) {
            if (!m.getName().startsWith("set") || m.getParameterCount() != 1) continue;
            Type type = m.getGenericParameterTypes()[0];
            if (style.equals("default")) continue;
            Object v = value(type, style);
            if (type == int.class && m.getName().equals("setPort")) v = random.nextInt(65536);
            m.invoke(message, v);
        }
        return message;
    }

    /** Sets to null whatever the schema lets be null: what may not be null refuses to be written. */
    static void setNulls(ApiMessage message, short version) throws Exception {
        for (Method m : message.getClass().getDeclaredMethods()) {
            if (!m.getName().startsWith("set") || m.getParameterCount() != 1 || m.getParameterTypes()[0].isPrimitive()) continue;
            Object before = message.getClass().getMethod(Character.toLowerCase(m.getName().charAt(3)) + m.getName().substring(4)).invoke(message);
            m.invoke(message, new Object[] {null});
            try { MessageUtil.toVersionPrefixedBytes(version, message); }
            catch (RuntimeException notNullable) { m.invoke(message, before); }
        }
    }

    public static void main(String[] args) throws Exception {
        HexFormat hex = HexFormat.of();
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            ApiMessage probe = type.newRecordValue();
            for (short version = probe.lowestSupportedVersion(); version <= probe.highestSupportedVersion(); version++) {
                for (String style : List.of("full", "full", "nulls", "empty", "default")) {
                    ApiMessage key = (ApiMessage) fill(type.newRecordKey(), "full");
                    ApiMessage value = (ApiMessage) fill(type.newRecordValue(), style.equals("nulls") ? "full" : style);
                    if (style.equals("nulls")) setNulls(value, version);
                    ObjectNode line = JsonNodeFactory.instance.objectNode();
                    line.put("type", type.id());
                    line.put("name", value.getClass().getSimpleName().replaceAll("Value$", ""));
                    line.put("version", version);
                    line.put("style", style);
                    line.put("key", hex.formatHex(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
                    line.put("value", hex.formatHex(MessageUtil.toVersionPrefixedBytes(version, value)));
                    line.set("key_json", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(key));
                    line.set("value_json", CoordinatorRecordJsonConverters.writeRecordValueAsJson(value, version));
                    System.out.println(new ObjectMapper().writeValueAsString(line));
                }
            }
        }
    }
}
