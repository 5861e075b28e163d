#!/usr/bin/env -S python3 -B
"""Random jobs against NumPy: operations, types, shapes, layouts of files, selections, options, ranks. A job that is
refused for lack of memory names a size: with that it runs, and with one byte less it does not.

    GPUMEM_TEST_RUNS=10000   number of jobs
    GPUMEM_TEST_SEED=2       other jobs
    GPUMEM_TEST_JOB=17       job 17 alone, and what it does"""
import functools
import json
import os
import re
import shutil
import sys
import time
import traceback

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), where) for where in ("../cli", ".")]
import gm
from gm import np
import random_cases as cases
from random_products import product
from random_data import pick

SEED, RUNS, ONE = (os.environ.get(f"GPUMEM_TEST_{name}") for name in ("SEED", "RUNS", "JOB"))
SEED, RUNS = int(SEED or 1), int(RUNS or 300)
SHARES = os.environ.get("GPUMEM_RUN", "").endswith("gpumem_slow") # ranks address the memory of each other's devices
BATCH = 25
OPERATIONS = [(cases.matmul, 26), (product, 20), (cases.reduce, 24), (cases.normalize, 30), (cases.flip, 9),
              (cases.transpose, 9), (cases.gather, 9), (cases.gen, 4), (cases.compare, 7)]
REFUSAL = re.compile(r"(?:is|are) too little for (\w+)(?: with --depth \d+)?, expected at least (\d+) bytes "
                     r"\([^)]*\)(?: and (\d+) bytes)?")


def least_piece():
    """Of the files that there are, so that no job has more than some thousand pieces, each of which waits for a
    thread."""
    return max(1, sum(os.path.getsize(os.path.join(root, name)) for root, _,
                      names in os.walk(".") for name in names) // 4000)


def case(rng):
    share = np.cumsum([weight for _, weight in OPERATIONS])
    return OPERATIONS[int(np.searchsorted(share, rng.integers(share[-1]), "right"))][0](rng)


def options(rng):
    """Words that must not change a bit of the result."""
    words = ["-q"] + (["--threads", int(rng.integers(1, 5))] if rng.random() < 0.7 else [])
    words += ["--piece", max(int(2 ** rng.uniform(0, 21)), least_piece())] if rng.random() < 0.25 else []
    words += ["--depth", int(rng.integers(1, 6))] if rng.random() < 0.25 else []
    caps = {}
    if rng.random() < 0.4:
        caps["--host-memory"] = int(2 ** rng.uniform(10, 22))
    if rng.random() < 0.1:
        caps["--device-memory"] = int(2 ** rng.uniform(10, 22))
    return words, caps


def grid(rng, ranks):
    parts = [(r, c, ranks // (r * c)) for r in range(1, ranks + 1) for c in range(1, ranks + 1) if ranks % (r * c) == 0]
    return ["--grid", "x".join(map(str, pick(rng, *parts)))]


def faults_of_peak(caps):
    with open("r.json") as file:
        report = json.load(file)
    return [f"{name}: {report[key]} bytes were in use" for name,
            key in (("--host-memory", "peak_host_bytes"), ("--device-memory", "peak_device_bytes")) if name in caps
            and report[key] > caps[name]]


def named(ran, caps):
    """The caps that a refusal names: those given, with its numbers in their place. None: it is no such refusal."""
    match = REFUSAL.search(ran.err)
    which = re.findall(r"--(host|device)-memory [\d.]+ \w+", ran.err)
    if ran.code != 5 or not match or not which:
        return None
    sizes = [int(size) for size in match.groups()[1:] if size]
    return caps | {f"--{name}-memory": size for name, size in zip(which, sizes)} if len(sizes) == len(which) else None


class Job:
    """Job `number`. run() gives its faults."""

    def __init__(self, number):
        self.rng = np.random.default_rng([SEED, number])
        self.ranks = pick(self.rng, *[1] * 17, 2, 3, 4)
        self.case = case(self.rng)
        self.words, self.caps = options(self.rng)
        product = self.case.command[0] == "matmul" and "--batch" not in self.case.command
        if self.ranks > 1 and product and self.rng.random() < 0.9:
            self.words += grid(self.rng, self.ranks)
        if self.ranks > 1 and product and SHARES:
            self.words += ["--exchange", pick(self.rng, "auto", "ipc", "staged")]
        self.runs = []

    def start(self, caps):
        self.runs.append(gm.run([*self.case.command, *self.words, "--report", "r.json",
                                 *(word for cap in caps.items() for word in map(str, cap))], self.ranks))
        return self.runs[-1]

    def judge(self, ran, caps):
        if ran.code != self.case.code:
            return [f"exit code {ran.code}, expected {self.case.code}"]
        if ran.code > 1: # no report, no output
            return []
        return faults_of_peak(caps) + self.case.faults(ran)

    def run(self):
        ran = self.start(self.caps)
        caps = named(ran, self.caps) if self.caps else None
        if caps is None:
            return self.judge(ran, self.caps)
        faults = gm.faults_of_refusal(ran, 5, "too little for") if self.ranks == 1 else []
        faults += [f"with {caps}: {fault}" for fault in self.judge(self.start(caps), caps)]
        for name in caps if self.rng.random() < 0.5 else ():
            if caps[name] != self.caps.get(name):
                less = self.start(caps | {name: caps[name] - 1})
                faults += [] if less.code == 5 else [f"{name} {caps[name] - 1} does as well: exit code {less.code}"]
        return faults


def empty_folder():
    for path in os.listdir("."):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def attempt(number):
    """The faults of a job, and its runs."""
    job = None
    try:
        job = Job(number)
        faults = job.run()
    except Exception:
        faults = ["the test itself: " + traceback.format_exc()]
    empty_folder()
    return faults, job.runs if job else []


def batch(first, last):
    wrong, runs, started = [], 0, time.monotonic()
    for number in range(first, last):
        faults, ran = attempt(number)
        runs += len(ran)
        if faults:
            wrong += [f"job {number} (GPUMEM_TEST_SEED={SEED} GPUMEM_TEST_JOB={number}):", *faults, *ran]
    gm.ok(not wrong, f"jobs {first} to {last - 1}: {runs} runs in {time.monotonic() - started:.1f} s", *wrong)


if ONE:
    faults, ran = attempt(int(ONE))
    gm.ok(not faults, f"job {ONE}", *faults)
    for each in ran:
        gm.note(each)
else:
    gm.note(f"GPUMEM_TEST_SEED={SEED}, {RUNS} jobs")
    gm.together([functools.partial(batch, first, min(first + BATCH, RUNS)) for first in range(0, RUNS, BATCH)], 3)
gm.done()
