"""The mirror of Kafka's group coordinator: bytes and lines in, transitions out.  Pure code."""
