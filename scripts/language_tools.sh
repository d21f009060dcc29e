#!/bin/sh
# usage: scripts/language_tools.sh   (make tools)
#
# Installs what the tests of examples/ need from npm and PyPI into tests/.cache/languages: koffi
# for Node.js, Zig, the runtime of .NET, mypy for Python, and a parser of Swift. What is missing to do so is said,
# and left out.
set -eu
cd "$(dirname "$0")/.."
cache=tests/.cache/languages
koffi=3.3.4
zig=0.13.0.post1
dotnet=3.1.23
swift=0.7.4
mypy=2.4.1
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

# A package from PyPI into a folder of its own, once: FOLDER PACKAGE==VERSION...
from_pypi() {
    folder=$cache/$1
    shift
    version=${1##*==}
    [ ! -e "$folder/$version" ] || return 0
    rm -rf "$folder"
    "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --target "$folder" "$@"
    touch "$folder/$version"
}

if python3 -m venv --help >/dev/null 2>&1; then
    [ -x "$cache/venv/bin/pip" ] || python3 -m venv "$cache/venv"
    from_pypi zig "ziglang==$zig"
    from_pypi dotnet "dotnetcore2==$dotnet"
    if ! "$cache/venv/bin/mypy" --version 2>/dev/null | grep -q "^mypy $mypy "; then
        "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "mypy==$mypy"
    fi
    from_pypi swift "tree-sitter-swift==$swift" tree-sitter==0.26.1
else
    echo "language_tools.sh: python3 with venv is not installed: no Zig, .NET, mypy, parser of Swift" >&2
    failed=1
fi
exit $failed
