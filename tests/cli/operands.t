#!/usr/bin/env -S python3 -B
"""Operands of products that are not two matrices of rows: vectors; against NumPy, for several ranks and pieces, with the same bits."""
import itertools

import gm
from gm import h5py, np

rng = np.random.default_rng(33)
WAYS = [(1, ""), (2, "--grid 1x1x2"), (3, ""), (1, "--piece 4K --depth 2 --threads 1"), (2, "--grid 2x1x1"), (2, "--grid 1x2x1 --host-memory 8M")]
ways = itertools.cycle(WAYS)


def made(arguments, ranks=1):
    ran = gm.run(["matmul", "--device", device, "-o", "c.h5", "--force", *gm.words(arguments)], ranks)
    return (gm.read("c.h5") if ran.code == 0 else None), ran


def product(name, want, arguments, dtype=None):
    """C is what it should be, in its shape, one way after the other."""
    ranks, options = next(ways)
    c, ran = made([*gm.words(arguments), *gm.words(options)], ranks)
    want = np.asarray(want)
    good = c is not None and c.shape == want.shape and np.array_equal(c, want) and (dtype is None or c.dtype == dtype)
    gm.ok(good, f"{device}: {name}, {ranks} ranks {options}", c if c is None else (c.shape, c.dtype), want.shape, ran)


def same_bits(name, arguments):
    first, ran = made([*gm.words(arguments), "--threads", "1"])
    for ranks, options in WAYS:
        c, ran = made([*gm.words(arguments), *gm.words(options)], ranks)
        gm.ok(first is not None and c is not None and c.tobytes() == first.tobytes(), f"{device}: {name}: {ranks} ranks {options}", ran)


def refused(name, code, pattern, arguments, ranks=2):
    ran = gm.run(["matmul", "--device", device, "-o", "none.h5", *gm.words(arguments)], ranks)
    gm.ok(not gm.faults_of_refusal(ran, code, pattern), f"{device}: {name}", *gm.faults_of_refusal(ran, code, pattern), ran)


def vectors():
    a, b = gm.integers(rng, (70, 310)), gm.integers(rng, (310, 50))
    x, y, z = gm.integers(rng, 310), gm.integers(rng, 70), gm.integers(rng, 310)
    gm.write("v.h5", A=a, B=b, x=x, y=y, z=z, s=np.float64(3), u1=np.abs(x).astype("u1"))
    gm.write("c.v.h5", storage=dict(chunks=(13,), compression="gzip"), x=x, y=y)
    for file in ("v.h5", "c.v.h5"):
        product(f"{file}: vector by matrix", x @ b, f"{file}:/x v.h5:/B", "f8")
        product(f"{file}: matrix by vector", a @ x, f"v.h5:/A {file}:/x")
        product(f"{file}: vector by transposed matrix", x @ a.T, f"{file}:/x v.h5:/A --transpose b")
        product(f"{file}: transposed matrix by vector", y @ a, f"v.h5:/A {file}:/y --transpose a")
        product(f"{file}: vector by vector", x @ z, f"{file}:/x v.h5:/z")
        product(f"{file}: the same vector twice", x @ x, f"{file}:/x {file}:/x")
    product("--transpose leaves a vector as it is", x @ b, "v.h5:/x v.h5:/B --transpose a")
    product("--transpose leaves both as they are", x @ z, "v.h5:/x v.h5:/z --transpose ab")
    product("a part of a vector", x[10:310:6] @ b[:50], ["v.h5:/x[10::6]", "v.h5:/B[:50]"])
    product("a row and a column by an index", a[3] @ b[:, 7], ["v.h5:/A[3]", "v.h5:/B[:,7]"])
    product("bytes by float64", np.abs(x) @ b, "v.h5:/u1 v.h5:/B", "f8")
    product("--add of a vector to a row", 2 * (y @ a) - z, "v.h5:/y v.h5:/A --alpha 2 --beta -1 --add v.h5:/z")
    product("--add of a vector to a column", a @ x + y, "v.h5:/A v.h5:/x --add v.h5:/y")
    product("--add of a scalar", x @ z + 3, "v.h5:/x v.h5:/z --add v.h5:/s")
    product("--flatten makes a column of a vector", np.outer(y, x), "v.h5:/y v.h5:/x --flatten --transpose b")
    product("no elements", np.zeros(50), ["v.h5:/x[5:5]", "v.h5:/B[5:5]"])
    product("an empty result", np.zeros(0), ["v.h5:/x", "v.h5:/B[:,5:5]"])
    product("--chunk and --deflate", x @ b, "v.h5:/x v.h5:/B --chunk 20 --deflate 2")
    product("--output-layout parts", x @ b, "v.h5:/x v.h5:/B --output-layout parts")
    for name, word in (("x y", r"v\.h5:/x is a vector of 310 and v\.h5:/y is a vector of 70.*310 and 70"), ("y B", r"vector of 70.*310x50"),
                       ("s B", r"v\.h5:/s: has 0 dimensions.*matrix has 2.*vector 1")):
        one, two = name.split()
        refused(f"{name} do not match", 3, word, f"v.h5:/{one} v.h5:/{two}")
    refused("a matrix is no C0 of a vector", 3, r"v\.h5:/A is 70x310, expected the shape of the product, 50", "v.h5:/x v.h5:/B --add v.h5:/A")
    refused("a row is no C0 of a column", 3, r"v\.h5:/x is 310, expected .* 70$|v\.h5:/x is 310, expected .* 70 ", "v.h5:/A v.h5:/x --add v.h5:/x")


def vector_bits():
    for dtype, precision in (("f4", "fp32"), ("f4", "exact"), ("f8", "fp64")):
        gm.write("r.h5", A=rng.standard_normal((600, 5000)).astype(dtype), x=rng.standard_normal(5000).astype(dtype), y=rng.standard_normal(600).astype(dtype))
        same_bits(f"{precision}: matrix by vector", f"r.h5:/A r.h5:/x --precision {precision}")
        same_bits(f"{precision}: vector by matrix", f"r.h5:/y r.h5:/A --precision {precision}")
        same_bits(f"{precision}: vector by vector", f"r.h5:/x r.h5:/x --precision {precision}")


for device in gm.devices():
    gm.together([vectors, vector_bits])
gm.done()
