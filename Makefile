# Two commands: `make demo` shows raybo at work, `make test` passes the tests.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
# More options of pytest: make test PYTEST="--durations=30"
PYTEST ?= -rs
# Processes that share the tests; those of a file stay together. Each has a Ray of its own.
JOBS ?= 2
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help venv venv-bench demo test check slow lowest docs clean

help:
	@echo "make demo        install into $(VENV) and run the demo: 10^9 dimensions, live progress, HTML report"
	@echo "make test        install into $(VENV) and run the tests"
	@echo "make check       ruff, mypy and the architecture test"
	@echo "make slow        the statistical tests (before a release)"
	@echo "make lowest      the core tests on the lowest versions that raybo supports (before a release)"
	@echo "make docs        guides and API into build/docs"
	@echo "make venv        create $(VENV) with the dev and report extras"
	@echo "make venv-bench  add the bench extra (BoTorch, Optuna, ...)"

$(BIN)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || (echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV))
	@echo "installing raybo and its dependencies (a few minutes the first time)"
	@$(PIP) torch
	@$(PIP) -e ".[dev,report]"
	@touch $@

$(BIN)/.installed-bench: $(BIN)/.installed
	@echo "installing the bench extra"
	@$(PIP) -e ".[dev,report,bench,dashboard]"
	@touch $@

venv: $(BIN)/.installed

venv-bench: $(BIN)/.installed-bench

demo: $(BIN)/.installed
	@$(BIN)/raybo demo

test: $(BIN)/.installed
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(PYTEST)

slow: $(BIN)/.installed
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m slow $(PYTEST)

# The lowest versions warn of what later ones changed: warnings are no errors here.
lowest:
	@test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	@.venv-lowest/bin/python -m pip install --quiet -c constraints-lowest.txt ".[report,optuna]" \
		pytest hypothesis scikit-learn jsonschema
	@.venv-lowest/bin/python -m pytest -W default tests/space tests/surrogate tests/acquisition \
		tests/methods tests/contracts tests/study tests/tune tests/runtime tests/optuna/test_sampler.py

docs: $(BIN)/.installed
	@$(PIP) -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict -f docs/mkdocs.yml
	@echo "build/docs/index.html"

check: $(BIN)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_architecture.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
