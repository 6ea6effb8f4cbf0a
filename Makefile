# Two commands do all the set-up: `make demo` and `make test`. Both need CPython 3.11+, pip and make.

PYTHON ?= python3
BIN := .venv/bin
# The same versions for the build tools as for what is installed, whichever way pip reads them.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -q --disable-pip-version-check
# A worker that crashes fails the run: replaced, it would be given no tests, and pytest would wait for ever.
# Training is tested by itself: a private loop looks at all objects of its process, and collected tests are objects.
# Bytecode is kept, whatever the environment says: each worker, and each process that a test starts, imports it.
TESTS := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --max-worker-restart=0 -rs

.PHONY: demo test test-slow format clean

demo: .venv/demo.stamp
	$(BIN)/python examples/demo.py

test: .venv/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(TESTS) tests/learn
	$(TESTS) --ignore=tests/learn

# The full sizes; the result is kept with the commit it belongs to.
test-slow: .venv/test.stamp
	mkdir -p benchmarks/results
	( echo "# The slow suite"; echo; \
	  echo "Commit $$(git describe --always --dirty --abbrev=40)"; echo; echo '```text'; \
	  $(TESTS) -m slow --durations=20; status=$$?; echo '```'; exit $$status ) > .venv/slow.md; \
	status=$$?; cat .venv/slow.md; cp .venv/slow.md benchmarks/results/slow.md; exit $$status

format: .venv/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv

BUILT_FROM := pyproject.toml constraints.txt hatch_build.py dalenius/noise/kernel.c

.venv/demo.stamp: .venv/python.stamp $(BUILT_FROM)
	$(PIP) -e '.[plot]'
	touch $@

.venv/test.stamp: .venv/python.stamp $(BUILT_FROM)
	$(PIP) -e '.[test]'
	touch $@

.venv/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Dalenius needs Python 3.11 or later: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@
