#!/usr/bin/env -S python3 -B
"""matmul --batch, against NumPy and against the products of single frames, whose bits it has: stacks, matrices for all
frames, both ways of the frames, storage, types, ranks and caps."""
import itertools
import json

import gm
from gm import h5py, np

rng = np.random.default_rng(44)
# The last three take each frame as a product of its own: it is larger than a piece.
WAYS = [(1, ""), (2, ""), (3, "--threads 1"), (1, "--piece 70K --depth 2"), (2, "--host-memory 6M"), (1, "--piece 4K"),
        (3, "--piece 4K --depth 3")]
ways = itertools.cycle(WAYS)


def made(arguments, ranks=1):
    ran = gm.run(["matmul", "--batch", "--device", device, "-o", "c.h5", "--force", *gm.words(arguments)], ranks)
    return (gm.read("c.h5") if ran.code == 0 else None), ran


def product(name, want, arguments, dtype=None, every=False):
    """C is what it should be, one way after the other, or every way."""
    for ranks, options in WAYS if every else [next(ways)]:
        c, ran = made([*gm.words(arguments), *gm.words(options)], ranks)
        want = np.asarray(want)
        good = (c is not None and c.shape == want.shape and np.array_equal(c, want)
                and (dtype is None or c.dtype == dtype))
        gm.ok(good, f"{device}: {name}, {ranks} ranks {options}", c if c is None else (c.shape, c.dtype), want.shape,
              ran)


def refused(name, code, pattern, arguments, ranks=2):
    ran = gm.run(["matmul", "--batch", "--device", device, "-o", "none.h5", *gm.words(arguments)], ranks)
    faults = gm.faults_of_refusal(ran, code, pattern)
    gm.ok(not faults, f"{device}: {name}", *faults, ran)


def stacks():
    a, b, c0 = gm.integers(rng, (23, 33, 70)), gm.integers(rng, (23, 70, 18)), gm.integers(rng, (23, 33, 18))
    gm.write("s.h5", A=a, B=b, C=c0, At=a.swapaxes(1, 2), Bt=b.swapaxes(1, 2), one=a[7], two=b[9])
    product("two stacks", a @ b, "s.h5", "f8", every=True)
    product("two stacks, transposed", a @ b, "s.h5:/At s.h5:/Bt --transpose ab", every=True)
    product("a matrix for all frames as B", a @ b[9], "s.h5:/A s.h5:/two", every=True)
    product("a matrix for all frames as A", a[7] @ b, "s.h5:/one s.h5:/B", every=True)
    # of short operands: planes of the frames below each other, and of the matrix alone
    for precision in ("bf16", "tf32"):
        product(f"two stacks, {precision}", a @ b, f"s.h5 --precision {precision}", "f4")
        product(f"a matrix for all frames as B, {precision}", a @ b[9], f"s.h5:/A s.h5:/two --precision {precision}",
                "f4")
        product(f"a matrix for all frames as A, {precision}", a[7] @ b, f"s.h5:/one s.h5:/B --precision {precision}",
                "f4")
    gm.write("same.h5", two=np.repeat(b[9:10], 23, 0))
    checks = []
    for operand in ("s.h5:/two", "same.h5:/two"):
        c, ran = made(f"s.h5:/A {operand} --report r.json")
        with open("r.json") as file:
            checks.append(json.load(file)["verification"])
    gm.ok(checks[0] == checks[1] and checks[0]["passed"],
          f"{device}: a matrix for all frames is checked as a stack of it is", *checks)
    product("--alpha, --beta, --add", 2 * (a @ b) - 3 * c0, "s.h5 --alpha 2 --beta -3 --add s.h5:/C", every=True)
    product("--alpha 0 reads neither A nor B", 4 * c0, "s.h5 --alpha 0 --beta 4 --add s.h5:/C")
    product("a stack by itself", a @ a.swapaxes(1, 2), "s.h5:/A s.h5:/A --transpose b", every=True)
    product("--no-verify", a @ b, "s.h5 --no-verify", every=True)
    product("--order column", (a @ b).swapaxes(1, 2), "s.h5:/At s.h5:/Bt --order column", every=True)
    product("a selection of frames", a[2:20:3] @ b[5:11], ["s.h5:/A[2:20:3]", "s.h5:/B[5:11]"])
    product("a part of each frame", a[:, 3:30, ::2] @ b[:, :35, 1:], ["s.h5:/A[:,3:30,::2]", "s.h5:/B[:,:35,1:]"],
            every=True)
    product("one frame", a[:1] @ b[:1], ["s.h5:/A[:1]", "s.h5:/B[:1]"])
    product("no frame", np.zeros((0, 33, 18)), ["s.h5:/A[3:3]", "s.h5:/B[3:3]"])
    product("no rows", np.zeros((23, 0, 18)), ["s.h5:/A[:,3:3]", "s.h5:/B"])
    product("k = 0", np.zeros((23, 33, 18)), ["s.h5:/A[:,:,3:3]", "s.h5:/B[:,3:3]"], every=True)
    for options in ("--chunk 5,8,18", "--chunk 1,33,18 --deflate 1", "--output-layout parts"):
        product(options, a @ b, f"s.h5 {options}")
    product("--type f16", a @ b, "s.h5 --type f16", "f2")


