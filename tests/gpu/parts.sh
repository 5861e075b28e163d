# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of tests/gpu/run
# tests/gpu/parts.sh: the parts of tests/gpu/run, which sources this file.
#
# A part starts units: a test of the suite, a program under one tool, the products of one precision. A unit writes TAP
# to $logs/$part/.NAME, which becomes NAME when the unit has ended: then it is not run again. The last line says how
# it ended.

# of files and signals: no device in sight
on_processor=(tests/cli/{files,processors,refusals,signals,stdout_full,text,virtual}.t)
all_gpus=(tests/cli/sight.t) # which GPUs are in sight is what they test
measuring=(tests/cli/startup.t tests/cli/lessons.t) # they measure time
longest=(tests/cli/{matmul,batch,operands,normalize,gather,same_bits,reduce,normalize_same}.t) # by starts of CUDA
prepared=0 # seconds until the first unit of this part in this call
# Starts of CUDA at the same time, which go one after the other: with more of them a test waits for longer than its
# limit of 10 s.
starts=12
few_frames=64 # of a stack, where there is no room for more

is_in() {
    local one=$1
    shift
    [[ " $* " == *" $one "* ]]
}

# Waits until fewer than $1 jobs run.
room_for() {
    while (($(jobs -rp | wc -l) >= $1)); do wait -n; done
}

# under_way PART [WORD...]: files of units that are due, or have begun, but have not ended; with words of find.
under_way() {
    find "$logs/$1" -type f -name '.*' "${@:2}"
}

# unit NAME COMMAND...: runs a unit, unless it has ended in an earlier call. After a call cut it off it waits for one
# that has more time left for it, and has failed if it had nearly all that either call has: then it would never end. The
# time that it had on another machine says nothing.
unit() {
    local log=$logs/$part/$1 said=$logs/$part/.$1 start=$SECONDS left=$((until - SECONDS)) had=0 code
    local call=$((limit - reserve - prepared)) before=0 # seconds of this call, and of the one that cut it off
    shift
    [ ! -e "$log" ] || return 0
    if [ "$(sed -n '2s/^# on //p' "$said" 2>/dev/null)" = "$machine" ]; then
        read -r _ had _ before _ <"$said"
    fi
    if ((had > 0 && had * 10 >= (before > call ? before : call) * 9)); then
        printf '\nBail out! no end in %d s, which is all the time of a call\n' "$had" >>"$said"
        echo "exit 124 after $had s" >>"$said"
    elif ((left <= had)); then
        touch "$said"
        return
    else
        rm -f "$said" # what a call has ended may still write to it
        { echo "# $left of $call s are left of this call"; echo "# on $machine"; "$@"; } >"$said" 2>&1
        code=$?
        ((SECONDS < until)) || return # did it end, or was it ended?
        echo "exit $code after $((SECONDS - start)) s" >>"$said"
    fi
    mv "$said" "$log"
}

# --- The suite ---

run_test() {
    "$pack/tests/launch" "$1"
}

# The tests that follow, at most $1 at the same time.
run_tests() {
    local most=$1 started=0 file
    shift
    for file; do
        room_for "$most"
        (
            # One GPU for each test, in turn: with all of them in sight CUDA takes twice as long to start.
            [ "$gpu_count" -le 1 ] || is_in "$file" "${all_gpus[@]}" ||
                export CUDA_VISIBLE_DEVICES=$((started % gpu_count))
            ! is_in "$file" "${on_processor[@]}" ||
                export CUDA_VISIBLE_DEVICES='' GPUMEM_TEST_DEVICE='' GPUMEM_TEST_REQUIRE=''
            unit "${file//\//-}" run_test "$file"
        ) &
        started=$((started + 1))
    done
    wait
}

# run_device_tests MOST TEST...: tests of a device, which have half of the starts of CUDA.
run_device_tests() {
    local most=$1 together=$((starts / 2 / $1))
    export GPUMEM_TEST_TOGETHER=$((together > 1 ? together : 1)) # programs of one test
    run_tests "$@"
}

# Those that measure time, one after the other: no other part runs meanwhile.
part_timed() {
    local test timed=()
    for test in "${tests[@]}"; do
        ! is_in "$test" "${measuring[@]}" || timed+=("$test")
    done
    cd "$pack" || exit
    run_tests 1 "${timed[@]}"
}

