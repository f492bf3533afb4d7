"""The Spark edge, the processes and the commands.  Thin: decisions are made in the other packages."""
