#!/usr/bin/env -S python3 -B
"""--exchange: the path between the devices of ranks, in info, in bench exchange and in the report; an end within 10 s
when a rank dies in it."""
import json
import os
import re

import gm

NCCL_REASON = "NCCL exchanges memory of GPUs only"
IPC_REASON = "a device of kind cpu does not share its memory"


def exchange_of(name):
    with open(name) as file:
        return json.load(file).get("exchange")


# --- On processors: staged ---

ran = gm.run("info --device cpu --report one.json")
gm.ok(ran.code == 0 and "exchange between ranks" not in ran.out and exchange_of("one.json") is None,
      "one rank exchanges nothing", ran)
ran = gm.run("info --device cpu --report two.json", 2)
found = re.search(r"\nexchange between ranks.*\n  path +staged: " + IPC_REASON + r".*; " + NCCL_REASON
                  + r".*\n  to the next +[0-9.e+-]+ GB/s", ran.out)
gm.ok(ran.code == 0 and not ran.errors and found, "info says which path, why, and its rate", ran)
entry = exchange_of("two.json")
gm.ok(entry and entry["path"] == "staged" and NCCL_REASON in entry["reason"] and entry["nccl"] is None,
      "and so does its report", entry)
ran = gm.run("info --device cpu --exchange staged --report asked.json", 2)
entry = exchange_of("asked.json")
gm.ok(ran.code == 0 and entry == {"path": "staged", "reason": "asked for", "nccl": None}, "a path that is asked for",
      ran, entry)
gm.run("gen matrices ab.h5 --size 200")
ran = gm.run("matmul ab.h5 -o c.h5 --grid 1x1x2 --device cpu --report product.json", 2)
entry = exchange_of("product.json")
gm.ok(ran.code == 0 and entry["path"] == "staged" and "shorter than the start of NCCL" in entry["reason"],
      "a path that a product chose", ran, entry)
ran = gm.run("info --device cpu --exchange nccl", 2)
faults = gm.faults_of_refusal(ran, 5, NCCL_REASON)
gm.ok(not faults, "a path that cannot be had is an error with its reason", ran, *faults)
ran = gm.run("bench exchange --device cpu --exchange nccl", 2)
gm.ok(ran.code == 5 and len(ran.errors) == 1 and NCCL_REASON in ran.errors[0], "and so it is in bench exchange", ran)
ran = gm.run("bench exchange --device cpu --host-memory 48M --report bench.json --json rows.json", 2)
with open("rows.json") as file:
    rows = json.load(file)["rows"]
entry = exchange_of("bench.json")
said = "without ipc: " + IPC_REASON in ran.err and "without nccl: " + NCCL_REASON in ran.err
gm.ok(ran.code == 0 and said and entry["path"] == "staged" and IPC_REASON in entry["reason"]
      and NCCL_REASON in entry["reason"], "bench exchange says what it leaves out", ran, entry)
gm.ok({row["variant"].split(", ")[-1] for row in rows} == {"staged", "copy to host"}, "and measures the rest", rows)
ran = gm.run("info --exchange carrier-pigeon", 2)
faults = gm.faults_of_refusal(ran, 2, r"--exchange 'carrier-pigeon': expected auto\|ipc\|nccl\|staged")
gm.ok(not faults, "a path that there is not", ran, *faults)

# --- A rank that dies: the others wait for its messages in a library that stands for NCCL ---

program = os.path.join(gm.BUILD, "tests/src/exchange/nccl.np3")
if os.access(program, os.X_OK) and os.access(os.path.join(os.path.dirname(program), "fake_nccl.so"), os.R_OK):
    for word, title in (("die", "rank 1 is killed"), ("stuck", "an abort hangs")):
        for _ in range(2): # the start counts as well, and a machine may be busy
            ran = gm.run(word, 3, 30, program)
            if ran.seconds < 10:
                break
        gm.ok(ran.code not in (0, None) and ran.seconds < 10, f"{title}: an end in {ran.seconds:.1f} s", ran)
    gm.ok(ran.err.count(gm.ERROR) == 1 and "does not abort" in ran.err, "with one message", ran)
else:
    gm.skip("a rank that dies", f"no {program}")
gm.done()
