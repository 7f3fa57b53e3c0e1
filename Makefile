# The commands of a checkout. `make help` lists them.
#
#   PYTHON=python3.12 make test     another interpreter than the first one that is new enough
#   make test T=tests/parsers       only these tests
#   make demo ARGS="--list"         arguments for the demo

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-stack test test-install test-k8s check bench fix wheelhouse screenshots dashboard-types

VENV := .venv
BIN := $(VENV)/bin
# What the tests need beside Python packages. As root, `make test` installs what is missing.
DEBIAN_PACKAGES := prometheus prometheus-alertmanager infiniband-diags ibsim-utils opensm iproute2 pciutils gcc libc6-dev \
	slurmctld slurmd slurm-client munge systemd-container chromium fonts-dejavu-core
SAY := printf '\n== %s\n'
# Two a core: the end-to-end tests mostly wait.
WORKERS ?= $(shell echo $$(( 2 * $$(nproc) > 16 ? 16 : 2 * $$(nproc) )))
T ?=
ARGS ?=
MACHINES ?= x86_64 aarch64
PYTHON_VERSIONS ?= 3.11 3.12 3.13

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.runtime ## start the daemon on a simulated node and print its address (no hardware needed)
	@exec $(BIN)/npu-watchd demo $(ARGS)

demo-stack: $(VENV)/.runtime ## four nodes, Prometheus and Alertmanager, and a story of ten minutes in two and a half
	@exec $(BIN)/python tools/demo_stack.py $(ARGS)

test: $(VENV)/.dev ## everything that must hold: format, lint, types, generated docs, tests
	@tools/debian_packages.sh $(DEBIAN_PACKAGES)
	@$(MAKE) --no-print-directory check
	@$(SAY) 'tests'
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(T)

test-k8s: $(VENV)/.dev ## the Kubernetes tests on a real kube-apiserver as well; building it takes 7 minutes, once
	@tools/kube_apiserver.sh .kube
	@NPU_WATCHD_KUBE_APISERVER=.kube/kube-apiserver $(BIN)/python -m pytest $(or $(T),tests/sinks/actuators)

check: $(VENV)/.dev ## the part of `make test` that takes seconds
	@$(SAY) 'format' && $(BIN)/ruff format --check .
	@$(SAY) 'lint' && $(BIN)/ruff check .
	@$(SAY) 'types' && $(BIN)/mypy
	@$(SAY) 'generated docs' && $(BIN)/python -m npu_watchd.reference --check && echo 'as they would be made now'

bench: $(VENV)/.dev ## speed and size, against the limits that we hold ourselves to
	@$(BIN)/python -m tests.bench $(ARGS)

fix: $(VENV)/.dev ## format, mend what lint can mend, make the generated docs anew
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/python -m npu_watchd.reference

test-install: $(VENV)/.dev ## the tar of `make wheelhouse` on a node without network, in a container; as root
	@tools/debian_packages.sh $(DEBIAN_PACKAGES)
	@NPU_WATCHD_TEST_INSTALL=1 $(BIN)/python -m pytest -n 0 tests/test_install.py

dashboard-types: ## the dashboards against the types of Grafana's own schema; takes Node.js and some npm packages
	@tools/dashboard_types/check.sh

screenshots: $(VENV)/.dev ## the dashboards as pictures in .screenshots/; takes Node.js, chromium and 460 MB of npm packages, once
	@cd tools/screenshots && { [ -d node_modules ] || npm install --ignore-scripts --no-package-lock --no-audit --no-fund; }
	@$(BIN)/python tools/screenshots/draw.py .screenshots

wheelhouse: $(VENV)/.runtime ## one tar for nodes without network, in dist/ (MACHINES="aarch64" PYTHON_VERSIONS="3.11" for less)
	@tools/wheelhouse.sh $(BIN)/python "$(MACHINES)" "$(PYTHON_VERSIONS)"

$(VENV)/.runtime: requirements.txt requirements-build.txt pyproject.toml tools/environment.sh
	@PYTHON='$(PYTHON)' tools/environment.sh $(VENV) requirements.txt requirements-build.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt pyproject.toml tools/environment.sh
	@PYTHON='$(PYTHON)' tools/environment.sh $(VENV) requirements-dev.txt
	@touch $@
