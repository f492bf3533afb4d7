"""The class by which Hadoop writes local files without starting processes, and the jar that has it.

It is the only Java of ours: ``LocalFiles.java``.  Hadoop gives each file that it creates its mode, and starts
``chmod`` for that where its native library is missing, as it is with pyspark: eight times a batch.
"""

from pathlib import Path

LOCAL_FILES = "groupwatch.LocalFiles"
"""For ``spark.hadoop.fs.file.impl``."""
LOCAL_FILES_JAR = Path(__file__).with_name("local-files.jar")
