#!/usr/bin/env -S python3 -B
"""flip against NumPy: element types, orders of bytes, axes, ranks, storage, caps, outputs; refusals."""
import functools
import itertools
import json
import os
import re

import gm
import moves
from gm import h5py, np
from moves import TYPES, data, is_sampled, moved, ranks_in_turn, same

SHAPES = {1: (1009,), 2: (37, 53), 3: (5, 67, 31), 4: (3, 17, 4, 41)}


def flipped(title, x, operand, axis, options="", ranks=None):
    """One test: the output is NumPy's."""
    return moved(f"{title}, --axis {axis}", np.flip(x, axis), f"flip '{operand}' --axis {axis}", device, options, ranks)


def sampled(*case):
    if is_sampled(device):
        flipped(*case)


def types():
    for i, dtype in enumerate(TYPES):
        little, big = data((7, 31, 45), f"<{dtype}"), data((7, 31, 45), f">{dtype}")
        gm.write("x.h5", little=little, big=big)
        sampled(f"{dtype}, little-endian", little, "x.h5:/little", i % 3)
        sampled(f"{dtype}, big-endian", big, "x.h5:/big", (i + 1) % 3, "--piece 3000")


def axes(rank):
    types_in_turn = itertools.cycle(("<u2", ">f4", "<f8", "<u1"))
    for axis in range(-rank, rank):
        x = data(SHAPES[rank], next(types_in_turn))
        gm.write("x.h5", x=x)
        sampled(f"{rank} dimensions", x, "x.h5", axis, next(pieces_in_turn))


pieces_in_turn = itertools.cycle(("", "--piece 700", "--piece 5000 --depth 3", "--threads 1"))


