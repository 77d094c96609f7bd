# Two commands: `make demo` measures a small map on this machine, `make test` proves that the harness can be trusted.

BIN := .venv/bin
PYTHON ?= python3

.PHONY: demo test check setup clean

demo: setup  ## stand up Kafka and Spark, find the top rates of scenarios/quick.yaml, draw the maps
	$(BIN)/bench run scenarios/quick.yaml

test: setup  ## all tests, with real Kafka and real Spark
	mkdir -p build
	$(BIN)/python -m pytest --junitxml=build/tests.xml
	@echo "wrote build/tests.xml"

check: setup  ## lint, types, layers
	$(BIN)/tox -q -e lint,types,layers

setup:  ## everything that is missing, into .venv
	PYTHON=$(PYTHON) infra/setup.sh

clean:  ## what a killed run left behind
	$(BIN)/bench clean
