#!/usr/bin/env -S python3 -B
"""Outputs: one file, parts and compressed chunks hold the same; parts survive moves, and a missing one is seen; a full
disk leaves nothing."""
import json
import os
import shutil
import subprocess
import tempfile

import gm
from gm import h5py, np

RNG = np.random.default_rng(4)
gm.write("in.h5", A=gm.integers(RNG, (257, 130), dtype="f4"), B=gm.integers(RNG, (130, 301), dtype="f4"))
WANT = gm.read("in.h5", "/A") @ gm.read("in.h5", "/B")
FORMS = {"single": "", "parts": "--output-layout parts", "auto": "--output-layout auto", "chunks": "--chunk 50,70",
         "deflate": "--deflate 4 --shuffle"}


def folders(name):
    return sorted(entry for entry in os.listdir(".") if entry.startswith(f"{name}.parts-"))


def multiply(name, more, ranks=1):
    ran = gm.run(f"matmul in.h5 -o {name} --force --no-sync --threads 2 --device cpu --report report.json {more}"
                 + gm.all_work(ranks), ranks)
    gm.ok(ran.code == 0, f"matmul {more}, {ranks} ranks", ran)
    with open("report.json") as report:
        return json.load(report)["output"] if ran.code == 0 else {}


def same(name):
    return np.array_equal(gm.read(name), WANT)


def forms(ranks):
    for form, more in FORMS.items():
        reported = multiply(f"{form}.h5", more, ranks)
        gm.ok(same(f"{form}.h5"), f"{form}, {ranks} ranks: the product")
        parted = form == "parts"
        gm.ok(reported.get("layout") == ("parts" if parted else "single")
              and reported.get("way") == ("plain" if form in ("single", "parts", "auto") else "packed"),
              f"{form}: reported", reported)
        gm.ok(reported.get("parts") == (2 * ranks if parted else 0) and len(folders(f"{form}.h5")) == parted,
              f"{form}: its parts", reported)


for ranks in (1, 2, 3):
    forms(ranks)
gm.ok(not [name for name in os.listdir(".") if name.startswith(".")], "no temporary file is left", os.listdir("."))

with h5py.File("deflate.h5") as file:
    d = file["C"]
    gm.ok(d.compression == "gzip" and d.compression_opts == 4 and d.shuffle and "operation" in d.attrs,
          "an ordinary compressed dataset")
with h5py.File("parts.h5") as file:
    gm.ok(file["C"].is_virtual and file["C"].attrs["operation"] == "matmul", "a virtual dataset with its provenance")
multiply("parts.h5", FORMS["parts"], 3)
gm.ok(len(folders("parts.h5")) == 1 and same("parts.h5"), "replaced with --force: one folder of parts")

# The tools of HDF5 see one dataset.
if shutil.which("h5dump"):
    dump = subprocess.run(["h5dump", "-d", "/C", "-y", "-s", "256,0", "-c", "1,301", "parts.h5"], capture_output=True,
                          text=True)
    row = dump.stdout[dump.stdout.index("DATA {"):] if "DATA {" in dump.stdout else ""
    gm.ok(np.array_equal(np.array(row[6:].split("}")[0].replace(",", " ").split(), "f4"), WANT[256]),
          "h5dump: the last row", dump.stdout[-500:])
else:
    gm.skip("h5dump", "it is not there")

# Moved, renamed, linked; read by our own program; a part that is missing.
os.mkdir("away")
os.rename(folders("parts.h5")[0], f"away/{folders('parts.h5')[0]}")
os.rename("parts.h5", "away/renamed.h5")
os.symlink("away/renamed.h5", "link.h5")
os.rename("away", "afar")
os.symlink("afar", "away")
for name in ("afar/renamed.h5", "away/renamed.h5", "link.h5"):
    gm.ok(same(name), f"{name}: h5py")
    ran = gm.run(f"compare {name}:/C single.h5:/C")
    gm.ok(ran.code == 0, f"{name}: compare", ran)
before = gm.state("afar")
ran = gm.run(f"matmul link.h5:/C single.h5:/C --transpose b -o afar/renamed.h5 --force --device cpu")
gm.ok(not gm.faults_of_refusal(ran, 4, "is one of the inputs"), "it is not replaced by its own product", ran)
gm.ok(gm.state("afar") == before, "and not touched", *gm.difference(before, gm.state("afar")))
folder = f"afar/{[name for name in os.listdir('afar') if '.parts-' in name][0]}"
os.remove(f"{folder}/part-01.h5")
data = gm.read("link.h5")
gm.ok(np.isnan(data).any() and np.array_equal(data[~np.isnan(data)], WANT[~np.isnan(data)]), "a missing part is NaN")
ran = gm.run("compare link.h5:/C single.h5:/C")
gm.ok(not gm.faults_of_refusal(ran, 3, r"part-01\.h5"), "and refused by name", ran)

# gen: the same elements, stripes of several ranks.
gm.run("gen matrices one.h5 --rows 1000 --inner 700 --columns 3 --no-sync")
for ranks in (1, 3):
    ran = gm.run("gen matrices parted.h5 --rows 1000 --inner 700 --columns 3 --force --no-sync --threads 5 "
                 "--output-layout parts", ranks)
    gm.ok(ran.code == 0 and all(np.array_equal(gm.read("one.h5", d), gm.read("parted.h5", d)) for d in ("/A", "/B")),
          f"gen, {ranks} ranks", ran)

# Refusals.
for more in ("--chunk 4,4", "--deflate 1", "--shuffle"):
    before = gm.state()
    ran = gm.run(f"matmul in.h5 -o no.h5 --output-layout parts {more} --device cpu")
    gm.ok(not gm.faults_of_refusal(ran, 2, "--output-layout parts takes no") and gm.state() == before,
          f"parts with {more}", ran)

# A full disk, at any point.
mount = tempfile.mkdtemp(dir=".")
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", mount],
                                        capture_output=True).returncode == 0:
    try:
        gm.run(f"gen matrices {mount}/in.h5 --size 500 --no-sync")
        before = gm.state()
        for more in ("", "--output-layout parts", "--deflate 1", "--chunk 10,170,170"):
            for ranks in (1, 2):
                ran = gm.run(f"gen stack {mount}/out.h5 --size 170 --force --no-sync {more}", ranks)
                gm.ok(not gm.faults_of_refusal(ran, 4, "needs|No space left"),
                      f"gen on a full disk {more}, {ranks} ranks", ran)
        gm.ok(gm.state() == before, "nothing is left, nothing was touched", *gm.difference(before, gm.state()))
    finally:
        subprocess.run(["umount", mount])
else:
    gm.skip("a full disk", "no file system can be mounted here")

gm.done()
