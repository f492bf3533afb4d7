package groupwatch;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.unsafe.Platform;

/**
 * Cuts the lines of the request log at the words between their parts, and numbers the parts: few
 * of a million lines have a new one, and to compare bytes is quick here and slow in Python.  What a part means, and whether it is of
 * its shape at all, Python reads once from the first line that has its number.
 */
final class Cutting {

    /**
     * How many numbers (int32) are told of a line.  The first five are two each (16 bits), the lower first:
     * in how many JSON strings its message stands, or -1 if nothing is told; and where, behind the beginning of
     * the row, the message begins and ends, its head ends, who asked, times and origin begin, and of commits what
     * was asked, what was answered and the connection, or 65,535.  Those that follow are the numbers of its parts, -1
     * for none.  The last says whose numbers these are: others have other texts.
     */
    static final int NUMBERS = 15;
    /** What is told of a line that is not cut. */
    static final int[] NOTHING = new int[NUMBERS];

    static {
        Arrays.fill(NOTHING, -1);
    }

    private static final int PLACES = 10;
    private static final int DEPTH = 0;
    private static final int BEGIN = 1;
    private static final int END = 2;
    private static final int HEAD_END = 3;
    private static final int WHO = 4;
    private static final int TIMES = 5;
    private static final int ORIGIN = 6;
    private static final int ASKED = 7;
    private static final int ANSWERED = 8;
    private static final int CONNECTION = 9;

    private static final int PARTS = PLACES / 2;
    private static final int KINDS = NUMBERS - PARTS - 1;
    /** Of a commit alone: offsets, answers, connection. */
    private static final int COMMITS_PARTS = 4;
    /** What stands before a message and behind it; of these so many at most: more of them do not come back. */
    private static final int AROUND_PARTS = 7;
    private static final int AROUND_MAX = 4_000;
    private static final int AROUND_SIZE_MAX = 4_096;

    private static final int LINE_MAX = 0xfffe;
    private static final int HEAD_MAX = 256;
    private static final int DIGITS_MAX = 10;
    /** Of texts; 25,000 members that heartbeat and commit are 17 MB. With many tasks a part of the heap for all. */
    private static final long BYTES_MAX = Math.min(
            32 << 20, Runtime.getRuntime().maxMemory() / 16 / Runtime.getRuntime().availableProcessors());
    /** So many blocks pass at least before what stands around messages is forgotten because it is too much. */
    private static final int BLOCKS_MIN = 100;
    /** How many words there are at each depth. */
    private static final int WORDS = 10;
    /** What stands before the quote behind the first word, by depth. */
    private static final int[] ESCAPES = {0, 1, 3};

    private static final byte UNKNOWN = 0;
    private static final byte OTHER = 1;
    private static final byte COMMIT = 2;
    private static final byte BEAT = 3;

    private static final AtomicInteger NAMES = new AtomicInteger(ThreadLocalRandom.current().nextInt());
    /** Those that no task uses: the same clients come back in the next batch. */
    private static final Deque<Cutting> RESTING = new ConcurrentLinkedDeque<>();

    private final String words;
    private final Words[] depths;
    private final Texts[] texts = new Texts[KINDS];
    private final short[] places = new short[PLACES];
    private final int[] told = new int[NUMBERS];
    /** Of each head, by its number. */
    private byte[] apis = new byte[16];
    /** Since the texts were named. */
    private int blocks;
    private byte[] bytes;
    private int start;
    private int stop;

    private Cutting(String words) {
        this.words = words;
        String[] lines = words.split("\n");
        depths = new Words[lines.length / WORDS];
        for (int i = 0; i < depths.length; i++) {
            depths[i] = new Words(Arrays.copyOfRange(lines, i * WORDS, (i + 1) * WORDS));
        }
        for (int i = 0; i < KINDS; i++) {
            boolean isAround = i >= AROUND_PARTS;
            // Of times, of offsets, and of what stands around a message, every digit counts as 0.
            texts[i] = new Texts(i == 2 || i == COMMITS_PARTS || isAround, isAround ? AROUND_MAX : Integer.MAX_VALUE);
        }
        name();
    }

    /**
     * Returns one for a task.
     *
     * @param words of each depth, a line each: what a message begins with, what stands before who asked, before
     *     the times, before the origin, before each of the topics, before the connection, at its end, and in
     *     the head of a commit, of a heartbeat, and of a consumer group's heartbeat alone
     */
    static Cutting taken(String words) {
        Cutting resting = RESTING.poll();
        return resting != null && resting.words.equals(words) ? resting : new Cutting(words);
    }

