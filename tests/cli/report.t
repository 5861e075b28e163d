#!/usr/bin/env -S python3 -B
"""The end of a run, a line and with -v a table, and the records of ranks in its report."""
import json
import os
import re
import signal

import gm
from gm import np

RNG = np.random.default_rng(23)
gm.write("in.h5", A=gm.integers(RNG, (90, 70)).astype("f4"), B=gm.integers(RNG, (70, 80)).astype("f4"))
gm.write("stack.h5", d=gm.integers(RNG, (9, 8, 7)).astype("f4"))
gm.write("index.h5", i=np.array([3, 1, 8]))
DEVICE = "" if os.environ.get("GPUMEM_TEST_DEVICE") else " --device cpu"
SECONDS = r"\d+\.\d{3} s"
PHASE = "(start|open|read|to_device|compute|exchange|from_device|write|verify|sync)"
RATE = r"\d[\d.]* [kMGT]?"
LINE = re.compile(rf"^gpumem-run: note: ((?P<read>{RATE})B read)?(, )?((?P<written>{RATE})B written)? in {SECONDS}: "
                  rf"{RATE}B/s(?P<flop>, {RATE}flop/s)?, "
                  rf"limited by {PHASE} \({SECONDS}( on rank \d+)?\)(; {PHASE} {SECONDS})?([;,] {PHASE} {SECONDS})?$",
                  re.M)


def lines(ran):
    return [found for found in LINE.finditer(ran.err)]


def rounded(count):
    """Bytes as the line has them."""
    return f"{count:.3g} " if count < 999.5 else f"{count / 1e3:.3g} k"


# --- The line ---

A, B, C, D = 90 * 70 * 4, 70 * 80 * 4, 90 * 80 * 4, 9 * 8 * 7 * 4
RUNS = [("gen matrices made.h5 --size 20 --type f32", None, 2 * 1600, False),
        ("matmul in.h5 -o out.h5", A + B, C, True), ("reduce stack.h5:/d", D, None, False),
        ("reduce stack.h5:/d --axis 0 --stat max -o out.h5", D, 56 * 4, False),
        ("normalize stack.h5 --method scale -o out.h5", D, D, False), ("flip stack.h5 --axis 0 -o out.h5", D, D, False),
        ("transpose stack.h5 --axes 0,1 -o out.h5", D, D, False),
        ("compare stack.h5:/d stack.h5:/d", 2 * D, None, False)]
for ranks in (1, 3):
    for command, read, written, is_product in RUNS:
        ran = gm.run(command + " --force" * (" -o " in command or command.startswith("gen")) + DEVICE, ranks)
        found = lines(ran)
        line = found[0].groupdict() if found else {}
        exact = ranks == 1 or not is_product # ranks may read the same panels
        gm.ok(ran.code == 0 and len(found) == 1
              and ran.err.splitlines().index(found[0][0]) == len(ran.err.splitlines()) - 1
              and (not exact or line["read"] == (read and rounded(read)))
              and line["written"] == (written and rounded(written)) and bool(line["flop"]) == is_product
              and (" on rank " in found[0][0]) == (ranks > 1), f"{command}, {ranks} ranks: one line, the last", ran,
              line)
    ran = gm.run("compare 'stack.h5:/d[:8]' 'stack.h5:/d[1:]'" + DEVICE, ranks)
    gm.ok(ran.code == 1 and len(lines(ran)) == 1, f"datasets that differ, {ranks} ranks: the comparison is complete",
          ran)
    ran = gm.run("gather stack.h5:/d --index index.h5:/i -o gathered.h5 --force" + DEVICE, ranks)
    gm.ok(ran.code == 0 and len(lines(ran)) == 1, f"gather, {ranks} ranks", ran)
    for command in ("info stack.h5", "info", "flip stack.h5 --axis 0 -o plan.h5 --plan", "reduce stack.h5:/d -q",
                    "--version"):
        ran = gm.run(command + DEVICE * (not command.startswith("--")), ranks)
        gm.ok(ran.code == 0 and not lines(ran) and "limited by" not in ran.err, f"{command}, {ranks} ranks: no line",
              ran)

