# A fresh machine needs Python 3.11 and a JDK 17 or 21. `make demo` and `make test` set up the rest by themselves.
SHELL := $(firstword $(wildcard /bin/bash /usr/bin/bash) bash)
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Tests start hundreds of processes: without cached bytecode, each of them compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3.11
VENV := .venv
PY := $(VENV)/bin/python
# Each worker takes whole files, in the order of tests/conftest.py.
TWO := -n 2 --dist loadfile --no-loadscope-reorder
CODE := $(wildcard lib tests jobs dags)
# Installs are quiet but for one line that moves, so that a log stays short and a person sees progress.
PROGRESS := awk '/^ *Collecting/ {printf "\r\033[K  %d %s", ++n, $$2; fflush()} \
	/^ *(Building wheel for|Installing)/ {printf "\r\033[K  %s", substr($$0, 1, 70); fflush()} END {printf "\r\033[K"}'
PIP := $(PY) -m pip install --disable-pip-version-check
COUNT := grep -c '^[a-z].*=='
COMPILE := $(VENV)/bin/uv pip compile --quiet --generate-hashes --python-version 3.11 --python-platform linux --custom-compile-command "make lock"

.PHONY: help docs install setup package env java jars test test-fast test-spark bytecode wheel databricks-wheel airflow lost-worker cluster crash year matrix check smoke smoke-bench smoke-kills smoke-airflow smoke-cluster format demo conformance oracle bench bench-execution billion lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: java package jars ## what the demo and your own project need: environment, package and the two Delta jars

setup: java env jars ## the same, then Airflow and the development tools; does nothing when all is there

java: python
	@java=$$(PYTHONPATH=lib $(PYTHON) -m rewindow.engine.spark.jars) && echo "[1/4] $$java"

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { echo "rewindow needs Python 3.11: apt-get install python3.11 python3.11-venv (or make PYTHON=/path/to/python3.11)" >&2; exit 78; }

package: python $(VENV)/.package
	@# A copied environment runs the code of the tree that it was made for.
	@made=$$(cat $(VENV)/.package); [ -L $(VENV) ] || [ -z "$$made" ] || [ "$$made" = "$(CURDIR)" ] || { echo "$(VENV) was made in $$made and runs the code there: make clean setup" >&2; exit 78; }

env: package $(VENV)/.locked

# requirements-run.lock is a part of requirements.lock, without Airflow and the development tools.
$(VENV)/.run: requirements-run.lock
	@echo "[2/4] $$($(COUNT) $<) locked packages (less than a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "rewindow needs Python's venv module: apt-get install python3.11-venv" >&2; exit 78; }
	@# setuptools first, from the lock file too: it builds PySpark, which has no wheel, and nothing unlocked is fetched.
	@awk '/^[^ #]/ {keep = /^setuptools==/} keep' $< > $(VENV)/build.txt
	@$(PIP) --require-hashes -r $(VENV)/build.txt | $(PROGRESS)
	@$(PIP) --require-hashes --use-pep517 --no-build-isolation -r $< | $(PROGRESS)
	@touch $@

$(VENV)/.package: $(VENV)/.run pyproject.toml
	@echo "[3/4] rewindow itself, editable"
	@$(PIP) --quiet --no-build-isolation --no-deps -e .
	@echo "$(CURDIR)" > $@

$(VENV)/.locked: requirements.lock $(VENV)/.run
	@echo "[dev] $$($(COUNT) $<) locked packages, with Airflow and the development tools (about a minute, once)"
	@$(PIP) --require-hashes --use-pep517 --no-build-isolation -r $< | $(PROGRESS)
	@touch $@

jars: java package
	@$(PY) -m rewindow.engine.spark.class_archive | sed 's/^/[4\/4] /'

test: setup ## all tests: first the fast ones (seven minutes), then those with Spark or processes
	@$(MAKE) test-fast test-spark

test-fast: bytecode ## the tests that need neither Spark nor processes
	$(PY) -m pytest -q -m "not spark and not slow and not airflow" $(TWO)

test-spark: setup bytecode ## the tests that need processes or many tables, then those that need Spark; two at a time, each with a session
	$(PY) -m pytest -q -m "slow and not spark and not cluster and not airflow" $(TWO)
	$(PY) -m pytest -q -m "spark and not cluster and not airflow" $(TWO)

bytecode: env
	@$(PY) -m compileall -q lib

airflow: setup ## the real Airflow at length: every DAG, a scheduler, a killed worker, a backfill, an approval (ten minutes; twice as long with PostgreSQL)
	$(PY) -m pytest -q -m airflow $(TWO) -o faulthandler_timeout=1800 tests/airflow

lost-worker: setup ## a replay of half an hour whose worker is lost after twenty minutes; writes tests/airflow/RESULTS.md (80 minutes, mostly waiting)
	$(PY) -m tests.airflow.lost_worker

docs: env ## the site from docs/, into build/site: a warning or a dead link is an error
	@# Not --quiet: it hides the warnings from --strict too.
	@$(PY) -m mkdocs build --strict && echo "open $(CURDIR)/build/site/index.html"

