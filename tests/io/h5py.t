#!/bin/sh
# Files as h5py makes them, read by io_cat and compared with what NumPy selects: types, orders of bytes, layouts,
# shapes, selections.
for python in "$PYTHON" /usr/bin/python3 python3; do
    if [ -n "$python" ] && "$python" -c 'import h5py, numpy' 2>/dev/null; then
        found=$python
        break
    fi
done
if [ -z "$found" ]; then
    echo '1..0 # SKIP no h5py'
    exit 0
fi
cat=${abs_top_builddir:-$(dirname "$0")/../..}/tests/io/cat
folder=$(mktemp -d "${TMPDIR:-/tmp}/io_h5py.XXXXXX") || exit 99
trap 'rm -rf "$folder"' EXIT
"$found" - "$cat" "$folder" <<'PYTHON'
import os, random, subprocess, sys, zlib
import h5py, numpy as np

cat, folder = sys.argv[1:]
random.seed(1)
rng = np.random.default_rng(1)
tests = failed = 0

def ok(good, what, note=""):
    global tests, failed
    tests += 1
    failed += not good
    print(("ok" if good else "not ok"), tests, "-", what.replace("#", "no. "))
    if not good and note:
        print("#", note)
    sys.stdout.flush()

def read(text, rows, cols, threads=1):
    """The output of io_cat: an array, and how it was read."""
    done = subprocess.run([cat, text, str(rows), str(cols), str(threads)], capture_output=True)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.decode().strip()}")
    head, _, data = done.stdout.partition(b"\n")
    name, swap, method, *shape = head.decode().split(" ")
    kind = np.dtype(f"{name[0]}{int(name[1:]) // 8}")
    if int(swap):
        kind = kind.newbyteorder()
    return np.frombuffer(data, kind).reshape([int(d) for d in shape[0].split(",") if d]), method

def numbers(kind, shape):
    if kind.kind == "f":
        values = rng.standard_normal(shape) * 100
        if values.size > 3:
            values.flat[:3] = np.nan, np.inf, -0.0
        return values.astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind.newbyteorder("="), endpoint=True).astype(kind)

def item(n):
    """One item of a selection: its text, its value."""
    a, b = sorted((random.randint(0, n), random.randint(0, n)))
    step = random.choice([1, 1, 2, 3, 7])
    forms = [(":", slice(None)), (f"{a}:{b}", slice(a, b)), (f"{a}:", slice(a, None)),
             (f":{b}:{step}", slice(None, b, step)), (f"::{step}", slice(None, None, step))]
    if n:
        k = random.randrange(n)
        forms += [(f"{k}", k), (f"{k - n}", k - n), (f"-{n - k}:", slice(k - n, None))]
    return random.choice(forms)

def select(shape):
    items = [item(n) for n in shape[:random.randint(1, len(shape))]] if shape else []
    return ("[" + ",".join(text for text, _ in items) + "]" if items else ""), tuple(value for _, value in items)

