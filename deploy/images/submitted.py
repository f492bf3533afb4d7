"""What spark-submit starts in the image for Spark: the command line of groupwatch.

spark-submit wants a file, and puts that file's folder first on Python's path, so the file lies apart from
our modules, some of which have the names of Python's own.
"""

from streaming.cli import main

if __name__ == "__main__":
    main()
