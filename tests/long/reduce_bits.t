#!/usr/bin/env -S python3 -B
"""Statistics have the same bits for any number of ranks and threads, any pieces, any limit on memory, any storage and
any kind of device."""
import functools
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

rng = np.random.default_rng(5)
ALL = "count,nan,min,max,sum,sumsq,mean,var,std,norm,argmin,argmax"
WAYS = [(ranks, options) for ranks in (1, 2, 3, 4, 5, 8)
        for options in ("--threads 1", "--piece 300K --threads 2", "--piece 10000 --depth 2 --threads 3",
                        "--host-memory 16M --device-memory 8M")]
STORAGE = {"contiguous": {}, "frames": {"chunks": (1, 150, 211), "compression": "gzip"},
           "tiles": {"chunks": (5, 64, 50), "shuffle": True, "compression": "gzip"}}


def data(shape, dtype):
    if dtype[0] != "f":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x = rng.normal(3, 2, shape).astype(dtype)
    x[rng.random(shape) < 0.01] = np.nan
    return x


def digest(operand, arguments, axis, ranks):
    out = "" if axis == "all" else "-o r.h5 --force --no-sync"
    ran = gm.run(f"reduce {operand} --stat {ALL} --axis {axis} {out} {arguments}", ranks)
    if ran.code != 0:
        return "", ran
    if axis == "all":
        return ran.out, ran
    with h5py.File("r.h5", "r") as f:
        return hashlib.sha256(b"".join(f[name][()].tobytes() for name in sorted(f))).hexdigest(), ran


def same_bits(axis, dtype, selection):
    x = data((37, 150, 211), dtype)
    with h5py.File("x.h5", "w") as f:
        for name, storage in STORAGE.items():
            f.create_dataset(name, data=x, **storage)
    first, ran = digest(f"'x.h5:/contiguous{selection}'", "--device cpu --threads 1", axis, 1)
    gm.ok(first, f"{dtype}{selection}, --axis {axis}: the processor, 1 rank, 1 thread", ran)
    for i, (ranks, options) in enumerate(WAYS):
        for kind in kinds:
            name = list(STORAGE)[i % 3]
            bits, ran = digest(f"'x.h5:/{name}{selection}'", f"--device {kind} {options}", axis, ranks)
            gm.ok(bits == first,
                  f"{kind}: {dtype}{selection} in {name}, --axis {axis}: same bits, {ranks} ranks {options}", ran)


kinds = list(gm.devices())
gm.together([functools.partial(same_bits, axis, dtype, selection) for axis, dtype,
             selection in (("all", "f4", ""), ("all", "f8", "[3:,::2,5:200]"), ("frame", "f8", ""), ("pixel", "f4", ""),
                           ("pixel", "f4", "[::2,:,1:]"), (1, "u2", ""), (1, "f8", ""), ("vector", "f2", ""),
                           ("vector", "f8", "[:,:,::5]"), ("all", "i8", ""))])
gm.done()
