"""The only Java of ours, and the jar that has it: what neither Hadoop nor Spark can be told by a setting.

``LocalFiles.java``: Hadoop gives each local file that it creates its mode, and starts ``chmod`` for that
where its native library is missing, as it is with pyspark: eight times a batch.

``EvenKafka.java``: Spark's Kafka source tells the partitions of a batch by their hash, and ``coalesce`` cuts
that row into parts of equally many: of two tasks one got all lines, and took 2.8 s beside the other's 1.0.

``PackedSource.java``, ``Packing.java``: Spark makes a row of each record and copies it three times before
Python gets it; a block of records as one row took a quarter of the JVM's CPU from a million lines.

``Cutting.java``: to find the parts of request-log lines, and to know them again, took numpy three fifths of
what workers did with a million lines; Java compares parts by eight bytes at a time where they lie anyway.

``PlainBytes.java``: Spark pickles a saved row's bytes for Python as text of one character each, and that was
a sixth of the JVM's CPU with 10,000 busy groups, whose shards are 5 MB.
"""

from pathlib import Path

LOCAL_FILES = "groupwatch.LocalFiles"
"""For ``spark.hadoop.fs.file.impl``."""
EVEN_KAFKA = "groupwatch.EvenKafka"
"""A format of Spark's readers: ``kafka`` with options more, those that follow."""
EVEN_TASKS = "groupwatch.tasks"
"""How many tasks share what a batch reads."""
PACKED_FEEDS = "groupwatch.feeds"
"""Packs records into blocks (in the column ``value``), and gives each topic's number: ``one=0,another=1``."""
CUT_FEED = "groupwatch.lines"
"""Has the lines of one feed cut at words, and gives its number."""
CUT_WORDS = "groupwatch.words"
"""Gives the words (``streaming.decoders.cut_words``)."""
PLAIN_BYTES = "groupwatch.PlainBytes"
"""A pickler for the JVM of a session to register."""
OWN_JAR = Path(__file__).with_name("groupwatch.jar")
