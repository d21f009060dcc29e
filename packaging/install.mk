# make install, uninstall and dist; part of ../Makefile.
#
#   make install [PREFIX=/usr/local] [DESTDIR=]    STRIP= keeps debug information
#   make uninstall                                 with the same variables
#   make dist                                      an archive for other machines, in build/
#   make wheel                                     the Python package, in build/

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
STRIP ?= strip
STANDALONE := $(BUILD)/standalone
PACKAGING = PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' \
    INCLUDEDIR='$(INCLUDEDIR)' DATADIR='$(DATADIR)' MANDIR='$(MANDIR)' BUILD='$(BUILD)' \
    STRIP='$(STRIP)'

.PHONY: install uninstall dist wheel
install: library $(STANDALONE)/qwen
	@$(PACKAGING) packaging/install.sh install

uninstall:
	@$(PACKAGING) packaging/install.sh uninstall

dist: library $(addprefix $(STANDALONE)/,qwen qwen-ids qwen-tokenize qwen-pack)
	@BUILD='$(BUILD)' STRIP='$(STRIP)' packaging/dist.sh

# These programs have the library inside, so that they run from wherever they are put.
$(STANDALONE)/%: examples/%.c examples/host.c $(HEADERS) $(BUILD)/libqwen35.a
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARNINGS) $(CFLAGS) -Iinclude $< examples/host.c -o $@ \
	    -Wl,--gc-sections $(BUILD)/libqwen35.a -lpthread -ldl -lm

ifneq ($(STATIC),1)
$(BUILD)/libqwen35.a: library
	@true
endif

wheel: library
	python3 examples/python/build_wheel.py $(BUILD)/libqwen35.so.0 $(BUILD)
