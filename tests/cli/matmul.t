#!/usr/bin/env -S python3 -B
"""Products as a user makes them, against NumPy: shapes, types, storage, selections, precisions, options, files left."""
import itertools
import json
import os

import gm
from gm import h5py, np

rng = np.random.default_rng(20)
ranks_in_turn = itertools.cycle((1, 2, 1, 3))
# Grids of small products; None: the program's choice, which leaves ranks without work.
grids_in_turn = {2: itertools.cycle(("2x1x1", "1x2x1", None)),
                 3: itertools.cycle(("3x1x1", "2x1x1", "1x3x1", None, "1x1x2"))}


def product(name, want, arguments, ranks=None, dtype=None, bound=0.0, scale=None):
    """C as it comes out against want: equal, or within bound relative to scale (default: |want|), element for element.
    Returns C and the run."""
    ranks = ranks or next(ranks_in_turn)
    grid = next(grids_in_turn[ranks]) if ranks in grids_in_turn and "--grid" not in gm.words(arguments) else None
    chosen = ["--grid", grid] if grid else []
    ran = gm.run(["matmul", "--device", device, "-o", "c.h5", "--force", *chosen, *gm.words(arguments)], ranks)
    faults, c = [], None
    if ran.code != 0:
        faults.append("failed")
    else:
        c = gm.read("c.h5")
        faults += differences(c, np.asarray(want), dtype, bound, scale)
        faults += [f"{entry} is left" for entry in os.listdir() if entry.startswith(".")]
    gm.ok(not faults, f"{device}: {name}, {ranks} ranks{' ' + grid if grid else ''}", *faults, ran)
    return c, ran


def differences(c, want, dtype, bound, scale):
    if c.shape != want.shape:
        return [f"shape {c.shape}, expected {want.shape}"]
    if dtype and c.dtype != dtype:
        return [f"type {c.dtype}, expected {dtype}"]
    if bound == 0.0:
        same = np.array_equal(c.astype(want.dtype), want, equal_nan=want.dtype.kind == "f")
        return [] if same else [f"{np.sum(c.astype(want.dtype) != want)} of {c.size} elements differ"]
    error = np.max(np.abs(c.astype("f8") - want) / (np.abs(want) if scale is None else scale), initial=0.0)
    gm.note(f"error {error:.3g}, allowed {bound:.3g}")
    return [] if error <= bound else [f"error {error:.3g}, allowed {bound:.3g}"]


def shapes():
    for m, n, k in ((1, 1, 1), (1, 7, 13), (7, 1, 3), (2, 3, 1), (2, 600, 5), (131, 257, 67), (0, 5, 4), (5, 0, 4),
                    (5, 4, 0), (0, 0, 0)):
        a, b = gm.integers(rng, (m, k), dtype="f4"), gm.integers(rng, (k, n), dtype="f4")
        gm.write("ab.h5", A=a, B=b)
        product(f"{m} x {n} x {k}", a @ b, "ab.h5", 3, "f4")


def transposes():
    a, b = gm.integers(rng, (150, 310)), gm.integers(rng, (310, 170))
    for which in ("", "a", "b", "ab"):
        gm.write("ab.h5", A=a.T if "a" in which else a, B=b.T if "b" in which else b)
        product(f"--transpose {which or 'not given'}", a @ b, f"ab.h5 --transpose {which}" if which else "ab.h5",
                dtype="f8")


def factors():
    a, b, c0 = gm.integers(rng, (37, 71)), gm.integers(rng, (71, 53)), gm.integers(rng, (37, 53))
    poison = np.full((37, 53), np.nan)
    gm.write("ab.h5", A=a, B=b, C=c0, poison=poison, u8=np.abs(c0).astype("u1"), wide=np.pad(c0, 2),
             be=c0.astype(">f4"))
    gm.write("ab_chunked.h5", storage=dict(chunks=(10, 9), compression="gzip"), C=c0)
    product("--alpha", -2.5 * (a @ b), "ab.h5 --alpha -2.5")
    product("--alpha, --beta, --add", 2 * (a @ b) - 3 * c0, "ab.h5 --alpha=2 --beta=-3 --add ab.h5:/C")
    product("--add alone adds C0 as it is", a @ b + c0, "ab.h5 --add ab.h5:/C")
    product("--add of compressed data", a @ b + c0, "ab.h5 --beta 1 --add ab_chunked.h5")
    product("--add of u8", a @ b + 0.5 * np.abs(c0), "ab.h5 --beta 0.5 --add ab.h5:/u8")
    product("--add of big-endian data", a @ b + c0, "ab.h5 --beta 1 --add ab.h5:/be")
    product("--add of a selection", a @ b + c0, "ab.h5 --beta 1 --add 'ab.h5:/wide[2:39,2:55]'")
    product("--beta 0 reads no C0: NaN stays out", a @ b, "ab.h5 --beta 0 --add ab.h5:/poison")
    product("--beta 1 reads C0: NaN comes in", poison, "ab.h5 --beta 1 --add ab.h5:/poison")
    gm.write("nan.h5", A=np.full((37, 71), np.nan), B=b)
    product("--alpha 0 reads neither A nor B", 4 * c0, "nan.h5 --alpha 0 --beta 4 --add ab.h5:/C")
    gm.write("none.h5", A=np.ones((37, 0)), B=np.ones((0, 53)))
    product("k = 0 with --add", 4 * c0, "none.h5 --beta 4 --add ab.h5:/C")


