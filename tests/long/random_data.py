"""Random inputs for random_jobs.t: elements of every kind, selections, files of every layout. All from the generator
that is given."""
import os

import corpus
from bfloat import BF16, cast, narrowed, value
from gm import h5py, np

GZIP = dict(compression="gzip", compression_opts=1)


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def name_of(kind):
    """As the command line has it: f4 is f32."""
    if kind == BF16:
        return "bf16"
    kind = np.dtype(kind)
    return f"{kind.kind}{8 * kind.itemsize}"


def native(x):
    return x.astype(x.dtype.newbyteorder("="))


def with_order(rng, kind):
    return np.dtype(kind).newbyteorder(pick(rng, "<", "<", ">"))


def whole_numbers(rng, shape, kind):
    limits, how = np.iinfo(kind), int(rng.integers(5))
    if how == 0:
        return np.full(shape, rng.integers(limits.min, limits.max, dtype=kind, endpoint=True), kind)
    if how == 1: # the ends
        return rng.choice(np.array([limits.min, limits.min + 1, limits.max - 1, limits.max], kind), shape)
    low, high = (limits.min, limits.max) if how == 2 else (max(limits.min, -9), 100)
    return rng.integers(low, high, shape, np.dtype(kind), endpoint=True)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1e-310, 1e-42, 65504.0, 1e30, -1e30]


def real_numbers(rng, shape, kind, finite=False):
    """Of ordinary size; some of them NaN, infinite, -0, subnormal or large, unless finite."""
    how = int(rng.integers(8))
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3) + rng.integers(-20, 21)
    if how == 0:
        x = np.full(shape, x.flat[0] if x.size else 0)
    elif how == 1:
        x = np.round(x)
    elif how == 2 and not finite:
        x = np.full(shape, np.nan)
    if not finite and how > 4 and x.size:
        chosen = SPECIAL[:1] if how == 5 else SPECIAL[3:] if how == 6 else SPECIAL
        x = np.where(rng.random(shape) < pick(rng, 0.02, 0.3), rng.choice(chosen, shape), x)
    with np.errstate(over="ignore"):
        return cast(x, kind)


def numbers(rng, shape, kind, finite=False):
    return real_numbers(rng, shape, kind, finite) if kind[0] == "f" else whole_numbers(rng, shape, kind)


def any_bits(rng, shape, kind):
    stored = np.dtype("u2" if kind == BF16 else kind)
    bits = np.frombuffer(rng.bytes(int(np.prod(shape)) * stored.itemsize), stored).reshape(shape)
    return value(bits) if kind == BF16 else bits


def extent(rng, most):
    """Often small, at times none or all."""
    return pick(rng, 1, 2, int(rng.integers(1, 8)), int(rng.integers(1, most + 1)), int(rng.integers(1, most + 1)),
                most)


def shape(rng, most, ranks=(0, 1, 1, 2, 2, 3, 3, 3, 4, 5)):
    """Extents whose product is `most` at the most."""
    extents, left = [], most
    for _ in range(pick(rng, *ranks)):
        extents.append(extent(rng, max(1, min(left, 400 if rng.random() < 0.9 else left))))
        left //= extents[-1]
    rng.shuffle(extents)
    if extents and rng.random() < 0.05:
        extents[int(rng.integers(len(extents)))] = 0
    return tuple(extents)


# --- Selections ---

def embed(rng, x):
    """A larger array and the text and value of the selection that gives x. The elements around it are like its own."""
    items, values, full = [], [], []
    for n in x.shape:
        while len(full) < 5 and rng.random() < 0.15: # a dimension of which one index is taken
            k = int(rng.integers(1, 5))
            at = int(rng.integers(k))
            full.append(k)
            items.append(str(at) if rng.random() < 0.7 else str(at - k))
            values.append(at)
        step, before, after = pick(rng, 1, 1, 2, 3), pick(rng, 0, 0, 1, 5), pick(rng, 0, 0, 2)
        end = before + (n - 1) * step + 1 if n else before
        full.append(max(end + after, 1) if n == 0 else end + after)
        items.append(f"{before}:{end}" + (f":{step}" if step > 1 else "") if (before, after, step) != (0, 0, 1)
                     or n == 0 else ":")
        values.append(slice(before, end, step))
    while items and items[-1] == ":":
        items.pop()
    if not items or np.prod(full) > 30 * max(x.size, 100):
        return x, "", ()
    y = rng.choice(x.ravel(), full) if x.size else np.zeros(full, x.dtype)
    y[tuple(values)] = x
    return y.astype(x.dtype), "[" + ",".join(items) + "]", tuple(values)


# --- Layouts ---

