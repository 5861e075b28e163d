#!/usr/bin/env -S python3 -B
"""Statistics of datasets, against Python's integers, exact sums and NumPy: types, storage, axes, NaN; the same bits
whoever computes them."""
import functools
import hashlib
import itertools
import json
import math
import os

import gm
import plain_statistics as plain
from gm import h5py, np

rng = np.random.default_rng(77)
ALL = ",".join(plain.NAMES)
TYPES = "u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split()
MANY = 100000 # results
ranks_in_turn = itertools.cycle((1, 1, 2, 1, 3))


def data(shape, dtype):
    """Integers over the whole range of their type; floats that are not centred, some of them NaN."""
    if dtype[0] != "f":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = rng.normal(3, 2, shape).astype(dtype)
    x[rng.random(shape) < 0.01] = np.nan
    return x


def whole(title, x, operand, options="", ranks=None, propagate=False):
    ranks = ranks or next(ranks_in_turn)
    ran = gm.run(f"reduce '{operand}' --stat {ALL} --device {device} {options}", ranks)
    faults = ["failed"]
    if ran.code == 0:
        got = plain.printed(ran.out)
        faults = plain.faults(got, np.asarray(x).reshape(-1),
                              propagate) + [f"no {name}" for name in plain.NAMES if name not in got]
    gm.ok(not faults, f"{device}: {title}, {ranks} ranks", *faults, ran)
    return ran


def along(title, x, operand, axis, options="", ranks=None, propagate=False, statistics=ALL):
    ranks = ranks or next(ranks_in_turn)
    ran = gm.run(f"reduce '{operand}' --stat {statistics} --axis {axis} -o r.h5 --force --no-sync --device {device} "
                 f"{options}", ranks)
    faults = ["failed"]
    if ran.code == 0:
        rows, shape = plain.segments(x, axis)
        with h5py.File("r.h5", "r") as f:
            got = {name: f[name][()] for name in f}
        faults = [f"{name} is {value.shape}, expected {shape}" for name, value in got.items() if value.shape != shape]
        faults += [] if sorted(got) == sorted(statistics.split(",")) else [f"datasets {sorted(got)}"]
        faults += [f"{name} is {value.dtype}" for name, value in got.items()
                   if value.dtype != plain.type_of(name, x.dtype, rows.shape[1])]
        step = 1
        if not faults and len(rows) > MANY and not propagate: # all of them by NumPy, and some as others are
            step, want = len(rows) // 1000, plain.of_many(rows)
            faults += [f"another {name}" for name, value in got.items()
                       if not np.array_equal(value.reshape(-1), want[name], equal_nan=True)]
        for i in range(0, 0 if faults else len(rows), step):
            one = {name: value.reshape(-1)[i].item() for name, value in got.items()}
            if x.dtype.kind != "f":
                exact = plain.of_integers(rows[i])
                one = {name: plain.rounded(value, got[name].dtype, exact[name]) for name, value in one.items()}
            faults += [f"result {i}: {fault}" for fault in plain.faults(one, rows[i], propagate)]
    gm.ok(not faults, f"{device}: {title}, {ranks} ranks", *faults[:10], ran)
    return ran


def all_types():
    for dtype in TYPES:
        x = data((3, 71, 1000), dtype)
        with h5py.File("x.h5", "w") as f:
            f["x"] = x
            f["be"] = x.astype(np.dtype(dtype).newbyteorder(">"))
            f.create_dataset("z", data=x, chunks=(1, 50, 999), compression="gzip", shuffle=True)
        whole(f"{dtype} big-endian", x, "x.h5:/be", "--piece 70K")
        whole(f"{dtype} in chunks, a selection", x[1:, ::3, 7:990], "x.h5:/z[1:,::3,7:990]")
    whole("as it lies in memory", x, "x.h5:/x")


SHAPES = {1: (1000,), 2: (37, 53), 3: (5, 67, 31), 4: (3, 70, 2, 41), 5: (4, 3, 5, 7, 66)}


def axes(rank):
    types_in_turn = itertools.cycle(("u2", "f4", "i8", "f8", "u1", "f2"))
    for axis in [*range(rank), "frame", "pixel", "vector"]:
        x = data(SHAPES[rank], next(types_in_turn))
        gm.write("x.h5", x=x)
        along(f"{x.dtype}, {rank} dimensions, --axis {axis}", x, "x.h5", axis)


