# ranklens: `make demo` and `make test` are all a newcomer needs; each installs what it lacks.
.DEFAULT_GOAL := help
VENV := .venv
RUNTIME := build/runtime
PYTHON := $(VENV)/bin/python
JOBS ?= $(shell nproc)
# One more than there are processors: a fifth of the time a test waits for a job or a debugger.
TEST_JOBS ?= $(shell expr $$(nproc) + 1)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what demo and test need, build the runtime (quick when nothing is to be done)
	@.ci/setup run
	@$(MAKE) --no-print-directory --silent runtime

.PHONY: runtime
runtime:
	@$(MAKE) --no-print-directory --silent -C runtime-hooks -j$(JOBS)
	@for command in rankrun rankmpir rankcc rankcxx rankfort; do \
	    [ "$$(readlink $(VENV)/bin/$$command)" = "../../$(RUNTIME)/bin/$$command" ] || \
	    ln -sfn "../../$(RUNTIME)/bin/$$command" "$(VENV)/bin/$$command"; done

.PHONY: demo
demo: setup ## run the bundled Jacobi program under 8 virtual ranks and look into it
	@docs/demo.sh

.PHONY: test
test: setup ## run every test but those on stock AMPI, on PiP and under launchers
	@.ci/setup test
	@$(PYTHON) -m pytest -n $(TEST_JOBS) --dist worksteal -q --ignore tests/charm --ignore tests/pip \
	    --ignore tests/jobs/test_launchers.py $(PYTEST_ARGS)

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: setup ## fuzz every decoder for FUZZ_SECONDS in all (60); FUZZ="registry elf" names some (docs/development.md)
	@.ci/setup test
	@.ci/setup fuzz
	@$(PYTHON) -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

.PHONY: test-charm
test-charm: setup ## run the tests on stock AMPI; CHARM_HOME says where it is built
	@.ci/setup test
	@[ -n "$$CHARM_HOME" ] || echo 'SKIPPED: tests/charm needs CHARM_HOME, the build directory of Charm++ that holds bin/ampicc'
	@[ -z "$$CHARM_HOME" ] || $(PYTHON) -m pytest -q tests/charm

.PHONY: test-launchers
test-launchers: setup ## run jobs of several hosts under MPICH, Open MPI and Slurm, which it installs (root)
	@.ci/setup test
	@.ci/setup launchers
	@$(PYTHON) -m pytest -q -rs -n $(JOBS) tests/jobs/test_launchers.py tests/jobs/test_mpir.py $(PYTEST_ARGS)

.PHONY: test-gdb-suite
test-gdb-suite: setup ## run GDB's own test suite in processes and in ranks, and compare; GDB_SRC says where GDB's sources are
	@.ci/setup test
	@[ -n "$$GDB_SRC" ] || echo 'SKIPPED: GDB_SRC has to name a checkout of GDB, the folder that holds gdb/testsuite'
	@[ -z "$$GDB_SRC" ] || $(PYTHON) -m tests.gdb_suite "$$GDB_SRC" $(GDB_TESTS)

.PHONY: test-pip
test-pip: setup ## run the tests on Process-in-Process; PIP_HOME says where it is
	@.ci/setup test
	@[ -n "$$PIP_HOME" ] || echo 'SKIPPED: tests/pip needs PIP_HOME, the folder that holds include/pip/pip.h and lib/libpip.so'
	@[ -z "$$PIP_HOME" ] || $(PYTHON) -m pytest -q tests/pip

.PHONY: test-debuggers
test-debuggers: ## run demo and the debuggers' tests; SUITE=trixie (or sid, jammy ...): in that system (root; docs/development.md)
	@[ -n "$(SUITE)" ] || .ci/test-debuggers $(TESTS)
	@[ -z "$(SUITE)" ] || .ci/in-system $(SUITE) .ci/test-debuggers $(TESTS) || failed=1; \
	    python3 -m tests.support.debugger_runs build/$(if $(SUITE),systems/$(SUITE)/ranklens/build/)debuggers.json; \
	    exit $${failed:-0}

.PHONY: test-aarch64-system
test-aarch64-system: setup ## run tests in an emulated AArch64 system (root, some hours); TESTS names others (docs/processors.md)
	@.ci/setup test
	@.ci/in-aarch64 .venv/bin/python -m pytest -v -o timeout=0 $(or $(TESTS), $(shell cat .ci/aarch64/tests))

MPICC ?= mpicc
.PHONY: transport
transport: setup ## build what connects hosts, with the site's MPI; MPICC=mpicc names its compiler (docs/jobs.md)
	@$(MAKE) --no-print-directory --silent -C runtime-hooks transport MPICC=$(MPICC)

.PHONY: charm-hook
charm-hook: ## build the hook module for stock AMPI, and install it in CHARM_HOME/lib
	@$(MAKE) --no-print-directory --silent -C runtime-hooks/adapters/charm

.PHONY: lint
lint: setup ## check style, types, the direction of imports, C format and shell scripts
	@.ci/setup test
	@.ci/setup lint
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy pieglobalsfind gdbext inspector lldbext tests
	@$(VENV)/bin/lint-imports --no-cache
	@.ci/include_layers.py
	@$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(PYTHON) .ci/check_words_to_avoid.py
	@$(PYTHON) .ci/check_reach.py pieglobalsfind gdbext lldbext inspector
	@git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' ':!:*mpif*.h' | xargs -0 clang-format --dry-run --Werror
	@git ls-files -z '.ci/*' packaging/debian '*.sh' runtime-hooks/embedded/rankcc | xargs -0 grep -lZE '^#!.*(ba)?sh' | xargs -0 shellcheck

.PHONY: format
format: ## rewrite Python and C sources in the project's format
	@.ci/setup lint
	@$(VENV)/bin/ruff check --fix-only -q . ; $(VENV)/bin/ruff format -q .
	@git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' ':!:*mpif*.h' | xargs -0 clang-format -i

.PHONY: bench
bench: setup ## measure what the documents claim, write docs/benchmarks.md
	@.ci/setup test
	@$(PYTHON) -m tests.bench

.PHONY: install
install: ## install runtime, headers and registry library under PREFIX (default /usr/local), for pkg-config rank-debug
	@$(MAKE) --no-print-directory --silent -C runtime-hooks -j$(JOBS) install

.PHONY: pages
pages: setup
	@.ci/setup test
	@rm -rf build/share
	@PYTHONPATH=. $(PYTHON) docs/man_pages_and_completions.py

.PHONY: wheel
wheel: pages ## build the wheel of the tools that look into jobs, in build/wheel
	@rm -rf build/lib build/bdist.* # setuptools would add what an earlier build left there
	@$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir build/wheel .

.PHONY: deb
deb: wheel ## build a Debian package of tools and runtime, in build/deb
	@packaging/debian/build

.PHONY: site
site: setup ## build the documentation site, in build/site
	@.ci/setup site
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs --quiet build --strict

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf build $(VENV)
