#!/usr/bin/env -S python3 -B
"""The bits of C are the same for any number of ranks and threads, any grid, any limit on memory and any pieces, on one
kind of device."""
import functools
import hashlib

import gm
from gm import np

rng = np.random.default_rng(3)

# Ranks and options. The program chooses the others: of these products few ranks get a part, where no grid is given.
WAYS = [(1, "--threads 2"), (2, "--threads 1 --grid 2x1x1"), (3, ""), (3, "--grid 3x1x1"),
        (4, "--threads 1 --grid 2x2x1"), (8, "--grid 4x2x1"), (3, "--grid 1x1x3"), (4, "--grid 1x2x2"),
        (5, "--grid 1x2x2"), (4, "--grid 4x1x1"), (8, "--grid 2x2x2"), (1, "--device-memory 4M --host-memory 8M"),
        (2, "--host-memory 8M --threads 2 --grid 1x2x1"), (1, "--piece 10000 --depth 2"),
        (3, "--piece 100K --depth 5 --grid 1x3x1")]
FEW = [(1, "--threads 2"), (2, ""), (2, "--grid 1x1x2"), (3, "--grid 1x1x3"), (8, "--grid 2x1x4"),
       (4, "--grid 1x1x4 --device-memory 8M"), (5, "--grid 1x1x5"), (1, "--device-memory 4M --host-memory 8M"),
       (2, "--piece 10000 --grid 2x1x1")]


def bits(arguments, ranks=1):
    """A digest of the bits of C; on failure the run."""
    ran = gm.run(f"matmul ab.h5 -o c.h5 --force --no-sync --device {device} {arguments}", ranks)
    return (hashlib.sha256(gm.read("c.h5").tobytes()).hexdigest() if ran.code == 0 else ""), ran


def same(title, precision, ways):
    first, ran = bits(f"--precision {precision} --threads 1")
    gm.ok(first, f"{device}: {title}, {precision}: 1 rank, 1 thread", ran)
    for ranks, options in ways:
        digest, ran = bits(f"--precision {precision} {options}", ranks)
        gm.ok(digest and digest == first, f"{device}: {title}, {precision}: {ranks} ranks {options}", ran)


def shape(m, n, k, precision, ways):
    dtype = "f8" if precision == "fp64" else "f4"
    gm.write("ab.h5", A=rng.standard_normal((m, k)).astype(dtype), B=rng.standard_normal((k, n)).astype(dtype))
    same(f"{m} x {n} x {k}", precision, ways)


JOBS = [(700, 900, 1100, "fp64", WAYS), (700, 900, 1100, "fp32", WAYS), (700, 900, 1100, "exact", FEW),
        (45, 33, 60000, "fp64", FEW), (45, 33, 60000, "fp32", FEW), (45, 33, 60000, "exact", FEW),
        (700, 900, 1100, "tf32", FEW), (45, 33, 60000, "bf16", FEW)]
for device in gm.devices():
    gm.together([functools.partial(shape, *job) for job in JOBS], 2)
gm.done()