def operands():
    a, b = gm.integers(rng, (31, 45)), gm.integers(rng, (45, 29))
    gm.write("ab.h5", A=a, B=b)
    gm.write("a.h5", A=a, other=a + 1)
    gm.write("b.h5", data=b, title="the only numbers are in data")
    gm.write("odd name:1.h5", **{"group/sub group/x": a})
    product("two files", a @ b, "a.h5 ab.h5:/B")
    product("a bare file means its only numeric dataset", a @ b, "a.h5:/A b.h5")
    product("a bare file means /A first", a @ b, "a.h5 b.h5:data")
    product("blanks and a colon in names", a @ b, ["odd name:1.h5:/group/sub group/x", "b.h5"])
    with h5py.File("links.h5", "w") as f:
        f["A"] = h5py.ExternalLink("a.h5", "/A")
        f["B"] = h5py.SoftLink("/real")
        f["real"] = b
    product("links", a @ b, "links.h5")
    os.symlink("ab.h5", "symbolic.h5")
    product("a symbolic link to the file", a @ b, "symbolic.h5")
    product("options before operands, and --", a @ b, "--alpha 1 -- ab.h5")
    _, ran = product("the same dataset twice", a @ a.T, "ab.h5:/A ab.h5:/A --transpose b --report r.json", 1)
    if ran.code == 0:
        with open("r.json") as file:
            gm.ok(json.load(file)["bytes_read"] == a.nbytes, f"{device}: the same dataset twice is read once", ran)


def selections():
    a, b, s = gm.integers(rng, (40, 50)), gm.integers(rng, (60, 30)), gm.integers(rng, (5, 12, 14))
    gm.write("s.h5", A=a, B=b, S=s)
    gm.write("sc.h5", storage=dict(chunks=True, compression="gzip", shuffle=True), A=a, B=b, S=s)
    for file in ("s.h5", "sc.h5"):
        product(f"{file}: ranges", a[3:33, 10:40] @ b[5:35], [f"{file}:/A[3:33,10:40]", f"{file}:/B[5:35]"])
        product(f"{file}: steps", a[::3, 1:50:2] @ b[:50:2, 3:], [f"{file}:/A[::3,1:50:2]", f"{file}:/B[:50:2,3:]"])
        product(f"{file}: an index drops its dimension", s[2] @ s[:, 3, :].T,
                [f"{file}:/S[2,:,:]", f"{file}:/S[:,3,:]", "--transpose=b"])
    product("selections of the same data that overlap", a[:20] @ a[10:30].T,
            ["s.h5:/A[:20]", "s.h5:/A[10:30]", "--transpose=b"])
    product("an empty selection", np.zeros((0, 30)), ["s.h5:/A[7:7,:]", "s.h5:/B[:50]"])
    for file in ("s.h5", "sc.h5"):
        flat = s.reshape(5, -1)
        product(f"{file}: --flatten", flat @ flat.T, f"{file}:/S {file}:/S --flatten --transpose b")
        part = s[1:4, ::2, 2:9].reshape(3, -1)
        product(f"{file}: --flatten of a selection", part @ part.T, [f"{file}:/S[1:4,::2,2:9]"] * 2
                + ["--flatten", "--transpose=b"])


