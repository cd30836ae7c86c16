# Sluice: what people type. Each target does its own set-up; the work is meson's and tools/'s.
BUILD ?= build
EVENTS ?= 1000000
SIMS ?= sim swap-sim cluster-sim
SEED ?=
MUTANTS ?=
PREFIX ?= /usr/local
DESTDIR ?=
SCENES ?=
STEPS ?=
CALLS ?= 1000000
REPLAY ?=
SECONDS_PER_FUZZER ?= 10
MAKEFLAGS += --no-print-directory

.PHONY: all fast watch gpu-check test-list help setup demo test bench sanitize starve fuzz sim explore scenes outside kubernetes curves crash storm lint format install uninstall package tarball clean contract conformance
all: setup ## build everything into build/ (default)
	@tools/build $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:
	@tools/setup

FRAMEWORK ?=
demo: all ## three programs on one GPU, without and with Sluice (software GPU; under a minute); KEEP=1: then the page; FRAMEWORK=tinygrad
	@FRAMEWORK="$(FRAMEWORK)" tests/demo/demo $(BUILD)

T ?=
test: all ## all tests, on the software GPU: no GPU needed (T="NAME ...": these alone; * stands for any letters)
	@tools/run-tests $(BUILD) $(if $(T),--named $(foreach name,$(T),'$(name)'))

fast: all ## unit tests and small scenes, for every edit: under two minutes on two cores
	@tools/run-tests $(BUILD) --fast

watch: ## make fast whenever a file has changed (T="NAME ...": make test T= instead)
	@tools/setup --watch
	@while git ls-files --cached --others --exclude-standard | entr -nd $(MAKE) $(if $(T),test,fast) T='$(T)'; [ $$? = 2 ]; do :; done

outside: all ## of the tests those with frameworks and suites from PyPI (needs the network)
	@tools/run-tests $(BUILD) --suite outside

kubernetes: all ## scenes on a real Kubernetes with software GPUs (SCENES="name ..."; needs root and Go, which builds it once: minutes)
	@tests/kubernetes/run $(BUILD) $(SCENES)

curves: all ## the pictures and tables of docs/frameworks.md, from frameworks on the software GPU (needs the network; minutes)
	@tools/framework-curves $(BUILD)

test-list: all ## which test stands for which failure of other GPU-sharing layers
	@tools/test-list $(BUILD)

contract: all ## facts about the driver, checked on the software GPU (or the real one, if there is one)
	@if [ -e /dev/nvidiactl ]; then \
		$(BUILD)/tests/contract/contract; \
	else \
		$(BUILD)/sluice softgpu -- $(BUILD)/tests/contract/contract; \
	fi

CASES ?=
conformance: all ## the cluster machine against another scheduler's cases (CASES=FILE)
	@$(BUILD)/tests/conformance/conformance "$(CASES)"

bench: setup ## every budget measured; writes build/bench.json
	@tools/bench $(BUILD)

OUT ?= gpu-check-out
gpu-check: all ## everything that only a real GPU can tell, in one file beside the software GPU's column (OUT=gpu-check-out)
	@tools/gpu-check $(OUT)

sanitize: setup ## the tests again under ASan+UBSan, and the threaded ones under TSan
	@tools/sanitize

STARVED ?=
starve: setup ## the system tests while threads are starved at random (STARVED="swap-turns storm")
	@tools/starve $(STARVED)

fuzz: setup ## every parser under libFuzzer (SECONDS_PER_FUZZER=10)
	@tools/fuzz $(SECONDS_PER_FUZZER)

# The long run of one of them takes minutes: make sim EVENTS=10000000 SIMS=swap-sim SEED=31337.
sim: all ## the policy in virtual time (EVENTS=1000000 SEED=n SIMS="sim swap-sim cluster-sim"; MUTANTS=all breaks it rule by rule)
	@SIMS="$(SIMS)" tools/sim $(BUILD) "$(EVENTS)" "$(SEED)" "$(MUTANTS)"

# Without DEPTH each world is searched for its part of the time.
DEPTH ?= 99
WORLD ?=
SECONDS ?= 120
explore: all ## every order of events in small worlds, against the node machine (DEPTH=n WORLD=name SECONDS=120)
	@$(BUILD)/tests/sim/explore --known tests/sim/explore/known --depth $(DEPTH) --seconds $(SECONDS) $(if $(WORLD),--world $(WORLD))

scenes: all ## one script per promise of the product, with its feature and without (SCENES="name ...")
	@tests/scenes/run $(BUILD) $(SCENES)

crash: all ## the runtime and the daemon killed at each of their steps (STEPS="NAME ..."); and the guarantee row
	@tools/crash $(BUILD) $(STEPS)

storm: all ## random driver calls, plain and under Sluice, compared (CALLS=1000000 SEED=n; REPLAY=file)
	@tools/storm $(BUILD) "$(CALLS)" "$(SEED)" "$(REPLAY)"

lint: setup ## format, layering, warnings as errors with gcc and clang, glibc, shell
	@tools/lint

format: setup
	@tools/lint --fix-format

install: all ## into PREFIX=/usr/local, under DESTDIR= if set
	@tools/install install $(BUILD) "$(PREFIX)" "$(DESTDIR)"

uninstall: ## take away what install put there
	@tools/install uninstall $(BUILD) "$(PREFIX)" "$(DESTDIR)"

RELEASE ?= 1
package: all ## Debian packages, into build/packages (RELEASE=2: an upgrade; FORMAT=rpm: RPM packages)
	@tools/package $(if $(filter rpm,$(FORMAT)),--rpm) $(BUILD) $(RELEASE)

tarball: all ## for machines where one is not root: build/sluice-VERSION-linux-ARCH.tar.gz
	@tools/tarball $(BUILD)

clean: ## remove the build folders
	@rm -rf build build-*
