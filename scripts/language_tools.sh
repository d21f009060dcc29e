#!/bin/sh
# usage: scripts/language_tools.sh   (make tools)
#
# Installs what the tests of examples/ need from npm and PyPI into tests/.cache/languages: koffi
# for Node.js, and Zig. What is missing to do so is said, and left out.
set -eu
cd "$(dirname "$0")/.."
cache=tests/.cache/languages
koffi=3.3.4
zig=0.13.0.post1
mkdir -p "$cache"
failed=0

if [ -e "$cache/node/$koffi" ]; then
    :
elif command -v npm >/dev/null; then
    rm -rf "$cache/node"
    mkdir -p "$cache/node"
    npm install --prefix "$cache/node" --no-audit --no-fund --ignore-scripts --silent \
        "koffi@$koffi"
    touch "$cache/node/$koffi"
else
    echo "language_tools.sh: npm is not installed: no koffi" >&2
    failed=1
fi

if [ -e "$cache/zig/$zig" ]; then
    :
elif python3 -m venv --help >/dev/null 2>&1; then
    rm -rf "$cache/zig" "$cache/venv"
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --target "$cache/zig" "ziglang==$zig"
    touch "$cache/zig/$zig"
else
    echo "language_tools.sh: python3 with venv is not installed: no Zig" >&2
    failed=1
fi
exit $failed