def storages():
    a, b = gm.integers(rng, (70, 90), dtype="f4"), gm.integers(rng, (90, 60), dtype="f4")
    gm.write("b.h5", B=b)
    ways = {"contiguous": {}, "chunked": dict(chunks=(16, 32)), "chunks with a ragged edge": dict(chunks=(33, 41)),
            "gzip and shuffle": dict(chunks=(70, 7), compression="gzip", shuffle=True),
            "checksummed": dict(chunks=(9, 90), fletcher32=True), "big-endian": dict(dtype=">f4"),
            "big-endian, chunked, gzip": dict(dtype=">f4", chunks=(20, 20), compression="gzip"),
            "scaled and offset": dict(dtype="i4", chunks=(20, 20), scaleoffset=0), "external": dict(external="raw.bin"),
            "resizable": dict(maxshape=(None, None)),}
    for name, storage in ways.items():
        gm.write("a.h5", storage=storage, A=a)
        product(name, a @ b, "a.h5 b.h5")
    with h5py.File("a.h5", "w") as f: # chunks that were never written hold the fill value
        f.create_dataset("A", (70, 90), "f4", chunks=(35, 30), fillvalue=2)[:35, :30] = a[:35, :30]
    product("chunks that are missing", gm.read("a.h5", "A") @ b, "a.h5 b.h5")
    with h5py.File("a.h5", "w") as f:
        f.create_dataset("A", (70, 90), "f4", fillvalue=3)
    product("data never written", gm.read("a.h5", "A") @ b, "a.h5 b.h5")
    with h5py.File("a.h5", "w", userblock_size=1024) as f:
        f["A"] = a
    product("a user block", a @ b, "a.h5 b.h5")
    with h5py.File("a.h5", "w", userblock_size=1024) as f:
        f.create_dataset("A", data=a, chunks=(16, 32))
    product("a user block before chunks", a @ b, "a.h5 b.h5")
    with h5py.File("a.h5", "w", libver=("earliest", "v110")) as f:
        f.create_dataset("A", data=a, chunks=(16, 32), maxshape=(None, 90))
    product("the newest format of files", a @ b, "a.h5 b.h5")
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    with h5py.File("a.h5", "w") as f:
        h5py.h5d.create(f.id, b"A", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((70, 90)), compact)
        f["A"][...] = a
    product("compact", a @ b, "a.h5 b.h5")
    gm.write("top.h5", x=a[:30])
    gm.write("bottom.h5", x=a[30:])
    layout = h5py.VirtualLayout((70, 90), "f4")
    layout[:30] = h5py.VirtualSource("top.h5", "x", (30, 90))
    layout[30:] = h5py.VirtualSource("bottom.h5", "x", (40, 90))
    with h5py.File("a.h5", "w") as f:
        f.create_virtual_dataset("A", layout)
    product("a virtual dataset", a @ b, "a.h5 b.h5")


TYPES = {"u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "u4": "u32", "i4": "i32", "f2": "f16", "f4": "f32",
         "f8": "f64"}


def extremes(dtype, shape):
    """Integers of the whole range of the type, small floats; products fit float64's 53 bits with a short k."""
    if dtype[0] == "f":
        return gm.integers(rng, shape, dtype=dtype)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    x.flat[:2] = info.min, info.max
    return x


def types():
    signs = gm.integers(rng, (33, 21), -1, 2, "i1") # exact with any of them
    for dtype, name in TYPES.items():
        a = extremes(dtype, (45, 33))
        gm.write("ab.h5", A=a, B=signs.astype("f4" if dtype[0] == "f" else "i1"))
        precision = "fp64" if dtype not in ("f2", "f4") else "fp32"
        want = a.astype("f8") @ signs.astype("f8")
        c, ran = product(f"{name}: {precision} by the data", want, "ab.h5", dtype="f8" if precision == "fp64" else "f4")
        if c is not None:
            with h5py.File("c.h5", "r") as f:
                gm.ok(f["C"].attrs.get("precision") == precision, f"{device}: {name}: attribute precision",
                      dict(f["C"].attrs))
        gm.write("ab.h5", A=a.astype(np.dtype(dtype).newbyteorder(">")), B=signs)
        product(f"{name}: big-endian", want, "ab.h5 --precision fp64", dtype="f8")
    for one, two, dtype in (("f4", "f8", "f8"), ("f2", "f4", "f4"), ("u1", "f4", "f8"), ("i4", "f2", "f8"),
                            ("u2", "i2", "f8"), ("f2", "f2", "f4")):
        a, b = gm.integers(rng, (20, 30), 0, 7, one), gm.integers(rng, (30, 25), 0, 7, two)
        gm.write("ab.h5", A=a, B=b)
        product(f"{TYPES[one]} by {TYPES[two]}", a.astype("f8") @ b.astype("f8"), "ab.h5", dtype=dtype)


def results():
    """--precision and --type, each with each."""
    a, b = rng.standard_normal((40, 300)).astype("f4"), rng.standard_normal((300, 35)).astype("f4")
    gm.write("ab.h5", A=a, B=b)
    want = a.astype("f8") @ b.astype("f8")
    scale = np.linalg.norm(a.astype("f8"), axis=1)[:, None] * np.linalg.norm(b.astype("f8"), axis=0)
    bounds = {"f8": 0.0, "f4": 6e-8, "f2": 4.9e-4} # of the rounding to the type of C
    for precision, error in (("fp64", 3e-14), ("fp32", 1e-6), ("exact", 3e-14)):
        for dtype in ("f8", "f4", "f2"):
            product(f"--precision {precision} --type {TYPES[dtype]}", want,
                    f"ab.h5 --precision {precision} --type {TYPES[dtype]}", dtype=dtype, bound=error + bounds[dtype],
                    scale=scale)
    gm.write("ab.h5", A=a.astype("f8") * 1.00000001, B=b)
    product("--precision fp32 of f64 data", want, "ab.h5 --precision fp32", dtype="f4", bound=1e-6, scale=scale)
    a, b = gm.integers(rng, (20, 30), 0, 300, "u2"), gm.integers(rng, (30, 10), 0, 300, "i2")
    gm.write("ab.h5", A=a, B=b)
    product("--precision exact of 16-bit integers", a.astype("f8") @ b, "ab.h5 --precision exact", dtype="f4")


