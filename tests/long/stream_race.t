#!/bin/sh
# The ring under the thread sanitizer, with each compiler that has it: tests/stream_race.c and what it tests, without MPI, HDF5 and CUDA. So that
# silence means something, a device whose events come too early must be reported.
top=${abs_top_srcdir:-$(dirname "$0")/../..}
folder=$(mktemp -d "${TMPDIR:-/tmp}/stream_race.XXXXXX") || exit 99
trap 'rm -rf "$folder"' EXIT
tests=0 failed=0

# ok STATUS NAME FILE: one test; a failure shows what is in the file.
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

# build COMPILER PROGRAM SOURCE...
build() {
    compiler=$1 program=$2
    shift 2
    $compiler -std=gnu11 -O1 -g -fsanitize=thread -pthread -I"$top" -o "$program" "$@" >"$folder/log" 2>&1
}

# Where addresses are laid out at random with more bits than the sanitizer knows, it cannot start.
start() {
    if "$folder/nothing" >/dev/null 2>&1; then
        "$@"
    else
        setarch -R "$@"
    fi
}

try() {
    echo 'int main(void) { return 0; }' >"$folder/nothing.c"
    if ! build "$1" "$folder/nothing" "$folder/nothing.c"; then
        skip "$1" "it has no thread sanitizer"
        return
    fi
    if ! start "$folder/nothing" >"$folder/log" 2>&1; then
        skip "$1" "its thread sanitizer does not start here"
        return
    fi
    build "$1" "$folder/race" "$top/tests/stream_race.c" "$top/tests/late_device.c" "$top/tests/tap.c" "$top/src/share.c" "$top/src/stream.c" \
        "$top/src/stream_io.c" "$top/src/slot.c" "$top/src/workers.c" "$top/src/stop.c" "$top/base/status.c"
    built=$?
    ok $built "$1: builds" "$folder/log"
    [ $built = 0 ] || return
    for turn in 1 2 3 4 5; do
        start "$folder/race" >"$folder/log" 2>&1
        status=$?
        grep -q '^not ok\|WARNING: ThreadSanitizer' "$folder/log" && status=1
        ok $status "$1: no race, turn $turn" "$folder/log"
    done
    start "$folder/race" early >"$folder/log" 2>&1
    grep -q 'WARNING: ThreadSanitizer: data race' "$folder/log"
    ok $? "$1: events that come too early are seen" "$folder/log"
}

export TSAN_OPTIONS=exitcode=66:halt_on_error=0
tried=
for compiler in "${CC:-cc}" gcc clang; do
    path=$(command -v ${compiler%% *}) || continue
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
