# Two commands do everything on a fresh machine with Python 3.11+ and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE = 1

.PHONY: demo test
demo: $(VENV)/.base                ## install, then train two agents on a built-in game
	$(BIN)/decentral train meet --iterations 30 --set agent.lr=1e-3 --set agent.kl=1e-3 --out runs/demo-$$(date +%Y%m%d-%H%M%S)

test: $(VENV)/.dev                 ## install, then lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 --dist loadfile

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@
