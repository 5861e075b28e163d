#!/usr/bin/env -S python3 -B
"""Full disks at random: small file systems, few inodes, a disk that fills up during the run, limits on the size of a
file, calls that fail. All operations with outputs, all layouts, one and two ranks. A run ends with 4, one message and
nothing left, or with 0 and the right output; it never crashes.

GPUMEM_TEST_RUNS=N: so many runs, of a fixed seed; more than 100 have outputs of 284 MiB among them."""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

RUNS = int(os.environ.get("GPUMEM_TEST_RUNS") or 100)
AT_ONCE = 10 # runs in one process
MIB = 1 << 20
SEED = np.random.default_rng(8)
MOUNTS = os.geteuid() == 0 and shutil.which("mount")

gm.write("ab.h5", A=gm.integers(SEED, (96, 70)), B=gm.integers(SEED, (70, 110)))
gm.write("stack.h5", d=SEED.integers(0, 4000, (24, 40, 50)).astype("u2"))
with h5py.File("stack.h5", "a") as file:
    file["rows"] = SEED.integers(0, 24, 30)
    for index in range(40):
        file["d"].attrs[f"attribute {index}"] = "word " * (50 * index)
IN = os.getcwd()
# Commands without -o OUT, the name of the dataset, its rank, how many of its attributes are copied.
OPERATIONS = {"matmul": (f"matmul {IN}/ab.h5 --device cpu", "/C", 2, 0),
              "matrices": ("gen matrices OUT --size 120", "/A", 2, 0),
              "stack": ("gen stack OUT --size 40", "/images", 3, 0),
              "reduce": (f"reduce {IN}/stack.h5:/d --axis 0 --device cpu", "/mean", 2, 0),
              "normalize": (f"normalize {IN}/stack.h5:/d --device cpu", "/d", 3, 0),
              "flip": (f"flip {IN}/stack.h5:/d --axis 1", "/d", 3, 40),
              "transpose": (f"transpose {IN}/stack.h5:/d", "/d", 3, 40),
              "gather": (f"gather {IN}/stack.h5:/d --index {IN}/stack.h5:/rows", "/d", 3, 40)}
LARGE = {"large": ("gen stack OUT --size 530", "/images", 3, 0)} # the probe and its strategies begin at 256 MiB
CHUNKS = {2: "--chunk 13,17", 3: "--chunk 2,13,17"}
LAYOUTS = ("", "", "--output-layout parts", "--output-layout parts", "--output-layout auto", "CHUNK",
           "CHUNK --deflate 1", "--deflate 3 --shuffle")
KINDS = ("size", "size", "fill", "inodes", "limit", "limit", "call", "call")
ON_MOUNTS = ("size", "fill", "inodes")


def command(operation, out, more=""):
    text = (OPERATIONS | LARGE)[operation][0]
    return f"{text.replace('OUT', out)}{'' if 'OUT' in text else f' -o {out}'} --threads 2 -q {more}"


def content(file, operation):
    """The datasets of an output, and the number of attributes that were copied."""
    found = {}
    file.visititems(lambda name, what: found.__setitem__(name, what[()]) if isinstance(what, h5py.Dataset) else None)
    copied = sum(len(file[(OPERATIONS | LARGE)[operation][1]].attrs.get(f"attribute {index}", ""))
                 for index in range(40))
    return found, copied


def reference(operation):
    ran = gm.run(command(operation, f"{IN}/want_{operation}.h5", "--no-sync"))
    if ran.code:
        gm.ok(False, f"{operation} with all the space that it wants", ran)
        gm.done()
    with h5py.File(f"{IN}/want_{operation}.h5") as file:
        kept = content(file, operation) if operation in OPERATIONS else None
    return kept, os.path.getsize(f"{IN}/want_{operation}.h5")


def faults_of_output(path, operation):
    """The faults of an output that is said to be complete."""
    try:
        with h5py.File(path) as file:
            data, copied = content(file, operation)
    except OSError as error:
        return [f"it cannot be read: {error}"]
    want, many = WANT[operation][0]
    return [f"{name} is wrong" for name in want if name not in data
            or not np.array_equal(want[name], data[name])] + ["attributes are missing"] * (copied != many)


def fill(place, wait, ended):
    """Takes all space that is left, some time after the output has been created."""
    while not os.listdir(place) and not ended.is_set():
        time.sleep(0.0005)
    time.sleep(wait)
    with open(f"{place}/balloon", "wb") as out:
        size = 0
        while not ended.is_set():
            there = os.statvfs(place)
            more = there.f_bavail * there.f_frsize
            try:
                if more:
                    os.posix_fallocate(out.fileno(), size, more)
                    size += more
            except OSError:
                pass
            time.sleep(0.002)


class Disk:
    """A file system of its own, or, where calls fail, a folder."""

    def __init__(self, kind, options):
        self.kind, self.path = kind, os.path.abspath("disk")
        os.mkdir(self.path)
        if kind in ON_MOUNTS:
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.path], check=True)

    def left(self):
        return sorted(name for name in os.listdir(self.path) if name != "balloon")

    def close(self):
        if self.kind in ON_MOUNTS:
            subprocess.run(["umount", "-l", self.path], check=True)
        shutil.rmtree(self.path, ignore_errors=True)


