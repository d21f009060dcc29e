#!/usr/bin/env bash
# Makes the demo checkpoint from nothing: prompts kept apart, tokenizer, six rounds of training,
# export, marks.
#
#   train/make.sh [--procs N]       (two to two and a half hours on two free cores)
#
# May be interrupted and started again: training goes on from its last save in
# train/work/ (DEMO_WORK names another folder). Remove that folder to start over, and
# eval/*.json and tokenizer.json too if those shall be made anew. ROUND1 to ROUND6 in the
# environment give other tokens and rates, MARKS other options for the marks, for trying it out.
set -euo pipefail
cd "$(dirname "$0")"
export DEMO_WORK="${DEMO_WORK:-$PWD/work}"
mkdir -p "$DEMO_WORK"
python="${PYTHON:-}"
if [ -z "$python" ]; then
    python="$DEMO_WORK/venv/bin/python"
    if [ ! -x "$python" ]; then
        echo "== Python environment with the pinned packages"
        python3 -m venv "$DEMO_WORK/venv"
        "$DEMO_WORK/venv/bin/pip" install --quiet -r requirements.txt
    fi
fi
if [ ! -f "$DEMO_WORK/state.pt" ]; then
    echo "== prompts kept apart"
    "$python" corpus.py
    "$python" test_apart.py
    "$python" render.py
    if [ ! -f ../tokenizer.json ]; then
        echo "== tokenizer"
        "$python" make_tokenizer.py
    fi
    echo "== model against Transformers"
    "$python" model.py
fi
echo "== training, first round"
"$python" train.py --round 1 ${ROUND1:---tokens 12400000 --mtp-tokens 400000 --muon-lr 0.02 --adam-lr 0.003} "$@"
echo "== training, second round"
"$python" train.py --round 2 ${ROUND2:---tokens 8000000 --mtp-tokens 300000 --muon-lr 0.01 --adam-lr 0.0015} "$@"
echo "== training, third round"
"$python" train.py --round 3 ${ROUND3:---tokens 3100000 --mtp-tokens 0 --muon-lr 0.012 --adam-lr 0.0018} "$@"
echo "== training, fourth round"
"$python" train.py --round 4 ${ROUND4:---tokens 9900000 --mtp-tokens 300000 --muon-lr 0.014 --adam-lr 0.0021 --flat 0.4} "$@"
echo "== training, fifth round"
"$python" train.py --round 5 ${ROUND5:---tokens 4000000 --mtp-tokens 200000 --muon-lr 0.012 --adam-lr 0.0018 --flat 0.4} "$@"
echo "== training, sixth round"
# The mean of the ends of the fourth and the fifth round answers better than either.
"$python" train.py --round 6 --mean 4 0.35 ${ROUND6:---tokens 1500000 --mtp-tokens 100000 --muon-lr 0.006 --adam-lr 0.0009 --flat 0.3} "$@"
echo "== checkpoint"
"$python" export.py
echo "== marks, with Transformers; then the draft head"
for set in heldout strangers development; do
    echo "-- $set"
    "$python" ../eval/run_eval.py --set $set ${MARKS:-}
done
"$python" check.py --set heldout ${MARKS:---every 4}
