# Every target sets up the environment it needs; `make help` lists them.
# Variables: PYTHON=<an interpreter, 3.12 or newer>, ARGS="<more arguments>".

SHELL := /bin/bash
comma := ,
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first interpreter that really runs and is new enough.
PYTHON ?= $(shell for name in python3.12 python3 python3.13 python3.14 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 \
	&& echo $$name && break; done)
# The newest of later Pythons that is found, also by pyenv, or the one above.
NEWEST ?= $(or $(shell for name in python3.14 python3.13 \
	$$(ls -d "$$(pyenv root 2>/dev/null)"/versions/3.1[3-9].*/bin/python3 2>/dev/null | sort -rV); do \
	$$name -c 'import sys; sys.exit(not (3, 13) <= sys.version_info < (3, 15))' >/dev/null 2>&1 \
	&& echo $$name && break; done),$(PYTHON))

VENV := .venv
OLDEST := .venv-oldest
BENCH := .venv-bench
ARRAY := .venv-array
SUITE := .venv-jax-tests
CLIENTS := .venv-ecosystem
CLIENTS_JAX := .venv-ecosystem-jax
JAX_COMPARED := 0.12.0.1
BIN := $(VENV)/bin
GPU_PYTHON ?= $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON))
JAXLIB_OLDEST := 0.11.2
WORKERS ?= 2
ARGS ?=
# Where github.com/data-apis/array-api-tests is, cloned with --recurse-submodules.
ARRAY_API_TESTS ?= ../array-api-tests
# Where github.com/jax-ml/jax is, of which only jax/ and tests/ are read, and which of its tests run.
JAX_TESTS ?= ../jax
SUITE_FILES ?= tests/*_test.py

# Modules are compiled once: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

# Tests and figures leave no compiled programs in the user's home and read none there.
NOTHING_KEPT := VERAX_ENABLE_COMPILATION_CACHE=$${VERAX_ENABLE_COMPILATION_CACHE:-0}
# Two test workers on two cores: more threads inside NumPy only get in the way. Pages
# show messages of errors without the note on frames that are left out.
TEST_ENV := VERAX_TRACEBACK_FILTERING=off HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} OPENBLAS_NUM_THREADS=1 \
	OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=1 $(NOTHING_KEPT)
# A test that hangs shows where, and fails; laws that draw all night may take longer.
HANGING := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
PYTEST := -m pytest -q -n $(WORKERS) --dist worksteal $(HANGING)
# Four pages run in a process with eight devices: tests/placement does that; and the
# numbers of docs/by_name need agree only nearly: tests/docs does that.
DOCTESTS := -p property_tests.doctests --doctest-modules --doctest-glob='*.md' src/verax README.md docs \
	--ignore=docs/examples --ignore=docs/by_name --ignore=docs/placement.md \
	--ignore=docs/custom-partitioning.md --ignore=docs/explicit-sharding.md --ignore=docs/pipelines.md
# What asks the most of jaxlib, and of Python.
ANY_JAXLIB := $(addprefix tests/,backend distributed extend formats ir placement robustness \
	api/export api/host api/stages ops/test_lowering_by_platform.py) \
	$(filter-out tests/test_architecture.py tests/test_mutants.py tests/test_surface.py,$(wildcard tests/test_*.py))
# Of these what is long and asks little of either, or nothing that shorter ones do not.
NOT_OLDEST := $(addprefix --ignore=tests/,backend/eager robustness/test_interrupts.py distributed/test_restarts.py \
	distributed/test_training.py distributed/test_multihost.py api/export/test_symbolic.py)
# The files that have the mark: to collect them all takes longer than to run these.
WITH_JAX = $(shell grep -rlw --include='test_*.py' 'mark\.jax' tests)
QUICK := -m "not slow"
DAILY := -m "not slow(nightly=True)"
EXAMPLES := transformer neural_ode random_walks
CHECKED := src tests property_tests docs typings

# Half of what pip does would be to compile modules, most of which nobody imports.
PIP := -m pip install --quiet --disable-pip-version-check --no-compile

# $(call make_venv,folder,what to install,with which Python if not with PYTHON)
define make_venv
	@test -n "$(PYTHON)" || { echo "verax needs Python 3.12 or newer:" \
	  "install it, or say where it is with 'make PYTHON=...'" >&2; exit 1; }
	@echo "setting up $(1)"
	@$(or $(3),$(PYTHON)) -m venv --clear $(1)
	@$(1)/bin/python $(PIP) $(2)
	@touch $(1)/.ready
endef

# $(call run_tests,which of the examples): all but what `make check` runs
define run_tests
	$(TEST_ENV) $(BIN)/python $(PYTEST) tests --ignore=tests/test_architecture.py $(1) $(ARGS)
	$(TEST_ENV) $(BIN)/python $(PYTEST) $(DOCTESTS)
	$(TEST_ENV) $(BIN)/python $(PYTEST) property_tests $(1) $(ARGS)
endef

.PHONY: help setup demo examples test test-all test-nightly test-oldest test-jax array-api \
  array-api-suite jax-tests jax-tests-suite check format stubs mutants soak fuzz gpu bench bench-compiled ecosystem ecosystem-quick docs \
  dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready ## make .venv with everything that demo, test and check need

demo: $(VENV)/.ready ## train on handwritten digits, the laws checked on the way
	TF_CPP_MIN_LOG_LEVEL=1 $(BIN)/python -m docs.examples.digits $(ARGS)

examples: $(VENV)/.ready ## run the gallery, and draw its pictures again (a minute)
	for name in $(EXAMPLES); do TF_CPP_MIN_LOG_LEVEL=1 $(BIN)/python \
	  -m docs.examples.$$name --out docs/pictures/$$name.svg; done
	PYTHONPATH=. $(BIN)/python -m verax.distributed run -n 2 --devices 2 \
	  -m docs.examples.data_parallel_picture --out docs/pictures/data_parallel.svg
	TF_CPP_MIN_LOG_LEVEL=1 $(BIN)/python -m docs.examples.digits --picture docs/digits.svg

test: export HYPOTHESIS_PROFILE := $(or $(HYPOTHESIS_PROFILE),quick)
test: $(VENV)/.ready ## examples, doctests and laws (profile quick), but for slow tests
	$(call run_tests,$(QUICK))

test-all: $(VENV)/.ready ## the same, tests that are marked slow, and laws of profile ci
	$(call run_tests,$(DAILY))

test-nightly: $(VENV)/.ready ## the tests and laws that are left: larger models, more draws (an hour or two)
	$(TEST_ENV) $(BIN)/python $(PYTEST) tests -m "slow(nightly=True)" $(ARGS)
	export HYPOTHESIS_PROFILE=nightly; $(TEST_ENV) $(BIN)/python $(PYTEST) \
	  -o faulthandler_timeout=0 property_tests $(ARGS)

# Of the slow ones those about what jaxlib itself does.
test-oldest: $(OLDEST)/.ready ## the examples again: the oldest jaxlib allowed, the newest Python found
	$(TEST_ENV) $(OLDEST)/bin/python $(PYTEST) $(ANY_JAXLIB) $(NOT_OLDEST) \
	  -m "not slow(nightly=True) and (not slow or slow(jaxlib=True))" $(ARGS)

test-jax: $(BENCH)/.ready ## verax and jax in one process
	$(TEST_ENV) $(BENCH)/bin/python -m pytest -q -m jax $(WITH_JAX) $(ARGS)

array-api: array-api-suite $(ARRAY)/.ready ## the array API's tests (ARRAY_API_TESTS=<clone>)
	cd "$(ARRAY_API_TESTS)" && ARRAY_API_TESTS_MODULE=verax.numpy VERAX_ENABLE_X64=1 \
	  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=1 $(NOTHING_KEPT) \
	  "$(CURDIR)/$(ARRAY)/bin/python" -m pytest -q -n $(WORKERS) --disable-deadline \
	  --rootdir=. --xfails-file="$(CURDIR)/tests/array_api_xfails.txt" array_api_tests $(ARGS)

array-api-suite:
	@test -d "$(ARRAY_API_TESTS)/array-api/src" || { echo "no array API tests in" \
	  "$(ARRAY_API_TESTS): clone github.com/data-apis/array-api-tests with" \
	  "--recurse-submodules, then run 'make array-api ARRAY_API_TESTS=<its folder>'" \
	  >&2; exit 1; }

# A tenth of the cases that JAX draws; eight devices, as its own runs have.
jax-tests: jax-tests-suite $(SUITE)/.ready ## the tests of JAX under the name jax (JAX_TESTS=<clone>)
	cd "$(JAX_TESTS)" && JAX_TESTS=. JAX_NUM_GENERATED_CASES=3 PYTHONPATH="$(CURDIR)" \
	  XLA_FLAGS=--xla_force_host_platform_device_count=8 \
	  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=2 $(NOTHING_KEPT) \
	  "$(CURDIR)/$(SUITE)/bin/python" -m pytest -q -n $(WORKERS) --dist loadfile -W ignore \
	  -p tests.jax_suite.plugin -p no:cacheprovider --rootdir=. $(SUITE_FILES) $(ARGS)

jax-tests-suite:
	@test -f "$(JAX_TESTS)/jax/_src/test_util.py" || { echo "no JAX in $(JAX_TESTS):" \
	  "clone github.com/jax-ml/jax, then run 'make jax-tests JAX_TESTS=<its folder>'" \
	  >&2; exit 1; }

check: $(VENV)/.ready ## ruff, mypy --strict and the architecture test
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	MYPY_NUM_WORKERS=$${MYPY_NUM_WORKERS:-$(WORKERS)} $(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: $(VENV)/.ready ## let ruff put imports and layout in order
	$(BIN)/ruff check --fix-only --quiet $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

stubs: $(VENV)/.ready ## write stubs of facades, public names, the map of packages
	$(BIN)/python -m tests.stubs
	$(BIN)/python -m tests.surface
	$(BIN)/python -m tests.docs.package_map

mutants: $(VENV)/.ready ## wrong rules on purpose: the laws must notice (ARGS="--all")
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=2 PYTHONPATH=src:. \
	  $(NOTHING_KEPT) \
	  $(BIN)/python -m property_tests.mutants $(ARGS)

soak: $(VENV)/.ready ## five minutes of mixed work, memory flat (ARGS="--seconds 60")
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=2 PYTHONPATH=src:. \
	  $(NOTHING_KEPT) \
	  $(BIN)/python -m tests.soak $(ARGS)

fuzz: $(VENV)/.ready ## random nested programs, beside jax if .venv-bench is there (ARGS="--count 50")
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=2 PYTHONPATH=src:. \
	  XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true" \
	  JAX_PLATFORMS=cpu $(NOTHING_KEPT) $(BIN)/python -m tests.fuzz $(ARGS)

# With what is installed: it makes no environment and needs no network.
gpu: ## everything on a GPU, and one report (ARGS="--only laws", GPU_PYTHON=<python>)
	PYTHONPATH=src:. $(GPU_PYTHON) -m tests.gpu $(ARGS)

bench: $(BENCH)/.ready ## time verax against jax (alone, each in its own process)
	TF_CPP_MIN_LOG_LEVEL=1 $(BENCH)/bin/python -m tests.benchmarks $(ARGS)

bench-compiled: $(BENCH)/.ready ## time compiled programs beside jax and torch (ARGS="sweep")
	TF_CPP_MIN_LOG_LEVEL=1 $(BENCH)/bin/python -m tests.benchmarks.compiled $(or $(ARGS),workloads)

ecosystem: $(CLIENTS)/.ready $(CLIENTS_JAX)/.ready ## libraries that import jax, on verax
	$(CLIENTS)/bin/python -m tests.ecosystem --page \
	  --jax-python "$(CURDIR)/$(CLIENTS_JAX)/bin/python" $(ARGS)

ecosystem-quick: $(BENCH)/.clients ## three of them, with jax beside verax
	PYTHONPATH="$(CURDIR)/$(BENCH)/clients" $(BENCH)/bin/python -m tests.ecosystem \
	  --only optax einops equinox --rounds 1 --jax-python "$(CURDIR)/$(BENCH)/bin/python"

docs: $(VENV)/.docs ## build docs/ and the reference into site/; a dead link is an error
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src:. $(NOTHING_KEPT) \
	  $(BIN)/python -m mkdocs build --quiet --strict -f .mkdocs.yml -d site

# The same sources give the same bytes; RELEASING.md says what is done with them.
dist: $(VENV)/.ready ## the wheel and the source distribution, in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -t sdist

clean: ## remove everything that the other targets made
	rm -rf $(VENV) $(OLDEST) $(BENCH) $(ARRAY) $(SUITE) $(CLIENTS) $(CLIENTS_JAX) site build dist \
	  .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests property_tests docs -name __pycache__ -type d -prune \
	  -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml
	$(call make_venv,$(VENV),-e '.[dev]')

$(VENV)/.docs: $(VENV)/.ready pyproject.toml
	@$(BIN)/python $(PIP) -e '.[docs]'
	@touch $@

$(OLDEST)/.ready: pyproject.toml
	$(call make_venv,$(OLDEST),-e '.[verify]' pytest pytest-xdist pyyaml rich jaxlib==$(JAXLIB_OLDEST),$(NEWEST))

$(BENCH)/.ready: pyproject.toml
	$(call make_venv,$(BENCH),-e '.[bench$(comma)verify]' pytest pytest-xdist)

$(ARRAY)/.ready: pyproject.toml
	$(call make_venv,$(ARRAY),-e . pytest pytest-xdist pytest-json-report 'hypothesis>=6.151' \
	  'ndindex>=1.8')

$(SUITE)/.ready: pyproject.toml
	$(call make_venv,$(SUITE),-e . pytest pytest-xdist absl-py 'hypothesis>=6.151' scipy \
	  cloudpickle pillow)

# The clients' own requirements name jax: what they import is pinned instead.
$(CLIENTS)/.ready: pyproject.toml tests/ecosystem/requirements.txt
	$(call make_venv,$(CLIENTS),--no-deps -r tests/ecosystem/requirements.txt -e .)

$(CLIENTS_JAX)/.ready: pyproject.toml tests/ecosystem/requirements.txt
	$(call make_venv,$(CLIENTS_JAX),--no-deps -r tests/ecosystem/requirements.txt \
	  jax==$(JAX_COMPARED))

# In a folder of their own: jaxtyping brings a plugin of pytest, which test-jax should not load.
$(BENCH)/.clients: $(BENCH)/.ready tests/ecosystem/requirements.txt
	@rm -rf $(BENCH)/clients
	@$(BENCH)/bin/python $(PIP) --no-deps \
	  --target $(BENCH)/clients --constraint tests/ecosystem/requirements.txt \
	  absl-py einops equinox jaxtyping optax typing_extensions wadler_lindig
	@touch $@
