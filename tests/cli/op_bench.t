#!/usr/bin/env -S python3 -B
"""bench: its tests run and check themselves; table, JSON and CSV agree; invalid options are refused."""
import csv
import json
import os
import re

import gm

SOURCE = os.environ.get("abs_top_srcdir", os.path.dirname(os.path.abspath(__file__)) + "/../..")

ran = gm.run("bench --list")
with open(os.path.join(SOURCE, "src/bench/benches.def")) as file:
    names = re.findall(r'^GM_BENCH\("(\w+)"', file.read(), re.MULTILINE)
gm.ok(ran.code == 0 and names and [line.split()[0] for line in ran.out.splitlines()] == names, "--list names the tests",
      ran, names)

KEYS = {"test", "variant", "kernel", "shape", "cache", "median_s", "spread", "repetitions", "calls", "held", "rate",
        "unit", "limit", "ratio_limit", "ratio_rival", "max_error", "mean_error", "leaf", "tile"}


def results(test, shapes, device):
    """Runs a test and returns the rows of its JSON, none if the run fails."""
    name = f"bench {test} --shapes {shapes} --device {device}"
    ran = gm.run(f"{name} --json r.json --csv r.csv", limit=120)
    if not gm.ok(ran.code == 0 and not ran.errors, name, ran):
        return []
    with open("r.json") as file:
        root = json.load(file)
    rows = root["rows"]
    gm.ok(root["schema"] == "gpumem.bench/1" and root["device"]["kind"] == device and root["host"] and root["date"],
          f"{name}: head of the JSON", root)
    gm.ok(rows and all(KEYS <= row.keys() for row in rows), f"{name}: keys of its rows", rows)
    gm.ok(all(row["repetitions"] >= 5 and row["median_s"] > 0 and row["rate"] > 0 and row["spread"] >= 0
              for row in rows), f"{name}: figures", rows)
    gm.ok({row["cache"] for row in rows} == {"warm", "cold"}, f"{name}: warm and cold", rows)
    with open("r.csv") as file:
        table = list(csv.DictReader(file))
    gm.ok([(row["variant"], row["cache"], float(row["median_s"])) for row in table]
          == [(row["variant"], row["cache"], row["median_s"]) for row in rows],
          f"{name}: the CSV has the same rows", table)
    gm.ok(sum(line.startswith(f"{test} ") for line in ran.out.splitlines()) == len(rows),
          f"{name}: the table has as many rows", ran)
    return rows


for device in gm.devices():
    rows = results("matmul", "64,65x33x129", device)
    most = {"fp32": 2e-5, "exact": 6e-8, "fp64": 1e-13}
    gm.ok({row["variant"] for row in rows} >= most.keys(), f"{device}: every precision", rows)
    gm.ok(all(row["max_error"] <= most[row["variant"]] for row in rows if row["variant"] in most), f"{device}: errors",
          rows)
    gm.ok({row["shape"] for row in rows} == {"64x64x64", "65x33x129"}, f"{device}: the shapes of --shapes", rows)
    rows = results("copy", "1M", device)
    gm.ok(any(row["ratio_rival"] for row in rows), f"{device}: copies are compared with a rival", rows)
    for test in ("normalize", "histogram"):
        rows = results(test, "1M", device)
        gm.ok(rows and all(row["max_error"] == 0 for row in rows), f"{device}: {test}: no errors", rows)
        gm.ok(any(row["ratio_rival"] for row in rows) == (test == "normalize" or device == "cuda"),
              f"{device}: {test}: rivals", rows)

    rows = results("reduce", "1M", device)
    types = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64"}
    gm.ok({row["shape"].split()[0] for row in rows} == types, f"{device}: reductions of every type", rows)
    gm.ok(all(row["ratio_limit"] for row in rows if row["variant"] == "min max sum sumsq"),
          f"{device}: the limit of reductions is a plain read", rows)

ran = gm.run("bench copy --shapes 64K --device cpu", ranks=2)
gm.ok(ran.code == 0 and ran.out.count("\ncopy ") == 4 and "rank 0" in ran.err, "two ranks: one measures", ran)

for arguments, code, pattern in (
        ("bench nothing", 2, "'nothing'"), ("bench matmul --shapes 0", 2, "--shapes '0'"),
        ("bench matmul --shapes 3x4", 2, "--shapes"), ("bench copy --shapes 1x", 2, "--shapes"),
        ("bench reduce --shapes 1K", 2, "bench reduce"), ("bench --shapes 64", 2, "exactly one test"),
        ("bench copy --shapes 64K --json none/r.json", 4, "none/r.json")):
    ran = gm.run(f"{arguments} --device cpu")
    gm.ok(ran.code == code and len(ran.errors) == 1 and pattern in ran.errors[0], f"refused: {arguments}", ran)
gm.done()
