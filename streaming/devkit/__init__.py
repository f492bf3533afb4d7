"""Trying groupwatch out and measuring it: an embedded Kafka, the demo, the bench."""