def accuracy():
    """Uniform [0, 1) data are the hard case: every partial sum is large. The errors are relative to |A||B|, which here
    is C itself."""
    for k in (128, 512, 1000, 4096, 8192):
        a, b = rng.random((60, k)), rng.random((k, 50))
        for dtype, precision, bound in (("f4", "fp32", 1e-6), ("f4", "exact", 6e-8), ("f8", "fp64", 3e-14)):
            x, y = a.astype(dtype), b.astype(dtype)
            gm.write("ab.h5", A=x, B=y)
            product(f"uniform data, k = {k}: {precision}", x.astype("f8") @ y.astype("f8"),
                    f"ab.h5 --precision {precision}", bound=bound)


def grids():
    a, b = gm.integers(rng, (290, 3000), dtype="f4"), gm.integers(rng, (3000, 310), dtype="f4")
    gm.write("ab.h5", A=a, B=b, C=np.ones((290, 310), "f4"))
    for grid, ranks in (("1x1x1", 1), ("2x1x1", 2), ("4x1x1", 4), ("1x4x1", 4), ("1x1x4", 4), ("2x1x2", 4),
                        ("1x1x3", 3), ("5x1x1", 5), ("1x1x1", 3), ("1x2x1", 3), ("1x1x2", 3), ("2x1x1", 4)):
        product(f"--grid {grid}", a @ b + 1, f"ab.h5 --grid {grid} --add ab.h5:/C", ranks)


