"""Random jobs of each operation for random_jobs.t: a command line, and the faults of what it gave, by NumPy and the
arithmetic that docs/accuracy.md describes."""
import json
import math

import oracle
import plain_statistics as plain
from bfloat import BF16, array_type, cast, is_stored, largest
from gm import h5py, np, read, shortened
from random_data import any_bits, chunk_of, extent, name_of, native, numbers, pick, put, shape


class Case:
    """command: words, without those of options that may be added. faults(run): what is wrong with a run that succeeded.
    code: its exit code."""

    def __init__(self, command, faults, code=0):
        self.command, self.faults, self.code = [str(word) for word in command], faults, code


def output(rng, dims, dataset=None):
    """Words for an output of this shape."""
    words = ["-o", "out.h5" + (f":{dataset}" if dataset else ""), "--force"] + ["--no-sync"] * (rng.random() < 0.95)
    if len(dims) and 0 not in dims and rng.random() < 0.3:
        words += ["--chunk", ",".join(map(str, chunk_of(rng, np.empty(dims, "u1"))))] if rng.random() < 0.7 else []
        words += ["--deflate", int(rng.integers(1, 10))] if rng.random() < 0.6 else []
        words += ["--shuffle"] if rng.random() < 0.4 else []
    elif rng.random() < 0.1:
        words += ["--output-layout", pick(rng, "parts", "auto")]
    return words


def dataset_of(name):
    """Of FILE:DATASET[SELECTION]: an output has the name of its input."""
    return name.partition("[")[0].rpartition(":")[2]


def written(name, kind, file="out.h5"):
    """The elements of a dataset of the output, which is of this kind."""
    if is_stored(file, name) != (kind == BF16):
        raise ValueError(f"{name} is {'' if kind == BF16 else 'not '}to be bfloat16")
    return read(file, name)


def differences(got, want, equal):
    """Up to three places where two arrays differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return [f"{got.dtype} {got.shape}, expected {want.dtype} {want.shape}"]
    places = np.argwhere(~np.atleast_1d(equal))[:3]
    return [f"at {tuple(map(int, at))}: {np.atleast_1d(got)[tuple(at)]!r}, expected {np.atleast_1d(want)[tuple(at)]!r}"
            for at in places]


def same(got, want):
    """Faults unless equal, NaN as well; -0 is 0."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return differences(got, want, True)
    return differences(got, want, (got == want) | ((got != got) & (want != want)))


def same_bits(got, want, kind=None):
    """Of BF16, which h5py reads by conversion, any NaN is any other."""
    if kind == BF16:
        got, want = (np.where(np.isnan(x), np.float32(np.nan), x) for x in (got, want))
    if got.dtype != want.dtype or got.shape != want.shape:
        return differences(got, want, True)
    bits = f"u{got.dtype.itemsize}"
    one, two = (np.ascontiguousarray(array).view(bits).reshape(array.shape) for array in (got, want))
    return differences(got, want, one == two)


# --- matmul ---

def product_of(a, b):
    """In float64, element by element in the order of k: NaN and infinities as IEEE 754 has them."""
    c = np.zeros((a.shape[0], b.shape[1]))
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            c += a[:, k, None] * b[None, k]
    return c


