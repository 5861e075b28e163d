#!/usr/bin/env -S python3 -B
"""--model: plans for machines that are not there, of files whose data were never written."""
import json
import re

import gm
from gm import np


def never_written(name, **sets):
    """Datasets of any size that take no room."""
    with gm.h5py.File(name, "w") as f:
        for key, (shape, dtype) in sets.items():
            create = gm.h5py.h5p.create(gm.h5py.h5p.DATASET_CREATE)
            create.set_alloc_time(gm.h5py.h5d.ALLOC_TIME_LATE)
            gm.h5py.h5d.create(f.id, key.encode(), gm.h5py.h5t.py_create(np.dtype(dtype)),
                               gm.h5py.h5s.create_simple(shape), dcpl=create)


def make():
    side = 1 << 17
    never_written("ab.h5", A=((side, side), "f4"), B=((side, side), "f4"))
    never_written("s.h5", images=((1 << 17, 2048, 2048), "u2"))
    gm.write("i.h5", i=np.arange(5000) * 7)
    gm.write("f.h5", flat=np.ones((3, 2048, 2048), "u2"))
    gm.write("small.h5", A=gm.integers(np.random.default_rng(1), (300, 200), dtype="f4"), B=np.ones((200, 100), "f4"))


JOBS = ["matmul ab.h5 -o o.h5", "matmul ab.h5 --grid 4x2x1 --panels read -o o.h5", "reduce s.h5",
        "reduce s.h5 --axis pixel -o o.h5", "normalize s.h5 -o o.h5", "normalize s.h5 --method percentile -o o.h5",
        "normalize s.h5 --method flatfield --flat f.h5:/flat -o o.h5", "flip s.h5 --axis 1 -o o.h5",
        "transpose s.h5 -o o.h5", "gather s.h5 --index i.h5 -o o.h5"]
MODEL = "nodes=2,gpus=4,net=50G,storage=100G"


def planned(words, model=MODEL, **more):
    ran = gm.run(f"{words} --plan --model {model} --report r.json", **more)
    return ran, json.load(open("r.json")) if ran.code == 0 else None


def jobs():
    """Every operation that has a plan: the lines, the same in the report, and nothing is made."""
    files = set(gm.os.listdir()) | {"r.json"}
    for words in JOBS:
        ran, report = planned(words)
        if not gm.ok(ran.code == 0, f"{words}: is planned", ran):
            continue
        lines = dict(re.findall(r"^(\w+) +(.*)$", ran.out, re.M))
        e = report["plan"]["expected"]
        model, parts = e["model"], e["parts"]
        gm.ok(lines["model"].startswith("2 nodes of 4 NVIDIA H200") and lines["speedup"] == f"{model['speedup']:.3g}"
              and lines["efficiency"] == f"{model['efficiency']:.3g}"
              and lines["expected_time"] == f"{e['seconds']:.3g} s"
              and lines["limit"] == f"{e['limit']}, {parts[e['limit']]:.3g} s",
              f"{words}: the lines are those of the report", ran, e)
        gm.ok([model[key] for key in ("nodes", "gpus", "gpu", "link", "net", "storage",
                                      "node_storage")] == [2, 4, "h200", 0, 50 << 30, 100 << 30, 0]
              and e["working"] <= 8 and parts[e["limit"]] == max(parts.values())
              and abs(model["single_seconds"] / e["seconds"] / model["speedup"] - 1) < 1e-9
              and abs(model["speedup"] / 8 / model["efficiency"] - 1) < 1e-9 and 0 < model["efficiency"] < 1.1,
              f"{words}: figures fit each other", e)
        gm.ok("107 GB/s, read and written by all hosts" in lines["storage_rate"] and "(modelled)" in lines["read_rate"]
              and "13.4 GB/s between hosts (modelled)" in lines["exchange_rate"]
              and len(re.findall(r"^rank \d", ran.out, re.M)) == 1,
              f"{words}: the rates of the model, the share of the busiest rank", ran)
        gm.ok(report["ranks"] == 1 and set(gm.os.listdir()) == files,
              f"{words}: the report is of this run, which makes no other file", report["ranks"], gm.os.listdir())


def seconds_of(words, model):
    ran, report = planned(words, model)
    return report["plan"]["expected"]["seconds"] if report else float("inf")