def choose(number):
    """Run number I: what, where, how much room there is."""
    rng = np.random.default_rng([8, number])
    kind = str(rng.choice(KINDS))
    large = RUNS > 100 and kind in ("size", "fill") and rng.random() < 0.04
    operation = "large" if large else str(rng.choice(sorted(OPERATIONS)))
    layout = str(rng.choice(LAYOUTS[:5] if large else LAYOUTS))
    layout = layout.replace("CHUNK", CHUNKS[(OPERATIONS | LARGE)[operation][2]])
    size = WANT[operation][1]
    room = int(rng.choice([rng.uniform(0.02, 1), rng.uniform(0.95, 1.2), rng.uniform(1.9, 2.4)]) * size
               + rng.integers(0, 60000))
    if kind == "limit": # most of the calls write metadata, at either end
        room = int(rng.choice([rng.integers(1, 12000), int(rng.uniform(0, 1.02) * size),
                               size - rng.integers(-200, 12000)]))
    options = {"size": f"size={room}", "fill": f"size={2 * size + 64 * MIB}",
               "inodes": f"nr_inodes={rng.integers(2, 14)},size={4 * size + MIB}"}
    more = [layout, str(rng.choice(["", "--no-sync"]))]
    if rng.random() < 0.3:
        more.append("--report DISK/report.json")
    if kind == "call":
        number = int(np.exp(rng.uniform(0, np.log(rng.choice([10, 60, 500])))))
        options["call"] = (f"{rng.choice(['write', 'write', 'write', 'close', 'sync', 'space'])}:"
                           f"{number}{rng.choice(['', '+'])}:{rng.integers(2)}:"
                           f"{rng.choice(['ENOSPC', 'EDQUOT', 'EIO'])}")
    ranks, pause = int(rng.choice([1, 2])), float(rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.3)]))
    return kind, options.get(kind, ""), max(room, 1), operation, " ".join(more), ranks, pause


def said(path):
    """The exit code in a report; None without one that can be read."""
    try:
        with open(path) as file:
            return json.load(file)["exit"]
    except (OSError, ValueError):
        return None


def faults_of(ran, disk, operation):
    """The faults of one run. A report is written of failures too, and may be what does not fit."""
    faults, left, out = [], disk.left(), f"{disk.path}/out.h5"
    rest = [name for name in left if name not in ("out.h5", "report.json")
            and not re.fullmatch(r"out\.h5\.parts-[0-9a-f]+", name)]
    complete = "out.h5" in left and (operation == "large" or not faults_of_output(out, operation))
    if ran.code not in (0, 4):
        faults.append(f"exit code {ran.code}")
    if len(ran.errors) != (ran.code != 0):
        faults.append(f"{len(ran.errors)} messages")
    if "report.json" in left and said(f"{disk.path}/report.json") != ran.code:
        faults.append("another report")
    if ran.code == 0 and not complete:
        faults.append("exit code 0 without the right output")
    if ran.code and not (complete and ran.errors
                         and re.search(r"report\.json|flushing \S+ to the disk", ran.errors[0])):
        rest = [name for name in left if name != "report.json"]
    if rest:
        faults.append(f"something is left: {', '.join(left)}")
    if ran.errors and "Success" in ran.errors[0]:
        faults.append("a message without a reason")
    return faults


def try_once(number):
    kind, options, room, operation, more, ranks, wait = choose(number)
    more += gm.all_work(ranks) if operation == "matmul" else ""
    disk = Disk(kind, options)
    program, environment, ended = None, {}, threading.Event()
    if kind == "call":
        environment = gm.fault(options, under=disk.path)
    # MPI makes files too: those of the launcher are not limited, and those between ranks are avoided
    if kind == "limit":
        program = gm.wrapper("limited", f'export OMPI_MCA_btl=tcp,self\nexec prlimit --fsize={room} "$program" "$@"')
    filler = threading.Thread(target=fill, args=(disk.path, wait, ended))
    try:
        if kind == "fill":
            filler.start()
        ran = gm.run(command(operation, f"{disk.path}/out.h5", more.replace("DISK", disk.path)), ranks, program=program,
                     mpirun=kind == "limit", environment=environment)
        ended.set()
        if kind == "fill":
            filler.join()
        faults = faults_of(ran, disk, operation)
    finally:
        ended.set()
        disk.close()
    return f"{kind} {ran.code}", [f"run {number}: {kind} {options or room}, {ranks} ranks: {', '.join(faults)}",
                                  str(ran)] if faults else []


def batch(first):
    codes, faults = {}, []
    for number in range(first, min(first + AT_ONCE, RUNS)):
        code, found = try_once(number)
        codes[code] = codes.get(code, 0) + 1
        faults += found
    gm.ok(not faults, f"runs {first} to {min(first + AT_ONCE, RUNS) - 1}: exit codes by kind "
                      f"{', '.join(f'{code}: {count}' for code, count in sorted(codes.items()))}",
          *faults)


WANT = {operation: reference(operation) for operation in (OPERATIONS | LARGE if RUNS > 100 else OPERATIONS)}
for kinds, there, what, why in ((ON_MOUNTS, MOUNTS, "small file systems", "no file system can be mounted here"),
                                (("limit",), shutil.which("prlimit"), "limits on the size of a file", "no prlimit"),
                                (("call",), gm.HAS_FAULT, "calls that fail", f"no {gm.FAULT}")):
    if not there:
        gm.skip(what, why)
        KINDS = tuple(kind for kind in KINDS if kind not in kinds)
if KINDS:
    gm.together([functools.partial(batch, first) for first in range(0, RUNS, AT_ONCE)])
gm.done()
