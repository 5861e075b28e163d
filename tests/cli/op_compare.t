#!/usr/bin/env -S python3 -B
"""compare: its numbers against NumPy's, the same bits for any number of ranks and pieces, NaN and infinities, 64-bit
integers, exit codes."""
import json
import os

import gm
from gm import np

rng = np.random.default_rng(5)
NAMES = ["elements", "differing", "max_relative_error", "mean_relative_error", "max_absolute_error"]


def compare(arguments, ranks=1):
    """The run, and what it printed as a dictionary of texts."""
    ran = gm.run(f"compare {arguments}", ranks)
    return ran, dict(line.split(" ", 1) for line in ran.out.splitlines())


def reference(x, y):
    """The five numbers, in long double."""
    x, y = x.astype("g").ravel(), y.astype("g").ravel()
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        far = np.where(equal, 0, np.abs(x - y))
        ratio = np.where(y == 0, far, far / np.abs(y))
    far, ratio = (np.where(equal, 0, np.where(np.isnan(e), np.inf, e)) for e in (far, ratio))
    return [x.size, np.sum(~equal), ratio.max(initial=0), ratio.mean() if x.size else 0, far.max(initial=0)]


def check(title, x, y, arguments="x.h5:/v y.h5:/v", ranks=1, views=None):
    ran, found = compare(arguments, ranks)
    x, y = views or (x, y)
    want = reference(x, y)
    close = list(found)[:5] == NAMES and all(float(found[name]) == w or abs(float(found[name]) - w) <= 1e-13 * abs(w)
                                             for name, w in zip(NAMES, want))
    gm.ok(ran.code == (want[1] > 0), f"{title}: exit code", ran)
    gm.ok(close, f"{title}: numbers", ran, want)
    with np.errstate(all="ignore"):
        unlike = np.argwhere(np.atleast_1d((x != y) & ~((x != x) & (y != y))))
    if want[1] == 0 or x.ndim == 0:
        gm.ok(("first_difference" in found) == (want[1] > 0), f"{title}: first difference", ran)
    else:
        place = tuple(unlike[0])
        words = found.get("first_difference", "").split(" ")
        gm.ok(words[0] == "[" + ",".join(map(str, place)) + "]"
              and all(np.array_equal(np.array(word).astype(a.dtype), a[place], equal_nan=a.dtype.kind == "f") for word,
                      a in zip(words[1:], (x, y))), f"{title}: first difference", ran, place)
    return found


def put(x, y, storage=None):
    gm.write("x.h5", storage, v=x)
    gm.write("y.h5", v=y)


# Types and orders of bytes, against each other.
TYPES = ["u1", ">u2", "u4", ">u8", "i1", "i2", ">i4", "i8", "f2", ">f4", "f8", ">f8", "<f2", "f4"]
base = rng.integers(0, 100, (5, 60, 70))
for i, name in enumerate(TYPES):
    other = TYPES[(5 * i + 3) % len(TYPES)]
    x, y = base.astype(name), base.astype(other)
    put(x, y)
    check(f"{name} with {other}, equal", x, y)
    x[3, 7, 5] += 1
    x[4, 59, 69] = 0
    y[4, 0, 0] = 0
    put(x, y)
    check(f"{name} with {other}", x, y, ranks=1 + i % 3)

# Special values.
inf, nan = np.inf, np.nan
x = np.array([1, nan, inf, -inf, 0.0, 5, 1e308, 3, 0])
y = np.array([1, nan, inf, -inf, -0.0, 5, 1e308, 3, 0])
put(x, y)
check("NaN and infinities that are equal", x, y)
for a, b in ((nan, 1), (1, nan), (inf, 1), (1, inf), (inf, -inf), (nan, inf), (0, nan), (1e308, -1e308), (1, 0), (0, 1),
             (5e-324, 0)):
    u, v = x.copy(), y.copy()
    u[5], v[5] = a, b
    put(u, v)
    ran, found = compare("x.h5:/v y.h5:/v")
    far = abs(a - b) if np.isfinite(a) and np.isfinite(b) else inf
    ratio = far if b == 0 else inf if not np.isfinite(a) or not np.isfinite(b) else abs(a / b - 1)
    gm.ok(ran.code == 1 and found.get("differing") == "1" and float(found["max_relative_error"]) == ratio
          and float(found["max_absolute_error"]) == far, f"{a} with {b}", ran)

# 64-bit integers that are equal in float64.
for name, value in (("u8", 2**64 - 1), ("i8", -2**63 + 1), ("u8", 2**53 + 1)):
    x = np.full((3, 4), value, name)
    y = x.copy()
    y[2, 1] = value - 1
    put(x, y)
    ran, found = compare("x.h5 y.h5")
    gm.ok(ran.code == 1 and found["max_absolute_error"] == "1"
          and found["first_difference"] == f"[2,1] {value} {value - 1}", f"{name} {value}", ran)
