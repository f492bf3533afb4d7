import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What the live test of the modern protocols needs of Java: members of every protocol that do as they are told, and the
 * Admin client's answers about every group, five times a second, a line of JSON each.
 *
 * <p>{@code java -cp <broker jars> ModernDriver.java host:port}; commands come on stdin, a line each:
 * {@code consumer NAME GROUP TOPIC,TOPIC [instance=ID] [rebalance=MS]}, {@code streams NAME GROUP TOPIC},
 * {@code share NAME GROUP TOPIC}, {@code leave NAME}, {@code away NAME}, {@code die NAME}, {@code hold NAME MS} (keep
 * revoked partitions that long), {@code subscribe NAME TOPIC,TOPIC}, {@code delete GROUP}, {@code create TOPIC N},
 * {@code grow TOPIC N}, {@code end}.  A member's topics may be {@code regex=EXPRESSION}.
 */
public class ModernDriver {
    static final long BEAT_MS = 250;
    static String bootstrap;
    static final Map<String, Member> members = new ConcurrentHashMap<>();
    static final Map<Uuid, String> names = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Thread asker = new Thread(() -> ask(admin));
        asker.setDaemon(true);
        asker.start();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = orders.readLine()) != null && !line.equals("end"); ) {
            String[] words = line.trim().split(" ");
            try {
                obey(admin, words);
            } catch (Exception error) {
                say("{\"failed\":" + quoted(line + ": " + error) + "}");
            }
            say("{\"done\":" + quoted(line) + "}");
        }
        System.exit(0);
    }

    static void obey(Admin admin, String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String word : words) {
            if (word.contains("=")) options.put(word.split("=")[0], word.split("=")[1]);
        }
        switch (words[0]) {
            case "consumer" -> start(new Consumer(words[1], words[2], words[3], options));
            case "streams" -> start(new Streams(words[1], words[2], words[3]));
            case "share" -> start(new Share(words[1], words[2], words[3]));
            case "leave", "away", "die" -> members.remove(words[1]).stop(words[0]);
            case "hold" -> ((Consumer) members.get(words[1])).holdMs = Long.parseLong(words[2]);
            case "subscribe" -> ((Consumer) members.get(words[1])).topics = List.of(words[2].split(","));
            case "delete" -> deleteGroup(admin, words[1]);
            case "create" -> admin.createTopics(List.of(new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1))).all().get();
            case "grow" -> admin.createPartitions(Map.of(words[1], NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
            default -> throw new IllegalArgumentException("unknown");
        }
    }

    static void deleteGroup(Admin admin, String group) throws Exception {
        GroupType type = admin.listGroups().all().get().stream().filter(one -> one.groupId().equals(group)).findFirst()
            .flatMap(GroupListing::type).orElse(GroupType.CLASSIC);
        if (type == GroupType.SHARE) admin.deleteShareGroups(List.of(group)).all().get();
        else if (type == GroupType.STREAMS) admin.deleteStreamsGroups(List.of(group)).all().get();
        else admin.deleteConsumerGroups(List.of(group)).all().get();
    }

    static void start(Member member) {
        members.put(member.name, member);
        member.setDaemon(true);
        member.start();
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"";
    }

    // --- members ---------------------------------------------------------------------------------------------------

    abstract static class Member extends Thread {
        final String name;
        final String group;
        volatile String order = "";

        Member(String name, String group) {
            super(name);
            this.name = name;
            this.group = group;
        }

        void stop(String how) throws InterruptedException {
            order = how;
            join(5_000);
        }
    }

    /** A member that sends the heartbeats of its protocol itself. */
    abstract static class Raw extends Member {
        final String id = Uuid.randomUuid().toString();
        Socket socket;
        int correlation;
        int epoch;

        Raw(String name, String group) {
            super(name, group);
        }

        <T extends AbstractResponse> T send(AbstractRequest request, Class<T> type) throws IOException {
            RequestHeader header = new RequestHeader(request.apiKey(), request.version(), name, correlation++);
            ByteBuffer body = request.serializeWithHeader(header);
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            out.writeInt(body.remaining());
            out.write(body.array(), body.arrayOffset() + body.position(), body.remaining());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return type.cast(AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header));
        }

        abstract void beat() throws IOException;

        /** Say whether the coordinator is only loading, or about to. */
        boolean isPassing(short error) {
            return error >= 14 && error <= 16;
        }

        @Override
        public void run() {
            while (order.isEmpty()) {
                try {
                    live();
                } catch (IOException away) {
                    pause();  // its broker is being restarted
                } catch (Exception error) {
                    say("{\"failed\":" + quoted(name + ": " + error) + "}");
                    return;
                }
            }
        }

        void pause() {
            try {
                Thread.sleep(BEAT_MS);
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            }
        }

        void live() throws IOException {
            String[] place = bootstrap.split(",")[0].split(":");
            try (Socket one = new Socket(place[0], Integer.parseInt(place[1]))) {
                socket = one;
                while (order.isEmpty()) {
                    beat();
                    pause();
                }
                if (!order.equals("die")) {
                    epoch = order.equals("away") ? -2 : -1;
                    beat();
                }
            }
        }
    }

    static class Consumer extends Raw {
        final String instance;
        final String regex;
        final int rebalanceMs;
        volatile List<String> topics;
        volatile long holdMs;
        Map<Uuid, Set<Integer>> owned = new HashMap<>();
        volatile int round;

        Consumer(String name, String group, String topics, Map<String, String> options) {
            super(name, group);
            this.topics = List.of(topics.split(","));
            this.regex = options.get("regex");
            this.instance = options.get("instance");
            this.rebalanceMs = Integer.parseInt(options.getOrDefault("rebalance", "30000"));
        }

        @Override
        void beat() throws IOException {
            ConsumerGroupHeartbeatRequestData asked = new ConsumerGroupHeartbeatRequestData().setGroupId(group)
                .setMemberId(id).setMemberEpoch(epoch).setInstanceId(instance).setRebalanceTimeoutMs(rebalanceMs)
                .setSubscribedTopicNames(regex == null ? topics : List.of()).setSubscribedTopicRegex(regex)
                .setTopicPartitions(owned.entrySet().stream()
                    .map(one -> new ConsumerGroupHeartbeatRequestData.TopicPartitions().setTopicId(one.getKey())
                        .setPartitions(List.copyOf(one.getValue()))).toList());
            ConsumerGroupHeartbeatResponseData answer = send(
                new ConsumerGroupHeartbeatRequest.Builder(asked, true).build((short) 1), ConsumerGroupHeartbeatResponse.class).data();
            if (isPassing(answer.errorCode())) return;
            if (answer.errorCode() != 0) {
                if (epoch > 0) {
                    round++;
                    epoch = 0;
                    owned = new HashMap<>();
                }
                return;
            }
            epoch = answer.memberEpoch();
            if (answer.assignment() != null) take(answer.assignment());
        }

        /** Take what is new at once; keep what is revoked for a while. */
        void take(ConsumerGroupHeartbeatResponseData.Assignment assignment) {
            Map<Uuid, Set<Integer>> wanted = new HashMap<>();
            assignment.topicPartitions().forEach(one -> wanted.put(one.topicId(), new TreeSet<>(one.partitions())));
            boolean loses = owned.entrySet().stream()
                .anyMatch(one -> !wanted.getOrDefault(one.getKey(), Set.of()).containsAll(one.getValue()));
            if (!loses || holdMs == 0) {
                owned = wanted;
            } else {
                int now = round;
                new Thread(() -> {
                    try {
                        Thread.sleep(holdMs);
                    } catch (InterruptedException error) {
                        return;
                    }
                    if (now == round) owned = wanted;
                }).start();
            }
        }
    }

    static class Streams extends Raw {
        final StreamsGroupHeartbeatRequestData.Topology topology;
        List<StreamsGroupHeartbeatRequestData.TaskIds> owned = List.of();

        Streams(String name, String group, String topic) {
            super(name, group);
            topology = new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(List.of(
                new StreamsGroupHeartbeatRequestData.Subtopology().setSubtopologyId("0").setSourceTopics(List.of(topic))));
        }

        @Override
        void beat() throws IOException {
            boolean joins = epoch == 0;
            StreamsGroupHeartbeatRequestData asked = new StreamsGroupHeartbeatRequestData().setGroupId(group)
                .setMemberId(id).setMemberEpoch(epoch).setRebalanceTimeoutMs(joins ? 30_000 : -1)
                .setTopology(joins ? topology : null).setProcessId(joins ? name : null)
                .setClientTags(joins ? List.of() : null).setActiveTasks(owned).setStandbyTasks(List.of())
                .setWarmupTasks(List.of());
            StreamsGroupHeartbeatResponseData answer = send(
                new StreamsGroupHeartbeatRequest.Builder(asked).build((short) 0), StreamsGroupHeartbeatResponse.class).data();
            if (isPassing(answer.errorCode())) return;
            if (answer.errorCode() != 0) {
                say("{\"failed\":" + quoted(name + ": " + answer) + "}");
                if (epoch > 0) epoch = 0;
                owned = List.of();
                return;
            }
            epoch = answer.memberEpoch();
            if (answer.activeTasks() != null) {
                owned = answer.activeTasks().stream().map(one -> new StreamsGroupHeartbeatRequestData.TaskIds()
                    .setSubtopologyId(one.subtopologyId()).setPartitions(one.partitions())).toList();
            }
        }
    }

    static class Share extends Member {
        final String topic;

        Share(String name, String group, String topic) {
            super(name, group);
            this.topic = topic;
        }

        @Override
        public void run() {
            Properties settings = new Properties();
            settings.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", group, "client.id", name));
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(
                    settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topic));
                while (order.isEmpty()) consumer.poll(Duration.ofMillis(100));
            } catch (Exception error) {
                say("{\"failed\":" + quoted(name + ": " + error) + "}");
            }
        }
    }

    // --- what the brokers answer -----------------------------------------------------------------------------------

    static void ask(Admin admin) {
        while (true) {
            try {
                askOnce(admin);
            } catch (Exception error) {
                say("{\"unanswered\":" + quoted(String.valueOf(error)) + "}");
            }
            try {
                Thread.sleep(150);
            } catch (InterruptedException end) {
                return;
            }
        }
    }

    static void askOnce(Admin admin) throws Exception {
        Map<GroupType, List<String>> found = new EnumMap<>(GroupType.class);
        for (GroupListing one : admin.listGroups().all().get()) {
            one.type().ifPresent(type -> found.computeIfAbsent(type, key -> new ArrayList<>()).add(one.groupId()));
        }
        List<String> ours = new ArrayList<>(found.getOrDefault(GroupType.CONSUMER, List.of()));
        ours.addAll(found.getOrDefault(GroupType.CLASSIC, List.of()));
        long asked = System.currentTimeMillis();
        for (var one : admin.describeConsumerGroups(ours).describedGroups().entrySet()) {
            try {
                consumer(asked, one.getValue().get());
            } catch (ExecutionException gone) {
                continue;
            }
        }
        long askedShare = System.currentTimeMillis();
        for (var one : admin.describeShareGroups(found.getOrDefault(GroupType.SHARE, List.of())).describedGroups().values()) {
            ShareGroupDescription group = one.get();
            String all = group.members().stream().map(member -> member(member.consumerId(), member.clientId(), member.host(), "",
                member.memberEpoch(), partitions(member.assignment().topicPartitions()), "null", "share")).collect(Collectors.joining(","));
            poll(askedShare, group.groupId(), "share", group.groupState().toString(), group.groupEpoch(), group.targetAssignmentEpoch(), all);
        }
        long askedStreams = System.currentTimeMillis();
        for (var one : admin.describeStreamsGroups(found.getOrDefault(GroupType.STREAMS, List.of())).describedGroups().values()) {
            StreamsGroupDescription group = one.get();
            String all = group.members().stream().map(member -> member(member.memberId(), member.clientId(), member.clientHost(), "",
                member.memberEpoch(), tasks(member.assignment()), tasks(member.targetAssignment()), "streams")).collect(Collectors.joining(","));
            poll(askedStreams, group.groupId(), "streams", group.groupState().toString(), group.groupEpoch(), group.targetAssignmentEpoch(), all);
        }
    }

    static void consumer(long asked, ConsumerGroupDescription group) {
        boolean modern = group.type() == GroupType.CONSUMER;
        String all = group.members().stream().map(member -> member(member.consumerId(), member.clientId(), member.host(),
            member.groupInstanceId().orElse(""), member.memberEpoch().orElse(-1),
            partitions(member.assignment().topicPartitions()),
            member.targetAssignment().map(target -> partitions(target.topicPartitions())).orElse("null"),
            modern && !member.upgraded().orElse(true) ? "classic" : group.type().toString().toLowerCase()))
            .collect(Collectors.joining(","));
        poll(asked, group.groupId(), group.type().toString().toLowerCase(), group.groupState().toString(),
            group.groupEpoch().orElse(-1), group.targetAssignmentEpoch().orElse(-1), all);
    }

    static void poll(long asked, String group, String type, String state, int epoch, int assignmentEpoch, String members) {
        say("{\"group\":" + quoted(group) + ",\"asked_at_ms\":" + asked + ",\"answered_at_ms\":" + System.currentTimeMillis()
            + ",\"type\":" + quoted(type) + ",\"state\":" + quoted(state) + ",\"epoch\":" + epoch
            + ",\"assignment_epoch\":" + assignmentEpoch + ",\"members\":[" + members + "]}");
    }

    static String member(String id, String client, String host, String instance, int epoch, String assigned, String target, String protocol) {
        return "{\"member_id\":" + quoted(id) + ",\"client_id\":" + quoted(client) + ",\"client_host\":" + quoted(host)
            + ",\"instance_id\":" + quoted(instance) + ",\"epoch\":" + epoch + ",\"assigned\":" + assigned
            + ",\"target\":" + target + ",\"protocol\":" + quoted(protocol) + "}";
    }

    static String partitions(Collection<TopicPartition> all) {
        Map<String, Set<Integer>> found = new TreeMap<>();
        all.forEach(one -> found.computeIfAbsent(one.topic(), key -> new TreeSet<>()).add(one.partition()));
        return map(found);
    }

    static String tasks(StreamsGroupMemberAssignment assignment) {
        Map<String, Set<Integer>> found = new TreeMap<>();
        assignment.activeTasks().forEach(one -> found.put(one.subtopologyId(), new TreeSet<>(one.partitions())));
        assignment.standbyTasks().forEach(one -> found.put(one.subtopologyId() + " standby", new TreeSet<>(one.partitions())));
        return map(found);
    }

    static String map(Map<String, Set<Integer>> found) {
        return found.entrySet().stream().map(one -> quoted(one.getKey()) + ":" + one.getValue()).collect(Collectors.joining(",", "{", "}"));
    }
}
