#!/usr/bin/env -S python3 -B
"""Operands of products that are not two matrices of floats as they are: vectors, integers of 8 and of 64 bits, floats
that are rounded, files of column-major programs; against NumPy, for several ranks and pieces, with the same bits."""
import itertools

import gm
from gm import h5py, np

rng = np.random.default_rng(33)
WAYS = [(1, ""), (2, "--grid 1x1x2"), (3, ""), (1, "--piece 4K --depth 2 --threads 1"), (2, "--grid 2x1x1"),
        (2, "--grid 1x2x1 --host-memory 8M")]
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
        gm.ok(first is not None and c is not None and c.tobytes() == first.tobytes(),
              f"{device}: {name}: {ranks} ranks {options}", ran)


def refused(name, code, pattern, arguments, ranks=2):
    ran = gm.run(["matmul", "--device", device, "-o", "none.h5", *gm.words(arguments)], ranks)
    gm.ok(not gm.faults_of_refusal(ran, code, pattern), f"{device}: {name}", *gm.faults_of_refusal(ran, code, pattern),
          ran)


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
    for name, word in (("x y", r"v\.h5:/x is a vector of 310 and v\.h5:/y is a vector of 70.*310 and 70"),
                       ("y B", r"vector of 70.*310x50"),
                       ("s B", r"v\.h5:/s: has 0 dimensions.*matrix has 2.*vector 1")):
        one, two = name.split()
        refused(f"{name} do not match", 3, word, f"v.h5:/{one} v.h5:/{two}")
    refused("a matrix is no C0 of a vector", 3, r"v\.h5:/A is 70x310, expected the shape of the product, 50",
            "v.h5:/x v.h5:/B --add v.h5:/A")
    refused("a row is no C0 of a column", 3, r"v\.h5:/x is 310, expected .* 70$|v\.h5:/x is 310, expected .* 70 ",
            "v.h5:/A v.h5:/x --add v.h5:/x")


def vector_bits():
    for dtype, precision in (("f4", "fp32"), ("f4", "exact"), ("f8", "fp64")):
        gm.write("r.h5", A=rng.standard_normal((600, 5000)).astype(dtype), x=rng.standard_normal(5000).astype(dtype),
                 y=rng.standard_normal(600).astype(dtype))
        same_bits(f"{precision}: matrix by vector", f"r.h5:/A r.h5:/x --precision {precision}")
        same_bits(f"{precision}: vector by matrix", f"r.h5:/y r.h5:/A --precision {precision}")
        same_bits(f"{precision}: vector by vector", f"r.h5:/x r.h5:/x --precision {precision}")


