# The front door. All that it does is call tools/; meson and ninja do the building.
#
#   make demo        the lab, live, on this terminal (root; DEMO_SECONDS=n ends it by itself)
#   make build       tools and libraries in, all targets built, in build/
#   make test        that, then every test; the last line counts them
#   make ten         the tests ten times in a row, in a fresh clone: does one fail by chance? (RUNS=3, TESTS=unit)
#   make bench       every figure of docs/bench.md but the long ones (AREA=clock: one area)
#   make soak        the long ones
#   make roce        `foliot selftest rdma`, jobs over queue pairs, what they are worth, an audit's checks, and scenarios, on soft-RoCE in a virtual machine (docs/rdma.md)
#   make install     into DESTDIR and PREFIX (default /usr/local);  make uninstall  takes it out
#   make clean
PREFIX ?= /usr/local
DESTDIR ?=
AREA ?=
DEMO_SECONDS ?=
RUNS ?= 10
ROCE_SCENARIOS ?= carrier-cut spine-dies gray-trunk brownout
BUILD = build

.PHONY: all build demo test ten bench soak roce install uninstall deps clean help
all: build

help:
	@sed -n 's/^#   //p' Makefile

deps:
	@tools/install-deps build

build: deps
	@tools/build $(BUILD) --prefix $(PREFIX)

demo: deps
	@tools/install-deps demo
	@tools/build $(BUILD) --quiet
	@DEMO_SECONDS='$(DEMO_SECONDS)' tools/demo $(BUILD)

test: deps
	@tools/install-deps test
	@tools/run-tests $(TESTS)

ten:
	@tools/ten-runs -n $(RUNS) $(TESTS)

bench: deps
	@tools/install-deps bench
	@tools/build $(BUILD) --quiet
	@tools/run-bench $(BUILD) bench $(AREA)

soak: deps
	@tools/install-deps bench
	@tools/build $(BUILD) --quiet
	@tools/run-bench $(BUILD) soak $(AREA)

roce: deps
	@tools/build $(BUILD) --quiet
	@r=0; a=$(BUILD)/src/app; plugin=$(BUILD)/src/plugin/libnccl-net-foliot.so; \
	lab/roce-vm/check $$a/foliot $$plugin 60 --timeout 900 || r=1; \
	lab/roce-vm/audit $$a/foliot $$a/foliot-agent $$a/foliot-inspect --out $(BUILD)/bench || r=1; \
	lab/roce-vm/probes $$a/foliot $$a/foliot-agent --out $(BUILD)/bench || r=1; \
	lab/roce-vm/table $$a/foliot $$plugin $(BUILD)/bench/roce_error --faults 40 --timeout 1800 --out $(BUILD)/bench || r=1; \
	$$a/foliot lab run --roce $(ROCE_SCENARIOS:%=scenarios/%.yaml) || r=1; \
	exit $$r

install: build
	@DESTDIR='$(DESTDIR)' tools/install $(BUILD) install '$(PREFIX)'

uninstall:
	@DESTDIR='$(DESTDIR)' tools/install $(BUILD) uninstall '$(PREFIX)'

clean:
	rm -rf build build-*
