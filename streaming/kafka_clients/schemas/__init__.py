"""Kafka's own schemas (4.3.1, without their prose) of requests that kafka-python does not have."""
