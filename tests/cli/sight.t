#!/usr/bin/env -S python3 -B
"""The GPU of each rank: the one of its number on the host, whatever list of GPUs is in sight; the times of the
start."""
import json
import os
import re

import gm
from gm import np

STEPS = "mpi device wait describe plan".split()


def run(what, device, ranks, environment=None):
    """The report of a small reduction; None if it failed."""
    ran = gm.run(f"reduce x.h5 --stat sum --device {device} --report r.json -q", ranks, environment=environment)
    gm.ok(ran.code == 0 and not ran.errors, f"{what}: it runs", ran)
    with open("r.json") as file:
        report = json.load(file)
    return report if ran.code == 0 else None


def start(device):
    report = run(f"{device}, times of the start", device, 1)
    seconds = (report or {}).get("start", {})
    gm.ok(sorted(seconds) == sorted(STEPS) and all(value >= 0 for value in seconds.values()),
          f"{device}: the report has its steps", seconds)
    if report:
        known = seconds["mpi"] + seconds["wait"]
        gm.ok(known <= report["init_s"] + 1e-6,
              f"{device}: MPI and the wait for the device, {known:.3f} s, are in init_s, {report['init_s']:.3f} s")
    ran = gm.run(f"reduce x.h5 --stat sum --device {device} -v")
    gm.ok(len(re.findall(r"^gpumem-run: note: start: MPI [\d.]+ s, device [\d.]+ s", ran.err, re.M)) == 1,
          f"{device}: -v has one line of it", ran)


def uuids(environment=None):
    return re.findall(r"^  uuid +(\S+)$", gm.run("info", environment=environment).out, re.M)


def sights(all_):
    """The values that a user may set, and the GPUs that ranks take of them in turn."""
    yield "not set", None, all_
    yield "the first", "0", all_[:1]
    yield "the last", str(len(all_) - 1), all_[-1:]
    yield "a UUID", all_[-1], all_[-1:]
    if len(all_) > 1:
        yield "in another order", ",".join(str(i) for i in reversed(range(len(all_)))), all_[::-1]
        yield "UUIDs", ",".join(reversed(all_)), all_[::-1]
        yield "a list that ends early", f"0,1,{len(all_)}", all_[:2]
        yield "spaces", "0, 1", None


def choice():
    all_ = uuids()
    gm.ok(all_ and len(set(all_)) == len(all_), "info lists each GPU once", all_)
    gm.ok(uuids({"CUDA_VISIBLE_DEVICES": ""}) == [], "none where none is in sight")
    for what, visible, wanted in sights(all_):
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        seen = uuids(environment)
        if wanted is None:
            wanted = seen # as CUDA reads it
        gm.ok(seen == wanted, f"{what}: info lists the GPUs in sight", visible, seen, wanted)
        for ranks in sorted({1, 2, len(all_) + 1}):
            report = run(f"{what}, {ranks} ranks", "cuda", ranks, environment)
            if report:
                found = [device["uuid"] for device in report["devices"]]
                gm.ok(found == [wanted[rank % len(wanted)] for rank in range(ranks)],
                      f"{what}, {ranks} ranks: each has its own", found, wanted)


gm.write("x.h5", x=np.ones((8, 8)))
for device in gm.devices():
    start(device)
    if device == "cuda" and "CUDA_VISIBLE_DEVICES" in os.environ:
        gm.skip("the choice of a GPU", "CUDA_VISIBLE_DEVICES is set")
    elif device == "cuda":
        choice()
gm.done()
