"""The demo: real trouble in real consumer groups."""
