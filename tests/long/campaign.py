"""Runs with a fault in each: what the campaigns of tests/long share. A job is an operation on files of some layout,
with an output of some layout, on some ranks; a trial is a run of it in which one call fails. The library that fails
calls is tests/preload/fault.c.

GPUMEM_TEST_RUNS: the number of trials (default: a few for each job); GPUMEM_TEST_SEED chooses others."""
import collections
import functools
import os
import random
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
import oracle
from gm import h5py, np

RUNS, SEED = int(os.environ.get("GPUMEM_TEST_RUNS", "0")), int(os.environ.get("GPUMEM_TEST_SEED", "1"))
ONLY = os.environ.get("GPUMEM_TEST_ONLY", "") # a pattern: jobs of such a name
WITHIN = 10
for name, value in (("pml", "ob1"), ("btl", "self,vader")): # start fast
    os.environ.setdefault(f"OMPI_MCA_{name}", value)


# --- Files ---

rng = np.random.default_rng(17)
MATRIX = {"A": gm.integers(rng, (60, 50), dtype="f4"), "B": gm.integers(rng, (50, 40), dtype="f4")}
STACK = {"x": rng.integers(0, 4000, (12, 10, 9)).astype("u2")}
FIELDS = {"flat": rng.integers(2000, 4000, (3, 10, 9)).astype("u2"), "dark": rng.integers(0, 90, (10, 9)).astype("u2"),
          "rows": rng.integers(0, 12, (3, 7))}
# that some outputs keep
ATTRIBUTES = {"unit": "counts", "gain": 1.5, "axes": ["z", "y", "x"], "table": np.arange(6).reshape(2, 3)}
PACKED = dict(chunks=True, compression="gzip", compression_opts=1, shuffle=True)


