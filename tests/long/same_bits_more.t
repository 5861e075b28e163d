#!/usr/bin/env -S python3 -B
"""The bits of C over many shapes and random ways of making them; tests/cli/same_bits.t in the large."""
import functools
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import np

SHAPES = [(1, 1, 50000), (1, 3000, 900), (2500, 1, 900), (129, 127, 2049), (1025, 1023, 300), (640, 1500, 1),
          (64, 64, 64), (300, 200, 20000)]
WAYS = 10 # of each shape and precision


def way(rng):
    ranks = int(rng.choice([1, 2, 3, 4, 5, 8]))
    grids = [(r, ranks // r // q, q) for r in range(1, ranks + 1) for q in range(1, ranks + 1) if ranks % r == 0
             and ranks // r % q == 0]
    options = ["--threads", rng.integers(1, 4)]
    options += ["--grid", "x".join(map(str, grids[rng.integers(len(grids))]))] if rng.random() < 0.9 else []
    options += ["--piece", rng.integers(5000, 500000), "--depth", rng.integers(2, 6)] if rng.random() < 0.4 else []
    options += ["--device-memory", f"{rng.integers(12, 40)}M", "--host-memory",
                f"{rng.integers(24, 60) + 32 * (device != 'cpu')}M"] if rng.random() < 0.5 else []
    return ranks, options


def bits(options, ranks):
    ran = gm.run(["matmul", "ab.h5", "-o", "c.h5", "--force", "--no-sync", "--device", device, *options], ranks, 120)
    return (hashlib.sha256(gm.read("c.h5").tobytes()).hexdigest() if ran.code == 0 else ""), ran


def shape(m, n, k):
    rng = np.random.default_rng([m, n, k])
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    for precision, dtype in (("fp64", "f8"), ("fp32", "f4"), ("exact", "f4")):
        gm.write("ab.h5", A=a.astype(dtype), B=b.astype(dtype))
        first, ran = bits(["--precision", precision, "--threads", 1], 1)
        gm.ok(first, f"{device}: {m} x {n} x {k}, {precision}", ran)
        for _ in range(WAYS):
            ranks, options = way(rng)
            digest, ran = bits(["--precision", precision, *options], ranks)
            gm.ok(digest and digest == first,
                  f"{device}: {m} x {n} x {k}, {precision}: {ranks} ranks {' '.join(map(str, options))}", ran)


for device in gm.devices():
    gm.together([functools.partial(shape, *it) for it in SHAPES], 2)
gm.done()