def not_finite():
    a, b = gm.integers(rng, (30, 40)), gm.integers(rng, (40, 20))
    a[3, 7], a[11, 0], b[5, 2] = np.nan, np.inf, -np.inf
    gm.write("ab.h5", A=a, B=b)
    with np.errstate(invalid="ignore"):
        product("NaN and infinity go through", a @ b, "ab.h5")
    # NaN of either sign, from inputs and from inf - inf, in one leaf or in two that different ranks have
    for dtype in ("f4", "f8"):
        a = np.zeros((4, 5000), dtype)
        a[0, 0], a[1, 4999], a[2, [0, 1]], a[3, [0, 4999]] = np.nan, -np.nan, (np.inf, -np.inf), (np.inf, -np.inf)
        gm.write("ab.h5", A=a, B=np.ones((5000, 3), dtype))
        bits = set()
        for grid, ranks in (("1x1x1", 1), ("1x1x2", 2)):
            product(f"NaN of {dtype}, --grid {grid}", np.full((4, 3), np.nan), f"ab.h5 --grid {grid}", ranks, dtype)
            bits |= {c.tobytes() for c in gm.read("c.h5").ravel()}
        gm.ok(len(bits) == 1, f"{device}: all NaN of {dtype} have the same bits", bits)
    a, b = rng.uniform(1, 2, (70, 60)), rng.uniform(1, 2, (60, 40))
    for what, a_size, b_size, c0, options in (("huge elements", 1e200, 1e-150, None, ""),
                                              ("a huge product", 1e200, 1e90, None, ""),
                                              ("few huge elements", 1e200, 1e-150, None, "--transpose ab"),
                                              ("huge C0", 1, 1, 1e250, "--add ab.h5:/C0"),
                                              ("huge alpha", 1, 1, None, "--alpha 1e250"),
                                              ("a batch of huge frames", 1e200, 1e-150, None, "--batch")):
        x, y = a * a_size, b * b_size
        if what[0] == "f":
            x = np.where(rng.random(a.shape) < 0.01, x, a)
        want = x @ y * (1e250 if "alpha" in what else 1) + (c0 or 0)
        stored = [x, y]
        if "transpose" in options:
            stored = [x.T, y.T]
        elif "batch" in options:
            stored = [x[None].repeat(3, 0), y[None].repeat(3, 0)]
        gm.write("ab.h5", A=stored[0], B=stored[1], C0=np.full(want.shape, c0 or 0.0))
        product(f"a finite product: {what}", np.broadcast_to(want, (3, *want.shape)) if "batch" in options else want,
                f"ab.h5:/A ab.h5:/B {options} --report r.json", 1 if "batch" in options else None, bound=1e-13,
                scale=np.abs(want).max())
        with open("r.json") as file:
            check = json.load(file)["verification"]
        if device == "cpu":
            gm.ok(check["passed"] and check["outcome"].startswith("passed: ") and check["lines_skipped"] == 0,
                  f"{device}: {what}: all of it is checked", check)
        else:
            gm.ok("too large to be checked" in check["outcome"] or check["lines_skipped"] == 0
                  or "in part" in check["outcome"], f"{device}: {what}: or is not, and why", check)
    x = np.ones((1024, 1024))
    x[3, 7] = 1e306
    gm.write("ab.h5", A=x, B=np.full((1024, 1024), 1e-6))
    product("one element near the largest number", x @ np.full((1024, 1024), 1e-6), "ab.h5 --precision fp64", 1,
            bound=1e-13)
    for ranks, layers in ((2, 2), (3, 3)):
        gm.write("ab.h5", A=np.full((5, 6000), 1e200), B=np.full((6000, 4), 1e-190))
        product("huge elements, layers of k", np.full((5, 4), 6e13), f"ab.h5 --grid 1x1x{layers} --report r.json",
                ranks, bound=1e-12)
        with open("r.json") as file:
            check = json.load(file)["verification"]
        gm.ok(check["outcome"] == "not possible: elements are too large to be checked" and not check["passed"],
              f"{device}: which is not checked, and why", check)
    gm.write("ab.h5", A=np.array([[2.0**660] * 2, [np.nan, 1], [1, np.inf]]), B=np.full((2, 2), 2.0**-500))
    product("huge elements beside NaN and infinity", [[2.0**161] * 2, [np.nan] * 2, [np.inf] * 2],
            "ab.h5 --report r.json", 1)
    with open("r.json") as file:
        check = json.load(file)["verification"]
    want = "passed in part: random vectors" if device == "cpu" else "not possible: elements are too large to be checked"
    gm.ok(check["outcome"] == want, f"{device}: {want}", check)
    gm.write("ab.h5", A=np.full((5, 6), np.nan), B=np.full((6, 4), 1e-190))
    product("nothing but NaN", np.full((5, 4), np.nan), "ab.h5 --report r.json")
    with open("r.json") as file:
        check = json.load(file)["verification"]
    gm.ok(check["outcome"] == "not possible: no finite row or column", f"{device}: has no finite row or column", check)
    gm.write("ab.h5", A=np.full((5, 6), 1e20), B=np.full((6, 4), 1e150))
    product("elements of C whose squares overflow, and not those of A and B", np.full((5, 4), 6e170),
            "ab.h5 --report r.json", bound=1e-14)
    with open("r.json") as file:
        verification = json.load(file)["verification"]
    gm.ok(verification["passed"] and verification["lines_skipped"] == 0, f"{device}: which is checked", verification)
    gm.write("ab.h5", A=np.ones((5, 6), "f4"), B=np.ones((6, 4), "f4"), C=np.full((5, 4), 1e-190))
    product("a large --beta makes small elements of C0 overflow", np.full((5, 4), np.inf),
            "ab.h5 --precision fp32 --add ab.h5:/C --beta 1e239", dtype="f4")
    gm.write("ab.h5", A=np.full((9, 1), 300.0), B=np.full((1, 9), 300.0))
    product("overflow of --type f16 gives infinity", np.full((9, 9), np.inf), "ab.h5 --type f16", dtype="f2")
    gm.write("ab.h5", A=np.full((9, 3), 1e20, "f4"), B=np.full((3, 9), 1e20, "f4"))
    for how in "", " --alpha 2", " --grid 1x1x2":
        ran = product("so does that of float32", np.full((9, 9), np.inf), f"ab.h5 --precision exact{how}",
                      2 if "grid" in how else None, dtype="f4")[1]
        gm.ok("0 infinite and 81 overflowed elements; " in ran.err, f"{device}: a warning counts it once", ran)
    ran = product("that is not checked", np.full((9, 9), np.inf), "ab.h5 --precision exact --no-verify", dtype="f4")[1]
    gm.ok("81 overflowed elements\n" in ran.err, f"{device}: and says nothing of a check that is not made", ran)


