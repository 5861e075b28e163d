#!/usr/bin/env -S python3 -B
"""The lessons of the laboratory, on a GPU that does nothing else: `bench` alone takes less than two minutes, no rate
exceeds its limit, and each experiment shows the order that its text teaches. docs/laboratory.md has those that no
longer hold. GPUMEM_TEST_RESULTS: a folder that keeps the results."""
import json
import os
import re
import shutil

import gm

MOST_SECONDS = 120

# Experiment, test, the faster row, the slower one, their least ratio. A row: its variant, or (variant, pattern that its
# shape begins with, x). Ratios of 0.9 say that nothing is lost.
LESSONS = (
    ("A1", "layout", "16 bytes", "12 in 16 bytes", 1.2),
    ("A2", "global", "consecutive", "strided by 32", 4),
    ("A2", "global", "permuted", "consecutive", 0.9),
    ("A2", "global", "consecutive", "half idle", 1.3),
    ("A2", "global", "misaligned", "consecutive", 0.85),
    ("A3", "layout", "one field, array", "one field, structs", 2.5),
    ("A3", "layout", "all, arrays", "all, structs", 1.1),
    ("A4", "atomics", "private sums", "one cell", 100),
    ("A4", "atomics", "private sums", "sums of blocks", 2),
    ("A4", "atomics", "sums of blocks", "sums of warps", 2),
    ("A4", "atomics", "2^20 cells", "32 cells", 5),
    ("A5", "transfer", "to device, pinned", "to device, pageable", 1.5),
    ("A5", "transfer", "from device, pinned", "from device, pageable", 1.5),
    ("A5", "transfer", "on the device", "both ways", 10),
    ("A6", "transpose", "tile [32][33]", "naive", 3),
    ("A6", "transpose", "tile [32][32]", "naive", 1.5),
    ("A6", "transpose", ("shipped", "16384"), "tile [32][33]", 1.05),
    ("B1", "memory", "L1", "L2", 2.5),
    ("B1", "memory", "L2", "global", 1.1),
    ("B1", "memory", "global", "host", 10),
    ("B1", "memory", "constant, one word", "constant, 32 words", 10),
    ("B1", "memory", "L1, latency", "L2, latency", 3),
    ("B1", "memory", "L2, latency", "global, latency", 1.2),
    ("B1", "memory", "global, latency", "host, latency", 1.3),
    ("B2", "global", ("increment", "f64"), ("increment", "u8"), 2),
    ("B2", "global", "matrix by rows", "matrix by columns", 3),
    ("B3", "occupancy", ("loop, 4 bytes", "256.00 MiB", 2048), ("loop, 4 bytes", "256.00 MiB", 32), 15),
    ("B3", "occupancy", ("blocks, 16 bytes", "256.00 MiB", 256), ("blocks, 16 bytes", "256.00 MiB", 32), 1.1),
    ("B5", "layout", "through shared memory", "aligned structs", 1.05),
    ("B6", "cache", "aligned, through L1", "another sector, through L1", 5),
    ("B6", "cache", "another sector, through L1", "another line, through L1", 1.5),
    ("B6", "cache", "misaligned, through L1", "aligned, through L1", 0.9),
    ("B6", "cache", ("own, through L1", "64.00 KiB"), ("own, past L1", "64.00 KiB"), 2.5),
    ("B6", "cache", ("common, past L1", "16.00 MiB"), ("common, past L1", "512.00 MiB"), 1.5),
    ("B7", "shared", ("u32", "by 1,"), ("u32", "by 32,"), 25),
    ("B7", "shared", ("u32", "by 1,"), ("u32", "by 2,"), 1.8),
    ("B7", "shared", ("u32", "by 31,"), ("u32", "by 1,"), 0.9),
    ("B7", "shared", ("u64", "by 1,"), ("u64", "by 16,"), 12),
    ("B7", "shared", ("u128", "by 1,"), ("u128", "by 8,"), 6),
    ("B7", "shared", ("u32", "by 1,"), ("u8", "by 1,"), 3),
    ("B7", "shared", "columns of [32][33]", "columns of [32][32]", 25),
    ("B8", "overlap", "overlapped", "serial", 1.8),
    ("B8", "overlap", "overlapped", "overlapped, pageable", 1.5),
    ("B8", "transfer", "both ways", "to device, pinned", 1.5),
    ("C1", "launch", ("asynchronous", "1 x 1"), ("synchronous", "1 x 1"), 1.8),
    ("C2", "link", ("to device, rank 0", "64.00 MiB"), ("to device, rank 0", "4.00 KiB"), 8),
    ("C2", "transfer", ("asynchronous", "4 bytes"), ("synchronous", "4 bytes"), 1.8),
    ("C3", "global", "consecutive", "random", 3),
    ("C4", "normalize", "u16-u16 nearest-even", "u16-u16 truncate", 0.97),
    ("C6", "gather", ("in order", r"\d+ rows of 4 B"), ("random", r"\d+ rows of 4 B"), 3),
    ("C6", "gather", ("random", r"\d+ rows of 512 B"), ("random", r"\d+ rows of 4 B"), 4),
    ("C6", "gather", ("2 indices", r"\d+ rows of 512 B"), ("1 index", r"\d+ rows of 512 B"), 0.95),
    ("D1", "shared", "reverse, static", "reverse, not shared", 0.9),
    ("D2", "shared", "reverse, dynamic", "reverse, static", 0.93),
    ("D4", "shared", "broadcast", "each its own word", 0.9),
    ("D4", "memory", "shared, latency", "global, latency", 10),
    ("D5", "shared", ("96 KiB again and again", "0 %"), ("96 KiB again and again", "100 %"), 1.5),
    ("E2", "reduce", "256 threads", "1 thread", 8),
    ("E2", "reduce", "256 threads, coalesced", "256 threads", 2),
    ("E2", "reduce", "512 threads", "256 threads, coalesced", 1.3),
    ("E2", "reduce", ("32 x 256", "1048576"), "512 threads", 4),
    ("E2", "reduce", ("unrolled", "1048576"), ("sum by thread 0", "1048576"), 1.02),
    ("E2", "reduce", ("unrolled, full grid", "268435456"), ("unrolled", "268435456"), 2),
    ("E3", "matmul", "16 x 16 tiles", "row in shared memory", 1.2),
    ("E3", "matmul", "plain", "compensated", 1.05),
    ("E3", "matmul", ("fp32", "1000x"), "padded to tiles", 1.3),
    ("E6", "math", "fused multiply-add", "divide", 4),
    ("E6", "math", "__sinf", "sinf", 1.5),
    ("E6", "math", "__expf", "expf", 1.1),
    ("E6", "math", "__fdividef", "divide", 1.3),
    ("E7", "transfer", "to device, pinned", "touch, pin and free", 1.5),
)


