#!/usr/bin/env -S python3 -B
"""bench file: each strategy of reading and writing has a row, the input is not written, no file is left; invalid
options are refused."""
import json
import os
import re
import signal
import time

import gm
from gm import h5py, np

READ = ["H5Dread", "pread", "mmap", "O_DIRECT", "reader"]
WRITE = ["plain", "allocated", "mapped", "direct", "parts"]

rng = np.random.default_rng(1)
os.mkdir("in")
os.mkdir("out")
gm.write("in/plain.h5", A=rng.random((200, 3001), dtype="f4"))
gm.write("in/packed.h5", {"chunks": (16, 64, 64), "compression": "gzip", "shuffle": True},
         images=rng.integers(0, 99, (40, 64, 64), dtype="u2"))
gm.write("in/two.h5", A=np.ones((4, 4)), B=np.ones((4, 4)))


def rows_of(name, ranks=1, device="cpu"):
    before = gm.state("in")
    ran = gm.run(f"bench file {name} --device {device} --threads 3 --shapes 1M -o out --json r.json", ranks=ranks,
                 limit=120)
    if not gm.ok(ran.code == 0 and not ran.errors, f"{name}, {device}, {ranks} ranks", ran):
        return
    with open("r.json") as file:
        rows = json.load(file)["rows"]
    gm.ok(all(r["test"] == "file" and r["median_s"] > 0 and r["rate"] > 0 and r["unit"] == "GB/s" and r["spread"] >= 0
              for r in rows), f"{name}: figures", rows)
    gm.ok({r["threads"] for r in rows if r["variant"].startswith("memory")} == {1, 2, 3},
          f"{name}: memory by 1, 2 and 3 threads", rows)
    caches = ["warm"] if "no cold reads" in ran.err else ["warm", "cold"]
    for cache in caches:
        found = {(r["kernel"], r["threads"]) for r in rows if r["cache"] == cache and r["variant"].startswith("read")}
        wanted = {(way, n) for way in READ for n in (1, 3)} - {("H5Dread", 3)} | {("pread", 2)}
        missing = wanted - found - {("O_DIRECT", 1), ("O_DIRECT", 3)} # not on every file system
        gm.ok(not missing, f"{name}: each strategy of reading, {cache}", missing, ran)
        kind = "device" if device == "cuda" else "ring"
        ring = {r["threads"] for r in rows if r["cache"] == cache and r["variant"].startswith(kind)}
        gm.ok(ring == {1, 3}, f"{name}: through the ring, {cache}", ran)
    for cache in ("warm", "cold"):
        found = {r["kernel"] for r in rows if r["cache"] == cache and r["variant"].startswith("write")}
        missing = [way for way in WRITE if way not in found and f"'{way}'" not in ran.err]
        gm.ok(not missing, f"{name}: each strategy of writing, {cache}", missing, ran)
    first = {r["threads"] for r in rows if r["variant"].startswith("first read pread")}
    gm.ok(first == {1, 3}, f"{name}: the first reading of what was written", first, ran)
    together = [r for r in rows if not r["variant"].startswith("copy")]
    if ranks > 1:
        gm.ok(all(r["shape"].endswith(f", {ranks} ranks") and r["ranks"]["count"] == ranks
                  and 0 < r["ranks"]["rate_min"] <= r["ranks"]["rate_max"] for r in together),
              f"{name}: rows of {ranks} ranks", together)
        own = {(r["threads"], r["cache"]) for r in rows if r["variant"].startswith("write per rank")}
        gm.ok(own == {(n, cache) for n in (1, 3) for cache in ("warm", "cold")},
              f"{name}: a file for each of {ranks} ranks", ran)
    else:
        gm.ok(not any("rank" in r["shape"] + r["variant"] or "ranks" in r for r in together),
              f"{name}: rows of one rank", together)
    copies = [r for r in rows if r["variant"].startswith("copy")]
    gm.ok(bool(copies) == (device == "cuda"), f"{name}: transfers of a device with its own memory", copies)
    gm.ok(gm.state("in") == before and not os.listdir("out"), f"{name}: the input is unchanged, no file is left",
          os.listdir("out"))


for device in gm.devices():
    rows_of("in/plain.h5", device=device)
    rows_of("in/packed.h5:/images", device=device)
    rows_of("in/packed.h5:/images", ranks=2, device=device)