def machines():
    """Nodes, storage, kinds of GPU."""
    one = seconds_of("reduce s.h5", "nodes=1")
    gm.ok(abs(seconds_of("reduce s.h5", "nodes=16") * 16 / one - 1) < 0.1,
          "nodes with data of their own are as many times as fast", one)
    size = 2 * 2**17 * 2**22
    slow = seconds_of("reduce s.h5", "nodes=16,gpus=4,storage=10G")
    gm.ok(abs(slow / (size / (10 * 2**30)) - 1) < 0.05, "no faster than the storage", slow)
    slow = seconds_of("reduce s.h5", "nodes=16,gpus=4,node_storage=1G")
    gm.ok(abs(slow / (size / (16 * 2**30)) - 1) < 0.05, "no faster than the storage of each node", slow)
    times = [seconds_of("matmul ab.h5 -o o.h5", f"gpu={gpu}") for gpu in ("h200", "h100", "a100")]
    gm.ok(times[0] <= times[1] < times[2], "kinds of GPU", times)
    ran, report = planned("matmul ab.h5 -o o.h5 --output-layout parts", "nodes=1024,gpus=4,net=50G,storage=1T")
    grid = report["plan"]["grid"] if report else None
    gm.ok(ran.code == 0 and report["plan"]["expected"]["working"] > 100 and ran.seconds < 30, f"4096 GPUs: {grid}", ran)
    ran, report = planned("matmul small.h5 -o o.h5", "nodes=64,gpus=4")
    gm.ok(ran.code == 0 and report["plan"]["expected"]["limit"] == "start"
          and report["plan"]["expected"]["working"] == 1, "a small product is limited by its start", ran)
    ran, report = planned("matmul ab.h5 -o o.h5 --device-memory 2G", MODEL)
    gm.ok(ran.code == 0 and report["plan"]["device_bytes"] <= 2 << 30, "--device-memory caps the modelled one", ran)
    ran, report = planned("matmul ab.h5 -o o.h5 --threads 3", MODEL)
    gm.ok(ran.code == 0 and "ring            7 slots" in ran.out, "--threads are those of a modelled rank", ran)


def whole_bytes():
    """Parts of 112 bytes by 6 and by 49 ranks, rounded to the nearest byte, add up to 112 bytes, in print and in the
    report."""
    gm.write("r.h5", x=np.ones((2, 1000, 7), "f4"))
    for nodes, part in ((6, 19), (49, 2)):
        ran, report = planned("reduce r.h5 --axis 1 --stat mean -o o.h5", f"nodes={nodes}")
        link = report["plan"]["expected"]["bytes"]["host_to_file"] if report else None
        gm.ok(link and repr(link) == f"{{'busiest': {part}, 'all': 112}}"
              and f"host_to_file    {part} bytes, 112 bytes by all ranks\n" in ran.out, f"{nodes} ranks: whole bytes",
              link, ran)


def refusals():
    before = gm.state()
    cases = [("matmul small.h5 --model nodes=2 -o o.h5", 2, "--model describes a machine for --plan"),
             ("matmul small.h5 --plan --model nodes=x", 2, "'nodes=x', expected an integer"),
             ("matmul small.h5 --plan --model speed=3", 2, "'speed=3', expected KEY=VALUE"),
             ("matmul small.h5 --plan --model nodes=16384,gpus=2", 2, "expected at most 16384"),
             ("matmul small.h5 --plan --model net=1G --device cpu", 2, "--model plans for GPUs"),
             ("matmul small.h5 --plan --model nodes=2 --grid 3x1x1", 2, "needs 3 ranks, the run has 2"),
             ("matmul small.h5 --plan --model nodes=2 --precision int8", 2, "--precision int8"),
             ("gen matrices g.h5 --size 3 --model nodes=2", 2, "--model is not an option of gen"),
             ("matmul nofile.h5 --plan --model nodes=2", 3, "nofile.h5"),
             ("matmul small.h5 --plan --model memory=1K", 5, "--model memory=1.00 KiB is too little for matmul"),
             ("matmul small.h5 --plan --model memory=1K --host-memory 2K", 5,
              "--host-memory 2.00 KiB is too little for matmul"),
             ("matmul small.h5 --plan --model nodes=2,gpu=a100 --kernel hopper", 2,
              "--kernel hopper: the device cuda has no such kernel"),
             ("matmul small.h5 --plan --model nodes=2,nodes=2", 2, "nodes is given twice"),
             ("matmul small.h5 --plan --model", 2, "needs a value")]
    for words, code, message in cases:
        ran = gm.run(words)
        gm.ok(ran.code == code and message in ran.err and not ran.out, words, ran)
    few = gm.run("matmul small.h5 --plan --model memory=1K")
    need = re.search(r"expected at least (\d+) bytes", few.err)
    ran = gm.run(f"matmul small.h5 --plan --model memory={need[1] if need else 0}")
    gm.ok(ran.code == 0, "the memory of a model that a refusal names does", few, ran)
    ran = gm.run("matmul small.h5 --plan --model nodes=2", 2)
    gm.ok(ran.code == 2 and "there are 2 ranks" in ran.err and not ran.out, "ranks of MPI have no place in a model",
          ran)
    gm.ok(gm.state() == before, "nothing is made", *gm.difference(before, gm.state()))


make()
jobs()
machines()
whole_bytes()
refusals()
gm.done()