def cuts():
    """Segments longer than a leaf, blocks of columns, few columns of many rows, chunks."""
    x = data((3, 700, 311), "f4")
    with h5py.File("x.h5", "w") as f:
        f["x"] = x
        f.create_dataset("frames", data=x, chunks=(1, 700, 311), compression="gzip")
        f.create_dataset("tiles", data=x, chunks=(2, 128, 100), compression="gzip")
        f["tall"] = data((30000, 3), "u2")
        f.create_dataset("whole", data=data((7, 90, 80), "i2"), chunks=(1, 90, 80), compression="gzip")
    for name in ("x", "frames", "tiles"):
        for axis in ("frame", "pixel", 1):
            statistics = "nan,max,argmin" if axis == "pixel" else "count,min,sum,mean,var,std"
            along(f"{name}, --axis {axis}, small pieces", x, f"x.h5:/{name}", axis, "--piece 100K",
                  statistics=statistics)
    for ranks, options in ((2, ""), (3, "--piece 9K --depth 2"), (8, "--host-memory 4M --device-memory 1200K")):
        along("integers in chunks of frames, ranks share frames", gm.read("x.h5", "/whole"), "x.h5:/whole", "pixel",
              options, ranks)
    tall = gm.read("x.h5", "/tall")
    for ranks in (1, 3):
        along("few columns of many rows", tall, "x.h5:/tall", 0, "--threads 3", ranks)
        along("many short vectors", tall, "x.h5:/tall", "vector", "", ranks, statistics="count,sum,var,argmax")
    along("a selection", tall[5:9000:4, 1:], "x.h5:/tall[5:9000:4,1:]", 0)


def values():
    """NaN, infinities, both zeros, denormals; nothing at all."""
    nan, inf = math.nan, math.inf
    cases = {"nan": [nan] * 5, "some": [nan, 3, nan, -1, 7, -1], "zeros": [0.0, -0.0, 0.0], "below": [-0.0, -0.0],
             "inf": [1, inf, 2], "both": [inf, 1, -inf], "minus": [-inf, nan, -inf], "huge": [-1e308] * 300 + [inf],
             "deep": [1e308] * 300 + [-inf, -1e308], "small": [5e-324, 1e-310, -5e-324], "one": [42.5]}
    with h5py.File("x.h5", "w") as f:
        for name, values in cases.items():
            f[name] = np.array(values)
        f["table"] = np.array([[nan, 1, 2], [0, nan, nan], [5, inf, nan], [nan, -0.0, nan]], "f4")
        f["none"] = np.zeros((0, 3), "f4")
        f["no_integers"] = np.zeros((3, 0), "u2")
        f["no_floats"] = np.zeros((3, 0), "f4")
        f["scalar"] = np.float32(2.5)
    for name, values in cases.items():
        for propagate in (False, True):
            whole(f"{name}{' passed on' if propagate else ''}", np.array(values), f"x.h5:/{name}",
                  "--nan propagate" if propagate else "", 1 + propagate, propagate)
    table = gm.read("x.h5", "/table")
    for axis in (0, 1):
        along(f"NaN in a table, --axis {axis}", table, "x.h5:/table", axis, "--nan skip", 1)
        along(f"NaN in a table passed on, --axis {axis}", table, "x.h5:/table", axis, "--nan propagate", 2, True)
    whole("a single number", np.float32(2.5), "x.h5:/scalar")
    whole("nothing", np.zeros(0), "x.h5:/none", "", 3)
    ran = gm.run(f"reduce x.h5:/no_integers --stat count,min,sum,mean,argmax --device {device}")
    gm.ok(ran.code == 0 and ran.out == "count 0\nmin none\nsum 0\nmean nan\nargmax -1\n",
          f"{device}: no integers at all", ran)
    along("columns of nothing", np.zeros((0, 3), "f4"), "x.h5:/none", 0, "", 2)
    along("rows without columns", np.zeros((3, 0), "f4"), "x.h5:/no_floats", 1, "", 2)
    ran = gm.run(f"reduce x.h5:/no_integers --stat sum,count --axis 1 -o r.h5 --force --device {device}")
    gm.ok(ran.code == 0 and not gm.read("r.h5", "/sum").any(), f"{device}: sums of no integers", ran)


