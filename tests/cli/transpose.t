#!/usr/bin/env -S python3 -B
"""transpose against NumPy: element types, orders of bytes, axes, ranks, storage, caps, outputs; refusals."""
import functools
import itertools
import json
import re

import gm
import moves
from gm import h5py, np
from moves import TYPES, data, is_sampled, moved, ranks_in_turn, same

SHAPES = {2: (137, 253), 3: (5, 67, 31), 4: (3, 17, 4, 41), 5: (3, 4, 5, 6, 7)}
pieces_in_turn = itertools.cycle(("", "--piece 700", "--piece 5000 --depth 3", "--threads 1", "--piece 1"))


def swapped(title, x, operand, axes, options="", ranks=None):
    """One test: the output is NumPy's. axes None: the default."""
    word = "" if axes is None else f"--axes={axes[0]},{axes[1]}"
    return moved(f"{title}, {x.shape} {word or 'the last two axes'}", np.swapaxes(x, *(axes or (-2, -1))),
                 f"transpose '{operand}' {word}", device, options, ranks)


def sampled(*case):
    if is_sampled(device):
        swapped(*case)


def types():
    axes = itertools.cycle(((0, 1), (1, 2), (0, 2), None))
    for dtype in TYPES:
        little, big = data((7, 131, 45), f"<{dtype}"), data((7, 131, 45), f">{dtype}")
        gm.write("x.h5", little=little, big=big)
        sampled(f"{dtype}, little-endian", little, "x.h5:/little", next(axes))
        sampled(f"{dtype}, big-endian", big, "x.h5:/big", next(axes), "--piece 3000")


def axes(rank):
    types_in_turn = itertools.cycle(("<u2", ">f4", "<f8", "<u1"))
    for first, second in itertools.permutations(range(rank), 2):
        x = data(SHAPES[rank], next(types_in_turn))
        gm.write("x.h5", x=x)
        sampled(f"{rank} dimensions", x, "x.h5", (first - rank, second) if first % 2 else (first, second),
                next(pieces_in_turn))


