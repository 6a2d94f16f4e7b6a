# Tessera's own chores. `make demo` and `make test` need Python 3.11 or newer and nothing else.

PYTHON ?= python3
JOBS ?= 2
VENV ?= .venv
BIN := $(VENV)/bin
MARKERS := not acceptance and not gpu$(if $(PEERS),, and not peers)
STAMP := $(VENV)/$(if $(PEERS),peers,test).stamp

# Bytecode is kept, whatever the environment says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test acceptance docs quick freshness collect lint format clean

help:
	@echo "make demo           set up, then attention that climbs the tiers while it is called"
	@echo "make test           set up, then lint, types, freshness and the quick tests (PEERS=1: also against torch and jax)"
	@echo "make acceptance     all tests at full counts; the log goes to acceptance/last.log"
	@echo "make docs           write the pages that are made from the code"
	@echo "make freshness      GPU results that are older than the code"
	@echo "make lint | format  check, or rewrite, the style"
	@echo "make clean          remove the environment and all caches"

demo: $(VENV)/core.stamp
	$(BIN)/tessera demo

# What uses one core runs side by side. Types take longest to check; tests begin meanwhile, those that measure last.
test:
	$(MAKE) -j 2 --output-sync=target $(STAMP) $(VENV)/browser.stamp
	$(MAKE) -j 2 lint quick

quick: freshness collect
	$(BIN)/pytest -n $(JOBS) -m "$(MARKERS)" $(if $(PEERS),--require-peers)

# POSIX sh has no pipefail: the status travels through a file, and a missing one fails.
acceptance: $(STAMP) $(VENV)/browser.stamp $(VENV)/perfetto.stamp
	@mkdir -p acceptance
	@rm -f $(VENV)/acceptance.status
	@{ $(BIN)/pytest -n $(JOBS) -m "not gpu$(if $(PEERS),, and not peers)" --durations=10 \
	    --hypothesis-profile=explore $(if $(PEERS),--require-peers); echo $$? > $(VENV)/acceptance.status; } 2>&1 \
	    | tee acceptance/last.log
	@exit $$(cat $(VENV)/acceptance.status || echo 1)

docs: $(VENV)/test.stamp
	$(BIN)/python tests/walks/code_walk.py
	$(BIN)/python tests/walks/attention_walk.py
	$(BIN)/python benchmarks/evaluation.py

freshness: $(STAMP)
	$(BIN)/python benchmarks/freshness.py

# The first to read the tests makes their bytecode.
collect: $(STAMP) | freshness
	@$(BIN)/pytest --collect-only -qq > $(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix src tests benchmarks examples
	$(BIN)/ruff format src tests benchmarks examples

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit("Tessera needs Python 3.11 or newer: make PYTHON=... " if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Each stamp says that its extras are installed as pyproject.toml now lists them. Much of what tests need is never
# imported: Python makes bytecode of the rest when it is.
INSTALL := $(BIN)/python .ci/install.py
TESTED := test,lint,bench,dist,cuda

$(VENV)/core.stamp: $(VENV)/python.stamp pyproject.toml
	$(INSTALL) --editable .
	@touch $@

$(VENV)/test.stamp: $(VENV)/python.stamp pyproject.toml
	$(INSTALL) --editable ".[$(TESTED)]"
	@touch $@

$(VENV)/peers.stamp: $(VENV)/python.stamp pyproject.toml
	$(INSTALL) --editable ".[$(TESTED),peers]"
	@touch $@

# Without it one test is skipped, and says so.
$(VENV)/perfetto.stamp: $(VENV)/test.stamp
	-$(INSTALL) --editable ".[perfetto]"
	@touch $@

# The tests of the benchmark page open it in a real browser.
$(VENV)/browser.stamp: $(VENV)/python.stamp
	@for name in chromium chromium-browser google-chrome chrome; do command -v $$name >/dev/null && exit 0; done; \
	become=; [ "$$(id -u)" = 0 ] || become="sudo -n"; \
	{ command -v apt-get >/dev/null && $$become apt-get update -q && \
	  $$become env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium; } || \
	{ echo "The tests of the benchmark page need a browser, and it could not be installed: put chromium on PATH" >&2; exit 1; }
	@touch $@
