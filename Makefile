# SPDX-License-Identifier: MIT
#
# A thin front of meson: what a newcomer types. Each target installs the Debian
# packages that it lacks (VGIC_DEPS=skip leaves them alone) and configures the
# build directories that it needs. `make` alone prints what there is.

BUILD := build
ASAN  := build-asan
TSAN  := build-tsan
CLANG := build-clang
FUZZ  := build-fuzz
COVERAGE := build-coverage

# `make check SLOW=4` multiplies the time budgets, for a machine that is slow or busy.
SLOW  := 1

# What `make check` runs: each group's name, build directory, meson suite (or, after a !, command) and the
# seconds that it may take on two cores. A group over its budget fails. Their sum is the time that a developer
# waits at most, building apart; a quiet machine needs less than half of it.
CHECK_GROUPS := \
	lint:$(BUILD):!scripts/lint,--quick:25 \
	unit:$(BUILD):unit:15 \
	failure:$(BUILD):failure:20 \
	limits:$(BUILD):limits:20 \
	conformance:$(BUILD):conformance:30 \
	embedding:$(BUILD):embedding:30 \
	instructions:$(BUILD):instructions:30 \
	tools:$(BUILD):tools:20 \
	models:$(BUILD):model:30 \
	schedule:$(BUILD):schedule:20 \
	stress:$(BUILD):stress:90 \
	guests:$(BUILD):guests:50 \
	oracle:$(BUILD):oracle:60 \
	qemu-diff:$(BUILD):qemu:30 \
	asan-unit:$(ASAN):unit:35 \
	asan-failure:$(ASAN):failure:40 \
	asan-conformance:$(ASAN):conformance:40 \
	asan-corpora:$(ASAN):fuzz:30 \
	asan-stress:$(ASAN):stress:110 \
	tsan-stress:$(TSAN):stress:60 \
	tsan-vmm:$(TSAN):vmm-threads:15 \
	boot:$(BUILD):boot:70 \
	migrate:$(BUILD):migrate:60

# What `make check-all` runs after these.
MORE_GROUPS := \
	clang-tidy:$(BUILD):!scripts/lint:240 \
	mutants:$(BUILD):schedule-mutants:150 \
	helgrind:$(BUILD):helgrind:90 \
	clang-unit:$(CLANG):unit:30 \
	clang-conformance:$(CLANG):conformance:60 \
	clang-stress:$(CLANG):stress:120

# A sanitizer's report is a failure, wherever it comes from.
export ASAN_OPTIONS  ?= abort_on_error=0:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS  ?= halt_on_error=1:second_deadlock_stack=1

INSTALL_DEPS := scripts/install-deps.sh

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help deps all demo boot-test migrate-test guest-oracle kvm-oracle qemu-diff check check-all coverage limits model fuzz bench bench-instructions format lint install clean

help: ## print this list
	@echo 'libvgic: an Arm GICv3 interrupt controller in software. Targets:'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1	\2/p' Makefile | expand -t 22

deps: ## install every Debian package that any target needs
	@$(INSTALL_DEPS)

# ---- Build directories ----

.PHONY: deps-build
deps-build:
	@$(INSTALL_DEPS) --quiet build vmm test

$(BUILD)/build.ninja: | deps-build
	meson setup $(BUILD)

$(ASAN)/build.ninja: | deps-build
	meson setup $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false -Dchecks=true

$(TSAN)/build.ninja: | deps-build
	meson setup $(TSAN) -Db_sanitize=thread -Db_lundef=false -Dchecks=true

$(CLANG)/build.ninja: | deps-build
	CC=clang meson setup $(CLANG)

# Threads count what they reach, too.
$(COVERAGE)/build.ninja: | deps-build
	meson setup $(COVERAGE) -Db_coverage=true -Doptimization=0 -Dc_args=-fprofile-update=atomic

$(FUZZ)/build.ninja: | deps-build
	@$(INSTALL_DEPS) --quiet fuzz
	CC=clang meson setup $(FUZZ) -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false

all: deps-build $(BUILD)/build.ninja ## build everything into build/
	@ninja -C $(BUILD)

# ---- Running ----

demo: deps-build $(BUILD)/build.ninja ## boot Debian's arm64 Linux on libvgic, to a shell on a terminal
	@$(INSTALL_DEPS) --quiet guest
	@ninja -C $(BUILD) vmm/vgic-vmm
	@scripts/demo $(BUILD)

boot-test: deps-build $(BUILD)/build.ninja ## the same without a terminal, checked: 1 and 2 vCPUs, ids out of order, disks
	@$(INSTALL_DEPS) --quiet guest
	@ninja -C $(BUILD) vmm/vgic-vmm
	@vmm/make-guest-image.sh $(BUILD)
	@vmm/boot-test.sh --build $(BUILD)