def small():
    """Elements below the normal numbers of the type that operands are rounded to, and of float32."""
    a, b = rng.random((70, 60), "f4") + np.float32(0.5), rng.random((60, 40), "f4")
    cases = (("fp16", 1e-3, 1, 1), ("fp16", 2e-5, 2e-3, 1), ("bf16", 1e-36, 1e-2, 1), ("bf16", 1e-37, 1, 2**20),
             ("tf32", 1e-39, 1, 2**30))
    for precision, size, error, alpha in cases:
        c = alpha * (a.astype("f8") * size) @ b
        gm.write("ab.h5", A=(a * size).astype("f4"), B=b)
        product(f"--precision {precision} of elements of {size:g}", c,
                f"ab.h5 --precision {precision} --alpha {alpha} --type f64 --report r.json", bound=2e-2,
                scale=np.abs(c).max())
        check = outcome()
        gm.ok(check["passed"] and check["lines_skipped"] == 0, f"{device}: all of it is checked", check)
    for precision, size in (("fp16", 1e-9), ("bf16", 1e-42)):
        gm.write("ab.h5", A=(a * size).astype("f4"), B=b)
        ran = gm.run(["matmul", "ab.h5", "-o", "c.h5", "--force", "--device", device, "--precision", precision,
                      "--report", "r.json"])
        gm.ok(ran.code == 0 and f"as the rounding of --precision {precision} and of C (f32) is as large as" in ran.err,
              f"{device}: {size:g} in {precision}: a warning", ran)
        check = outcome()
        gm.ok(check["outcome"] == "not possible: elements are too small to be checked" and not check["passed"],
              f"{device}: not checked, and why", check)
    few = a.copy()
    few[17] *= np.float32(1e-9)
    few[23], b[:, 5] = 0, 0
    gm.write("ab.h5", A=few, B=b)
    product("one small row, one of zeros", few.astype("f8") @ b, "ab.h5 --precision fp16 --report r.json", dtype="f4",
            bound=2e-3, scale=30)
    check = outcome()
    gm.ok(check["outcome"] == "passed in part: random vectors" and 1 <= check["lines_skipped"] <= 4,
          f"{device}: only the small row is not checked", check)
    for ranks, options in ((1, ""), (2, "--grid 1x1x2"), (2, "--grid 2x1x1"), (2, "--batch")):
        wide, other = a.astype("f8"), b.astype("f8")
        for letter in "none", "A", "B":
            x, y = wide.copy(), other.copy()
            {"none": x, "A": x, "B": y}[letter][11, 7] = 1 if letter == "none" else 1e-39
            stored = [m[None].repeat(3, 0) if "batch" in options else m for m in (x, y)]
            gm.write("ab.h5", A=stored[0], B=stored[1])
            ran = gm.run(["matmul", "ab.h5:/A", "ab.h5:/B", "-o", "c.h5", "--force", "--device", device, "--precision",
                          "fp32", "--report", "r.json", *options.split()], ranks)
            warned = [name for name in "AB"
                      if f"warning: {name} has elements that are too small for float32" in ran.err]
            gm.ok(ran.code == 0 and warned == [letter][letter == "none":],
                  f"{device}: float64 in float32, too small: {letter}, {options}", ran)
            check = outcome()
            gm.ok(check["underflow"] == (letter != "none") and ("in part" in check["outcome"]) == (letter != "none"),
                  f"{device}: in the report", check)


def small_squares():
    """float64 elements whose squares are 0: they are not zeros to the check."""
    a, b = rng.standard_normal((60, 30)), rng.standard_normal((30, 50))
    large = "small" if device == "cpu" else "large"  # squares of 1e200: only a processor goes on with them
    for a_size, b_size, want in ((1e-200, 1e200, f"not possible: elements are too {large} to be checked"),
                                 (1, 1e-200, "not possible: elements are too small to be checked"),
                                 (1e-90, 1e-90, "passed: random vectors"), (1e-140, 1, "passed: random vectors"),
                                 (0, 1, "passed: random vectors")):
        c = (a * a_size) @ (b * b_size)
        for options in "", "--batch":
            stored = [m[None].repeat(2, 0) if options else m for m in (a * a_size, b * b_size)]
            gm.write("ab.h5", A=stored[0], B=stored[1])
            product(f"elements of {a_size:g} by {b_size:g} {options}",
                    np.broadcast_to(c, (2, *c.shape)) if options else c, f"ab.h5:/A ab.h5:/B {options} --report r.json",
                    1, bound=1e-13, scale=np.abs(c).max() or 1)
            check = outcome()
            gm.ok(check["outcome"] == want, f"{device}: {want}", check)
    gm.write("ab.h5", A=np.array([[1, 2], [3, 4]]) * 2.0**-130, B=np.eye(2) * 2.0**20)
    ran = gm.run(["matmul", "ab.h5", "-o", "c.h5", "--force", "--device", device, "--precision", "fp32", "--report",
                  "r.json"])
    gm.ok(ran.code == 0 and "too small" not in ran.err and not outcome()["underflow"],
          f"{device}: small elements that float32 holds", ran)


def outcome():
    with open("r.json") as file:
        return json.load(file)["verification"]


