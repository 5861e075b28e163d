#!/usr/bin/env -S python3 -B
"""External storage: raw data in files of their own. Every element is right, also where reads are short, or the run ends
with 3."""
import os

import gm
from gm import h5py, np

rng = np.random.default_rng(5)


def make(name, x, kind, pieces):
    """NAME.h5:/x in `pieces` files, each part behind some bytes of something else."""
    stored = x.astype(kind).tobytes()
    step, files = -(-len(stored) // pieces), []
    for i in range(pieces):
        part = stored[i * step:(i + 1) * step]
        with open(f"{name}{i}.raw", "wb") as raw:
            raw.write(b"?" * (7 * i) + part)
        files.append((f"{name}{i}.raw", 7 * i, len(part) if i + 1 < pieces else h5py.h5f.UNLIMITED))
    with h5py.File(f"{name}.h5", "w") as file:
        file.create_dataset("x", x.shape, kind, external=files)


x = rng.integers(0, 100, (40, 30, 20))
for kind in ("<f4", ">f4", ">u2", "<i8", "<f2", "u1"):
    make("e", x, kind, 7)
    for where, want in (("", x), ("[3:33:4,1:-1:3]", x[3:33:4, 1:-1:3]), ("[:,7,::6]", x[:, 7, ::6])):
        for ranks in (1, 2) if where else (1,):
            ran = gm.run(["flip", f"e.h5:/x{where}", "--axis", "0", "-o", "out.h5", "--force", "-q"], ranks)
            gm.ok(ran.code == 0 and np.array_equal(gm.read("out.h5", "x"), want[::-1]),
                  f"{kind}{where} of 7 files, {ranks} ranks", ran)
with h5py.File("wide.h5", "w") as file: # libhdf5 converts it
    wide = h5py.h5t.STD_I64LE.copy()
    wide.set_precision(40)
    x.astype("<i8").tofile("wide.raw")
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_external(b"wide.raw", 0, x.nbytes)
    h5py.h5d.create(file.id, b"x", wide, h5py.h5s.create_simple(x.shape), plist)
ran = gm.run("flip wide.h5:/x --axis 0 -o out.h5 --force -q")
gm.ok(ran.code == 3 or ran.code == 0 and np.array_equal(gm.read("out.h5", "x"), x[::-1]),
      "integers of 40 bits: right or refused", ran)
if gm.HAS_FAULT:
    make("e", x, "<f4", 3)
    for ranks in (1, 2):
        ran = gm.run("flip e.h5:/x --axis 0 -o out.h5 --force -q", ranks, environment=gm.fault("read:*:*:short"))
        gm.ok(ran.code == 0 and np.array_equal(gm.read("out.h5", "x"), x[::-1]), f"every read is short, {ranks} ranks",
              ran)
os.truncate("e1.raw", os.path.getsize("e1.raw") - 1)
ran = gm.run("flip e.h5:/x --axis 0 -o none.h5 -q")
gm.ok(not gm.faults_of_refusal(ran, 3, "e1.raw ends at byte") and not os.path.exists("none.h5"),
      "a file that is cut is refused", ran)
gm.done()