def accuracy():
    """sum |x| 1e10 times |sum x|, and a mean a million times the spread."""
    for dtype in ("f4", "f8"):
        x = rng.standard_normal(400000).astype(dtype)
        x = np.concatenate([x, -x[rng.permutation(len(x))], np.array([len(x) * 1.6e-10], dtype)])
        rng.shuffle(x)
        gm.write("x.h5", x=x)
        whole(f"{dtype}: a sum that all but vanishes", x, "x.h5", "", 2)
        x = (1e6 + rng.standard_normal(300000)).astype(dtype)
        gm.write("x.h5", x=x)
        whole(f"{dtype}: a mean a million times the spread", x, "x.h5", "", 1)


WAYS = [(2, ""), (5, "--threads 1 --piece 300K"), (8, "--host-memory 12M"), (1, "--piece 10000 --depth 2"),
        (1, "--host-memory 6M --device-memory 4M --threads 3")]


def digest(arguments, axis, ranks):
    out = "" if axis == "all" else "-o r.h5 --force --no-sync"
    ran = gm.run(f"reduce x.h5 --stat {ALL} --axis {axis} {out} {arguments}", ranks)
    if ran.code != 0:
        return "", ran
    if axis == "all":
        return ran.out, ran
    with h5py.File("r.h5", "r") as f:
        return hashlib.sha256(b"".join(f[name][()].tobytes() for name in sorted(f))).hexdigest(), ran


def same_bits(axis, dtype):
    gm.write("x.h5", x=data((37, 150, 211), dtype))
    first, ran = digest("--device cpu --threads 1", axis, 1)
    gm.ok(first, f"{dtype}, --axis {axis}: the processor, 1 rank, 1 thread", ran)
    for kind in kinds:
        for ranks, options in WAYS:
            bits, ran = digest(f"--device {kind} {options}", axis, ranks)
            gm.ok(bits == first, f"{kind}: {dtype}, --axis {axis}: same bits, {ranks} ranks {options}", ran)


def outputs():
    x = data((8, 30, 40), "u2")
    gm.write("x.h5", x=x)
    for name, options in (("chunks", "--chunk 10,20 --deflate 5 --shuffle"), ("deflate alone", "--deflate 1"),
                          ("parts", "--output-layout parts")):
        along(name, x, "x.h5", "pixel", options)
    for axis in (-1, -2, -3):
        along(f"--axis {axis}", x, "x.h5", axis)
    along("one dimension, --deflate", x[0, 0], "x.h5:/x[0,0]", 0, "--deflate 3 --shuffle")
    for ranks in (1, 3):
        printed = gm.run(f"reduce x.h5 --device {device} --stat {ALL}")
        ran = gm.run(f"reduce x.h5 --device {device} --stat {ALL} -o all.h5:/g --force --deflate 1", ranks)
        with h5py.File("all.h5", "r") as f:
            got = {name: value[()] for name, value in f["g"].items()}
        gm.ok(ran.code == 0 and ran.out == printed.out and ran.out and sorted(got) == sorted(ALL.split(","))
              and all(float(got[name]) == float(value) for name, value in map(str.split, ran.out.splitlines())),
              f"{device}: all elements, printed and with -o written too, {ranks} ranks", ran, got)
    ran = gm.run(f"reduce x.h5 --axis frame --stat sum,max -o r.h5:/a/b --force --device {device} --report r.json", 2)
    good = ran.code == 0 and np.array_equal(gm.read("r.h5", "/a/b/sum"), x.reshape(8, -1).sum(axis=1, dtype="u8"))
    gm.ok(good and "/a/b/max" in h5py.File("r.h5"), f"{device}: -o FILE:GROUP", ran)
    with open("r.json") as file:
        report = json.load(file)
    gm.ok(report["bytes_read"] == x.nbytes and report["bytes_written"] == 8 * (8 + 2) and report["plan"]["mode"],
          f"{device}: --report", report)
    with h5py.File("r.h5", "r") as f:
        attributes = dict(f["/a/b/sum"].attrs)
    gm.ok(attributes.get("operation") == "reduce" and "--stat" in attributes.get("command", "")
          and attributes.get("elements") == 1200, f"{device}: the output says where it is from", attributes)
    ran = gm.run(f"reduce x.h5 --device {device} --report r.json")
    results = json.load(open("r.json"))["results"]
    gm.ok(list(results) == plain.NAMES[:10] and results["sum"] == int(x.sum(dtype="u8")),
          f"{device}: the default statistics, and in the report", results)
    before = gm.state()
    for axis in ("all", "frame", "pixel", 1):
        ran = gm.run(f"reduce x.h5 --axis {axis} --plan --device {device}", 2)
        gm.ok(ran.code == 0 and "host_memory" in ran.out and gm.state() == before, f"{device}: --axis {axis} --plan",
              ran)
    ran = gm.run(f"reduce x.h5 --plan --report r.json --device {device}", 2)
    plan = json.load(open("r.json"))
    gm.ok(ran.code == 0 and plan["plan"]["mode"] and plan["inputs"],
          f"{device}: --plan --report: the report has the plan", plan)
    if os.path.exists("/dev/full"):
        ran = gm.run(["-c", f"{gm.PROGRAM} reduce x.h5 --plan --device {device} > /dev/full"], program="/bin/sh")
        gm.ok(ran.code == 4 and "standard output" in ran.err, f"{device}: --plan with standard output full", ran)
    ran = gm.run(f"reduce x.h5 --axis 0 --device {device}")
    gm.ok(ran.code == 0 and os.path.exists("x.reduce.h5"), f"{device}: the default name", ran)


