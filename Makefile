# Sets up .venv once and runs things in it. `make help` lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REQUIREMENTS := pyproject.toml constraints.txt
# Two `make` at once: the second waits for the first one's set-up (where flock exists).
LOCK := $(if $(shell command -v flock),flock $(VENV).lock,)
WORKERS ?= 2
DEMO_GRID ?= case118
DEMO_OUT ?= results/demo

.DEFAULT_GOAL := setup
.PHONY: help setup demo test check format docs bench clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(STAMP) ## build .venv with everything installed (what plain `make` does)

$(STAMP): $(REQUIREMENTS)
	@$(if $(PYTHON),,$(error no python3 found; gridshift needs Python 3.11 or newer))
	@$(LOCK) $(MAKE) --no-print-directory install

.PHONY: install
install:
	@if [ $(STAMP) -nt pyproject.toml ] && [ $(STAMP) -nt constraints.txt ]; then exit 0; fi; \
	set -e; \
	$(PYTHON) -c 'import sys; sys.exit("gridshift needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'; \
	echo "setting up $(VENV) (a few minutes the first time)" >&2; \
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' >&2; \
	touch $(STAMP)

demo: $(STAMP) ## screen the single-line outages of case118 exactly, surrogates beside, and write the report
	@$(BIN)/gridshift screen $(DEMO_GRID) --beside icw:400,compensation:10 --out $(DEMO_OUT)

test: $(STAMP) ## the test suite
	@$(BIN)/python -m pytest -n $(WORKERS)

check: $(STAMP) ## lint, format, types, import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

format: $(STAMP) ## rewrite files in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(STAMP) ## rewrite docs/cli.md from the command definitions
	@$(BIN)/python docs/write_cli.py

bench: $(STAMP) ## time the engine against other programs; nothing else should run meanwhile
	@$(BIN)/python -m benchmarks.engine

clean: ## remove .venv and caches
	rm -rf $(VENV) $(VENV).lock build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