put(np.full((3,), 2**53 + 1, "u8"), np.full((3,), 2.0**53))
ran, found = compare("x.h5 y.h5")
gm.ok(ran.code == 1 and found["differing"] == "3", "u8 with f8", ran)

# Shapes, selections, storage.
x = rng.standard_normal((7, 30, 40))
y = x + 1e-7 * rng.standard_normal(x.shape)
put(x, y, {"chunks": (2, 7, 11), "compression": "gzip", "shuffle": True})
check("a chunked dataset", x, y, ranks=2)
check("selections", x, y, "'x.h5:/v[1:6:2,:,3:33]' 'y.h5:/v[1:6:2,:,3:33]'",
      views=(x[1:6:2, :, 3:33], y[1:6:2, :, 3:33]))
check("an index drops a dimension", x, y, "'x.h5:/v[3]' 'y.h5:/v[4]'", ranks=3, views=(x[3], y[4]))
for shape in ((), (1,), (0,), (3, 0, 2), (100003,), (3, 1, 1, 2)):
    a, b = np.full(shape, 2.0), np.full(shape, 3.0)
    put(a, b)
    check(f"shape {shape}", a, b, ranks=2)

# The same bits whoever computes it: several leaves.
big = rng.standard_normal((1777, 2111)).astype("f4")
put(big, (big + 1e-6 * rng.standard_normal(big.shape)).astype("f8"))
first = None
for ranks, options in ((1, "--threads 1"), (1, "--threads 2 --piece 200K --depth 3"), (2, ""), (3, "--piece 1M"),
                       (4, "--host-memory 4M --threads 1")):
    ran, found = compare(f"x.h5 y.h5 --tolerance 10000 {options} --report r.json", ranks)
    first = first or ran.out
    gm.ok(ran.out == first and "first_difference" in found and ran.code == 0, f"the same bits: {ranks} ranks {options}",
          ran, first)
with open("r.json") as file:
    report = json.load(file)
gm.ok(report["results"]["mean_relative_error"] == float(found["mean_relative_error"])
      and report["bytes_read"] == 12 * big.size and [i["file"] for i in report["inputs"]] == ["x.h5", "y.h5"]
      and report["wall_s"] > 0, "report", report.get("results"))

# Tolerance.
put(np.array([1.0, 2, 4.5]), np.array([1.0, 2, 4]))
for tolerance, code in (("0", 1), ("0.124", 1), ("0.125", 0), ("1", 0)):
    ran, found = compare(f"x.h5 y.h5 --tolerance {tolerance}", 2)
    gm.ok(ran.code == code and found["max_relative_error"] == "0.125", f"tolerance {tolerance}", ran)

# Refusals.
put(np.zeros((3, 4)), np.zeros((4, 3)))
gm.write("two.h5", a=np.zeros(3), b=np.zeros(3))
for why, code, pattern, arguments in (("different shapes", 3, r"x\.h5:/v is 3x4 and y\.h5:/v is 4x3", "x.h5 y.h5"),
                                      ("different ranks", 3, r"3x4.* is 4", "x.h5 'y.h5:/v[:,0]'"),
                                      ("which dataset", 3, r"two\.h5.*/a.*/b", "x.h5 two.h5"),
                                      ("a negative tolerance", 2, "--tolerance -1: expected 0 or more",
                                       "two.h5:/a two.h5:/b --tolerance -1"),
                                      ("too little memory", 5, "--host-memory",
                                       "two.h5:/a two.h5:/b --host-memory 4K")):
    for ranks in (1, 3):
        ran = gm.run(f"compare {arguments}", ranks)
        faults = gm.faults_of_refusal(ran, code, pattern)
        gm.ok(not faults, f"refused: {why}, {ranks} ranks", ran, *faults)
# OpenMP would end the program with 1, as of datasets that differ. It does not take the last three.
for name, stack in (("OMP_STACKSIZE", "64"), ("OMP_STACKSIZE", "64 k"), ("OMP_STACKSIZE", "65536B"),
                    ("OMP_STACKSIZE", "1000000G"), ("GOMP_STACKSIZE", "64k"), ("OMP_STACKSIZE", "64kB"),
                    ("OMP_STACKSIZE", "99999999999999999999B"), ("OMP_STACKSIZE", "9k")):
    ran = gm.run("compare two.h5:/a two.h5:/b --threads 2 --device cpu", environment={name: stack})
    refused = not gm.faults_of_refusal(ran, 5, f"stacks of {name}={stack}: ")
    gm.ok(refused or (ran.code == 0 and stack != "1000000G"), f"{name}={stack}", ran)
if os.path.exists("/dev/full"):
    ran = gm.run(["-c", f"{gm.PROGRAM} compare two.h5:/a two.h5:/b > /dev/full"], program="/bin/sh")
    gm.ok(ran.code == 4 and "standard output" in ran.err, "standard output is full", ran)
gm.done()
