# CMake does the work (CMakePresets.json; each preset has its folder under build/). This file picks
# the preset, and first installs the packages that are missing (tools/packages).
PREFIX ?= /usr/local
DESTDIR ?=
SECONDS ?= 60
ROUNDS ?= 200
MODULE_ROUNDS ?= 50
SEEDS ?= 100000
LINES ?= 100000
DAMAGES ?= 1000
FAULTS ?= 400
RUNS ?= 100
RECORDS ?= 1000000
UPDATES ?= 200
JOBS ?= $(shell nproc)
SERVERS ?=
PROGRAMS ?=

# The port of `make run`. If it is not given: 6380, or the next free one.
PORT ?=

SOURCES = $(shell find bench cli client examples fuzz module semel tests -name '*.h' -o -name '*.cc' 2>/dev/null)
BUILD = cmake --build --parallel $(JOBS) --preset
TEST = ctest --parallel $(JOBS) --preset
TIDY = run-clang-tidy -quiet -p build/release -j $(JOBS)
# The analyzer takes minutes for expanded test macros. Widening does no harm, because sums in tests are
# small. The other checks misjudge repeated draws of random numbers and the properties of RapidCheck.
NOT_IN_TESTS = -clang-analyzer-*,-bugprone-implicit-widening-*,-bugprone-redundant-branch-condition,$\
               -concurrency-mt-unsafe,-misc-redundant-expression,-performance-*
LINK_COMMAND = ln -sfn release/bin/semel build/semel && ln -sfn release/lib/semel.so build/semel.so

.NOTPARALLEL: # ninja and ctest are parallel themselves, and apt serves one caller at a time
.PHONY: help run test build install bench bench-sift figures fuzz clients servers test-servers servers-table crash cluster damage pipes hostile simulate sync-hundred test-asan test-tsan coverage docs format check check-quick clean

help:
	@echo 'make TARGET, where TARGET is'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

run: need-run build ## build, then start redis-server with the module, on a loopback PORT
	@tools/run-server build/release/lib/semel.so build/run $(PORT)

test: need-build-test build/release/with-tests ## build and run all tests
	@$(BUILD) release
	@$(LINK_COMMAND)
	@$(TEST) release

build: need-build build/release/build.ninja ## build the library, the command (build/semel) and the module (build/semel.so)
	@$(BUILD) release --target product
	@$(LINK_COMMAND)

install: build ## install under PREFIX (/usr/local), below DESTDIR if that is set
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

bench: need-build-bench build/bench/build.ninja ## measure beside the peers: build/bench.tsv, build/bench-module.tsv
	@$(BUILD) bench
	build/bench/bin/bench/semel_bench --tsv build/bench.tsv
	build/bench/bin/bench/module_bench build/bench/lib/semel.so --tsv build/bench-module.tsv

bench-sift: need-build-bench build/bench/build.ninja ## measure semel sift beside awk, sort and a hash set: 1.6 GB
	@$(BUILD) bench
	@mkdir -p build/streams
	build/bench/bin/bench/sift_peers build/bench/bin/semel build/bench/bin/bench/hash_set_lines build/streams

figures: need-build-bench-figures build/bench/build.ninja ## draw the figures: build/figures
	@$(BUILD) bench
	bench/figures/make-figures build/bench/bin/bench build/figures

fuzz: need-build-fuzz build/fuzz/build.ninja ## run every fuzzer for SECONDS (60)
	@$(BUILD) fuzz
	@tools/run-fuzzers build/fuzz $(SECONDS) $(JOBS)

crash: need-build-test build/release/with-tests ## kill -9 during writes and syncs, ROUNDS (200) times, and of a server, MODULE_ROUNDS (50) times
	@$(BUILD) release --target crash_test module_crash_test
	SEMEL_CRASH_ROUNDS=$(ROUNDS) build/release/bin/tests/crash_test
	SEMEL_CRASH_ROUNDS=$(MODULE_ROUNDS) build/release/bin/tests/module_crash_test

cluster: ROUNDS = 20
cluster: need-build-test build/release/with-tests ## kill -9 of primaries during increments and sifting, ROUNDS (20) times
	@$(BUILD) release --target module_cluster_test sift_remote_test
	SEMEL_CLUSTER_ROUNDS=$(ROUNDS) build/release/bin/tests/module_cluster_test
	SEMEL_KILLS=$(ROUNDS) build/release/bin/tests/sift_remote_test --gtest_filter='SiftCluster.Lets*'

damage: need-build-test build/release/with-tests ## damage each kind of directory and state DAMAGES (1000) times, and let each call for a file fail
	@$(BUILD) release --target damage_test faults_test
	SEMEL_DAMAGE_ROUNDS=$(DAMAGES) build/release/bin/tests/damage_test
	SEMEL_FAULT_STEP=1 build/release/bin/tests/faults_test

