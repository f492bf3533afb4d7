#!/usr/bin/env bash
# Runs groupwatch's Spark job on a standalone cluster or on Kubernetes instead of inside one process.
#
#   MASTER=spark://spark-master:7077          CONFIG=/etc/groupwatch/groupwatch.yaml ./submit.sh
#   MASTER=k8s://https://kube-api:6443 IMAGE=registry.example/groupwatch:0.1.0 CONFIG=… ./submit.sh
#
# What it needs:
# - the checkpoint in the configuration on storage that every executor reaches (HDFS, S3A, NFS): `file:` on one host is not;
# - executors with Python 3.11 and the packages of requirements.lock: on Kubernetes the image of
#   deploy/compose/Dockerfile has them, on standalone clusters pass VENV_ARCHIVE (made by venv-pack);
# - one driver at a time: the driver owns the clock, the notifier and the HTTP server.
set -euo pipefail

: "${MASTER:?set MASTER to spark://host:port or k8s://https://host:port}"
: "${CONFIG:?set CONFIG to the path of groupwatch.yaml, as the driver sees it}"
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
submit=${SPARK_SUBMIT:-$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit")')}

wheel=$(ls "$root"/dist/groupwatch-*.whl 2>/dev/null | tail -n 1 || true)
if [ -z "$wheel" ]; then
    echo "No wheel in dist/: build it with '$python -m pip wheel --no-deps -w dist .'" >&2
    exit 2
fi
jars=$("$python" -c 'from streaming.jars.jars import ensure_jars; print(",".join(str(j) for j in ensure_jars("connector")))')

options=(--master "$MASTER" --name groupwatch --py-files "$wheel" --jars "$jars"
    --conf spark.executor.instances="${EXECUTORS:-2}"
    --conf spark.executor.cores="${EXECUTOR_CORES:-2}"
    --conf spark.executor.memory="${EXECUTOR_MEMORY:-4g}")
case $MASTER in
k8s://*)
    : "${IMAGE:?set IMAGE to an image that holds Spark 4.2.0, Python 3.11 and the locked packages}"
    options+=(--deploy-mode "${DEPLOY_MODE:-cluster}"
        --conf spark.kubernetes.container.image="$IMAGE"
        --conf spark.kubernetes.namespace="${NAMESPACE:-groupwatch}"
        --conf spark.kubernetes.authenticate.driver.serviceAccountName="${SERVICE_ACCOUNT:-groupwatch}")
    ;;
*)
    options+=(--deploy-mode client)
    if [ -n "${VENV_ARCHIVE:-}" ]; then
        options+=(--archives "$VENV_ARCHIVE#environment" --conf spark.pyspark.python=./environment/bin/python)
    fi
    ;;
esac

exec "$submit" "${options[@]}" "$root/streaming/__main__.py" run --config "$CONFIG"
