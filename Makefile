# Two commands: `make demo` measures a small map on this machine, `make test` runs all tests that need no
# test hosts.

BIN := .venv/bin
PYTHON ?= python3

# Where bytecode is not written, each of the hundreds of processes of a test run compiles our modules again: 0.2 s each.
export PYTHONDONTWRITEBYTECODE =

# Files of half a minute that would come last, and for which two of three processes would wait.
LONG_FILES := tests/unit/search tests/unit/services tests/unit/simulation

.PHONY: demo test check setup clean

demo: setup  ## start Kafka and Spark, measure scenarios/quick.yaml, draw the maps
	$(BIN)/bench run scenarios/quick.yaml

test: setup build/spark-classes.jsa  ## all tests that need no test hosts, with real Kafka, Pulsar and Spark
	mkdir -p build
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --junitxml=build/tests.xml $(LONG_FILES) tests
	@echo "wrote build/tests.xml"

build/spark-classes.jsa: requirements.lock tests/spark_classes.py | setup
	-$(BIN)/python tests/spark_classes.py

check: setup  ## lint, types, layers
	$(BIN)/tox -q --parallel -e lint,types,layers

setup:  ## install everything that is missing into .venv
	PYTHON=$(PYTHON) infra/setup.sh

clean:  ## end and delete what a killed run left behind
	$(BIN)/bench clean
