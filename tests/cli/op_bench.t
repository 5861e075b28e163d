#!/usr/bin/env -S python3 -B
"""bench: its tests run and check themselves; table, JSON and CSV agree; invalid options are refused."""
import csv
import json
import os
import re
import shutil
import statistics
import xml.etree.ElementTree

import gm

ran = gm.run("bench --list")
with open(os.path.join(gm.SOURCE, "src/bench/benches.def")) as file:
    names = re.findall(r'^GM_BENCH\("(\w+)"', file.read(), re.MULTILINE)
gm.ok(ran.code == 0 and names and [line.split()[0] for line in ran.out.splitlines()] == [*names, "info"],
      "--list names the tests, and info", ran, names)
gm.ok(re.search(r"^copy .*; from article A, section 5; lecture B, section 4 \(A5 B4\)$", ran.out, re.MULTILINE),
      "--list says where a test is from", ran)

KEYS = {"test", "variant", "kernel", "shape", "cache", "median_s", "spread", "repetitions", "calls", "held", "rate",
        "unit", "limit", "limit_by", "ratio_limit", "computed_limit", "ratio_rival", "max_error", "mean_error", "leaf",
        "tile"}


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
    rows = results("matmul", "64,65x33x129,20x17x24x40", device)
    most = {"fp32": 2e-5, "exact": 6e-8, "fp64": 1e-13}
    gm.ok({row["variant"] for row in rows} >= most.keys(), f"{device}: every precision", rows)
    gm.ok(all(row["max_error"] <= most[row["variant"]] for row in rows if row["variant"] in most), f"{device}: errors",
          rows)
    gm.ok({row["shape"] for row in rows} == {"64x64x64", "65x33x129", "20x17x24x40"},
          f"{device}: the shapes of --shapes", rows)
    batch = [row for row in rows if row["panel"] == "batch"]
    gm.ok({row["shape"] for row in batch} == {"20x17x24x40"} and {row["variant"] for row in batch} >= most.keys()
          and all(abs(row["rate"] * row["median_s"] * 1e12 / (2 * 20 * 17 * 24 * 40) - 1) < 1e-9 for row in batch),
          f"{device}: a batch in every precision, and its flop", batch)
    kinds = {"uniform", "centred", "normal", "scaled", "huge"}
    gm.ok(all(row["errors"].keys() == kinds
              and all(error["max"] <= 2 * most[row["variant"]] for error in row["errors"].values()) for row in rows
              if row["variant"] in most), f"{device}: errors of each kind of data", rows)
    ran = gm.run(f"bench matmul --shapes grid:17:64:100 --device {device} --json grid.json --force", limit=120)
    with open("grid.json") as file:
        root = json.load(file)
    rows = {name: [row for row in root["rows"] if row["variant"] == name] for name in most}
    gm.ok(ran.code == 0 and not ran.errors
          and all(len(rows[name]) == 9 == len({row["shape"] for row in rows[name]}) for name in most),
          f"{device}: a grid of shapes", ran)
    gm.ok({"17x17x17", "64x64x64", "100x100x100", "17x64x100"} <= {row["shape"] for row in rows["fp32"]}
          and all(f'{row["y"]:.0f}x{row["x"]:.0f}x{row["z"]:.0f}' == row["shape"] and row["panel"] == row["variant"]
                  for name in most for row in rows[name]), f"{device}: its shapes, and their places in the picture",
          rows)
    means = {ratio["variant"]: ratio for ratio in root["ratios"]}
    for name in most:
        ratios = {row["shape"]: row["ratio_rival"] for row in rows[name] if row["ratio_rival"]}
        gm.ok(not ratios and device == "cuda" # cuBLAS need not be there
              or means[name]["shapes"] == 9
              and abs(means[name]["geometric_mean"] / statistics.geometric_mean(ratios.values()) - 1) < 1e-9
              and means[name]["worst"] == min(ratios.values()) == ratios[means[name]["worst_shape"]]
              and means[name]["best"] == max(ratios.values()) == ratios[means[name]["best_shape"]],
              f"{device}: {name}: the mean ratio to the library, and the extremes", ratios, means[name])
        gm.ok(all(means[name]["errors"][kind]["max"] == max(row["errors"][kind]["max"] for row in rows[name])
                  for kind in kinds), f"{device}: {name}: the largest errors of each kind of data", means[name])
        gm.ok(re.search(rf"^  {name} +warm +9 ", ran.out, re.MULTILINE) or not ratios,
              f"{device}: {name}: the means are printed", ran)
    rows = results("copy", "1M", device)
    gm.ok(any(row["ratio_rival"] for row in rows), f"{device}: copies are compared with a rival", rows)
    for test, variants in (("transpose", 8), ("flip", 7), ("gather", 10)):
        rows = results(test, "64K", device)
        gm.ok(len(rows) == 2 * variants and all(row["limit_by"] == "copy" and row["ratio_limit"] > 0 for row in rows),
              f"{device}: {test} is held against a copy", rows)
    for test in ("normalize", "histogram"):
        rows = results(test, "1M", device)
        gm.ok(rows and all(row["max_error"] == 0 for row in rows), f"{device}: {test}: no errors", rows)
        gm.ok(any(row["ratio_rival"] for row in rows) == (test == "normalize" or device == "cuda"),
              f"{device}: {test}: rivals", rows)

    rows = results("reduce", "1M", device)
    types = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"}
    gm.ok({row["shape"].split()[0] for row in rows} == types, f"{device}: reductions of every type", rows)
    gm.ok(all(row["ratio_limit"] for row in rows if row["variant"] == "min max sum sumsq"),
          f"{device}: the limit of reductions is a plain read", rows)