def column_major():
    """Of files that a column-major program wrote: it sees the transpose of each dataset, and of C."""
    a, b, c0 = gm.integers(rng, (70, 310)), gm.integers(rng, (310, 50)), gm.integers(rng, (70, 50))
    x, y, s = gm.integers(rng, 310), gm.integers(rng, 70), gm.integers(rng, (5, 6, 7))
    gm.write("f.h5", A=a.T, B=b.T, C=c0.T, At=a, Bt=b, x=x, y=y, S=s, i=a.T.astype("i8"))
    gm.write("other.h5", B=b.T)
    for which in ("", "a", "b", "ab"):
        one, two = "At" if "a" in which else "A", "Bt" if "b" in which else "B"
        product(f"--order column, --transpose {which or 'not given'}", (a @ b).T,
                f"f.h5:/{one} f.h5:/{two} --order column" + (f" --transpose {which}" if which else ""), "f8")
    product("--order column: /A and /B of one file", (a @ b).T, "f.h5 --order column")
    product("--order column --add", (a @ b + c0).T, "f.h5 --order column --add f.h5:/C")
    product("--order column: vector by matrix", x @ b, "f.h5:/x f.h5:/B --order column")
    product("--order column: matrix by vector", a @ x, "f.h5:/A f.h5:/x --order column")
    product("--order column: vector by transposed matrix", x @ a.T, "f.h5:/x f.h5:/A --order column --transpose b")
    product("--order column: vector by vector", x @ x, "f.h5:/x f.h5:/x --order column")
    product("--order column --flatten", (s.reshape(5, -1).T @ s.reshape(5, -1)).T,
            "f.h5:/S f.h5:/S --order column --flatten --transpose b")
    product("--order row is the default", a @ b, "f.h5:/At f.h5:/Bt --order row")
    product("--order column of a selection", (a[5:20] @ b).T, ["f.h5:/A[:,5:20]", "f.h5:/B", "--order", "column"])
    refused("--order column: inner sizes differ", 3,
            r"f\.h5:/A is 310x70 and f\.h5:/B is 50x310 \(transposed\)|f\.h5:/B is 50x310 \(tr.*f\.h5:/A is 310x70",
            "f.h5 --order column --transpose b")
    c, ran = made("f.h5:/i other.h5 --order column")
    gm.ok(ran.code == 0 and "A (i64) is taken" in ran.err, f"{device}: --order column: a note names A", ran)
    with h5py.File("c.h5", "r") as f:
        gm.ok(str(f["C"].attrs["inputs"]) == "f.h5:/i, other.h5:/B",
              f"{device}: --order column: inputs are in the order given", f["C"].attrs["inputs"])
    ran = gm.run(f"matmul f.h5:/A other.h5 --order column --device {device}")
    gm.ok(ran.code == 0 and np.array_equal(gm.read("f.matmul.h5"), (a @ b).T),
          f"{device}: --order column: the default output is beside A", ran)
    ran = gm.run(f"matmul f.h5 --order column --plan --device {device}")
    gm.ok("70 x 50 x 310 (m, n, k)" in ran.out and "transpose of C in the file, 50 x 70" in ran.out,
          f"{device}: --order column --plan", ran)
    gm.write("f.h5", A=rng.standard_normal((310, 70)), B=rng.standard_normal((50, 310)))
    c, ran = made("f.h5 --order column")
    d, ran = made("f.h5:/B f.h5:/A")
    gm.ok(c is not None and c.tobytes() == d.tobytes(), f"{device}: --order column has the bits of B by A", ran)


LIMIT = 2**53


def wide_integers():
    """Of 64 bits: exact up to 2^53, refused beyond, where it is."""
    a, b = rng.integers(-1000, 1000, (90, 70)), rng.integers(0, 1000, (70, 50))
    a[3, 5], a[80, 0], b[69, 49] = LIMIT, -LIMIT, LIMIT
    signs = np.eye(70, 50, dtype="i1") # of sums beyond 2^53 some are rounded
    for kind, storage in (("contiguous", {}), ("big-endian", dict(dtype=">i8")),
                          ("chunked", dict(chunks=(7, 9), compression="gzip"))):
        gm.write("i.h5", storage=storage, A=a)
        gm.write("s.h5", signs=signs, one=np.eye(90)[:, :70], C=np.full((90, 50), LIMIT))
        product(f"i64, {kind}", a @ signs, "i.h5:/A s.h5:/signs", "f8")
    gm.write("u.h5", B=b.astype("u8"), x=b[:, 3].astype("u8"), u=b.astype(">u8"))
    product("u64", np.eye(90)[:, :70] @ b.astype("f8"), "s.h5:/one u.h5:/B", "f8")
    product("u64, big-endian", np.eye(90)[:, :70] @ b.astype("f8"), "s.h5:/one u.h5:/u", "f8")
    product("a vector of u64", np.eye(90)[:, :70] @ b[:, 3], "s.h5:/one u.h5:/x", "f8")
    product("--add of i64", np.full((90, 50), LIMIT), "s.h5:/one u.h5:/B --alpha 0 --add s.h5:/C")
    c, ran = made("i.h5:/A s.h5:/signs")
    gm.ok(ran.code == 0 and "A (i64) is taken as float64: an integer beyond 2^53 is an error" in ran.err,
          f"{device}: a note says so", ran)
    a[3, 5], a[80, 3] = LIMIT + 1, -LIMIT - 1
    bad = b.astype("u8")
    bad[69, 48] = 2**64 - 1
    gm.write("i.h5", A=a, part=a[:50], C=np.full((90, 50), -2**63), stack=a.reshape(9, 10, 70))
    gm.write("u.h5", B=bad, x=bad[:, 48], u=bad.astype(">u8"))
    refused("i64 beyond 2^53", 3, r"i\.h5:/part: element \(3, 5\) is 9007199254740993,", "i.h5:/part s.h5:/signs")
    refused("i64 beyond 2^53 in a selection", 3, r"element \(20, 1\) is -9007199254740993,",
            ["i.h5:/A[60:,2:]", "s.h5:/signs[2:]"])
    refused("i64 beyond 2^53 in a stack", 3, r"stack\[0:1\]: element \(0, 3, 5\) is 9007199254740993,",
            "i.h5:/stack[0:1] i.h5:/stack[0:1] --flatten --transpose b")
    refused("u64 beyond 2^53", 3, r"u\.h5:/B: element \(69, 48\) is 18446744073709551615,", "s.h5:/one u.h5:/B")
    refused("big-endian u64 beyond 2^53", 3, r"u\.h5:/u: element \(69, 48\) is 18446744073709551615,",
            "s.h5:/one u.h5:/u")
    refused("a vector of u64 beyond 2^53", 3, r"u\.h5:/x: element \(69\) is 18446744073709551615,", "s.h5:/one u.h5:/x")
    refused("C0 beyond 2^53", 3, r"i\.h5:/C: element \(\d+, \d+\) is -9223372036854775808,",
            "s.h5:/one s.h5:/signs --add i.h5:/C")
    refused("--precision exact of 64-bit integers", 2, "exact", "i.h5 --precision exact s.h5:/signs")
    product("an element beyond 2^53 that is not selected", a[4:80] @ signs, ["i.h5:/A[4:80]", "s.h5:/signs"])
    c, ran = made("i.h5:/A s.h5:/signs --precision fp32")
    gm.ok(ran.code == 0 and "A (i64) is rounded to 24 significant bits" in ran.err and c.dtype == "f4",
          f"{device}: --precision fp32 rounds, and says so", ran)


