#!/usr/bin/env -S python3 -B
"""Runs that end before each of their calls of files (open, write, truncation, flush, link, rename, unlink, folders,
close), by SIGKILL and by TERM: the file under the final name is absent, the old one or complete; after TERM nothing
else is left; the next run succeeds, and then nothing else is left either. On 1 and 2 ranks.

GPUMEM_TEST_RUNS: number of ended runs (300), chosen evenly from all of them; 0: all."""
import functools
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

gm.need_fault()
RUNS = int(os.environ.get("GPUMEM_TEST_RUNS", 300))
WITHIN = 60
KINDS = ("open", "write", "space", "sync", "rename", "unlink", "folder", "close")
RNG = np.random.default_rng(3)
SOURCE = os.path.abspath(gm.write("in.h5", A=gm.integers(RNG, (40, 30)), B=gm.integers(RNG, (30, 20)),
                                  S=RNG.integers(0, 999, (12, 10, 8), dtype="u2"),
                                  F=RNG.integers(1, 99, (10, 8), dtype="u2"), I=RNG.integers(0, 12, 20)))
OPERATIONS = {"matmul": f"matmul {SOURCE} -o out.h5", "normalize": f"normalize {SOURCE}:/S --type f32 -o out.h5",
              "flat field": f"normalize {SOURCE}:/S --method flatfield --flat {SOURCE}:/F --type u8 -o out.h5",
              "reduce": f"reduce {SOURCE}:/S --axis frame -o out.h5", "flip": f"flip {SOURCE}:/S --axis 0 -o out.h5",
              "transpose": f"transpose {SOURCE}:/S -o out.h5",
              "gather": f"gather {SOURCE}:/S --index {SOURCE}:/I -o out.h5",
              "gen": "gen stack out.h5 --frames 12 --height 10 --width 8"}
LAYOUTS = {"single": "", "parts": " --output-layout parts", "chunks": " --deflate 1 --shuffle"}
REPORT = f"info {SOURCE} --report out.json"
COMMON = " --device cpu --threads 2 -q"


def contents(path):
    """The content of a file, and whether all of it can be read."""
    if path.endswith(".json"):
        with open(path) as file:
            text = file.read()
        return {"report": text.startswith("{") and text.endswith("}\n")}
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name], equal_nan=False) for name in a)


def allowed(name):
    """The entries of the folder that belong to the file."""
    entries = {name}
    if name.endswith(".h5"):
        with h5py.File(name, "r") as file:
            mark = file.attrs.get("gpumem_parts")
        if mark is not None:
            entries.add(mark.decode() if isinstance(mark, bytes) else mark)
    return entries


def strangers(name):
    there = set(os.listdir("."))
    return sorted(there - (allowed(name) if name in there else set()))


