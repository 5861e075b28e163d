"""The statistics of an array: integers by Python's integers, floats by exact or extended sums. For the tests of reduce
and normalize."""
import math
from fractions import Fraction

import numpy as np

NAMES = "count nan min max sum sumsq mean var std norm argmin argmax".split()


def segments(x, axis):
    """The array as [results][n], and the shape of the results. axis: as --axis has it."""
    if axis == "all":
        return x.reshape(1, -1), ()
    if axis == "frame":
        return x.reshape(x.shape[0], math.prod(x.shape[1:])), x.shape[:1]
    moved = np.moveaxis(x, {"pixel": 0, "vector": x.ndim - 1}.get(axis, axis if isinstance(axis, int) else None), -1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1]), moved.shape[:-1]


def root(ratio):
    """The float64 nearest to the square root of a Fraction: of two neighbours, by exact comparison."""
    if ratio == 0:
        return 0.0
    shift = 140 - (ratio.numerator.bit_length() - ratio.denominator.bit_length())
    shift += shift % 2
    scaled = ratio * 2**shift if shift >= 0 else ratio / 2**-shift
    floor = math.isqrt(scaled.numerator // scaled.denominator)
    # between floor and floor + 1: rounds as they do
    exact = Fraction(2 * floor + (0 if floor * floor == scaled else 1), 2)
    return float(exact / Fraction(2) ** (shift // 2))


def number(text):
    return float(text) if text == "-0" or any(c in text for c in ".enif") else int(text)


def printed(text):
    """The statistics that reduce prints, without those that are "none"."""
    return {name: number(value) for name, value in (line.split() for line in text.splitlines()) if value != "none"}


def type_of(name, dtype, n):
    """The type of a dataset of a statistic of n elements each."""
    want = {"count": "u8", "nan": "u8", "min": dtype.str[1:], "max": dtype.str[1:], "argmin": "i8",
            "argmax": "i8"}.get(name, "f8")
    if name in ("sum", "sumsq") and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        most = n * max(abs(int(limits.min)), int(limits.max)) ** (2 if name == "sumsq" else 1)
        if name == "sumsq" or dtype.kind == "u":
            want = "u8" if most < 2**64 else "f8"
        else:
            want = "i8" if most <= 2**63 else "f8"
    return np.dtype(want)


def rounded(value, dtype, exact):
    """Integers that are stored as float64: the exact number where the stored one is nearest to it."""
    return exact if dtype.kind == "f" and isinstance(exact, int) and value == float(exact) else value


def of_integers(row):
    values = [int(v) for v in row]
    n, total, squares = len(values), sum(values), sum(v * v for v in values)
    if n == 0:
        return {"count": 0, "nan": 0, "sum": 0, "sumsq": 0, "mean": math.nan, "var": math.nan, "std": math.nan,
                "norm": 0.0, "argmin": -1, "argmax": -1}
    spread = Fraction(n * squares - total * total, n * n)
    return {"count": n, "nan": 0, "min": min(values), "max": max(values), "sum": total, "sumsq": squares,
            "mean": float(Fraction(total, n)), "var": float(spread), "std": root(spread),
            "norm": root(Fraction(squares)), "argmin": int(np.argmin(row)), "argmax": int(np.argmax(row))}


def of_floats(row, propagate=False):
    """sum, sumsq, mean, var: (value, allowed error); the rest must be met."""
    nan = np.isnan(row)
    if propagate and nan.any():
        first = int(np.argmax(nan))
        return dict.fromkeys("min max sum sumsq mean var std norm".split(),
                             math.nan) | {"count": len(row), "nan": int(nan.sum()), "argmin": first, "argmax": first}
    kept, places = row[~nan].astype("f8"), np.flatnonzero(~nan)
    result = {"count": len(kept), "nan": int(nan.sum())}
    if len(kept) == 0:
        return result | {"min": math.nan, "max": math.nan, "sum": 0.0, "sumsq": 0.0, "mean": math.nan, "var": math.nan,
                         "std": math.nan, "norm": 0.0, "argmin": -1, "argmax": -1}
    low, high = kept.min(), kept.max()
    result["argmin"], result["argmax"] = int(places[np.argmax(kept == low)]), int(places[np.argmax(kept == high)])
    result["min"] = -0.0 if low == 0 and np.signbit(kept[kept == 0]).any() else low
    result["max"] = 0.0 if high == 0 and not np.signbit(kept[kept == 0]).all() else high
    with np.errstate(all="ignore"):
        wide, n = kept.astype("g"), len(kept)
        if not np.isfinite(kept).all():
            total = float(wide.sum())
            return result | {"sum": total, "sumsq": math.inf, "mean": total, "var": math.nan, "std": math.nan,
                             "norm": math.inf}
        total, squares, size = math.fsum(kept), float((wide * wide).sum()), float(abs(wide).sum())
        mean = total / n
        var = float(((wide - wide.sum() / n) ** 2).sum() / n)
        tiny = 5e-324
        return result | {"sum": (total, 2**-46 * size + tiny), "sumsq": (squares, 2**-46 * squares + tiny),
                         "mean": (mean, 2**-46 * size / n + 2**-52 * abs(mean) + tiny),
                         "var": (var, 1e-12 * var + tiny)}


def of_many(rows):
    """The statistics of of_floats() that are elements, their places and numbers, for many short rows without infinities
    and zeros: arrays."""
    nan = np.isnan(rows)
    assert not np.isinf(rows).any() and rows.all()
    none, low, high = nan.all(axis=1), np.where(nan, np.inf, rows), np.where(nan, -np.inf, rows)
    return {"count": (~nan).sum(axis=1), "nan": nan.sum(axis=1), "min": np.where(none, np.nan, low.min(axis=1)),
            "max": np.where(none, np.nan, high.max(axis=1)), "argmin": np.where(none, -1, low.argmin(axis=1)),
            "argmax": np.where(none, -1, high.argmax(axis=1))}


def faults(got, row, propagate=False):
    """Lists the errors in statistics {name: number} of a row of elements."""
    wanted = of_floats(row, propagate) if row.dtype.kind == "f" else of_integers(row)
    wrong = []
    for name, value in got.items():
        if name in ("std", "norm") and name not in wanted: # of floats: the root of what was given
            source = got.get({"std": "var", "norm": "sumsq"}[name])
            good = source is None or value == math.sqrt(source)
        else:
            want = wanted[name]
            if isinstance(want, tuple):
                good = abs(value - want[0]) <= want[1]
            elif isinstance(want, float) and math.isnan(want):
                good = math.isnan(value)
            else:
                good = value == want and (want != 0 or math.copysign(1, value) == math.copysign(1, want))
        if not good:
            wrong.append(f"{name} is {value!r}, expected {wanted.get(name)!r}")
    return wrong
