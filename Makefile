# Everything a contributor runs; `make` alone lists it.
# A Python may be chosen: make setup PYTHON=/usr/bin/python3.12

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
PYTEST ?= $(BIN)/python -m pytest
# Files of tests side by side, in the order in which conftest.py puts them.
CORES ?= -n auto --dist loadfile --no-loadscope-reorder
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage test-live soak growth check faults hours bench conformance format state tables fingerprint lock chart monitoring pictures page-types own-java

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed $(VENV)/.archived ## make .venv from the locks and fetch the jars; quick and offline the second time
	@$(BIN)/python -m streaming.jars

# pyspark is published as source and built here, with the builders of our own lock.
$(VENV)/.installed: requirements.lock requirements-build.lock pyproject.toml
	@$(PYTHON) .ci/preflight.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what requirements.lock names (pyspark is 450 MB: minutes on the first run)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-build.lock \
	  && $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-build-isolation -r requirements.lock \
	  && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . \
	  || { echo "make setup: pip could not install the locked packages; above it says why (network? mirror? see pip config)." >&2; exit 1; }
	@touch $@

# Starts of Spark and of brokers are faster with them; where Java cannot make one, they are as before.
$(VENV)/.archived: $(VENV)/.installed streaming/jars/groupwatch.jar streaming/jars/jars-lock.json
	@$(BIN)/groupwatch jars --archive >/dev/null || true
	@$(BIN)/groupwatch kafka archive >/dev/null || true
	@touch $@

demo: setup ## real Kafka, real consumers that misbehave, and the job that tells on them
	$(BIN)/groupwatch demo $(ARGS)

test: setup ## what needs no cluster, and the whole path once on a real one (TESTS=tests/unit for a part)
	$(PYTEST) $(CORES) -m "path or not (kafka or spark or browser or growth)" $(TESTS) $(ARGS)

coverage: setup ## which lines of the pure packages make test plays (half an hour)
	$(BIN)/coverage run -m pytest -m "not (kafka or spark or browser or growth)" $(TESTS) $(ARGS)
	$(BIN)/coverage report --show-missing --skip-covered

test-live: setup ## the rest: on real brokers with a real Spark, and in a real browser (TESTS=tests/live/test_levels.py for a part)
	$(PYTEST) -m "(kafka or spark or browser) and not path" $(TESTS) $(ARGS)

soak: setup ## hours: groups that are odd and well, every single fault in two modes, long random schedules
	@failed=0; for play in "hours" "faults --mode full" "faults --mode requests" \
	  "conformance --mode full --seconds 1800 --kills 4" "conformance --mode quiet --seconds 1800" \
	  "conformance --mode full --seconds 900 --brokers 3 --failovers 10"; do \
	  echo "== $$play"; $(BIN)/python -m tests.live.support.$$play || failed=1; done; exit $$failed

page-types: ## check the types of the page's modules (needs npx; nobody who only runs groupwatch does)
	npx --yes --package typescript@5.9.3 tsc -p streaming/serving/page/jsconfig.json

pictures: setup ## the pictures of README and documents, of a real incident (ten minutes, alone)
	GROUPWATCH_PICTURES=1 $(PYTEST) tests/live/browser/test_pictures.py $(ARGS)

growth: setup ## lines of twice the length cost at most three times as much (minutes, alone)
	$(BIN)/python -m pytest tests/growth $(ARGS)

check: setup ## lint, format, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## put the code into its one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

state: setup ## note what saved structs have gained; refuses anything but growth
	$(BIN)/python -m tests.saved

tables: setup ## write the reference configuration and the tables of alerts and metrics from the declarations
	$(BIN)/python -m tests.tables

monitoring: setup ## write the rules for Prometheus, the mixin and the dashboards from their generator
	$(BIN)/python -m deploy.generator
	@$(MAKE) -s chart

chart: ## copy the rules and dashboards of deploy into the Helm chart
	rm -f deploy/helm/groupwatch/files/*/*
	cp deploy/grafana/*.json deploy/helm/groupwatch/files/grafana/
	cp deploy/prometheus/*-rules.yml deploy/helm/groupwatch/files/prometheus/

fingerprint: setup ## hashes of what stories, 500 worlds and captures come to (ARGS="--against FILE")
	$(BIN)/python -m tests.fingerprint $(ARGS)

faults: setup ## single faults, and what is none, each with what must be said of it (ARGS="--mode requests")
	$(BIN)/python -m tests.live.support.faults $(ARGS)

hours: setup ## groups that are odd and well, of which nothing must be said (ARGS="--minutes 180")
	$(BIN)/python -m tests.live.support.hours $(ARGS)

bench: setup ## the measurements of the README (ARGS=--help for the parts)
	$(BIN)/groupwatch bench $(ARGS)

conformance: setup ## our transitions against the broker's own answers (ARGS="--seed 7")
	$(BIN)/python -m tests.live.support.conformance $(ARGS)

own-java: setup ## compile the only Java of ours (needs a JDK 17)
	classes=$$(mktemp -d) && javac --release 17 -g:none -d $$classes \
		-cp "$$(echo $(VENV)/lib/python3*/site-packages/pyspark/jars)/*:$$($(BIN)/groupwatch jars | tr '\n' ':')" streaming/jars/*.java \
		&& jar --create --file streaming/jars/groupwatch.jar --no-manifest -C $$classes groupwatch && rm -r $$classes

lock: ## make the locks again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra mcp --group dev --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-annotate --no-emit-index-url --custom-compile-command "make lock" -o requirements.lock
	uv pip compile pyproject.toml --extra mcp --universal --python-version 3.11 --generate-hashes --constraint requirements.lock \
	  --no-annotate --no-emit-index-url --custom-compile-command "make lock" -o requirements-run.lock
	printf 'hatchling\neditables\nsetuptools\nwheel\n' | uv pip compile - --universal --python-version 3.11 \
	  --generate-hashes --upgrade --no-annotate --no-emit-index-url --custom-compile-command "make lock" -o requirements-build.lock
