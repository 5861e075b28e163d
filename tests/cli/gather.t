#!/usr/bin/env -S python3 -B
"""gather against NumPy: types of data and of indices, ranks of both, storage, selections, caps, outputs; bad indices;
refusals."""
import functools
import itertools
import json
import os
import re

import gm
import moves
from gm import h5py, np
from moves import TYPES, data, is_sampled, moved, ranks_in_turn, rng, same

INDEX_TYPES = "u1 u2 u4 u8 i1 i2 i4 i8".split()
SORTED = "--host-memory 400K --device-memory 300K --threads 2" # data of a megabyte do not fit
options_in_turn = itertools.cycle(("", "--piece 700", SORTED, "--piece 5000 --depth 3", "--threads 1",
                                   "--piece 1 --depth 2"))


def draw(extent, shape, dtype="<i8"):
    high = min(extent, np.iinfo(np.dtype(dtype)).max)
    return rng.integers(0, high, shape).astype(dtype)


def gathered(title, want, operand, index, options="", ranks=None, index2=None):
    """One test: the output is NumPy's."""
    second = f"--index2 '{index2}'" if index2 else ""
    return moved(title, want, f"gather '{operand}' --index '{index}' {second}", device, options, ranks)


def sampled(*case, **more):
    if is_sampled(device):
        gathered(*case, **more)


def types():
    for i, dtype in enumerate(TYPES):
        for order in "<>":
            x, index = data((40, 5, 7), order + dtype), draw(40, (6, 13))
            gm.write("x.h5", x=x, i=index)
            sampled(f"data {order}{dtype}", x[index], "x.h5:/x", "x.h5:/i", next(options_in_turn))
    for i, dtype in enumerate(INDEX_TYPES):
        for order in "<>":
            x, index = data((300, 9), "<f4"), draw(300, (211,), order + dtype)
            index2 = draw(9, (211,), "><"[i % 2] + INDEX_TYPES[i - 3])
            gm.write("x.h5", x=x, i=index, j=index2)
            sampled(f"index {order}{dtype}", x[index], "x.h5:/x", "x.h5:/i", next(options_in_turn))
            sampled(f"indices {index.dtype.str} and {index2.dtype.str}", x[index, index2], "x.h5:/x", "x.h5:/i",
                    next(options_in_turn), index2="x.h5:/j")


SHAPES = (((50,), (30,)), ((7,), (1000,)), ((9, 4), ()), ((5,), ()), ((40, 3, 2, 5), (3, 4)), ((30, 1), (1, 1, 7)),
          ((3, 30001), (2,)), ((60, 1000), (5, 2, 2)), ((1, 5), (2000,)), ((20, 6), (0,)), ((20, 6), (4, 0, 2)),
          ((8, 0), (5,)), ((0, 3), (0,)), ((100000,), (3,)), ((2, 2), (1,)), ((20000, 3), (20000,)))


def shapes(part):
    for i, (shape, positions) in enumerate(SHAPES[part::2]):
        # a dataset without elements has no order of bytes
        dtype = ("<f4", "<u1", ">i2", "<f8")[i % 4] if shape[0] else "<f4"
        x, index = data(shape, dtype), draw(max(shape[0], 1), positions, "<i4")
        gm.write("x.h5", x=x, i=index)
        for options, ranks in (("", 1), (SORTED, 3), (next(options_in_turn), 4)):
            sampled(f"{positions} rows of {shape}", x[index], "x.h5:/x", "x.h5:/i", options, ranks)
        if len(shape) > 1 and shape[1]:
            index2 = draw(shape[1], positions, "<u2")
            gm.write("x.h5", x=x, i=index, j=index2)
            for options in ("", SORTED):
                sampled(f"{positions} rows of {shape}, two indices", x[index, index2], "x.h5:/x", "x.h5:/i", options,
                        index2="x.h5:/j")


