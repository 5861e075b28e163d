#!/usr/bin/env -S python3 -B
"""bfloat16, which NumPy lacks: as bits, and as the float32 of the same values. Inputs of every operation, types of
results, any writer of the file."""
import itertools

import gm
import oracle
from bfloat import BF16, get, kind, put, rounded, value
from gm import h5py, np

rng = np.random.default_rng(16)
ALL = np.arange(65536, dtype="u2").reshape(256, 256)
ranks_in_turn = itertools.cycle((1, 2, 1, 3))


def check(title, arguments, want, name=None, ranks=None):
    """A run whose output, a dataset of o.h5, has these bits."""
    ranks = ranks or next(ranks_in_turn)
    ran = gm.run(f"{arguments} -o o.h5 --force --no-sync --device {device}", ranks)
    got = None
    if ran.code == 0:
        with h5py.File("o.h5", "r") as f:
            name = name or next(iter(f))
        got = get("o.h5", name)
    gm.ok(got is not None and np.array_equal(got, want), f"{device}: {title}, {ranks} ranks", ran, got, want)


def same(title, arguments, one, other, ranks=None):
    """Two operands of the same values, for which the program prints the same."""
    ran, again = (gm.run(arguments.replace("X", x) + f" --device {device}", ranks or next(ranks_in_turn))
                  for x in (one, other))
    gm.ok(ran.code == again.code == 0 and ran.out == again.out and ran.out, f"{device}: {title}", ran, again)


