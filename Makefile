# Everything a newcomer needs: `make demo` and `make test`. Both set the project up first.
PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/.runtime
DEV := .venv/.dev
DOCS := .venv/.docs

.PHONY: help docs lock demo examples test check lint types bench gen conform slow clean mutants fixes mutation fuzz growth oracle
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(RUNTIME): pyproject.toml
	@test -x $(BIN)/python || { echo "making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "installing ptokit ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(DEV): $(RUNTIME)
	@echo "installing the development tools ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c dev.lock -e '.[dev]'
	@touch $@

$(DOCS): $(DEV)
	@echo "installing what makes the site ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

demo: $(RUNTIME) ## Set up, then show a kernel, a rule with its fix, a race and a hang
	@$(BIN)/ptokit demo

test: $(DEV) ## Set up, then run all tests
	@$(BIN)/python -m pytest -n auto

examples: $(RUNTIME) ## Run every example on every target, both paths, against NumPy
	@$(BIN)/python examples/run_all.py

slow: $(DEV) ## The long generated test runs; with Ray, where it can be installed
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[ray]' || echo "without Ray: nothing runs on clusters"
	@$(BIN)/python -m pytest -n auto -m slow

lint: $(DEV) ## Style and common mistakes
	@$(BIN)/ruff check src tests tools bench examples
	@$(BIN)/ruff format --check src tests tools bench examples

types: $(DEV) ## Static types
	@$(BIN)/pyright

check: lint types test ## Lint, types and tests

bench: $(DEV) ## Speed: instructions, whole kernels, lowering, text (bench/README.md)
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/starting.py
	@$(BIN)/python bench/compiling.py
	@$(BIN)/python bench/kernels.py
	@$(BIN)/python bench/fast.py
	@$(BIN)/python bench/values.py
	@$(BIN)/python bench/lowering.py
	@$(BIN)/python bench/text.py
	@$(BIN)/python bench/cpp.py

growth: $(DEV) ## How the cost of the checks, and of all that comes before a run, grows
	@$(BIN)/python bench/growth.py

lock: $(DEV) ## Write down the versions that this environment has
	@sed -n '/^#/p' dev.lock > .venv/dev.lock
	@$(BIN)/python -m pip freeze --exclude-editable | sort -f >> .venv/dev.lock
	@mv .venv/dev.lock dev.lock

gen: $(DEV) ## Rewrite the generated files (API, instruction pages, error index)
	@$(BIN)/python tools/gen.py
	@$(BIN)/python tools/races_page.py
	@$(BIN)/python tools/notebook.py

docs: $(DOCS) ## The documentation as a site, without warnings: build/site/index.html
	@$(BIN)/python tools/docs_site.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -q -f build/mkdocs.yml
	@echo "open build/site/index.html"

FUZZERS := tests.fuzz:0:2000 tests.fuzz.texts:0:5000 tests.fuzz.api:0:5000

fuzz: $(DEV) ## Random kernels, mutated texts and hostile calls, with fixed seeds
	@failed=0; for each in $(FUZZERS); do \
	  $(BIN)/python -m $${each%%:*} --seeds $${each#*:} || failed=1; done; exit $$failed

oracle: $(DEV) ## The race checker against happens-before by brute force, on random programs
	@$(BIN)/python -m tests.hazards.oracle --seeds 0:5000

mutation: $(DEV) ## Change the package in some 120 places, one at a time; the tests must notice
	@$(BIN)/python tools/mutation_run.py

# With RESUME=1 a run that was stopped goes on where it was.
mutants: $(DEV) ## Take synchronisation out of programs or get it wrong, piece by piece; all must be found
	@$(BIN)/python tools/mutants.py $(if $(RESUME),--resume)
	@$(BIN)/python tools/cpp_mutants.py $(if $(RESUME),--resume)

fixes: $(DEV) ## Repair every race mutant of the examples and 200 random kernels, and run them
	@$(BIN)/python tools/fixes.py $(if $(RESUME),--resume)

conform: $(RUNTIME) ## Run the recorded cases, when they lie beside the checkout
	@$(BIN)/ptokit conform ../shared/golden

clean: ## Remove the environment and caches
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
