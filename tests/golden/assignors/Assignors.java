import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.TopicPartition;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Prints one JSON object a line: members and partition counts, and what Kafka's own assignors make of them. */
public class Assignors {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String[] TOPICS = {"orders", "payments", "a", "zz-top", "größe"};
    static Random random;

    static class Member {
        String id;
        String instance;
        List<String> topics;
        List<TopicPartition> owned = new ArrayList<>();
        int generation = -1;
    }

    static List<Object> plain(List<TopicPartition> partitions) {
        return partitions.stream().map(p -> (Object) List.of(p.topic(), p.partition())).collect(Collectors.toList());
    }

    static Map<String, List<TopicPartition>> assign(String name, List<Member> members, Map<String, Integer> counts) throws Exception {
        AbstractPartitionAssignor assignor = switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (Member member : members) {
            ByteBuffer data = name.equals("sticky") ? userData(member) : null;
            List<TopicPartition> owned = name.equals("sticky") ? List.of() : member.owned;
            Subscription one = new Subscription(member.topics, data, owned, member.generation, Optional.empty());
            one.setGroupInstanceId(Optional.ofNullable(member.instance));
            subscriptions.put(member.id, one);
        }
        Set<String> wanted = members.stream().flatMap(m -> m.topics.stream()).collect(Collectors.toSet());
        Map<String, Integer> there = new HashMap<>();
        counts.forEach((topic, count) -> { if (count > 0 && wanted.contains(topic)) there.put(topic, count); });
        return assignor.assign(there, subscriptions);
    }

    static ByteBuffer userData(Member member) throws Exception {
        Method method = StickyAssignor.class.getDeclaredMethod("serializeTopicPartitionAssignment", AbstractStickyAssignor.MemberData.class);
        method.setAccessible(true);
        return (ByteBuffer) method.invoke(null, new AbstractStickyAssignor.MemberData(member.owned, Optional.of(member.generation)));
    }

    static void tell(String name, List<Member> members, Map<String, Integer> counts, Map<String, List<TopicPartition>> result) throws Exception {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("assignor", name);
        row.put("counts", new TreeMap<>(counts));
        List<Object> told = new ArrayList<>();
        for (Member member : members) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("member_id", member.id);
            one.put("topics", member.topics);
            one.put("owned", plain(member.owned));
            one.put("instance_id", member.instance);
            one.put("generation", member.generation);
            told.add(one);
        }
        row.put("members", told);
        Map<String, Object> got = new TreeMap<>();
        result.forEach((id, partitions) -> got.put(id, plain(partitions)));
        row.put("assignment", got);
        System.out.println(JSON.writeValueAsString(row));
    }

    static Member member(int number, boolean alike, List<String> topics) {
        Member made = new Member();
        made.id = "app-" + random.nextInt(4) + "-" + new UUID(random.nextLong(), random.nextLong());
        made.instance = random.nextInt(4) == 0 ? "i" + number : null;
        made.topics = new ArrayList<>(topics);
        if (!alike) {
            made.topics.removeIf(topic -> random.nextInt(3) == 0);
            if (made.topics.isEmpty()) made.topics.add(topics.get(0));
        }
        return made;
    }

    static void play(int seed, String name) throws Exception {
        random = new Random(seed);
        boolean alike = seed % 3 != 0;
        List<String> topics = new ArrayList<>(List.of(TOPICS));
        Collections.shuffle(topics, random);
        topics = topics.subList(0, 1 + random.nextInt(4));
        Map<String, Integer> counts = new HashMap<>();
        for (String topic : topics) counts.put(topic, random.nextInt(8) == 0 ? 0 : 1 + random.nextInt(12));
        List<Member> members = new ArrayList<>();
        int size = 1 + random.nextInt(seed % 10 == 0 ? 30 : 7);
        for (int i = 0; i < size; i++) members.add(member(i, alike, topics));
        for (int round = 0; round < 4; round++) {
            Map<String, List<TopicPartition>> result = assign(name, members, counts);
            tell(name, members, counts, result);
            for (Member one : members) {
                // One that missed a generation still claims what it had.
                if (members.size() > 2 && random.nextInt(12) == 0) continue;
                one.owned = new ArrayList<>(result.get(one.id));
                one.generation = round;
            }
            if (members.size() > 1 && random.nextInt(2) == 0) members.remove(random.nextInt(members.size()));
            while (random.nextInt(3) == 0) members.add(member(100 + round, alike, topics));
            if (random.nextInt(4) == 0) {
                String grown = topics.get(random.nextInt(topics.size()));
                counts.put(grown, counts.get(grown) + 1 + random.nextInt(3));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int seed = 0; seed < Integer.parseInt(arguments[0]); seed++)
            for (String name : List.of("range", "roundrobin", "sticky", "cooperative-sticky")) play(seed, name);
    }
}