# The longest tests have jobs of their own, with more programs at the same time: otherwise the suite waits for one of
# them. Tests that use no device have a quarter of the jobs: they do not wait for the start of CUDA, and nobody waits
# for theirs.
part_suite() {
    local test long=() others=() without=() few=$((jobs / 4))
    local most_long=$(((jobs - few) / 3)) most=$((jobs > 1 ? (jobs - few) / 2 : 1))
    most_long=$((most_long < starts / 2 ? most_long : starts / 2)) # of more jobs only $few become more
    most=$((most < starts * 3 / 4 ? most : starts * 3 / 4))
    for test in "${longest[@]}" "${tests[@]}"; do
        if is_in "$test" "${measuring[@]}"; then
            continue
        elif ((few > 0)) && { is_in "$test" "${on_processor[@]}" || [[ $test =~ ^tests/(base|io|mpi)/ ]]; }; then
            without+=("$test")
        elif ((most_long > 0)) && is_in "$test" "${longest[@]}"; then
            is_in "$test" "${long[@]}" || long+=("$test")
        elif is_in "$test" "${tests[@]}" && ! is_in "$test" "${others[@]}"; then
            others+=("$test")
        fi
    done
    # OpenMP's threads of one program: small loops of threads that wait for a processor take ten times as long.
    export GPUMEM_TEST_THREADS=$((jobs < $(nproc) ? $(nproc) / jobs : 1))
    cd "$pack" || exit
    ((few == 0)) || run_tests "$few" "${without[@]}" & # shells of their own: each counts its own jobs
    ((most_long == 0)) || run_device_tests "$most_long" "${long[@]}" &
    run_device_tests "$most" "${others[@]}" &
    wait
}

# --- Checks of shell, for the other parts ---

# check NAME COMMAND... is one test of TAP; what the command says is shown when it fails. $checks counts.
check() {
    local name=$1 status start=$SECONDS
    shift
    "$@" >"$scratch/said" 2>&1 </dev/null
    status=$?
    checks=$((checks + 1))
    [ $status = 0 ] || printf 'not '
    printf 'ok %d - %s, %d s\n' "$checks" "$name" $((SECONDS - start))
    [ $status = 0 ] || sed 's/^/# /' "$scratch/said" | tail -n 30
    return $status
}

# checked COMMAND...: the checks that it makes, and their plan.
checked() {
    local checks=0
    "$@"
    echo "1..$checks"
}

# A program that hangs fails its check, and does not keep the part from its end.
limited() {
    timeout --foreground --kill-after=10 "$longest_check" "$@"
}

run_program() {
    limited gpumem-run "$@" -q
}

# run_ranks RANKS WORD...
run_ranks() {
    local ranks=$1
    shift
    limited "$MPIRUN" -np "$ranks" --oversubscribe gpumem-run "$@" --no-sync --force
}

compare() {
    run_program compare "$scratch/$1.h5" "$scratch/$2.h5" --tolerance "$3"
}

# Type of the matrices for a precision.
declare -A types=([fp64]=f64 [int8]=i8)
type_of() {
    echo "${types[$1]:-f32}"
}