def layouts():
    x, index = data((40, 64, 50), "<u2"), draw(40, (70,))
    with h5py.File("x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("chunks", data=x, chunks=(7, 13, 17))
        file.create_dataset("frames", data=x, chunks=(1, 64, 50), compression="gzip", shuffle=True)
        file.create_dataset("filtered", data=x, chunks=(4, 9, 50), compression="gzip", fletcher32=True)
        file["early"], file["late"] = x[:17], x[17:]
        layout = h5py.VirtualLayout(x.shape, x.dtype)
        layout[:17], layout[17:] = h5py.VirtualSource(file["early"]), h5py.VirtualSource(file["late"])
        file.create_virtual_dataset("halves", layout)
        file["i"] = index
        file.create_dataset("packed", data=index, chunks=(9,), compression="gzip")
        layout = h5py.VirtualLayout(index.shape, index.dtype)
        layout[:] = h5py.VirtualSource(file["packed"])
        file.create_virtual_dataset("virtual", layout)
        file["pairs"] = draw(5, (6, 20, 2), ">u2")
        pairs = file["pairs"][()]
    for name in ("plain", "chunks", "frames", "filtered", "halves"):
        for numbers, options in (("i", ""), ("packed", SORTED), ("virtual", "--piece 3000 --host-memory 2M"),
                                 ("i", "--piece 900")):
            sampled(f"{name} by {numbers}", x[index], f"x.h5:/{name}", f"x.h5:/{numbers}", options)
        for text, view in (("[1:39:3,3::7,49]", x[1:39:3, 3::7, 49]), ("[::2,10:40]", x[::2, 10:40]),
                           ("[:,5,::3]", x[:, 5, ::3])):
            sampled(f"{name}{text}", view[pairs[1:, ::3, 1]], f"x.h5:/{name}{text}", "x.h5:/pairs[1:,::3,1]",
                    next(options_in_turn))
        sampled(f"{name} by columns of pairs", x[pairs[..., 0], pairs[..., 1]], f"x.h5:/{name}", "x.h5:/pairs[:,:,0]",
                next(options_in_turn), index2="x.h5:/pairs[:,:,1]")


def orders():
    """Indices in order, in the opposite one, a permutation, one row many times, runs with gaps, few rows of many."""
    x = data((5000, 25), "<f4")
    for name, index in (("all", np.arange(5000)), ("reversed", np.arange(5000)[::-1]),
                        ("permutation", rng.permutation(5000)), ("one row", np.full(9000, 17)),
                        ("two rows", rng.integers(0, 2, 9000) * 4999), ("runs", np.flatnonzero(rng.random(5000) < 0.8)),
                        ("few", np.array([4999, 3, 2500, 2501, 2510])), ("every 500th", np.arange(0, 5000, 500)),
                        ("many", rng.integers(0, 5000, 40000))):
        gm.write("x.h5", x=x, i=index)
        for options in ("", SORTED, "--piece 200 --host-memory 200K"):
            sampled(name, x[index], "x.h5:/x", "x.h5:/i", options)


def out_of_core():
    """Caps far below the size of data and output."""
    x, index = data((12, 500, 400), "<f4"), draw(12, (20,))
    with h5py.File("x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("chunks", data=x, chunks=(1, 100, 400), compression="gzip", compression_opts=1)
        file["i"] = index
    pixels = x.reshape(-1)
    for name, ranks in (("plain", 1), ("chunks", 2)):
        gathered(f"{name}, out of core", x[index], f"x.h5:/{name}", "x.h5:/i",
                 "--host-memory 2M --device-memory 1M --threads 2 --report r.json", ranks)
        with open("r.json") as file:
            report = json.load(file)
        gm.ok(report["peak_host_bytes"] <= 2 << 20 and report["peak_device_bytes"] <= 1 << 20
              and report["plan"]["mode"] == "sorted", f"{device}: {name}: within its caps", report)
    gm.write("p.h5", x=pixels, i=draw(pixels.size, (300000,), "<u4"))
    gathered("elements, out of core", pixels[gm.read("p.h5", "/i")], "p.h5:/x", "p.h5:/i",
             "--host-memory 4M --device-memory 1M --threads 2", 2)
    few = np.array([3, 11, 3])
    gm.write("few.h5", i=few)
    gathered("few rows", x[few], "x.h5:/plain", "few.h5", "--report r.json", 1)
    with open("r.json") as file:
        report = json.load(file)
    gm.ok(report["bytes_read"] == 2 * x[0].nbytes + few.nbytes,
          f"{device}: only the rows that are wanted are read, once", report)


def wanted_rows(rows):
    """Numbers of rows in many orders."""
    clusters = rng.integers(0, rows - 60, 20)[:, None]
    return {"few": np.array([5, rows - 1, rows // 2, rows // 2 + 3]), "sorted": np.arange(0, rows, 29),
            "sorted, close": np.flatnonzero(rng.random(rows) < 0.3), "random": rng.integers(0, rows, 300),
            "many random": rng.integers(0, rows, rows // 2), "repeated": rng.integers(0, 5, 900) * (rows // 5),
            "clusters": (clusters + np.arange(40)).reshape(-1),
            "clusters, shuffled": rng.permutation((clusters + rng.integers(0, 60, (20, 30))).reshape(-1))}


def plans():
    """The bytes of --plan are those that the run then reads: sorted rows with the gaps between them, and held data."""
    modes = set()
    for rows, columns, dtype in ((9000, 50, "u1"), (3000, 9, "f8"), (300, 5000, "u2")):
        x = data((rows, columns), dtype)
        with h5py.File("x.h5", "w") as file:
            file["plain"] = x
            file.create_dataset("chunks", data=x, chunks=(rows // 9, columns // 2))
        for name, index in wanted_rows(rows - 1).items():
            gm.write("i.h5", i=index, j=index % 7)
            operand, options = next(plans_in_turn)
            words = (f"gather '{operand}' --index i.h5:/i {options} -o out.h5 --force --no-sync --device {device} "
                     "--report r.json")
            ranks = next(ranks_in_turn)
            ran = gm.run(words, ranks)
            report = json.load(open("r.json"))
            planned = gm.run(f"{words} --plan", ranks)
            plan = json.load(open("r.json"))["plan"]
            modes.add(plan["mode"])
            gm.ok(ran.code == 0 and planned.code == 0
                  and plan["expected"]["bytes"]["file_to_host"]["all"] == report["bytes_read"]
                  and plan["expected"] == report["plan"]["expected"],
                  f"{device}: {name}, {words}, {ranks} ranks, {plan['mode']}: planned as read", ran, planned,
                  report["bytes_read"], plan)
    gm.ok(modes == {"held", "sorted"}, f"{device}: plans of both modes", modes)


plans_in_turn = itertools.cycle((("x.h5:/plain", ""), ("x.h5:/plain", SORTED), ("x.h5:/plain[1:,2:-1]", ""),
                                 ("x.h5:/chunks", SORTED), ("x.h5:/plain", "--index2 i.h5:/j"),
                                 ("x.h5:/plain", "--piece 700 --host-memory 300K --device-memory 200K")))


def rows_read(index, gap):
    """Distinct rows, and the gaps that are no longer than `gap`."""
    steps = np.diff(np.unique(index))
    return 1 + int(np.where(steps <= gap + 1, steps, 1).sum())


def estimates():
    """Of more numbers than a plan looks at it estimates the bytes, to a quarter: of rows that were never written, as no
    data are read."""
    rows, count = 10**9, 4_600_000
    with h5py.File("never.h5", "w") as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((rows, 64)), dcpl=create)
    spread = rng.integers(0, rows, count, "u4")
    for name, index in (("random", spread), ("sorted", np.sort(spread)),
                        ("repeated", rng.permutation(np.repeat(spread[:20000], count // 20000))),
                        ("clusters", (rng.integers(0, rows - 10**6, 100, "u4")[:, None]
                                      + rng.integers(0, 10**6, (100, count // 100), "u4")).reshape(-1))):
        gm.write("many.h5", i=index)
        ran = gm.run("gather never.h5 --index many.h5 -o out.h5 --plan --device cpu --host-memory 1G --report r.json")
        plan = json.load(open("r.json"))["plan"] if ran.code == 0 else None
        want = 64 * rows_read(index, 16384 // 64) + index.nbytes
        gm.ok(plan and plan["block_rows"] == index.size
              and abs(plan["expected"]["bytes"]["file_to_host"]["all"] / want - 1) < 0.25, f"{name}: estimated", want,
              plan, ran)
    os.remove("many.h5")


def outputs():
    x, index = data((30, 8, 9), "<u2"), draw(30, (5, 11))
    with h5py.File("x.h5", "w") as file:
        file["a/x"] = x
        file["a/x"].attrs.update({"unit": "counts", "pixel_size": 0.65})
    gm.write("i.h5", i=index)
    for options in ("--output-layout parts", "--output-layout auto", "--chunk 3,2,4,5",
                    "--chunk 2,11,8,9 --deflate 5 --shuffle", "--deflate 1"):
        gathered("output", x[index], "x.h5:/a/x", "i.h5", options, 3)
    gm.write("large.h5", x=data((2000, 72), "<u2"))
    before = gm.state()
    for name, mode in (("x.h5:/a/x", "held"), ("large.h5", "sorted")): # 55 rows are asked for
        ran = gm.run(f"gather {name} --index i.h5 --plan --device {device}", 2)
        gm.ok(ran.code == 0 and re.search(rf"^mode +{mode}$", ran.out, re.M) and "host_memory" in ran.out
              and gm.state() == before, f"{device}: --plan, {mode}", ran)
    ran = gm.run(f"gather x.h5:/a/x --index i.h5 --device {device} --no-sync --report r.json", 2)
    with h5py.File("x.gather.h5", "r") as file:
        found, told = file["a/x"][()], dict(file["a/x"].attrs)
    gm.ok(ran.code == 0 and same(found, x[index]), f"{device}: the default name", ran)
    gm.ok(told.get("unit") == "counts" and told.get("pixel_size") == 0.65,
          f"{device}: attributes of the data are copied", told)
    gm.ok(told.get("operation") == "gather" and "--index i.h5" in told.get("command", "")
          and "i.h5" in str(told.get("inputs")), f"{device}: attributes of provenance", told)
    with open("r.json") as file:
        report = json.load(file)
    gm.ok(report["bytes_written"] == x[index].nbytes
          and [os.path.basename(d["file"]) for d in report["inputs"]] == ["x.h5", "i.h5"], f"{device}: --report",
          report)
    # more ranks than rows: those without columns of their own do nothing
    for shape, rows in (((3, 50), 1), ((5, 0), 2), ((300, 3000), 2)):
        x, index = data(shape, "<u2"), draw(shape[0], rows)
        gm.write("x.h5", x=x)
        gm.write("i.h5", i=index)
        for options in ("", "--chunk 1,20") if x.size else ("",):
            gathered(f"{rows} rows of {shape}", x[index], "x.h5", "i.h5", f"{options} --report r.json", 3)
            with open("r.json") as file:
                report = json.load(file)
            gm.ok(report["bytes_written"] == x[index].nbytes, f"{device}: {rows} rows of {shape}: by each rank its own",
                  report["bytes_written"])
    index[-1] = 300
    gm.write("i.h5", i=index)
    ran = gm.run(f"gather x.h5 --index i.h5 -o no.h5 --device {device}", 3)
    gm.ok(not gm.faults_of_refusal(ran, 3, r"index at \(1\) is 300"), f"{device}: a bad index of fewer rows than ranks",
          ran)


def labels():
    """Labels of dimensions are kept where the dimensions are the same, and left out with a warning where they are
    others."""
    x = data((30, 8, 9), "<u2")
    gm.write("i.h5", line=draw(30, 5), table=draw(30, (5, 2)), second=draw(8, 5))
    with h5py.File("x.h5", "w") as file:
        file["x"] = x
        for d, text in zip(file["x"].dims, ("frame", "row", "column")):
            d.label = text
    for options, kept in (("--index i.h5:/line", True), ("--index i.h5:/table", False),
                          ("--index i.h5:/line --index2 i.h5:/second", False)):
        ran = gm.run(f"gather x.h5 {options} -o o.h5 --force --no-sync --device cpu", 2)
        with h5py.File("o.h5") as file:
            found = list(file["x"].attrs.get("DIMENSION_LABELS", []))
        gm.ok(ran.code == 0 and found == (["frame", "row", "column"] if kept else [])
              and ("'DIMENSION_LABELS'" in ran.err) != kept, f"labels of dimensions, {options}", found, ran)


def bad_indices():
    """The first bad index is named, on whichever rank it is, whatever the pieces."""
    x, n = data((90, 11), "<f4"), 4000
    gm.write("x.h5", x=x)
    for dtype, bad, text in (("<i8", -1, "-1"), ("<i4", 90, "90"), (">i2", 5000, "5000"),
                             ("<u8", 2**63, "9223372036854775808"), ("<u1", 255, "255"), (">i8", -2**63, str(-2**63))):
        for place in (0, 1999, 3999):
            index = draw(90, (n // 40, 40), dtype)
            flat = index.reshape(-1)
            flat[place] = bad
            flat[place + 1::701] = bad
            gm.write("i.h5", i=index)
            for options in ("", "--piece 500", "--host-memory 200K --device-memory 100K --piece 3K"):
                ranks = next(ranks_in_turn)
                if device != "cpu" and place:
                    continue
                gm.refused(f"{device}: index {text} at {place}, {ranks} ranks {options}",
                           f"gather x.h5 --index i.h5 -o out.h5 --device {device} {options}", 3,
                           rf"^i.h5:/i: the index at \({place // 40}, {place % 40}\) is {text}, expected 0 to 89, for "
                           r"dimension 0 of x.h5:/x", ranks)
    gm.write("i.h5", i=np.array([0, 1, 2, 3]), j=np.array([10, 0, 11, 12]), k=np.array(91), l=np.array([0, 95, 0, 0]))
    gm.write("none.h5", x=np.zeros((0, 4)))
    gm.write("large.h5", x=data((9000, 500), "<f4"), i=np.array([0, 8999, 7, 8, 7, 5, 9000, 2, -1]))
    for arguments, pattern in (("x.h5 --index i.h5:/i --index2 i.h5:/j",
                                r"^i.h5:/j: the index at \(2\) is 11, expected 0 to 10, for dimension 1 of x.h5:/x"),
                               ("x.h5 --index i.h5:/l --index2 i.h5:/j",
                                r"^i.h5:/l: the index at \(1\) is 95, expected 0 to 89, for dimension 0 of x.h5:/x"),
                               ("'x.h5:/x[:,3]' --index i.h5:/k",
                                r"^i.h5:/k: the index at \(\) is 91, expected 0 to 89"),
                               ("'x.h5:/x[5:15]' --index i.h5:/j",
                                r"^i.h5:/j: the index at \(0\) is 10, expected 0 to 9"),
                               ("none.h5 --index i.h5:/i", r"^i.h5:/i: the index at \(0\) is 0, expected none")):
        for ranks in (1, 3):
            ran = gm.run(f"gather {arguments} -o out.h5 --device {device}", ranks)
            faults = gm.faults_of_refusal(ran, 3, pattern)
            gm.ok(not faults and not os.path.exists("out.h5"), f"{device}: {arguments}, {ranks} ranks", *faults, ran)
    ran = gm.run(f"gather large.h5:/x --index large.h5:/i --plan --device {device}", 3)
    faults = gm.faults_of_refusal(ran, 3, r"^large.h5:/i: the index at \(6\) is 9000, expected 0 to 8999")
    gm.ok(not faults, f"{device}: --plan looks at the index of sorted rows", *faults, ran)


def refusals():
    gm.write("x.h5", x=data((4, 5), "u2"), scalar=np.float32(1), text="no numbers", large=np.zeros((300, 10000), "f8"),
             i=np.arange(4), f=np.arange(4.0), j=np.arange(3), deep=np.zeros((1,) * 20, "i4"),
             wide=np.zeros((1,) * 16, "f4"))
    for arguments, code, pattern in (("x.h5:/x", 2, "needs --index"), ("x.h5:/x --index2 x.h5:/i", 2, "needs --index"),
                                     ("x.h5:/x --index x.h5:/f", 3, "x.h5:/f.*f64.*integers"),
                                     ("x.h5:/x --index x.h5:/text", 3, "string"),
                                     ("x.h5:/x --index none.h5", 3, "none.h5"),
                                     ("x.h5:/x --index x.h5:/i --index2 x.h5:/none", 3, "none"),
                                     ("x.h5:/x --index x.h5:/i --index2 x.h5:/j", 3,
                                      "x.h5:/i is 4 and x.h5:/j is 3, expected the same shape"),
                                     ("x.h5:/scalar --index x.h5:/i", 3, "scalar, expected 1 dimension or more"),
                                     ("x.h5:/i --index x.h5:/i --index2 x.h5:/i", 3, "expected 2 dimensions or more"),
                                     ("x.h5:/wide --index x.h5:/deep", 3, "35 dimensions, expected 32"),
                                     ("x.h5:/x --index x.h5:/i -o x.h5 --force", 4, "x.h5"),
                                     ("x.h5:/x --index x.h5:/i --axis 0", 2, "axis"),
                                     ("x.h5:/x x.h5:/x --index x.h5:/i", 2, ""),
                                     ("x.h5:/x --index x.h5:/i --chunk 9", 2, "chunk"),
                                     ("x.h5:/large --index x.h5:/i --host-memory 5K", 5,
                                      "--host-memory.*expected at least"),
                                     ("x.h5:/large --index x.h5:/i --piece 1M --host-memory 1M --depth 9", 5,
                                      "--host-memory.*expected at least")):
        gm.refused(f"refused: gather {arguments}", f"gather {arguments} --device cpu", code, pattern,
                   next(ranks_in_turn))
    gm.write("i.h5", i=np.arange(4))
    ran = gm.run("gather x.h5:/x --index i.h5 -o i.h5 --force --device cpu", 2)
    faults = gm.faults_of_refusal(ran, 4, "i.h5")
    gm.ok(not faults and same(gm.read("i.h5", "/i"), np.arange(4)), "refused: an output that is the index", *faults,
          ran)


def too_little():
    x, index = data((3000, 100), "<f8"), draw(3000, (500,))
    gm.write("x.h5", x=x, i=index)
    moves.too_little("gather x.h5:/x --index x.h5:/i", device, lambda title,
                     *how: gathered(title, x[index], "x.h5:/x", "x.h5:/i", *how))


for device in gm.devices():
    gm.together([types, functools.partial(shapes, 0), functools.partial(shapes, 1), layouts, orders, out_of_core, plans,
                 outputs, bad_indices, too_little])
gm.together([labels, refusals, estimates])
gm.done()