# Ranks with other words than rank 0: its own count.
for first, other, want in (("", " -q", 1), (" -q", "", 0), (" --report r.json", "", 1),
                           ("", " --report other.json", 1)):
    words = [gm.words("reduce stack.h5:/d --stat max" + DEVICE + own) for own in (first, other)]
    command = [*gm.launcher(1), gm.PROGRAM, *words[0], ":", "-np", "1", gm.PROGRAM, *words[1]]
    ran = gm.finish(gm.start(command), 60)
    gm.ok(ran.code == 0 and len(lines(ran)) == want and not os.path.exists("other.json"),
          f"'{first}' on rank 0, '{other}' on rank 1", ran)

# --- The table ---

for ranks in (1, 3):
    ran = gm.run("matmul in.h5 -o out.h5 --force -v" + DEVICE, ranks)
    rows = re.findall(r"^gpumem-run: note: (\w+) +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+) +(-|\d+\.\d)$",
                      ran.err, re.M)
    names = [row[0] for row in rows]
    gm.ok(ran.code == 0 and {"start", "open", "read", "compute", "work"} <= set(names) and len(set(names)) == len(names)
          and names[-1] == "work" and all(float(low) <= float(mean) <= float(high) and 0 <= int(rank) < ranks for _,
                                          low, mean, high, rank, _ in rows), f"-v: a table of phases, {ranks} ranks",
          ran, rows)
    gm.ok(all(len(line) <= 80 for line in ran.err.splitlines()
              if re.match(rf"gpumem-run: note: (phase|imbalance|work|{PHASE}) ", line)), "in 80 columns", ran)
    work = {row[0]: row for row in rows}.get("work", [""] * 6)
    gm.ok(re.search(rf"^gpumem-run: note: imbalance \d+\.\d\d \(work, max / avg\), slowest rank {work[4]} on \S+$",
                    ran.err, re.M), "and the slowest rank", ran)

# --- The report ---


def report(command, ranks, code=0, environment=None):
    ran = gm.run(f"{command} --report r.json" + DEVICE, ranks, environment=environment)
    with open("r.json") as file:
        found = json.load(file)
    gm.ok(ran.code == code and found["exit"] == code, f"{command}, {ranks} ranks", ran)
    return ran, found


KEYS = {"rank", "host", "processors", "threads", "numa_node", "numa_nodes", "device", "slurm", "init_s", "sync_s",
        "phases", "flop", "bytes_read", "bytes_written", "peak_host_bytes", "peak_device_bytes"}
for ranks in (1, 3):
    ran, found = report("flip stack.h5 --axis 0 -o out.h5 --force", ranks)
    entries = found["per_rank"]
    gm.ok(len(lines(ran)) == 1 and found["ranks"] == ranks
          and [entry["rank"] for entry in entries] == list(range(ranks))
          and all(set(entry) == KEYS for entry in entries), "an entry for each rank, of the same keys",
          found["per_rank"])
    gm.ok(all(entry["host"] == found["hosts"][0] and entry["processors"]["count"] >= 1 and entry["threads"] >= 1
              and isinstance(entry["processors"]["bound"], bool)
              and re.match(r"[\d,-]+$", entry["processors"]["list"] or "0")
              and entry["device"]["kind"] == device["kind"] and entry["device"]["name"] == device["name"] for entry,
              device in zip(entries, found["devices"])), "host, processors, device", entries, found["devices"])
    gm.ok(sum(entry["bytes_read"] for entry in entries) == found["bytes_read"] == D
          and sum(entry["bytes_written"] for entry in entries) == D, "the bytes of the ranks add up", found)
    phases = found["phases"]
    gm.ok(all(abs(values["max"] - entries[values["slowest"]]["phases"][name]) < 1e-12
              and abs(values["average"] - sum(entry["phases"][name] for entry in entries) / ranks) < 1e-9
              and values["min"] <= values["median"] <= values["max"] for name, values in phases.items()),
          "phases over the ranks", phases, entries)
    work = found["work"]
    gm.ok(work["imbalance"] >= 1 and 0 <= work["slowest"] < ranks and found["limit"]["phase"] in PHASE
          and 0 <= found["limit"]["rank"] < ranks, "the slowest rank, and what limits the run", work, found["limit"])
    gm.ok(set(found["libraries"]) == {"hdf5", "mpi", "blas", "hwloc", "jansson", "libdeflate"}
          and all(re.search(r"\d+\.\d+", text) for text in found["libraries"].values()), "libraries",
          found["libraries"])
    _, found = report("info stack.h5", ranks)
    gm.ok(found["per_rank"][0]["processors"] is None and found["per_rank"][0]["device"] is None
          and "limit" not in found, "info of a file", found)