def refusals():
    gm.write("x.h5", x=data((4, 5), "u2"), scalar=np.float32(1), text="no numbers", none=np.zeros((2, 0), "i4"),
             large=np.zeros(300000, "f8"))
    for arguments, code, pattern in (("reduce x.h5:/x --stat min,median", 2, "median.*expected.*argmax"),
                                     ("reduce x.h5:/x --stat min,min", 2, "twice"),
                                     ("reduce x.h5:/x --stat ''", 2, "expected"),
                                     ("reduce x.h5:/x --axis 2", 2, "2 dimensions, expected a number from -2 to 1"),
                                     ("reduce x.h5:/x --axis rows", 2, "rows.*expected"),
                                     ("reduce x.h5:/scalar --axis vector", 2, "is a scalar"),
                                     ("reduce x.h5:/x --axis -3", 2, "2 dimensions, expected a number from -2 to 1"),
                                     ("reduce x.h5:/x --nan drop", 2, "nan"),
                                     ("reduce x.h5:/x[:,0] --axis -2", 2,
                                      "1 dimension, expected a number from -1 to 0"),
                                     ("reduce x.h5:/x --chunk 1 -o y.h5", 2, "scalar.*no chunks"),
                                     ("reduce x.h5:/none -o y.h5", 3, "min of an empty integer dataset is undefined"),
                                     *((f"reduce x.h5:/x {option}", 2, "printed, expected --output as well")
                                       for option in ("--output-layout single", "--output-layout parts", "--chunk 2,2",
                                                      "--deflate 3", "--shuffle", "--no-sync")),
                                     ("reduce x.h5:/x --force", 2, "printed, expected --output or --report as well"),
                                     ("reduce x.h5:/x --axis all --plan --force", 2, "printed"),
                                     ("reduce x.h5:/none --axis 1", 3, "min of an empty integer dataset is undefined"),
                                     ("reduce x.h5:/text", 3, "string"), ("reduce nofile.h5", 3, "nofile"),
                                     ("reduce x.h5:/x --axis 0 -o x.h5 --force", 4, "x.h5"),
                                     ("reduce x.h5:/x[:,0] --axis 0 --chunk 3 -o y.h5", 2, "scalar.*no chunks"),
                                     ("reduce x.h5:/x --axis 0 -o 'y.h5:/a[0]'", 2, "selection"),
                                     ("reduce x.h5:/large --host-memory 10K", 5, "--host-memory.*expected at least"),
                                     ("reduce x.h5:/large --piece 1M --host-memory 1M --depth 9", 5, "host-memory"),
                                     ("reduce x.h5:/x x.h5:/x", 2, "")):
        gm.refused(f"refused: {arguments}", f"{arguments} --device cpu", code, pattern, next(ranks_in_turn))
    damaged()
    with open("r.json", "w") as file:
        file.write("no report")
    ran = gm.run("reduce x.h5:/x --report r.json --device cpu")
    forced = gm.run("reduce x.h5:/x --report r.json --force --device cpu")
    gm.ok(ran.code == 4 and forced.code == 0 and json.load(open("r.json"))["results"],
          "--force without an output replaces the file of --report", ran, forced)
    ran = gm.run("reduce x.h5:/large --host-memory 10K --device cpu")
    needed = ran.err.split("at least ")[1].split()[0]
    ran = gm.run(f"reduce x.h5:/large --host-memory {needed} --device cpu")
    gm.ok(ran.code == 0, "the number that a refusal names would do", needed, ran)