wheel: env ## build the wheel into dist/, for a cluster or Databricks
	@rm -f dist/rewindow-*.whl
	@$(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist . && ls dist/rewindow-*.whl

databricks-wheel: wheel ## the wheel without Spark, Delta, pandas and Arrow, which Databricks has
	@$(PY) -m rewindow.databricks.slim dist/rewindow-*.whl

cluster: setup ## jobs on a Spark cluster and behind Spark Connect on this machine, both ways to commit: the same tables
	$(PY) -m pytest -q $(TWO) tests/cluster tests/connect tests/protocol tests/object_store tests/crash/test_crash.py::test_a_client_of_spark_connect_dies_too tests/api/test_spark.py tests/engine/test_shuffle_reader.py tests/bad_input/test_workers.py tests/bad_input/test_verify.py

crash: setup ## kill everything everywhere: nothing lost, nothing doubled (hours; stopped, it goes on where it was)
	$(PY) -m tests.crash $(CRASH)

year: setup ## a year of hourly landings and runs in fast motion; writes tests/year/RESULTS.md (hours; stopped, it goes on where it was)
	$(PY) -m tests.year $(YEAR)

matrix: env ## the oldest and the newest supported versions, each in its own environment; writes the table in README.md (an hour)
	$(PY) -m tests.matrix $(ROWS)

check: env ## formatting, lint, types, and the pages of measurements with their age; `make test-fast` checks the layers
	$(VENV)/bin/ruff format --check --output-format concise $(CODE)
	$(VENV)/bin/ruff check --output-format concise $(CODE)
	$(VENV)/bin/mypy
	@$(PY) -m tests.measured

# .ci/run runs them, so that no long command breaks unnoticed.
smoke: setup ## short forms of the long commands: every benchmark, kills, Airflow's DAGs, a cluster (minutes)
	@# Two at a time: a cluster and the kills mostly wait for processes to start.
	@$(MAKE) --jobs 2 --output-sync=line smoke-bench smoke-kills smoke-airflow smoke-cluster

smoke-bench: setup ## the smallest size of each benchmark; writes nothing
	$(PY) -m tests.bench.small $(NAMES)

smoke-kills: setup ## twenty kills of commands at random moments; writes nothing
	@rm -rf build/kills
	$(PY) -m tests.crash --quick --json --suites random-kills --kills 20 --results build/kills

smoke-airflow: setup ## Airflow parses every DAG
	$(PY) -m pytest -q tests/airflow/test_dags.py::test_the_demos_dags_are_valid_and_parsing_them_does_not_import_spark

smoke-cluster: setup ## one job on a standalone Spark cluster
	$(PY) -m pytest -q 'tests/cluster/test_cluster.py::test_the_cluster_writes_the_same_tables[hourly_departures]'

format: env ## rewrite the code as `make check` wants it
	$(VENV)/bin/ruff format $(CODE)
	$(VENV)/bin/ruff check --fix $(CODE)

demo: install ## replay the New York flights of 2013, by month in one process and at once on Spark; fix a bug on a branch
	@$(PY) -m jobs.demo

oracle: setup ## new scenarios on the real Kafka Streams and on rewindow (needs Maven): make oracle SEED=7 COUNT=500 [FORM=cogroup]
	@$(PY) -m tests.conformance.oracle --seed $(or $(SEED),1) --count $(or $(COUNT),200) $(if $(FORM),--form $(FORM))

conformance: env ## play recorded Kafka Streams scenarios: make conformance FILES="a.jsonl b.jsonl" MODE=whole|cut|spark
	@$(PY) -m tests.conformance --mode $(or $(MODE),whole) $(FILES)

BENCHES := finals finals-hopping finals-session functions processor processor-batch incremental join join-streams scale overhead limits

bench: setup ## measure rewindow next to its yardsticks, and write tests/bench/RESULTS.md: make bench NAMES=finals ROWS=10000000
	@for name in $(or $(NAMES),$(BENCHES)); do $(PY) -m tests.bench $$name $(if $(ROWS),--rows $(ROWS)); done

bench-execution: setup ## records per CPU-second of record execution, next to a plain loop
	@$(PY) -m tests.bench.record_execution

billion: setup ## a billion records: generate, land, replay, check (an hour, 25 GB of disk; stopped, it goes on where it was): make billion [ROWS=50000000] [FOLDER=/disk]
	@$(PY) -m tests.bench billion $(if $(ROWS),--rows $(ROWS)) $(if $(FOLDER),--folder $(FOLDER))

lock: env ## resolve the dependencies of pyproject.toml anew into the two lock files
	$(COMPILE) --upgrade --extra dev --extra demo --extra airflow --extra connect --extra databricks --extra openlineage --extra opentelemetry \
		-o requirements.lock pyproject.toml
	$(COMPILE) --extra demo -c requirements.lock --no-annotate -o requirements-run.lock pyproject.toml

clean: ## remove the environment and all that tools left; tables and the jar cache stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