# --- Pictures ---

PLOT = "bench copy --shapes 64K,128K,256K --device cpu --threads 1 -q --plot"
if shutil.which("gnuplot"):
    for again in ("", ", in the place of one of its own"):
        ran = gm.run(f"{PLOT} p.svg")
        gm.ok(ran.code == 0 and not ran.err and "<svg" in open("p.svg").read() and "bench copy" in open("p.svg").read(),
              f"--plot draws an SVG{again}", ran)
    ran = gm.run("bench copy flip --device cpu --threads 1 -q --host-memory 30M --plot - --csv r.csv --force")
    gm.ok(ran.code == 0 and ran.out.startswith("<?xml") and ran.out.rstrip().endswith("</svg>"),
          "--plot - writes it to standard output, bars and curves", ran)
    ran = gm.run("bench plot grid.json --plot m.svg --device cpu")
    words = "\n".join(xml.etree.ElementTree.parse("m.svg").getroot().itertext())
    gm.ok(ran.code == 0 and all(f"bench matmul: {name}" in words for name in most)
          and len(re.findall(r"^\d+\.\d\d$", words, re.MULTILINE)) >= 27, "a grid is a map for each precision", ran,
          words)
    gm.run("bench copy --shapes 64K,128K,256K --device cpu --threads 1 -q --json p.json")
    for words in ("", "copy"):
        ran = gm.run(f"bench plot p.json {words} --plot - --device cpu")
        gm.ok(ran.code == 0 and "<svg" in ran.out and "bench copy" in ran.out, f"bench plot p.json {words}", ran)
    for words, code, pattern in (("p.json flip --plot x.svg", 3, "p.json: has no results of the tests asked for"),
                                 ("p.json --plot p.json --force", 4, "p.json.*input"),
                                 ("p.json", 2, "expects a file of bench --json, and --plot"),
                                 ("p.svg --plot x.svg", 3, "p.svg.*JSON"),
                                 ("p.json --plot x.svg --csv x.csv", 2, "takes no --csv")):
        ran = gm.run(f"bench plot {words} --device cpu")
        gm.ok(not gm.faults_of_refusal(ran, code, pattern) and not os.path.exists("x.svg"),
              f"refused: bench plot {words}", ran)
    hostile = "`touch pwned`", 'x"\n!touch pwned\n#'
    with open("hostile.json", "w") as file:
        json.dump({"schema": "gpumem.bench/1", "device": {"name": hostile[0]},
                   "rows": [{"test": text, "variant": 40 * "é", "unit": text, "rate": rate, "x": 2, "x_name": text,
                             "panel": text} for text in hostile for rate in (1e308, 1, -1)]}, file)
    ran = gm.run("bench plot hostile.json --plot h.svg --device cpu", limit=30)
    gm.ok(ran.code == 0 and not os.path.exists("pwned") and xml.etree.ElementTree.parse("h.svg"),
          "bench plot: texts are texts, and figures out of range are none", ran)
    with open("mine.svg", "w") as file:
        file.write("<svg/>")
    ran = gm.run(f"{PLOT} mine.svg")
    gm.ok(not gm.faults_of_refusal(ran, 4, "mine.svg.*--force") and open("mine.svg").read() == "<svg/>",
          "a file of the user's is kept", ran)
    ran = gm.run(f"{PLOT} same.svg --csv same.svg")
    gm.ok(not gm.faults_of_refusal(ran, 4, "same.svg") and not os.path.exists("same.svg"),
          "two results in one file are refused", ran)
