#!/usr/bin/env bash
# The full comparison with Hugging Face Transformers; `make test-model` runs this.
#
# Makes a Python environment of its own in .venv (about 5 GB, once), builds the Rust side, writes
# synthetic checkpoints to tests/.cache and compares. The C hosts must have been built (`make`).
# Arguments go to run_parity.py: --only NAME runs a part, --list shows the parts.
#
#   QWEN35_PYTHON          an interpreter with the packages of requirements.txt, instead of .venv
#   QWEN35_CHAT_TEMPLATE   the published chat_template.jinja, for the tests that need it
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

# What is still to be written: the environment, the checkpoints, passing files.
needed_gb=10
stamp=.venv/requirements.sha256
wanted=$(sha256sum "$here/requirements.txt" | cut -d' ' -f1)
have_environment() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; }
if [ -n "${QWEN35_PYTHON:-}" ] || have_environment; then
    needed_gb=5
fi
if [ -f tests/.cache/full-0.8b/config.json ]; then
    needed_gb=$((needed_gb - 2))
fi

free_kb=$(df --output=avail -k . | tail -1)
if [ "$free_kb" -lt $((needed_gb * 1024 * 1024)) ]; then
    echo "The comparison with Transformers was NOT RUN: it needs $needed_gb GB of free disk," \
        "$((free_kb / 1024 / 1024)) GB are free on $root."
    echo "0 passed, 0 failed, all skipped"
    exit 0
fi

if [ -n "${QWEN35_PYTHON:-}" ]; then
    python=$QWEN35_PYTHON
else
    python=.venv/bin/python
    if ! have_environment; then
        echo "Making the Python environment in .venv (some 5 GB, minutes)"
        # pip picks up where it stopped: packages that are there already are kept.
        [ -x "$python" ] || python3 -m venv .venv
        "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
        echo "$wanted" >"$stamp"
    fi
fi

exec "$python" "$here/run_parity.py" "$@"
