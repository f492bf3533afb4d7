package groupwatch;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files with their checksums, whose modes Java itself sets: without its native library Hadoop
 * starts a process for each.  Compiled into local-files.jar by "make local-files".
 */
public final class LocalFiles extends LocalFileSystem {

    public LocalFiles() {
        super(new Raw());
    }

    private static final class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission mode) throws IOException {
            if (mode.getStickyBit()) {
                super.setPermission(path, mode); // Java knows no such bit
                return;
            }
            java.nio.file.Path file = pathToFile(path).toPath();
            // As chmod does, leave a directory the bits by which its files get its owner and group.
            int left = Files.isDirectory(file) ? (Integer) Files.getAttribute(file, "unix:mode") & 06000 : 0;
            Files.setAttribute(file, "unix:mode", left | mode.toShort() & 0777);
        }
    }
}
