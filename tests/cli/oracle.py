"""The expected results of normalize, by NumPy one operation at a time; statistics of integers by exact arithmetic.
Types are those of NumPy, or BF16 of bfloat.py."""
import decimal
import fractions
import math
import warnings

import numpy as np
from bfloat import array_type, cast

ROUND = {"nearest-even": np.rint, "half-up": lambda v: np.floor(v + v.dtype.type(0.5)), "truncate": np.trunc}


def is_float(dtype):
    return array_type(dtype).kind == "f"


def limits(dtype, target):
    """The default of --range."""
    if is_float(dtype):
        return (0, 1) if target else (-math.inf, math.inf)
    return np.iinfo(dtype).min, np.iinfo(dtype).max


SMALLEST = float(np.finfo(np.float32).tiny) # that is normal


def wants_wide(dtype):
    dtype = array_type(dtype)
    return dtype == "f8" or (dtype.kind in "iu" and dtype.itemsize >= 4)


def root(value):
    """The square root of a fraction, rounded once."""
    with decimal.localcontext() as context:
        context.prec = 60
        return float((decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)).sqrt())


def moments(part):
    """Mean and standard deviation of a part, 1-d."""
    if not is_float(part.dtype):
        numbers = [int(v) for v in part]
        n, total, squares = len(numbers), sum(numbers), sum(v * v for v in numbers)
        return float(fractions.Fraction(total, n)), root(fractions.Fraction(n * squares - total * total, n * n))
    numbers = [float(v) for v in part]
    if not all(map(math.isfinite, numbers)):
        both = math.inf in numbers and -math.inf in numbers
        return math.nan if both else math.fsum([v for v in numbers if not math.isfinite(v)]), math.nan
    mean = math.fsum(numbers) / len(numbers)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in numbers) / len(numbers))


def percentile(part, p):
    """numpy.percentile of a part, in float64. Of integers its rule in exact differences: numpy's own overflow. The
    element itself where the percentile is one: beside an infinity numpy makes it NaN."""
    values, at = np.sort(part, axis=None), (part.size - 1) * (p / 100)
    if is_float(part.dtype):
        return float(values[int(at)]) if at == int(at) else np.percentile(part.astype("f8"), p)
    below, t = math.floor(at), at - math.floor(at)
    low, high = int(values[below]), int(values[min(below + 1, part.size - 1)])
    if t == 0:
        return float(low)
    return float(low) + float(high - low) * t if t < 0.5 else float(high) - float(high - low) * (1 - t)


def ends_of(part, method, low, high):
    """The elements that become the ends of the range, and the span between them, rounded once."""
    if method == "percentile":
        with np.errstate(all="ignore"):
            ends = [float(percentile(part, p)) for p in (low, high)]
            return *ends, 0.0 if ends[0] == ends[1] else float(np.float64(ends[1]) - ends[0])
    least, most = part.min(), part.max()
    with np.errstate(all="ignore"):
        if not is_float(part.dtype):
            span = float(int(most) - int(least))
        else:
            span = float(np.float64(most) - np.float64(least)) if least != most else 0.0
    return float(least), float(most), span


def numbers_of(part, method, lo, hi, low, high):
    """The numbers to subtract and to multiply by, for the elements of a part, and the span; a factor of None:
    constant."""
    part = part[~np.isnan(part)] if is_float(part.dtype) else part
    if part.size == 0:
        return math.nan, 1.0, 0
    top = float(hi) - float(lo)
    if method == "zscore":
        sub, span = moments(part)
        top = 1.0
    else:
        sub, end, span = ends_of(part, method, low, high)
        if math.isinf(span) and math.isfinite(sub) and math.isfinite(end): # of halves
            return sub, top / 2 / (end / 2 - sub / 2), span
        if math.isinf(span) and math.isinf(sub):
            return 0.0, 0.0, 0
    if math.isnan(span):
        return math.nan, 1.0, 0
    return float(sub), (top / span if span else None), span


def scaled(p, subs, factors):
    """In float64 a difference that overflows is taken of halves."""
    v = (p - subs) * factors
    if p.dtype == np.float64:
        over = np.isinf(p - subs) & np.isfinite(p) & np.isfinite(subs)
        v = np.where(over, (p * 0.5 - subs * 0.5) * (factors * 2), v)
    return v