else:
    gm.skip("--plot", "no gnuplot")
ran = gm.run(f"{PLOT} none.svg", environment={"PATH": "/nowhere"})
gm.ok(not gm.faults_of_refusal(ran, 4, "needs gnuplot") and not os.path.exists("none.svg"),
      "no gnuplot: refused before the work", ran)

# --- Two runs ---

def results_file(name, rates, device="GPU A", spread=0.01, unit="GB/s", **more):
    """Rates of bench copy by variant."""
    rows = [{"test": "copy", "variant": variant, "shape": "1 MiB", "cache": "warm", "rate": rate, "unit": unit,
             "spread": spread, "threads": None} for variant, rate in rates.items()]
    with open(name, "w") as file:
        json.dump({"schema": "gpumem.bench/1", "device": {"name": device}, "rows": rows} | more, file)


def verdicts(ran):
    return {line.split()[1]: line.split("%")[-1].split("-  ")[-1].strip() for line in ran.out.splitlines()[1:]
            if line.startswith("copy ")}


results_file("old.json", {"a": 100, "b": 100, "c": 100, "d": 100, "e": 0, "f": 5})
for name, rates, spread, code, want in (("a loss", {"a": 97, "b": 98.1, "c": 101.9, "d": 103}, 0.01, 1,
                                         {"a": "slower", "b": "the same", "c": "the same", "d": "faster"}),
                                        ("no loss", {"a": 98.1, "d": 103, "e": 3}, 0.01, 0,
                                         {"a": "the same", "d": "faster", "e": "not comparable"}),
                                        ("a loss within the noise", {"a": 85}, 0.1, 0, {"a": "the same"}),
                                        ("a loss beyond the noise", {"a": 79}, 0.1, 1, {"a": "slower"}),
                                        ("other rows", {"new": 1}, 0.01, 0, {"new": "new", "a": "gone"})):
    results_file("new.json", rates, spread=spread)
    for ranks in (1, 2) if name == "a loss" else (1,):
        ran = gm.run("bench compare old.json new.json", ranks)
        got = verdicts(ran)
        gm.ok(ran.code == code and want.items() <= got.items()
              and len(got) == len({*rates, "a", "b", "c", "d", "e", "f"}), f"bench compare: {name}, {ranks} ranks", ran,
              got)
results_file("times.json", {"a": 100, "b": 100, "c": 100}, unit="ns")
results_file("new.json", {"a": 103, "b": 97, "c": 101.9}, unit="ns")
ran = gm.run("bench compare times.json new.json")
gm.ok(ran.code == 1 and verdicts(ran) == {"a": "slower", "b": "faster", "c": "the same"} and "1 slower" in ran.out,
      "bench compare: a time that grows is slower", ran)
ran = gm.run("bench compare old.json new.json")
gm.ok(ran.code == 0 and set(verdicts(ran).values()) <= {"not comparable", "gone"}, "bench compare: other units", ran)
results_file("new.json", {"a": 100}, "GPU B")
ran = gm.run("bench compare old.json new.json")
gm.ok(ran.code == 0 and "GPU A, GPU B" in ran.err, "bench compare: other devices are named", ran)
with open("bad.json", "w") as file:
    file.write("{")
results_file("other.json", {}, schema="gpumem.report/1")
results_file("odd.json", {"a\x1b[31m": "fast", "b": None}, rows=[1, "x", {"test": 3}])
for words, code, pattern in (("old.json bad.json", 3, "bad.json.*line 1"), ("none.json old.json", 3, "none.json"),
                             ("old.json other.json", 3, "other.json.*--json"), ("old.json", 2, "OLD and NEW"),
                             ("old.json old.json old.json", 2, "OLD and NEW"),
                             ("old.json old.json --csv x.csv", 2, "--csv")):
    ran = gm.run(f"bench compare {words}")
    gm.ok(not gm.faults_of_refusal(ran, code, pattern), f"bench compare {words}: refused ({code})", ran)
for words, pattern in (("--list --json x.json", "takes no --json"), ("copy --list", "takes no 'copy'"),
                       ("compare old.json old.json --list", "takes no --list"),
                       ("copy --shapes 1M --kernel simt", "--kernel 'simt'")):
    ran = gm.run(f"bench {words} --device cpu")
    gm.ok(not gm.faults_of_refusal(ran, 2, pattern) and not os.path.exists("x.json"), f"bench {words}: refused", ran)
