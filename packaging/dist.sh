#!/bin/sh
# usage: packaging/dist.sh   (called by `make dist`, which builds first)
#
# Makes $BUILD/libqwen35-VERSION-x86_64-linux-gnu.tar.gz: library, headers, programs, examples
# and the demo model. The same inputs give the same bytes.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=libqwen35-$version-x86_64-linux-gnu
mkdir -p "$BUILD/dist"
stage=$(cd "$BUILD/dist" && pwd)/$name
rm -rf "$stage"

CODE=$BUILD/portable PREFIX=$stage DESTDIR='' BINDIR=$stage/bin LIBDIR=$stage/lib INCLUDEDIR=$stage/include \
    DATADIR=$stage/share MANDIR=$stage/share/man packaging/install.sh install >/dev/null
for host in qwen-ids qwen-tokenize qwen-pack; do
    install -m 755 "$BUILD/portable/$host" "$stage/bin/$host"
    [ -z "$STRIP" ] || "$STRIP" --strip-debug "$stage/bin/$host"
done
mkdir -p "$stage/examples/demo-model"
cp examples/*.c examples/*.cpp examples/*.h "$stage/examples/"
# The small programs, the other languages and the manual, without what tools leave there.
for folder in examples/c examples/cpp examples/python examples/go examples/node examples/luajit \
    examples/csharp examples/zig examples/swift docs; do
    find "$folder" -type f ! -name '*.pyc' ! -path '*/node_modules/*' |
        while IFS= read -r file; do
            install -D -m 644 "$file" "$stage/$file"
        done
done
# The model's files, without what it was made with.
find examples/demo-model -maxdepth 1 -type f ! -name '.*' \
    -exec cp '{}' "$stage/examples/demo-model/" ';'
cp LICENSE "$stage/LICENSE"
# Of what its linker added.
for text in "$BUILD"/portable/licenses/*; do
    [ ! -f "$text" ] || install -m 644 "$text" "$stage/share/doc/qwen35/$(basename "$text")"
done

# The oldest C library it runs on is the newest symbol version that any of the files asks for.
glibc=$(objdump -T "$stage"/bin/* "$stage/lib/libqwen35.so.$version" |
    sed -n 's/.*GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -uV | tail -n 1)
[ -n "$glibc" ] || { echo "dist: objdump found no symbol versions of glibc" >&2; exit 1; }

cat >"$stage/README.txt" <<END
libqwen35 $version for Linux on x86-64 with glibc $glibc or newer. Any x86-64 CPU; AVX2 and
AVX-512 are used where they are found.

  bin/qwen --chat                a conversation with the small demo model
  bin/qwen --model FOLDER --chat ... with a Qwen3.5 checkpoint from Hugging Face
  include/qwen35.h               the manual of the library
  docs/                          more of it, for each language; examples/ has the wrappers
  share/doc/qwen35/README.md     more about both
  share/doc/qwen35/              licenses

This folder can be put anywhere. To build a program with the library:

  export PKG_CONFIG_PATH=\$PWD/lib/pkgconfig
  cc examples/hello.c -o hello \$(pkg-config --cflags --libs qwen35-static)

or with CMake: find_package(qwen35), targets qwen35::shared and qwen35::static,
-DCMAKE_PREFIX_PATH=\$PWD.
END

epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
archive=$BUILD/$name.tar.gz
tar -C "$BUILD/dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" \
    --mode=u+w,go-w -cf "$BUILD/dist/$name.tar" "$name"
gzip -6nc "$BUILD/dist/$name.tar" >"$archive.new"
mv "$archive.new" "$archive"
rm -rf "$BUILD/dist"
echo "$archive: needs glibc $glibc or newer"
