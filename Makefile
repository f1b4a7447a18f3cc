# On a fresh machine, `make repro` runs the pipeline and `make test` runs the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PATH := $(CURDIR)/$(BIN):$(PATH)
export MLFLOW_DISABLE_TELEMETRY = true
export DO_NOT_TRACK = 1
# Containers often set this variable. Then each of hundreds of processes would compile the same files.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup repro preview test test-fast test-faults coverage mutants check bench dry-run wheel replication docs pictures ui
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' || \
	  { echo "error: PYTHON: must be Python 3.11 or 3.12 (got $$($(PYTHON) --version)). Run make PYTHON=python3.11."; exit 1; }
	@echo 'Installing the tested packages into $(VENV). This takes a few minutes.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,transformers,peft,pipeline,tracking,dev]'
	$(BIN)/pip uninstall --quiet --yes torchaudio
	@touch $(STAMP)

setup: $(STAMP) ## Create .venv and install the tested packages

repro: setup ## Set up, then run every stage whose settings, code or inputs have changed
	dvc repro
	@test -z "$$(git status --porcelain dvc.lock 2>/dev/null)" || printf '%s\n' \
	  'The report is outputs/report/index.html. Experiments of DVC start from the last commit. So that they' \
	  'build on these results, in place of training again, type these two lines:' \
	  '  git add dvc.lock' \
	  '  git commit -m "Results of make repro"'

preview: setup ## After an edit of conf/ or of the code: what `make repro` would run at most
	@dvc repro --quiet compose
	@dvc repro --dry --force-downstream | sed -n "s/^Running stage '\(.*\)':/would run \1/p" | grep . || echo 'nothing would run'

test-fast: setup ## Unit tests only: no process, no training, no simulation
	pytest -n $$(nproc) --dist worksteal -m "not slow" --hypothesis-profile fast

test: setup ## All tests
	pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-faults: setup ## Long fault tests: every stage is killed at 20 moments (one stage: ONLY=train)
	pytest tests/faults --moments 20 $(if $(ONLY),-k $(ONLY))

# Coverage sees code for numba only if numba does not compile it.
coverage: setup ## Lines of pipeline/ that tests run, without tests/faults (fewer tests: ONLY=tests/pipeline)
	pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --ignore=tests/faults --cov --cov-report= $(ONLY)
	NUMBA_DISABLE_JIT=1 pytest --cov --cov-append --cov-report=term:skip-covered \
	  tests/pipeline/metrics/test_ranking.py tests/pipeline/test_compiled.py tests/pipeline/statistics

# In a clone, since mutants replace source files. Stopped early, `cr-rate --estimate` tells the share so far.
MUTATED = $(or $(ONLY),pipeline/uncertainty)
mutants: setup ## How many small artificial faults the tests miss (a folder or file: ONLY=pipeline/metrics)
	rm -rf outputs/mutants && git clone --quiet . outputs/mutants
	cd outputs/mutants && \
	  sed -i -e '/^module-path/s#".*"#"$(MUTATED)"#' \
	    -e '/^test-command/s#pipeline/uncertainty#$(patsubst %/,%,$(if $(filter %.py,$(MUTATED)),$(dir $(MUTATED)),$(MUTATED)))#' \
	    tests/mutants.toml && \
	  cosmic-ray init tests/mutants.toml session.sqlite && \
	  cr-filter-operators session.sqlite tests/mutants.toml && \
	  cosmic-ray baseline tests/mutants.toml && \
	  cosmic-ray exec tests/mutants.toml session.sqlite && \
	  cr-report --surviving-only --show-diff session.sqlite && cr-rate session.sqlite

check: setup ## Lint, formatting, types, and dvc.yaml against stages/
	ruff check .
	ruff format --check .
	mypy
	pytest tests/test_dag.py

ui: setup ## MLflow UI, for this machine only
	python -m pipeline.tracking.ui

bench: setup ## Speed and memory as a table and outputs/bench/PART.json (one part: ONLY=startup)
	python -m tests.bench $(ONLY)

replication: setup ## The study of docs/replication, which takes hours (some points: ONLY='ende-both-*')
	python -m docs.replication.run $(if $(ONLY),'$(ONLY)')
	python -m docs.replication.report

docs: setup ## Documentation as a site in outputs/site, built without a network
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict

pictures: setup ## The README's screenshot and figure, from outputs/report/index.html
	python docs/pictures.py

dry-run: setup ## Models of the paper's size on the CPU: two updates, three sentences, ten members
	python -m tests.dry_run

wheel: setup ## Build the wheel; in an empty environment, run it from another folder without extras
	python -m tests.wheel
