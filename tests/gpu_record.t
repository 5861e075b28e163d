#!/bin/sh
# Which rooms have changed since the GPU tests last ran: a thing to do, not a failure. tests/gpu/README.md says how.
cd "${abs_top_srcdir:-$(dirname "$0")/..}" || exit 99
record=tests/gpu/verified
tests=0

skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

# todo STATUS NAME REASON
todo() {
    tests=$((tests + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tests - $2"
    else
        echo "not ok $tests - $2 # TODO $3"
    fi
}

[ -e "$record" ] || skip_all "no record yet ($record)"
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || skip_all "no git checkout"
grep -qx 'result  *PASS' "$record"
todo $? "the GPU tests passed" "$(head -n 1 "$record")"
for room in base kernels mpi io src; do
    grep -qx "tree  *$room  *$(git rev-parse "HEAD:$room")" "$record"
    todo $? "$room/ is what the GPU tests ran with" "run them again: tests/gpu/README.md"
done
echo "1..$tests"