def layouts():
    x = data((6, 64, 50), "<u2")
    with h5py.File("x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("chunks", data=x, chunks=(2, 13, 17))
        file.create_dataset("frames", data=x, chunks=(1, 64, 50), compression="gzip", shuffle=True)
        file.create_dataset("filtered", data=x, chunks=(4, 9, 50), compression="gzip", fletcher32=True)
        file.create_dataset("early", data=x[:3])
        file.create_dataset("late", data=x[3:])
        for name, source, cut in (("virtual", "plain", slice(None)), ("halves", None, None)):
            layout = h5py.VirtualLayout(x.shape, x.dtype)
            if source:
                layout[cut] = h5py.VirtualSource(file[source])
            else:
                layout[:3], layout[3:] = h5py.VirtualSource(file["early"]), h5py.VirtualSource(file["late"])
            file.create_virtual_dataset(name, layout)
    for name in ("plain", "chunks", "frames", "filtered", "virtual", "halves"):
        for axis in range(3):
            sampled(name, x, f"x.h5:/{name}", axis, next(pieces_in_turn))
    for text, view in (("[1:5,3::7,49]", x[1:5, 3::7, 49]), ("[::2,10:40]", x[::2, 10:40]), ("[3]", x[3]),
                       ("[:,5,::3]", x[:, 5, ::3])):
        for name, axis in (("plain", 0), ("frames", -1)):
            sampled(f"{name}{text}", view, f"x.h5:/{name}{text}", axis, next(pieces_in_turn))


def shapes():
    """Few rows for many ranks, one element, nothing."""
    for i, shape in enumerate(((1,), (2, 30001), (1, 1, 7), (30001, 2), (3, 1, 9000), (0, 4), (4, 0), (2, 2))):
        x = data(shape, ("<f4", "<u1")[i % 2])
        gm.write("x.h5", x=x)
        for axis in range(len(shape)):
            sampled(f"{shape}", x, "x.h5", axis, next(pieces_in_turn), 4 if i % 2 else 3)


def out_of_core():
    moves.out_of_core(device, "--axis", range(3), flipped)


def outputs():
    x = data((8, 30, 40), "<u2")
    with h5py.File("x.h5", "w") as file:
        file["a/x"] = x
        file["a/x"].attrs.update({"unit": "counts", "pixel_size": 0.65, "offsets": np.arange(5)})
        file["cube"] = x[:4]
    for options in ("--output-layout parts", "--output-layout auto", "--chunk 3,7,11",
                    "--chunk 2,30,40 --deflate 5 --shuffle", "--deflate 1"):
        flipped("output", x, "x.h5:/a/x", 1, options, 3)
    before = gm.state()
    for axis, ranks in ((0, 1), (-1, 2)):
        ran = gm.run(f"flip x.h5:/a/x --axis {axis} --plan --device {device}", ranks)
        gm.ok(ran.code == 0 and re.search(r"^range +9600 elements", ran.out, re.M) and "host_memory" in ran.out
              and gm.state() == before, f"{device}: --axis {axis} --plan", ran, gm.difference(before, gm.state()))
    ran = gm.run(f"flip x.h5:/a/x --axis 0 --device {device} --no-sync --report r.json", 2)
    with h5py.File("x.flip.h5", "r") as file:
        found, told = file["a/x"][()], dict(file["a/x"].attrs)
    gm.ok(ran.code == 0 and same(found, x[::-1]), f"{device}: the default name", ran)
    gm.ok(told.get("unit") == "counts" and told.get("pixel_size") == 0.65
          and np.array_equal(told.get("offsets"), np.arange(5)), f"{device}: attributes of the input are copied", told)
    gm.ok(told.get("operation") == "flip" and "--axis 0" in told.get("command", ""),
          f"{device}: attributes of provenance", told)
    with open("r.json") as file:
        report = json.load(file)
    gm.ok(report["bytes_read"] == report["bytes_written"] == x.nbytes and report["plan"]["elements"] == x.size
          and report["plan"]["depth"] > 0, f"{device}: --report", report)
    ran = gm.run(f"flip x.flip.h5:/a/x --axis 0 -o twice.h5 --no-sync --device {device}", 3)
    gm.ok(ran.code == 0 and same(gm.read("twice.h5", "/a/x"), x), f"{device}: flipped twice is the input", ran)


def any_ranks():
    """The same bits with any number of ranks, threads and slots."""
    x = data((9, 40, 33), "<f4")
    gm.write("x.h5", x=x)
    for axis in range(3):
        for ranks, options in ((1, "--threads 1"), (2, ""), (3, "--piece 2000"), (4, "--depth 2 --piece 9000")):
            flipped("any number of ranks", x, "x.h5", axis, options, ranks)


def refusals():
    gm.write("x.h5", x=data((4, 5), "u2"), scalar=np.float32(1), text="no numbers", large=np.zeros((3, 100000), "f8"),
             row=np.zeros(3))
    for arguments, code, pattern in (("x.h5:/x", 2, "needs --axis"), ("x.h5:/x --axis 2", 2, "2 dimensions.*-2 to 1"),
                                     ("x.h5:/x --axis -3", 2, "-2 to 1"),
                                     ("x.h5:/row --axis 1", 2, "1 dimension, .*-1 to 0"),
                                     ("x.h5:/x[2] --axis 1", 2, "1 dimension, .*-1 to 0"),
                                     ("x.h5:/x --axis frame", 2, "'frame'.*-2 to 1"), ("x.h5:/x --axis 1x", 2, "'1x'"),
                                     ("x.h5:/x --axis ''", 2, "''"), ("x.h5:/x --axis 0.5", 2, "0.5"),
                                     ("x.h5:/x --axis 99999999999999999999", 2, "-2 to 1"),
                                     ("x.h5:/scalar --axis 0", 3, "single number"),
                                     ("x.h5:/text --axis 0", 3, "string"), ("nofile.h5 --axis 0", 3, "nofile"),
                                     ("x.h5:/x --axis 0 -o x.h5 --force", 4, "x.h5"),
                                     ("x.h5:/x x.h5:/x --axis 0", 2, ""), ("--axis 0", 2, ""),
                                     ("x.h5:/x --axis 0 --chunk 9", 2, "chunk"),
                                     ("x.h5:/x --axis 0 --stat min", 2, "stat"),
                                     ("x.h5:/large --axis 0 --host-memory 5K", 5, "--host-memory.*expected at least"),
                                     ("x.h5:/large --axis 1 --piece 1M --host-memory 1M --depth 9", 5,
                                      "--host-memory.*expected at least")):
        gm.refused(f"refused: flip {arguments}", f"flip {arguments} --device cpu", code, pattern,
                   next(ranks_in_turn))


def too_little():
    x = data((3, 100000), "<f8")
    gm.write("x.h5", x=x)
    moves.too_little("flip x.h5 --axis 0", device, lambda title, *how: flipped(title, x, "x.h5", 0, *how))


def damaged_attributes():
    """An attribute that cannot be read is an error of the input; one that the output cannot hold a warning, -q or
    not."""
    for name, mark, count in (("text", b"GCOL", 1), ("many", b"FRHP", 40)):
        path = f"{name}.h5"
        with h5py.File(path, "w", libver="latest" if name == "many" else "earliest") as file:
            file["x"] = np.arange(10.0)
            for i in range(count):
                file["x"].attrs[f"{name}{i}"] = "words " * 10
        with open(path, "r+b") as file:
            at = file.read().find(mark)
            file.seek(at)
            file.write(b"\0" * 4)
        ran = gm.run(f"flip {path}:/x --axis 0 -o no.h5 --device cpu -q", 2)
        faults = gm.faults_of_refusal(ran, 3, rf"{path}:/x: its attributes? .*cannot be read, the file is damaged")
        gm.ok(at > 0 and not faults and not os.path.exists("no.h5"), f"damaged attributes, {name}", *faults, ran)
    with h5py.File("reference.h5", "w") as file:
        file["x"] = np.arange(10.0)
        file["x"].attrs["reference"] = file["x"].ref
    ran = gm.run("flip reference.h5 --axis 0 -o yes.h5 --device cpu -q")
    gm.ok(ran.code == 0
          and "warning: reference.h5:/x: 1 attribute could not be copied, the first of them is 'reference'" in ran.err,
          "an attribute that is left out", ran)


def damaged():
    """A chunk that cannot be decoded, found by one rank in the middle of its work."""
    gm.write_damaged("bad.h5")
    for axis in range(3):
        gm.refused(f"a damaged chunk, --axis {axis}", f"flip bad.h5 --axis {axis} -o out.h5 --device cpu", 3, "bad.h5",
                   3)


for device in gm.devices():
    gm.together([types, *(functools.partial(axes, rank) for rank in SHAPES), layouts, shapes, out_of_core, outputs,
                 any_ranks, too_little])
gm.together([refusals, damaged_attributes, damaged])
gm.done()