class Case:
    """A command on a number of ranks, in an empty folder or over an older output."""

    def __init__(self, title, command, ranks, old, program=None):
        self.program = program
        self.title = f"{title}, {ranks} ranks{', over an old one' if old else ''}"
        self.command, self.ranks, self.old = command, ranks, old
        self.name = "out.json" if "out.json" in command else "out.h5"

    def run(self, spec="", log=None):
        environment = gm.fault(spec, under=".", **({"log": log} if log else {}))
        return gm.run(self.command + COMMON + (" --force" if self.old else ""), self.ranks, WITHIN, self.program,
                      environment=environment)

    def prepare(self):
        """An empty folder, or one with the old output, whose parts lie beside it; returns what the old output holds."""
        shutil.rmtree("work", ignore_errors=True)
        if not self.old:
            os.mkdir("work")
            return None
        if not os.path.exists("old"):
            os.mkdir("old")
            os.chdir("old")
            layout = LAYOUTS["parts"] if "parts" in self.command else ""
            ran = gm.run(REPORT if self.name == "out.json"
                         else f"gen stack out.h5 --frames 5 --height 4 --width 3{layout}{COMMON}")
            assert ran.code == 0, ran
            os.chdir("..")
        shutil.copytree("old", "work")
        return contents(f"old/{self.name}")

    def points(self):
        """Counts the calls, and learns what the output holds."""
        self.prepare()
        os.chdir("work")
        ran = self.run(log="../log")
        assert ran.code == 0, ran
        self.new = contents(self.name)
        faults = strangers(self.name)
        os.chdir("..")
        found = []
        for rank in range(self.ranks):
            counts = gm.struck("log", rank)[1]
            os.remove(f"log.{rank}")
            found += [(kind, call, rank, action) for kind in KINDS for call in range(1, counts[kind] + 1)
                      for action in ("kill", "signal=15")]
        return found, faults

    def judge(self, ran, old, kind, call, rank, action):
        """The faults of the folder after a run that was ended."""
        faults, there = [], os.path.exists(self.name)
        if old is not None and not there:
            faults.append("the old file is gone")
        if there:
            now = contents(self.name)
            if not same(now, self.new) and not (old is not None and same(now, old)):
                faults.append("the file is neither the old one nor complete")
            if ran.code == 0 and not same(now, self.new):
                faults.append("exit 0, but not the new file")
        if not there and ran.code == 0:
            faults.append("exit 0 without a file")
        if ran.code is None:
            faults.append("did not end")
        if action != "kill" and strangers(self.name):
            faults.append(f"left after TERM: {strangers(self.name)}")
        return faults

    def end(self, kind, call, rank, action):
        """Ends a run at a point, and runs it again. Returns the faults."""
        old = self.prepare()
        os.chdir("work")
        try:
            ran = self.run(f"{kind}:{call}:{rank}:{action}")
            faults = self.judge(ran, old, kind, call, rank, action)
            left = strangers(self.name)
            again = gm.run(self.command + COMMON + " --force", self.ranks, WITHIN, self.program)
            if again.code != 0:
                faults.append(f"the next run fails: {again}")
            elif not same(contents(self.name), self.new) or strangers(self.name):
                faults.append(f"after the next run: {strangers(self.name)}, before it: {left}")
        except Exception as error: # an output that cannot be read
            faults = [repr(error)]
        os.chdir("..")
        return [f"{kind} {call} on rank {rank}, {action}: {fault}" for fault in faults]


CASES = [Case(f"{name}, {layout}", command + more + (gm.all_work(ranks) if name == "matmul" else ""), ranks, old)
         for ranks in (1, 2) for name, command in OPERATIONS.items() for layout,
         more in LAYOUTS.items() for old in (False, True) if not (name == "reduce" and layout == "chunks")]
# Ranks that cannot open each other's descriptors: temporary files have names.
APART = gm.wrapper("run_apart", '[ $rank = 1 ] && exec unshare --pid --fork --kill-child --mount-proc "$program" '
                                '"$@"\nexec "$program" "$@"')
if subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode == 0:
    CASES += [Case(f"matmul apart, {layout}", OPERATIONS["matmul"] + LAYOUTS[layout] + gm.all_work(2), 2, old, APART)
              for layout in ("single", "chunks") for old in (False, True)]
CASES += [Case("a report", REPORT, 1, old) for old in (False, True)]
share = random.Random(5)
if RUNS: # a few cases at a time where runs are few
    share.shuffle(CASES)
    CASES = CASES[:max(12, RUNS // 60)]


def job(case):
    points, faults = case.points()
    if RUNS:
        points = random.Random(case.title).sample(points, min(len(points), max(1, RUNS // len(CASES))))
    for point in points:
        faults += case.end(*point)
    gm.ok(not faults, f"{case.title}: {len(points)} ended runs", *faults[:20])
    gm.note(f"{len(points)} runs")


if __name__ == "__main__":
    gm.together([functools.partial(job, case) for case in CASES])
    gm.done()
