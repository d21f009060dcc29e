#!/bin/sh
# Downloads the published Qwen3.5-0.8B checkpoint; see --help. POSIX sh with curl or wget.
set -eu

revision=2fc06364715b967f1860aea9cf38778875588b17
repository=Qwen/Qwen3.5-0.8B
default_base=${HF_ENDPOINT:-https://huggingface.co}/$repository/resolve/$revision

# SHA-256, bytes and name of every published file at that revision; the weights come last, so
# that a problem shows before the long wait.
published() {
    cat <<'EOF'
b90b86f35c8e6925ef74ee04d0e758f0a845c83a42089ad82bbaa948de9b4204 2907 config.json
49e2b6e395f959f077f1e992b338919c0d4a9732fc6e613995e06557f843500c 16709 tokenizer_config.json
273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80 7755 chat_template.jinja
5f9e4d4901a92b997e463c1f46055088b6cca5ca61a6522d1b9f64c4bb81cb42 12807982 tokenizer.json
ce99b4cb2983d118806ce0a8b777a35b093e2000a503ebde25853284c9dfa003 6722759 vocab.json
a9d356d7bdf1ef4949e3e748e95b8e10ad9d4e2e838eddc38a0a7b6b94d1db8d 3353259 merges.txt
27225450ac9c6529872ee1924fcb0962ff5634834f817040f444118116f4e516 390 preprocessor_config.json
7768af27c1fafa9cc9011c1dc20067e03f8915e03b63504550e11d5066986d13 385 video_preprocessor_config.json
d8a08838a613b025eb7952ed9db11696213e57e76a375661ef5c12f9dd5dcf4e 50900 model.safetensors.index.json
04b1c301231dd422b8860db31311ab2721511346a32cb1e079c4c4e5f1fe4696 1746942600 model.safetensors-00001-of-00001.safetensors
EOF
}

usage() {
    cat <<EOF
Usage: scripts/download_model.sh [OPTIONS] [DIR]

Downloads the Qwen3.5-0.8B checkpoint (10 files, 1.8 GB) into DIR, by default the
folder model/ of this project. Every file is checked against its published size and
SHA-256 before it gets its name: under its final name a file is always whole and right.

An interrupted download goes on where it stopped when the command is run again
(unfinished files are called NAME.part). Files that are already there are checked,
not loaded again.

Options:
  --base-url URL     load from URL/NAME, a mirror for instance. Default:
                     $default_base
                     (the environment variable HF_ENDPOINT replaces https://huggingface.co)
  --manifest FILE    other files than the published ones: lines of SHA256 BYTES NAME
  --force            replace files in DIR that differ from the published ones
  --tool curl|wget   what to load with (default: curl if there is one, else wget)
  --retry-delay N    seconds before the first retry, doubled for each one more (default 2)
  -h, --help         this text

Exit status: 0 all files are there and right, 1 they are not, 2 wrong usage.
EOF
}

say() { printf '%s\n' "$*" >&2; }

die() {
    say "download_model.sh: $*"
    exit 1
}

misuse() {
    say "download_model.sh: $*"
    say "Try scripts/download_model.sh --help."
    exit 2
}

base=$default_base manifest='' force='' tool='' delay=2 dir=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --force) force=yes ;;
    --base-url | --manifest | --tool | --retry-delay)
        [ $# -ge 2 ] || misuse "$1 needs a value"
        case $1 in
        --base-url) base=${2%/} ;;
        --manifest) manifest=$2 ;;
        --tool) tool=$2 ;;
        --retry-delay) delay=$2 ;;
        esac
        shift
        ;;
    --)
        shift
        [ $# -le 1 ] && [ -z "$dir" ] || misuse "only one folder can be given"
        dir=${1-}
        break
        ;;
    -*) misuse "unknown option $1" ;;
    *)
        [ -z "$dir" ] || misuse "only one folder can be given"
        [ -n "$1" ] || misuse "the folder's name is empty"
        dir=$1
        ;;
    esac
    shift
