#!/usr/bin/env -S python3 -B
"""The expectations of a plan, for every operation: the bytes of each link are those that the run then moves, and the
times add up."""
import json

import gm
from gm import h5py, np

rng = np.random.default_rng(5)

JOBS = ["matmul ab.h5 -o out.h5", "matmul ab.h5 --grid 1x1x{ranks} -o out.h5",
        "matmul ab.h5 --grid {ranks}x1x1 --add ab.h5:/C -o out.h5", "matmul ab.h5:/A ab.h5:/A --transpose b -o out.h5",
        "matmul ab.h5 --piece 5000 --host-memory 3M -o out.h5", "reduce x.h5", "reduce x.h5 --axis pixel -o out.h5",
        "reduce x.h5 --axis frame --stat mean -o out.h5", "normalize x.h5 -o out.h5",
        "normalize x.h5 --per frame --type f32 -o out.h5", "normalize x.h5 --per pixel --method zscore -o out.h5",
        "normalize x.h5 --method percentile -o out.h5", "normalize x.h5 --method scale --sub 1 -o out.h5",
        "normalize x.h5 --method flatfield --flat f.h5:/flat --dark f.h5:/dark -o out.h5",
        "normalize x.h5 --method flatfield --flat f.h5:/flat --dark f.h5:/dark --piece 4K -o out.h5",
        "flip x.h5 --axis 1 -o out.h5", "flip x.h5 --axis 1 --piece 4K --chunk 20,30,40 --deflate 1 -o out.h5",
        "transpose x.h5 --axes 0,2 -o out.h5", "gather x.h5 --index few.h5 -o out.h5",
        "gather x.h5 --index many.h5 -o out.h5", "gen stack out.h5 --frames 20 --height 30 --width 40",
        "compare x.h5 x.h5"]


def expected_of(report):
    e = report["plan"]["expected"]
    return e, e["bytes"]["file_to_host"]["all"], e["bytes"]["host_to_file"]["all"]


def faults_of(report):
    """A run of a report: what it moved, and what was expected."""
    e, read, written = expected_of(report)
    phases, faults = e["phases"], []
    if read != report["bytes_read"]:
        faults.append(f"{report['bytes_read']} bytes read, expected {read}")
    if written != report["bytes_written"]:
        faults.append(f"{report['bytes_written']} bytes written, expected {written}")
    if not all(type(number) is int for link in (*e["bytes"].values(), e["runs"]) for number in link.values()):
        faults.append(f"bytes and runs are whole numbers: {e['bytes']}, {e['runs']}")
    if any(link["busiest"] > 2 * link["all"] for link in e["bytes"].values()):
        faults.append("the busiest rank moves more than all")
    if not max(phases.values()) <= e["seconds"] <= sum(phases.values()) + 0.1:
        faults.append(f"{e['seconds']} s, phases {phases}")
    for what in ("host_bytes", "device_bytes"):
        # a trial of the exchange takes some of what is left
        if report[f"peak_{what}"] > report["plan"][what] and "exchange" not in report:
            faults.append(f"{report[f'peak_{what}']} {what}, planned {report['plan'][what]}")
    plan = report["plan"]
    for phase, link, bytes_moved in (("read", "file_to_host", read), ("write", "host_to_file", written)):
        if "grid" in plan and plan["grid"][2] > plan["leaves"]: # ranks without leaves only gather C and write it
            bytes_moved = e["bytes"][link]["busiest"]
        if bool(bytes_moved) != (phases[phase] > 0):
            faults.append(f"{phase}: {bytes_moved} bytes, phases {phases}")
    if not 1 <= e["working"] <= report["ranks"] or not 0 <= e["busiest"] < report["ranks"]:
        faults.append(f"rank {e['busiest']} of {e['working']}")
    return faults


