# Two commands for a new user: `make demo` and `make test`. Each makes .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-browser test-all test-nojit test-bounds test-oldest wheel-test coverage fuzz lint format bench bench-page docs clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs]"
	touch $@

demo: .venv/installed
	$(BIN)/markovfield demo

test: .venv/installed
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

# The explorer in a real browser; skipped with a reason where there is no Chromium.
test-browser: .venv/installed
	$(BIN)/python -m pytest tests/explorer -m browser

test-all: .venv/installed
	$(BIN)/python -m pytest

test-nojit: .venv/installed
	$(BIN)/python -m pytest tests/test_nojit.py

# Every index of every kernel checked: compiled with the checks, into a cache of its own (some minutes the first time).
test-bounds: .venv/installed
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-bounds METHOD_MODELS=40 $(BIN)/python -m pytest \
		tests/kernels tests/conformance/test_every_method.py $$(find tests -name "test_*_kernel.py")

# The source archive, the wheel made of it, and that by itself in a clean environment; with the oldest dependencies,
# everything is compiled anew (minutes).
wheel-test:
	PYTHON=$(PYTHON) .ci/wheel-test

test-oldest:
	PYTHON=$(PYTHON) NUMBA_CACHE_DIR=$(CURDIR)/build/numba-oldest .ci/wheel-test --constraint tests/oldest.txt

coverage: .venv/installed
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Random models against brute force, from where the last run stopped: FUZZ_MODELS=1000 for fewer, FUZZ="--seed 7" for one.
fuzz: .venv/installed
	$(BIN)/python -m tests.fuzz $(FUZZ)

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python -m benchmarks.first_call
	$(BIN)/python -m benchmarks.explorer
	$(BIN)/python -m benchmarks.exact.inference
	$(BIN)/python -m benchmarks.exact.bayesian_networks
	$(BIN)/python -m benchmarks.approximate.belief_propagation
	$(BIN)/python -m benchmarks.approximate.accuracy
	$(BIN)/python -m benchmarks.approximate.lattice
	$(BIN)/python -m benchmarks.approximate.sampling
	$(BIN)/python -m benchmarks.decoding.graph_cuts
	$(BIN)/python -m benchmarks.decoding.relaxations
	$(BIN)/python -m benchmarks.decoding.proofs
	$(BIN)/python -m benchmarks.decoding.decode
	$(BIN)/python -m benchmarks.sequence.chain_crf
	$(BIN)/python -m benchmarks.sequence.chain_crf_wapiti
	$(BIN)/python -m benchmarks.sequence.hidden_markov
	$(BIN)/python -m benchmarks.gaussian
	$(BIN)/python -m benchmarks.learning.boltzmann
	$(BIN)/python -m benchmarks.learning.undirected
	$(BIN)/python -m benchmarks.learning.tables
	$(BIN)/python -m benchmarks.learning.undirected_structures
	$(BIN)/python -m benchmarks.learning.solvers
	$(BIN)/python -m benchmarks.learning.feature_induction
	$(BIN)/python -m benchmarks.logic
	$(BIN)/python -m benchmarks.structured.graphs
	$(BIN)/python -m benchmarks.structured.structures
	$(BIN)/python -m benchmarks.structured.max_margin
	$(BIN)/python -m benchmarks.sequence.segments
	$(BIN)/python -m benchmarks.structured.parsing
	$(BIN)/python -m benchmarks.structured.alignment

# The page of measurements, of what `make bench` has stored here; other results stay on it as they were.
bench-page: .venv/installed
	$(BIN)/python -m tools.benchmark_page

# The pages; examples that have changed since the last time are run for the gallery, and links are checked.
docs: .venv/installed
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	$(BIN)/python -m tools.check_links docs/_build/html

clean:
	rm -rf .venv build docs/_build docs/auto_examples markovfield-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz .numba-bounds .coverage .coverage.*
