# The commands people type; each sets up what it needs first.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
DEMO_STAMP := $(VENV)/.demo-setup-done

.PHONY: help setup kernels demo demo-kafka demo-cluster test checked-kernels checked torture check lock bench bench-unit bench-http bench-kafka bench-e2e bench-values bench-console bench-failover bench-peers bench-paper bench-workloads bench-stages peers-setup bench-spark bench-quick bench-compare upgrade-check

help:  ## what can be made
	@sed -nE 's/^([a-z][a-z0-9-]*):.*  ## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(STAMP)  ## .venv with the pinned dependencies; does nothing when it is up to date

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One package of a bench comes as source: the tools that build it are installed first, from the same lock.
BUILD_TOOLS := sed -nE '/^(pip|setuptools)==/,/^    \# via/p' requirements-dev.lock

# What the engine and its demo need. Spark and the tools of the tests are more than that again.
$(DEMO_STAMP): requirements-demo.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing); Railgun needs Python 3.11 or newer:" \
	    "name one with 'make PYTHON=/path/to/python3.11 ...'" >&2; exit 1; }
	@echo "Setting up $(VENV), 0.7 GB: this takes a minute or two."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r requirements-demo.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "Set up: the command is $(BIN)/railgun, and 'make help' says what else there is."

$(STAMP): requirements-dev.lock $(DEMO_STAMP)
	@echo "Adding Spark and the tools of the tests to $(VENV), 0.9 GB: this takes some minutes."
	@$(PIP_INSTALL) --require-hashes -r <($(BUILD_TOOLS))
	@$(PIP_INSTALL) --require-hashes --no-build-isolation -r requirements-dev.lock
	@touch $@

kernels: $(DEMO_STAMP)  ## compile the kernels into their cache, once
	@$(BIN)/python -m railgun.kernels

demo: kernels  ## score a year of real flights over HTTP, then payments with planted fraud; check both by brute force
	@$(BIN)/python -m railgun.demo $(if $(SHOW),--show)

demo-kafka: kernels  ## the flights through topics of a local Kafka broker (Java 17)
	@$(BIN)/python -m railgun.demo --kafka

demo-cluster: kernels  ## the flights on three nodes, of which one is killed half-way (Java 17)
	@$(BIN)/python -m railgun.demo --cluster

test: setup kernels  ## every test (the long reliability runs apart)
	@$(BIN)/python -m pytest

# Where kernels are tested one by one, and as tasks call them. Images are of kernels that are not checked.
CHECKED_TESTS := $(addprefix tests/,aggregators history ingest language plan reservoir state task wire) \
  --ignore tests/reservoir/native

checked-kernels: $(DEMO_STAMP)
	@RAILGUN_CHECKED=1 $(BIN)/python -m railgun.kernels

checked: setup checked-kernels  ## the tests of the kernels again, with every access to memory checked
	@RAILGUN_CHECKED=1 $(BIN)/python -m pytest $(CHECKED_TESTS)

TORTURE = RAILGUN_TEST_COUNTS=full $(BIN)/python -m pytest -m "torture or hypothesis"

torture: setup kernels  ## the reliability counts in full, in hours; every test's outcome in build/torture.xml
	@mkdir -p build
	@code=0; \
	  $(TORTURE) --junit-xml=build/torture.xml || code=$$?; \
	  $(BIN)/python -m bench.torture_summary build/torture.xml; \
	  RAILGUN_CHECKED=1 $(TORTURE) $(CHECKED_TESTS) || code=$$?; \
	  exit $$code

check: setup  ## format, lint, types, import rules, tidiness
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --quiet -n 0 tests/tidy

PIP_COMPILE = $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

lock: setup  ## resolve the dependencies anew and pin them with their hashes
	@$(PIP_COMPILE) --upgrade --extra engine --extra demo --extra dev --extra bench --extra spark \
	  --build-deps-for editable \
	  --output-file requirements-dev.lock pyproject.toml
	@$(PIP_COMPILE) --constraint requirements-dev.lock --extra engine --extra demo --build-deps-for editable \
	  --output-file requirements-demo.lock pyproject.toml
	@$(PIP_COMPILE) --constraint requirements-dev.lock --extra engine --output-file requirements.lock pyproject.toml
	@$(PIP_COMPILE) --output-file bench/peers/requirements.lock bench/peers/requirements.in

# AGAIN=1: what bench-peers, bench-paper and bench-workloads have kept is measured, too.
RUNS ?= 3
EVENTS ?= 1000000
SCALE ?= 1
BENCH_UNIT = $(BIN)/python -m bench.unit
BENCH_HTTP = $(BIN)/python -m bench.http

bench: RUNS = 1
bench: bench-unit bench-http bench-kafka bench-e2e bench-values bench-console  ## every bench of this engine alone, once

bench-unit: setup kernels  ## how fast one task is: RUNS=3 SCALE=1
	@$(BENCH_UNIT) --runs $(RUNS) --scale $(SCALE)