def layouts():
    x = data((6, 64, 50), "<u2")
    with h5py.File("x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("chunks", data=x, chunks=(2, 13, 17))
        file.create_dataset("frames", data=x, chunks=(1, 64, 50), compression="gzip", shuffle=True)
        file.create_dataset("filtered", data=x, chunks=(4, 9, 50), compression="gzip", fletcher32=True)
        file.create_dataset("late", data=x[3:])
        file.create_dataset("early", data=x[:3], chunks=(1, 20, 20), compression="gzip")
        layout = h5py.VirtualLayout(x.shape, x.dtype)
        layout[:3], layout[3:] = h5py.VirtualSource(file["early"]), h5py.VirtualSource(file["late"])
        file.create_virtual_dataset("halves", layout)
    for name in ("plain", "chunks", "frames", "filtered", "halves"):
        for pair in ((0, 1), (1, 2), (0, 2)):
            sampled(name, x, f"x.h5:/{name}", pair, next(pieces_in_turn))
    for text, view in (("[1:5,3::7,49]", x[1:5, 3::7, 49]), ("[::2,10:40]", x[::2, 10:40]), ("[3]", x[3]),
                       ("[:,5,::3]", x[:, 5, ::3]), ("[2:,8:56:4]", x[2:, 8:56:4])):
        for name, pair in (("plain", (0, 1)), ("frames", None), ("chunks", (-1, 0)), ("halves", (0, 1))):
            sampled(f"{name}{text}", view, f"x.h5:/{name}{text}", pair, next(pieces_in_turn))


def shapes():
    """Few rows for many ranks, axes of one element, nothing."""
    for i, shape in enumerate(((1, 1), (2, 30001), (30001, 2), (1, 1, 7), (3, 1, 9000), (0, 4), (4, 0), (2, 2),
                               (1, 5, 1, 6), (9000, 1, 3))):
        x = data(shape, ("<f4", "<u1")[i % 2])
        gm.write("x.h5", x=x)
        for pair in itertools.combinations(range(len(shape)), 2):
            sampled("few rows", x, "x.h5", pair, next(pieces_in_turn), 4 if i % 2 else 3)


def out_of_core():
    moves.out_of_core(device, "--axes", ((0, 1), (1, 2), (0, 2)), swapped)


def outputs():
    x = data((8, 30, 40), "<u2")
    with h5py.File("x.h5", "w") as file:
        file["a/x"] = x
        file["a/x"].attrs.update({"unit": "counts", "pixel_size": 0.65, "offsets": np.arange(5)})
    for options in ("--output-layout parts", "--output-layout auto", "--chunk 3,7,11",
                    "--chunk 2,40,30 --deflate 5 --shuffle", "--deflate 1"):
        for pair in ((1, 2), (0, 2)):
            swapped("output", x, "x.h5:/a/x", pair, options, 3)
    before = gm.state()
    for words, ranks in (("--axes 0,1", 1), ("", 2)):
        ran = gm.run(f"transpose x.h5:/a/x {words} --plan --device {device}", ranks)
        gm.ok(ran.code == 0 and re.search(r"^range +9600 elements in boxes of [48]x30x40", ran.out, re.M)
              and "host_memory" in ran.out and gm.state() == before
              and re.search(r"^runs +[1-9]\d* to read, [1-9]\d* to write by all ranks$", ran.out, re.M),
              f"{device}: {words} --plan", ran, gm.difference(before, gm.state()))
    ran = gm.run(f"transpose x.h5:/a/x --axes 0,-1 --device {device} --no-sync --report r.json", 2)
    with h5py.File("x.transpose.h5", "r") as file:
        found, told = file["a/x"][()], dict(file["a/x"].attrs)
    gm.ok(ran.code == 0 and same(found, np.swapaxes(x, 0, 2)), f"{device}: the default name", ran)
    gm.ok(told.get("unit") == "counts" and told.get("pixel_size") == 0.65
          and np.array_equal(told.get("offsets"), np.arange(5)), f"{device}: attributes of the input are copied", told)
    gm.ok(told.get("operation") == "transpose" and "--axes 0,-1" in told.get("command", ""),
          f"{device}: attributes of provenance", told)
    with open("r.json") as file:
        report = json.load(file)
    gm.ok(report["bytes_read"] == report["bytes_written"] == x.nbytes and report["plan"]["elements"] == x.size
          and report["plan"]["depth"] > 0 and re.fullmatch(r"\d+x\d+x\d+", report["plan"]["box"]),
          f"{device}: --report", report)
    ran = gm.run(f"transpose x.transpose.h5:/a/x --axes 2,0 -o twice.h5 --no-sync --device {device}", 3)
    gm.ok(ran.code == 0 and same(gm.read("twice.h5", "/a/x"), x), f"{device}: swapped twice is the input", ran)


def labels():
    """Labels of dimensions follow the axes; those of dimensions that the output does not have are left out."""
    with h5py.File("x.h5", "w") as file:
        for name, kind in (("x", None), ("fixed", "S7"), ("table", None), ("few", "S7")):
            file[name] = data((4, 5, 6, 7), "<u2")
        for d, text in zip(file["x"].dims, ("energy", "", "row", "column")):
            d.label = text
        file["fixed"].attrs["DIMENSION_LABELS"] = np.array(["energy", "shift", "row", "column"], "S7")
        file["few"].attrs["DIMENSION_LABELS"] = np.array(["one", "two"], "S7")
        file["table"].attrs["DIMENSION_LABELS"] = np.arange(4)
    faults = []
    for command, expected in (("transpose x.h5:/x --axes 0,2", ["row", "", "energy", "column"]),
                              ("transpose x.h5:/fixed", ["energy", "shift", "column", "row"]),
                              ("transpose 'x.h5:/x[:, 1]' --axes 0,1", ["row", "energy", "column"]),
                              ("transpose x.h5:/few", ["one", "two"]), ("transpose x.h5:/table", [0, 1, 2, 3]),
                              ("flip x.h5:/fixed --axis 0", ["energy", "shift", "row", "column"]),
                              ("flip 'x.h5:/x[2, :, ::2, :]' --axis 0", ["", "row", "column"]),
                              ("normalize 'x.h5:/x[:, 0, 2]' --type f32", ["energy", "column"]),
                              ("normalize 'x.h5:/x[0, 0, 0, 0]' --type f32", None)):
        ran = gm.run(f"{command} -o out.h5:/o --force --no-sync --device cpu", next(ranks_in_turn))
        found = None
        if ran.code == 0:
            with h5py.File("out.h5") as file:
                found = file["o"].attrs.get("DIMENSION_LABELS")
        found = [text.decode() if isinstance(text, bytes) else text for text in found] if found is not None else None
        if ran.code != 0 or found != expected or ("'DIMENSION_LABELS'" in ran.err) != (expected is None):
            faults.append(f"{found}, expected {expected}: {ran}")
    gm.ok(not faults, "labels of dimensions", *faults)


def any_ranks():
    """The same bits with any number of ranks, threads and slots."""
    x = data((9, 40, 33), "<f4")
    gm.write("x.h5", x=x)
    for pair in ((0, 1), (1, 2), (0, 2)):
        for ranks, options in ((1, "--threads 1"), (2, ""), (3, "--piece 2000"), (4, "--depth 2 --piece 9000")):
            swapped("any number of ranks", x, "x.h5", pair, options, ranks)


def refusals():
    gm.write("x.h5", x=data((4, 5), "u2"), scalar=np.float32(1), text="no numbers", large=np.zeros((300, 1000), "f8"),
             row=np.zeros(3))
    for arguments, code, pattern in (("x.h5:/x --axes 0,2", 2, "2 dimensions.*-2 to 1"),
                                     ("x.h5:/x --axes=-3,0", 2, "-2 to 1"), ("x.h5:/x --axes 1", 2, "'1'.*two numbers"),
                                     ("x.h5:/x --axes 1,1", 2, "both are dimension 1"),
                                     ("x.h5:/x --axes=-1,1", 2, "both are dimension 1"),
                                     ("x.h5:/x --axes 0,1,0", 2, "'0,1,0'"), ("x.h5:/x --axes 0,", 2, "'0,'"),
                                     ("x.h5:/x --axes ,1", 2, "',1'"), ("x.h5:/x --axes ''", 2, "''"),
                                     ("x.h5:/x --axes 0,1x", 2, "'0,1x'"),
                                     ("x.h5:/x --axes 0,99999999999999999999", 2, "-2 to 1"),
                                     ("x.h5:/x --axes '0;1'", 2, "'0;1'"),
                                     ("x.h5:/row", 3, "1 dimension, transpose needs two"),
                                     ("x.h5:/x[2]", 3, "1 dimension, .*two"), ("x.h5:/scalar", 3, "0 dimensions"),
                                     ("x.h5:/text", 3, "string"), ("nofile.h5", 3, "nofile"),
                                     ("x.h5:/x -o x.h5 --force", 4, "x.h5"), ("x.h5:/x x.h5:/x", 2, ""), ("", 2, ""),
                                     ("x.h5:/x --chunk 9", 2, "chunk"), ("x.h5:/x --axis 0", 2, "axis"),
                                     ("x.h5:/large --host-memory 5K", 5, "--host-memory.*expected at least"),
                                     ("x.h5:/large --piece 1M --host-memory 1M --depth 3", 5,
                                      "--host-memory.*expected at least")):
        gm.refused(f"refused: transpose {arguments}", f"transpose {arguments} --device cpu", code, pattern,
                   next(ranks_in_turn))
    ran = gm.run("flip x.h5:/x --axis 0 --axes 0,1 --device cpu")
    gm.ok(not gm.faults_of_refusal(ran, 2, "axes"), "refused: flip --axes", ran)


def too_little():
    x = data((300, 1000), "<f8")
    gm.write("x.h5", x=x)
    moves.too_little("transpose x.h5", device, lambda title, *how: swapped(title, x, "x.h5", (0, 1), *how))


def damaged():
    """A chunk that cannot be decoded, found by one rank in the middle of its work."""
    gm.write_damaged("bad.h5")
    for pair in ("0,1", "1,2", "0,2"):
        gm.refused(f"a damaged chunk, --axes {pair}", f"transpose bad.h5 --axes {pair} -o out.h5 --device cpu", 3,
                   "bad.h5", 3)


for device in gm.devices():
    gm.together([types, *(functools.partial(axes, rank) for rank in SHAPES), layouts, shapes, out_of_core, outputs,
                 any_ranks, too_little])
gm.together([labels, refusals, damaged])
gm.done()
