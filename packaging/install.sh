#!/bin/sh
# usage: packaging/install.sh install|uninstall
#
# Called by `make install` and `make uninstall`, which build first and set the variables below
# (see install.mk). Nothing is written outside them. What is installed finds its parts by their
# place relative to each other, so the prefix can be moved as a whole.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "install: $*" >&2
    exit 1
}

for name in PREFIX BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR; do
    eval "value=\$$name"
    case $value in
        /*) ;;
        *) fail "$name must be an absolute path, it is \"$value\"" ;;
    esac
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
soname=$(sed -n 's/.*-soname,\(libqwen35[^"]*\)".*/\1/p' build.rs)
[ -n "$version" ] || fail "no version in Cargo.toml"
[ -n "$soname" ] || fail "no soname in build.rs"

bin=$DESTDIR$BINDIR
lib=$DESTDIR$LIBDIR
include=$DESTDIR$INCLUDEDIR
doc=$DESTDIR$DATADIR/doc/qwen35
man=$DESTDIR$MANDIR/man1
cmake=$lib/cmake/qwen35
module=$include/qwen35

# Everything that is installed; `uninstall` removes this and no more.
files() {
    printf '%s\n' "$bin/qwen" \
        "$lib/libqwen35.so.$version" "$lib/$soname" "$lib/libqwen35.so" "$lib/libqwen35.a" \
        "$lib/pkgconfig/qwen35.pc" "$lib/pkgconfig/qwen35-static.pc" \
        "$cmake/qwen35Config.cmake" "$cmake/qwen35ConfigVersion.cmake" \
        "$include/qwen35.h" "$include/qwen35.hpp" "$module/module.modulemap" \
        "$man/qwen.1" \
        "$doc/README.md" "$doc/LICENSE" "$doc/third-party-licenses.txt" \
        "$doc/rust-standard-library.html"
}

# The way from one folder to another; the folders need not exist.
relative() { realpath -m -s --relative-to="$1" "$2"; }

# Fills in a template.
fill() { # template, installed file
    here=$(dirname "${2#"$DESTDIR"}")
    sed -e "s|@VERSION@|$version|g" -e "s|@SONAME@|$soname|g" \
        -e "s|@PREFIX@|$(relative "$here" "$PREFIX")|g" \
        -e "s|@LIB@|$(relative "$here" "$LIBDIR")|g" \
        -e "s|@INCLUDE@|$(relative "$here" "$INCLUDEDIR")|g" "packaging/$1" >"$2.new"
    chmod 644 "$2.new"
    mv "$2.new" "$2"
}

# What is linked comes from here; an archive for other machines has its own.
program=${CODE:-$BUILD/standalone}/qwen
shared=${CODE:-$BUILD}/$soname

# A running program may have the old file mapped: put a new one in its place.
place() { # mode, source, installed file
    install -m "$1" "$2" "$3.new"
    mv "$3.new" "$3"
}

# The same without debug information, which is most of what cargo builds.
place_code() { # mode, source, installed file
    install -m "$1" "$2" "$3.new"
    [ -z "$STRIP" ] || "$STRIP" --strip-debug "$3.new"
    mv "$3.new" "$3"
}

case ${1:-} in
    install)
        install -d -m 755 "$bin" "$lib" "$lib/pkgconfig" "$cmake" "$include" "$module" "$man" "$doc"
        place_code 755 "$program" "$bin/qwen"
        place_code 755 "$shared" "$lib/libqwen35.so.$version"
        ln -sf "libqwen35.so.$version" "$lib/$soname"
        ln -sf "$soname" "$lib/libqwen35.so"
        place_code 644 "$BUILD/libqwen35.a" "$lib/libqwen35.a"
        fill qwen35.pc.in "$lib/pkgconfig/qwen35.pc"
        fill qwen35-static.pc.in "$lib/pkgconfig/qwen35-static.pc"
        fill qwen35Config.cmake.in "$cmake/qwen35Config.cmake"
        fill qwen35ConfigVersion.cmake.in "$cmake/qwen35ConfigVersion.cmake"
        place 644 include/qwen35.h "$include/qwen35.h"
        place 644 include/qwen35.hpp "$include/qwen35.hpp"
        place 644 packaging/module.modulemap "$module/module.modulemap"
        fill qwen.1.in "$man/qwen.1"
        place 644 README.md "$doc/README.md"
        place 644 LICENSE "$doc/LICENSE"
        place 644 packaging/third-party-licenses.txt "$doc/third-party-licenses.txt"
        # The notices of the standard library that was linked in, if the toolchain brings them.
        notices=$("${RUSTC:-rustc}" --print sysroot)/share/doc/rust/COPYRIGHT-library.html
        if [ -f "$notices" ]; then
            place 644 "$notices" "$doc/rust-standard-library.html"
        fi
        echo "installed libqwen35 $version in $DESTDIR$PREFIX"
        [ -n "$DESTDIR" ] ||
            echo "if programs do not find $soname when they start, run ldconfig as root"
        ;;
    uninstall)
        files | while IFS= read -r file; do rm -f "$file"; done
        # The folders that are the library's own.
        for folder in "$cmake" "$module" "$doc"; do
            [ ! -d "$folder" ] || rmdir --ignore-fail-on-non-empty "$folder"
        done
        echo "removed libqwen35 $version from $DESTDIR$PREFIX"
        ;;
    *)
        fail "usage: packaging/install.sh install|uninstall"
        ;;
esac