def virtual(name, data, parts):
    """Each dataset virtual over files of some of its rows."""
    with h5py.File(name, "w", libver=("earliest", "v110")) as file:
        for key, x in data.items():
            layout = h5py.VirtualLayout(x.shape, x.dtype)
            step = -(-len(x) // parts)
            for i, at in enumerate(range(0, len(x), step)):
                part = x[at:at + step]
                gm.write(f"{key}{i}.{name}", dict(chunks=(1,) + x.shape[1:], compression="gzip") if i % 2 else None,
                         p=part)
                layout[at:at + len(part)] = h5py.VirtualSource(f"{key}{i}.{name}", "p", part.shape, x.dtype)
            file.create_virtual_dataset(key, layout, fillvalue=7)


def external(name, data):
    """Raw storage in files of their own."""
    with h5py.File(name, "w") as file:
        for key, x in data.items():
            half = x.nbytes // 2
            x.tofile(f"{key}.raw")
            file.create_dataset(key, x.shape, x.dtype,
                                external=[(f"{key}.raw", 0, half), (f"{key}.raw", half, x.nbytes - half)])


def foreign(name, data):
    """A layout that only libhdf5 reads: the scale-offset filter, which keeps whole numbers."""
    with h5py.File(name, "w") as file:
        for key, x in data.items():
            file.create_dataset(key, data=x, chunks=tuple(-(-n // 3) for n in x.shape),
                                scaleoffset=0 if x.dtype.kind in "iu" else 2)


LAYOUTS = {"plain": lambda name, data: gm.write(name, **data), "packed": lambda name,
           data: gm.write(name, PACKED, **data), "frames": lambda name,
           data: [gm.write(name, dict(chunks=(1,) + x.shape[1:], compression="gzip"), **{key: x}) for key,
                  x in data.items()], "virtual": lambda name, data: virtual(name, data, 4), "external": external,
           "foreign": foreign}
OUTPUTS = {"single": "", "parts": "--output-layout parts", "chunks": "--chunk {chunk} --deflate 1 --shuffle"}


# --- Jobs ---

class Job:
    """arguments: with the input as {i}; want: datasets of the output by name; out: what standard output has (None:
    anything)."""

    def __init__(self, name, arguments, ranks, data, layout, want=None, output="single", chunk="4,3,5", says=None,
                 fields=False, json=False):
        self.ranks, self.data, self.layout, self.want = ranks, data, layout, want or {}
        self.fields, self.says = fields, says
        # the dataset that keeps attributes
        self.keeps = "/x" if arguments.startswith(("flip", "transpose", "gather", "normalize")) else None
        self.name = f"{name}, {layout} to {output if want else 'nothing'}, {ranks} rank{'s' if ranks > 1 else ''}"
        more = ("-o out.h5 " if want and "gen " not in arguments else "") + OUTPUTS[output].format(chunk=chunk)
        more += " --report report.json" if json else ""
        self.arguments = f"{arguments.format(i='in.h5')} --threads 2 -q {more}"

    def make(self):
        LAYOUTS[self.layout]("in.h5", self.data)
        with h5py.File("in.h5", "r+") as file:
            for key in self.data:
                file[key].attrs.update(ATTRIBUTES)
        if self.fields:
            gm.write("fields.h5", **FIELDS)

    def run(self, fault, limit=WITHIN + 5):
        return gm.run(self.arguments, self.ranks, limit, environment=fault)

    def faults_of_result(self, ran):
        faults = []
        for name, want in self.want.items():
            try:
                got = gm.read("out.h5", name)
            except (OSError, KeyError) as error:
                return [f"exit 0, and the output cannot be read: {error}"]
            same = got.dtype == want.dtype and got.shape == want.shape and np.array_equal(got, want)
            faults += [] if same else [f"exit 0 and a wrong result in {name}: "
                                       f"{np.count_nonzero(got != want) if got.shape == want.shape else got.shape}"]
        if self.keeps and not set(ATTRIBUTES) <= set(attributes("out.h5", self.keeps)):
            faults.append(f"exit 0 and attributes are lost: {attributes('out.h5', self.keeps)}")
        if self.says is not None and ran.out != self.says:
            faults.append("exit 0 and another standard output than without a fault")
        return faults


def attributes(file, dataset):
    with h5py.File(file, "r") as opened:
        return list(opened[dataset].attrs)


def statistics(x, axis):
    return {"/sum": x.sum(axis, dtype="u8" if x.dtype.kind == "u" else None), "/min": x.min(axis), "/max": x.max(axis)}


def jobs():
    """All of them; those whose results NumPy does not give take them from a run without a fault."""
    a, b, x = MATRIX["A"], MATRIX["B"], STACK["x"]
    product, made = {"/C": a @ b}, []
    three = ("single", "parts", "chunks")

    def add(*arguments, **more):
        made.append(Job(*arguments, **more))

    for i, layout in enumerate(("plain", "packed", "virtual", "external", "foreign")):
        for ranks in (1, 2, 3):
            add("matmul", "matmul {i}" + gm.all_work(ranks), ranks, MATRIX, layout, product, three[(i + ranks) % 3],
                "20,15", json=ranks == 2)
        add("flip", "flip {i}:/x --axis 1", 1 + i % 3, STACK, layout, {"/x": x[:, ::-1]}, three[i % 3])
        add("transpose", "transpose {i}:/x --axes 0,2", 1 + (i + 1) % 3, STACK, layout, {"/x": x.swapaxes(0, 2)},
            three[(i + 1) % 3])
        add("gather", "gather {i}:/x --index fields.h5:/rows", 1 + (i + 2) % 3, STACK, layout,
            {"/x": x[FIELDS["rows"]]}, three[(i + 2) % 3], "2,3,5,9", fields=True)
        add("reduce all", "reduce {i}:/x", 1 + (i + 1) % 3, STACK, layout, says=...)
        add("normalize minmax", "normalize {i}:/x --type u8", 1 + (i + 2) % 3, STACK, layout,
            {"/x": oracle.normalize(x, out="u1")[0]}, three[(i + 1) % 3])
    for grid in ("2x1x1", "1x1x2", "1x2x1"):
        add(f"matmul {grid}", f"matmul {{i}} --grid {grid} --piece 4K --depth 2", 2, MATRIX, "plain", product)
    for axis, number in (("frame", (1, 2)), ("pixel", 0), ("1", 1), ("vector", 2)):
        for ranks, layout in ((1, "packed"), (2, "frames"), (3, "plain")):
            add(f"reduce {axis}", f"reduce {{i}}:/x --axis {axis} --stat sum,min,max", ranks, STACK, layout,
                statistics(x, number), chunk="2,2", output="single", json=ranks == 1)
    add("gather sorted", "gather {i}:/x --index fields.h5:/rows --device-memory 20K --piece 4K", 2, STACK, "packed",
        {"/x": x[FIELDS["rows"]]}, fields=True)
    for method in ("minmax --per frame", "minmax --per pixel", "percentile --low 5 --high 90", "percentile --per frame",
                   "zscore --per frame"):
        kind, per = method.split()[0], method.split("--per ")[1] if "--per" in method else "stack"
        limits = dict(low=5, high=90) if "--low" in method else {}
        want = oracle.normalize(x, kind, per, out="f4" if kind == "zscore" else "u1", **limits)[0]
        add(f"normalize {method}", f"normalize {{i}}:/x --type {'f32' if kind == 'zscore' else 'u8'} --method {method}",
            2, STACK, "packed", {"/x": want})
        add(f"normalize {method}", f"normalize {{i}}:/x --type {'f32' if kind == 'zscore' else 'u8'} --method {method}",
            1, STACK, "plain", {"/x": want})
    for ranks in (1, 3):
        add("normalize flatfield", "normalize {i}:/x --method flatfield --flat fields.h5:/flat --dark fields.h5:/dark",
            ranks, STACK, "packed", ..., fields=True)
        add("gen matrices", "gen matrices out.h5 --size 30", ranks, STACK, "plain", ..., three[ranks % 3], "7,8")
        add("gen stack", "gen stack out.h5 --size 9", ranks, STACK, "plain", ..., three[(ranks + 1) % 3])
        add("compare", "compare {i}:/x {i}:/x", ranks, STACK, "packed", says=...)
        add("info of a file", "info {i}", ranks, STACK, "packed", says=...)
        add("info", "info", ranks, STACK, "plain", json=True)
    add("bench", "bench copy --shapes 64K", 2, STACK, "plain")
    return [job for job in made if re.search(ONLY, job.name)]


def learn(job):
    """The counts of the calls on each rank, and what the job gives without a fault; checks that."""
    ran = job.run(gm.fault(log="log"))
    if job.says is ...:
        job.says = ran.out
    if job.want is ...:
        job.want = read_all("out.h5")
    faults = ([] if ran.code == 0 else [f"exit {ran.code}"]) + job.faults_of_result(ran)
    counts = [gm.struck("log", rank)[1] for rank in range(job.ranks)]
    return faults + [str(ran)] if faults else [], counts


def read_all(name):
    found = {}
    with h5py.File(name, "r") as file:
        file.visititems(lambda key, item: found.update({f"/{key}": item[()]})
                        if isinstance(item, h5py.Dataset) else None)
    return found


# --- Trials ---

class Trial:
    """A run with a fault: spec, the rank that it strikes, and how it went."""

    def __init__(self, job, spec, rank, before):
        self.job, self.spec, self.rank = job, spec, rank
        self.run(before)
        if self.ran.seconds > WITHIN and all(change.endswith("is new") for change in self.changes):
            self.clean(before) # the start counts as well, and a machine may be busy
            self.run(before)

    def run(self, before):
        self.ran = self.job.run(gm.fault(self.spec, log="log"))
        self.struck = gm.struck("log", self.rank)[0]
        self.after = gm.state()
        for rank in range(self.job.ranks):
            self.after.pop(f"./log.{rank}", None)
        self.changes = gm.difference(before, self.after)

    def faults(self, codes, may_leave=False):
        """The faults of the run. codes: exit codes that the fault may have; 0 with the right result."""
        ran, codes = self.ran, set(codes)
        mine = ("out.h5", "report.json") + (() if not may_leave else (".out.h5", ".report.json"))
        strange = [change for change in self.changes if not (ran.code == 0 or may_leave)
                   or not change.startswith(tuple(f"./{name}" for name in mine)) or not change.endswith("is new")]
        if ran.code != 0 and not may_leave: # a report tells of a failure too
            strange = [change for change in strange if not change.startswith("./report.json: is new")]
        faults = strange + ([f"{ran.seconds:.1f} s"] if ran.seconds > WITHIN else [])
        if ran.code not in codes | {0}:
            return faults + [f"exit code {ran.code}, expected {sorted(codes)}"]
        if ran.code == 0:
            return faults + self.job.faults_of_result(ran)
        if (" report" in ran.err or " is complete, " in ran.err) and os.path.exists("out.h5"):
            faults = [fault for fault in faults
                      if not re.match(r"\./out\.h5.*: is new$", fault)] + self.job.faults_of_result(ran)
        return faults + [fault for fault in gm.faults_of_refusal(ran, ran.code, "", WITHIN)
                         if "standard output" not in fault]

    def clean(self, before):
        for path in self.after.keys() - before.keys():
            if os.path.isfile(path):
                os.remove(path)
        for path in sorted(self.after.keys() - before.keys(), reverse=True):
            if os.path.isdir(path):
                os.rmdir(path)
        for rank in range(self.job.ranks):
            if os.path.exists(f"log.{rank}"):
                os.remove(f"log.{rank}")

    def __str__(self):
        struck = "; ".join(self.struck[:3]) or "struck nothing"
        return f"GPUMEM_FAULT={self.spec} {struck} ({len(self.struck)} calls)\n{self.ran}"


def walk(job, specs_of, judge, share):
    """Trials of one job: `share` of the faults that specs_of(counts, rank) lists, in an order of their own.
    judge(trial): what is wrong."""
    job.make()
    wrong, counts = learn(job)
    gm.ok(not wrong, f"{job.name}: without a fault", *wrong)
    if wrong:
        return
    for name in os.listdir():
        if name.startswith(("out.h5", "report.json", "log.")):
            os.remove(name) if os.path.isfile(name) else shutil.rmtree(name)
    all_specs = [(spec, rank) for rank in range(job.ranks) for spec in specs_of(counts[rank], rank)]
    random.Random(f"{SEED} {job.name}").shuffle(all_specs)
    before, bad, ends, started = gm.state(), [], collections.Counter(), time.monotonic()
    trials = [all_specs[i % len(all_specs)] for i in range(share)] if RUNS else all_specs[:share]
    for spec, rank in trials:
        trial = Trial(job, spec, rank, before)
        faults = judge(trial)
        bad += [f"{job.name}: " + "; ".join(faults) + f"\n{trial}"] if faults else []
        ends[trial.ran.code if trial.struck else "not struck"] += 1
        trial.clean(before)
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(ends.items(), key=str))
    gm.ok(not bad, f"{job.name}: {len(trials)} of {len(all_specs)} faults ({codes}), "
                   f"{len(trials) / (time.monotonic() - started):.1f} a second", *bad)


def campaign(specs_of, judge, short):
    """All jobs. short: trials of each job unless GPUMEM_TEST_RUNS says how many there are of all."""
    gm.need_fault()
    all_jobs = jobs()
    share, started = -(-RUNS // len(all_jobs)) if RUNS else short, time.monotonic()
    gm.together([functools.partial(walk, job, specs_of, judge, share) for job in all_jobs])
    gm.note(f"{share * len(all_jobs)} trials at most, {share * len(all_jobs) / (time.monotonic() - started):.1f} a "
            f"second")
    gm.done()
