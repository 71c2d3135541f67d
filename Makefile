# SPDX-License-Identifier: Apache-2.0
# Each target sets up what it needs in .venv of this checkout. `make help` lists them.

PYTHON ?= python3
# Flags for the command behind a target: make prove ARGS="--no-cache", make test ARGS="-k house".
ARGS ?=
# Flags for pip, for a machine whose package index needs them.
PIP_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt $(PIP_ARGS)

# Mooncake has two builds with the same import name. The CUDA build does not import without an
# NVIDIA driver. There are wheels for Linux on x86_64; elsewhere the tests that need it skip.
HAS_DRIVER := $(shell { test -e /proc/driver/nvidia || nvidia-smi -L; } >/dev/null 2>&1 && echo yes)
ifeq ($(shell uname -s -m),Linux x86_64)
MOONCAKE ?= $(if $(HAS_DRIVER),mooncake,mooncake-cpu)
else
MOONCAKE ?=
endif
MOONCAKE_OTHER = $(if $(filter mooncake,$(MOONCAKE)),mooncake-transfer-engine-non-cuda,mooncake-transfer-engine)

# The stamps say what .venv holds. Proving needs no torch, so it has a stamp of its own. The second
# one carries the Mooncake build in its name: a driver that appears later makes it out of date.
PROVE_DEPS := $(VENV)/.stamp-prove
SECOND_DEPS := $(VENV)/.stamp-second
TEST_DEPS := $(VENV)/.stamp-test-$(or $(MOONCAKE),plain)

LINT_TREE := build/lint

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pip runs in one .venv would trip over each other; the commands are parallel themselves.
.NOTPARALLEL:
.PHONY: prove prove-cvc5 prove-seeds mutate test demo generate check soundness bench lint format system-deps browser audits clean help

prove: $(PROVE_DEPS) ## Prove the spec, emit the planner from it, check what was emitted
	$(BIN)/kvreshard prove $(ARGS)
	$(BIN)/kvreshard generate
	$(BIN)/kvreshard check
	$(BIN)/python -m kvreshard.proofs.soundness SOUNDNESS.md

test: $(TEST_DEPS) system-deps browser ## Run the tests
	$(BIN)/python -m pytest $(ARGS)

demo: $(TEST_DEPS) system-deps ## Move a KV cache between groups of different size, compare every byte
	$(BIN)/kvreshard demo $(ARGS)

prove-cvc5: $(SECOND_DEPS) ## Put every obligation to cvc5 too, and record what it says
	$(BIN)/kvreshard prove-cvc5 $(ARGS)
	$(BIN)/kvreshard generate
	$(BIN)/python -m kvreshard.proofs.soundness SOUNDNESS.md

prove-seeds: $(PROVE_DEPS) ## Prove with many solver seeds and report the spread
	$(BIN)/kvreshard prove-seeds $(ARGS)

mutate: $(PROVE_DEPS) ## Break every operator of every formula; an invariant has to notice
	$(BIN)/kvreshard mutate $(ARGS)
	$(BIN)/kvreshard cores
	$(BIN)/python -m kvreshard.proofs.soundness SOUNDNESS.md

generate: $(PROVE_DEPS) ## Emit generated/ from the proved spec
	$(BIN)/kvreshard generate $(ARGS)

check: $(PROVE_DEPS) ## Prove generated/ equal to the spec as it stands, without emitting it anew
	$(BIN)/kvreshard check $(ARGS)

soundness: $(PROVE_DEPS) ## Write the generated sections of SOUNDNESS.md
	$(BIN)/python -m kvreshard.proofs.soundness SOUNDNESS.md

bench: $(PROVE_DEPS) ## Prove without the cache and print what each obligation takes
	$(BIN)/python benchmarks/prove.py $(ARGS)

lint: $(TEST_DEPS) ## ruff check, ruff format --check, mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/link_tree.py $(LINT_TREE)
	MYPYPATH=$(LINT_TREE) $(BIN)/mypy --strict $(ARGS) $(LINT_TREE) \
		| $(BIN)/python tools/link_tree.py --rewrite $(LINT_TREE)

format: $(TEST_DEPS) ## Format the code and apply ruff's safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

system-deps: $(BIN)/pip ## Install the system libraries Mooncake needs, where they are missing
	@$(if $(MOONCAKE),$(BIN)/python tools/system_deps.py,:)

audits: $(PROVE_DEPS) ## Audit released planners anew, write docs/audits/ (ARGS=--large: vllm too)
	$(BIN)/python tools/write_audits.py $(ARGS)

browser: $(BIN)/pip ## Install a Chromium for the tests of HTML pages, where it is missing
	@$(BIN)/python tools/system_deps.py browser

clean: ## Remove build output and caches; keeps .venv
	rm -rf build dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

help: ## Show this list
	@echo 'usage: make TARGET [ARGS="flags for its command"] [PYTHON=python3.12]'
	@sed -n 's/^\([a-z][a-z0-9-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='|' read -r name text; do printf '  %-11s %s\n' "$$name" "$$text"; done

# pip, and not python, marks a usable environment: without ensurepip there is python alone.
$(BIN)/pip:
	@command -v "$(PYTHON)" >/dev/null \
		|| { echo "make: no '$(PYTHON)' found; name one with PYTHON=..., 3.10 or newer" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "make: kvreshard cores Python 3.10 or newer, '$(PYTHON)' is" \
			"$$("$(PYTHON)" --version 2>&1); name another with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) \
		|| { echo "make: '$(PYTHON) -m venv' failed; on Debian and Ubuntu it needs the package" \
			"python3-venv" >&2; exit 1; }

$(PROVE_DEPS): pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP_INSTALL) --editable '.[prove]'
	@touch $@

$(SECOND_DEPS): pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP_INSTALL) --editable '.[second]'
	@touch $@ $(PROVE_DEPS)

$(TEST_DEPS): pyproject.toml constraints.txt | $(BIN)/pip
	@rm -f $(VENV)/.stamp-test-*
	@$(if $(MOONCAKE),$(BIN)/python -m pip uninstall --quiet --yes $(MOONCAKE_OTHER) 2>/dev/null,:)
	$(PIP_INSTALL) --editable '.[dev$(if $(MOONCAKE),$(comma)$(MOONCAKE))]'
	@touch $@ $(PROVE_DEPS) $(SECOND_DEPS)

comma := ,
