#!/usr/bin/env -S python3 -B
"""Products of whole numbers in random shapes, types, storage, selections, grids and limits: every element equal to
NumPy's.

GPUMEM_TEST_SEED chooses others; a case is named with what makes it again."""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import np

SEED, CASES, JOBS = int(os.environ.get("GPUMEM_TEST_SEED", "1")), 300, 4
TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8"]


def extent(rng, most):
    return int(np.exp(rng.uniform(0, np.log(most))))


def storage_of(rng, shape):
    """Options of h5py for a dataset of this shape."""
    if rng.random() < 0.4 or 0 in shape:
        return {}
    options = dict(chunks=tuple(int(rng.integers(1, size + 1)) if size < 40 else int(rng.integers(size // 12, size))
                                for size in shape))
    if rng.random() < 0.5:
        options.update(compression="gzip", compression_opts=1)
    return dict(options, shuffle=bool(rng.random() < 0.4), fletcher32=bool(rng.random() < 0.2))


def hide(rng, x):
    """A larger array that holds x, and the selection that finds it."""
    if rng.random() < 0.5:
        return x, ""
    steps, before, after = (rng.integers(low, high, x.ndim) for low, high in ((1, 4), (0, 5), (0, 5)))
    large = rng.integers(0, 5, before + x.shape * steps + after).astype(x.dtype)
    place = tuple(slice(b, b + size * step, step) for b, size, step in zip(before, x.shape, steps))
    large[place] = x
    return large, "[" + ",".join(f"{p.start}:{p.stop}:{p.step}" for p in place) + "]"


def store(rng, name, x):
    """Writes x, a matrix, perhaps as a stack; returns its name on the command line and whether it wants --flatten."""
    x = x.astype(x.dtype.newbyteorder(">")) if rng.random() < 0.3 else x
    flat = x.shape[1] % 3 == 0 and x.shape[1] > 0 and rng.random() < 0.3
    x = x.reshape(x.shape[0], 3, -1) if flat else x
    x, selection = hide(rng, x)
    gm.write(f"{name}.h5", storage=storage_of(rng, x.shape), x=x)
    return f"{name}.h5:/x{selection}", flat


def numbers(rng, shape, dtype):
    return gm.integers(rng, shape, 0 if dtype[0] == "u" else -4, 5, dtype)


def one(number):
    rng = np.random.default_rng([SEED, number])
    m, n, k = extent(rng, 500), extent(rng, 500), extent(rng, 4000)
    a, b = (numbers(rng, shape, TYPES[rng.integers(len(TYPES))]) for shape in ((m, k), (k, n)))
    which = ["", "a", "b", "ab"][rng.integers(4)]
    names, flats = zip(store(rng, "a", a.T if "a" in which else a), store(rng, "b", b.T if "b" in which else b))
    arguments = list(names) + (["--transpose", which] if which else [])
    want, alpha = a.astype("f8") @ b.astype("f8"), [1, -2, 0.5][rng.integers(3)]
    want *= alpha
    arguments += ["--alpha", alpha] if alpha != 1 else []
    if rng.random() < 0.4:
        c0, beta = numbers(rng, (m, n), TYPES[rng.integers(len(TYPES))]), [1, -3, 0.25][rng.integers(3)]
        name, flat = store(rng, "c0", c0)
        flats += flat,
        want += beta * c0.astype("f8")
        arguments += ["--beta", beta, "--add", name]
    arguments += ["--flatten"] if any(flats) else []
    arguments += ["--precision", ["fp32", "fp64"][rng.integers(2)]] if rng.random() < 0.5 else []
    dtype, how = [("f2", "f16"), ("f4", "f32"), ("f8", "f64")][rng.integers(3)]
    ranks = int(rng.integers(1, 6))
    arguments += ["--type", how, "--threads", int(rng.integers(1, 3)), *ways(rng, ranks, m, n)]
    ran = gm.run(["matmul", "-o", "c.h5", "--force", "--no-sync", "--device", device, *arguments], ranks)
    with np.errstate(over="ignore"):
        good = ran.code == 0 and np.array_equal(gm.read("c.h5"), want.astype(dtype))
    gm.ok(good, f"{device}: GPUMEM_TEST_SEED={SEED}, case {number}", f"{m} x {n} x {k}", ran)


def ways(rng, ranks, m, n):
    """Options that change how C is made, not what it is."""
    grids = [(r, ranks // r // q, q) for r in range(1, ranks + 1) for q in range(1, ranks + 1)
             if ranks % r == 0 and ranks // r % q == 0]
    arguments = ["--grid", "x".join(map(str, grids[rng.integers(len(grids))]))] if rng.random() < 0.9 else []
    arguments += ["--piece", int(rng.integers(5000, 300000))] if rng.random() < 0.4 else []
    arguments += ["--depth", int(rng.integers(2, 7))] if rng.random() < 0.4 else []
    if rng.random() < 0.4 and "--piece" not in arguments:
        arguments += ["--host-memory", "24M" if device == "cpu" else "64M"]
    if rng.random() < 0.2 and m * n < 20000:
        arguments += ["--chunk", f"{rng.integers(1, m + 1)},{rng.integers(1, n + 1)}"]
    arguments += ["--deflate", "1"] if rng.random() < 0.2 else []
    return arguments


def some(numbers_of_cases):
    for number in numbers_of_cases:
        one(number)


for device in gm.devices():
    gm.together([functools.partial(some, range(i, CASES, JOBS)) for i in range(JOBS)], JOBS)
gm.done()