pipes: need-build-test build/release/with-tests ## cause FAULTS (400) random faults between semel sync and semel serve-sync
	@$(BUILD) release --target sync_faults_test
	SEMEL_PIPE_FAULTS=$(FAULTS) build/release/bin/tests/sync_faults_test

hostile: need-build-test build/asan/build.ninja ## send LINES (100000) random command lines to servers with AddressSanitizer, and compare replica and AOF
	@$(BUILD) asan --target module_hostile_test module_memory_faults_test
	SEMEL_LINES=$(LINES) build/asan/bin/tests/module_hostile_test --gtest_filter='HostileLines.*'
	SEMEL_LINES=$(LINES) build/asan/bin/tests/module_memory_faults_test --gtest_filter='*RandomLines*'

simulate: need-build-test build/release/with-tests ## run tables at 2, 3 and 5 simulated sites, with SEEDS (100000) seeds
	@$(BUILD) release --target tally_simulation
	build/release/bin/tests/tally_simulation --seeds $(SEEDS) --threads $(JOBS)

sync-hundred: need-build-test build/release/with-tests ## sync RUNS (100) times with an owner that compacts, ingests and restarts: RECORDS (1000000), UPDATES (200) a run
	@$(BUILD) release --target sync_hundred_test
	SEMEL_SYNC_RUNS=$(RUNS) SEMEL_SYNC_RECORDS=$(RECORDS) SEMEL_SYNC_UPDATES=$(UPDATES) build/release/bin/tests/sync_hundred_test

test-asan: need-build-test build/asan/build.ninja ## run the tests with AddressSanitizer and UBSan
	@$(BUILD) asan
	@$(TEST) asan

test-tsan: need-build-test build/tsan/build.ninja ## run the tests with ThreadSanitizer
	@$(BUILD) tsan
	@$(TEST) tsan

clients: ## fetch clients, promtool and redis_exporter to test the module with: build/clients, used by `make test` from then on
	@tools/fetch-clients build/clients

servers: ## fetch Redis and Valkey of several versions: build/servers; SERVERS='redis valkey-9' fetches some
	@tools/fetch-servers build/servers $(SERVERS)

TEST_SERVERS = tools/test-servers build/servers build/release --document docs/module.md
test-servers: need-build-test build/release/with-tests ## run the tests that need a server in each of build/servers: build/servers/matrix.md; SERVERS and PROGRAMS choose
	@$(BUILD) release --target server_tests
	@$(TEST_SERVERS) --jobs $(JOBS) --only '$(SERVERS)' --programs '$(PROGRAMS)'

servers-table: build/release/with-tests ## write the table of docs/module.md from the last `make test-servers`
	@$(TEST_SERVERS) --write

coverage: need-build-test-coverage build/coverage/build.ninja ## show which lines of the library, the command, the client and the module the tests reach
	@$(BUILD) coverage
	@find build/coverage -name '*.gcda' -delete
	@$(TEST) coverage
	@mkdir -p build/coverage/report
	@gcovr --root . --filter semel/ --filter cli/ --filter client/ --filter module/ \
	  --exclude '.*_test\.cc' \
	  --exclude-throw-branches --print-summary \
	  --html-details build/coverage/report/index.html build/coverage
	@echo 'Line by line: build/coverage/report/index.html'

docs: need-build-test build/release/with-tests ## write docs/commands.md and docs/architecture.svg from their tables
	@$(BUILD) release --target document_commands draw_layers
	build/release/bin/document_commands > docs/commands.md
	build/release/bin/draw_layers > docs/architecture.svg

format: need-check ## put the sources into the house style
	@clang-format -i $(SOURCES)

check: check-quick ## run check-quick and clang-tidy
	@cmake build/release >/dev/null # the list of files to look at
	@$(TIDY) '^$(CURDIR)/(semel|cli|client|module|examples|fuzz)/(?!.*_test\.cc$$)'
	@$(TIDY) -checks='$(NOT_IN_TESTS)' '_test\.cc$$' '^$(CURDIR)/tests/'

check-quick: need-build-test-check build/release/with-tests ## check the format, the width of lines and the layering
	@clang-format --dry-run --Werror $(SOURCES)
	@! LC_ALL=C.UTF-8 grep -nE '^.{101,}' $(SOURCES) || { echo 'These lines have more than 100 columns.'; exit 1; } >&2
	@$(BUILD) release --target layering_test
	@build/release/bin/tests/layering_test --gtest_brief=1

clean: ## remove build/
	@rm -rf build

# need-build-test: the packages for the purposes build and test.
need-%:
	@tools/install-packages $(subst -, ,$*)

# Configured once, and again when the presets change; ninja itself follows the CMake files.
build/%/build.ninja: CMakePresets.json
	@cmake --preset $*

# The library and the command do not need the packages of the tests, until tests are asked for.
build/release/build.ninja: CMakePresets.json
	@cmake --preset release -DSEMEL_TESTS=OFF

build/release/with-tests: CMakePresets.json
	@cmake --preset release -DSEMEL_TESTS=ON
	@touch $@
