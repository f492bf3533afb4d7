"""The Spark edge, the processes and the commands.  Thin: every decision is made elsewhere."""
