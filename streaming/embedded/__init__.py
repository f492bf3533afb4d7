"""A real Kafka on this machine: its jars, its brokers, misbehaving clients and the demo."""
