# Thin: cargo builds the library, this links the programs of examples/ and runs the tests.
#
#   make              the library and the programs, in build/
#   make STATIC=1     the same programs with the library inside
#   make examples     the small programs of examples/c and examples/cpp, in build/examples/
#   make wheel        the Python package with the library inside, in build/
#   make chat         a conversation (MODEL=path, else model/, else the demo; ARGS="64 70 40")
#   make test         all tests that need no Python
#   make tools        Zig, .NET, koffi and more for the tests of other languages (npm and PyPI)
#   make test-beside  one process with llama.cpp's library as well (downloads it, once)
#   make test-dist    the archive of `make dist` on an older Debian (installs one, once; root)
#   make test-model   the comparison with Hugging Face Transformers (5 GB, once)
#   make loom         what threads do with each other, in every order (part of make test)
#   make soak         random lives of sessions, for minutes, partly under valgrind
#   make bench        how fast it is here: benchmark-results.json and .svg
#   make bench-peers  the same beside Transformers and llama.cpp, taking turns (and ik_llama.cpp)
#   make install      PREFIX=/usr/local DESTDIR=; make uninstall (see packaging/install.mk)
#   make dist         an archive of it for other machines, in build/
#   make header       write include/qwen35.h, and what is made from it, anew from src/capi/
#   make licenses     write packaging/third-party-licenses.txt anew from Cargo.lock
#   make clean

CARGO ?= cargo
CC ?= cc
CXX ?= c++
CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
BUILD ?= build
MODEL ?=
ARGS ?=

# What programs need for themselves.
EXAMPLE_LDLIBS := -lpthread -lm
WARNINGS := -Wall -Wextra -Wpedantic
TARGET := $(or $(CARGO_TARGET_DIR),target)/release
C_PROGRAMS := $(addprefix $(BUILD)/,qwen qwen-ids qwen-tokenize qwen-pack)
PROGRAMS := $(C_PROGRAMS) $(BUILD)/hello $(BUILD)/chat
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/c/*.c)) \
    $(patsubst examples/%.cpp,$(BUILD)/examples/%,$(wildcard examples/cpp/*.cpp))
HEADERS := include/qwen35.h include/qwen35.hpp examples/host.h

ifeq ($(STATIC),1)
LINKING := static
LIBRARY := $(BUILD)/libqwen35.a
# What the archive needs from the system.
LDLIBS := $(BUILD)/libqwen35.a -lpthread -ldl -lm
else
LINKING := shared
LIBRARY := $(BUILD)/libqwen35.so.0
LDLIBS := -L$(BUILD) -lqwen35 -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..'
endif

.PHONY: all library examples chat test test-model test-beside test-dist tools loom soak bench bench-peers header licenses \
    abi-baseline clean
all: $(PROGRAMS)

# cargo knows what is new; the copies change only when it made something else.
library:
	@mkdir -p $(BUILD)
	$(CARGO) build --release --lib --quiet
	@cmp -s $(TARGET)/libqwen35.so $(BUILD)/libqwen35.so.0 || cp $(TARGET)/libqwen35.so $(BUILD)/libqwen35.so.0
	@cmp -s $(TARGET)/libqwen35.a $(BUILD)/libqwen35.a || cp $(TARGET)/libqwen35.a $(BUILD)/libqwen35.a
	@ln -sf libqwen35.so.0 $(BUILD)/libqwen35.so

$(LIBRARY): library
	@true

# Stands for the way of linking, so that changing it links anew.
$(BUILD)/.$(LINKING):
	@mkdir -p $(BUILD)
	@rm -f $(BUILD)/.shared $(BUILD)/.static
	@touch $@

$(C_PROGRAMS): $(BUILD)/%: examples/%.c examples/host.c $(HEADERS) $(LIBRARY) $(BUILD)/.$(LINKING)
	$(CC) -std=c11 $(WARNINGS) $(CFLAGS) -Iinclude $< examples/host.c -o $@ $(LDLIBS)

$(BUILD)/hello: examples/hello.c $(HEADERS) $(LIBRARY) $(BUILD)/.$(LINKING)
	$(CC) -std=c11 $(WARNINGS) $(CFLAGS) -Iinclude $< -o $@ $(LDLIBS)

$(BUILD)/chat: examples/chat.cpp $(HEADERS) $(LIBRARY) $(BUILD)/.$(LINKING)
	$(CXX) -std=c++17 $(WARNINGS) $(CXXFLAGS) -Iinclude $< -o $@ $(LDLIBS)

examples: $(EXAMPLES)

$(BUILD)/examples/c/%: examples/c/%.c $(HEADERS) $(LIBRARY) $(BUILD)/.$(LINKING)
	@mkdir -p $(@D)
	$(CC) -std=c99 $(WARNINGS) $(CFLAGS) -Iinclude $< -o $@ $(LDLIBS) $(EXAMPLE_LDLIBS)

$(BUILD)/examples/cpp/%: examples/cpp/%.cpp $(HEADERS) $(LIBRARY) $(BUILD)/.$(LINKING)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(WARNINGS) $(CXXFLAGS) -Iinclude $< -o $@ $(LDLIBS) $(EXAMPLE_LDLIBS)

chat: $(BUILD)/qwen
	@$(BUILD)/qwen $(if $(MODEL),--model "$(MODEL)") --chat $(ARGS)

# Tests that could not run on this machine say so in a file, which is shown at the end.
test: all loom
	@rm -f $(BUILD)/not-run.txt
	QWEN_BUILD=$(abspath $(BUILD)) QWEN_NOT_RUN=$(abspath $(BUILD))/not-run.txt $(CARGO) test --quiet
	@if [ -s $(BUILD)/not-run.txt ]; then echo "NOT RUN on this machine:"; sort -u $(BUILD)/not-run.txt; fi

test-model: all
	tests/reference/run.sh

# Tests beside llama.cpp's library from PyPI; QWEN_LLAMA=llama_cpp builds llama-cpp-python for it.
test-beside: library
	tests/beside/run.sh $(abspath $(BUILD))

# The archive on an older Linux.
test-dist: dist
	tests/dist/run.sh $(abspath $(BUILD))

# What the tests of other languages need from npm and PyPI; into tests/.cache.
tools:
	scripts/language_tools.sh

# The pool and the cancel protocol over loom's atomics, from the library's own sources.
loom:
	$(CARGO) test --quiet --manifest-path tests/loom/Cargo.toml \
	    --target-dir $(or $(CARGO_TARGET_DIR),target)/loom

soak:
	scripts/soak.sh

# Some 40 minutes (BENCH=--quick: 5), with figures and picture as far as they are after each of
# them; BENCH=--resume goes on. `cargo bench` runs the benches of single parts too.
bench:
	$(CARGO) bench --bench engine -- --json benchmark-results.json \
	    --picture benchmark-results.svg $(BENCH)

# Beside Transformers and llama.cpp, in an environment of its own (6 GB and some minutes, once).
bench-peers: library
	benches/peers/run.sh $(BENCH)
	$(CARGO) bench --bench engine -- --draw benchmark-peers.json --picture benchmark-peers.svg

header:
	QWEN_WRITE_HEADER=1 $(CARGO) test --quiet --test header
	QWEN_WRITE_HEADER=1 $(CARGO) test --quiet --test bindings generated

# The interface that programs compiled from now on rely on: at a release.
abi-baseline:
	cp include/qwen35.h tests/abi/qwen35.h

licenses:
	QWEN_WRITE_LICENSES=1 $(CARGO) test --quiet --test licenses

include packaging/install.mk

clean:
	$(CARGO) clean
	rm -rf $(BUILD)