def storages():
    a, b = gm.integers(rng, (13, 20, 48)), gm.integers(rng, (13, 48, 30))
    gm.write("b.h5", B=b)
    for name, storage in {"chunks of a frame": dict(chunks=(1, 20, 48)),
                          "chunks of several frames": dict(chunks=(4, 7, 48), compression="gzip"),
                          "chunks across frames": dict(chunks=(3, 9, 10), shuffle=True, compression="gzip"),
                          "big-endian": dict(dtype=">f4"), "u2": dict(dtype="u2"), "i8": dict(dtype="i8"),
                          "f4": dict(dtype="f4")}.items():
        x = np.abs(a) if name == "u2" else a
        gm.write("a.h5", storage=storage, A=x)
        product(name, x @ b, "a.h5 b.h5", every="chunks" in name)
    gm.write("f.h5", A=a.astype("f4"), B=b.astype("f4"), A16=gm.integers(rng, (13, 32, 32), dtype="f4"))
    product("fp32", a @ b, "f.h5", "f4", every=True)
    product("frames used where they were read", gm.read("f.h5", "A16") @ gm.read("f.h5", "A16"), "f.h5:/A16 f.h5:/A16",
            "f4", every=True)
    a = a.astype("i8")
    a[5, 3, 7] = 2**53 + 1
    gm.write("a.h5", A=a)
    for options in ("", "--piece 4K"):
        refused(f"an integer beyond 2^53 {options}", 3, r"a\.h5:/A: element \(5, 3, 7\) is 9007199254740993",
                f"a.h5 b.h5 {options}")


def same_bits():
    """Of random numbers: of the same product alone, in any way."""
    for (f, m, n, k), dtype, precision in (((9, 64, 64, 64), "f4", "fp32"), ((7, 150, 40, 700), "f4", "exact"),
                                           ((5, 130, 270, 2500), "f8", "fp64"), ((5, 30, 270, 900), "f4", "fp32"),
                                           ((5, 150, 40, 700), "f4", "bf16")):
        gm.write("r.h5", A=rng.standard_normal((f, m, k)).astype(dtype), B=rng.standard_normal((f, k, n)).astype(dtype))
        alone = []
        for i in range(f):
            ran = gm.run(f"matmul r.h5:/A[{i}] r.h5:/B[{i}] --precision {precision} --device {device} -o one.h5 "
                         "--force")
            alone.append(gm.read("one.h5").tobytes() if ran.code == 0 else str(ran).encode())
        for ranks, options in WAYS:
            c, ran = made(f"r.h5 --precision {precision} {options}", ranks)
            differ = [i for i in range(f) if c is None or c[i].tobytes() != alone[i]]
            gm.ok(not differ,
                  f"{device}: {precision}, {f} frames {m} x {n} x {k}: the bits of each alone, {ranks} ranks {options}",
                  differ, ran)


