"""Random products for random_jobs.t, as the cases of random_cases.py: of vectors, of stacks, of flattened data, in the
order of columns."""
from bfloat import BF16, array_type, cast, largest
from gm import np, shortened
from random_cases import Case, bound_of, differences, operand, output, product_of, same, written
from random_data import extent, name_of, native, pick, put


def split(rng, n):
    """Extents whose product is n."""
    for factor in (2, 3, 5):
        if n % factor == 0 and n > factor and rng.random() < 0.5:
            return factor, n // factor
    return pick(rng, (n,), (1, n), (n, 1))


def matrices(x, role, how, turned):
    """An operand, as it is stored, as [frames][rows][columns] of the product."""
    if x.ndim == 1:
        return x[None, None] if role == "a" else x[None, :, None]
    x = x.reshape(1, x.shape[0], -1) if how == "flatten" else x if x.ndim == 3 else x[None]
    return x.swapaxes(1, 2) if turned else x


def near(got, want, out, error):
    """Equal, or within the error and the rounding to the type of C; anything goes near its overflow."""
    unit = {"f2": 2.0**-11, BF16: 2.0**-8, "f4": 2.0**-24, "f8": 0}[out]
    tiny = {"f2": 2.0**-25, BF16: 2.0**-134, "f4": 2.0**-150, "f8": 0}[out]
    alike = (got == cast(want, out)) | (abs(got.astype("f8") - want) <= error + unit * (abs(want) + error) + tiny)
    return alike | ~(abs(want) + error < float(largest(out)))


def types(rng, kinds):
    """Words for the arithmetic and the type of C: words, precision, kind of C."""
    words, precision = [], "fp64" if any(kind == "f8" or kind[0] != "f" for kind in kinds) else "fp32"
    if rng.random() < 0.4:
        precision = pick(rng, "fp64", "fp32", *["int8"] * 3 * all(kind in ("u1", "i1") for kind in kinds))
        words += ["--precision", precision]
    out = {"fp64": "f8", "int8": "i4"}.get(precision, "f4")
    if rng.random() < 0.3:
        out = pick(rng, "f2", "f4", "f8", BF16)
        words += ["--type", name_of(out)]
    return words, precision, out


def product(rng):
    how, column = pick(rng, "vectors", "batch", "batch", "flatten", "matrices"), bool(rng.random() < 0.4)
    column |= how == "matrices"
    many = pick(rng, 0, 1, 2, 3, 7, 40, 300) if how == "batch" else None
    alone = pick(rng, "", "", "a", "b") # has the same matrix for all frames
    vector = pick(rng, "a", "b", "ab") if how == "vectors" else ""
    m, k, n = (0 if how != "flatten" and rng.random() < 0.03 else extent(rng, 9 if (many or 0) > 7 else 60)
               for _ in "mkn")
    m, n = 1 if "a" in vector else m, 1 if "b" in vector else n
    transpose, exact = pick(rng, "", "", "a", "b", "ab"), rng.random() < 0.7
    kinds = [pick(rng, *"u1 i1 u2 i4 f2 f4 f4 f8 f8".split(), BF16, *["u8", "i8"] * exact) for _ in "ab"]
    words, operands = [], []
    for role, rows, columns, kind in (("a", m, k, kinds[0]), ("b", k, n, kinds[1])):
        turned = column != (role in transpose)
        rows, columns = (columns, rows) if turned else (rows, columns)
        shape = (k,) if role in vector else (rows, *split(rng, columns)) if how == "flatten" else (rows, columns)
        shape = (many, *shape) if how == "batch" and role != alone else shape
        name, x = put(rng, operand(rng, shape, kind, exact, True), role, role == "a", kind)
        words.append(name)
        operands.append(matrices(native(x), role, how, turned))
    a, b = operands
    words += (["--" + how] if how in ("batch", "flatten") else []) + (["--transpose", transpose] if transpose else [])
    words += ["--order", "column"] * column
    more, precision, out = types(rng, kinds)
    words += more
    alpha, beta, c0 = pick(rng, 1, 1, 1, -1, 2.5, 0), 0, 0
    words += [f"--alpha={alpha}"] if alpha != 1 else []
    shape = tuple(size for size, role in (((n, "b"), (m, "a")) if column else ((m, "a"), (n, "b")))
                  if role not in vector)
    shape = (many, *shape) if how == "batch" else shape
    if rng.random() < 0.3:
        kind = pick(rng, "u1", "i4", "f2", "f4", "f8", BF16)
        given, c0 = put(rng, operand(rng, shape, kind, exact, True), "c0", kind=kind)
        beta, c0 = pick(rng, 1, 1, -2, 0.5, 0), native(c0).astype("f8")
        words += ["--add", given] + ([f"--beta={beta}"] if beta != 1 else [])
    words += ["--no-verify"] * (rng.random() < 0.1) + output(rng, shape, pick(rng, None, "group/y"))
    dataset = words[words.index("-o") + 1].partition(":")[2] or "C"

    def faults(ran):
        got = written(dataset, out)
        wide = [x.astype("f8") if precision in ("fp64", "int8") else shortened(x, precision) for x in (a, b)]
        pairs = [tuple(x[f % len(x)] for x in wide) for f in range(1 if many is None else many)]

        def in_file(frames):
            frames = np.array(frames).reshape(len(frames), m, n)
            return (frames.swapaxes(1, 2) if column else frames).reshape(shape)
        sums = in_file([product_of(*pair) for pair in pairs]) if alpha else np.zeros(shape)
        want = alpha * sums + (beta * c0 if beta else 0)
        if got.dtype != array_type(out) or got.shape != want.shape:
            return differences(got, cast(want, out), True)
        if out == "i4":
            return same(got, np.clip(np.rint(want), -2.0**31, 2.0**31 - 1).astype(out))
        if exact:
            return same(got, cast(want, out))
        error = abs(alpha) * in_file([bound_of(precision, *pair) for pair in pairs])
        error = error + 2.0**-52 * (abs(alpha * sums) + abs(want))
        return differences(got, cast(want, out), near(got, want, out, error))
    return Case(["matmul", *words], faults)
