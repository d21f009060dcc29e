#!/bin/sh
# Random lives of sessions and conversations (tests/soak.rs), longer than in the tests: 1,000
# sequences of each, a minute of threads, and a part of the sequences under valgrind. SEED=N for
# others; SEQUENCES=N, SECONDS_OF_THREADS=N, VALGRIND_SEQUENCES=N for more or fewer.
set -eu
cd "$(dirname "$0")/.."
export QWEN35_SOAK_SEED="${SEED:-1}"
program=$(cargo test --test soak --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*soak-[^"]*\)".*/\1/p' | tail -n 1)
QWEN35_SOAK_SEQUENCES="${SEQUENCES:-1000}" QWEN35_SOAK_SECONDS="${SECONDS_OF_THREADS:-60}" \
    "$program" --nocapture --test-threads=1
if command -v valgrind >/dev/null; then
    # Valgrind knows AVX2, not AVX-512. What is "possibly lost" is a table that the template
    # engine makes once for all models.
    QWEN35_SOAK_ISA=avx2 QWEN35_SOAK_SEQUENCES="${VALGRIND_SEQUENCES:-20}" QWEN35_SOAK_SECONDS=1 \
        valgrind --error-exitcode=9 --quiet --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite \
        "$program" --nocapture --test-threads=1 random_
else
    echo "NOT RUN: valgrind is not installed"
fi
