# Everything that starts Fermata. Each target makes .venv first if need be; Python 3.11 or newer is all it needs.

PYTHON ?= python3
# Many tests wait for processes. Each test process has a Redis database of its own, 10 to 15: six at most.
PROCESSES ?= $(shell $(PYTHON) -c "import os; print(min(6, os.cpu_count() * 3 // 2))")
ARGS ?=

RUN := $(PYTHON) fermata/launcher/bootstrap.py
DEV := $(RUN) --dev
LAUNCHER := -m fermata.launcher

# A deployment as `check --deploy` should see one; nothing connects.
DEPLOYED := FERMATA_BASE_URL=https://fermata.example \
	FERMATA_SECRET_KEY=an-example-for-the-deployment-check-and-for-nothing-else-0123456789 \
	FERMATA_AUDIT_KEY=Zm9yLXRoZS1kZXBsb3ltZW50LWNoZWNrLW9ubHktLS0= \
	DATABASE_URL=postgres://fermata@database.example/fermata \
	CELERY_BROKER_URL=amqps://fermata@broker.example//

.DEFAULT_GOAL := help
.PHONY: help up stop test bench check lint types layers templates deployment migrations

help:
	@echo "make up      run Fermata at http://127.0.0.1:8000 (PORT), in the foreground; Ctrl-C stops it"
	@echo "make stop    stop it, also what a kill has left of it"
	@echo "make test    run the tests, three for two cores and six at most (PROCESSES); ARGS=\"-k word\" goes to pytest"
	@echo "make bench   measure Fermata beside its peers and write benchmarks/RESULTS.md; QUICK=1 takes three minutes;"
	@echo "             INBOX=1 measures the inbox with a million pending cards instead (a quarter of an hour, 18 GB)"
	@echo "make check   lint, types, layers, templates, deployment settings, migrations"
	@echo ""
	@echo "FERMATA_HOME (.fermata) is where the embedded PostgreSQL and Valkey keep their data;"
	@echo "DATABASE_URL and CELERY_BROKER_URL name services of your own in their place."

up:
	@$(RUN) $(LAUNCHER) up

stop:
	@$(RUN) $(LAUNCHER) stop

test:
	@$(DEV) $(LAUNCHER) run-with-services -- .venv/bin/python -m pytest -n $(PROCESSES) --dist loadgroup $(ARGS)

bench: .venv-bench/installed
	@$(RUN) $(LAUNCHER) run-with-services -- .venv-bench/bin/python -m benchmarks$(if $(INBOX),.inbox)

# The peers' dependencies stay out of Fermata's own environment.
.venv-bench/installed: requirements.txt requirements-bench.txt
	@$(RUN) -m venv --clear .venv-bench
	@echo "Installing the peers (a minute or so)"
	@.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-bench.txt
	@touch $@

check: lint types layers templates deployment migrations

lint:
	$(DEV) -m ruff check
	$(DEV) -m ruff format --check

types:
	$(DEV) -m mypy

layers:
	$(DEV) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"

templates:
	$(DEV) -m djlint templates --lint --quiet

deployment:
	$(DEPLOYED) $(DEV) manage.py check --deploy --fail-level WARNING

migrations:
	$(DEV) $(LAUNCHER) run-with-services -- .venv/bin/python manage.py makemigrations --check --dry-run
