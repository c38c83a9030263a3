# Everything runs in virtual environments inside the project; each target sets up its own.
PYTHON ?= python3
PIP := -m pip -qq --disable-pip-version-check
OLD := a Python from 3.11 on is needed; name one, as in: make PYTHON=python3.12

.PHONY: help demo docs docs-linkcheck test test-fast lint paper paper-quick test-browser test-oldest test-wheel fuzz fuzz-guided audit size clean faults

help:
	@echo "make demo         fit DAMVI on the bundled data and print a small table"
	@echo "make docs         build the site, and run the examples that changed; warnings are errors"
	@echo "make test         lint, types and the test suite"
	@echo "make test-fast    the tests that are not slow, in two minutes or less"
	@echo "make faults       kill, stop and starve the commands at every file operation"
	@echo "make test-browser the report in a real browser (installs Chromium when root)"
	@echo "make test-oldest  the tests on the oldest supported dependencies"
	@echo "make test-wheel   build the wheel and run the demo from it, alone"
	@echo "make fuzz         hostile model files, CSVs, fits and rows: SECONDS=600, or CASES=20000;"
	@echo "                  KIND=models, csv, files, fits or rows; SEED=1; REPLAY=.fuzz/findings/NAME"
	@echo "make audit        advisories on all dependencies, bandit, a bill of materials"
	@echo "make paper        the paper's tables and figure, what is missing of results/paper"
	@echo "make paper-quick  the same in small: Mammography in minutes"
	@echo "make bench-NAME   run benchmarks/NAME.py, such as solver or memory"
	@echo "make size         files and lines of the package (of another checkout: TREE=../other)"
	@echo "make clean        remove environments and caches"

demo: .venv/demo.stamp
	@.venv/bin/damvi demo

# Nothing is fetched while it builds. Every name of damvi's own must resolve (-n).
docs: .venv/docs.stamp
	@.venv/bin/python -m sphinx -q -W --keep-going -n -E docs docs/_build/html
	@echo "The pages are in docs/_build/html/index.html"

# Links to other sites, which needs a network.
docs-linkcheck: .venv/docs.stamp
	@.venv/bin/python -m sphinx -q -b linkcheck -D plot_gallery=0 docs docs/_build/links

test: lint
	.venv/bin/python -m pytest -n 2

test-fast: .venv/test.stamp
	.venv/bin/python -m pytest -n 2 -m "not slow"

# Every fault at every file operation, and what each left: about half an hour.
faults: .venv/test.stamp
	.venv/bin/python -m tests.faults.run -o results/faults

lint: .venv/test.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# Debian's Chromium, driven by playwright: no browser is downloaded from elsewhere.
test-browser: .venv/browser.stamp
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y chromium; } || \
	  { echo "no Chromium here: install it, as in: sudo apt-get install chromium"; exit 1; }
	.venv/bin/python -m pytest tests/report/test_browser.py

test-oldest: .venv-oldest/test.stamp
	.venv-oldest/bin/python -m pytest -n 2

test-wheel: .venv/bin/python
	@rm -rf dist .venv-wheel
	@.venv/bin/python $(PIP) wheel --no-deps --wheel-dir dist .
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python $(PIP) install dist/*.whl
	cd "$$(mktemp -d)" && "$(CURDIR)/.venv-wheel/bin/damvi" demo

# Each case in a forked child with limits, kernels with bounds checked; see SECURITY.md.
fuzz: .venv/test.stamp
	.venv/bin/python -m tests.fuzz $(if $(REPLAY),--replay $(REPLAY),--kind $(or $(KIND),all) \
	  --seed $(or $(SEED),0) $(if $(CASES),--cases $(CASES)) \
	  $(if $(CASES)$(SECONDS),,--seconds 60) $(if $(SECONDS),--seconds $(SECONDS)) \
	  --log results/fuzz)

# The same mutations of model files, led by what they reach of damvi.io, in one process.
fuzz-guided: .venv/test.stamp
	@.venv/bin/python $(PIP) install atheris || \
	  { echo "atheris does not install on this Python; make fuzz does without"; exit 1; }
	.venv/bin/python -m tests.fuzz --kind models --cases 0
	.venv/bin/python -m tests.fuzz.guided .fuzz/sound -artifact_prefix=.fuzz/ -max_len=400 \
	  -timeout=30 -max_total_time=$(or $(SECONDS),60)

# What has not been looked at has not passed: 1 if something is open, 3 if nobody was there
# to ask. See benchmarks/audit.py; the output is in results/audit.
audit: .venv/test.stamp .venv-audit/stamp
	@rm -rf dist .venv-wheel
	@.venv/bin/python $(PIP) wheel --no-deps --wheel-dir dist .
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python $(PIP) install dist/*.whl
	.venv-audit/bin/python benchmarks/audit.py newest=.venv/bin/python \
	  oldest=constraints-oldest.txt --wheel .venv-wheel/bin/python

# Datasets that are not fetched are looked for in DATA, as in: make paper DATA=folder
paper: .venv/bench.stamp
	.venv/bin/python -m benchmarks.paper $(if $(DATA),--data $(DATA)) -o results/paper

paper-quick: .venv/bench.stamp
	.venv/bin/python -m benchmarks.paper --quick

bench-%: .venv/bench.stamp
	.venv/bin/python benchmarks/$*.py

TREE ?= .
size:
	@$(PYTHON) benchmarks/size.py $(TREE)

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(OLD)")'
	@$(PYTHON) -m venv .venv

.venv/demo.stamp: pyproject.toml | .venv/bin/python
	@echo "Setting up the environment (once)..."
	@.venv/bin/python $(PIP) install --editable .
	@touch $@

.venv/test.stamp: pyproject.toml | .venv/bin/python
	@echo "Setting up the test environment (once)..."
	@.venv/bin/python $(PIP) install --editable '.[test]'
	@touch $@ .venv/demo.stamp

.venv/docs.stamp: pyproject.toml | .venv/bin/python
	@echo "Setting up the environment of the documents (once)..."
	@.venv/bin/python $(PIP) install --editable '.[dask,docs,report]'
	@touch $@ .venv/demo.stamp

.venv/browser.stamp: .venv/test.stamp
	@echo "Setting up the browser's driver (once)..."
	@.venv/bin/python $(PIP) install --editable '.[test,browser]'
	@touch $@

.venv/bench.stamp: pyproject.toml | .venv/bin/python
	@echo "Setting up the benchmark environment (once)..."
	@.venv/bin/python $(PIP) install --editable '.[dask,paper]'
	@touch $@ .venv/demo.stamp

.venv-audit/stamp: pyproject.toml
	@echo "Setting up the audit's tools (once)..."
	@test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	@.venv-audit/bin/python $(PIP) install --editable '.[audit]'
	@touch $@

.venv-oldest/test.stamp: pyproject.toml constraints-oldest.txt
	@echo "Setting up the oldest supported environment (once)..."
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python $(PIP) install --editable '.[test]' --constraint constraints-oldest.txt
	@touch $@

clean:
	rm -rf .venv .venv-audit .venv-oldest .venv-wheel dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz
