#!/usr/bin/env -S python3 -B
"""normalize: every method, type, rounding and range against NumPy, bit for bit; what is counted; attributes."""
import json
import os

import gm
import oracle
from gm import h5py, np

RNG = np.random.default_rng(11)
TYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def name_of(dtype):
    dtype = np.dtype(dtype)
    return f"{dtype.kind}{8 * dtype.itemsize}"


def stack(dtype, shape=(5, 9, 13)):
    """Elements over much of a type's range, an element of the top among them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (RNG.standard_normal(shape) * 50 + 20).astype(dtype)
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return x // 3 if dtype.itemsize > 1 else x


def run(arguments, ranks=1, name="in.h5"):
    ran = gm.run(f"normalize {name} -o out.h5 --force --no-sync --report r.json --device {device} {arguments}", ranks)
    results = {}
    if ran.code == 0:
        with open("r.json") as file:
            results = json.load(file)["results"]
    return ran, results


def same(a, b):
    """Equal, NaN as well; -0 is 0."""
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def check(title, arguments, want, ranks=1, bound=None):
    """want: what the oracle gives. bound: relative error that is allowed; None: equal."""
    ran, reported = run(arguments, ranks)
    if ran.code != 0:
        return gm.ok(False, f"{device}: {title}", ran)
    y, (expected, counts) = gm.read("out.h5", "/x"), want
    if bound is None:
        good = same(y, expected)
    else:
        with np.errstate(all="ignore"):
            near = np.allclose(y.astype("f8"), expected.astype("f8"), rtol=bound, atol=bound, equal_nan=True)
            good = y.dtype == expected.dtype and near
    marked = reported.get("constant", reported.get("zero_denominators"))
    counted = bound is not None or (reported["clipped"], reported["nan"],
                                    marked) == (counts["clipped"], counts["nan"], counts["marked"])
    differ = np.flatnonzero(y.ravel() != expected.ravel())[:3] if y.shape == expected.shape else []
    return gm.ok(good and counted, f"{device}: {title}", ran, reported, counts,
                 [(int(i), y.ravel()[i], expected.ravel()[i]) for i in differ])


def codes():
    """All 65 536 codes, every rounding."""
    x = np.arange(65536, dtype="u2").reshape(16, 64, 64)
    gm.write("in.h5", x=x)
    for sub, factor in ((0, 1), (100, 65535 / 59900), (-0.5, 0.5), (32768, 1.9999999), (1234.567, 0.01234567)):
        for rounding in oracle.ROUND:
            check(f"all codes, ({sub}, {factor}), {rounding}",
                  f"--method scale --sub {sub} --factor {factor} --round {rounding}",
                  oracle.normalize(x, "scale", sub=sub, factor=factor, rounding=rounding))
    check("all codes, minmax to bytes, half-up", "--type u8 --round half-up",
          oracle.normalize(x, out="u1", rounding="half-up"))
    check("all codes, minmax to 10 bits", "--range 0,1023", oracle.normalize(x, range=(0, 1023)))


def types():
    for i, dtype in enumerate(TYPES):
        x = stack(dtype)
        gm.write("in.h5", x=x.astype(x.dtype.newbyteorder(">") if i % 2 else x.dtype))
        for j, out in enumerate((TYPES[(3 * i + 2) % 11], TYPES[(5 * i + 1) % 11], dtype)):
            per = ("stack", "frame", "pixel")[(i + j) % 3]
            check(f"minmax per {per}, {dtype} to {out}", f"--per {per} --type {name_of(out)}",
                  oracle.normalize(x, "minmax", per, out))
            per = ("stack", "frame")[(i + j) % 2]
            check(f"percentile per {per}, {dtype} to {out}",
                  f"--method percentile --per {per} --low 3.7 --high 96.1 --type {name_of(out)}",
                  oracle.normalize(x, "percentile", per, out, low=3.7, high=96.1))
        per = ("stack", "frame", "pixel")[i % 3]
        want = oracle.normalize(x, "zscore", per)
        check(f"zscore per {per}, {dtype}", f"--method zscore --per {per}", want,
              bound=1e-12 if dtype == "f8" else None)


def percentiles():
    """The numbers of numpy.percentile, in the results of an output in float64."""
    for dtype in TYPES:
        x = stack(dtype, (3, 77, 61))
        gm.write("in.h5", x=x)
        for low, high in ((1, 99), (0, 100), (33.3, 33.4)):
            want = [oracle.percentile(x, p) for p in (low, high)]
            ran, reported = run(f"--method percentile --low {low} --high {high} --type f64 --threads 2")
            got = (reported.get("sub"), reported.get("factor"))
            gm.ok(want[0] == want[1] or got == (want[0], 1 / (want[1] - want[0])),
                  f"{device}: percentiles {low} and {high} of {dtype}", want, got, ran)


def special():
    x = stack("f4", (4, 5, 6))
    x[0, 0, :3] = np.nan, -0.0, 1e-42
    x[1] = np.nan
    x[2] = 7.25
    x[3, 1, 1] = np.inf
    gm.write("in.h5", x=x)
    for per in ("stack", "frame", "pixel"):
        for arguments in ("", "--type u8", "--range 2,5", "--type i16 --range -100,100"):
            out = {"--type u8": "u1", "--type i16 --range -100,100": "i2"}.get(arguments)
            span = {"--range 2,5": (2, 5), "--type i16 --range -100,100": (-100, 100)}.get(arguments)
            check(f"NaN and infinity, minmax per {per} {arguments}", f"--per {per} {arguments}",
                  oracle.normalize(x, per=per, out=out, range=span))
    check("NaN and infinity, zscore per frame", "--method zscore --per frame", oracle.normalize(x, "zscore", "frame"))
    y = x.copy()
    y[3, 1, 1] = 3
    gm.write("in.h5", x=y)
    check("NaN, percentile per frame", "--method percentile --per frame", oracle.normalize(y, "percentile", "frame"))
    check("NaN, zscore per stack to integers", "--method zscore --type i8", oracle.normalize(y, "zscore", out="i1"))
    check("scale to f16 overflows", "--method scale --factor 1e4 --type f16",
          oracle.normalize(y, "scale", out="f2", factor=1e4))
    check("scale to a range of floats", "--method scale --range -3.5,50.25",
          oracle.normalize(y, "scale", range=(-3.5, 50.25)))
    check("zscore to a range of bytes", "--method zscore --per frame --type u8 --range 1,3 --round half-up",
          oracle.normalize(y, "zscore", "frame", "u1", (1, 3), "half-up"))
    tiny = (np.arange(60).reshape(3, 4, 5) % 7 * 1e-45).astype("f4")
    tiny[1] *= 1e10
    gm.write("in.h5", x=tiny)
    check("a span so small that it counts as constant", "--per frame --range 2,3",
          oracle.normalize(tiny, per="frame", range=(2, 3)))
    gm.write("in.h5", x=np.full((3, 4, 4), 9, "u2"))
    check("a constant stack", "--range 5,10", oracle.normalize(np.full((3, 4, 4), 9, "u2"), range=(5, 10)))
    check("a constant stack, zscore", "--method zscore", oracle.normalize(np.full((3, 4, 4), 9, "u2"), "zscore"))


def wide_spans():
    """Ends that are further apart than the arithmetic goes, and infinities."""
    x = np.array([[-3e38, 0, 1e38, 3e38], [-1, 0, 1, 2]], "f4")
    gm.write("in.h5", x=x)
    got = gm.read("out.h5", "/x") if run("")[0].code == 0 else x
    gm.ok(np.allclose(got[0], [0, 1 / 2, 2 / 3, 1], 1e-6), f"{device}: float32 from -3e38 to 3e38", got)
    for per in ("stack", "frame", "pixel"):
        for arguments in ("", "--type u8", "--type f64", "--range 2,5"):
            out = {"--type u8": "u1", "--type f64": "f8"}.get(arguments)
            check(f"float32 from -3e38 to 3e38, minmax per {per} {arguments}", f"--per {per} {arguments}",
                  oracle.normalize(x, per=per, out=out, range=(2, 5) if "range" in arguments else None),
                  1 if per == "stack" else 2)
    check("float32 from -3e38 to 3e38, percentile", "--method percentile --low 0 --high 100",
          oracle.normalize(x, "percentile", low=0, high=100))
    for span in ((0, 1e-7), (0, 1e-35), (-1e-4, 2e-4)): # factors that are no normal numbers of float32
        check(f"float32 from -3e38 to 3e38, a range of {span}", f"--range={span[0]},{span[1]}",
              oracle.normalize(x, range=span))
        check(f"float32 from -3e38 to 3e38, percentile, a range of {span}",
              f"--method percentile --low 0 --high 100 --range={span[0]},{span[1]}",
              oracle.normalize(x, "percentile", range=span, low=0, high=100))
    check("a range of floats of 6e38", "--range=-3e38,3e38", oracle.normalize(x, range=(-3e38, 3e38)))
    y = np.array([[-1.7e308, 0, 1e308, 1.7e308], [-1, 0, 1, 2]])
    gm.write("in.h5", x=y)
    got = gm.read("out.h5", "/x") if run("")[0].code == 0 else y
    gm.ok(np.allclose(got[0], [0, 1 / 2, 2.7 / 3.4, 1], 1e-15), f"{device}: float64 from -1.7e308 to 1.7e308", got)
    for per in ("stack", "frame", "pixel"):
        for arguments in ("", "--type u16", "--type f32"):
            check(f"float64 from -1.7e308 to 1.7e308, minmax per {per} {arguments}", f"--per {per} {arguments}",
                  oracle.normalize(y, per=per, out={"--type u16": "u2", "--type f32": "f4"}.get(arguments)))
    check("float64 from -1.7e308 to 1.7e308, percentile", "--method percentile --low 0 --high 100",
          oracle.normalize(y, "percentile", low=0, high=100))
    ran, _ = run("--range=-1.7e308,1.7e308")
    gm.ok(ran.code == 2 and "difference" in ran.err,
          f"{device}: ends of a range whose difference overflows are refused", ran)
    for least, most in ((-np.inf, 3), (1, np.inf), (-np.inf, np.inf)):
        z = np.array([[least, 1, 2, most]], "f4")
        gm.write("in.h5", x=z)
        got = gm.read("out.h5", "/x") if run("--range 2,5")[0].code == 0 else z
        gm.ok(np.array_equal(np.isnan(got), np.isinf(z)) and (got[np.isfinite(z)] == 2).all(),
              f"{device}: only infinite elements become NaN, {z[0]}", got)
        check(f"{z[0]}, minmax", "", oracle.normalize(z))


def flats():
    x = RNG.integers(0, 60000, (6, 7, 11)).astype("u2")
    flat = RNG.integers(40000, 60000, (5, 7, 11)).astype("u2")
    dark = RNG.integers(0, 300, (3, 7, 11)).astype("u2")
    flat[:, 2, 3] = dark[:, 2, 3] = 17
    gm.write("in.h5", x=x)
    gm.write("flat.h5", flat=flat, frame=flat[0], floats=flat.astype("f4"))
    gm.write("dark.h5", dark=dark)
    fields = "--method flatfield --flat flat.h5:/flat --dark dark.h5"
    for ranks in (1, 3):
        check(f"flatfield, {ranks} ranks", fields, oracle.flatfield(x, flat, dark), ranks)
    gm.write("in.h5", x=x.astype("f4"))
    check("flatfield of float32", fields, oracle.flatfield(x.astype("f4"), flat, dark))
    gm.write("in.h5", x=x)
    check("flatfield of one frame, no dark", "--method flatfield --flat flat.h5:/frame", oracle.flatfield(x, flat[0]))
    check("flatfield to bytes", f"{fields} --type u8", oracle.flatfield(x, flat, dark, "u1"))
    check("flatfield in float64", f"{fields} --type f64", oracle.flatfield(x, flat, dark, "f8"))
    check("flatfield with logarithm", f"{fields} --log", oracle.flatfield(x, flat, dark, log=True))
    check("flatfield with logarithm in float64", f"{fields} --log --type f64",
          oracle.flatfield(x, flat, dark, "f8", log=True), bound=1e-15)
    floats, darks = flat.astype("f4"), dark.astype("f8")
    floats[1, 0, :4] = floats[2, 0, 2:6] = floats[:, 4, 5] = darks[0, 4] = darks[:, 5, 1] = np.nan
    floats[0, 6, :2] = np.inf, -np.inf
    gm.write("nan.h5", flat=floats, dark=darks, frame=floats[1])
    for ranks in (1, 3):
        check(f"flatfield, NaN in the fields, {ranks} ranks",
              "--method flatfield --flat nan.h5:/flat --dark nan.h5:/dark", oracle.flatfield(x, floats, darks), ranks)
    check("flatfield, NaN in a single frame", "--method flatfield --flat nan.h5:/frame --type i16",
          oracle.flatfield(x, floats[1], out="i2"))
    gm.write("in.h5", x=x[0])
    want, counts = oracle.flatfield(x[:1], flat, dark)
    for ranks in (1, 2):
        check(f"flatfield of a single image, {ranks} ranks", fields, (want[0], counts), ranks)
    gm.write("in.h5", x=x[:, 0])
    gm.write("line.h5", x=flat[:, 0])
    line = x[:1, 0]
    gm.write("in.h5", x=line)
    gm.write("line.h5", stack=flat[:, :1], image=flat[:1, 0], frame=flat[0, 0], lines=flat[:, 0])
    for name, fields in (("stack", flat[:, 0]), ("image", flat[0, 0]), ("frame", flat[0, 0]), ("lines", flat[:, 0])):
        check(f"flatfield of an image of one line, {name}",
              f"--method flatfield --flat line.h5:/{name} --dark line.h5:/stack",
              oracle.flatfield(line, fields, flat[:, 0]))
    for shape, fields in (((0, 7, 11), (7, 11)), ((0, 7, 11), (5, 7, 11)), ((0, 7, 11), (0, 7, 11)), ((0, 11), (5, 11)),
                          ((0, 11), (0, 11)), ((3, 0, 4), (0, 4)), ((3, 0, 4), (2, 0, 4)), ((4, 0), (0,)),
                          ((4, 0), (4, 0))):
        gm.write("in.h5", x=np.zeros(shape, "u2"))
        gm.write("none.h5", flat=np.ones(fields))
        for ranks in (1, 2):
            check(f"flatfield of an empty stack, {shape} by {fields}, {ranks} ranks",
                  "--method flatfield --flat none.h5 --dark none.h5",
                  (np.zeros(shape, "f4"), {"clipped": 0, "nan": 0, "marked": 0}), ranks)
    gm.write("in.h5", x=x[:, 0])
    gm.write("line.h5", x=flat[:, 0])
    check("flatfield of lines", "--method flatfield --flat line.h5", oracle.flatfield(x[:, 0], flat[:, 0]))


def shapes():
    for shape in ((), (1,), (1000,), (1000, 1), (1, 1000), (3, 0, 4), (0,), (2, 3, 4, 5, 6)):
        x = stack("u2", shape) if shape else np.array(7, "u2")
        gm.write("in.h5", x=x)
        for per in ("stack", "frame", "pixel"):
            want = oracle.normalize(x, per=per) if x.size else (x, {"clipped": 0, "nan": 0, "marked": 0})
            check(f"shape {shape} per {per}", f"--per {per}", want, 1 + len(shape) % 3)
    x = stack("i2", (8, 10, 12))
    gm.write("in.h5", x=x)
    ran, reported = run("", name="in.h5:/x[1:7:2,3,::3]")
    gm.ok(ran.code == 0 and same(gm.read("out.h5", "/x"), oracle.normalize(x[1:7:2, 3, ::3])[0]),
          f"{device}: a selection", ran)


def attributes():
    with h5py.File("in.h5", "w") as file:
        d = file.create_dataset("deep/er/x", data=stack("u2"))
        d.attrs["units"], d.attrs["numbers"] = "counts", np.arange(6.0).reshape(2, 3)
        d.attrs["empty"] = h5py.Empty("f4")
        d.attrs["operation"] = "made elsewhere"
        d.attrs.create("words", ["a", "longer"], dtype=h5py.string_dtype())
        d.attrs["reference"] = d.ref
    for more in ("", "--chunk 2,9,13 --deflate 1", "--output-layout parts"):
        ran, reported = run(more)
        with h5py.File("out.h5") as file:
            a = file["deep/er/x"].attrs
            good = (a["units"] == "counts" and np.array_equal(a["numbers"], np.arange(6.0).reshape(2, 3))
                    and list(a["words"]) == ["a", "longer"] and isinstance(a["empty"], h5py.Empty)
                    and "reference" not in a and a["operation"] == "normalize" and a["method"] == "minmax")
        gm.ok(good and "could not be copied, the first of them is 'reference'" in ran.err,
              f"{device}: attributes {more}", ran)
    ran = gm.run(f"normalize in.h5 --device {device} --no-sync")
    gm.ok(ran.code == 0 and gm.read("in.normalize.h5", "/deep/er/x").shape == (5, 9, 13),
          f"{device}: the default output", ran)


for device in gm.devices():
    gm.together([codes, types, percentiles, special, wide_spans, flats, shapes, attributes])
gm.done()