rows_of("in/plain.h5:A", ranks=3)
rows_of("in/two.h5:A", ranks=3) # a piece for one of them
layout = h5py.VirtualLayout((2, 4, 4), "f8")
for i, one in enumerate("AB"):
    layout[i] = h5py.VirtualSource("two.h5", one, (4, 4))
with h5py.File("in/virtual.h5", "w") as file:
    file.create_virtual_dataset("V", layout)
before = gm.state("in")
ran = gm.run("bench file in/virtual.h5 --device cpu --threads 1 --shapes 64K -o out -q", 2, 120)
gm.ok(ran.code == 0 and "read reader x1 " in ran.out and not re.search("^file +read pread", ran.out, re.MULTILINE)
      and gm.state("in") == before and not os.listdir("out"),
      "in/virtual.h5, 2 ranks: the reader alone reads a virtual dataset", ran)

os.chdir("in")
before = gm.state()
ran = gm.run("bench copy file plain.h5 --device cpu --shapes 1M")
gm.ok(ran.code == 2 and "exactly one test" in ran.err, "--shapes with two tests", ran)
ran = gm.run("bench file plain.h5 --device cpu --shapes 64K --threads 1")
gm.ok(ran.code == 0 and gm.state() == before, "new files in the folder of the input: no file is left",
      gm.difference(before, gm.state()))

for ranks in (1, 3):
    child = gm.start(gm.command_line("bench file plain.h5 --device cpu --shapes 1G", ranks))
    deadline = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < deadline and "write" not in child.stdout.readline():
        pass
    child.send_signal(signal.SIGTERM)
    ran = gm.finish(child, 30)
    # mpirun has a code of its own
    gm.ok(ran.code == 75 and len(ran.errors) == 1 if ranks == 1 else ran.code,
          f"a signal during writing, {ranks} ranks: exit 75", ran)
    gm.ok(gm.state() == before, f"no file is left after a signal, {ranks} ranks", gm.difference(before, gm.state()))
if gm.HAS_FAULT:
    ran = gm.run("bench file plain.h5 --device cpu --threads 1 --shapes 64K -q", 3,
                 environment=gm.fault("read:5:1:EIO"))
    gm.ok(ran.code == 3 and len(ran.errors) == 1 and "(rank 1 on" in ran.errors[0] and gm.state() == before,
          "a read fails on one rank: all end (3)", ran)
    ran = gm.run("bench file plain.h5 --device cpu --threads 1 --shapes 64K -q", 3,
                 environment=gm.fault("write:1+:1:ENOSPC"))
    gm.ok(ran.code == 0 and set(re.findall("^file +write (\\w+)", ran.out, re.MULTILINE)) <= {"mapped"}
          and gm.state() == before, "one rank cannot write: no rates but of a mapped file", ran)

for arguments, code, pattern in (
        ("bench file", 2, "needs a FILE"), ("bench file none.h5", 3, "none.h5"), ("bench file plain.h5:/B", 3, "/B"),
        ("bench file two.h5", 3, "/A"), ("bench file plain.h5 -o none/x", 4, "none/x"),
        ("bench file plain.h5 -o plain.h5", 4, "expected a folder"),
        ("bench file plain.h5 --shapes 0", 2, "--shapes '0'"), ("bench file plain.h5 --shapes x", 2, "--shapes 'x'"),
        ("bench file plain.h5 --shapes 9223372036854775807", 2, "at most 4194304T"),
        ("bench copy -o x", 2, "--output 'x'"), ("bench file plain.h5 -o /proc/x", 4, "/proc/x"),
        ("bench file plain.h5 --host-memory 100K", 5, "memory")):
    ran = gm.run(f"{arguments} --device cpu")
    gm.ok(ran.code == code and len(ran.errors) == 1 and pattern in ran.errors[0], f"refused: {arguments}", ran)
if os.geteuid() == 0:
    gm.skip("a read-only folder", "root may write to it")
else:
    os.chmod(".", 0o555)
    ran = gm.run("bench file plain.h5 --device cpu")
    os.chmod(".", 0o755)
    gm.ok(ran.code == 4 and len(ran.errors) == 1, "a read-only folder", ran)
gm.ok(gm.state() == before, "no file is left after an error", gm.difference(before, gm.state()))
gm.done()
