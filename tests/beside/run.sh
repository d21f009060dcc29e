#!/bin/sh
# usage: tests/beside/run.sh BUILD   (make test-beside)
#
# One process that has libqwen35 and llama.cpp's library, loaded in both orders. By default the
# prebuilt wheel xllamacpp brings llama.cpp; QWEN_LLAMA=llama_cpp builds llama-cpp-python
# instead (some minutes). PYTHON names a Python that has one of them already. QWEN_GGUF names a
# model for llama-cpp-python to compute with meanwhile.
set -eu
cd "$(dirname "$0")/../.."
build=$1
llama=${QWEN_LLAMA:-xllamacpp}
case $llama in
    xllamacpp) package=xllamacpp==2026.10.11549 ;;
    llama_cpp) package=llama-cpp-python==0.3.36 ;;
    *) echo "run.sh: QWEN_LLAMA must be xllamacpp or llama_cpp, not $llama" >&2; exit 2 ;;
esac
if [ -z "${PYTHON:-}" ]; then
    venv=tests/.cache/beside
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$package"
    PYTHON=$venv/bin/python
fi
for order in first second; do
    PYTHONPATH=examples/python LD_LIBRARY_PATH=$build PYTHONDONTWRITEBYTECODE=1 \
        "$PYTHON" tests/beside/llama.py "$llama" "$order"
done
