#!/usr/bin/env python3
"""tests/gpu/scaling.py: what 1, 2, 4, ... and all GPUs of a host reach, and what the program's plan and its start are
worth there.

    scaling.py [--gpus N] [--folder DIR] [--gigabytes G] [--repeat R] [--other WORDS] [--loop PROGRAM] [--trial]
               [--json FILE] [PART...]

PART, with the seconds after which it is ended (default: all, in this order):
    reduce     240   minimum, maximum and sum of one stack in one file, --gigabytes (34), on 1, 2, 4, ... and all GPUs
    normalize  240   the same stack to a min-max normalized one in parts, on one and all
    buffers    180   both with several sizes of --buffer, 0 (whole slots) among them, on one and all
    deep       180   4096 x 1048576 x 4096 (m, k, n), float32, on 1, 2, 4, ... and all
    square     400   n = 65536 on one and all; n = 32768 on one with --device-memory of A + B + C, half and a quarter of
                     it
    plan       400   --plan's expected_time beside wall_s: products, n = 16384, 32768, 65536 and deep; reduce and
                     normalize, 8 GB and --gigabytes
    verify     180   the phase verify as a share of wall_s, n = 16384 and 32768
    shapes     500   30 products of sides 256 to 131072 on one and all: which are slower on all by more than 5 %
    startup    360   whole commands by the clock, n = 1024: alone, by all ranks, mpirun with true, the bare start of
                     CUDA, info; its steps; medians of 15
    bits       400   products and reductions by 1, 2, 3, ... (beyond 8 by 16, 32, ... and all) ranks, by several --grid,
                     with much and little memory: one sha256 of each

All: the GPUs that nvidia-smi lists, or --gpus. gpumem-run, mpirun: from PATH. Files are made in --folder (/dev/shm; up
to 160 GB) and removed. --other: words before the command that run another version, in turn with this one, in reduce,
normalize, deep, square (n = 65536) and startup:
    --other 'bash -c ". /tmp/old/env.sh; exec \\"$@\\"" other'
--loop: a program that reads a file into GPUs with nothing around it, PROGRAM FILE BYTES RANK GPU START. Each rank
prints "rank R T=... g: X GB/s" for one setting after the other; beside reduce stands the best of the first seven, all
ranks as fast as the slowest.
--trial: sizes of a trial, each run once; without a GPU it is the only way, by 3 ranks on the processor.

A time is wall_s of the report (startup: the clock's), the median of --repeat runs (3) after one that warms up; of one
run if that took more than 5 s, and in plan and shapes, which warm up files only; a shape that is slower on all runs
again, at last nine times by each. Ratios are greater than 1 where the program is faster than what it is compared
with. A table of all figures ends the output, JSON has the phases as well. A part that fails says why, and the others
go on; the exit code is 1 then. bits needs h5py.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import figures # noqa: E402
from figures import FRAME, Failed, phases_of # noqa: E402

SLOW = 5 # seconds of a run that is not repeated
LOOP_SETTINGS = 7
PARTS_OUT = ["--output-layout", "parts", "--no-sync"]
STATISTICS = ["--stat", "min,max,sum"]

# m, n, k of products, and those of a trial.
PRODUCTS = {"deep": ((4096, 4096, 1048576), (96, 96, 8192)), "1024": ((1024,) * 3, (256,) * 3),
            "16384": ((16384,) * 3, (384,) * 3), "32768": ((32768,) * 3, (640,) * 3),
            "65536": ((65536,) * 3, (768,) * 3), "odd": ((3001, 2003, 70001), (301, 203, 1501))}

# m, n and k by letters: cubes; small, middle and large k; C large or small. No matrix has two sides H.
SIDES = {"S": (256, 16), "M": (2048, 64), "L": (16384, 256), "H": (131072, 1024)}
SHAPES = """SSS MMM LLL  LLS LLM MMS  SSM SSL MML  LSS LML LMM MSL  SLL SML MLL
SSH MMH LLH SMH LSH SLH  HSS HMM HLL HSL  SHS MHM LHL SHL""".split()


class Session(figures.Session):
    def __init__(self, options):
        super().__init__(options)
        self.all = options.gpus
        self.counts = figures.doubled(self.all)
        self.ends = sorted({1, self.all})
        self.programs = {"this": [], "other": shlex.split(options.other)} if options.other else {"this": []}
        self.inputs, self.part, self.failed = {}, "", {}

    def pick(self, full, trial):
        return trial if self.options.trial else full

    def rounds(self, first, times):
        slow = times is None and max(seconds for seconds, _ in first) > SLOW
        return 0 if self.options.trial else 1 if slow else super().rounds(first, times)

    def row(self, what, gpus, value, unit, ratios=None, report=None):
        row = {"part": self.part, "what": what, "gpus": gpus, "value": value, "unit": unit, "ratios": ratios or {},
               "phases": phases_of(report) if report else None}
        self.rows.append(row)
        print("  ".join(cells(row)[1:]), flush=True)

    def input(self, name, size, make):
        """A file that is made when it is first wanted, with room for as much again; it stays until no later part wants
        it."""
        if name not in self.inputs:
            self.room(2 * size)
            self.inputs[name] = make(name + ".h5")
        return self.inputs[name]

    def drop(self, kept):
        """Removes outputs, what a run left that failed, and inputs but for those that are kept."""
        self.inputs = {name: path for name, path in self.inputs.items() if name in kept}
        figures.remove(*({self.path(name) for name in os.listdir(self.folder)} - set(self.inputs.values())))

    def product(self, name):
        """A file with A and B, and m, n, k."""
        m, n, k = self.pick(*PRODUCTS[name])
        return self.input(name, 4 * (m * k + k * n), lambda file: figures.make_matrices(self, file, m, k, n)), (m, n, k)

    def stack(self, gigabytes=None):
        """A stack, of --gigabytes or of another size, and its bytes."""
        frames = max(2, round((gigabytes or self.options.gigabytes) * 1e9 / (2 * FRAME ** 2)))
        size = frames * 2 * FRAME ** 2
        return self.input(f"stack-{gigabytes}" if gigabytes else "stack", size,
                          lambda file: figures.make_stack(self, file, frames)), size

    def scale(self, what, words, counts, size=None, output=None):
        """Runs by each number of ranks, of the other version in turn: rows, and (ranks, seconds) as they come. size:
        the bytes that GB/s are of."""
        one = None
        for ranks in counts:
            found = self.in_turn([lambda prefix=prefix: self.timed(words, ranks, output, prefix)
                                  for prefix in self.programs.values()])
            runs = dict(zip(self.programs, found))
            one = one or runs
            for program, (seconds, report) in runs.items():
                ratios = {}
                if ranks > 1:
                    speed_up = one[program][0] / seconds
                    ratios.update({"times one GPU": speed_up, "efficiency": speed_up / ranks})
                if program == "this" and "other" in runs:
                    ratios["times the other"] = runs["other"][0] / seconds
                self.row(what + ("" if program == "this" else ", the other"), ranks,
                         size / seconds / 1e9 if size else seconds, "GB/s" if size else "s", ratios, report)
            yield ranks, runs["this"][0]


def cells(row):
    ratios = ", ".join(f"{ratio:.3g} {name}" for name, ratio in row["ratios"].items())
    return row["part"], row["what"], str(row["gpus"]), f"{row['value']:.4g}", row["unit"], ratios


def print_table(rows):
    lines = [("part", "what", "GPUs", "", "", ""), *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    print()
    for line in lines:
        print("  ".join(cell.rjust(width) if at in (2, 3) else cell.ljust(width) for at,
                        (cell, width) in enumerate(zip(line, widths))).rstrip())


def side(shape):
    """n of a square, the sides of another product."""
    m, n, k = shape
    return f"n = {n}" if m == n == k else f"{m} x {k} x {n} (m, k, n)"


# --- The parts ---

def loop_rate(session, path, size, ranks):
    """GB/s of all ranks of the loop and its setting, the best of the first few."""
    start = time.time() + 5
    command = ["timeout", str(int(session.time_left())), session.options.loop, path, str(size // ranks)]
    loops = [subprocess.Popen([*command, str(rank), "0", str(start)],
                              env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(rank)), text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(ranks)]
    found = []
    try:
        for _ in range(LOOP_SETTINGS):
            lines = [loop.stdout.readline() for loop in loops]
            matches = [re.match(r"rank \d+ (T=.*) g: ([\d.]+) GB/s", line) for line in lines]
            if None in matches:
                raise Failed(f"{session.options.loop}: {lines[matches.index(None)].strip() or 'ended early'}")
            found.append((ranks * min(float(match[2]) for match in matches), matches[0][1]))
    finally:
        for loop in loops:
            loop.terminate()
            loop.communicate()
    return max(found)


def part_reduce(session):
    path, size = session.stack()
    for ranks, seconds in session.scale(f"{size / 1e9:.2g} GB to min, max, sum", ["reduce", path, *STATISTICS],
                                        session.counts, size):
        if session.options.loop:
            rate, setting = loop_rate(session, path, size, ranks)
            session.row(f"the loop, {setting}", ranks, rate, "GB/s", {"program / loop": size / seconds / 1e9 / rate})


def part_normalize(session):
    path, size = session.stack()
    out = session.path("n.out.h5")
    for _ in session.scale(f"{size / 1e9:.2g} GB to min-max normalized parts",
                           ["normalize", path, "-o", out, *PARTS_OUT], session.ends, size, out):
        pass


def part_buffers(session):
    path, size = session.stack()
    out = session.path("n.out.h5")
    jobs = {"reduce": (["reduce", path, *STATISTICS], None),
            "normalize into parts": (["normalize", path, "-o", out, *PARTS_OUT], out)}
    sizes = session.pick(("0", "256K", "512K", "1M", "2M", "4M"), ("0", "64K"))
    for ranks in session.ends:
        for what, (words, output) in jobs.items():
            found = session.in_turn([lambda bytes=bytes: session.timed([*words, "--buffer", bytes], ranks, output)
                                     for bytes in sizes])
            for bytes, (seconds, report) in zip(sizes, found):
                session.row(f"{what}, --buffer {bytes}", ranks, size / seconds / 1e9, "GB/s",
                            {"times whole slots": found[0][0] / seconds}, report)


def part_deep(session):
    multiply(session, "deep", session.counts)


def multiply(session, name, counts):
    path, shape = session.product(name)
    out = session.path("c.out.h5")
    for _ in session.scale(side(shape), ["matmul", path, "-o", out, *PARTS_OUT], counts, output=out):
        pass


def part_square(session):
    multiply(session, "65536", session.ends)
    path, (n, _, _) = session.product("32768")
    out, total = session.path("c.out.h5"), 3 * 4 * n * n
    words = ["matmul", path, "-o", out, *PARTS_OUT]
    limits = {"no limit": [], **{f"--device-memory {total // part}": ["--device-memory", str(total // part)]
                                 for part in (1, 2, 4)}}
    found = session.in_turn([lambda more=more: session.timed([*words, *more], 1, out) for more in limits.values()])
    for name, (seconds, report) in zip(limits, found):
        session.row(f"n = {n}, {name}", 1, seconds, "s", {"of the speed without limit": found[0][0] / seconds}, report)


def plan_jobs(session):
    """Of what is planned: a name, the words, and whether it has an output."""
    for name in session.pick(("16384", "32768", "65536", "deep"), ("deep",)):
        path, shape = session.product(name)
        yield f"matmul {side(shape)}", ["matmul", path], True
    for gigabytes in session.pick((8, None), (None,)):
        path, size = session.stack(gigabytes)
        yield f"reduce {size / 1e9:.2g} GB", ["reduce", path, *STATISTICS], False
        yield f"normalize {size / 1e9:.2g} GB", ["normalize", path], True


def part_plan(session):
    out = session.path("p.out.h5")
    for what, words, has_output in plan_jobs(session):
        words = words + ["-o", out, *PARTS_OUT] if has_output else words
        if not session.options.trial:
            session.timed(words, session.all, out) # pages that are read for the first time are slow
        for ranks in session.pick(session.counts, session.ends):
            seconds, report = session.timed(words, ranks, out)
            session.clear(out)
            plan = figures.finish(session.command([*words, "--plan", "--device", session.device], ranks),
                                  session.time_left())
            expected = float(re.search(r"^expected_time +(\S+) s$", plan, re.M)[1])
            session.row(what, ranks, seconds, "s", {"expected / wall": expected / seconds}, report)


def part_verify(session):
    out = session.path("c.out.h5")
    for name in ("16384", "32768"):
        path, shape = session.product(name)
        for ranks in session.ends:
            seconds, report = session.repeat(lambda: session.timed(["matmul", path, "-o", out, *PARTS_OUT], ranks, out))
            session.row(f"verify, {side(shape)}", ranks, 100 * phases_of(report)["verify"] / seconds, "% of wall_s",
                        None, report)


def part_shapes(session):
    """A is the first rows of a matrix of its width, B the last rows of another: files are read in one piece, and cubes
    have two different factors."""
    sides = {letter: session.pick(*both) for letter, both in SIDES.items()}
    rows = {letter: sides["L" if letter == "H" else "H"] for letter in SIDES}
    path = {letter: session.input(f"width-{letter}", 4 * rows[letter] * width, lambda file, letter=letter,
                                  width=width: figures.make_matrices(session, file, rows[letter], width, 1)) for letter,
            width in sides.items()}
    for letter in SIDES:
        session.timed(["reduce", path[letter] + ":A", *STATISTICS])
    out, slower = session.path("c.out.h5"), []
    for shape in session.pick(SHAPES, SHAPES[::10]):
        m, n, k = (sides[letter] for letter in shape)
        words = ["matmul", f"{path[shape[2]]}:A[:{m}]", f"{path[shape[1]]}:A[{rows[shape[1]] - k}:]", "-o", out,
                 *PARTS_OUT]
        measures = [lambda ranks=ranks: session.timed(words, ranks, out) for ranks in reversed(session.ends)]
        # on all first: its output may be the first that takes that much memory
        found = [measure() for measure in measures]
        for rounds in (None, 9): # it is not to be chance
            if found[0][0] > 1.05 * found[-1][0]:
                found = session.in_turn(measures, rounds)
        (seconds, report), (one, report_of_one) = found[0], found[-1]
        session.row(side((m, n, k)), session.all, seconds, "s", {"times one GPU": one / seconds}, report)
        session.row(side((m, n, k)), 1, one, "s", None, report_of_one)
        if seconds > 1.05 * one:
            slower.append((one / seconds, side((m, n, k))))
    for ratio, name in sorted(slower):
        session.row(f"slower on all: {name}", session.all, 100 * (1 / ratio - 1), "% slower")
    session.row("slower on all by more than 5 %", session.all, len(slower), "shapes")


# Seconds from the first use of CUDA to a context, once the clock says so.
START = """
import ctypes, sys, time
time.sleep(max(0, float(sys.argv[1]) - time.time()))
begin, failed = time.perf_counter(), 0
if sys.argv[2] == "cuda":
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    failed = (cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0)
              or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
