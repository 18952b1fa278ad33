# All targets use .venv, which is built from requirements.lock with plain pip.
# To use another interpreter: make PYTHON=python3.11 test

PYTHON ?= python3
WORKERS ?= 3  # on 2 cores: some tests wait
SPEC ?= flows/sweeps/quickstart.toml
SWEEP ?= quickstart
FIGURES ?= figures

BIN := .venv/bin
STAMP := .venv/.installed
PEERS_STAMP := .venv-peers/.installed
LOCK_ENV := build/lock-venv
COMPILE := $(LOCK_ENV)/bin/uv pip compile --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet $(UPGRADE)
RESOLVE := $(COMPILE) pyproject.toml --extra all
CODE := $(wildcard privsweep flows tasks storage privcore tests deploy)
SPREAD := -n $(WORKERS) --dist loadgroup  # tests of the same xdist_group run in one process
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# No program started from here sends usage statistics.
export RAY_USAGE_STATS_ENABLED = 0
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export DO_NOT_TRACK = 1
# Tests start hundreds of processes, each of which would compile every module.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install sweep picture screenshots table ship test test-all soak faults bench bench-scale bench-sweeps bench-store lint format docs deploy lock peers-lock clean clean-store

help:  ## list the targets
	@sed -n 's/^\([a-z%-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

install: $(STAMP)  ## build .venv from the lock

$(STAMP): requirements.lock pyproject.toml
	@echo "installing into .venv from requirements.lock (a minute or two)"
	@rm -f $@
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(PIP) check
	@touch $@

sweep: $(STAMP)  ## run the quickstart sweep and print its stored results
	$(BIN)/privsweep run $(SPEC) --engine ray
	$(BIN)/privsweep lookup $(SWEEP)

figures: figures-allocation  ## same as figures-allocation
label-figures: figures-labels
audit-figures: figures-auditing
membership-figures: figures-membership

figures-%: $(STAMP)  ## run the sweeps of a paper (allocation, labels, auditing, membership) and draw them into figures/
	$(BIN)/privsweep figures $* --out $(FIGURES)

picture: $(STAMP)  ## draw the pictures of README.md and of the gallery in the documentation
	$(BIN)/privsweep run loaders --store build/picture
	$(BIN)/python -m flows.reports.loaders build/picture docs/pictures
	$(BIN)/python -m tests.docs.gallery

screenshots: $(STAMP)  ## take the pictures of the page for README.md (needs Debian's Chromium)
	$(BIN)/python -m tests.docs.screenshots

table: $(STAMP)  ## run the sweep `lookup` (an hour and a half on two cores) and publish all answers as one file in tables/
	$(BIN)/privsweep run lookup
	$(BIN)/privsweep table publish --out tables

ship: $(STAMP)  ## compute what changed in the sweep `lookup`, and put its table into the package, in place of the old one
	$(BIN)/python -m storage.table.seed build/shipped
	$(BIN)/privsweep run lookup --store build/shipped
	@rm -f storage/table/lookup-*
	$(BIN)/privsweep table publish --store build/shipped --out storage/table
	@rm -r build/shipped  # else the next table would have the rows of older versions, too

test: $(STAMP)  ## run a sample of the tests, drawn by the commit (about two minutes)
	$(BIN)/python -m pytest $(SPREAD)

test-all: $(STAMP)  ## run every test, of costly ones some cases, drawn by the commit
	$(BIN)/python -m pytest --suite all $(SPREAD)

soak: $(STAMP)  ## run the slow tests, and the cases that test-all did not draw (hours)
	$(BIN)/python -m pytest -m soak $(SPREAD)

faults: $(STAMP)  ## run the fault injection tests and write their table into docs/faults.md
	$(BIN)/python -m tests.faults.report docs/faults.md $(SPREAD)

bench: $(STAMP) $(PEERS_STAMP)  ## measure privsweep and its peers (installed in a separate environment)
	$(BIN)/python -m tests.benchmarks.bench

bench-scale: $(STAMP)  ## measure the speed-up of two workers over one (ten minutes, needs an idle machine)
	$(BIN)/python -m tests.benchmarks.bench --only scale

bench-sweeps: $(STAMP)  ## measure whole sweeps of up to ten million points, killed and resumed (an hour, 8 GB)
	$(BIN)/python -m tests.benchmarks.bench --only sweeps

bench-store: $(STAMP)  ## measure the store with ten million synthetic rows (some minutes, 4 GiB)
	$(BIN)/python -m tests.benchmarks.bench --only store

$(PEERS_STAMP): tests/benchmarks/peers.lock
	@echo "installing the peers into .venv-peers"
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r $<
	@touch $@

lint: $(STAMP)  ## check style, format, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

format: $(STAMP)  ## fix style and format with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## build the documentation as HTML in docs/_build/html, and check the links of the repository
	$(BIN)/python -m tests.docs.links
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

deploy: $(STAMP)  ## create or update pool, deployments and automations on the Prefect server at PREFECT_API_URL
	@test -n "$$PREFECT_API_URL" || { echo "Set PREFECT_API_URL to the address of your server: deploy/README.md." >&2; exit 2; }
	$(BIN)/prefect work-pool create privsweep --type process --overwrite
	$(BIN)/prefect --no-prompt deploy --all --prefect-file deploy/prefect.yaml
	$(BIN)/python deploy/automations.py

# Pinned versions stay where they still fit; `make lock UPGRADE=--upgrade` takes the newest ones.
lock: peers-lock  ## resolve requirements.lock, deploy/image.lock and the peers' lock again from pyproject.toml
	@mkdir -p build
	@cp requirements.lock build/all.lock
	@$(RESOLVE) --group dev --universal --output-file build/all.lock > build/lock.log
	@cp deploy/image.lock build/image.lock
	@$(RESOLVE) --group image --constraint build/all.lock --output-file build/image.lock > build/lock.log
	@{ echo "# All packages for runtime and development, pinned for Python 3.11 to 3.14. Written by: make lock"; \
	   echo "# Install: pip install --no-deps --require-hashes -r requirements.lock"; \
	   cat build/all.lock; } > requirements.lock
	@{ echo "# Packages of the container image: the runtime part of requirements.lock, and Ray's dashboard. Written by: make lock"; \
	   echo "# Install: pip install --no-deps --require-hashes -r deploy/image.lock"; \
	   cat build/image.lock; } > deploy/image.lock
	@grep -c '^[a-z]' requirements.lock deploy/image.lock | sed 's/^/packages pinned: /'

peers-lock: $(LOCK_ENV)/bin/uv  ## resolve the versions of the benchmarks' peers again, separately from ours
	@{ echo "# Peers of the benchmarks, installed in a separate environment (.venv-peers). Written by: make peers-lock"; \
	   echo "# Install: pip install --no-deps --require-hashes -r tests/benchmarks/peers.lock"; \
	   $(COMPILE) --group pyproject.toml:peers; } > build/peers.lock
	@mv build/peers.lock tests/benchmarks/peers.lock

$(LOCK_ENV)/bin/uv:
	@$(PYTHON) -m venv $(LOCK_ENV) && $(LOCK_ENV)/bin/pip install --quiet uv

clean:  ## remove .venv, caches and built files, but not store/ and .prefect/
	rm -rf .venv build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

clean-store:  ## delete every stored result (asks first)
	@printf 'delete store/ and .prefect/ with all stored results? [y/N] '; read answer; \
	 if [ "$$answer" = y ]; then rm -rf store .prefect; else echo kept; fi
