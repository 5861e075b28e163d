#!/usr/bin/env -S python3 -B
"""Virtual datasets of whole rows, read from their parts: our own output in parts and what h5py makes, on 1 and 3 ranks,
against h5py; other virtual datasets, and what is refused.

compare gives the places where what the ranks read differs from a plain copy that h5py made; io_cat the bytes, and the
way they were read."""
import os
import re
import shutil
import subprocess

import gm
from gm import h5py, np

CAT = os.path.join(os.path.dirname(gm.PROGRAM), "../tests/io/cat")
RANKS = (1, 3)
if not os.path.exists(CAT):
    gm.skip_all(f"no {CAT}: make check builds it")


def cat(text, rows, cols, threads):
    done = subprocess.run([CAT, text, str(rows), str(cols), str(threads)], capture_output=True)
    head, _, data = done.stdout.partition(b"\n")
    if done.returncode:
        return None, done.stderr.decode().strip()
    kind, swap, way, *shape = head.decode().split(" ")
    kind = np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    return np.frombuffer(data, kind.newbyteorder()
                         if int(swap) else kind).reshape([int(d) for d in shape[0].split(",") if d]), way


def same(title, name, selections=("",)):
    """One test: every selection of a dataset reads as h5py reads it, from the parts."""
    path, dataset = name.split(":")
    faults = []
    for i, text in enumerate(selections):
        with h5py.File(path, "r") as file:
            data = file[dataset]
            want = data[()] if not text else eval(f"data{text}", {"data": data}) # the selection is Python's as well
        want = np.asarray(want)
        gm.write("copy.h5", c=want.astype(want.dtype.newbyteorder("=")))
        for ranks in RANKS if i == 0 else RANKS[i % 2:][:1]:
            ran = gm.run(["compare", name + text, "copy.h5:/c", "-q", "--device", "cpu", "--threads", 2, "--piece",
                          3000], ranks)
            if ran.code != 0:
                faults.append(f"{text or 'all'} on {ranks} ranks: {ran}")
        got, how = cat(name + text, 7, 5, 3)
        if how != "virtual":
            faults.append(f"{text or 'all'}: read by '{how}', expected 'virtual'")
        if got is None or got.shape != want.shape or got.astype(want.dtype).tobytes() != want.tobytes():
            faults.append(f"{text or 'all'}: other bytes")
    gm.ok(not faults, title, *faults)


def refused(title, name, pattern):
    faults = []
    for ranks in RANKS:
        ran = gm.run(["reduce", name, "-q", "--device", "cpu"], ranks)
        faults += gm.faults_of_refusal(ran, 3, pattern)
    gm.ok(not faults, title, *faults)


# --- Our own ---

def own(kind, shape):
    """An output in parts: row numbers and columns, or a stack of frames, as the program itself writes it."""
    name = f"own_{kind}_{'x'.join(map(str, shape))}.h5"
    if len(shape) == 3:
        command = ["gen", "stack", name, "--frames", shape[0], "--height", shape[1], "--width", shape[2]]
    else:
        command = ["gen", "matrices", name, "--rows", shape[0], "--inner", shape[1], "--columns", 3]
    command += ["--big-endian"] if kind[0] == ">" else []
    ran = gm.run([*command, "--type", kind[1] + str(8 * int(kind[2])), "--output-layout", "parts", "--device", "cpu",
                  "--threads", 5, "-q", "--no-sync"], 2)
    with h5py.File(name, "r") as file:
        data = file["/images" if len(shape) == 3 else "/A"]
        good = ran.code == 0 and data.is_virtual and data.shape == shape and data.dtype == np.dtype(kind)
    gm.ok(good, f"{name} is in parts", ran)
    return f"{name}:/{'images' if len(shape) == 3 else 'A'}"


for kind, shape in (("<f4", (103, 17, 9)), (">f4", (31, 8, 9)), ("<u2", (64, 33, 31)), ("<f8", (257, 19)),
                    (">f8", (11, 2000)), ("<f4", (1000, 1)), ("<f2", (77, 12))):
    same(f"our own, {kind} {shape}", own(kind, shape),
         ("", "[3::7]", "[::2,1:8:3]" if shape[1] > 1 else "[::2,0]", "[5]"))

rng = np.random.default_rng(3)
gm.write("factors.h5", A=gm.integers(rng, (301, 40)), B=gm.integers(rng, (40, 57)))
ran = gm.run("matmul factors.h5 --output-layout parts --device cpu --threads 3 -o product.h5 -q" + gm.all_work(2), 2)
gm.ok(ran.code == 0, "a product in parts", ran)
same("our own product", "product.h5:/C", ("", "[300]", "[:,::5]"))
gm.write("factor.h5", F=gm.integers(rng, (57, 5)))
ran = gm.run("matmul product.h5:/C factor.h5:/F --device cpu -o again.h5 -q" + gm.all_work(3), 3)
gm.ok(ran.code == 0 and np.array_equal(gm.read("again.h5"), gm.read("product.h5") @ gm.read("factor.h5", "/F")),
      "is a factor itself", ran)


# --- h5py's ---

def parts(x, rows, **storage):
    """The rows of x in files of the given number of rows: their names and their number."""
    made = []
    for i, at in enumerate(range(0, len(x), rows)):
        gm.write(f"part {i}%.h5", storage, p=x[at:at + rows])
        made.append((f"part {i}%%.h5", at, min(rows, len(x) - at)))
    return made


