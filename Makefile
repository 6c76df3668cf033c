# Every target that needs Python makes .venv first, from requirements.lock, with plain pip. Targets
# that test or lint add requirements-test.lock. A stamp inside .venv records a finished install;
# until it is written the folder is marked incomplete, so that an install that was killed half-way
# is thrown away and done again.

SCALE ?= laptop
PORT ?=
T ?=
# An index with other builds of torch, such as the CPU-only ones: make book TORCH_INDEX=ADDRESS
TORCH_INDEX ?=
PYTHON ?= $(shell for name in python3.11 python3; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
TEST_STAMP := $(VENV)/installed-test
PARTIAL := $(VENV)/incomplete
# pip would compile all 16,000 modules of the packages on one core, which takes longer than the rest
# of the install. Python compiles those that are imported, when they are, and must be allowed to.
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile \
	$(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)")

unexport PYTHONDONTWRITEBYTECODE
# Recipes read these from the environment: YAML values and file names would not survive make's quoting.
export C P SOURCE STORE

prepare = script=data_scripts/$(1).py; if [ -n "$$SOURCE" ]; \
	then $(BIN)/python $$script prepare --source "$$SOURCE"; \
	else $(BIN)/python $$script fetch && $(BIN)/python $$script prepare; fi

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test test-slow book chapter lint format bench figure headlines data-higgs data-kdd12 data-diabetes results published serve pdf clean distclean lock check-lock

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A worker takes whole files, so what they set up is set up once, in the order of tests/conftest.py.
test: $(TEST_STAMP)  ## run the tests and doctests, but for long trials (T="..." passes arguments to pytest)
	@$(BIN)/python .ci/kernels.py
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow" $(T)

# Only files that have such trials are read.
test-slow: $(TEST_STAMP)  ## run the long trials that `make test` leaves out: kills, clusters, large draws
	$(BIN)/python -m pytest -n auto --dist load --maxschedchunk 1 -m slow $(or $(T),$(shell grep -lr --include='test_*.py' mark.slow tests))

book: $(STAMP)  ## run the chapters that are out of date and build the site (SCALE=smoke|laptop|paper)
	$(BIN)/labelbook book --scale $(SCALE)

chapter: $(STAMP)  ## run one chapter: C=07_scatter_plots P="bag_sizes=[4,16] epsilons=[0.5]"
	@if [ -z "$$C" ]; then $(BIN)/labelbook chapters | grep "^[^ ]" >&2; \
		echo 'say which chapter of these, as in: make chapter C=07_scatter_plots' >&2; exit 2; fi; \
	set -f; set --; for pair in $$P; do case "$$pair" in \
		[A-Za-z]*=*) set -- "$$@" -p "$${pair%%=*}" "$${pair#*=}" ;; \
		*) echo "P: '$$pair' is not name=value; write values without spaces" >&2; exit 2 ;; esac; done; \
	$(BIN)/labelbook run "$$C" --scale $(SCALE) "$$@"

lint: $(TEST_STAMP)  ## check style, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --cache-dir _build/import-linter
	$(BIN)/mypy

format: $(TEST_STAMP)  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(TEST_STAMP)  ## measure speed and memory, print the table, write it as JSON
	$(BIN)/python -m benchmarks

figure: $(STAMP)  ## draw the landing page's figure again (it is committed, for the README)
	$(BIN)/python book/question.py

headlines: $(STAMP)  ## take the headline numbers of the book at laptop scale into results/, where they ship
	$(BIN)/python -m book.tools.headlines

data-higgs: $(STAMP)  ## prepare Higgs from SOURCE=FILE; without SOURCE, fetch it first
	@$(call prepare,higgs)

data-kdd12: $(STAMP)  ## prepare KDD12 from SOURCE=FILE; without SOURCE, fetch it first
	@$(call prepare,kdd12)

data-diabetes: $(STAMP)  ## prepare the diabetes survey from SOURCE=FILE; without SOURCE, fetch it first
	@$(call prepare,diabetes)

results: $(STAMP)  ## make the tables of eta and of training in results/ again, from the prepared sets
	$(BIN)/python data_scripts/results.py eta
	$(BIN)/python data_scripts/results.py chapters

published: $(STAMP)  ## make results/published.csv.gz again from the trainings in a store (STORE=FOLDER)
	@set --; if [ -n "$$STORE" ]; then set -- --store "$$STORE"; fi; \
	$(BIN)/labelbook results --grid results/published.yml --export results/published.csv.gz "$$@"

serve: $(STAMP)  ## open the book in the browser and run chapters from their pages (PORT=8000)
	$(BIN)/labelbook serve $(if $(PORT),--port $(PORT))

pdf: $(TEST_STAMP)  ## print the site in _build/html as one PDF, with the system's Chromium
	$(BIN)/labelbook pdf

clean:  ## remove the site, the chapter runs and every cache
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find labelaudit data_scripts tests book benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## the same, and the environment
	rm -rf $(VENV) $(VENV).lock

lock: $(TEST_STAMP)  ## write both lock files and environment.yml from what .venv holds
	$(BIN)/python .ci/lock.py write
	@touch $(STAMP) && touch $(TEST_STAMP)

check-lock: $(TEST_STAMP)  ## ask the package index whether the locks install on every supported system
	$(BIN)/python .ci/lock.py check

# Two makes in a fresh clone would install into the same folder. So each calls make again, as a process
# that holds a lock and looks once more what is left to do. However that process ends, the lock does too.
define ALONE
import fcntl, os, sys
lock = os.open("$(VENV).lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.execvp(sys.argv[1], sys.argv[1:])
endef
export ALONE

# An install that was interrupted makes the stamp out of date, whichever of the two it was.
.PHONY: interrupted
$(STAMP): requirements.lock pyproject.toml $(if $(wildcard $(PARTIAL)),interrupted)
$(TEST_STAMP): $(STAMP) requirements-test.lock
ifndef HAS_LOCK
$(STAMP) $(TEST_STAMP):
	@if [ -z "$(PYTHON)" ]; then echo 'labelaudit needs Python 3.11 or newer: found' \
		"$$(python3 --version 2>/dev/null || echo none). Install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@$(PYTHON) -c "$$ALONE" $(MAKE) --silent --no-print-directory HAS_LOCK=1 $@
else
$(STAMP):
	@if [ -e $(PARTIAL) ]; then rm -rf $(VENV); fi
	@echo 'installing the pinned versions into $(VENV); this happens once and takes a few minutes'
	@mkdir -p $(VENV) && touch $(PARTIAL)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --requirement requirements.lock
	$(PIP_INSTALL) --no-deps --editable .
	@rm $(PARTIAL) && touch $@

$(TEST_STAMP):
	@touch $(PARTIAL)
	$(PIP_INSTALL) --requirement requirements-test.lock
	@rm $(PARTIAL) && touch $@
endif
