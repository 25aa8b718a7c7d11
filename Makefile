# Each target does all the set-up it needs, in a .venv of this checkout; the second call is quick.
# A Python >= 3.11 is looked for, or given: make PYTHON=/path/to/python3.12 demo

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)
# A Python >= 3.12, for PyBatsim 4 in an environment of its own; without one its tests are skipped.
PYTHON5 ?= $(shell for p in python3.13 python3.12 python3.14 $$(pyenv root 2>/dev/null)/versions/3.1[234].*/bin/python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)
BIN := .venv/bin
CORE := hatch_build.py $(wildcard native/*.hpp native/binding/*)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help docs demo playground dist-check constraints test test-slow test-lowest test-newest lint bench fuzz kills mutants clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: .venv/core.stamp  ## simulate the sample, run a campaign, make its report
	@mkdir -p out
	$(BIN)/batsched-py run -w workloads/sample.swf --hosts 64 -s easy -e out/demo
	$(BIN)/batsched-py campaign run examples/plans/sample.toml
	$(BIN)/batsched-py campaign report out/sample --output out/sample/report.html
	@echo "Open out/sample/report.html in a browser: tables, figures and Gantt charts of these runs."

test: .venv/dev.stamp .venv5/peers.stamp  ## run all tests but the slow ones
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: .venv/dev.stamp  ## run the slow tests, and those of properties with more examples
	$(BIN)/python -m pytest -q -m slow -n 2 --dist worksteal
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -m 'hypothesis and not slow' -n 2 --dist worksteal

# Some tests only: make test-lowest TESTS=tests/api
test-lowest: .venv-lowest/dev.stamp  ## run the tests with the lowest version of all that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -q -n 2 --dist worksteal $(TESTS)

test-newest:  ## run the tests with the newest version of all that the index has, in a fresh environment
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager -e '.[dev]'
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/interop/requirements.txt
	.venv-newest/bin/python -m pytest -q -n 2 --dist worksteal $(TESTS)

lint: .venv/dev.stamp  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev.stamp  ## build the documentation site, out/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open out/site/index.html in a browser, or: $(BIN)/mkdocs serve"

playground: .venv/core.stamp  ## make a page that simulates in a browser, out/playground
	$(BIN)/python playground/build.py

bench: .venv/dev.stamp  ## measure how fast it is
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/report.py

# How long, and from which seed on: make fuzz SECONDS=3600 SEED=7
SECONDS ?= 60
SEED ?= 1
fuzz: .venv/dev.stamp  ## look for crashes: SECONDS=60 SEED=1
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

# How often, and from which seed on: make kills KILLS=500 SEED=7
KILLS ?= 100
kills: .venv/dev.stamp  ## stop commands at random moments and look for leftovers: KILLS=100 SEED=1
	$(BIN)/python -m tests.kills --kills $(KILLS) --seed $(SEED)

# In some areas only, with another seed or more of them: make mutants MUTANTS='--area models --faults 40'
mutants: .venv/dev.stamp  ## put small faults into the code and see whether the tests notice: MUTANTS='--area users'
	$(BIN)/python -m tests.mutants $(MUTANTS)

dist-check: .venv/dev.stamp  ## build wheels and sources, install them alone with each Python at hand, quick start
	$(BIN)/python .ci/dist_check.py

constraints: .venv/dev.stamp  ## say anew which files the image installs, docker/constraints.txt
	@mkdir -p out
	$(BIN)/python .ci/constraints.py > out/constraints.txt
	mv out/constraints.txt docker/constraints.txt

clean:  ## remove all that was made
	rm -rf .venv .venv5 .venv-lowest .venv-newest out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no working Python >= 3.11 with venv found; try: make PYTHON=/path/to/python3.11, or on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/core.stamp: pyproject.toml $(CORE) | $(BIN)/python
	$(PIP) -e .
	@touch $@

.venv/dev.stamp: pyproject.toml tests/interop/requirements.txt $(CORE) | $(BIN)/python
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps -r tests/interop/requirements.txt
	@touch $@ .venv/core.stamp

.venv-lowest/dev.stamp: pyproject.toml .ci/lowest.py tests/interop/requirements.txt $(CORE) | $(BIN)/python
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python .ci/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/lowest.txt -e '.[dev]'
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/interop/requirements.txt
	@touch $@

.venv5/peers.stamp: pyproject.toml tests/interop/requirements5.txt $(CORE)
	@mkdir -p .venv5
	@if test -n "$(PYTHON5)"; then \
	$(PYTHON5) -m venv .venv5 && \
	.venv5/bin/python -m pip install --quiet --disable-pip-version-check -e . -r tests/interop/requirements5.txt; fi
	@touch $@
