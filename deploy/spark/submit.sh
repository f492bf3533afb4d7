#!/usr/bin/env bash
# Runs groupwatch on a Spark cluster in client mode: the driver is this process, the executors are the cluster's.
#
#   CONFIG=groupwatch.yaml deploy/spark/submit.sh --master spark://spark-master:7077 \
#     --total-executor-cores 4 --executor-cores 2 --executor-memory 4g
#
# Every option is one of spark-submit's. Variables:
#   CONFIG           the configuration (required)
#   PYTHON           the driver's interpreter, with groupwatch installed; .venv/bin/python of this checkout
#   PYSPARK_PYTHON   the workers' interpreter, of the same minor version; python3.11 on their PATH
# README.md beside this script says what the cluster needs.
set -euo pipefail

: "${CONFIG:?set CONFIG to the path of groupwatch.yaml}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
"$python" -c 'import pyspark, streaming' || {
    echo "submit.sh: $python cannot run groupwatch: run 'make setup', or set PYTHON" >&2
    exit 2
}
GROUPWATCH_ARCHIVE=$("$python" "$root/deploy/spark/archive.py")
export GROUPWATCH_ARCHIVE
# Python is the parent and starts Spark's JVM, so that SIGTERM stops the job as everywhere, after its batch.
PYSPARK_SUBMIT_ARGS="$(printf '%q ' "$@")pyspark-shell"
export PYSPARK_SUBMIT_ARGS
exec "$python" -m streaming run --config "$CONFIG"
