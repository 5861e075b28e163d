"""Files of every layout, for tests of reading: each layout in several shapes and types, made by h5py, with what NumPy
says is in it.

files(small) gives them all; small ones are for valgrind. A maker writes one file into the working folder and returns
the name of its dataset on the command line and its elements. unreadable.py has the files that cannot be read."""
import collections
import functools
import os
import zlib

from gm import h5py, np

ORDERS = "<>"
TYPES = [order + kind for kind in ("u1", "i2", "f4", "u8", "f2", "i1", "f8", "u4", "i8", "u2", "i4")
         for order in ORDERS]
# More than a million elements each: what compare gives every one of 4 ranks and some of a fifth.
LARGE = [(97, 101, 113), (1031, 1033), (1100009,), (13, 17, 19, 11, 23), (1, 1100003), (29, 31, 37, 41), (1100003, 1),
         (1, 1048601, 1)]
SMALL = [(5, 7, 11), (13, 17), (101,), (2, 3, 5, 2, 3), (1, 101), (3, 5, 7, 2), (101, 1), (1, 97, 1)]

File = collections.namedtuple("File", "title make") # make(): name, elements


def numbers(rng, shape, kind):
    """Every value of an integer type, finite and other ones of a float."""
    kind = np.dtype(kind)
    if kind.kind == "f":
        values = rng.standard_normal(shape) * 100
        values.flat[3::1009] = np.nan
        values.flat[5::1013] = -np.inf
        values.flat[7::1019] = -0.0
        return values.astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind.newbyteorder("="), endpoint=True).astype(kind)


def compressible(rng, shape, kind):
    kind = np.dtype(kind)
    if kind.kind == "f":
        return np.round(rng.standard_normal(shape), 1).astype(kind)
    return (numbers(rng, shape, kind) & np.frombuffer(kind.itemsize * b"\3", kind)[0]).astype(kind)


# --- How a file is made: make(x) writes x into d.h5 and returns its name and what is to be read ---

def plain(x, rng, name="/d", userblock=0, libver=None, **storage):
    with h5py.File("d.h5", "w", userblock_size=userblock, libver=libver) as f:
        f.create_dataset(name, data=x, dtype=x.dtype, **storage)
    return "d.h5:" + name, x


def create(f, x, properties, name="d", write=True):
    """A dataset by its properties: for what create_dataset has no words."""
    data = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(x.dtype),
                                        h5py.h5s.create_simple(x.shape), properties))
    if write:
        data[...] = x
    return data


def properties_of(chunks=None, fill=None):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        properties.set_chunk(chunks)
    if fill is not None:
        properties.set_fill_value(fill)
    return properties


def compact(x, rng):
    x = x[tuple(slice(0, max(1, int(8000 ** (1 / x.ndim)))) for _ in x.shape)]
    properties = properties_of()
    properties.set_layout(h5py.h5d.COMPACT)
    with h5py.File("d.h5", "w") as f:
        create(f, x, properties)
    return "d.h5:/d", x


def never_written(x, rng):
    """Contiguous, no place in the file: its fill value everywhere."""
    fill = x.flat[11]
    with h5py.File("d.h5", "w", userblock_size=512) as f:
        f.create_dataset("d", x.shape, x.dtype, fillvalue=fill)
    return "d.h5:/d", np.full_like(x, fill)


def linked(x, rng):
    """By a soft link to an external link into a group of a file in a folder."""
    os.makedirs("folder", exist_ok=True)
    with h5py.File("folder/data file.h5", "w", userblock_size=1024) as f:
        f.create_dataset("größe/a:b", data=x)
    with h5py.File("d.h5", "w") as f:
        f["outside"] = h5py.ExternalLink("folder/data file.h5", "/größe/a:b")
        f["d"] = h5py.SoftLink("/outside")
    return "d.h5:/d", x


def external(x, rng, pieces=1):
    """Bytes in files of their own, each with an offset; the borders do not fall on elements."""
    data, files, at = x.tobytes(), [], 0
    for i in range(pieces):
        end = len(data) if i == pieces - 1 else at + len(data) // pieces + 1
        with open(f"raw{i}.bin", "wb") as out:
            out.write(b"\xa5" * (i * 13) + data[at:end])
        files.append((f"raw{i}.bin", i * 13, end - at))
        at = end
    with h5py.File("d.h5", "w") as f:
        f.create_dataset("d", x.shape, x.dtype, external=files)
    return "d.h5:/d", x


