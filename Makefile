# Two commands are all that a fresh machine with Python 3.11 to 3.13 needs: `make demo` and `make test`.
# All work in a virtual environment of their own (.venv), made once and again when the dependencies change.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

FITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)

PY := .venv/bin/python
WORKERS ?= auto
READY := .venv/ready
ENGINE := .venv/ready-engine
DEMO := perfkit-demo

.PHONY: help demo trace test lint docs bench

help:
	@echo "make demo   try perfkit: the walk through all layers of the bundled engine (5 to 8 minutes), and its report"
	@echo "make trace  the same in a second: a small trace of a slow decode loop, and what Layer 1 says of it"
	@echo "make test   lint, types and tests"
	@echo "make lint   lint and types alone"
	@echo "make docs   write the generated pages in docs/"
	@echo "make bench  time perfkit on this machine"

demo: $(ENGINE)
	.venv/bin/perfkit investigate --yes --zero-when-done --investigation $(DEMO)/walk

trace: $(READY)
	@mkdir -p $(DEMO)
	$(PY) -m tests.writers.decode_loop $(DEMO)/decode_loop.json.gz
	.venv/bin/perfkit layer1 --trace $(DEMO)/decode_loop.json.gz --investigation $(DEMO)/investigation

test: lint $(ENGINE)
	$(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal

lint: $(READY)
	$(PY) -m ruff check
	$(PY) -m mypy

docs: $(READY)
	$(PY) -m perfkit.cli.reference
	$(PY) -m reports.guard_catalogue
	$(PY) -m reports.symptom_catalogue

bench: $(READY)
	$(PY) -m benchmarks.trace_read
	$(PY) -m benchmarks.load_client
	$(PY) -m benchmarks.ab_errors

$(READY): pyproject.toml constraints.txt | .venv/bin/pip
	@echo "installing perfkit into .venv (the first time takes a minute or two)"
	$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(ENGINE): $(READY)
	@echo "installing what the bundled engine needs"
	@$(PY) -m sample_engine.install_torch constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,engine]'
	@touch $@

.venv/bin/pip:
	@test -n "$(PYTHON)" || { echo "perfkit needs Python 3.11 to 3.13; name one: make PYTHON=/path/to/python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
