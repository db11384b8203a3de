# make check      install, and run the main job on a real vLLM config
# make test       install the test extra, and run the quick tests
# make test-vllm  install the vllm extra, fetch four vLLM releases, and run the tests that need them
# make lint       formatting, lint, types, import rules
# make format     let ruff repair what it can
# make wheel      build a wheel and run every verb of it in an empty environment
# make lock       write requirements/*.txt again from pyproject.toml
#
# Every path is relative: the checkout may lie in a directory with spaces in its name.

PYTHON ?= python3
JOBS ?= auto
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input install -qq --no-deps --no-compile
# Where pip finds torch without CUDA: the build on PyPI needs libraries that --no-deps leaves out.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
RELEASES := 0.23.0 0.25.0 0.27.0 0.33.0
EXAMPLE := examples/decode-consumer.yaml

# A checkout moved or copied together with its .venv is installed again: an editable install holds absolute paths.
ifneq ($(shell cat $(VENV)/.where 2>/dev/null),$(CURDIR))
$(shell rm -f $(VENV)/.installed-*)
endif

.PHONY: help check test test-vllm lint format wheel lock dev clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^# make/s/^# //p' Makefile

$(VENV)/.installed-run: requirements/run.txt pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(PIP) --requirement requirements/run.txt
	$(PIP) --no-build-isolation --editable .
	@pwd > $(VENV)/.where
	@touch $@

$(VENV)/.installed-test: requirements/test.txt $(VENV)/.installed-run
	$(PIP) --requirement requirements/test.txt
	@touch $@

$(VENV)/.installed-dev: requirements/dev.txt $(VENV)/.installed-test
	$(PIP) --requirement requirements/dev.txt
	@touch $@

$(VENV)/.installed-vllm: requirements/vllm.txt $(VENV)/.installed-test
	$(PIP) --compile --retries 1 --extra-index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements/vllm.txt)"
	$(PIP) --compile --requirement requirements/vllm.txt
	@touch $@

# $(call expect,PROFILE,CODE): the check of the example at this profile must end with this exit code.
define expect
	@echo; echo "\$$ fencepost check $(EXAMPLE) --profile $(1)"
	@$(VENV)/bin/fencepost check $(EXAMPLE) --profile $(1); code=$$?; test $$code -eq $(2) || \
	  { echo "make check: profile $(1) ended with exit code $$code, expected $(2)" >&2; exit 1; }
endef

check: $(VENV)/.installed-run
	$(call expect,vllm-0.23,1)
	$(call expect,vllm-0.27,1)
	$(call expect,vllm-0.33,0)
	@echo; echo "make check: as expected: vllm-0.23 VIOLATED, vllm-0.27 VIOLATED, vllm-0.33 HOLDS"

test: $(VENV)/.installed-test
	$(PY) -m pytest -n $(JOBS)

test-vllm: $(VENV)/.installed-vllm
	$(VENV)/bin/fencepost vllm fetch $(RELEASES)
	$(PY) -m pytest -n $(JOBS) -m "vllm and not slow"

dev: $(VENV)/.installed-dev

lint: dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m basedpyright
	$(PY) -c 'from importlinter.cli import lint_imports_command as run; run()' --no-cache --no-logo

format: dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

wheel: dev
	$(PY) tools/try_wheel.py

lock: dev
	$(PY) tools/lock.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