done
case $delay in '' | *[!0-9]* | ????*) misuse "--retry-delay must be a number of seconds, at most 999" ;; esac
case $base in
http://?* | https://?*) ;;
*) misuse "--base-url must begin with http:// or https://" ;;
esac
case $dir in
'') dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)/model ;;
/*) ;;
*) dir=./$dir ;; # a name may begin with a dash
esac

if [ -z "$tool" ]; then
    for tool in curl wget none; do
        command -v "$tool" >/dev/null 2>&1 && break
    done
fi
case $tool in
curl | wget) command -v "$tool" >/dev/null 2>&1 || die "$tool is not installed" ;;
none) die "neither curl nor wget is installed" ;;
*) misuse "--tool must be curl or wget" ;;
esac

if command -v sha256sum >/dev/null 2>&1; then
    sha256() { sha256sum <"$1" | cut -c 1-64; }
elif command -v shasum >/dev/null 2>&1; then
    sha256() { shasum -a 256 <"$1" | cut -c 1-64; }
elif command -v openssl >/dev/null 2>&1; then
    sha256() { openssl dgst -sha256 -r <"$1" | cut -c 1-64; }
else
    die "no program for SHA-256 is installed (sha256sum, shasum or openssl)"
fi

size_of() {
    if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi
}

# A number of bytes for a person.
readable() {
    if [ "$1" -ge 10000000 ]; then
        echo "$((($1 + 500000) / 1000000)) MB"
    elif [ "$1" -ge 10000 ]; then
        echo "$((($1 + 500) / 1000)) kB"
    else
        echo "$1 bytes"
    fi
}

# --- what to load ---------------------------------------------------------------------------

if [ -n "$manifest" ]; then
    [ -f "$manifest" ] || die "$manifest: no such file"
    files=$(cat -- "$manifest")
else
    files=$(published)
fi
count=0
while read -r sha size name rest; do
    case $name in '' | .* | -* | *[!A-Za-z0-9._-]*) die "${manifest}: not a file name: '$name'" ;; esac
    case $sha in *[!0-9a-f]*) die "$manifest: $name: not a SHA-256: $sha" ;; esac
    case $size in '' | *[!0-9]*) die "$manifest: $name: not a size: $size" ;; esac
    [ ${#sha} -eq 64 ] && [ -z "$rest" ] || die "$manifest: $name: expected SHA256 BYTES NAME"
    count=$((count + 1))
done <<EOF
$files
EOF

mkdir -p -- "$dir" || die "cannot make the folder $dir"
[ -w "$dir" ] || die "$dir: no permission to write"

# --- one download at a time per folder ------------------------------------------------------

lock=$dir/.download.lock
if ! mkdir -- "$lock" 2>/dev/null; then
    owner=$(cat -- "$lock/pid" 2>/dev/null || echo)
    if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null; then
        die "another download into $dir is running (process $owner)"
    fi
    # Left behind by one that was killed.
    rm -rf -- "$lock"
    mkdir -- "$lock" || die "cannot make $lock"
fi
echo $$ >"$lock/pid"
log=$lock/log

child=''
cleanup() { rm -rf -- "$lock"; }
interrupted() {
    trap '' INT TERM HUP
    # Programs in the background do not see Ctrl-C.
    [ -z "$child" ] || kill "$child" 2>/dev/null || :
    say ''
    say "Stopped. Run the same command again to go on."
    cleanup
    trap - EXIT
    exit 130
}
trap cleanup EXIT
trap interrupted INT TERM HUP

# --- loading --------------------------------------------------------------------------------

# Runs the rest of its arguments with a limit on the size of files, which ends a server that sends
# without end. In the background, so that a signal to this script is handled at once.
limited() {
    (
        ulimit -c 0 2>/dev/null || :
        ulimit -f $(((size + 2097152) / 512)) 2>/dev/null || :
        exec "$@" </dev/null
    ) &
    child=$!
    wait "$child" || status=$?
    child=''
}

# Appends to $part what is missing of $url. Sets status (0 if the tool is content) and http (the
# HTTP status, 000 if unknown).
transfer() {
    status=0
    if [ "$tool" = curl ]; then
        set -- --fail --location --output "$part" --write-out '%{http_code}' \
            --connect-timeout 20 --speed-limit 1024 --speed-time 30
        case $base in https:*) set -- "$@" --proto-redir =https ;; esac
        if [ "$have" -gt 0 ]; then set -- "$@" --continue-at "$have"; fi
        if [ -t 2 ]; then set -- "$@" --progress-bar; else set -- "$@" --silent --show-error; fi
        limited curl "$@" -- "$url" >"$log"
        http=$(cat -- "$log")
    else
        set -- -O "$part"
        if [ "$have" -gt 0 ]; then set -- "$@" -c; fi
        case $(wget --version 2>/dev/null) in
        GNU*)
            set -- "$@" --tries=1 --timeout=30 --no-verbose --output-file="$log"
            if [ -t 2 ]; then set -- "$@" --show-progress; fi
            limited wget "$@" -- "$url"
            ;;
        *) limited wget -T 30 "$@" -- "$url" 2>"$log" ;;
        esac
        http=000
        if [ "$status" -ne 0 ]; then
            http=$(sed -n 's/.*ERROR \([0-9][0-9][0-9]\).*/\1/p
                s/.*HTTP[^ ]* \([45][0-9][0-9]\).*/\1/p' "$log" | tail -n 1)
            tail -n 2 "$log" >&2
        fi
    fi
    [ -n "$http" ] || http=000
}

