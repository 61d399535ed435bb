# Everything starts here, from a bare machine with Python: each target makes the virtual environment, installs
# what is pinned in constraints.txt and, where Spark is needed, sees to a Java. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Touched after a complete installation; older than its sources means: install again.
INSTALLED := $(VENV)/.installed
# More arguments for the command behind a target: make demo ARGS="--seed 3"
ARGS ?=
# Spark prefers JAVA_HOME to the PATH, so what scripts/ensure-java found good must go there.
WITH_JAVA = JAVA_HOME="$$(scripts/ensure-java)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install java demo test test-fast test-spark soak bench reproduce lint format clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name does; do \
		printf '  make %-12s %s\n' "$$name" "$$does"; done

$(INSTALLED): pyproject.toml lab/pyproject.toml constraints.txt
	@scripts/ensure-venv "$(PYTHON)" $(VENV)
	@touch $@

install: $(INSTALLED) ## make the virtual environment (.venv) and install into it

java: ## find or install a Java for Spark
	@scripts/ensure-java > /dev/null

demo: java $(INSTALLED) ## a made-up city on an embedded Spark, overloaded on purpose
	@$(WITH_JAVA) $(BIN)/python -m tidegate demo $(ARGS)

test: java $(INSTALLED) test-fast test-spark ## all tests: first those without Spark, then those with

test-fast: $(INSTALLED) ## the tests without Spark: no Java needed
	$(BIN)/python -m pytest -m "not spark and not soak" -n auto --dist loadfile $(ARGS)

test-spark: java $(INSTALLED) ## the tests with Spark
	@$(WITH_JAVA) set -x && $(BIN)/python -m pytest -m "spark and not soak" -n 2 --dist worksteal --durations=15 $(ARGS)

soak: java $(INSTALLED) ## the long tests
	@$(WITH_JAVA) set -x && HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m soak $(ARGS)

bench: java $(INSTALLED) ## speed of the join next to Spark's own, in one run
	@$(WITH_JAVA) $(BIN)/python -m tidegate bench join $(ARGS)

reproduce: $(INSTALLED) ## the selective join paper's figures again, with plots: no Java needed
	@$(BIN)/python -m tidegate reproduce selective-join $(ARGS)

lint: $(INSTALLED) ## ruff, mypy (strict), the import contracts and the structure of the tree
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/house.py

format: $(INSTALLED) ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