def chunk_of(rng, x):
    """Any chunks, not too many of them."""
    for _ in range(9):
        chunks = tuple(int(rng.integers(1, n + 1)) if rng.random() < 0.6 else n for n in x.shape)
        if np.prod([-(-n // c) for n, c in zip(x.shape, chunks)]) <= 600:
            return chunks
    return x.shape


def filters(rng):
    return pick(rng, {}, GZIP, dict(shuffle=True, **GZIP), dict(fletcher32=True), dict(shuffle=True), corpus.EVERYTHING)


def chunks(x, rng, extendible=False, **storage):
    return corpus.plain(x, rng, userblock=pick(rng, 0, 0, 512), libver=pick(rng, None, "latest"),
                        chunks=chunk_of(rng, x), maxshape=(None,) * x.ndim if extendible else None,
                        **(storage or filters(rng)))


def contiguous(x, rng):
    return corpus.plain(x, rng, userblock=pick(rng, 0, 0, 512, 2048))


def compact(x, rng):
    if x.nbytes > 8000:
        return contiguous(x, rng)
    properties = corpus.properties_of()
    properties.set_layout(h5py.h5d.COMPACT)
    with h5py.File("d.h5", "w") as f:
        corpus.create(f, x, properties)
    return "d.h5:/d", x


def in_wider(x, rng):
    """Each element in more bytes than it has."""
    made = h5py.h5t.py_create(x.dtype).copy()
    made.set_size(x.dtype.itemsize * 2)
    if x.dtype.kind in "iu":
        made.set_offset(int(rng.integers(8 * x.dtype.itemsize + 1)))
    return corpus.odd(x, made, foreign_filters(x, rng)), x


def in_bits(x, rng):
    """Integers in so few bits that no smaller element type holds them, at any place in their bytes."""
    bits = 8 * x.dtype.itemsize
    needed = max(int(v).bit_length() if v >= 0 else (~int(v)).bit_length()
                 for v in (x.min(), x.max())) + (x.dtype.kind == "i")
    made = h5py.h5t.py_create(x.dtype).copy()
    made.set_precision(int(rng.integers(max(needed, bits // 2 + (bits > 8)), bits + 1)))
    made.set_offset(int(rng.integers(bits - made.get_precision() + 1)))
    return corpus.odd(x, made, foreign_filters(x, rng)), x


def foreign_filters(x, rng):
    """None, or chunks that may be packed as libhdf5 alone unpacks them."""
    if not x.ndim or rng.random() < 0.4:
        return None
    properties = corpus.properties_of(chunk_of(rng, x))
    if rng.random() < 0.6:
        properties.set_filter(h5py.h5z.FILTER_NBIT)
    if rng.random() < 0.5:
        properties.set_deflate(1)
    return properties


def is_read(name, held, is_bf16):
    """Does libhdf5 read that? Otherwise the file is not what its maker meant. It converts bfloat16, and keeps all but
    which NaN it was."""
    path, dataset = name.split(":", 1)
    read = np.empty(held.shape, held.dtype)
    try:
        with h5py.File(path, "r") as f:
            f[dataset].id.read(h5py.h5s.ALL, h5py.h5s.ALL, read, h5py.h5t.py_create(held.dtype))
    except OSError:
        return False
    return read.tobytes() == held.tobytes() if not is_bf16 else np.array_equal(read, held, equal_nan=True)


def made(way, x, rng, is_bf16=False):
    try:
        with narrowed(is_bf16):
            name, held = way(x, rng)
        good = is_read(name, held, is_bf16)
    except ValueError: # a chunk that h5py does not take
        good = False
    if good:
        return name, held
    with narrowed(is_bf16):
        return contiguous(x, rng)


def stored(rng, x, folder, external=False, is_bf16=False):
    """Writes x, in any layout, to files in a folder. Returns the name of the dataset and what it holds."""
    ways = [contiguous, contiguous, compact]
    if x.ndim and x.size:
        ways += [chunks, chunks, chunks, lambda y, r: chunks(y, r, True), corpus.linked]
    if x.size > 11 and x.ndim:
        ways += [corpus.early, corpus.holes, corpus.resized, *[corpus.masked] * (not is_bf16), lambda y,
                 r: corpus.holes(y, r, **corpus.EVERYTHING)]
        if x.dtype.kind in "iu":
            ways += [in_wider, in_bits, lambda y, r: chunks(y, r, scaleoffset=0)]
        elif not is_bf16 and x.dtype.itemsize > 2: # float16 in 4 bytes is read as float32
            ways += [in_wider]
        if max(x.shape) >= 4:
            ways += [corpus.virtual, lambda y, r: corpus.virtual(y, r, pick(r, "interleaved", "gaps")),
                     corpus.virtual_twice]
        if x.shape[0] >= 3:
            ways += [corpus.virtual_rows, lambda y, r: corpus.virtual_rows(y, r, 7, True)]
    way = pick(rng, *ways)
    # its files are looked for in the working folder
    if external and not is_bf16 and x.size > 11 and rng.random() < 0.08:
        return made(lambda y, r: corpus.external(y, r, pick(r, 1, 3)), x, rng)
    os.mkdir(folder)
    os.chdir(folder)
    try:
        name, held = made(way, np.ascontiguousarray(x) if x.ndim else x, rng, is_bf16)
    finally:
        os.chdir("..")
    return f"{folder}/{name}", held


def put(rng, x, folder, external=False, kind=None):
    """An input: how the command line names it, and its elements, which the layout may have changed (fill values). kind:
    that of x, if it is BF16."""
    x = np.asarray(x).astype(with_order(rng, x.dtype))
    full, text, values = embed(rng, x) if rng.random() < 0.5 else (x, "", ())
    name, held = stored(rng, full, folder, external, kind == BF16)
    return name + text, np.asarray(held[values] if text else held)