def store(v, out, lo, hi, marked, rounding, value):
    """Values to elements, and how many were clipped, NaN, marked."""
    real = v.dtype.type
    nan = np.isnan(v) & ~marked
    r = v if is_float(out) else ROUND[rounding](v)
    with np.errstate(over="ignore", invalid="ignore"):
        clipped = ((r < real(lo)) | (r > real(hi))) & ~marked
        if is_float(out):
            y = cast(r, out)
            clipped |= np.isfinite(r) & np.isinf(y) & ~marked
            y = np.where(r >= real(hi), cast(hi, out),
                         np.where(r <= real(lo), cast(lo, out), y)).astype(array_type(out))
            y[nan] = np.nan
        else:
            y = np.where((r > real(lo)) & (r < real(hi)), r, 0).astype(out)
            y[r >= real(hi)] = hi
            y[r <= real(lo)] = lo
            y[nan] = 0
        y[marked] = cast(value, out)
    return y, {"clipped": int(clipped.sum()), "nan": int(nan.sum()), "marked": int(marked.sum())}


def parts_of(x, per):
    """x as [parts][elements of a part], and the way back."""
    if per == "stack":
        return x.reshape(1, -1), lambda y: y.reshape(x.shape)
    rows = x.reshape(x.shape[0], -1) if x.ndim else x.reshape(1, 1)
    if per == "frame":
        return rows, lambda y: y.reshape(x.shape)
    return np.ascontiguousarray(rows.T), lambda y: np.ascontiguousarray(y.T).reshape(x.shape)


def normalize(x, method="minmax", per="stack", out=None, range=None, rounding="nearest-even", low=1.0, high=99.0,
              sub=0.0, factor=1.0):
    """The output and the counts."""
    x = np.asarray(x)
    x = x.astype(x.dtype.newbyteorder("="))
    out = out or ("f4" if method == "zscore" and not is_float(x.dtype) else x.dtype)
    target = method in ("minmax", "percentile")
    lo, hi = range or limits(out, target)
    real = np.dtype("f8" if wants_wide(x.dtype) or wants_wide(out) else "f4").type
    if target and 0 < hi - lo < SMALLEST * 2**24:
        real = np.float64
    parts, back = parts_of(x, per)
    scales = [(sub, factor, 0) if method == "scale" else numbers_of(part, method, lo, hi, low, high) for part in parts]
    with np.errstate(all="ignore"):
        narrow = np.isinf(np.array([math.nan if f is None else f for s, f, span in scales]).astype(real))[:, None]
        if target and any(math.isfinite(span) and np.isinf(np.float32(span)) for s, f, span in scales):
            real = np.float64 # wider than float32 goes
        if target and any(math.isfinite(span) and f is not None and 0 < abs(f) < SMALLEST for s, f, span in scales):
            real = np.float64 # a factor of which float32 has not all digits
        subs = np.array([s for s, f, span in scales]).astype(real)[:, None]
        factors = np.array([math.nan if f is None else f for s, f, span in scales]).astype(real)[:, None]
        factors[narrow] = np.nan
        p = parts.astype(real)
        v = scaled(p, subs, factors)
        if target and lo != 0:
            v = v + real(lo)
    marked = np.isnan(factors) & ~np.isnan(p)
    y, counts = store(v, out, lo, hi, marked, rounding, min(max(0, lo), hi) if method == "zscore" else lo)
    return back(y), counts


def flatfield(x, flat, dark=None, out=None, log=False):
    out = out or ("f4" if not is_float(x.dtype) else x.dtype)
    real = np.dtype("f8" if wants_wide(x.dtype) or wants_wide(out) else "f4").type
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore") # of no elements but NaN
        mean = [np.nanmean(f.reshape((-1,) + x.shape[1:]).astype("f8"), axis=0)
                if f is not None else np.zeros(x.shape[1:]) for f in (flat, dark)]
        span = mean[0] - mean[1]
        gain = np.where(span == 0, np.nan, np.where(np.isnan(span), 1, 1 / span)).astype(real)
        p = x.astype(x.dtype.newbyteorder("=")).astype(real)
        v = (p - np.where(np.isnan(span), np.nan, mean[1]).astype(real)) * gain
        if log:
            v = (-np.log(v.astype("f8"))).astype(real)
    marked = np.broadcast_to(np.isnan(gain), x.shape) & ~np.isnan(p)
    lo, hi = limits(out, False)
    return store(v, out, lo, hi, marked, "nearest-even", 0)
