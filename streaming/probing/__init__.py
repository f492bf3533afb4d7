"""Asks the brokers what they know of groups, a little at a time, and puts the answers into the stream."""