signs = rng.integers(0, 2, (12, 40, 50)).astype("u2") << np.uint16(15)
finite = rng.integers(0, 0x7f80, (12, 40, 50)).astype("u2") | signs
ordinary = rounded(rng.normal(3, 2, (12, 40, 50)))
for name, bits in (("all", ALL), ("finite", finite), ("x", ordinary),
                   ("nan", np.where(rng.random(finite.shape) < 0.01, np.uint16(0xffa5), ordinary))):
    put("x.h5", name, bits)
    put("x.h5", name + "_be", bits, kind(big=True))
    put("x.h5", name + "_z", bits, kind(), tuple(n // 2 - 1 for n in bits.shape))
    with h5py.File("x.h5", "a") as f:
        f[name + "_f4"] = value(bits)
for name, made in (("e6m9", kind(exponent=6, bias=31)), ("bias", kind(bias=126))):
    put("other.h5", name, ALL[:100] & np.uint16(0x3fff), made)

# --- Types of files ---

ran = gm.run("info x.h5")
gm.ok(ran.code == 0 and ran.out.count("bfloat16") == 12, "info names the type, in either order of bytes", ran)
ran = gm.run("info other.h5")
gm.ok(ran.code == 0 and ran.out.count("float16 (e") == 2 and "bfloat16" not in ran.out,
      "other floats of 16 bits are none", ran)
for name in ("e6m9", "bias"):
    with h5py.File("other.h5", "r") as f:
        gm.write("converted.h5", v=f[name][()])
    ran = gm.run(f"compare other.h5:/{name} converted.h5:/v")
    gm.ok(ran.code == 0, f"{name} is read by conversion", ran)
for name in ("all", "all_be", "all_z"):
    ran = gm.run(f"compare x.h5:/{name} x.h5:/all_f4", next(ranks_in_turn))
    gm.ok(ran.code == 0, f"{name}: every pattern has its value", ran)
put("y.h5", "all", np.where(ALL == 0x0001, np.uint16(0x0002), ALL))
ran = gm.run("compare x.h5:/all y.h5:/all")
gm.ok(ran.code == 1 and "differing 1\n" in ran.out and "first_difference [0,1]" in ran.out,
      "compare sees the smallest numbers", ran)

M = (1 << 64) - 1


def uniform(seed, dataset, n):
    """The numbers of base/random.h, as long as a significand of 8 bits."""
    def mix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M
        x = (x ^ x >> 27) * 0x94D049BB133111EB & M
        return x ^ x >> 31
    step = 0x9E3779B97F4A7C15
    key = mix(mix(seed + step) + (dataset + 1) * step & M)
    return rounded([(mix(mix(key + i * step & M) + key & M) >> 56) * 2.0**-8 for i in range(n)])


for endian, ranks in (("", 1), ("--big-endian", 2)):
    ran = gm.run(f"gen matrices g.h5 --size 30 --type bf16 {endian} --force --no-sync", ranks)
    with h5py.File("g.h5", "r") as f:
        gm.ok(ran.code == 0 and f["B"].id.get_type() == kind(big=bool(endian)), f"gen {endian}: the type in the file",
              ran)
    gm.ok(all(np.array_equal(get("g.h5", name).ravel(), uniform(1, i, 900)) for i, name in enumerate("AB")),
          f"gen {endian}: the elements")
ran = gm.run("gen stack s.h5 --size 20 --type bf16 --distribution normal --no-sync")
gm.ok(ran.code == 0 and abs(value(get("s.h5", "images")).std() - 1) < 0.05, "gen: normal", ran)

# --- Operations ---

for device in gm.devices():
    for name in ("all", "all_be", "all_z"):
        check(f"transpose keeps all bits of {name}", f"transpose x.h5:/{name}", ALL.T)
        check(f"flip keeps all bits of {name}", f"flip x.h5:/{name} --axis 0", ALL[::-1])
    check("normalize keeps all numbers", "normalize x.h5:/all --method scale",
          np.where(np.isnan(value(ALL)), 0x7fc0, ALL))

    stats = "count,nan,min,max,sum,sumsq,mean,var,std,norm,argmin,argmax"
    for name in ("finite", "finite_be", "x", "x_z", "nan", "nan_be", "nan_z"):
        base = name.split("_")[0]
        same(f"reduce {name}", f"reduce X --stat {stats}", f"x.h5:/{name}", f"x.h5:/{base}_f4")
    same("reduce subnormals", "reduce X", "x.h5:/all[0,1:128]", "x.h5:/all_f4[0,1:128]")
    zeros = np.zeros(70000, "u2")
    zeros[69000] = 0x8000
    gm.run("gen stack zero.h5 --size 1 --force --no-sync")
    put("zero.h5", "z", zeros)
    ran = gm.run(f"reduce zero.h5:/z --stat min,max --device {device}")
    gm.ok(ran.code == 0 and ran.out.split() == ["min", "-0", "max", "0"], f"{device}: -0 is below +0", ran)
    for axis, along in ((0, 0), (1, 1), (2, 2)):
        for name in ("x", "x_be", "nan"):
            bits = ordinary if name[0] == "x" else get("x.h5", name)
            for stat, of in (("min", np.nanmin), ("max", np.nanmax)):
                check(f"{stat} of {name} along axis {axis} is of its type",
                      f"reduce x.h5:/{name} --stat {stat} --axis {axis}", rounded(of(value(bits), along)), stat)
    for name in ("x", "x_be"):
        outputs = []
        for one in (name, "x_f4"):
            ran = gm.run(f"reduce x.h5:/{one} --stat sum,var --axis 0 -o o.h5 --force --no-sync --device {device}",
                         next(ranks_in_turn))
            outputs.append([gm.read("o.h5", stat).tobytes() for stat in ("sum", "var")] if ran.code == 0 else ran)
        gm.ok(outputs[0] == outputs[1] and len(outputs[0]) == 2, f"{device}: sums along an axis of {name}", outputs)

    for arguments in ("--method minmax --per frame", "--method zscore", "--method percentile --per frame",
                      "--method scale --factor 3.7 --sub 0.3", "--method minmax --per pixel --range 1,9"):
        for into, more in (("bf16", ""), ("u8", "--type u8" + (" --range 0,200" if "range" not in arguments else ""))):
            ran = gm.run(f"normalize x.h5:/x_f4 {arguments} {more} -o w.h5 --force --no-sync --device {device}")
            with h5py.File("w.h5", "r") as f:
                want = f[next(iter(f))][()]
            if into == "bf16":
                check(f"normalize {arguments}", f"normalize x.h5:/x_z {arguments}", rounded(want))
            else:
                ran = gm.run(f"normalize x.h5:/x_be {arguments} {more} -o o.h5 --force --no-sync --device {device}",
                             next(ranks_in_turn))
                with h5py.File("o.h5", "r") as f:
                    gm.ok(ran.code == 0 and np.array_equal(f[next(iter(f))][()], want),
                          f"{device}: normalize {arguments} {more}", ran)
    for method, per, span in (("minmax", "frame", None), ("minmax", "pixel", (-3.3, 8.7)),
                              ("percentile", "stack", None), ("percentile", "frame", (0, 200))):
        given = f"--range={span[0]},{span[1]}" if span else ""
        check(f"normalize {method} per {per} {given}, by the oracle",
              f"normalize x.h5:/x --method {method} --per {per} {given}",
              rounded(oracle.normalize(value(ordinary), method, per, BF16, span)[0]))
    low = value(np.arange(0, 0x7f7f, dtype="u2")).astype("f8")
    middle = (low + value(np.arange(1, 0x7f80, dtype="u2"))) / 2
    near = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf),
                           [3.4e38, 1e39, np.inf, np.nan, 1e-300, 5e-324, 2.0**-134]])
    near = np.concatenate([near, -near[:-5], near[-5:]])
    gm.write("near.h5", v=near)
    check("one rounding of float64", "normalize near.h5:/v --method scale --type bf16", rounded(near))

    gm.write("index.h5", i=rng.integers(0, 256, 500))
    check("gather", "gather x.h5:/all --index index.h5:/i", ALL[gm.read("index.h5", "i")])

    # Products of small integers are exact; C is rounded once.
    a, b = gm.integers(rng, (70, 300), -9, 10), gm.integers(rng, (300, 61), -9, 10)
    c = gm.integers(rng, (70, 61), -200, 201)
    gm.write("f8.h5", A=a, B=b, C=c)
    gm.run("gen stack ab.h5 --size 1 --force --no-sync")
    for name, x in (("A", a), ("B", b), ("C", c)):
        put("ab.h5", name, rounded(x), kind(big=name == "B"))
        put("ab.h5", name + "z", rounded(x), kind(), (17, 19))
    ran = gm.run(f"matmul ab.h5:/A ab.h5:/B -o c.h5 --force --no-sync --report r.json --device {device}")
    gm.ok(ran.code == 0 and gm.read("c.h5").dtype == "f4" and np.array_equal(gm.read("c.h5"), a @ b),
          f"{device}: a product is in float32 by default", ran)
    for precision in ("fp64", "fp32", "exact"):
        for names, ranks, more in (("AB", 1, ""), (("Az", "Bz"), 2, "--grid 1x1x2"),
                                   ("AB", 3, "--grid 3x1x1 --piece 5000"),
                                   (("Az", "B"), 1, "--chunk 20,30 --deflate 1")):
            check(f"product of bf16 to bf16, {precision} {more}",
                  f"matmul ab.h5:/{names[0]} ab.h5:/{names[1]} --precision {precision} --type bf16 {more}",
                  rounded(a @ b), "C", ranks)
    check("C of float64 data, with C0", "matmul f8.h5 --type bf16 --add ab.h5:/C --beta 0.25",
          rounded(a @ b + 0.25 * c), "C", 2)
    check("alpha and C0 alone", "matmul f8.h5 --type bf16 --alpha 0 --add ab.h5:/Cz", rounded(c), "C")
    stack = rng.integers(-9, 10, (7, 20, 30)).astype("f8")
    put("ab.h5", "S", rounded(stack))
    check("a batch", "matmul --batch ab.h5:/S ab.h5:/S --transpose b --type bf16",
          rounded(stack @ stack.transpose(0, 2, 1)), "C", 2)
    gm.write("big.h5", A=np.full((9, 1), 1.5 * 2.0**64), B=np.full((1, 9), 1.5 * 2.0**64))
    ran = gm.run(f"matmul big.h5 --type bf16 -o o.h5 --force --no-sync --device {device}")
    gm.ok(ran.code == 0 and np.all(get("o.h5", "C") == 0x7f80) and "overflow" in ran.err,
          f"{device}: overflow is infinite, and told", ran)

# --- Notes ---

for name, told in (("A", True), ("S", True)):
    ran = gm.run(["matmul", *([f"ab.h5:/{name}"] * 2), "--transpose", "b", "--precision", "fp16", "--plan", "--model",
                  "nodes=1,gpus=1,gpu=h100", *(["--batch"] if name == "S" else [])])
    gm.ok(ran.code == 0 and "A (bf16) is rounded to float16" in ran.err, f"the range of fp16 is told, of {name}", ran)
gm.done()
