#!/usr/bin/env -S python3 -B
"""8, 16 and 64 ranks of one thread each: the same bits as by one rank, in products of several grids, stacks and part
files; what is told of the ranks."""
import glob
import hashlib
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

MOST, LIMIT = 64, 180
RNG = np.random.default_rng(17)
DEVICE = next(iter(gm.devices())) # where ranks share one GPU, 64 of them would wait for its start
ONE = f"--device {DEVICE} --threads 1"
NEW = "--force --no-sync -q"


def digest(path):
    """Of the elements of all datasets; virtual ones are read from their parts."""
    sha = hashlib.sha256()
    with h5py.File(path, "r") as file:
        for name in sorted(file):
            sha.update(file[name][()].tobytes())
    return sha.hexdigest()


def run(words, ranks):
    return gm.run(f"{words} {ONE}", ranks, LIMIT)


def same(words, ways):
    """Runs that write out.h5 have the bits of the run by one rank. ways: numbers of ranks and further words."""
    first = run(f"{words} -o out.h5 {NEW}", 1)
    want = digest("out.h5") if first.code == 0 else None
    gm.ok(want, f"{words}: 1 rank", first)
    for ranks, more in ways:
        ran = run(f"{words} -o out.h5 {NEW} {more}", ranks)
        got = digest("out.h5") if ran.code == 0 else None
        gm.ok(got and got == want, f"{words}: {ranks} ranks {more}", ran)


# --- Products: grids, layers of k whose sums are exchanged ---

square = {"A": RNG.standard_normal((640, 700)), "B": RNG.standard_normal((700, 590))}
gm.write("f8.h5", **square)
gm.write("f4.h5", **{name: data.astype("f4") for name, data in square.items()})
gm.write("deep.h5", A=RNG.standard_normal((40, 70000)).astype("f4"), B=RNG.standard_normal((70000, 36)).astype("f4"))
same("matmul f8.h5 --precision fp64", [(8, "--grid 4x2x1"), (16, "--grid 4x4x1"), (64, "--grid 8x8x1 --panels read")])
same("matmul f4.h5 --precision fp32", [(16, "--grid 16x1x1"), (64, "--grid 4x4x4 --output-layout parts")])
same("matmul deep.h5 --precision fp32", [(16, "--grid 1x1x16"), (64, "--grid 1x1x64"), (64, "")])
same("matmul deep.h5 --precision exact", [(8, "--grid 2x2x2"), (64, "--grid 2x2x16")])

# --- Stacks ---

gm.write("stack.h5", {"chunks": (3, 30, 41)}, d=RNG.integers(0, 60000, (150, 60, 82)).astype("u2"))
gm.write("plain.h5", d=RNG.standard_normal((130, 60, 82)).astype("f4"))
same("reduce stack.h5 --axis frame --stat min,max,sum,var,argmax", [(16, "")])
same("reduce plain.h5 --axis pixel --stat min,max,sum,var,argmax", [(64, "")])
same("normalize stack.h5 --method percentile", [(8, ""), (64, "--output-layout parts")])
same("normalize plain.h5 --method zscore --per pixel", [(64, "")])
same("normalize plain.h5 --method percentile --chunk 2,30,41 --deflate 1", [(64, "")])
same("transpose plain.h5 --axes 0,2", [(16, ""), (64, "")])

# --- Messages about the ranks ---

ran = run(f"normalize plain.h5 -o parts.h5 --output-layout parts --force --no-sync -v --report report.json", MOST)
with h5py.File("parts.h5", "r") as file:
    sources = {os.path.normpath(source.file_name) for source in file["d"].virtual_sources()} if ran.code == 0 else set()
gm.ok(sources and sources == {os.path.normpath(name) for name in glob.glob("parts.h5.parts-*/part-*.h5")},
      f"parts by {MOST} ranks: all of them are mapped", ran, sorted(sources))
table = re.findall(r"^gpumem-run: note: ((?:phase|start|open|read|write|work) .*)$", ran.err, re.M)
gm.ok(len(table) == 6 and len({len(line) for line in table}) == 1, "-v: the table of phases has columns", *table)
gm.ok(len(ran.err.splitlines()) < 25, "-v: no line for each rank", ran.err)
with open("report.json") as file:
    report = json.load(file)
ranks = report["per_rank"] if "per_rank" in report else report["ranks"]
gm.ok(report["exit"] == 0 and [one["rank"] for one in ranks] == list(range(MOST))
      and sum(one["bytes_written"] for one in ranks) == 130 * 60 * 82 * 4 and all(one["threads"] == 1 for one in ranks),
      f"the report has {MOST} ranks, which wrote all bytes", list(report), ranks[:2])

ran = run("matmul f8.h5 -o plan.h5 --plan --grid 8x8x1", MOST)
gm.ok(ran.code == 0 and len(re.findall(r"^rank", ran.out, re.M)) == MOST, "--plan: the share of each rank", ran)

ran = run("info", MOST)
lines = ran.out.splitlines()
head = next((at for at, line in enumerate(lines) if line.startswith("rank ")), 0)
rows = lines[head + 1:head + 1 + MOST]
starts = {(line.index("node") if "node" in line else line.index("any"), line.index("staged"), line.rindex(DEVICE))
          for line in rows if "staged" in line}
gm.ok(ran.code == 0 and [line.split()[0] for line in rows] == [str(rank) for rank in range(MOST)] and len(starts) == 1,
      "info: a table of all ranks", ran, starts)
gm.ok(DEVICE != "cpu" or f", rank 0-{MOST - 1}" in ran.out,
      "the ranks that see the processor, by the first and the last", ran)
used = set()
for row in rows:
    for part in row.split()[3].split(","):
        ends = [int(end) for end in part.split("-")]
        used |= set(range(ends[0], ends[-1] + 1))
gm.ok(used == os.sched_getaffinity(0) and all(row.split()[2].isdigit() and int(row.split()[2]) >= 1 for row in rows),
      "and the processors of each", used, *rows[:3])

# --- Ends ---

ran = run(f"matmul f8.h5:/A f8.h5:/A -o no.h5 {NEW}", MOST)
faults = gm.faults_of_refusal(ran, 3, "A", 90)
gm.ok(not faults and not os.path.exists("no.h5"), f"refused by {MOST} ranks: one message", ran, *faults)
words = f"gen stack big.h5 --frames 4000 --height 1024 --width 1024 --type f32 --no-sync --force {ONE}"
child = gm.start(gm.command_line(words, MOST, LIMIT))
gm.wait_until_heard(child, MOST, signal.SIGUSR2, 90)
time.sleep(3)
begun = time.monotonic()
child.send_signal(signal.SIGUSR2)
ran = gm.finish(child, LIMIT)
gm.ok(ran.code == 75 and not os.path.exists("big.h5") and len(ran.errors) == 1,
      f"a signal to {MOST} ranks: exit 75, one message", ran)
gm.note(f"after {time.monotonic() - begun:.1f} s")
gm.done()
