#!/usr/bin/env -S python3 -B
"""Threads that read a piece together: pieces of megabytes, of which each of several threads reads a share, give what
one thread gives that reads small pieces alone, and what NumPy gives, for every layout and axis. Rows and frames are
odd, so that shares end anywhere."""
import functools

import gm
from gm import h5py, np

SHAPE = (47, 321, 509)
TOGETHER = ("--threads 5 --piece 16M", "--threads 3 --piece 9M --depth 2", "--threads 7")
ALONE = "--threads 1 --piece 300K"
LAYOUTS = {"contiguous": {},
           "a chunk for each frame": dict(chunks=(1, 321, 509), compression="gzip", compression_opts=1),
           "chunks of five frames": dict(chunks=(5, 100, 509)),
           "small chunks": dict(chunks=(2, 107, 170), shuffle=True, compression="gzip", compression_opts=1)}
AXES = ("all", "frame", "pixel", "1", "2", "vector")


def numbers(kind):
    rng = np.random.default_rng(11)
    return rng.integers(0, 60000, SHAPE).astype("u2") if kind == "u2" else rng.standard_normal(SHAPE).astype(kind)


def statistics(options, axis, kind):
    """The results of reduce for an axis: lines, or datasets; and the run."""
    output = "" if axis == "all" else f"--axis {axis} -o r.h5 --force --no-sync"
    ran = gm.run(f"reduce x.h5:/x --stat min,max,sum {output} -q --device {kind} {options}")
    if ran.code or axis == "all":
        return ran.out, ran
    return b"".join(gm.read("r.h5", f"/{name}").tobytes() for name in ("min", "max", "sum")), ran


def normalized(options, words, kind):
    ran = gm.run(f"normalize x.h5:/x -o n.h5 --force --no-sync -q --device {kind} {words} {options}")
    with h5py.File("n.h5" if ran.code == 0 else "x.h5", "r") as file:
        return next(iter(file.values()))[()].tobytes() if ran.code == 0 else None, ran


def same(title, made, words, kind):
    """Threads together make what one alone makes: made(options, words, kind) -> (what, the run). Returns the run of one
    alone."""
    want, alone = made(ALONE, words, kind)
    faults = [alone] if alone.code else []
    for options in TOGETHER if kind == "cpu" else TOGETHER[:1]: # each run starts the device
        got, ran = made(options, words, kind)
        if ran.code or got != want:
            faults.append(f"{options} differs: {ran}")
    gm.ok(not faults, title, *faults)
    return alone


def layout(title, storage, dtype, kind):
    x = numbers(dtype)
    gm.write("x.h5", storage, x=x)
    for axis in AXES:
        alone = same(f"{kind}: {dtype}, {title}: statistics, --axis {axis}", statistics, axis, kind)
    gm.ok(np.array_equal(gm.read("r.h5", "/min"), x.min(axis=2)), f"{kind}: {dtype}, {title}: the minima are NumPy's",
          alone)
    for words in ("--method minmax", "--method minmax --per pixel", "--method zscore --per frame --type f32"):
        same(f"{kind}: {dtype}, {title}: normalize {words}", normalized, words, kind)


for device in gm.devices():
    some = list(LAYOUTS.items())[:None if device == "cpu" else 2]
    gm.together([functools.partial(layout, title, storage, dtype, device) for title,
                 storage in some for dtype in ("u2", "f4")], 3)
gm.done()