layouts = {
    "contiguous": lambda shape: {},
    "chunked": lambda shape: dict(chunks=tuple(max(1, n // 2 - 1) for n in shape)),
    "gzip": lambda shape: dict(chunks=tuple(max(1, n // 3) for n in shape), compression="gzip", shuffle=True),
    "fletcher": lambda shape: dict(chunks=tuple(max(1, n) for n in shape), fletcher32=True),
    "extendible": lambda shape: dict(maxshape=(None,) * len(shape)),
}
types = [order + kind for kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8") for order in "<>"]
shapes = [(7,), (1,), (5, 13), (3, 1, 17), (2, 3, 4, 5), (1, 31, 2), (4, 0, 3), (129, 67), (2, 2, 2, 2, 2, 2)]

def compare(path, name, array, layout, method):
    notes = []
    for _ in range(6):
        text, index = select(array.shape)
        want = array[index] if index else array
        try:
            got, found = read(f"{path}:{name}{text}", random.choice([1, 3, 1000000]), random.choice([5, 1000000]),
                              random.randint(1, 3))
        except RuntimeError as error:
            notes.append(f"{text}: {error}")
            continue
        if (got.shape != want.shape or got.dtype.kind != want.dtype.kind
                or got.astype(want.dtype).tobytes() != want.tobytes()):
            notes.append(f"{text}: other elements")
        if found != method:
            notes.append(f"{text}: read by {found}, not {method}")
    ok(not notes, f"{array.dtype.str} {'x'.join(map(str, array.shape))} {layout}", "; ".join(notes))

number = 0
for kind in types:
    for layout in random.sample(sorted(layouts), 2):
        shape = random.choice([s for s in shapes if 0 not in s or layout in ("contiguous", "extendible")])
        path = os.path.join(folder, f"{number}.h5")
        number += 1
        array = numbers(np.dtype(kind), shape)
        with h5py.File(path, "w", userblock_size=random.choice([0, 512]),
                       libver=random.choice([("earliest", "v110"), ("v110", "v110")])) as file:
            file.create_dataset("group/data", data=array, dtype=kind, **layouts[layout](shape))
        method = "chunks" if layout != "contiguous" else "direct" if array.size else "libhdf5"
        compare(path, "/group/data", array, layout, method)

# Filters: those that are undone here and others. Each type in one order or the other, shapes that chunks do not divide.
filters = {
    "none": (dict(), "chunks"),
    "gzip": (dict(compression="gzip", compression_opts=6), "chunks"),
    "shuffle": (dict(shuffle=True), "chunks"),
    "shuffle+gzip": (dict(shuffle=True, compression="gzip", compression_opts=1), "chunks"),
    "fletcher32": (dict(fletcher32=True), "chunks"),
    "shuffle+gzip+fletcher32": (dict(shuffle=True, compression="gzip", fletcher32=True), "chunks"),
    "lzf": (dict(compression="lzf"), "libhdf5"),
    "scaleoffset": (dict(scaleoffset=0), "libhdf5"),
}
chunk_shapes = {(7,): (3,), (101,): (64,), (5, 13): (5, 4), (3, 1, 17): (1, 1, 17), (2, 3, 4, 5): (2, 2, 3, 5),
                (129, 67): (32, 67), (40, 90): (16, 16), (6, 20, 30): (1, 20, 30), (6, 21, 31): (4, 8, 16),
                (3, 2): (10, 10)}
for name in filters:
    options, method = filters[name]
    for kind in random.sample([t for t in types if name != "scaleoffset" or t[1] in "ui"], 5):
        shape, chunks = random.choice(sorted(chunk_shapes.items()))
        array = numbers(np.dtype(kind), shape)
        if name == "scaleoffset" and h5py.version.hdf5_version_tuple in ((1, 14, 5), (1, 14, 6)):
            array %= 50 # they do not read what needs all bits of a type
        path = os.path.join(folder, f"{number}.h5")
        number += 1
        with h5py.File(path, "w", userblock_size=random.choice([0, 512]),
                       libver=random.choice([("earliest", "v110"), ("v110", "v110")])) as file:
            data = file.create_dataset("d", shape, kind, chunks=chunks,
                                       maxshape=tuple(max(n, c) for n, c in zip(shape, chunks)), **options)
            if random.random() < 0.5:
                data[...] = array
            else: # chunks that are not written
                half = tuple(slice(0, (n + 1) // 2) for n in shape)
                data[half] = array[half]
                array = data[...]
        if name == "lzf": # a filter of h5py's own
            try:
                read(f"{path}:/d", 1, 1)
                ok(True, f"{kind} lzf, by a plug-in")
            except RuntimeError as error:
                ok("exit 3" in str(error) and "32000 (lzf)" in str(error), f"{kind} lzf is refused", str(error))
        else:
            compare(path, "/d", array, f"chunks of {'x'.join(map(str, chunks))} {name}", method)

# A chunk that the writer left some filters out of, and one whose bytes are not what its checksum says.
frames = numbers(np.dtype("<u2"), (4, 30, 40))
path = os.path.join(folder, "masks.h5")
with h5py.File(path, "w") as file:
    data = file.create_dataset("d", data=frames, chunks=(1, 30, 40), shuffle=True, compression="gzip", fletcher32=True)
    data.id.write_direct_chunk((1, 0, 0), frames[1].tobytes(), filter_mask=7)
    data.id.write_direct_chunk((2, 0, 0), zlib.compress(frames[2].tobytes()), filter_mask=5)
compare(path, "/d", frames, "with filter masks", "chunks")
with h5py.File(path, "r") as file:
    where = file["d"].id.get_chunk_info_by_coord((3, 0, 0))
with open(path, "r+b") as file:
    file.seek(where.byte_offset + where.size - 1)
    last = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([last[0] ^ 1]))
try:
    read(f"{path}:/d", 1, 10000)
    ok(False, "a wrong checksum is refused")
except RuntimeError as error:
    ok("exit 3" in str(error) and "/d: chunk (3, 0, 0): checksum is wrong" in str(error), "a wrong checksum is refused",
       str(error))
ok(read(f"{path}:/d[:3]", 1, 10000)[0].tobytes() == frames[:3].tobytes(), "the chunks before it are read")

path = os.path.join(folder, "scalar.h5")
with h5py.File(path, "w") as file:
    file["s"] = np.float32(1.5)
    file["title"] = "a title"
    file["flags"] = np.array([True, False])
    file["complex"] = np.array([1 + 2j])
got, _ = read(path, 1, 1)
ok(got.shape == () and got == 1.5, "a scalar, the only numeric dataset")
for name, word in ("title", "string"), ("flags", "boolean"), ("complex", "complex"):
    try:
        read(f"{path}:{name}", 1, 1)
        ok(False, f"{name} is refused")
    except RuntimeError as error:
        ok(str(error).startswith("exit 3") and word in str(error), f"{name} is refused as {word}", str(error))

whole = numbers(np.dtype("i4"), (6, 10))
for half in range(2):
    with h5py.File(os.path.join(folder, f"half{half}.h5"), "w") as file:
        file["d"] = whole[3 * half:3 * half + 3]
path = os.path.join(folder, "virtual.h5")
layout = h5py.VirtualLayout(shape=(6, 10), dtype="i4")
for half in range(2):
    layout[3 * half:3 * half + 3] = h5py.VirtualSource(f"half{half}.h5", "d", shape=(3, 10))
with h5py.File(path, "w") as file:
    file.create_virtual_dataset("v", layout, fillvalue=-1)
compare(path, "/v", whole, "virtual", "virtual")
os.remove(os.path.join(folder, "half1.h5"))
try:
    read(f"{path}:/v", 1, 1)
    ok(False, "a missing part is refused")
except RuntimeError as error:
    ok("half1.h5" in str(error), "a missing part is refused by name", str(error))

# Parts whose elements cannot all be had: libhdf5 would read zeros behind the end of external storage, with success.
def refuse_part(what, word, **storage):
    half = os.path.join(folder, "half1.h5")
    with h5py.File(half, "w") as file:
        file.create_dataset("d", (3, 10), "i4", **storage)
    try:
        read(f"{path}:/v", 1, 1)
        ok(False, f"{what} is refused")
    except RuntimeError as error:
        ok(str(error).startswith("exit 3") and f"virtual.h5:/v: its part {half}:d: " in str(error)
           and word in str(error), f"{what} is refused", str(error))

raw = os.path.join(folder, "raw.bin")
refuse_part("a part whose storage is missing", "raw.bin: No such file", external=[(raw, 0, 120)])
with open(raw, "wb") as file:
    file.write(bytes(119))
refuse_part("a part whose storage is cut", "ends at byte 119, expected 120", external=[(raw, 0, 120)])
refuse_part("a part whose filter is missing", "32000", chunks=(3, 10), compression="lzf")
with open(os.path.join(folder, "half1.h5"), "w") as file:
    file.write("no HDF5 file")
try:
    read(f"{path}:/v", 1, 1)
    ok(False, "a part that is no HDF5 file is refused")
except RuntimeError as error:
    ok("virtual.h5:/v: its part" in str(error) and "half1.h5: is not an HDF5 file" in str(error),
       "a part that is no HDF5 file is refused", str(error))

print(f"1..{tests}")
sys.exit(failed > 0)
PYTHON