def many():
    """Many small frames go many to a piece, and are checked each for itself."""
    a, b = gm.integers(rng, (3000, 16, 16), dtype="f4"), gm.integers(rng, (3000, 16, 16), dtype="f4")
    gm.write("m.h5", A=a, B=b)
    product("3000 frames", a @ b, "m.h5", "f4", every=True)
    c, ran = made("m.h5 --report r.json", 2)
    with open("r.json") as file:
        r = json.load(file)
    v = r["verification"]
    gm.ok(v["passed"] and v["lines_checked"] == 3000 * 32 and v["lines_skipped"] == 0,
          f"{device}: every row and column of every frame is checked", v)
    gm.ok(r["flop"] == 2 * 3000 * 16**3 and r["bytes_read"] == 2 * a.nbytes and r["bytes_written"] == a.nbytes
          and r["plan"]["group"] > 100 and r["plan"]["way"] == "groups", f"{device}: the report's numbers",
          {key: r[key] for key in ("flop", "bytes_read", "bytes_written", "plan")})
    a[1234, 3, 4], a[77, 0, 0] = np.nan, np.inf
    gm.write("m.h5", A=a, B=b)
    for options in ("", "--piece 4K"):
        c, ran = made(f"m.h5 {options}")
        with np.errstate(invalid="ignore"):
            good = c is not None and np.array_equal(c, a @ b, equal_nan=True)
        # a row and 16 columns of each
        gm.ok(good and "; 34 rows and columns of blocks could not be checked, 95966 were" in ran.err,
              f"{device}: NaN and infinity stay in their frames {options}", ran)


def words():
    a = np.ones((4, 6, 5))
    gm.write("w.h5", A=a, B=np.ones((4, 5, 3)), short=np.ones((3, 5, 3)), flat=np.ones((5, 3)), v=np.ones(5),
             C=np.ones((4, 6, 3)), wide=np.ones((4, 7, 3)))
    refused("stacks of other lengths", 3, r"w\.h5:/short has 3 frames, w\.h5:/A has 4", "w.h5:/A w.h5:/short")
    refused("no stack", 3, r"neither w\.h5:/flat nor w\.h5:/flat is a stack", "w.h5:/flat w.h5:/flat --transpose a")
    refused("a vector", 3, r"w\.h5:/v is 5, --batch takes stacks of three dimensions, or a matrix", "w.h5:/A w.h5:/v")
    refused("inner sizes that differ", 3, r"6x5 .*7x3.*5 and 7 differ", "w.h5:/A w.h5:/wide")
    refused("a matrix as C0", 3, r"w\.h5:/flat is 5x3, --batch takes stacks of three dimensions as C0",
            "w.h5 --add w.h5:/flat")
    refused("C0 of another shape", 3, r"w\.h5:/wide is 4x7x3, expected the shape of the product, 4x6x3",
            "w.h5 --add w.h5:/wide")
    for option in ("--flatten", "--grid 2x1x1", "--panels read"):
        refused(option, 2, "--batch takes no --flatten, --grid or --panels", f"w.h5 {option}")
    ran = gm.run(f"matmul w.h5 --device {device} -o none.h5")
    gm.ok(ran.code == 3 and "--batch: a stack" in ran.err, f"{device}: without --batch the message names it", ran)
    ran = gm.run(f"matmul --batch w.h5 --plan --device {device}", 3)
    gm.ok(ran.code == 0 and "4 in groups of" in ran.out and "frames [0:2]" in ran.out
          and "6 x 3 x 5 (m, n, k)" in ran.out, f"{device}: --plan", ran)
    ran = gm.run(f"matmul --batch w.h5 --plan --device {device} --piece 300", 1)
    gm.ok(ran.code == 0 and "each a product of its own" in ran.out, f"{device}: --plan of frames larger than a piece",
          ran)
    ran = gm.run(f"matmul --batch w.h5 --host-memory 1K --device {device} -o none.h5")
    gm.ok(ran.code == 5 and "expected at least" in ran.err, f"{device}: too little memory", ran)
    ran = gm.run("matmul --batch w.h5 --plan --model nodes=2,gpus=4,gpu=h100")
    gm.ok(ran.code == 0 and "4 in groups" in ran.out, "--model", ran)


for device in gm.devices():
    gm.together([stacks, storages, same_bits, many, words])
gm.done()
