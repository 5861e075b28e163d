#!/bin/sh
# Files as h5py makes them, read by io_cat and compared with what NumPy selects: types, orders of bytes, layouts, shapes, selections.
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
cat=${abs_top_builddir:-$(dirname "$0")/..}/tests/io_cat
folder=$(mktemp -d "${TMPDIR:-/tmp}/io_h5py.XXXXXX") || exit 99
trap 'rm -rf "$folder"' EXIT
"$found" - "$cat" "$folder" <<'PYTHON'
import os, random, subprocess, sys
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

def read(text, rows, cols):
    """What io_cat gives: an array, whether it was read directly."""
    done = subprocess.run([cat, text, str(rows), str(cols)], capture_output=True)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.decode().strip()}")
    head, _, data = done.stdout.partition(b"\n")
    name, swap, direct, *shape = head.decode().split(" ")
    kind = np.dtype(f"{name[0]}{int(name[1:]) // 8}")
    if int(swap):
        kind = kind.newbyteorder()
    return np.frombuffer(data, kind).reshape([int(d) for d in shape[0].split(",") if d]), int(direct)

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
    forms = [(":", slice(None)), (f"{a}:{b}", slice(a, b)), (f"{a}:", slice(a, None)), (f":{b}:{step}", slice(None, b, step)),
             (f"::{step}", slice(None, None, step))]
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

def compare(path, name, array, layout):
    notes = []
    for _ in range(6):
        text, index = select(array.shape)
        want = array[index] if index else array
        try:
            got, direct = read(f"{path}:{name}{text}", random.choice([1, 3, 1000000]), random.choice([5, 1000000]))
        except RuntimeError as error:
            notes.append(f"{text}: {error}")
            continue
        if got.shape != want.shape or got.dtype.kind != want.dtype.kind or got.astype(want.dtype).tobytes() != want.tobytes():
            notes.append(f"{text}: other elements")
        if direct != (layout == "contiguous" and array.size > 0):
            notes.append(f"{text}: direct is {direct}")
    ok(not notes, f"{array.dtype.str} {'x'.join(map(str, array.shape))} {layout}", "; ".join(notes))

number = 0
for kind in types:
    for layout in random.sample(sorted(layouts), 2):
        shape = random.choice(shapes)
        path = os.path.join(folder, f"{number}.h5")
        number += 1
        array = numbers(np.dtype(kind), shape)
        with h5py.File(path, "w", userblock_size=random.choice([0, 512]), libver=random.choice([("earliest", "v110"), ("v110", "v110")])) as file:
            file.create_dataset("group/data", data=array, dtype=kind, **layouts[layout](shape))
        compare(path, "/group/data", array, layout)

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
compare(path, "/v", whole, "virtual")
os.remove(os.path.join(folder, "half1.h5"))
try:
    read(f"{path}:/v", 1, 1)
    ok(False, "a missing part is refused")
except RuntimeError as error:
    ok("half1.h5" in str(error), "a missing part is refused by name", str(error))

print(f"1..{tests}")
sys.exit(failed > 0)
PYTHON