    /** Lets another task have it. */
    void rest() {
        bytes = null;
        RESTING.push(this); // whoever rested last has the newest texts
    }

    /** Begins a block: only between two may texts be forgotten, which it does if they are too many. */
    void begin() {
        long size = 0;
        boolean isFull = false;
        for (Texts one : texts) {
            size += one.size();
            isFull |= one.isFull();
        }
        blocks++;
        if (size > BYTES_MAX || isFull && blocks > BLOCKS_MIN) {
            for (Texts one : texts) {
                one.clear();
            }
            Arrays.fill(apis, UNKNOWN);
            name();
        }
    }

    private void name() {
        blocks = 0;
        told[NUMBERS - 1] = NAMES.incrementAndGet();
    }

    /** Returns what is told of the line from {@code start} to before {@code stop}, until the next call. */
    int[] cut(byte[] bytes, int start, int stop) {
        this.bytes = bytes;
        this.start = start;
        this.stop = stop;
        if (stop - start > LINE_MAX || !isCut()) {
            return NOTHING;
        }
        for (int i = 0; i < PARTS; i++) {
            told[i] = places[2 * i] & 0xffff | places[2 * i + 1] << 16;
        }
        return told;
    }

    private boolean isCut() {
        Word first = depths[0].begin;
        int begin = first.find(bytes, start, start, stop);
        int depth = begin < 0 ? -1 : depth(begin + first.size());
        if (depth < 0) {
            return false;
        }
        Words words = depths[depth];
        int end = words.end.findLast(bytes, stop, begin, stop);
        int who = words.who.find(bytes, begin, begin, end);
        int origin = words.origin.find(bytes, end, who, end);
        int times = words.times.find(bytes, origin, who, origin);
        if (times < 0) {
            return false; // as if any of the others was not found
        }
        int headEnd = who;
        while (headEnd > begin && who - headEnd < DIGITS_MAX && isDigit(bytes[headEnd - 1])) {
            headEnd--;
        }
        if (headEnd == who || who - begin >= HEAD_MAX) {
            return false;
        }
        int head = texts[0].number(bytes, begin, headEnd - begin);
        if (head == apis.length) {
            apis = Arrays.copyOf(apis, 2 * head);
        }
        if (apis[head] == UNKNOWN) {
            apis[head] = words.api(bytes, begin, headEnd);
        }
        if (apis[head] == OTHER) {
            return false; // its parts would not come back
        }
        end += words.end.size();
        told[PARTS] = head;
        places[DEPTH] = (short) depth;
        tell(BEGIN, begin);
        tell(END, end);
        tell(HEAD_END, headEnd);
        tell(WHO, who);
        tell(TIMES, times);
        tell(ORIGIN, origin);
        part(2, times, origin);
        part(3, origin, end);
        around(AROUND_PARTS, start, begin + 1); // no text may be empty, so both have a byte of the message
        around(AROUND_PARTS + 1, end - 1, stop);
        if (apis[head] == COMMIT) {
            return isCommitCut(words, who, times);
        }
        part(1, who, times);
        Arrays.fill(places, ASKED, PLACES, (short) -1);
        Arrays.fill(told, PARTS + COMMITS_PARTS, PARTS + AROUND_PARTS, -1);
        return true;
    }

    private boolean isCommitCut(Words words, int who, int times) {
        int connection = words.connection.find(bytes, times, who, times);
        int asked = words.asked.find(bytes, who, who, connection);
        int answered = answered(words, asked, connection);
        if (asked >= 0 && answered < 0) { // it stood where the second stands here
            asked = words.asked.first(bytes, who, who, connection);
            answered = answered(words, asked, connection);
        }
        if (answered < 0) {
            return false;
        }
        asked += words.asked.size();
        answered += words.answered.size();
        tell(ASKED, asked);
        tell(ANSWERED, answered);
        tell(CONNECTION, connection);
        part(1, who, asked);
        part(COMMITS_PARTS, asked, answered);
        part(COMMITS_PARTS + 1, answered, connection);
        part(COMMITS_PARTS + 2, connection, times);
        return true;
    }

    private int answered(Words words, int asked, int connection) {
        return words.answered.find(bytes, connection, asked < 0 ? asked : asked + 1, connection);
    }