for test in ("matmul", "scaling matmul"):
    ran = gm.run(f"bench {test} --shapes 8 --kernel hopper --device cpu")
    gm.ok(ran.code == 2 and len(ran.errors) == 1 and "the device cpu has no such kernel" in ran.err,
          f"bench {test}: a kernel that the device lacks", ran)
alike = [{"test": "copy", "variant": "a", "shape": "1 MiB", "cache": "warm", "rate": rate, "unit": "GB/s",
          "spread": 0.01} for rate in (100, 50, 75)]
results_file("alike.json", {}, rows=alike)
ran = gm.run("bench compare alike.json alike.json")
gm.ok(ran.code == 0 and ran.out.count("the same") == 3, "bench compare: rows of one name are compared in their order",
      ran)
results_file("fewer.json", {}, rows=alike[:2])
ran = gm.run("bench compare alike.json fewer.json")
gm.ok(ran.code == 0 and ran.out.count("the same") == 2 and ran.out.count("gone") == 1,
      "bench compare: one of them is gone", ran)
results_file("elsewhere.json", {"z": 1})
ran = gm.run("bench compare alike.json elsewhere.json")
gm.ok(ran.code == 0 and "no test in common" in ran.err and " 0.000" not in ran.out, "bench compare: nothing in common",
      ran)
ran = gm.run("bench compare old.json odd.json")
gm.ok(ran.code == 0 and "\x1b" not in ran.out, "bench compare: rows that bench does not write", ran)

# --- Several ranks ---

ran = gm.run("bench copy --shapes 64K --device cpu --threads 1 --json r.json", ranks=3)
with open("r.json") as file:
    rows = json.load(file)["rows"]
gm.ok(ran.code == 0 and ran.out.count("\ncopy ") == 4 == ran.out.count(" 3 ranks, ") and len(rows) == 4,
      "3 ranks measure together", ran)
gm.ok(all(row["ranks"]["count"] == 3 and 0 < row["ranks"]["rate_min"] <= row["rate"] <= row["ranks"]["rate_max"]
          and 0 <= row["ranks"]["slowest"] < 3 and row["ranks"]["slowest_host"] for row in rows),
      "minimum, median and maximum over ranks, and the slowest", rows)
if gm.HAS_FAULT:
    bad = []
    for spec in ("malloc:1+:1", "malloc:12+:1", "malloc:20+:2"):
        ran = gm.run("bench copy --shapes 64K --device cpu --threads 1 -q", 3, 60,
                     environment=gm.fault(spec, start="init"))
        faults = [fault for fault in gm.faults_of_refusal(ran, 5, "rank [12] on", 30) if "standard output" not in fault]
        bad += [spec, *faults, ran] if faults and ran.code else []
    gm.ok(not bad, "one rank lacks memory: all end (5)", *bad)

for arguments, code, pattern in (
        ("bench nothing", 2, "'nothing'"), ("bench matmul --shapes 0", 2, "--shapes '0'"),
        ("bench matmul --shapes 3x4", 2, "--shapes"), ("bench matmul --shapes 0x4x4x4", 2, "'0x4x4x4'"),
        ("bench matmul --shapes 65536x4x4x4", 2, "up to 65535"),
        ("bench matmul --shapes 2x3x4x5x6", 2, "BATCHxMxNxK"), ("bench matmul --shapes grid:64:65", 2, "odd number"),
        ("bench matmul --shapes 2147483648", 2, "sides from 1 to 2147483647"),
        ("bench scaling matmul --shapes 0", 2, "sides from 1 to 2147483647"),
        ("bench matmul --shapes grid:2147483648", 2, "sides from 1 to 2147483647"),
        ("bench copy --shapes 1x", 2, "--shapes"),
        ("bench copy --shapes 64M,9223372036854775807", 2, "sizes of at least 4096 bytes, at most 4194304T"),
        (f"bench copy --shapes 4096.{'0' * 34}G", 2, "sizes of at least 4096 bytes"), # is not cut to 4096 bytes
        ("bench reduce --shapes 1K", 2, "bench reduce"), ("bench --shapes 64", 2, "exactly one test"),
        ("bench copy --shapes 64K --json none/r.json", 4, "none/r.json")):
    ran = gm.run(f"{arguments} --device cpu")
    gm.ok(ran.code == code and len(ran.errors) == 1 and pattern in ran.errors[0], f"refused: {arguments}", ran)
gm.done()
