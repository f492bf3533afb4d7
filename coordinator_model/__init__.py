"""The mirror of Kafka's group coordinator: bytes and lines in, transitions out.

Pure: no clock, no I/O, no Spark.  The doors are ``observations`` (what can be seen), ``classic`` (what it
does to a group), ``shard`` (in which order, and what comes of it) and ``capture`` (the same, fed by hand).
"""