# Drops what was loaded of $part because of $1. Once it may be the fault of an earlier run, and
# twice that of a proxy; then it is the server.
start_over() {
    rm -f -- "$part"
    discarded=$((discarded + 1))
    [ "$discarded" -le 2 ] || die "$name: $1. This is not the published file: $url"
    say "  $1; starting over"
}

# Loads the file $name of $size bytes and $sha into $dir, all or nothing.
fetch() {
    part=$dir/$name.part
    url=$base/$name
    failures=0 discarded=0 wait=$delay
    while :; do
        have=$(size_of "$part")
        if [ "$have" -gt "$size" ]; then
            start_over "got more than the expected $size bytes"
            continue
        fi
        if [ "$have" -eq "$size" ]; then
            [ -f "$part" ] || : >"$part"
            found=$(sha256 "$part")
            if [ "$found" = "$sha" ]; then
                mv -f -- "$part" "$dir/$name" || die "cannot rename $part"
                return
            fi
            start_over "SHA-256 is $found, expected $sha"
            continue
        fi

        if [ "$have" -gt 0 ]; then say "  going on after $(readable "$have")"; fi
        transfer
        now=$(size_of "$part")
        case $http in
        416)
            start_over "the server's file ends before byte $have"
            continue
            ;;
        408 | 425 | 429) ;; # try again later
        4??) die "$name: the server answered $http for $url" ;;
        esac
        if [ "$tool" = curl ] && [ "$status" -eq 33 ]; then
            start_over "the server cannot go on in the middle of a file"
            continue
        fi
        if [ "$status" -eq 0 ] && [ "$now" -eq "$have" ]; then
            start_over "the server's file ends after $have bytes, expected $size"
            continue
        fi
        if [ "$now" -gt "$have" ]; then
            failures=0 wait=$delay
            [ "$now" -ne "$size" ] || continue
        else
            failures=$((failures + 1))
        fi
        if [ "$failures" -ge 5 ]; then
            answer=''
            [ "$http" = 000 ] || answer=", the last answer was $http"
            die "$name: gave up after $failures attempts without a byte$answer: $url
What was loaded is kept: run the same command again to go on."
        fi
        say "  broke off at $(readable "$now") of $(readable "$size"); next attempt in $wait s"
        sleep "$wait"
        wait=$((wait * 2))
    done
}

# --- all files ------------------------------------------------------------------------------

needed=0
while read -r sha size name; do
    [ -f "$dir/$name" ] || needed=$((needed + size - $(size_of "$dir/$name.part")))
done <<EOF
$files
EOF
free=$(df -Pk -- "$dir" 2>/dev/null | awk 'NR == 2 { print $4 }')
case $free in
'' | *[!0-9]*) ;;
*)
    [ $((needed / 1024)) -le "$free" ] ||
        die "$dir: $(readable "$needed") are needed, but only $((free / 1024)) MiB are free"
    ;;
esac

number=0
while read -r sha size name; do
    number=$((number + 1))
    if [ -e "$dir/$name" ]; then
        if [ "$(size_of "$dir/$name")" -eq "$size" ] && [ "$(sha256 "$dir/$name")" = "$sha" ]; then
            say "[$number/$count] $name: already there, checked"
            continue
        fi
        [ -n "$force" ] ||
            die "$dir/$name is there, but is not the published file; move it away, or use --force to replace it"
    fi
    say "[$number/$count] $name ($(readable "$size"))"
    fetch
done <<EOF
$files
EOF
say "All $count files are in $dir and checked."