_, found = report("matmul in.h5 -o out.h5 --force --grid 1x1x1", 3)
gm.ok([entry["flop"] > 0 and entry["peak_host_bytes"] > 0 for entry in found["per_rank"]] == [True, False, False]
      and all(entry["peak_host_bytes"] == entry["peak_device_bytes"] == 0 for entry in found["per_rank"][1:]),
      "idle ranks have no ring", found["per_rank"])

SLURM = {"SLURM_JOB_ID": "4711", "SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": "3"}
_, found = report("reduce stack.h5:/d -q", 1, environment=SLURM)
numbers = {"job": 4711, "array_job": 4700, "array_task": 3}
gm.ok(found["per_rank"][0]["slurm"].items() >= numbers.items(), "a job of Slurm, in numbers", found["per_rank"])

# --- Failures: no line; the report has the ranks ---

for ranks in (1, 3):
    for command, code in (("flip stack.h5 --axis 0 -o out.h5", 4), ("reduce stack.h5:/missing", 3),
                          ("matmul in.h5 -o new.h5 --transpose a", 3)):
        ran, found = report(command, ranks, code)
        gm.ok(not lines(ran) and "limited by" not in ran.err and len(ran.errors) == 1
              and len(found["per_rank"]) == ranks and "limit" not in found, "no line after a failure", ran)
if gm.HAS_FAULT:
    _, found = report("matmul in.h5 -o out.h5 --force --grid 1x1x1", 3, environment=gm.fault("sync:1:0:delay=4000"))
    gm.ok(found["per_rank"][0]["sync_s"] >= 4 and found["phases"]["write"]["max"] < 1,
          "who waits until another rank has flushed does not write", found["phases"], found["per_rank"])
    for ranks in (1, 3):
        ran = gm.run("flip stack.h5 --axis 0 -o signal.h5 -v --report r.json" + DEVICE, ranks,
                     environment=gm.fault(f"read:1:0:signal={int(signal.SIGUSR2)}", start="stack.h5"))
        with open("r.json") as file:
            found = json.load(file)
        gm.ok(ran.code == 75 and not lines(ran) and not re.search("limited by|imbalance", ran.err)
              and found["exit"] == 75 and "limit" not in found and not os.path.exists("signal.h5"),
              f"a signal, {ranks} ranks: neither line nor table", ran)
    # Each of the last allocations fails: the run does, or it has done its work, and only the line is missing. On the
    # processor: the last ones of a run with a GPU are CUDA's own, which crashes when the process ends.
    command = "reduce stack.h5:/d -v --device cpu"
    gm.run(command, environment=gm.fault(log="count"))
    most = gm.struck("count")[1]["malloc"]
    missing = 0
    for n in range(max(1, most - 12), most + 1):
        ran = gm.run(command, environment=gm.fault(f"malloc:{n}:0"))
        told = "the times of the ranks cannot be collected" in ran.err
        missing += told
        if ran.code == 0:
            good = not ran.errors and bool(lines(ran)) != told and ran.out
        else:
            good = len(ran.errors) == 1 and not lines(ran)
        gm.ok(good, f"allocation {n} of {most} fails", ran)
    gm.ok(missing >= 1, "one of them was that of the line, and the run is none the worse")
else:
    gm.skip("a signal, lack of memory", "no library of faults")
if os.path.exists("/dev/full"):
    ran = gm.run("reduce stack.h5:/d --report -" + DEVICE + " --stat max", 1)
    gm.ok(ran.code == 0 and len(lines(ran)) == 1 and json.loads(ran.out)["results"],
          "--report -: the line goes to standard error", ran)
    ran = gm.finish(gm.start(["/bin/sh", "-c", 'exec "$0" "$@" >/dev/full', gm.PROGRAM,
                              *gm.words("reduce stack.h5:/d --report -" + DEVICE)]), 60)
    gm.ok(ran.code == 4 and not lines(ran) and len(ran.errors) == 1, "a report to a full device: no line", ran)
gm.done()