def short_integers():
    """Of 8 bits: --precision int8 is exact, whatever the signs, and refuses what 32 bits may not hold."""
    for kinds in itertools.product(("u1", "i1"), repeat=2):
        a, b = (rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
                for kind, shape in zip(kinds, ((301, 2500), (2500, 270))))
        a[7], b[:, 9] = np.iinfo(kinds[0]).min or 255, np.iinfo(kinds[1]).min or 255
        gm.write("b.h5", A=a, B=b, At=a.T, Bt=b.T)
        want, name = a.astype("i8") @ b, " by ".join(kinds)
        product(f"{name}", want, "b.h5 --precision int8", "i4")
        product(f"{name}, chunked", want, "b.h5 --precision int8 --chunk 50,50 --deflate 1", "i4")
        product(f"{name}, both transposed", want, "b.h5:/At b.h5:/Bt --transpose ab --precision int8", "i4")
        product(f"{name} to f64", want * 0.5, "b.h5 --precision int8 --type f64 --alpha 0.5", "f8")
    gm.write("c0.h5", C=np.full((301, 270), 1000, ">i4"))
    product("--add of i32", 3 * want - 2000, "b.h5 --precision int8 --alpha 3 --beta -2 --add c0.h5:/C", "i4")
    product("--alpha that is no integer: to the nearest integer, ties to even", np.rint(want * 0.5 + 1000),
            "b.h5 --precision int8 --alpha 0.5 --add c0.h5:/C", "i4")
    c, ran = made("b.h5 --precision int8 --alpha 1000")
    gm.ok(ran.code == 0 and np.array_equal(c, np.clip(want * 1000, -2**31, 2**31 - 1))
          and "overflowed elements" in ran.err, f"{device}: a result beyond 32 bits ends there, and a warning says so",
          ran)
    c, ran = made("b.h5:/A b.h5:/At --precision int8")
    gm.ok(c is not None and np.array_equal(c, a.astype("i8") @ a.T), f"{device}: A by its own transpose", ran)
    stack = rng.integers(-128, 128, (5, 40, 60), "i1")
    gm.write("b.h5", A=stack, B=b[:60], f=b[:60].astype("f4"), u=np.full((3, 33026), 255, "u1"),
             i=np.full((3, 33026), -128, "i1"), one=np.full((33026, 2), 255, "u1"))
    c, ran = made("b.h5 --batch --precision int8", 2)
    gm.ok(c is not None and c.dtype == "i4" and np.array_equal(c, stack.astype("i8") @ b[:60]),
          f"{device}: a batch of 8-bit integers", ran)
    product("the longest sums", np.full((3, 2), 33025 * 255 * 255),
            ["b.h5:/u[:,1:]", "b.h5:/one[1:]", "--precision", "int8"], "i4")
    product("the longest sums of one sign", np.full((3, 2), -33026 * 255 * 128), "b.h5:/i b.h5:/one --precision int8",
            "i4")
    refused("sums beyond 32 bits", 2,
            r"a sum of 33026 products of u8 and u8 may exceed 32 bits, expected at most 33025; --precision fp64",
            "b.h5:/u b.h5:/one --precision int8")
    refused("--precision int8 of floats", 2, r"--precision int8 is for data of i8 or u8; b\.h5:/f is f32",
            "b.h5:/f b.h5:/B --precision int8 --transpose a")
    refused("--precision int8 --type i16", 2, r"--type 'i16': expected i32, .*f64 for C",
            "b.h5:/i b.h5:/one --precision int8 --type i16")