# The precisions in which the device multiplies, of all that the program names in its message.
find_precisions() {
    local name said file
    for name in f32 "${types[@]}"; do
        [ -e "$scratch/tiny-$name.h5" ] ||
            run_program gen matrices "$scratch/tiny-$name.h5" --size 512 --type "$name" --no-sync || return
    done
    said=$(gpumem-run matmul "$scratch/tiny-f32.h5" --precision '?' --plan 2>&1)
    [[ $said =~ expected\ one\ of\ (.*)\ \(rank ]] || { echo "$said"; return 1; }
    for name in ${BASH_REMATCH[1]//,/}; do
        file=$scratch/tiny-$(type_of "$name").h5
        if said=$(run_program matmul "$file" -o "$scratch/tiny.out.h5" --precision "$name" --device "$device" --plan \
            2>&1); then
            echo "$name"
        elif [[ $said != *'not supported by this device'* ]]; then
            echo "$said"
            return 1
        fi
    done
}

# --- The sanitizer ---

# Warnings of racecheck leave the exit code alone, so the summary counts too. 77 is the tool's exit code, another one
# that of the program, which may fail where the tool finds nothing. The first line says which, and the record has that
# line.
sanitized() {
    local tool=$1 log=$scratch/log found=$scratch/found code
    shift
    "$pack/tests/launch" "$sanitizer" --tool "$tool" --target-processes application-only --error-exitcode 77 "$@" \
        >"$log" 2>&1
    code=$?
    [ $code != 0 ] || ! grep -Eq 'SUMMARY: 0 (errors|hazards)' "$log" || return 0
    grep -E '^(=========  *[^ ]|not ok |Bail out)' "$log" |
        grep -Ev 'COMPUTE-SANITIZER|SUMMARY|backtrace|Host Frame|# TODO' >"$found"
    echo "exit code $code, $(grep -Eo '[A-Z]+ SUMMARY: .*' "$log" || echo no summary), first: $(head -n 1 "$found")"
    head -n 20 "$found"
    tail -n 8 "$log"
    return 1
}

# One program under one tool of compute-sanitizer.
sanitize() {
    local tool=$1 name=$2 scratch=$scratch/$1-$2
    shift 2
    room_for "$jobs"
    mkdir -p "$scratch"
    unit "$tool-$name" checked check "$tool $name" sanitized "$tool" "$@" &
}

part_sanitizer() {
    local tool test precision precisions type
    export GPUMEM_TEST_DEVICE=cuda GPUMEM_TEST_EVERY=5 # the suite runs all of them
    for type in f32 "${types[@]}"; do
        run_program gen matrices "$scratch/odd-$type.h5" --rows 301 --inner 1157 --columns 450 --type "$type" || return
    done
    precisions=$(find_precisions) || { echo "$precisions" >&2; return 1; }
    prepared=$SECONDS
    for tool in memcheck racecheck; do
        for test in "${tests[@]}"; do
            [[ $test == tests/kernels/* && $test != */@(sight|find) ]] || continue # those two make no call of CUDA
            # takes minutes there; the products below have its kernels
            [[ $test == *product && ($tool == racecheck || -n $quick) ]] && continue
            sanitize $tool "${test##*/}" "$pack/$test"
        done
        for precision in $precisions; do
            sanitize $tool "matmul-$precision" "$pack/src/gpumem-run" matmul "$scratch/odd-$(type_of "$precision").h5" \
                --precision "$precision" \
                --device cuda -o "$scratch/odd-$tool-$precision.h5" -q
        done
    done
    wait
}

# --- Products, and stacks: the same bits by any number of ranks ---

# Free bytes of a folder; in memory, half of what is free there: programs need the other half.
free_bytes() {
    local free memory
    free=$(df --output=avail -B1 "$1" 2>/dev/null | tail -n 1)
    if [ "$1" = /dev/shm ]; then
        memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo) * 512))
        ((memory > free)) || free=$memory
    fi
    echo "${free:-0}"
}

# A place for the files of a part: in memory, if there is room for them.
roomy_folder() {
    local folder need=$((48 * n * n)) # float64: A, B and two of C, and A and B in float32
    [ "$part" != stacks ] || need=$(bytes_of_stack)
    for folder in /dev/shm "${TMPDIR:-/tmp}" /tmp; do
        [ "$(free_bytes "$folder")" -gt "$need" ] && break
    done
    echo "$folder"
}

# Did the ranks of $1.json use $2 GPUs?
used_gpus() {
    "$PYTHON" -c 'import json, sys
devices = json.load(open(sys.argv[1]))["devices"]
print(*devices, sep="\n")
sys.exit(len({device["uuid"] for device in devices if device["kind"] == "cuda"}) != int(sys.argv[2]))' \
        "$scratch/$1.json" "$2"
}

# same_bits WHAT DIFFER WORD...: runs by each number of ranks, which write OUT.h5; DIFFER OUT FIRST compares two of
# them.
same_bits() {
    local what=$1 differ=$2 ranks gpus
    shift 2
    for ranks in "${rank_counts[@]}"; do
        gpus=$((ranks < gpu_count ? ranks : gpu_count))
        check "$what by $ranks ranks on $gpus GPUs" run_ranks "$ranks" "$@" --device "$device" \
            -o "$scratch/by$ranks.h5" --report "$scratch/by$ranks.json"
        check "$what: $gpus GPUs had a part in it" used_gpus "by$ranks" $gpus
        [ "$ranks" = 1 ] && continue
        check "$what: the same bits by 1 and $ranks ranks" "$differ" "by$ranks" by1
        rm -f "$scratch/by$ranks.h5"
    done
    rm -f "$scratch/by1.h5"
}