def chunk(shape, how):
    if how == "blocks": # none of them divides the shape
        return tuple(n // 3 + 1 for n in shape)
    if how == "many":
        return tuple(max(1, n // 9) if n < 3000 else 20011 for n in shape)
    if how == "rows":
        return (max(1, shape[0] // 50),) + shape[1:]
    if how == "beyond":
        return tuple(n + 3 for n in shape)
    return shape


def chunked(x, rng, how="blocks", unlimited=0, libver=None, userblock=0, **storage):
    chunks = chunk(x.shape, how)
    maxshape = tuple(None if d < unlimited else max(n, c) for d, (n, c) in enumerate(zip(x.shape, chunks)))
    return plain(x, rng, userblock=userblock, libver=libver, chunks=chunks, maxshape=maxshape, **storage)


def early(x, rng):
    """All chunks allocated at once, none of them by an index (libver latest), not filled before they are written."""
    properties = properties_of(chunk(x.shape, "blocks"))
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File("d.h5", "w", libver="latest") as f:
        create(f, x, properties)
    return "d.h5:/d", x


def holes(x, rng, **storage):
    """Only some chunks are written, the others read as the fill value."""
    fill, want, chunks = x.flat[11], np.full_like(x, x.flat[11]), chunk(x.shape, "many")
    with h5py.File("d.h5", "w") as f:
        data = f.create_dataset("d", x.shape, x.dtype, fillvalue=fill, chunks=chunks, **storage)
        for corner in np.ndindex(*(-(-n // c) for n, c in zip(x.shape, chunks))):
            if sum(corner) % 3 == 1:
                place = tuple(slice(i * c, (i + 1) * c) for i, c in zip(corner, chunks))
                data[place] = want[place] = x[place]
    return "d.h5:/d", want


def never_chunked(x, rng):
    with h5py.File("d.h5", "w") as f:
        f.create_dataset("d", x.shape, x.dtype, fillvalue=x.flat[11], chunks=chunk(x.shape, "blocks"),
                         compression="gzip")
    return "d.h5:/d", np.full_like(x, x.flat[11])


def resized(x, rng):
    """Written, made smaller, made larger again: what was cut off is the fill value, in the middle of chunks too."""
    fill, want = x.flat[11], np.full_like(x, x.flat[11])
    less = tuple(slice(0, max(1, 2 * n // 3)) for n in x.shape)
    want[less] = x[less]
    with h5py.File("d.h5", "w") as f:
        data = f.create_dataset("d", data=x, fillvalue=fill, chunks=chunk(x.shape, "many"), maxshape=(None,) * x.ndim,
                                compression="gzip")
        data.resize(tuple(s.stop for s in less))
        data.resize(x.shape)
    return "d.h5:/d", want


def masked(x, rng):
    """Chunks that the writer left some filters out of: of shuffle, deflate and fletcher32, bit by bit."""
    chunks, place_of = chunk(x.shape, "many"), lambda corner: tuple(slice(c, c + n) for c, n in zip(corner, chunks))
    with h5py.File("d.h5", "w") as f:
        data = f.create_dataset("d", data=x, chunks=chunks, shuffle=True, compression="gzip", fletcher32=True)
        corners = [data.id.get_chunk_info(i).chunk_offset for i in range(data.id.get_num_chunks())]
        for corner, mask in zip(corners, 100 * [7, 5, 4, 6, 0]):
            block = np.zeros(chunks, x.dtype)
            part = x[place_of(corner)]
            block[tuple(slice(0, n) for n in part.shape)] = part
            raw = block.tobytes()
            if not mask & 1: # shuffle: first all first bytes of elements, then all second ones
                raw = block.reshape(-1).view("u1").reshape(-1, x.dtype.itemsize).T.tobytes()
            if not mask & 2:
                raw = zlib.compress(raw, 1)
            if mask:
                data.id.write_direct_chunk(corner, raw, filter_mask=mask)
    return "d.h5:/d", x


def scaleoffset(x, rng):
    """Integers come back as they were; floats as what was kept of them."""
    with h5py.File("d.h5", "w") as f:
        data = f.create_dataset("d", data=x, chunks=chunk(x.shape, "many"), scaleoffset=2 if x.dtype.kind == "f" else 0)
        return "d.h5:/d", data[...]


def nbit(x, rng, bits=11, offset=3):
    """11 bits in the middle of two bytes, packed."""
    x = (x.astype("u8") % (1 << bits)).astype("<u2")
    kind = h5py.h5t.STD_U16LE.copy()
    kind.set_precision(bits)
    kind.set_offset(offset)
    properties = properties_of(chunk(x.shape, "many"))
    properties.set_filter(h5py.h5z.FILTER_NBIT)
    return odd(x, kind, properties), x


def odd(x, kind, properties=None):
    """x stored in a type of the file's own."""
    with h5py.File("d.h5", "w") as f:
        data = h5py.h5d.create(f.id, b"d", kind, h5py.h5s.create_simple(x.shape), properties)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(x), h5py.h5t.py_create(x.dtype))
    return "d.h5:/d"


def three_bytes(x, rng):
    """Big-endian integers of 24 bits."""
    kind = h5py.h5t.STD_I32BE.copy()
    kind.set_precision(24)
    kind.set_size(3)
    x = (x.astype("i8") % (1 << 23)).astype("i4") - (1 << 22)
    return odd(x, kind), x


def short_float(x, rng):
    """Floats of 16 bits that are neither float16 nor bfloat16: 6 bits of exponent and 9 of mantissa."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 9, 6, 0, 9)
    kind.set_ebias(31)
    kind.set_precision(16)
    kind.set_size(2)
    bits = (x.astype("u8") & 0xbfff).astype("u4") # no NaN and no infinity: libhdf5 keeps them, but not which NaN
    size = ((bits & 0x7fff) << 14).view("f4") * np.float32(2.0**(127 - 31))
    want = np.where(bits & 0x8000, -size, size)
    return odd(want, kind, properties_of(chunk(x.shape, "blocks"))), want


def whole(x):
    return tuple(slice(0, n) for n in x.shape)


def virtual(x, rng, how="rows"):
    layout, d = h5py.VirtualLayout(x.shape, x.dtype), int(np.argmax(x.shape))
    want, borders = x.copy(), [0, x.shape[d] // 4, x.shape[d] // 2 + 1, x.shape[d]]
    for i, (a, b) in enumerate(zip(borders, borders[1:])):
        place = tuple(slice(a, b) if e == d else slice(0, n) for e, n in enumerate(x.shape))
        if how == "interleaved":
            place = tuple(slice(i, None, 3) if e == d else slice(0, n) for e, n in enumerate(x.shape))
        if how == "gaps" and i == 1: # nothing is mapped here
            want[place] = x.flat[11]
            continue
        part = x[place]
        if how == "types": # the parts are wider, in the other order of bytes
            part = part.astype(part.dtype.newbyteorder().str[:2] + "8")
        with h5py.File(f"part {i}.h5", "w", userblock_size=512 * (i % 2)) as f:
            storage = dict(chunks=chunk(part.shape, "blocks"), compression="gzip", shuffle=True) if i else {}
            f.create_dataset("p", data=part, **storage)
        layout[place] = h5py.VirtualSource(f"part {i}.h5", "p", part.shape, part.dtype)
    with h5py.File("d.h5", "w", libver="latest") as f:
        f.create_virtual_dataset("d", layout, fillvalue=x.flat[11])
    return "d.h5:/d", want


def virtual_rows(x, rng, pieces=13, shuffled=False):
    """Whole rows of three contiguous parts, dealt to them in turn as the program's own parts have it, or to places in
    any order."""
    layout, borders = h5py.VirtualLayout(x.shape, x.dtype), [len(x) * i // pieces for i in range(pieces + 1)]
    places = [(a, b) for a, b in zip(borders, borders[1:]) if a < b]
    if shuffled:
        rng.shuffle(places)
    for i in range(3):
        mine = places[i::3]
        part = np.concatenate([x[a:b] for a, b in mine] + [x[:0]]).astype(x.dtype) # concatenate makes it native
        with h5py.File(f"part {i}.h5", "w", userblock_size=512 * (i % 2)) as f:
            f.create_dataset("p", data=part)
        source, at = h5py.VirtualSource(f"part {i}.h5", "p", part.shape, part.dtype), 0
        for a, b in mine:
            layout[a:b], at = source[at:at + b - a], at + b - a
    with h5py.File("d.h5", "w", libver="latest") as f:
        f.create_virtual_dataset("d", layout, fillvalue=x.flat[11])
    return "d.h5:/d", x


def virtual_twice(x, rng):
    """Virtual over a virtual dataset of the same file: a part of its part."""
    virtual(x, rng)
    layout = h5py.VirtualLayout(x.shape, x.dtype)
    layout[whole(x)] = h5py.VirtualSource(".", "d", x.shape, x.dtype)
    with h5py.File("d.h5", "r+", libver="latest") as f:
        f.create_virtual_dataset("over", layout)
    return "d.h5:/over", x


# --- All of them: title, maker, its options, kinds of types that it takes ---

GZIP = dict(compression="gzip", compression_opts=1)
EVERYTHING = dict(shuffle=True, compression="gzip", compression_opts=6, fletcher32=True)
LAYOUTS = [("compact", compact, {}, "uif"), ("contiguous", plain, {}, "uif"),
           ("contiguous behind a user block", plain, dict(userblock=2048), "uif"),
           ("contiguous, never written", never_written, {}, "uif"), ("behind links", linked, {}, "uif"),
           ("external", external, {}, "uif"), ("external in 5 files", external, dict(pieces=5), "uif"),
           ("chunks", chunked, {}, "uif"),
           ("chunks behind a user block", chunked, dict(how="many", userblock=512), "uif"),
           ("a chunk with all", chunked, dict(how="whole", libver="latest"), "uif"),
           ("a chunk larger than all, everything", chunked, dict(how="beyond", **EVERYTHING), "uif"),
           ("chunks, libver latest", chunked, dict(how="many", libver="latest"), "uif"),
           ("chunks allocated early, libver latest", early, {}, "uif"),
           ("extendible, libver latest", chunked, dict(how="rows", unlimited=1, libver="latest", **GZIP), "uif"),
           ("extendible in all dimensions, libver latest", chunked,
            dict(how="many", unlimited=9, libver="latest", shuffle=True, **GZIP), "uif"),
           ("extendible", chunked, dict(how="many", unlimited=1), "uif"), ("resized", resized, {}, "uif"),
           ("deflate", chunked, dict(how="rows", **GZIP), "uif"),
           ("shuffle", chunked, dict(how="many", shuffle=True), "uif"),
           ("shuffle+deflate", chunked, dict(shuffle=True, **GZIP), "uif"),
           ("fletcher32", chunked, dict(how="many", fletcher32=True), "uif"),
           ("shuffle+deflate+fletcher32", chunked, dict(how="many", userblock=4096, **EVERYTHING), "uif"),
           ("filter masks", masked, {}, "uif"), ("chunks not written", holes, {}, "uif"),
           ("chunks not written, everything", holes, EVERYTHING, "uif"), ("no chunk written", never_chunked, {}, "uif"),
           ("scale-offset", scaleoffset, {}, "ui"), ("scale-offset of floats", scaleoffset, {}, "f"),
           ("nbit", nbit, {}, "u"), ("integers of 24 bits", three_bytes, {}, "i"),
           ("floats of 16 bits", short_float, {}, "u"), ("virtual", virtual, {}, "uif"),
           ("virtual, interleaved", virtual, dict(how="interleaved"), "uif"),
           ("virtual with a gap", virtual, dict(how="gaps"), "uif"),
           ("virtual over parts of another type", virtual, dict(how="types"), "ui"),
           ("virtual by rows", virtual_rows, {}, "uif"),
           ("virtual by rows, shuffled", virtual_rows, dict(pieces=97, shuffled=True), "uif"),
           ("virtual over virtual", virtual_twice, {}, "uif"),]
ODD_SHAPES = [((), {}), ((0,), {}), ((1,), {}), ((4, 0, 3), {}), ((0, 5), dict(chunks=(2, 5), maxshape=(None, 5))),
              ((1, 1, 1, 1, 1), {}), ((3, 2), dict(chunks=(3, 2), **EVERYTHING)),
              ((7, 1, 2), dict(chunks=(1, 1, 1), fletcher32=True))]


def make_file(number, title, make, options, kind, shape):
    rng = np.random.default_rng([1, number])
    x = (compressible if number % 2 else numbers)(rng, shape, kind)
    if title.startswith("scale"):
        x = (rng.integers(-100, 100, shape) % 120).astype(kind)
    return make(x, rng, **options)


def file_of(number, title, make, options, kind, shape):
    return File(f"{title}: {kind} {'x'.join(map(str, shape)) or 'scalar'}",
                functools.partial(make_file, number, title, make, options, kind, shape))


def files(small=False, each=2):
    """A list of File: every layout `each` times, in turn through types, orders of bytes and shapes."""
    shapes, made, n, turn = SMALL if small else LARGE, [], 0, {}
    for i, (title, make, options, kinds) in enumerate(LAYOUTS):
        types = [t for t in TYPES if t[1] in kinds]
        for j in range(each):
            turn[kinds] = turn.get(kinds, -1) + 1
            made.append(file_of(n, title, make, options, types[turn[kinds] % len(types)],
                                shapes[(i + 3 * j) % len(shapes)]))
            n += 1
    for i, (shape, storage) in enumerate(ODD_SHAPES):
        made.append(file_of(n + i, "odd shape", plain, storage, TYPES[7 * i % len(TYPES)], shape))
    return made