# SAVES=n, SEED=n: so many saves, at other moments.
migrate-test: deps-build $(BUILD)/build.ninja ## save a Linux with disks at 20 moments, each time going on in a new process
	@$(INSTALL_DEPS) --quiet guest
	@ninja -C $(BUILD) vmm/vgic-vmm
	@vmm/migrate-test.sh --build $(BUILD) $(if $(SAVES),--saves $(SAVES)) $(if $(SEED),--seed $(SEED))

guest-oracle: deps-build $(BUILD)/build.ninja ## run the bare-metal guest programs on QEMU's GIC instead
	@$(INSTALL_DEPS) --quiet oracle
	@ninja -C $(BUILD)
	@tests/guest/run.sh --qemu

# SEED=n: other random scripts. SECONDS=n: random scripts only, for so long. SCRIPTS='NAME...': these alone.
kvm-oracle: deps-build $(BUILD)/build.ninja ## compare with the vGIC of Linux's KVM (SEED=n, SECONDS=n, SCRIPTS=...)
	@$(INSTALL_DEPS) --quiet guest oracle
	@vmm/make-guest-image.sh $(BUILD)
	@ninja -C $(BUILD) --quiet tests/oracle/oracle-vgic tests/oracle/oracle-kvm
	@tests/oracle/kvm-oracle --build $(BUILD) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(SCRIPTS)

# SECONDS=n: for so long. SEED=n: other scripts. SCRIPTS='FILE...': these alone.
qemu-diff: deps-build $(BUILD)/build.ninja ## compare with QEMU's GIC, register by register (SEED=n, SECONDS=n, SCRIPTS=...)
	@$(INSTALL_DEPS) --quiet oracle
	@ninja -C $(BUILD) --quiet tests/qemu/vgic-qtest
	@tests/qemu/qemu-diff --build $(BUILD) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(SCRIPTS)

# ---- Checking ----

CHECK_BUILDS := $(BUILD)/build.ninja $(ASAN)/build.ninja $(TSAN)/build.ninja

check: deps-build $(CHECK_BUILDS) ## run the tests, within their time budgets
	@$(INSTALL_DEPS) --quiet guest oracle lint bench
	@vmm/make-guest-image.sh $(BUILD)
	@scripts/run-tests --slow $(SLOW) $(CHECK_GROUPS)

check-all: deps $(CHECK_BUILDS) $(CLANG)/build.ninja ## the same, and what takes longer
	@vmm/make-guest-image.sh $(BUILD)
	@scripts/run-tests --slow $(SLOW) $(CHECK_GROUPS) $(MORE_GROUPS)

model: ## check every configuration of the protocol's models (four minutes)
	@$(INSTALL_DEPS) --quiet test
	@tests/model/run-model

# SECONDS=n: so long for each. TARGETS='NAME...': these alone.
fuzz: deps-build $(FUZZ)/build.ninja ## fuzz with libFuzzer, each target for 60 s (SECONDS=n, TARGETS=...)
	@$(INSTALL_DEPS) --quiet fuzz
	@scripts/fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(TARGETS),--targets '$(TARGETS)') $(FUZZ)

coverage: deps-build $(COVERAGE)/build.ninja ## say which lines and branches of src/ the tests reach
	@$(INSTALL_DEPS) --quiet coverage
	@ninja -C $(COVERAGE) --quiet
	@scripts/coverage $(COVERAGE)

limits: deps-build $(BUILD)/build.ninja ## print what a guest can make one access cost, as counts
	@ninja -C $(BUILD) --quiet tests/limits/limits
	@$(BUILD)/tests/limits/limits --table

lint: deps-build $(BUILD)/build.ninja ## check layout and sources without running them
	@$(INSTALL_DEPS) --quiet lint
	@scripts/lint $(BUILD)

format: ## lay the sources out as .clang-format says
	@$(INSTALL_DEPS) --quiet lint
	git ls-files '*.c' '*.h' | xargs clang-format -i

# ---- Measuring ----

# `make bench PLOTS=docs/plots` also puts the plots there: how those of docs/performance.md are made.
PLOTS :=

bench: deps-build $(BUILD)/build.ninja ## measure, print the tables, write build/bench/report.md with plots
	@ninja -C $(BUILD) bench/vgic-bench bench/vgic-lpi-stress
	@scripts/bench-report $(if $(PLOTS),--plots $(PLOTS)) $(BUILD)

bench-instructions: deps-build $(BUILD)/build.ninja ## count the instructions of each delivery path with callgrind
	@$(INSTALL_DEPS) --quiet bench
	@ninja -C $(BUILD) bench/vgic-bench
	@scripts/bench-instructions $(BUILD)

# ---- The rest ----

install: deps-build $(BUILD)/build.ninja ## install the library and the programs (DESTDIR=... for a package)
	meson install -C $(BUILD)

clean: ## remove what was built (not what was downloaded for the guest)
	rm -rf $(ASAN) $(TSAN) $(CLANG) $(COVERAGE) $(FUZZ)
	[ ! -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 ! -name guest -exec rm -rf {} +
