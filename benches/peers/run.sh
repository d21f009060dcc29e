#!/usr/bin/env bash
# Measures beside Transformers, llama.cpp and ik_llama.cpp; `make bench-peers` runs this. Arguments go to run.py.
#
# The environment is that of `make test-model` (.venv) with benches/peers/requirements.txt added;
# llama-cpp-python is compiled for this machine. The model is the synthetic checkpoint of the full
# 0.8B shapes in tests/.cache, which is written if it is not there.
#
#   QWEN35_PYTHON   an interpreter that has all packages, instead of .venv
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
python=${QWEN35_PYTHON:-.venv/bin/python}
if [ -z "${QWEN35_PYTHON:-}" ]; then
    stamp=.venv/peers.sha256
    lists=(tests/reference/requirements.txt "$here/requirements.txt")
    wanted=$(cat "${lists[@]}" | sha256sum | cut -d' ' -f1)
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
        echo "Making the Python environment in .venv (some 6 GB, minutes; llama.cpp is compiled)"
        [ -x "$python" ] || python3 -m venv .venv
        CMAKE_ARGS="-DGGML_NATIVE=ON" "$python" -m pip install --quiet \
            --disable-pip-version-check -r "${lists[0]}" -r "${lists[1]}"
        echo "$wanted" >"$stamp"
    fi
fi
model=tests/.cache/full-0.8b
"$python" -c 'import sys; sys.path.insert(0, "tests/reference"); import check_model
check_model.checkpoint("full-0.8b")'
exec "$python" "$here/run.py" "$model" --json benchmark-peers.json "$@"
