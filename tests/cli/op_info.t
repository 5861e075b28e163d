#!/usr/bin/env -S python3 -B
"""info: ranks, devices and libraries; what a file holds."""
import os
import re

import gm
from gm import h5py, np

for ranks in (1, 3):
    ran = gm.run("info", ranks)
    gm.ok(ran.code == 0 and not ran.errors, f"info on {ranks} ranks", ran)
    gm.ok(re.match(rf"{ranks} ranks? on 1 host\n", ran.out), "ranks and hosts", ran)
    gm.ok(re.search(rf"^cpu  \S.*\n  seen by +\S+, rank {'0' if ranks == 1 else '0-2'}$", ran.out, re.M),
          "the processor, once", ran)
    gm.ok(all(re.search(rf"^  {name} +\S*\d+\.\d+", ran.out, re.M) for name in ("HDF5", "hwloc", "jansson")),
          "versions", ran)
    gm.ok(all(re.search(f"^  {name}  +\\S", ran.out, re.M) for name in ("BLAS", "MPI", "CUDA")), "BLAS, MPI, CUDA", ran)
    gm.ok(len(re.findall(r"^\d+ +\S+ +[1-9]\d* ", ran.out, re.M)) == ranks, "processors of each rank", ran)

    rows = re.findall(r"^(\d+) +(\S+) +\d+ +\S+ +(?:yes|no) +\w+ +(?:any node|node \d+ of \d+) +(\w+), ([0-9.e+-]+) "
                      r"GB/s +(cpu|cuda \d+)  (\S.*)$", ran.out, re.M)
    gm.ok([int(row[0]) for row in rows] == (list(range(ranks)) if ranks > 1 else []),
          "of several: the exchange with the next, and the device", ran, rows)
    least = re.search(r"^  to the next +([0-9.e+-]+) GB/s", ran.out, re.M)
    gm.ok(not rows or least and min(float(row[3]) for row in rows) > 0.999 * float(least[1]) / 1.001,
          "each as fast as the least, or faster", ran)
    header = re.search(r"^rank +host .*$", ran.out, re.M)
    gm.ok(header and ("to the next" in header[0]) == (ranks > 1) and ran.out.splitlines().index(header[0]) == 2,
          "one table by rank", ran)

ran = gm.run("info --device cpu --host-memory 1K", 2)
gm.ok(ran.code == 0 and len(re.findall(r"^\d+ +\S+ .* none +cpu  \S", ran.out, re.M)) == 2
      and re.search(r"^  path +none: ", ran.out, re.M), "no path: ranks and devices all the same", ran)
if not os.environ.get("GPUMEM_TEST_REQUIRE"):
    ran = gm.run("info --device cuda", 2)
    gm.ok(ran.code == 0 and (re.search(r"^cuda  none", ran.out, re.M) is None
                             or len(re.findall(r"^\d+ +\S+ .* none +-$", ran.out, re.M)) == 2), "no device of the kind",
          ran)

with h5py.File("f.h5", "w") as file:
    file["a"] = np.zeros((3, 4), ">f4")
    file["deep/er/b"] = np.int8(3)
    file.create_dataset("c", (8, 22, 26), "u2", chunks=(1, 22, 26), compression="gzip", shuffle=True)
    file["text"] = "words"
    file["none"] = np.zeros((0, 5))
for ranks in (1, 2):
    ran = gm.run("info f.h5", ranks)
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    gm.ok(ran.code == 0 and list(lines) == ["/a", "/c", "/deep/er/b", "/none", "/text"],
          f"a file on {ranks} ranks: its datasets", ran)
    gm.ok(re.search(r"float32 big-endian +3x4 +contiguous", lines.get("/a", ""))
          and re.search(r"int8 +scalar", lines.get("/deep/er/b", ""))
          and re.search(r"uint16 +8x22x26 +chunked 1x22x26.*shuffle.*deflate", lines.get("/c", ""))
          and " 0x5 " in lines.get("/none", ""), "types, shapes, layouts", ran)

with open("bad.h5", "w") as file:
    file.write("no HDF5")
# Entries that cannot be read, and some without elements, beside others; g is a group with several links, in a circle.
with h5py.File("sound.h5", "w") as file:
    file["a"] = np.zeros((3, 4), "f4")
    file["b"] = np.arange(20, dtype="i4").reshape(4, 5)
    file["g/z"] = np.int8(3)
    file["g/again"] = file["h"] = file["g"]
    file["null"] = h5py.Empty("f8")
    file["gone"] = h5py.SoftLink("/nowhere")
    at = h5py.h5o.get_info(file["b"].id).addr
with open("sound.h5", "rb") as file:
    sound = file.read()
# bytes of two messages of the header
datatype, space = sound.index(b"\x03\0\x10\0\x01", at) + 8, sound.index(b"\x01\0\x28\0", at) + 8
for title, place, value, reason in (("a class of types that there is not", datatype, 0x1f, "unknown datatype"),
                                    ("a version of types that there is not", datatype, 0xf0,
                                     "bad version number for datatype"),
                                    ("a damaged header", at, 0xff, "bad object header version"),
                                    ("a damaged dataspace", space, 9, r"\S")):
    with open("unreadable.h5", "wb") as file:
        file.write(sound[:place] + bytes([value]) + sound[place + 1:])
    for ranks in (1, 2):
        ran = gm.run("info unreadable.h5", ranks)
        lines = {line.split()[0]: line for line in ran.out.splitlines()}
        gm.ok(ran.code == 0 and list(lines) == ["/a", "/b", "/g/z", "/gone", "/null"]
              and re.search(rf"^/b +unreadable +- +.*{reason}", lines["/b"])
              and re.search(r"float32 +3x4 +contiguous", lines["/a"])
              and re.search(r"int8 +scalar +contiguous", lines["/g/z"])
              and re.search(r"unreadable +- +component not found", lines["/gone"])
              and re.search(r"float64 +null +no elements", lines["/null"]),
              f"{title}, {ranks} ranks: unreadable, why, and the others", ran)

for name in ("bad.h5", "nofile.h5"):
    for ranks in (1, 2):
        ran = gm.run(f"info {name}", ranks)
        faults = gm.faults_of_refusal(ran, 3, name)
        gm.ok(not faults, f"refused: {name}, {ranks} ranks", ran, *faults)
gm.done()
