# What one does with this source tree. `make` or `make help` lists the targets.

CARGO   ?= cargo
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share

# Another runtime to test: `make test RUNTIME=runc`.
RUNTIME ?=
ifneq ($(RUNTIME),)
export RUNTIME
endif

# Tests to run, by part of their name: `make suite TESTS=pid_file`.
TESTS ?=

# A static program: with musl where the toolchain has it, which starts faster, otherwise with glibc.
MACHINE := $(shell uname -m)
TARGET  ?= $(MACHINE)-unknown-linux-$(if $(wildcard $(shell rustc --print target-libdir --target $(MACHINE)-unknown-linux-musl)),musl,gnu)
STATIC  := env RUSTFLAGS="-C target-feature=+crt-static" $(CARGO)
# A static program relocates itself, and from glibc 2.36 on it understands the form of that list which saves 75 kB.
RELR    := $(if $(filter %-gnu,$(TARGET)),$(shell getconf GNU_LIBC_VERSION | \
	awk '{ split($$2, v, "."); if (v[1] > 2 || v[2] >= 36) print "-C link-arg=-Wl,-z,pack-relative-relocs" }'))
# Within 3 MB: equal functions are one, equal ends of strings too, and only what is short is copied into its callers. LLD, which
# Rust links with on x86_64, can do that.
SMALL   := -C llvm-args=-inline-threshold=15
ifeq ($(MACHINE),x86_64)
SMALL   += -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-O2
endif
# Of a release, two builds have the same bytes: where cargo keeps the sources of crates must not be in them.
CRATES  := $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
RELEASE := env RUSTFLAGS="-C target-feature=+crt-static $(RELR) $(SMALL) --remap-path-prefix=$(CRATES)=/crates" $(CARGO)

# The commit is part of the answer to --version.
GIT     := git -c safe.directory=$(CURDIR)
COMMIT  ?= $(shell $(GIT) describe --always --dirty --exclude='*' --abbrev=12 2>/dev/null)
# The time of all files in a package, as https://reproducible-builds.org/specs/source-date-epoch/ wants it.
SOURCE_DATE_EPOCH ?= $(or $(shell $(GIT) log -1 --format=%ct 2>/dev/null),0)

OUT     := $(or $(CARGO_TARGET_DIR),target)
BRIG    := $(OUT)/$(TARGET)/release/brig
SHARE   := $(OUT)/share
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
DEB     := $(OUT)/deb/brig_$(VERSION)_$(shell dpkg --print-architecture 2>/dev/null).deb
# The tests look for the program beside themselves.
BESIDE  := $(OUT)/$(TARGET)/suite/brig
SUITE   := $(STATIC) test --locked --profile suite --target $(TARGET) --package brig-tests

.PHONY: help build release share install uninstall deb package reproducible demo test unit suite suite-v2 systemd-test vm-test \
	attack fuzz-short fuzz-configs fuzz \
	kill kill-matrix clients clients-full bench beside lint fmt ci clean
# Tests compare what is there before and after them: one set at a time.
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## a quick build for development: target/debug/brig
	@tests/need build
	$(CARGO) build --locked --package brig

release: ## the program as it is installed: one static file
	@tests/need build
	BRIG_COMMIT=$(COMMIT) $(RELEASE) build --locked --release --target $(TARGET) --package brig
	@tests/static-file $(BRIG)

share: ## man pages and completions, in target/share
	@tests/need build
	rm -rf $(SHARE)
	$(CARGO) xtask interface $(SHARE)

install: release share ## install into DESTDIR/PREFIX (default: /usr/local)
	install -D -m 755 $(BRIG) $(DESTDIR)$(BINDIR)/brig
	cd $(SHARE) && find . -type f -exec install -D -m 644 {} $(abspath $(DESTDIR)$(DATADIR))/{} \;

uninstall: share ## remove what install has installed
	rm -f $(DESTDIR)$(BINDIR)/brig
	cd $(SHARE) && find . -type f -exec rm -f $(abspath $(DESTDIR)$(DATADIR))/{} \;

deb: ## a Debian package, and its SHA256, in target/deb
	@tests/need deb
	rm -rf $(OUT)/deb
	$(MAKE) --no-print-directory install DESTDIR=$(abspath $(OUT))/deb/stage PREFIX=/usr
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) packaging/deb/build $(OUT)/deb/stage $(VERSION) $(DEB)
	rm -rf $(OUT)/deb/stage
	cd $(OUT)/deb && sha256sum *.deb | tee SHA256SUMS

package: deb ## install the Debian package in an empty root, use it, remove it
	@tests/need demo
	@tests/package $(DEB)

reproducible: deb ## build once more somewhere else, and compare the bytes
	@tests/reproducible $(DEB) '$(COMMIT)' $(SOURCE_DATE_EPOCH)

demo: release ## see a container live and die, step by step
	@tests/need demo
	@tests/demo $(BRIG)

test: unit suite suite-v2 systemd-test attack fuzz-short kill clients ## all tests

unit: ## tests of the parts, which need no root
	@tests/need build unit
	$(CARGO) test --locked --workspace --exclude brig-tests $(TESTS)

