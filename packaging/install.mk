# make install, uninstall and dist; part of ../Makefile.
#
#   make install [PREFIX=/usr/local] [DESTDIR=]    STRIP= keeps debug information
#   make uninstall                                 with the same variables
#   make dist                                      an archive for other machines, in build/
#   make wheel                                     the Python package, in build/
#
# An archive and a wheel run on Linux with glibc $(GLIBC) or newer if Zig is there (`make tools`, or
# on the path): its linker knows which symbols old ones have. Without it, or with ZIG=, they are
# linked against the glibc of this machine, and say which that is.

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
STRIP ?= strip
STANDALONE := $(BUILD)/standalone
PORTABLE := $(BUILD)/portable
GLIBC ?= 2.17
ZIG ?= $(firstword $(wildcard tests/.cache/languages/zig/ziglang/zig) $(shell command -v zig))
HOSTS := qwen qwen-ids qwen-tokenize qwen-pack
PACKAGING = PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' \
    INCLUDEDIR='$(INCLUDEDIR)' DATADIR='$(DATADIR)' MANDIR='$(MANDIR)' BUILD='$(BUILD)' \
    STRIP='$(STRIP)'

.PHONY: install uninstall dist wheel portable
install: library $(STANDALONE)/qwen
	@$(PACKAGING) packaging/install.sh install

uninstall:
	@$(PACKAGING) packaging/install.sh uninstall

dist: portable
	@BUILD='$(BUILD)' STRIP='$(STRIP)' packaging/dist.sh

# The library and the programs that go to other machines.
ifeq ($(ZIG),)
portable: library $(addprefix $(STANDALONE)/,$(HOSTS))
	@rm -rf $(PORTABLE)/licenses
	@mkdir -p $(PORTABLE)
	@cp $(BUILD)/libqwen35.so.0 $(addprefix $(STANDALONE)/,$(HOSTS)) $(PORTABLE)/
else
portable: library
	@BUILD='$(BUILD)' ZIG='$(ZIG)' GLIBC='$(GLIBC)' CFLAGS='$(CFLAGS)' packaging/portable.sh $(HOSTS)
endif

# These programs have the library inside, so that they run from wherever they are put.
$(STANDALONE)/%: examples/%.c examples/host.c $(HEADERS) $(BUILD)/libqwen35.a
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARNINGS) $(CFLAGS) -Iinclude $< examples/host.c -o $@ \
	    -Wl,--gc-sections $(BUILD)/libqwen35.a -lpthread -ldl -lm

ifneq ($(STATIC),1)
$(BUILD)/libqwen35.a: library
	@true
endif

wheel: portable
	python3 examples/python/build_wheel.py $(PORTABLE)/libqwen35.so.0 $(BUILD)
