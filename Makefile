# `make demo` and `make test` need git, make and python3; they set up the rest themselves.

PYTHON3 ?= python3
BIN     := .venv/bin
# Not the scripts of $(BIN): they name their interpreter by its path, in which a space may be.
PYTHON  := $(BIN)/python
TREBUCHET := $(PYTHON) -m trebuchet.host.cli
# What passed with the same inputs is not run again (tests/reuse.py). Files in the order of
# tests/conftest.py, not by their numbers of tests. A worker that dies ends the run: pytest-xdist 3.8
# may wait for ever for the one in its place (its issue 1378).
PYTEST  := $(PYTHON) -m pytest -q --reuse
# Twice as many workers as cores: simulated boards often wait for time to pass.
PARALLEL := -n $(shell expr 2 \* $$(nproc)) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
TYPED   := client host models bench sim

# Tests start hundreds of Python processes, each of which would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test check nightly fuzz lint format types fast prove boards bench release lock docs clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

venv: ## set up only: .venv with all locked Python packages, Debian packages
	@$(PYTHON3) tools/bootstrap.py

demo: ## classify a real ECG on the simulated board; sets up only what that needs
	@$(PYTHON3) tools/bootstrap.py simulation
	@$(TREBUCHET) demo $(ARGS)

test: lint types ## everything that a change can break (20 minutes; later only what it touches)
	$(PYTEST) $(PARALLEL) -m "not nightly"

check: lint types ## the quick part, for the edit loop (under 3 minutes)
	$(PYTEST) $(PARALLEL) -m "not slow and not nightly"

nightly: venv ## what is noisy or takes hours; resumable; ARGS="board_versa_ecp5 prove:tcp tests"
	@$(TREBUCHET) nightly $(ARGS)

fuzz: venv ## the parsers: 10 million inputs each, or ARGS="TARGET --inputs N --seed N"
	PYTHONPATH=tests $(PYTHON) tests/firmware_fuzz.py $(ARGS)

lint: venv ## ruff: rules and format
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: venv ## mypy on the pure-Python parts
	@# mypy finds packages by folder, and the checkout need not be called trebuchet.
	@mkdir -p build/types && ln -sfn ../.. build/types/trebuchet
	MYPYPATH=build/types $(PYTHON) -m mypy $(TYPED:%=-p trebuchet.%)

format: venv ## let ruff rewrite what it can
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

prove: venv ## all proofs and their mutants; updates ledger and page
	$(TREBUCHET) prove --all
	$(TREBUCHET) prove --all --mutants

boards: venv ## build every real board with three seeds; updates the ledger
	@$(TREBUCHET) nightly board_

bench: venv ## measure what is new or changed; updates the ledger
	$(TREBUCHET) bench --record

release: venv ## collect what is built for boards, with checksums; ARGS="BOARD..." for some
	@$(TREBUCHET) release $(ARGS)

lock: venv ## requirements/*.in -> requirements.lock and requirements/*.lock
	$(PYTHON) tools/lock.py

docs: venv ## the documentation site, in build/site; needs no network
	$(PYTHON) -m trebuchet.docs.site.build $(ARGS)

clean: ## remove what was built; .venv stays
	rm -rf build .pytest_cache .mypy_cache .ruff_cache