def runs(words, ranks):
    """The run, and, where there is --plan, the same numbers there."""
    name, words = words.split()[0], words.format(ranks=ranks)
    words += " --report r.json" + (f" --device {device}" if name not in ("gen", "compare")
                                   else "") + (" --force --no-sync" if name != "compare" and "out.h5" in words else "")
    ran = gm.run(words, ranks)
    report = json.load(open("r.json"))
    gm.ok(ran.code == 0 and not faults_of(report), f"{device}: {words}, {ranks} ranks", *faults_of(report), ran)
    if name in ("gen", "compare") or ranks == 1:
        return
    ran = gm.run(words + " --plan", ranks)
    planned = json.load(open("r.json"))
    expected = planned["plan"]["expected"]
    gm.ok(ran.code == 0 and expected == report["plan"]["expected"] and "expected_time" in ran.out
          and "file_to_host" in ran.out and ("time_read" in ran.out) == (expected["phases"]["read"] > 0),
          f"{device}: {words} --plan, {ranks} ranks", planned["plan"], report["plan"], ran)


def make():
    gm.write("ab.h5", A=gm.integers(rng, (300, 700), dtype="f4"), B=gm.integers(rng, (700, 290), dtype="f4"),
             C=np.ones((300, 290), "f4"))
    gm.write("x.h5", x=rng.integers(0, 999, (24, 40, 50)).astype("u2"))
    gm.write("f.h5", flat=rng.integers(900, 999, (5, 40, 50)).astype("u2"),
             dark=rng.integers(0, 9, (3, 40, 50)).astype("u2"))
    gm.write("few.h5", i=np.array([3, 7, 7, 1]))
    gm.write("many.h5", i=rng.integers(0, 24, 200))


def panels():
    """Ranks of a grid share what they read where that is asked for, on a GPU; elsewhere the reason is named."""
    words = f"matmul ab.h5 -o out.h5 --force --no-sync --grid 2x1x1 --report r.json --device {device}"
    ran = gm.run(words + " --panels read", 2)
    read = json.load(open("r.json"))
    gm.ok(ran.code == 0 and read["plan"]["panels"] == "read" and read["bytes_read"] == 4 * 700 * (300 + 2 * 290),
          f"{device}: panels are read by each rank", ran)
    ran = gm.run(words + " --panels read --plan", 2)
    gm.ok(ran.code == 0 and "panels          read by each rank\n" in ran.out, f"{device}: and --plan says so", ran)
    ran = gm.run(words + " --panels exchange", 2)
    if device == "cpu":
        gm.ok(ran.code == 2 and "--panels exchange: impossible with the grid 2x1x1: the processor" in ran.err,
              f"{device}: the processor does not exchange them", ran)
        ran = gm.run("matmul ab.h5 -o out.h5 --force --panels exchange --device cpu", 2)
        gm.ok(ran.code == 2 and "the processor reads a panel where it uses it" in ran.err,
              f"{device}: whatever the grid", ran)
    else:
        shared = json.load(open("r.json"))
        gm.ok(ran.code == 0 and shared["plan"]["panels"] == "exchange" and shared["bytes_read"] == 4 * 700 * (300 + 290)
              and not faults_of(shared), f"{device}: or read once, and exchanged", ran)


def describing():
    """Each file of a virtual input takes time to describe."""
    opens = {}
    for parts in (4, 20):
        layout = h5py.VirtualLayout((20, 700), "f4")
        for i in range(parts):
            gm.write(f"part{parts}-{i}.h5", x=np.ones((20 // parts, 700), "f4"))
            layout[i * 20 // parts:(i + 1) * 20 // parts] = h5py.VirtualSource(f"part{parts}-{i}.h5", "x",
                                                                               (20 // parts, 700))
        with h5py.File(f"parts{parts}.h5", "w") as file:
            file.create_virtual_dataset("A", layout)
        for words in ("reduce parts{0}.h5", "matmul parts{0}.h5:/A ab.h5:/B -o out.h5",
                      "matmul parts{0}.h5:/A parts{0}.h5:/A --transpose b -o out.h5"):
            gm.run(words.format(parts) + f" --plan --report r.json --device {device}")
            opens[words, parts] = expected_of(json.load(open("r.json")))[0]["phases"]["open"]
    more = [opens[words, 20] - opens[words, 4] for words, parts in opens if parts == 4]
    gm.ok(0.001 < more[0] < 0.1 and abs(more[1] - more[0]) < 1e-9 and abs(more[2] - 2 * more[0]) < 1e-9,
          f"{device}: 16 files more of an input are expected to take longer, of two inputs twice as long", opens)


make()
for device in gm.devices():
    panels()
    describing()
    for job in JOBS:
        for count in (1, 3):
            runs(job, count)
gm.done()