def damaged():
    """A chunk that cannot be decoded, found by one rank in the middle of its work."""
    gm.write_damaged("bad.h5")
    for axis in ("all", "frame", "pixel", 1):
        gm.refused(f"a damaged chunk, --axis {axis}", f"reduce bad.h5 --axis {axis} --device cpu", 3, "bad.h5", 3)


def many_chunks():
    """Crops of many chunks: libhdf5, which undoes scale-offset, keeps none that it has read in part; and a chunk
    between two steps is not looked up."""
    with h5py.File("many.h5", "w") as f:
        x = f.create_dataset("x", (600, 1024, 1024), "u2", chunks=(1, 1024, 1024), scaleoffset=0)
        x[0] = 5
        f.flush()
        mask, stored = x.id.read_direct_chunk((0, 0, 0))
        for i in range(1, 600):
            x.id.write_direct_chunk((i, 0, 0), stored, mask)
        f.create_dataset("unwritten", (600, 1024, 1024), "u2", chunks=(1, 1024, 1024), scaleoffset=0)[7] = 2
        f.create_dataset("wide", (1 << 20, 1 << 20), "u2", chunks=(1024, 1024), compression=1,
                         fillvalue=3)[70000, 0] = 9
    for operand, want, limit in (("x[:,100:103,::500]", 5 * 600 * 3 * 3, 60), ("unwritten[:,0,0]", 2, 60),
                                 ("wide[:140001:70000,::1048575]", 3 * 5 + 9, 10),
                                 ("wide[::65536,::65536]' --host-memory '3M", 3 * 256, 20)):
        ran = gm.run(f"reduce 'many.h5:/{operand}' --stat sum --device cpu -q", limit=limit)
        gm.ok(ran.code == 0 and ran.out == f"sum {want}\n", f"many chunks: {operand}", ran)


def small_stacks():
    """Threads of OpenMP whose stacks a user has made small."""
    x = np.random.default_rng(11).integers(0, 1 << 16, (300, 400))
    for dtype in ("<u2", ">u2", "<f8", ">f8"):
        gm.write("stacks.h5", x=x.astype(dtype))
        ran = gm.run("reduce stacks.h5 --stat sum --device cpu --threads 2 -q", environment={"OMP_STACKSIZE": "128k"})
        gm.ok(ran.code == 0 and float(ran.out.split()[1]) == x.sum(), f"threads with stacks of 128 KiB, {dtype}", ran)


def real_files():
    tooth, k11 = os.path.join(gm.DATA, "tooth.h5"), os.path.join(gm.DATA, "diad_k11_imaging.h5")
    if not os.path.exists(tooth):
        gm.skip("real files", f"no folder {gm.DATA} (GPUMEM_TEST_DATA)")
        return
    x = gm.read(tooth, "/exchange/data")
    whole("tooth", x, f"{tooth}:/exchange/data", "", 2)
    along("tooth, frames", x, f"{tooth}:/exchange/data", "frame", "", 3)
    along("tooth, pixels", x, f"{tooth}:/exchange/data", "pixel", "", 2)
    x = gm.read(k11, "/entry/detector/detector")
    whole("detector", x, f"{k11}:/entry/detector/detector", "", 2)
    along("detector, pixels", x, f"{k11}:/entry/detector/detector", "pixel", "", 2,
          statistics="min,max,sum,sumsq,argmax")


kinds = list(gm.devices())
for device in kinds:
    gm.together([all_types, *(functools.partial(axes, rank) for rank in SHAPES), cuts, values, accuracy, outputs,
                 real_files])
gm.together([functools.partial(same_bits, axis, dtype) for axis,
             dtype in (("all", "f4"), ("pixel", "f8"), ("vector", "f2"))] + [refusals, many_chunks, small_stacks])
gm.done()