def outputs():
    a, b = gm.integers(rng, (64, 20)), gm.integers(rng, (20, 48))
    gm.write("ab.h5", A=a, B=b)
    for name, options, want in (("plain", "", (None, None, False)),
                                ("--chunk", "--chunk 16,12", ((16, 12), None, False)),
                                ("--chunk beyond the edge", "--chunk 30,31", ((30, 31), None, False)),
                                ("--deflate", "--chunk 16,48 --deflate 5", ((16, 48), "gzip", False)),
                                ("--deflate 0", "--deflate 0 --output-layout auto", (None, None, False)),
                                ("--deflate 0, chunks", "--chunk 16,48 --deflate 0", ((16, 48), None, False)),
                                ("--shuffle", "--chunk 64,8 --deflate 1 --shuffle", ((64, 8), "gzip", True))):
        if product(name, a @ b, f"ab.h5 {options}")[0] is not None:
            with h5py.File("c.h5", "r") as f:
                c = f["C"]
                gm.ok((c.chunks, c.compression, c.shuffle) == want, f"{device}: {name}: stored so",
                      (c.chunks, c.compression, c.shuffle))
    product("--deflate chooses a chunk", a @ b, "ab.h5 --deflate 3")
    ran = gm.run(f"matmul ab.h5 --device {device} -o out.h5:/group/product")
    gm.ok(ran.code == 0 and np.array_equal(gm.read("out.h5", "/group/product"), a @ b), f"{device}: -o FILE:DATASET",
          ran)
    ran = gm.run(f"matmul ab.h5 --device {device} -o out.h5 --force --no-sync --no-verify")
    with h5py.File("out.h5", "r") as f:
        gm.ok(ran.code == 0 and list(f) == ["C"], f"{device}: --force replaces the whole file", ran, list(f))
    os.makedirs("else/where", exist_ok=True)
    gm.write("else/where/input.data.h5", A=a, B=b)
    ran = gm.run(f"matmul else/where/input.data.h5 --device {device}", 2)
    made = os.listdir("else/where")
    gm.ok("input.data.matmul.h5" in made and np.array_equal(gm.read("else/where/input.data.matmul.h5"), a @ b),
          f"{device}: the default name, in the folder of the input", ran, *made)


def words():
    """Messages, report, attributes and help."""
    a = gm.integers(rng, (64, 64))
    gm.write("ab.h5", A=a, B=a + 1)
    before = gm.state()
    ran = gm.run(f"matmul ab.h5 --device {device} -o said.h5 --alpha 2 -q --grid 2x1x1 --report r.json", 2)
    said = [line for line in ran.err.splitlines() if " ranks share " not in line] # a warning: fewer GPUs than ranks
    gm.ok(ran.code == 0 and not said, f"{device}: -q: nothing on stderr", ran)
    changed = set(gm.difference(before, gm.state()))
    gm.ok(changed == {"./said.h5: is new", "./r.json: is new"},
          f"{device}: the output and the report are written, nothing else", *changed)
    provenance()
    report()
    before = gm.state()
    ran = gm.run(f"matmul ab.h5 --device {device} -o planned.h5 --plan", 2)
    gm.ok(ran.code == 0 and ran.out and gm.state() == before, f"{device}: --plan touches nothing", ran,
          *gm.difference(before, gm.state()))
    gm.ok(all(word in ran.out for word in ("grid", "device_memory", "host_memory", "expected_time")),
          f"{device}: --plan prints the plan", ran)
    plans()
    before = gm.state()
    ran = gm.run(f"matmul nofile.h5 --device {device} --plan")
    gm.ok(ran.code == 3 and gm.state() == before, f"{device}: --plan of what cannot be", ran)


def lines_of(text):
    """The lines "name value" of a plan."""
    return dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)