same_elements() {
    compare "$1" "$2" 0
}

# Of elements of positive data: what the order of sums makes of them, or the rounding of C (exact), or those of both
# operands.
declare -A tolerances=([fp32]=1e-5 [exact]=1.2e-7 [fp64]=1e-13 [tf32]=1e-3 [fp16]=1e-3 [bf16]=8e-3 [int8]=0)

# The other kind of device: the same precision, if the processor has it, or float32.
against_cpu() {
    local precision=$1 input=$2 tolerance=${tolerances[$1]} there=$1
    [[ " $(device=cpu find_precisions | tr '\n' ' ') " == *" $precision "* ]] || there=fp32
    check "$precision: $n_cpu on the processor, $there" \
        run_ranks 1 matmul "$input" --precision "$there" --device cpu -o "$scratch/reference.h5"
    check "$precision: $n_cpu on the device" \
        run_ranks 1 matmul "$input" --precision "$precision" --device "$device" -o "$scratch/product.h5"
    check "$precision: a tolerance is known" [ -n "$tolerance" ] || return
    check "$precision: they differ by $tolerance at most" compare product reference "$tolerance"
    grep -h '^max_relative_error' "$scratch/said" | sed 's/^/# /'
}

# matrices SIZE TYPE: checks that there is a file of them.
matrices() {
    [ -e "$scratch/$1-$2.h5" ] ||
        check "input of $1, $2" run_program gen matrices "$scratch/$1-$2.h5" --size "$1" --type "$2" \
            --distribution uniform --no-sync --force
}

products_of() {
    local precision=$1 type
    type=$(type_of "$precision")
    matrices "$n_cpu" $type
    against_cpu "$precision" "$scratch/$n_cpu-$type.h5"
    matrices "$n" $type
    same_bits "$precision: $n" same_elements matmul "$scratch/$n-$type.h5" --precision "$precision"
}

part_products() {
    local precision precisions
    export OMPI_MCA_mpi_yield_when_idle=1
    precisions=$(find_precisions) || { echo "$precisions" >&2; return 1; }
    prepared=$SECONDS
    for precision in $precisions; do
        unit "$precision" checked products_of "$precision"
    done
}

# Are all datasets of two files the same, bit by bit?
same_datasets() {
    "$PYTHON" -c 'import h5py, sys
files = [h5py.File(name, "r") for name in sys.argv[1:]]
names = [sorted(file) for file in files]
different = [name for name in names[0]
             if names[0] == names[1] and files[0][name][()].tobytes() != files[1][name][()].tobytes()]
print(*names, "different:", *different)
sys.exit(names[0] != names[1] or bool(different))' "$scratch/$1.h5" "$scratch/$2.h5"
}

stack_of() {
    [ -e "$scratch/stack.h5" ] ||
        check "input of $frames frames of $side x $side" \
            run_program gen stack "$scratch/stack.h5" --frames "$frames" --height "$side" --width "$side" \
            --type u16 --no-sync --force
    "$@"
}

bytes_of_stack() {
    echo $((7 * frames * side * side)) # the stack and two outputs, of 2 bytes an element
}

part_stacks() {
    local axis how method per type
    (($(free_bytes "${scratch%/*}") > $(bytes_of_stack))) || frames=$((frames < few_frames ? frames : few_frames))
    echo "$frames frames" >"$logs/.note-$part"
    export OMPI_MCA_mpi_yield_when_idle=1
    for axis in all frame pixel; do
        unit "reduce-$axis" checked stack_of same_bits "reduce --axis $axis" same_datasets \
            reduce "$scratch/stack.h5" --axis "$axis" \
            --stat count,min,max,sum,var,argmin,argmax -q
    done
    for how in 'minmax stack u16' 'percentile stack u16' 'zscore pixel f16'; do
        read -r method per type <<<"$how"
        unit "normalize-$method-$per" checked stack_of same_bits "normalize: $method per $per" same_elements \
            normalize "$scratch/stack.h5" \
            --method "$method" --per "$per" --type "$type" -q
    done
}

# --- Exchange between GPUs ---

part_exchange() {
    unit exchange "$pack/tests/gpu/exchange"
    cd "$pack" || exit
    run_tests 1 "${all_gpus[@]}" # the suite may run elsewhere, with one GPU
}
