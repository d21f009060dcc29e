#!/bin/sh
# usage: tests/dist/run.sh BUILD   (make test-dist)
#
# Unpacks the archive of `make dist` in an older Debian (11, glibc 2.31; QWEN_SUITE names another),
# which debootstrap installs once into tests/.cache, and runs the programs in it and what Python
# and the dynamic linker make of the library there. Without debootstrap or root it says that it was
# not run; in CI (QWEN_CI) that is a failure. Mirrors drop old versions, which is none.
set -eu
cd "$(dirname "$0")/../.."
build=$1
suite=${QWEN_SUITE:-bullseye}
root=$PWD/tests/.cache/$suite
cannot_run() {
    echo "NOT RUN: the archive on Debian $suite: $*" >&2
    exit 0
}
not_run() {
    [ -z "${QWEN_CI:-}" ] || { echo "test-dist: could not run in CI: $*" >&2; exit 1; }
    cannot_run "$*"
}

if [ ! -e "$root/complete" ]; then
    command -v debootstrap >/dev/null || not_run "debootstrap is not installed"
    [ "$(id -u)" -eq 0 ] || not_run "it needs root"
    rm -rf "$root"
    debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib "$suite" "$root" \
        http://deb.debian.org/debian >"$build/debootstrap.log" 2>&1 ||
        cannot_run "debootstrap failed: $(tail -n 1 "$build/debootstrap.log")"
    touch "$root/complete"
fi

rm -rf "$root/opt/qwen"
mkdir -p "$root/opt/qwen"
tar -xzf "$build"/libqwen35-*-x86_64-linux-gnu.tar.gz -C "$root/opt/qwen" --strip-components=1
inside() { chroot "$root" "$@"; }
glibc=$(inside ldd --version | sed -n '1s/.* //p')

said=$(inside /opt/qwen/bin/qwen --model /opt/qwen/examples/demo-model \
    "What is the capital of France?" 40)
case $said in *Paris*) ;; *) echo "test-dist: qwen said \"$said\"" >&2; exit 1 ;; esac
inside /opt/qwen/bin/qwen-pack /opt/qwen/examples/demo-model /tmp/demo.qwen --weights int4
inside /opt/qwen/bin/qwen-pack --verify /tmp/demo.qwen
printf 'Hello, world' | inside /opt/qwen/bin/qwen-tokenize /opt/qwen/examples/demo-model >/dev/null
inside /opt/qwen/bin/qwen-ids /opt/qwen/examples/demo-model 1,2,3 4 >/dev/null

# The shared library, through the package for Python.
inside env LD_LIBRARY_PATH=/opt/qwen/lib PYTHONPATH=/opt/qwen/examples/python \
    PYTHONDONTWRITEBYTECODE=1 python3 -c '
import qwen35
with qwen35.Model("/opt/qwen/examples/demo-model") as model:
    session = model.session(sampling=qwen35.Sampling("greedy"))
    with qwen35.Conversation(session, thinking=False, max_tokens=40) as talk:
        answer = "".join(talk.ask("What is the capital of France?"))
assert "Paris" in answer, answer
try:
    qwen35.Model("/no/such/model")
except qwen35.Error as error:
    assert error.name == "QWEN_ERROR_IO", error
'
echo "the archive runs on Debian $suite with glibc $glibc"