    /** Returns in how many JSON strings the quote at a place stands; -1: it is none, or in more than two. */
    private int depth(int place) {
        int escapes = 0;
        while (place + escapes < stop && bytes[place + escapes] == '\\') {
            escapes++;
        }
        if (place + escapes >= stop || bytes[place + escapes] != '"') {
            return -1;
        }
        int depth = Arrays.binarySearch(ESCAPES, escapes);
        return depth < depths.length ? depth : -1;
    }

    private void tell(int number, int place) {
        places[number] = (short) (place - start);
    }

    private void part(int kind, int from, int until) {
        told[PARTS + kind] = texts[kind].number(bytes, from, until - from);
    }

    private void around(int kind, int from, int until) {
        if (until - from > AROUND_SIZE_MAX) {
            told[PARTS + kind] = -1;
        } else {
            part(kind, from, until);
        }
    }

    private static boolean isDigit(byte one) {
        return one >= '0' && one <= '9';
    }

    private static long word(byte[] bytes, int place) {
        return Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + place);
    }

    /** The words at one depth. */
    private static final class Words {
        final Word begin;
        final Word who;
        final Word times;
        final Word origin;
        final Word asked;
        final Word answered;
        final Word connection;
        final Word end;
        final Word commit;
        final Word[] heartbeats;

        Words(String[] words) {
            begin = new Word(words[0]);
            who = new Word(words[1]);
            times = new Word(words[2]);
            origin = new Word(words[3]);
            asked = new Word(words[4]);
            answered = new Word(words[4]);
            connection = new Word(words[5]);
            end = new Word(words[6]);
            commit = new Word(words[7]);
            heartbeats = new Word[] {new Word(words[8]), new Word(words[9])};
        }

        /** Returns what the head from {@code begin} to before {@code end} is one of. */
        byte api(byte[] bytes, int begin, int end) {
            if (commit.find(bytes, begin, begin, end) >= 0) {
                return COMMIT;
            }
            for (Word one : heartbeats) {
                if (one.find(bytes, begin, begin, end) >= 0) {
                    return BEAT;
                }
            }
            return OTHER;
        }
    }

    /** A word, with how far it lately stood from a place nearby. */
    private static final class Word {
        private static final int DISTANCES = 8;

        private final byte[] text;
        private final int[] distances = new int[DISTANCES];
        private int known;

        Word(String text) {
            this.text = text.getBytes(StandardCharsets.ISO_8859_1);
        }

        int size() {
            return text.length;
        }

        /** Returns where the word stands from {@code from} to before {@code until}, -1 if nowhere there. */
        int find(byte[] bytes, int near, int from, int until) {
            if (from < 0) {
                return -1; // what it stands behind was not found
            }
            int place = again(bytes, near, from, until);
            return place < 0 ? first(bytes, near, from, until) : place;
        }

        /** Returns where it stands first, wherever it stood lately. */
        int first(byte[] bytes, int near, int from, int until) {
            for (int i = from; i <= until - text.length; i++) {
                if (stands(bytes, i)) {
                    return found(i, near);
                }
            }
            return -1;
        }

        /** Returns where it stands; if not where it mostly does, then where it stands last. */
        int findLast(byte[] bytes, int near, int from, int until) {
            int place = again(bytes, near, from, until);
            for (int i = until - text.length; place < 0 && i >= from; i--) {
                if (stands(bytes, i)) {
                    place = found(i, near);
                }
            }
            return place;
        }

        private int again(byte[] bytes, int near, int from, int until) {
            for (int i = 0; i < known; i++) {
                int place = near + distances[i];
                if (place >= from && place <= until - text.length && stands(bytes, place)) {
                    return toFront(i, place);
                }
            }
            return -1;
        }

        private int found(int place, int near) {
            for (int i = 0; i < known; i++) {
                if (distances[i] == place - near) {
                    return toFront(i, place);
                }
            }
            known = Math.min(known + 1, DISTANCES);
            distances[known - 1] = place - near;
            return toFront(known - 1, place);
        }

        private int toFront(int index, int place) {
            int distance = distances[index];
            System.arraycopy(distances, 0, distances, 1, index);
            distances[0] = distance;
            return place;
        }

        private boolean stands(byte[] bytes, int place) {
            if (bytes[place] != text[0]) {
                return false;
            }
            for (int i = text.length - 1; i > 0; i--) {
                if (bytes[place + i] != text[i]) {
                    return false;
                }
            }
            return true;
        }
    }

    /** Parts of one kind, numbered as they come. */
    private static final class Texts {
        private static final int TEXTS_MIN = 32;
        /** Half of the slots are free, so more of them in a row are no chance: somebody chose the texts. */
        private static final int PROBES_MAX = 200;
        private static final long DIGITS = 0x3030303030303030L;
        private static final long ENDS = 0x8080808080808080L;
        /** Of hashes; odd. */
        private static final long FACTOR = ThreadLocalRandom.current().nextLong() | 1;

        private final boolean digitsAlike;
        private final int most;
        /** All of them, one behind the other. */
        private byte[] texts;
        /** Where each ends. */
        private int[] ends;
        private int[] hashes;
        /** Numbers, counted from 1, by the hash; 0 for none. */
        private int[] slots;
        private int count;
        private int last;

        Texts(boolean digitsAlike, int most) {
            this.digitsAlike = digitsAlike;
            this.most = most;
            clear();
        }

        void clear() {
            texts = new byte[1 << 10];
            ends = new int[TEXTS_MIN + 1];
            hashes = new int[TEXTS_MIN];
            slots = new int[2 * TEXTS_MIN];
            count = 0;
        }

        boolean isFull() {
            return count == most;
        }

        /** Returns the bytes of all texts, and of what is kept of each beside it. */
        long size() {
            return ends[count] + 16L * count;
        }

        /** Returns the number of a text, the same for an equal one; -1 for a new one that finds no room. */
        int number(byte[] bytes, int place, int size) {
            if (count > 0 && isSame(last, bytes, place, size)) {
                return last;
            }
            int hash = hash(bytes, place, size);
            int slot = hash & (slots.length - 1);
            int probes = 0;
            while (slots[slot] != 0 && probes++ < PROBES_MAX) {
                int number = slots[slot] - 1;
                if (hashes[number] == hash && isSame(number, bytes, place, size)) {
                    last = number;
                    return number;
                }
                slot = (slot + 1) & (slots.length - 1);
            }
            if (count == most || slots[slot] != 0) {
                return -1;
            }
            last = count;
            hashes[count] = hash;
            slots[slot] = ++count;
            keep(bytes, place, size);
            if (count == hashes.length) {
                grow();
            }
            return last;
        }

        private void keep(byte[] bytes, int place, int size) {
            int end = ends[last];
            if (size > texts.length - end) {
                texts = Arrays.copyOf(texts, Math.max(end + size, 2 * texts.length));
            }
            System.arraycopy(bytes, place, texts, end, size);
            ends[count] = end + size;
        }

        private void grow() {
            slots = new int[2 * slots.length];
            hashes = Arrays.copyOf(hashes, 2 * count);
            ends = Arrays.copyOf(ends, 2 * count + 1);
            for (int number = 0; number < count; number++) {
                int slot = hashes[number] & (slots.length - 1);
                while (slots[slot] != 0) {
                    slot = (slot + 1) & (slots.length - 1);
                }
                slots[slot] = number + 1;
            }
        }

        private boolean isSame(int number, byte[] bytes, int place, int size) {
            int other = ends[number];
            if (ends[number + 1] - other != size) {
                return false;
            }
            int i = 0;
            for (; i <= size - Long.BYTES; i += Long.BYTES) {
                if (differ(word(bytes, place + i), word(texts, other + i))) {
                    return false;
                }
            }
            for (; i < size; i++) {
                if (plain(bytes[place + i]) != plain(texts[other + i])) {
                    return false;
                }
            }
            return true;
        }

        private boolean differ(long one, long other) {
            return one != other && (!digitsAlike || plain(one) != plain(other));
        }

        private int hash(byte[] bytes, int place, int size) {
            long hash = size;
            int i = 0;
            for (; i <= size - Long.BYTES; i += Long.BYTES) {
                long word = word(bytes, place + i);
                hash = (hash ^ (digitsAlike ? plain(word) : word)) * FACTOR;
                hash ^= hash >>> 32;
            }
            for (; i < size; i++) {
                hash = (hash ^ plain(bytes[place + i])) * FACTOR;
                hash ^= hash >>> 32;
            }
            return (int) hash;
        }

        private byte plain(byte one) {
            return digitsAlike && isDigit(one) ? (byte) '0' : one;
        }

        /** Returns eight bytes of which each digit is a 0. */
        private static long plain(long word) {
            long above = word ^ DIGITS; // 0 to 9 of digits, more of all others
            long others = ((above & ~ENDS) + 0x7676767676767676L) | above; // their highest bits
            long digits = ((~others & ENDS) >>> 7) * 0xff;
            return (word & ~digits) | (DIGITS & digits);
        }
    }
}