def leaf_of(precision, k):
    least = max(128 if precision == "fp32" else 2048, math.ceil(8 * math.sqrt(k)), math.ceil(k ** (2 / 3)))
    return -(-least // 64) * 64 + 64


def bound_of(precision, a, b):
    """gamma |A| |B| of docs/accuracy.md; once more for the inputs that fp32 rounds."""
    u, k = {"fp64": 2.0**-53, "fp32": 2.0**-24, "exact": 2.0**-53, "int8": 0}.get(precision, 2.0**-24), a.shape[1]
    leaf = leaf_of(precision, k)
    gamma = (min(k, leaf) + k / leaf + 3) * u
    return gamma * product_of(abs(a), abs(b))


def operand(rng, dims, kind, exact, finite):
    if exact:
        low = 0 if kind[0] == "u" else -4
        return cast(rng.integers(low, 5, dims), kind)
    return np.clip(numbers(rng, dims, kind, finite), -1e4,
                   1e4) if finite and kind == "f2" else numbers(rng, dims, kind, finite)


def matmul(rng):
    k = pick(rng, extent(rng, 60), extent(rng, 60), extent(rng, 300), 2100) if rng.random() > 0.04 else 0
    m, n = (extent(rng, 40 if k > 300 else 90) for _ in "mn")
    m, n = (0 if rng.random() < 0.03 else e for e in (m, n))
    exact, finite = rng.random() < 0.5, rng.random() < 0.8
    kinds = [pick(rng, *"u1 i1 u2 i2 u4 i4 f2 f4 f4 f4 f8 f8".split(), BF16, *["u8", "i8"] * exact) for _ in "AB"]
    transpose = pick(rng, "", "", "a", "b", "ab")
    one = rng.random() < 0.08 and transpose in ("a", "b") # A and B are the same elements
    a, b = (operand(rng, dims[::-1] if letter in transpose else dims, kind, exact, finite)
            for dims, kind, letter in zip(((m, k), (k, n)), kinds, "ab"))
    name, a = put(rng, a, "a", True, kinds[0])
    words, other, b = ([name, name], name, a) if one else ([name], *put(rng, b, "b", kind=kinds[1]))
    words = words if one else words + [other]
    if one:
        kinds[1] = kinds[0]
    precision = "fp64" if any(kind == "f8" or kind[0] != "f" for kind in kinds) else "fp32"
    if rng.random() < 0.4:
        narrow = all(kind in ("u1", "i1", "u2", "i2", "f2", "f4", BF16) for kind in kinds)
        precision = pick(rng, "fp64", "fp32", "tf32", "fp16", "bf16", *["exact"] * narrow,
                         *["int8"] * 3 * all(kind in ("u1", "i1") for kind in kinds))
        words += ["--precision", precision]
    out = {"fp64": "f8", "int8": "i4"}.get(precision, "f4")
    if rng.random() < 0.3:
        out = pick(rng, "f2", "f4", "f8", BF16)
        words += ["--type", name_of(out)]
    alpha = pick(rng, 1, 1, 1, -1, 0.5, 2.5, 0)
    words += [f"--alpha={alpha}"] if alpha != 1 else []
    words += ["--transpose", transpose] if transpose else []
    a, b = (native(x).T if letter in transpose else native(x) for x, letter in ((a, "a"), (b, "b")))
    c0, beta, code = None, 0, 0
    if rng.random() < 0.3:
        kind = pick(rng, "u1", "i4", "i8", "f2", "f4", "f8", BF16)
        c0 = operand(rng, (a.shape[0], b.shape[1]), kind, exact, finite)
        given, c0 = put(rng, c0, "c0", kind=kind)
        beta = pick(rng, 1, 1, -2, 0.5, 0)
        words += ["--add", given] + ([f"--beta={beta}"] if beta != 1 else [])
        code = 3 if beta and c0.dtype.kind != "f" and (abs(c0.astype("f8")) > 2.0**53).any() else 0
    words += ["--no-verify"] if rng.random() < 0.1 else []
    words += output(rng, (a.shape[0], b.shape[1]), pick(rng, None, None, "x", "group/y"))
    dataset = words[words.index("-o") + 1].partition(":")[2] or "C"

    def faults(ran):
        with np.errstate(all="ignore"):
            wide = [x.astype("f8") if precision in ("fp64", "int8") else shortened(x, precision) for x in (a, b)]
            acc = product_of(*wide) if alpha else np.zeros((a.shape[0], b.shape[1]))
            x = alpha * acc
            want = x + beta * c0.astype("f8") if beta else x
            got = written(dataset, out)
            if got.dtype != array_type(out) or got.shape != want.shape:
                return differences(got, cast(want, out), True)
            if out == "i4":
                return same(got, np.clip(np.nan_to_num(np.rint(want)), -2.0**31, 2.0**31 - 1).astype(out))
            if exact:
                return same(got, cast(want, out))
            error = abs(alpha) * bound_of(precision, *wide) if alpha else np.zeros_like(want)
            error = error + 2.0**-52 * (abs(x) + abs(want))
            relative = {"f2": 2.0**-11, BF16: 2.0**-8, "f4": 2.0**-24, "f8": 0}[out] * (abs(want) + error)
            smallest = {"f2": 2.0**-25, BF16: 2.0**-134, "f4": 2.0**-150, "f8": 0}[out]
            near = abs(got.astype("f8") - want) <= error + relative + smallest
            alike = (got != got) & (want != want) | (got == cast(want, out)) | near
            # near the overflow, or of inputs that are not finite
            large = ~(abs(want) + error < float(largest(out))) | ~np.isfinite(error)
            large &= np.isfinite(want) | (~np.isfinite(error) & np.isfinite(product_of(abs(wide[0]), abs(wide[1]))))
            return differences(got, cast(want, out), alike | large)
    return Case(["matmul", *words], faults, code)


# --- reduce ---

def expected_type(name, kind, n):
    return plain.type_of(name, array_type(kind), n)


def reduce(rng):
    kind = pick(rng, "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f4", "f8", "f8", BF16)
    dims = shape(rng, pick(rng, 300, 3000, 3000, 20000))
    x = numbers(rng, dims, kind)
    name, x = put(rng, x, "x", True, kind)
    x = native(x)
    axis = pick(rng, "all", "all", "frame", "pixel", "vector", *range(x.ndim)) if x.ndim else "all"
    rows, results = plain.segments(x, axis)
    n = rows.shape[1]
    statistics = [] if rng.random() < 0.3 else [str(s) for s in rng.permutation(plain.NAMES)[:rng.integers(1, 13)]]
    if n == 0 and kind[0] != "f" and axis != "all":
        statistics = [s for s in statistics if s not in ("min", "max")] or ["count", "sum"]
    propagate = rng.random() < 0.3
    words = [name] + (["--stat", ",".join(statistics)]
                      if statistics else []) + (["--nan", "propagate"] if propagate else [])
    names = statistics or plain.NAMES[:10]
    if axis == "all":
        def faults(ran):
            got = plain.printed(ran.out)
            missing = [s for s in names if s not in got and not (n == 0 and s in ("min", "max"))]
            return [f"no {s}" for s in missing] + plain.faults(got, rows[0], propagate)
        return Case(["reduce", *words] + (["--axis", "all"] if rng.random() < 0.5 else []), faults)
    words += ["--axis", axis, *output(rng, results)]

    def faults(ran):
        with h5py.File("out.h5", "r") as f:
            stored = list(f)
        got = {s: written(s, kind if s in ("min", "max") else None) for s in stored}
        wrong = [] if sorted(got) == sorted(names) else [f"datasets {sorted(got)}"]
        wrong += [f"{s} is {got[s].shape} {got[s].dtype}" for s in got
                  if got[s].shape != results or got[s].dtype != expected_type(s, kind, n)]
        for i in range(0 if wrong else len(rows)):
            one = {s: got[s].reshape(-1)[i].item() for s in got}
            if kind[0] != "f":
                exact = plain.of_integers(rows[i])
                one = {s: plain.rounded(value, got[s].dtype, exact[s]) for s, value in one.items()}
            wrong += [f"result {i}: {fault}" for fault in plain.faults(one, rows[i], propagate)]
        return wrong[:5]
    return Case(["reduce", *words], faults)


# --- normalize ---

def counted(counts):
    with open("r.json") as file:
        reported = json.load(file)["results"]
    marked = reported.get("constant", reported.get("zero_denominators"))
    got = (reported["clipped"], reported["nan"], marked)
    want = (counts["clipped"], counts["nan"], counts["marked"])
    return [] if got == want else [f"counted {got}, expected {want} (clipped, NaN, marked)"]


def range_words(rng, out, target):
    """--range, or none: (words, range)."""
    if rng.random() < 0.6 or (not target and out[0] == "f" and rng.random() < 0.5):
        return [], None
    if out[0] == "f":
        low, high = sorted(round(float(v), 2) for v in rng.standard_normal(2) * 50)
        high = high if high > low else low + 1
    else:
        limits = np.iinfo(out)
        ends = rng.integers(max(limits.min, -1000), min(limits.max, 1000), 2, endpoint=True)
        low, high = sorted(int(v) for v in ends)
        low, high = (low, high) if high > low else (low, low + 1) if low < limits.max else (low - 1, low)
    return [f"--range={low},{high}"], (low, high)


def normalize(rng):
    method = pick(rng, "minmax", "minmax", "zscore", "percentile", "percentile", "scale", "flatfield")
    if method == "flatfield":
        return flatfield(rng)
    kind = pick(rng, *"u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f4 f8 f8".split(), BF16)
    dims = shape(rng, pick(rng, 300, 3000, 20000))
    data = numbers(rng, dims, kind)
    if method in ("minmax", "percentile") and kind in ("f4", "f8", BF16) and rng.random() < 0.15: # spans that overflow
        data = cast(np.where(rng.random(dims) < 0.2, rng.choice(np.array([-1, -0.6, 0.3, 1]) * largest(kind), dims),
                             data), kind)
    name, x = put(rng, data, "x", True, kind)
    x = native(x)
    per = pick(rng, "stack", "frame", *["pixel"] * (method != "percentile")) if method != "scale" else "stack"
    out = kind if kind[0] == "f" or method != "zscore" else "f4"
    words = [name, "--method", method] if method != "minmax" or rng.random() < 0.5 else [name]
    words += ["--per", per] if method != "scale" and (per != "stack" or rng.random() < 0.3) else []
    if rng.random() < 0.6:
        out = pick(rng, *"u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split(), BF16)
        words += ["--type", name_of(out)]
    given, ends = range_words(rng, out, method in ("minmax", "percentile"))
    rounding = pick(rng, "nearest-even", "nearest-even", "half-up", "truncate")
    words += given + (["--round", rounding] if rounding != "nearest-even" else [])
    more = {}
    if method == "scale":
        more = {"sub": round(float(rng.standard_normal() * 30), 3),
                "factor": round(float(rng.standard_normal() * 5), 3)}
        words += [f"--{key}={value}" for key, value in more.items()]
    if method == "percentile":
        low, high = sorted(round(float(v), 1) for v in rng.random(2) * 100)
        more = {"low": low, "high": high} if high > low else {"low": 0, "high": 100}
        words += [f"--{key}={value}" for key, value in more.items()]
    words += output(rng, x.shape)
    dataset = dataset_of(name)

    def faults(ran):
        got = written(dataset, out)
        if x.size == 0:
            return same(got, np.zeros(x.shape, array_type(out)))
        want, counts = oracle.normalize(x, method, per, out, ends, rounding, **more)
        if method == "zscore" and kind[0] == "f":
            return close(got, want, x, per, out, ends, rounding)
        return same(got, want) + counted(counts)
    return Case(["normalize", *words], faults)


def close(got, want, x, per, out, ends, rounding):
    """zscore of floats, within the bound of docs/accuracy.md: mean and deviation are float64, then rounded."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return differences(got, want, True)
    real = "f8" if oracle.wants_wide(x.dtype) or oracle.wants_wide(out) else "f4"
    u = 2.0**-53 if real == "f8" else 2.0**-24
    parts, back = oracle.parts_of(x, per)
    with np.errstate(all="ignore"):
        kept = [part[~np.isnan(part)] for part in parts]
        numbers_of = [oracle.moments(part) if part.size else (math.nan, math.nan) for part in kept]
        size = np.array([abs(part.astype("f8")).max() if part.size else 0 for part in kept])[:, None]
        mean, std = (np.array([pair[i] for pair in numbers_of])[:, None] for i in (0, 1))
        p = parts.astype("f8")
        ratio = (p - mean) / std
        error = 4 * u * (abs(ratio) + abs(mean) / std + size / std * 2.0**-44 / u) + 1e-12 * abs(ratio)
        if not oracle.is_float(out):
            error = error + 1 # rounding changes its mind
        elif out == "f2":
            error = error + 2.0**-10 * abs(ratio) + 2.0**-24
        elif out == BF16:
            error = error + 2.0**-7 * abs(ratio) + 2.0**-133
        elif out == "f4":
            error = error + 2.0**-23 * abs(ratio)
        # An almost constant part: its deviation is as uncertain as 2^-31 relative to it, or to nothing at all.
        uncertain = ~(std > 2.0**-20 * size) & (std > 0) | ~np.isfinite(error) & np.isfinite(ratio)
        uncertain = uncertain & np.isfinite(ratio)
        lo, hi = ends or oracle.limits(out, False)
        wide = np.clip(ratio, lo, hi) if np.isfinite(lo) else ratio
        alike = back((abs(parts_like(got, per) - wide) <= error) | uncertain)
    return differences(got, want, alike | (got == want) | ((got != got) & (want != want)))


def parts_like(y, per):
    return oracle.parts_of(y, per)[0].astype("f8")


def flatfield(rng):
    kind = pick(rng, "u1", "u2", "i2", "f4", "f8", "u4", BF16)
    dims = shape(rng, 3000, (1, 2, 3, 3, 4))
    dims = tuple(max(n, 1) for n in dims)
    dims = dims if len(dims) > 1 else (*dims, int(rng.integers(1, 9)))
    name, x = put(rng, numbers(rng, dims, kind, True), "x", kind=kind)
    x = native(x)
    words, fields = [name, "--method", "flatfield"], []
    for field in ("flat", "dark")[:pick(rng, 1, 2)]:
        count = pick(rng, None, 1, 2, 5, 70)
        if x.ndim == 2:
            # a flat of the stack's shape makes it one frame
            count = 3 if count in (None, x.shape[0]) and x.shape[0] != 3 else count or 2
        frames = x.shape[1:] if count is None else (count, *x.shape[1:])
        source = pick(rng, "u1", "u2", "i4", "f4", BF16) # whole numbers: their means are exact sums, rounded once
        data = cast(rng.integers(0, 200 if field == "flat" else 20, frames), source)
        given, data = put(rng, data, field, kind=source)
        fields.append(native(data))
        words += [f"--{field}", given]
    single = x.ndim == 2 and (fields[0].shape == x.shape or fields[0].shape[1:] == x.shape)
    out = kind if kind[0] == "f" else "f4"
    if rng.random() < 0.5:
        out = pick(rng, "u1", "u2", "i4", "f4", "f8", BF16)
        words += ["--type", name_of(out)]
    log = rng.random() < 0.3
    words += ["--log"] * log + output(rng, x.shape)
    dataset = dataset_of(name)
    stack = x[None] if single else x

    def faults(ran):
        got = written(dataset, out)
        want, counts = oracle.flatfield(stack, *fields, **({} if len(fields) > 1 else {"dark": None}), out=out, log=log)
        want = want.reshape(x.shape)
        if not log:
            return same(got, want) + counted(counts)
        if got.dtype != want.dtype or got.shape != want.shape:
            return differences(got, want, True)
        # two units in the last place of the logarithm may round the other way
        bound = {"f8": 1e-14, "f4": 1e-6}.get(out, 1.0)
        with np.errstate(all="ignore"):
            limit = bound * np.maximum(1, abs(want.astype("f8"))) * 2.0**-2 + (not oracle.is_float(out))
            near = abs(got.astype("f8") - want.astype("f8")) <= limit
        return differences(got, want, near | (got == want) | ((got != got) & (want != want)))
    return Case(["normalize", *words], faults)


# --- flip, transpose, gather, gen, compare ---

def flip(rng):
    kind = pick(rng, *"u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split(), BF16)
    dims = shape(rng, pick(rng, 300, 20000), (1, 2, 3, 3, 4, 5))
    name, x = put(rng, any_bits(rng, dims, kind), "x", True, kind)
    axis = int(rng.integers(-x.ndim, x.ndim))
    words = ["flip", name, f"--axis={axis}", *output(rng, x.shape)]
    dataset = dataset_of(name)
    return Case(words, lambda ran: same_bits(native(written(dataset, kind)), native(np.flip(x, axis)), kind))


def transpose(rng):
    kind = pick(rng, *"u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split(), BF16)
    dims = shape(rng, pick(rng, 300, 20000), (2, 2, 3, 3, 4, 5))
    name, x = put(rng, any_bits(rng, dims, kind), "x", True, kind)
    first, second = map(int, rng.permutation(x.ndim)[:2])
    given = [axis - x.ndim if rng.random() < 0.3 else axis for axis in (first, second)]
    want = np.swapaxes(x, first, second)
    words = ["transpose", name, f"--axes={given[0]},{given[1]}", *output(rng, want.shape)]
    dataset = dataset_of(name)
    return Case(words, lambda ran: same_bits(native(written(dataset, kind)), native(want), kind))


def gather(rng):
    kind = pick(rng, *"u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split(), BF16)
    dims = tuple(max(n, 1) for n in shape(rng, pick(rng, 300, 20000), (1, 2, 3, 3, 4)))
    name, x = put(rng, any_bits(rng, dims, kind), "x", True, kind)
    two = x.ndim > 1 and rng.random() < 0.3
    positions = shape(rng, pick(rng, 30, 300), (0, 1, 1, 2, 3)) if 0 not in x.shape[:1 + two] else (0,)
    words, indices = ["gather", name], []
    for i in range(1 + two):
        type_ = pick(rng, "u2", "i2", "u4", "i4", "u8", "i8")
        given, numbers_ = put(rng, rng.integers(0, max(x.shape[i], 1), positions).astype(type_), "ij"[i])
        indices.append(native(numbers_))
        words += ["--index2" if i else "--index", given]
    # fill values may not be
    good = all(((index >= 0) & (index < extent_)).all() for index, extent_ in zip(indices, x.shape))
    want = x[tuple(index.astype("i8") for index in indices)] if good else np.empty(positions + x.shape[1 + two:])
    words += output(rng, want.shape)
    dataset = dataset_of(name)
    return Case(words, lambda ran: same_bits(native(written(dataset, kind)), native(want), kind) if good else [],
                0 if good else 3)


def gen(rng):
    """Made once more by one rank with the options of choice: the same bits, which do not depend on the options of this
    job."""
    kind = pick(rng, "stack", "matrices")
    words = ["gen", kind, "out.h5", "--seed", int(rng.integers(100)), "--distribution",
             pick(rng, "uniform", "normal", "integers")]
    names = ("rows", "inner", "columns") if kind == "matrices" else ("frames", "height", "width")
    sizes = [extent(rng, 40) if rng.random() > 0.03 else 0 for _ in names]
    for name, size in zip(names, sizes):
        words += [f"--{name}", size]
    type_ = pick(rng, *"u1 u2 i4 u8 f2 f4 f8".split(), BF16)
    if words[6] == "normal" and type_[0] != "f":
        type_ = "f4"
    words += ["--type", name_of(type_)] + ["--big-endian"] * (rng.random() < 0.3)
    plainly = [*words[:2], "again.h5", *words[3:], "-q", "--force", "--no-sync"]
    words += output(rng, ())[2:]
    shapes = {"A": (sizes[0], sizes[1]), "B": (sizes[1], sizes[2])} if kind == "matrices" else {"images": tuple(sizes)}

    def faults(ran):
        import gm
        again = gm.run(plainly)
        if again.code:
            return [str(again)]
        wrong = []
        for name, dims in shapes.items():
            got = written(name, type_)
            if got.shape != dims or native(got).dtype != array_type(type_):
                wrong += [f"{name} is {got.dtype} {got.shape}"]
            wrong += same_bits(got, read("again.h5", name))
            if got.size > 50 and words[6] != "integers" and len(np.unique(native(got))) < 3:
                wrong.append(f"{name} is not random")
        return wrong
    return Case(words, faults)


def compared(x, y):
    """The five numbers, in long double."""
    wide = [v.astype("g").ravel() for v in (x, y)]
    equal = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
    with np.errstate(all="ignore"):
        far = np.where(equal, 0, np.abs(wide[0] - wide[1]))
        ratio = np.where(wide[1] == 0, far, far / np.abs(wide[1]))
    far, ratio = (np.where(equal, 0, np.where(np.isnan(e), np.inf, e)) for e in (far, ratio))
    return [x.size, int(np.sum(~equal)), ratio.max(initial=0), ratio.mean() if x.size else 0, far.max(initial=0)]


def compare(rng):
    kinds = [pick(rng, *"u1 u2 i2 i4 u8 i8 f2 f4 f8".split(), BF16) for _ in "xy"]
    dims = shape(rng, pick(rng, 300, 20000))
    x = numbers(rng, dims, kinds[0])
    y = x
    if rng.random() < 0.6 and x.size:
        y = np.where(rng.random(dims) < 0.1, numbers(rng, dims, kinds[0]), x)
    with np.errstate(all="ignore"):
        kinds[1] = pick(rng, kinds[1], kinds[0], kinds[0])
        y = cast(y, kinds[1])
    (first, x), (second, y) = put(rng, x, "x", True, kinds[0]), put(rng, y, "y", kind=kinds[1])
    want = compared(native(x), native(y))

    def faults(ran):
        said = dict(line.split(" ", 1) for line in ran.out.splitlines())
        names = ["elements", "differing", "max_relative_error", "mean_relative_error", "max_absolute_error"]
        return [f"{name} is {said.get(name)}, expected {value}" for name,
                value in zip(names, want) if name not in said
                or not (float(said[name]) == float(value) or abs(float(said[name]) - value) <= 1e-13 * abs(value))]
    return Case(["compare", first, second], faults, int(want[1] > 0))