bench-http: setup kernels  ## how fast the service answers over HTTP: RUNS=3 SCALE=1
	@$(BENCH_HTTP) --runs $(RUNS) --scale $(SCALE)

bench-kafka: setup kernels  ## how fast Kafka is as the log, on a local broker: RUNS=3 SCALE=1
	@$(BIN)/python -m bench.kafka --runs $(RUNS) --scale $(SCALE)
	@$(BIN)/python -m bench.unit_topic --runs $(RUNS) --scale $(SCALE)

bench-e2e: setup kernels  ## how fast everything together is on a local broker, by topics and by HTTP: RUNS=3 SCALE=1
	@$(BIN)/python -m bench.e2e --runs $(RUNS) --scale $(SCALE)

bench-values: setup kernels  ## how fast values without an event are beside events, on an engine and on a local broker: RUNS=3 SCALE=1
	@$(BIN)/python -m bench.values --runs $(RUNS) --scale $(SCALE)

bench-console: setup kernels  ## how soon a browser shows the console, and what a hundred pages cost (chromium): RUNS=3 SCALE=1
	@$(BIN)/python -m bench.console --runs $(RUNS) --scale $(SCALE)

bench-failover: setup kernels  ## how long answers are away when nodes are killed, stopped, emptied, on a local broker: RUNS=3 SCALE=1
	@$(BIN)/python -m bench.failover --runs $(RUNS) --scale $(SCALE)

PEERS_STAMP := .cache/peers/.setup-done

peers-setup: $(PEERS_STAMP)  ## the other engines of bench-peers, in a folder of their own
	@$(BIN)/python -m bench.peers.jars

$(PEERS_STAMP): bench/peers/requirements.lock $(DEMO_STAMP)
	@echo "Fetching the other engines of bench-peers, 0.5 GB: this takes some minutes."
	@rm -rf .cache/peers/packages
	@$(PIP_INSTALL) --require-hashes --no-deps --target .cache/peers/packages -r bench/peers/requirements.lock
	@touch $@

# What cannot be fetched is named as not run.
bench-peers: setup kernels  ## this engine beside others on the same events (Java 17): ONLY=flink_heap WORK=one_10 RUNS=3 SCALE=1 AGAIN=1
	@$(MAKE) --no-print-directory peers-setup || true
	@$(BIN)/python -m bench.peers --runs $(RUNS) --scale $(SCALE) $(if $(ONLY),--only $(ONLY)) $(if $(WORK),--work $(WORK)) $(if $(AGAIN),--again)

bench-paper: setup kernels  ## the experiments of papers, each 75 minutes at most (Java 17): ONLY=fig9b RUNS=3 SCALE=1 AGAIN=1
	@$(if $(filter fig8,$(or $(ONLY),fig8)),$(MAKE) --no-print-directory peers-setup || true,:)
	@$(BIN)/python -m bench.paper --runs $(RUNS) --scale $(SCALE) $(if $(ONLY),--only $(ONLY)) $(if $(AGAIN),--again)

bench-workloads: setup kernels  ## work that others have described, by our own events: ONLY=tiktok RUNS=3 SCALE=1 AGAIN=1
	@$(BIN)/python -m bench.workloads --runs $(RUNS) --scale $(SCALE) $(if $(ONLY),--only $(ONLY)) $(if $(AGAIN),--again)

bench-stages: setup kernels  ## where the time of an event goes: RUNS=3 SCALE=1 AGAIN=1
	@$(BIN)/python -m bench.stages --runs $(RUNS) --scale $(SCALE) $(if $(AGAIN),--again)

bench-quick: setup kernels  ## the unit, HTTP, Kafka and end to end at a fiftieth: do they run, roughly how fast
	@$(BENCH_UNIT) --runs 1 --scale 0.02
	@$(BENCH_HTTP) --runs 1 --scale 0.02
	@$(BIN)/python -m bench.kafka --runs 1 --scale 0.02
	@$(BIN)/python -m bench.e2e --runs 1 --scale 0.02

bench-spark: setup kernels  ## how fast Spark validates, and builds history; what live events feel of it: EVENTS=1000000 RUNS=3 SCALE=1
	@$(BIN)/python -m bench.spark --events $(EVENTS)
	@$(BIN)/python -m bench.deepening --runs $(RUNS) --scale $(SCALE)

bench-compare: setup  ## this tree and the git revision BASE in turn, and the ratios: ONLY="payments_1x3 http:os" KEEP=1
	@test -n "$(BASE)" || { echo "say with what: make bench-compare BASE=REVISION" >&2; exit 2; }
	@$(BIN)/python -m bench.compare $(BASE) --runs $(RUNS) --scale $(SCALE) $(if $(EACH),--each $(EACH)) $(if $(ONLY),--only $(ONLY)) $(if $(KEEP),--keep)

upgrade-check: setup  ## an upgrade from the git revision BASE to this tree and the step back, each reply checked (Java 17)
	@test -n "$(BASE)" || { echo "say from where: make upgrade-check BASE=REVISION" >&2; exit 2; }
	@$(BIN)/python -m bench.upgrade $(BASE)