def short_floats():
    """tf32, fp16, bf16: elements are rounded to nearest, ties to even, and summed in float32 (tensor cores cut bits
    off)."""
    sum_error = 1e-6 if device == "cpu" else 1e-4
    for precision, largest in (("tf32", np.inf), ("fp16", 65504), ("bf16", np.inf)):
        a, b = (rng.standard_normal(shape).astype("f4") for shape in ((150, 700), (700, 90)))
        # ties, and subnormal in float16
        a[3, 5], a[3, 6], b[7, 9] = 1 + 2.0**-11 + 2.0**-9, 1 + 2.0**-8, 2.0**-15 * 1.0009
        gm.write("h.h5", A=a, B=b, At=a.T, Bt=b.T, wide=b.astype("f8"))
        x, y = gm.shortened(a, precision), gm.shortened(b, precision)
        want, size = x @ y, abs(x) @ abs(y)
        gm.ok(abs(want - a.astype("f8") @ b).max() > 20 * sum_error, f"{device}: {precision} is told from float32")
        for arguments in ("h.h5", "h.h5:/At h.h5:/B --transpose a", "h.h5:/A h.h5:/Bt --transpose b",
                          "h.h5:/At h.h5:/Bt --transpose ab", "h.h5:/A h.h5:/wide"):
            ranks, options = next(ways)
            c, ran = made(f"{arguments} --precision {precision} {options}", ranks)
            error = np.inf if c is None else (abs(c - want) / size).max()
            gm.ok(error < sum_error and c.dtype == "f4",
                  f"{device}: {precision}: {arguments}, {ranks} ranks {options}: {error:.2g}", ran)
        same_bits(f"{precision}", f"h.h5 --precision {precision}")
        gm.write("h.h5", A=a.reshape(3, 50, 700), B=b)
        c, ran = made(f"h.h5 --batch --precision {precision}")
        gm.ok(c is not None and (abs(c.reshape(150, 90) - want) / size).max() < sum_error,
              f"{device}: {precision}: a batch", ran)
        a[8, 1], a[9, 2], a[10] = np.nan, -np.inf, 1e5
        gm.write("h.h5", A=a, B=abs(b))
        c, ran = made(f"h.h5 --precision {precision}")
        good = c is not None and np.isnan(c[8]).all() and (c[9] == -np.inf).all()
        good = good and (np.isinf if largest < 1e5 else np.isfinite)(c[10]).all()
        gm.ok(good and np.isfinite(np.delete(c, (8, 9, 10), 0)).all(),
              f"{device}: {precision}: NaN, infinity, and elements beyond {largest:g}", ran)


for device in gm.devices():
    gm.together([vectors, vector_bits, wide_integers, short_integers, short_floats, column_major])
gm.done()