def plans():
    """The expectations of --plan: the bytes of each link, the seconds of each phase, the same numbers in the report."""
    gm.write("deep.h5", A=np.zeros((256, 6000), "f4"), B=np.zeros((6000, 128), "f4"))
    for grid, read, exchanged in (("1x1x1", 6000 * 384, 0), ("2x1x1", 6000 * 512, 0), ("1x1x2", 6000 * 384, 1)):
        ran = gm.run(f"matmul deep.h5 --device {device} --grid {grid} --plan --report r.json", 3)
        lines = lines_of(ran.out)
        with open("r.json") as file:
            expected = json.load(file)["plan"]["expected"]
        moved, parts = expected["bytes"], 1 if grid == "1x1x1" else 2
        good = moved["file_to_host"]["all"] == 4 * read and moved["host_to_file"]["all"] == 4 * 256 * 128
        good &= expected["working"] == parts
        good &= (moved["rank_to_rank"]["all"] > 0) == bool(exchanged) == ("rank_to_rank" in lines)
        good &= (expected["phases"]["exchange"] > 0) == bool(exchanged)
        gm.ok(ran.code == 0 and good, f"{device}: --plan, {grid} of 3 ranks: bytes", expected, ran)
        phases = {name[5:]: float(value.split()[0]) for name, value in lines.items() if name.startswith("time_")}
        same = {name: round(value, 12) for name, value in phases.items()} == {
            name: float(f"{value:.3g}") for name, value in expected["phases"].items() if value > 0}
        gm.ok(same and {"open", "read", "compute", "write", "verify"} <= set(phases)
              and expected["seconds"] >= max(expected["phases"].values())
              and lines["expected_time"] == f"{expected['seconds']:.3g} s",
              f"{device}: --plan, {grid}: seconds of phases", phases, expected, ran)
        gm.ok("(nominal)" in lines["read_rate"] and not expected["rates"]["reads_measured"],
              f"{device}: --plan, {grid}: a short job measures nothing", ran)
    ran = gm.run(f"matmul ab.h5 --device {device} --plan", 3)
    gm.ok(lines_of(ran.out)["grid"] == "1x1x1 of 3 ranks" and "1 of 3 ranks work" in ran.out,
          f"{device}: --plan: a small product is for one rank", ran)
    with h5py.File("long.h5", "w") as file: # zeros that take no room on the disk
        for name in "AB":
            file.create_dataset(name, (40000, 40000), "f4")[0, 0] = 1
    ran = gm.run(f"matmul long.h5 --device {device} --plan", 2)
    lines = lines_of(ran.out)
    gm.ok(ran.code == 0 and "(measured)" in lines["read_rate"] and "(measured)" in lines["exchange_rate"]
          and (device == "cuda" or "2 of 2 ranks work" in ran.out), # of two ranks that share a GPU one may do
          f"{device}: --plan: a long job measures its rates", ran)
    os.remove("long.h5")


def provenance():
    with h5py.File("said.h5", "r") as f:
        attributes = {name: str(value) for name, value in f["C"].attrs.items()}
    for name, word in (("operation", "matmul"), ("version", "."), ("command", "--alpha 2"), ("options", "alpha"),
                       ("inputs", "ab.h5"), ("precision", "fp64"), ("verification", "passed"),
                       ("verification_residual", "."), ("verification_threshold", "."), ("verification_repaired", "0")):
        gm.ok(word in attributes.get(name, ""), f"{device}: the output says its {name}", attributes)


REPORT = """operation version command started init_s wall_s sync_s exit ranks hosts devices inputs output options plan
start phases peak_host_bytes peak_device_bytes flop bytes_read bytes_written rates verification results
schema""".split()


def report():
    try:
        with open("r.json") as file:
            r = json.load(file)
    except (OSError, ValueError) as why:
        gm.ok(False, f"{device}: --report writes JSON", why)
        return
    missing = [key for key in REPORT if key not in r]
    gm.ok(not missing, f"{device}: --report has every key", missing)
    faults = []
    for where, keys in {"inputs.0": "file dataset selection type shape bytes",
                        "devices.0": "rank host kind name uuid pci", "start": "mpi device wait describe plan",
                        "phases": "open read to_device compute exchange from_device write verify",
                        "phases.read": "min median max", "rates": "tflops compute_tflops read_gbs write_gbs",
                        "verification": "method residual threshold passed"}.items():
        part = r
        for step in where.split("."):
            part = part[int(step)] if isinstance(part, list) else part.get(step, {})
        faults += [f"{where}.{key}" for key in keys.split() if key not in part]
    gm.ok(not faults, f"{device}: --report has every key of every part", faults, json.dumps(r)[:2000])
    facts = {"schema": "gpumem.report/1", "operation": "matmul", "exit": 0, "ranks": 2, "flop": 2 * 64**3,
             "bytes_written": 64 * 64 * 8}
    wrong = [f"{key} is {r.get(key)}, expected {value}" for key, value in facts.items() if r.get(key) != value]
    gm.ok(not wrong, f"{device}: --report has the right numbers", *wrong)
    verification = r.get("verification") or {}
    gm.ok(verification.get("passed") is True
          and 0 <= verification.get("residual", 1) <= verification.get("threshold", 0) < 1e-9,
          f"{device}: --report has the check", verification)


def help_and_version():
    for arguments, word in (("--help", "matmul"), ("matmul --help", "--precision"), ("compare -h", "--tolerance"),
                            ("--version", "gpumem")):
        alone = gm.run(arguments)
        gm.ok(alone.code == 0 and word in alone.out and not alone.err, arguments, alone)
        several = gm.run(arguments, 2)
        gm.ok(several.code == 0 and several.out == alone.out, f"{arguments}: once under mpirun", several)


for device in gm.devices():
    gm.together([shapes, storages, types, accuracy, factors, selections, operands, results, outputs, grids, transposes,
                 words, not_finite, small, small_squares])
gm.together([help_and_version])
gm.done()