def virtual(name, x, pieces, fill=7):
    """pieces: (file, where in the layout, shape of the source, what of it)."""
    layout = h5py.VirtualLayout(x.shape, x.dtype)
    for file, to, shape, what in pieces:
        layout[to] = h5py.VirtualSource(file, "p", shape, x.dtype)[what]
    # what the program's libhdf5 reads, whatever h5py's is
    with h5py.File(name, "w", libver=("earliest", "v110")) as file:
        file.create_virtual_dataset("d", layout, fillvalue=fill)
    return f"{name}:/d"


def numbers(shape, kind):
    return rng.integers(-100 if kind[1] != "u" else 0, 100, shape).astype(kind)


def ordinary(kind, shape, shuffled):
    x = numbers(shape, kind)
    made = parts(x, 10)
    places = list(range(len(x)))
    if shuffled: # row by row, to other places
        rng.shuffle(places)
        pieces = [(file, places[at + i], (n,) + shape[1:], i) for file, at, n in made for i in range(n)]
    else:
        pieces = [(file, slice(at, at + n), (n,) + shape[1:], slice(None)) for file, at, n in made]
    return virtual("v.h5", x, pieces)


ALL = {1: ("", "[::3]", "[13:40:7]", "[33]"), 2: ("", "[::3,1::2]", "[13:40:7,2]", "[33]"),
       3: ("", "[::3,1,::2]", "[:,:2,1]", "[13:40:7]")}
for kind, shape in (("<i4", (47, 6)), (">i2", (50, 3, 4)), ("<f8", (43,)), (">u8", (44, 5)), ("<u1", (35, 4, 3))):
    for shuffled in (False, True):
        same(f"h5py's, {kind} {shape}{', shuffled' * shuffled}", ordinary(kind, shape, shuffled), ALL[len(shape)])

x = numbers((6, 5, 4), ">f4")
for i in range(6):
    gm.write(f"frame{i}.h5", p=x[i])
same("a file for each frame",
     virtual("frames.h5", x, [(f"frame{(5 * i) % 6}.h5", i, (5, 4), slice(None)) for i in range(6)]), ALL[3][:2])
x = numbers((40, 4), "<i4")
made = parts(x, 20)
same("every second row from every third",
     virtual("steps.h5", x[:14], [(made[0][0], np.s_[0::2], (20, 4), np.s_[0:20:3]),
                                  (made[1][0], np.s_[1::2], (20, 4), np.s_[1:20:3])]), ALL[2][:2])
many = virtual("many.h5", numbers((3000, 4), "<i4"), [(made[i % 2][0], i, (20, 4), i % 20) for i in range(3000)])
same("3000 mappings", many, ("", "[::11]"))

# --- Parts of other kinds ---

for kind in ("<i4", ">i4"):
    x = numbers((40, 4), kind)
    made = parts(x, 20)
    whole = [(made[0][0], np.s_[0:20], (20, 4), np.s_[:])]
    same(f"{kind}: rows in no part are the fill value",
         virtual("gap.h5", x, [*whole, (made[1][0], np.s_[21:40], (20, 4), np.s_[1:])]), ALL[2])
    same(f"{kind}: columns of two parts",
         virtual("columns.h5", x[:20], [(made[0][0], np.s_[:, ::2], (20, 4), np.s_[:, ::2]),
                                        (made[1][0], np.s_[:, 1::2], (20, 4), np.s_[:, ::2])]), ALL[2][:2])
    gm.write("other.h5", p=x[20:].astype(x.dtype.newbyteorder()))
    same(f"{kind}: a part of the other order of bytes",
         virtual("order.h5", x, [*whole, ("other.h5", np.s_[20:40], (20, 4), np.s_[:])]), ALL[2][:2])
    gm.write("chunked.h5", dict(chunks=(3, 4), compression="gzip"), p=x[20:])
    same(f"{kind}: a chunked part", virtual("mixed.h5", x, [*whole, ("chunked.h5", np.s_[20:40], (20, 4), np.s_[:])]),
         ALL[2][:2])

# --- Caps and damage ---

for command in (["reduce", many], ["normalize", many, "-o", "n.h5", "--force", "--type", "f32"]):
    cap = gm.run([*command, "--device", "cpu", "-q", "--host-memory", "1K"])
    need = re.search(r"expected at least (\d+) bytes", cap.err)
    enough = gm.run([*command, "--device", "cpu", "-q", "--host-memory", need[1] if need else "1K"])
    gm.ok(cap.code == 5 and enough.code == 0, f"{command[0]}: a cap on memory that is too small names one that does",
          cap, enough)

name = own("<f8", (500, 300))
folder = next(entry for entry in os.listdir(".") if entry.startswith(name.split(":")[0] + ".parts-"))
part = os.path.join(folder, "part-01.h5")
shutil.copy(part, "kept.h5")
os.truncate(part, os.path.getsize(part) - 1000)
refused("a part that is cut is refused by name", name, r"own_<f8_500x300\.h5:/A: its part .*part-01\.h5.*(cut|damaged)")
os.remove(part)
refused("a part that is missing is refused by name", name,
        r"own_<f8_500x300\.h5:/A: its part .*part-01\.h5.* is missing")
shutil.move("kept.h5", part)
same("and read again when it is back", name)
gm.done()
