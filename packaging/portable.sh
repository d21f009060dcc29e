#!/bin/sh
# usage: packaging/portable.sh PROGRAM...   (called by `make dist` and `make wheel`)
#
# Links libqwen35.a once more, by Zig against glibc $GLIBC, into $BUILD/portable/: the shared
# library, and the programs of examples/ that are named. Objects are those that cargo made; only
# the versions of the symbols that they ask of glibc differ, and LLVM's unwinder is inside, so that
# no libgcc_s is needed.
set -eu
cd "$(dirname "$0")/.."

out=$BUILD/portable
mkdir -p "$out/licenses"
archive=$BUILD/libqwen35.a
export ZIG_GLOBAL_CACHE_DIR="${ZIG_GLOBAL_CACHE_DIR:-$out/cache}"
export ZIG_LOCAL_CACHE_DIR="${ZIG_LOCAL_CACHE_DIR:-$out/cache}"
link() { "$ZIG" cc -target "x86_64-linux-gnu.$GLIBC" "$@" "$archive" -lunwind -lpthread -ldl -lm; }

# What the linker adds, its runtime and the unwinder, has licences of its own.
zig=$(dirname "$(realpath "$(command -v "$ZIG")")")
copy() { [ ! -f "$zig/$1" ] || cp "$zig/$1" "$out/licenses/$2"; }
copy LICENSE zig-license.txt
copy lib/libunwind/LICENSE.TXT llvm-libunwind-license.txt

# It exports what the library that cargo linked does, and no more.
symbols=$(nm -D --defined-only --format=just-symbols "$BUILD/libqwen35.so.0")
[ -n "$symbols" ] || { echo "portable.sh: $BUILD/libqwen35.so.0 exports nothing" >&2; exit 1; }
{
    echo "{ global:"
    for symbol in $symbols; do echo "$symbol;"; done
    echo "local: *; };"
} >"$out/exports"
undefined=$(for symbol in $symbols; do printf ' -Wl,-u,%s' "$symbol"; done)

# As build.rs has it; a version script, since here none of rustc's is in the way.
# shellcheck disable=SC2086  # one word for each symbol
link -shared -o "$out/libqwen35.so.0.new" -Wl,-soname,libqwen35.so.0 \
    -Wl,--version-script,"$out/exports" $undefined -Wl,--gc-sections -Wl,-z,nodelete \
    -Wl,-z,relro,-z,now -Wl,-z,noexecstack
mv "$out/libqwen35.so.0.new" "$out/libqwen35.so.0"
for program in "$@"; do
    # shellcheck disable=SC2086  # several flags
    link -std=c11 -Wall -Wextra -Wpedantic $CFLAGS -fno-sanitize=undefined -Iinclude \
        "examples/$program.c" examples/host.c -o "$out/$program" -Wl,--gc-sections
done
