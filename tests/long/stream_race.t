#!/bin/sh
# The ring under the thread sanitizer, with each compiler that has it: tests/src/stream/stream_race.c and its sources,
# without MPI, HDF5 and CUDA. To show that the sanitizer works, a device whose events complete too early must be
# reported.
top=${abs_top_srcdir:-$(dirname "$0")/../..}
folder=$(mktemp -d "${TMPDIR:-/tmp}/stream_race.XXXXXX") || exit 99
trap 'rm -rf "$folder"' EXIT
tests=0 failed=0

# ok STATUS NAME FILE: one test; a failure prints the file.
ok() {
    tests=$((tests + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tests - $2"
    else
        failed=$((failed + 1))
        echo "not ok $tests - $2"
        head -n 200 "$3" | sed 's/^/# /'
    fi
}

skip() {
    tests=$((tests + 1))
    echo "ok $tests - $1 # SKIP $2"
}

# build COMPILER PROGRAM SOURCE...: sources relative to the top folder.
build() {
    compiler=$1 program=$2
    shift 2
    (cd "$top" && $compiler -std=gnu11 -O1 -g -fsanitize=thread -pthread -I. -o "$program" "$@" -lm) >"$folder/log" 2>&1
}

# The sanitizer cannot start if address randomization has more bits than it supports.
start() {
    if "$folder/nothing" >/dev/null 2>&1; then
        "$@"
    else
        setarch -R "$@"
    fi
}

sources=
for file in tests/src/stream/stream_race tests/src/stream/checked_program tests/src/stream/late_device tests/tap \
    src/stream/io_threads src/stream/lane src/stream/sample src/stream/share src/stream/slot src/stream/stream \
    src/stream/stream_io base/range base/size base/stop base/status base/text/escape base/thread; do
    sources="$sources $file.c"
done

try() {
    echo 'int main(void) { return 0; }' >"$folder/nothing.c"
    if ! build "$1" "$folder/nothing" "$folder/nothing.c"; then
        skip "$1" "no thread sanitizer"
        return
    fi
    if ! start "$folder/nothing" >"$folder/log" 2>&1; then
        skip "$1" "the thread sanitizer does not start"
        return
    fi
    build "$1" "$folder/race" $sources
    built=$?
    ok $built "$1: builds" "$folder/log"
    [ $built = 0 ] || return
    start timeout -s ABRT 800 "$folder/race" >"$folder/log" 2>&1 # half a minute, where the machine does nothing else
    status=$?
    grep -q '^not ok\|WARNING: ThreadSanitizer' "$folder/log" && status=1
    ok $status "$1: no race" "$folder/log"
    start env TSAN_OPTIONS=halt_on_error=1 "$folder/race" early >"$folder/log" 2>&1 # the first report is enough
    grep -q 'WARNING: ThreadSanitizer: data race' "$folder/log"
    ok $? "$1: early completion of events is reported" "$folder/log"
}

export TSAN_OPTIONS=exitcode=66:halt_on_error=0
tried=
for compiler in "${CC:-cc}" gcc clang; do
    name=${compiler#ccache }
    path=$(command -v ${name%% *}) || continue
    path=$(readlink -f "$path")
    case " $tried " in
    *" $path "*) continue ;;
    esac
    tried="$tried $path"
    try "$compiler"
done
if [ $tests = 0 ]; then
    echo '1..0 # SKIP no compiler'
    exit 0
fi
echo "1..$tests"
[ $failed = 0 ]