print(time.perf_counter() - begin)
sys.exit(failed and f"CUDA error {failed}")
"""


def start_cuda(session, count):
    """Seconds until that many processes with a GPU each in sight have started CUDA."""
    command = [sys.executable, "-c", START, str(time.time() + 0.25), session.device]
    starts = [subprocess.Popen(command, env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu)), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for gpu in range(count)]
    try:
        said = [start.communicate(timeout=session.time_left()) for start in starts]
    finally:
        for start in starts:
            start.kill()
    for start, (_, err) in zip(starts, said):
        if start.returncode:
            raise Failed(f"the start of CUDA: exit code {start.returncode}\n{err}")
    return max(float(out) for out, _ in said), None


def clock(session, command):
    begin = time.perf_counter()
    figures.finish(command, session.time_left())
    return time.perf_counter() - begin, None


def part_startup(session):
    path, shape = session.product("1024")
    out = session.path("c.out.h5")
    bare = ["matmul", path, "-o", out, "--no-sync"]
    words = [*bare, "--force", "--device", session.device]
    measures = {} # by what, ranks and program
    for program, prefix in session.programs.items():
        measures.update({(f"matmul {side(shape)}", ranks,
                          program): lambda command=session.command(words, ranks, prefix): clock(session, command)
                         for ranks in session.ends})
        measures["info", 1, program] = lambda command=session.command(["info"], 1, prefix): clock(session, command)
    mpirun = session.command([], 2)[0]
    measures[f"mpirun -np {session.all} true", session.all,
             "this"] = lambda: clock(session, [mpirun, "-np", str(session.all), "true"])
    measures.update({("start of CUDA, one GPU in sight", count, "this"): lambda count=count: start_cuda(session, count)
                     for count in session.ends})
    found = dict(zip(measures, session.in_turn(measures.values(), 15)))
    for (what, ranks, program), (seconds, _) in sorted(found.items()):
        other = found.get((what, ranks, "other"))
        session.row(what + ("" if program == "this" else ", the other"), ranks, seconds, "s",
                    {"times the other": other[0] / seconds} if program == "this" and other else None)
    for ranks in session.ends:
        starts = [session.timed(bare, ranks, out)[1]["start"] for _ in range(session.pick(15, 1))]
        for step in starts[0]:
            session.row(f"matmul {side(shape)}, start: {step}", ranks,
                        statistics.median(start[step] for start in starts), "s")


def digest(path):
    """Of all datasets: names and elements."""
    import h5py
    sha = hashlib.sha256()
    with h5py.File(path, "r") as file:
        for name in sorted(file):
            sha.update(name.encode() + file[name][()].tobytes())
    return sha.hexdigest()[:16]


def digest_of_run(session, words, ranks, memory):
    """The digest of what one run wrote, with that limit of the device's memory, or the least that the program says it
    needs."""
    out = session.path("b.out.h5")
    words = [*words, "-o", out, "--no-sync"]
    try:
        session.timed([*words, "--device-memory", str(memory)] if memory else words, ranks, out)
    except Failed as failure:
        enough = memory and re.search(r"expected at least (\d+) bytes", str(failure))
        if not enough:
            raise
        session.timed([*words, "--device-memory", enough[1]], ranks, out)
    found = digest(out)
    session.clear(out)
    return found


def grids(ranks):
    return [f"{r}x{c}x{ranks // (r * c)}" for r in range(1, ranks + 1) for c in range(1, ranks + 1)
            if ranks % (r * c) == 0]


def part_bits(session):
    path, (m, n, k) = session.product("odd")
    stack, size = session.stack(session.pick(2, None))
    everyone = sorted({*range(1, min(session.all, 8) + 1), *session.counts})
    some = sorted(session.pick({1, 2, 3, session.all}, {1, session.all}) & set(everyone))
    small = {"matmul": m * n + m * k + k * n, "reduce": min(size // 4, 64 << 20)} # a quarter of A + B + C
    jobs = [(f"matmul {side((m, n, k))} {precision}", ["matmul", path, "--precision", precision])
            for precision in session.pick(("fp32", "exact"), ("exact",))]
    jobs += [(f"reduce {size / 1e9:.2g} GB, {axis}",
              ["reduce", stack, "--axis", axis, "--stat", "min,max,sum,var,argmax"])
             for axis in session.pick(("all", "frame", "pixel"), ("frame",))]
    wrong = []
    for what, words in jobs:
        runs = [(ranks, [], None) for ranks in everyone] + [(ranks, [], small[words[0]]) for ranks in some]
        if words[0] == "matmul":
            runs += [(ranks, ["--grid", grid], None) for ranks in some[1:] for grid in grids(ranks)]
        found = collections.defaultdict(list)
        for ranks, more, memory in runs:
            name = " ".join([f"{ranks} ranks", *more, *([f"--device-memory {memory}"] if memory else [])])
            found[digest_of_run(session, [*words, *more], ranks, memory)].append(name)
        session.row(f"{what}, {len(runs)} runs: {', '.join(found)}", session.all, len(found), "sha256")
        if len(found) > 1:
            wrong.append(f"{what}: " + "; ".join(f"{sha} by {', '.join(names)}" for sha, names in found.items()))
    if wrong:
        raise Failed("bits differ\n" + "\n".join(wrong))


# The function of each part, the seconds after which it is ended, and its inputs, which stay for a later part.
PARTS = {"reduce": (part_reduce, 240, ["stack"]), "normalize": (part_normalize, 240, ["stack"]),
         "buffers": (part_buffers, 180, ["stack"]), "deep": (part_deep, 180, ["deep"]),
         "square": (part_square, 400, ["32768", "65536"]),
         "plan": (part_plan, 400, ["16384", "32768", "65536", "deep", "stack"]),
         "verify": (part_verify, 180, ["16384", "32768"]), "shapes": (part_shapes, 500, []),
         "startup": (part_startup, 360, []), "bits": (part_bits, 400, ["stack"])}


def run_part(session, name):
    work, limit, _ = PARTS[name]
    begin = time.monotonic()
    session.part, session.deadline = name, begin + limit
    print(f"--- {name}", flush=True)
    try:
        work(session)
    except Exception as failure: # of any kind: the other parts are worth having
        kind = "" if isinstance(failure, Failed) else f"{type(failure).__name__}: "
        session.failed[name] = f"{kind}{failure}".strip()
        print(f"{name} failed: {session.failed[name]}", flush=True)
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


def write_json(session, names):
    if session.options.json:
        with open(session.options.json, "w") as file:
            json.dump({"gpus": session.all, "device": session.device, "trial": session.options.trial, "parts": names,
                       "rows": session.rows, "failed": session.failed}, file, indent=1)


def read_options():
    parser = argparse.ArgumentParser(description="1, 2, 4, ... and all GPUs of a host.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--gpus", type=figures.positive, metavar="N")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--gigabytes", type=float, metavar="G")
    parser.add_argument("--repeat", type=figures.positive, default=3, metavar="R")
    parser.add_argument("--other", metavar="WORDS", help="before the command: another version")
    parser.add_argument("--loop", metavar="PROGRAM")
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}: {', '.join(PARTS)}")
    if not options.trial and not figures.gpu_count():
        parser.error("nvidia-smi lists no GPU here: --trial")
    options.gpus = options.gpus or figures.gpu_count() or 3
    options.gigabytes = options.gigabytes or (0.03 if options.trial else 34)
    return options


def main():
    options = read_options()
    names = [name for name in PARTS if name in options.parts] or list(PARTS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # files are removed then, too
    session = Session(options)
    try:
        for at, name in enumerate(names):
            run_part(session, name)
            session.drop({kept for later in names[at + 1:] for kept in PARTS[later][2]})
            write_json(session, names)
    finally:
        shutil.rmtree(session.folder)
    print_table(session.rows)
    for name, why in session.failed.items():
        print(f"{name} failed: {why}")
    sys.exit(1 if session.failed else 0)


if __name__ == "__main__":
    main()
