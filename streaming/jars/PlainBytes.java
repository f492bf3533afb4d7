package groupwatch;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import net.razorvine.pickle.IObjectPickler;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.execution.python.EvaluatePython;

/**
 * Pickles binary columns for Python as bytes.  Spark's own pickler writes them as text of one character each,
 * in UTF-8, out of which Python makes a string, an array and bytes again.
 */
public final class PlainBytes implements IObjectPickler {

    /** The opcode of protocol 3: four bytes of length, little-endian, and the bytes. */
    private static final int BINBYTES = 'B';

    /** Takes the place of Spark's pickler in this JVM. */
    public static void register() {
        EvaluatePython.registerPicklers(); // once for all: it would replace ours later
        Pickler.registerCustomPickler(EvaluatePython.BytesWrapper.class, new PlainBytes());
    }

    @Override
    public void pickle(Object wrapper, OutputStream out, Pickler pickler) throws IOException {
        byte[] data = ((EvaluatePython.BytesWrapper) wrapper).data();
        out.write(BINBYTES);
        out.write(ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(data.length).array());
        out.write(data);
    }
}