# Copied rather than built there: what is tested is what is installed.
beside: $(if $(RUNTIME),,release)
	@tests/need build suite
	@$(if $(RUNTIME),,install -D -m 755 $(BRIG) $(BESIDE))

suite: beside ## tests of the whole program, on the cgroups of this machine
	$(SUITE) --test suite $(TESTS)

suite-v2: beside ## the same where there is only cgroup v2
	tests/pure-v2 $(SUITE) --test suite $(TESTS)

systemd-test: beside ## the suite, and killed commands, where systemd makes the cgroups
	@tests/need systemd
	TESTS="$(TESTS)" tests/systemd-test $(SUITE)

attack: beside ## hostile images, configurations and neighbours; ATTACK=full for hours
	$(SUITE) --test attack $(TESTS)

# A fixed number of mutations of a fixed seed: the same inputs each time.
FUZZ_RUNS ?= 40000
fuzz-short: ## fuzz targets, each for a fixed number of runs
	@tests/need build
	$(STATIC) run --locked --profile suite --target $(TARGET) --package brig-fuzz -- all --runs $(FUZZ_RUNS)
	@$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/libfuzzer/Cargo.toml >/dev/null # is `make fuzz` up to date?

CONFIGS_TIME ?= 1800
CONFIGS_SEED ?= 1
fuzz-configs: export ATTACK_SECONDS = $(CONFIGS_TIME)
fuzz-configs: export ATTACK_SEED = $(CONFIGS_SEED)
fuzz-configs: beside ## the whole program on mutated configurations for CONFIGS_TIME seconds; attack does it for a few
	unshare --mount --propagation private $(SUITE) --test attack -- --exact configs::mutated_configurations --nocapture

# Coverage as libFuzzer reads it, which stable compilers can put in too.
FUZZ      ?= all
FUZZ_TIME ?= 3600
FUZZER    := $(OUT)/libfuzzer/$(MACHINE)-unknown-linux-gnu/release/brig-libfuzzer
SANCOV    := -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
	-C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares -C codegen-units=1
fuzz: ## the same under libFuzzer: FUZZ=target, FUZZ_TIME=seconds for each
	@tests/need build fuzz
	RUSTFLAGS="$(SANCOV)" $(CARGO) build --locked --release --manifest-path fuzz/libfuzzer/Cargo.toml \
		--target $(MACHINE)-unknown-linux-gnu --target-dir $(OUT)/libfuzzer
	$(CARGO) run --locked --profile suite --package brig-fuzz -- $(FUZZ) --dump $(OUT)/fuzz
	fuzz/libfuzzer/run $(FUZZER) $(OUT)/fuzz $(FUZZ_TIME) $(FUZZ)

vm-test: beside ## the tests of limits in a virtual machine with systemd and all of cgroup v2
	@$(SUITE) --test suite --no-run
	tests/vm/test $(OUT)/vm $(BESIDE) \
		"$$($(SUITE) --test suite --no-run 2>&1 | sed -n 's/^ *Executable.*(\(.*\))$$/\1/p')" $(TESTS)

kill: beside ## commands killed at system call after system call
	$(if $(RUNTIME),@echo "not run: the points are those of brig",$(SUITE) --test kill)

kill-matrix: beside ## every system call, 2000 kills at random, every fault, 5000 orphans, 10000 lives: some hours
	$(SUITE) --test kill -- all
	$(SUITE) --test kill -- random runs=2000
	$(SUITE) --test kill -- faults
	$(SUITE) --test kill -- orphans runs=5000
	$(SUITE) --test kill -- soak runs=10000

clients: beside ## Docker and other clients, with the runtime below them
	@tests/need clients
	$(SUITE) --test clients $(TESTS)

clients-full: export CLIENTS_FULL = 1
clients-full: clients ## the same with more of everything: fifty containers at once, twenty tasks of a swarm

# Other runtimes, and how often: `make bench CRUN=/path RUNC=/path ROUNDS=100 BENCH=full`.
ROUNDS  ?= 60
bench: release ## compare with crun, runc and what the kernel alone costs; BENCH=full with 1000 containers
	@tests/need build bench $(if $(CRUN),,crun) $(if $(RUNC),,runc)
	mkdir -p $(OUT)/bench
	$(CC) -O2 -Wall -static -o $(OUT)/bench/floor bench/floor.c
	$(CC) -O2 -Wall -static -o $(OUT)/bench/measure bench/measure.c
	BRIG=$(abspath $(BRIG)) CRUN=$(or $(CRUN),crun) RUNC=$(or $(RUNC),runc) ROUNDS=$(ROUNDS) BENCH=$(BENCH) \
		FLOOR=$(abspath $(OUT))/bench/floor MEASURE=$(abspath $(OUT))/bench/measure OUT=$(abspath $(OUT))/bench RESULTS=bench \
		tests/pure-v2 $(STATIC) run --locked --profile suite --target $(TARGET) --package brig-bench

lint: ## clippy, and the limits of size
	@tests/need build
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) xtask lint

fmt: ## format the sources
	$(CARGO) fmt --all

ci: ## all that is checked before a change is taken
	.ci/run

clean: ## remove what was built
	$(CARGO) clean
