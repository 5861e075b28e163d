#!/usr/bin/env -S python3 -B
"""bench by several ranks: who is the slowest, messages and exchanges between them, products of one rank and of all."""
import json
import re

import gm

ran = gm.run("bench global --shapes 64K --device cpu --threads 1 --json r.json", 2, 120)
with open("r.json") as file:
    rows = json.load(file)["rows"]
named = re.findall(r"the slowest is rank [01] on \S+$", ran.out, re.MULTILINE)
gm.ok(ran.code == 0 and len(rows) == ran.out.count(" 2 ranks, ") == len(named),
      "2 ranks: each row names the slow one", ran)

EXCHANGES = {"ping-pong, staged", "copy to host", "one way, staged", "both ways, staged"}
for name, ranks, variants in (("mpi", 2, {"ping-pong, host", "send to rank 1, host", "broadcast", "sum of float64"}),
                              ("exchange", 2, EXCHANGES), ("exchange", 3, EXCHANGES | {"ring, staged"}),
                              ("exchange", 4, EXCHANGES | {"ring, staged"})):
    ran = gm.run(f"bench {name} --device cpu --threads 1 --host-memory 4M --json r.json", ranks, 120)
    if gm.ok(ran.code == 0 and not ran.errors, f"bench {name}, {ranks} ranks", ran):
        with open("r.json") as file:
            rows = json.load(file)["rows"]
        keys = [(row["variant"], row["shape"]) for row in rows]
        gm.ok({row["variant"] for row in rows} >= variants and len(set(keys)) == len(keys)
              and all(row["rate"] > 0 for row in rows)
              and all(len(row["variant"]) <= 24 and len(row["shape"]) < 47 for row in rows),
              f"bench {name}, {ranks} ranks: rows", keys)
        pairs = {re.sub(".*, ", "", row["shape"]) for row in rows if row["variant"] == "both ways, staged"}
        gm.ok(name == "mpi" or pairs == {f"{rank} and {rank + 1}" for rank in range(ranks - 1)},
              f"bench {name}, {ranks} ranks: neighbours", pairs)
ran = gm.run("bench exchange --shapes 1M --device cpu", 2)
gm.ok(ran.code == 2 and len(ran.errors) == 1 and "no shapes" in ran.errors[0], "refused: bench exchange --shapes", ran)

# of the processor
ERRORS = {"fp32": 1e-5, "exact": 1e-5, "fp64": 1e-5, "tf32": 1e-3, "fp16": 1e-3, "bf16": 8e-3, "int8": 0}
for ranks in (1, 2, 3):
    ran = gm.run("bench scaling matmul --shapes 96,70x130x33 --device cpu --threads 1 --json r.json", ranks, 120)
    if not gm.ok(ran.code == 0 and not ran.errors, f"bench scaling matmul, {ranks} ranks", ran):
        continue
    with open("r.json") as file:
        rows = json.load(file)["rows"]
    several = [count for count in (2, 3) if count <= ranks]
    wanted = {(f"{precision}, 1 rank", shape) for precision in ERRORS for shape in ("96x96x96", "70x130x33")}
    wanted |= {(f"{precision} strong, {count} ranks", shape) for precision in ERRORS for count in several
               for shape in ("96x96x96", "70x130x33")}
    wanted |= {(f"{precision} weak, {count} ranks", shape) for precision in ERRORS for count in several
               for shape in (f"{96 * count}x96x96", f"{70 * count}x130x33")}
    gm.ok({(row["variant"], row["shape"]) for row in rows} == wanted and len(rows) == len(wanted),
          f"bench scaling matmul, {ranks} ranks: one rank, and each way on several", ran)
    gm.ok(all(row["rate"] > 0 and row["unit"] == "Tflop/s" and row["leaf"] > 0 for row in rows)
          and all(row["max_error"] == 0 if most == 0 else 0 < row["max_error"] < most for row in rows
                  for most in [ERRORS[re.split("[ ,]", row["variant"])[0]]])
          and all((row["limit_by"] == f'{row["x"]:.0f} x 1 rank') == (row["x"] > 1)
                  and row.get("ranks", {"count": 1})["count"] == row["x"] for row in rows),
          f"bench scaling matmul, {ranks} ranks: rates, errors, and as many times the rate of one rank", rows)
gm.done()