def find(rows, test, row):
    """The first such row."""
    variant, shape, x = [*((row,) if isinstance(row, str) else row), None, None][:3]
    found = [one for one in rows if one["test"] == test and one["variant"] == variant
             and re.match(shape or "", one["shape"]) and x in (None, one["x"])]
    return found[0] if found else None


def ratio(fast, slow):
    return slow["rate"] / fast["rate"] if fast["unit"] == "ns" else fast["rate"] / slow["rate"]


if "cuda" not in list(gm.devices()):
    gm.done()
ran = gm.run("bench --device cuda --json all.json --csv all.csv", limit=3 * MOST_SECONDS)
if not gm.ok(ran.code == 0 and not ran.errors, "bench", ran):
    gm.done()
gm.ok(ran.seconds < MOST_SECONDS, f"it takes less than {MOST_SECONDS} s: {ran.seconds:.0f} s", ran.seconds)
if os.environ.get("GPUMEM_TEST_RESULTS"):
    shutil.copy("all.json", os.environ["GPUMEM_TEST_RESULTS"])
    with open(os.path.join(os.environ["GPUMEM_TEST_RESULTS"], "all.txt"), "w") as file:
        file.write(ran.out)
with open("all.json") as file:
    rows = json.load(file)["rows"]
for experiment, test, fast, slow, least in LESSONS:
    name = f"{experiment}: bench {test}: " + " / ".join(v if isinstance(v, str) else v[0] for v in (fast, slow))
    pair = find(rows, test, fast), find(rows, test, slow)
    if gm.ok(all(pair), f"{name}: both are there", fast, slow):
        value = ratio(*pair)
        gm.ok(value >= least, f"{name} = {value:.2f}, at least {least}", *pair)
for test, paths, least in (("transfer", r"(to|from) device, pinned", 0.98), ("launch", r"a?synchronous", 0.95),
                           ("transfer", r"a?synchronous", 0.95)):
    for row in rows:
        if row["test"] == test and re.fullmatch(paths, row["variant"]):
            gm.ok(row["ratio_limit"] >= least, f"bench {test}: {row['variant']}, {row['shape']} is "
                                               f"{row['ratio_limit']:.3f} of a bare loop, at least {least}", row)
gm.done()
