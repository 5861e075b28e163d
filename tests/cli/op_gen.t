#!/usr/bin/env -S python3 -B
"""gen: the same bytes for any number of ranks, threads and any pieces; shapes, types, layouts, distributions; what it
refuses."""
import os

import gm
from gm import h5py, np

TYPES = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"]
M = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits(seed, dataset, shape):
    """The numbers of base/random.h, made again."""
    with np.errstate(over="ignore"):
        step = np.uint64(STEP)
        key = mix(mix(np.array([seed], "u8") + step) + np.array([dataset + 1], "u8") * step)
        return mix(mix(key + np.arange(int(np.prod(shape)), dtype="u8") * step) + key).reshape(shape)


def uniform(b, name):
    size = np.dtype(name[0] + str(int(name[1:]) // 8)).itemsize
    if name[0] != "f":
        return (b >> np.uint64(64 - 8 * size)).astype(f"u{size}").view(f"{name[0]}{size}")
    significand = {2: 11, 4: 24, 8: 53}[size]
    return ((b >> np.uint64(64 - significand)).astype("f8") * 2.0**-significand).astype(f"f{size}")


def made(arguments, ranks=1, name="g.h5"):
    ran = gm.run(f"gen {arguments} --force --no-sync".replace("FILE", name), ranks)
    gm.ok(ran.code == 0 and not ran.out and not ran.errors, f"gen {arguments}, {ranks} ranks", ran)
    return ran.code == 0


def file_bits(name):
    with h5py.File(name, "r") as file:
        return [(key, file[key][()].tobytes()) for key in sorted(file)]


# Any ranks, pieces, threads: the same elements.
for what in ("matrices FILE --rows 211 --inner 307 --columns 97 --type f64",
             "stack FILE --frames 3 --height 127 --width 501 --big-endian",
             "matrices FILE --rows 1 --inner 100003 --columns 2 --distribution normal",
             "stack FILE --frames 40 --height 30 --width 20 --chunk 7,8,9 --deflate 2 --shuffle --type i32"):
    made(what)
    first = file_bits("g.h5")
    for ranks, more in ((1, "--threads 2 --piece 4K --depth 2"), (2, "--piece 10000"), (3, "--threads 2"),
                        (3, "--host-memory 3M --threads 1")):
        made(f"{what} {more}", ranks)
        gm.ok(file_bits("g.h5") == first, f"the same elements: {ranks} ranks {more}")

# With the same command line the whole file is the same.
made("stack FILE --size 60 --seed 3 --chunk 8,60,60 --deflate 1")
before = gm.state()
made("stack FILE --size 60 --seed 3 --chunk 8,60,60 --deflate 1", 3)
gm.ok(gm.state() == before, "the same file from 3 ranks", *gm.difference(before, gm.state()))

# Every type, both orders of bytes, against the definition.
for i, name in enumerate(TYPES):
    endian = "--big-endian" if i % 2 else ""
    made(f"matrices FILE --rows 31 --inner 17 --columns 40 --type {name} --seed {i} {endian}", 1 + i % 2)
    a, b = gm.read("g.h5", "/A"), gm.read("g.h5", "/B")
    with h5py.File("g.h5", "r") as file:
        order = file["A"].dtype.byteorder
    gm.ok(np.array_equal(a, uniform(bits(i, 0, (31, 17)), name))
          and np.array_equal(b, uniform(bits(i, 1, (17, 40)), name)), f"{name}: the elements of base/random.h")
    gm.ok((order == ">") == (bool(endian) and a.dtype.itemsize > 1), f"{name}: order of bytes {order}")

made("stack FILE --size 20 --distribution integers --type u8")
gm.ok(np.array_equal(gm.read("g.h5", "/images"),
                     ((bits(1, 0, (20, 20, 20)) >> np.uint64(32)) * np.uint64(10) >> np.uint64(32))), "integers")
made("matrices FILE --size 300 --distribution normal --type f64")
a = gm.read("g.h5", "/A").ravel()
u, v = ((bits(1, 0, a.size) >> np.uint64(11)).astype("f8").reshape(-1, 2) * 2.0**-53).T
want = np.sqrt(-2 * np.log(u + 2.0**-53))[:, None] * np.stack([np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)], 1)
gm.ok(np.allclose(a, want.ravel(), rtol=1e-12, atol=1e-12), "normal, by Box and Muller")

# Defaults, layout.
made("matrices FILE --size 5 --rows 2")
with h5py.File("g.h5", "r") as file:
    gm.ok(file["A"].shape == (2, 5) and file["B"].shape == (5, 5) and file["A"].dtype == "<f4"
          and file["A"].chunks is None, "matrices: f32, contiguous")
made("stack FILE --size 6 --width 4 --chunk 2,3,4 --deflate 5 --shuffle")
with h5py.File("g.h5", "r") as file:
    d = file["images"]
    gm.ok(d.shape == (6, 6, 4) and d.dtype == "<u2" and d.chunks == (2, 3, 4) and d.compression == "gzip"
          and d.compression_opts == 5 and d.shuffle, "stack: u16, chunks, filters")
    gm.ok(d.attrs["operation"] == "gen" and "--width 4" in d.attrs["command"], "provenance")
for extents in ("--rows 0 --inner 3 --columns 2", "--size 0"):
    made(f"matrices FILE {extents}", 2)
gm.ok(gm.read("g.h5", "/A").shape == (0, 0), "nothing is legal")

# Refusals leave no file.
os.remove("g.h5")
for why, code, pattern, arguments in (
        ("an option of the other kind", 2, "--rows.*stack", "stack g.h5 --size 4 --rows 2"),
        ("an option of the other kind", 2, "--width.*matrices", "matrices g.h5 --size 4 --width 2"),
        ("a missing extent", 2, "--inner", "matrices g.h5 --rows 4 --columns 2"),
        ("2^63 bytes", 2, "2\\^63", "stack g.h5 --size 2097152 --type u8"),
        ("64 bits and more", 2, "2\\^63", "matrices g.h5 --size 4000000000 --type f64"),
        ("an unknown type", 2, "--type", "stack g.h5 --size 4 --type f80"),
        ("too little memory", 5, "--host-memory", "stack g.h5 --size 400 --host-memory 4K --threads 1")):
    for ranks in (1, 3):
        gm.refused(f"refused: {why}, {ranks} ranks", f"gen {arguments}", code, pattern, ranks)
gm.done()
