#!/usr/bin/env -S python3 -B
"""The laboratory of bench: each test runs on the processor or says why not; pictures, signals, refusals."""
import json
import os
import re
import shutil
import signal
import time
import xml.etree.ElementTree

import gm

SOON = 1 # seconds until the program has ended after a signal
SLACK = 2 # more of them where ranks share few processors
STOPPED = 75

with open(os.path.join(gm.SOURCE, "src/bench/benches.def")) as file:
    text = file.read()
tests = re.findall(r'^GM_BENCH\("(\w+)", \w+, (NULL|"[^"]*"), "([^"]*)",', text, re.MULTILINE)
lab = [name for name, argument, _ in tests if argument == "NULL"
       and name not in ("matmul", "copy", "reduce", "normalize", "histogram", "transpose", "flip", "gather")]
gm.ok("global" in lab, "the laboratory has tests", lab)

# The experiments by the letter of their text and the number of their section.
EXPERIMENTS = {f"{letter}{number}" for letter, count in (("A", 6), ("B", 8), ("C", 6), ("D", 5), ("E", 7))
               for number in range(1, count + 1)}
ran = gm.run("bench --list")
listed = {word for line in ran.out.splitlines() for group in re.findall(r"\(([A-E]\d(?: [A-E]\d)*)\)$", line)
          for word in group.split()}
gm.ok(ran.code == 0 and listed == EXPERIMENTS, "--list has every experiment of the texts", sorted(EXPERIMENTS ^ listed))
gm.ok({word for *_, words in tests for word in words.split()} | {"E1"} == listed,
      "--list has those of benches.def, and E1 of info", ran)

# --- Each test ---

SIZES = {"global": "--shapes 1M"} # tests with sizes: small ones
for name in lab:
    ran = gm.run(f"bench {name} --device cpu --threads 2 --json {name}.json {SIZES.get(name, '')}", limit=120)
    why = [line for line in ran.err.splitlines() if re.search(f"bench {name}: (not supported|needs two ranks)", line)]
    if not gm.ok(ran.code == 0 and not ran.errors, f"bench {name} on the processor", ran):
        continue
    with open(f"{name}.json") as file:
        rows = json.load(file)["rows"]
    gm.ok(bool(rows) != bool(why) and all(re.search(r": \S+ on|: .+", line) for line in why),
          f"bench {name}: rows, or the reason why not", ran)
    keys = [(row["variant"], row["shape"], row["cache"]) for row in rows]
    gm.ok(len(set(keys)) == len(keys), f"bench {name}: no two rows of a name",
          [key for key in keys if keys.count(key) > 1])
    gm.ok(all(row["rate"] > 0 and row["panel"] is None or row["rate"] > 0 and row["panel"].isprintable()
              for row in rows) and all((row["limit"] is None) == (row["limit_by"] is None)
                                       and (row["limit_by"] or "-").isprintable() for row in rows),
          f"bench {name}: rates, limits and what these are", rows)
    gm.ok(all(len(row["variant"]) <= 24 and len(row["shape"]) < 47 for row in rows),
          f"bench {name}: names fit the table", {row["variant"] for row in rows if len(row["variant"]) > 24})
    old = sum("old" in row for row in rows)
    gm.ok(len(re.findall(r"^\S+ +published ", ran.out, re.MULTILINE)) == old,
          f"bench {name}: {old} old figures in the table", ran)

# --- Pictures ---

if shutil.which("gnuplot"):
    ran = gm.run("bench global --shapes 1M --device cpu --threads 2 --plot p.svg --json r.json", limit=120)
    with open("r.json") as file:
        rows = json.load(file)["rows"]
    words = "\n".join(xml.etree.ElementTree.parse("p.svg").getroot().itertext())
    gm.ok(ran.code == 0 and "stride, elements" in words and "first element" in words,
          "a map has the names of both axes", ran)
    gm.ok(all(f"bench global: {panel}" in words for panel in {row["panel"] for row in rows}),
          "each panel has its title", words[:2000])
    cells = sum(row["y"] is not None for row in rows)
    gm.ok(cells > 100 and len(re.findall(r"^\d+\.\d\d$", words, re.MULTILINE)) >= cells, "each cell has its number",
          cells)
    gm.ok(os.path.getsize("p.svg") < 800 * len(rows), "a picture is small", os.path.getsize("p.svg"), len(rows))
else:
    gm.skip("pictures", "no gnuplot")

# --- Sizes, memory ---

for size in ("192K", "4100K"): # no powers of two
    ran = gm.run(f"bench global --device cpu --threads 2 -q --shapes {size}", limit=120)
    gm.ok(ran.code == 0 and " random " in ran.out, f"bench global --shapes {size}: each element is right", ran)
for name in ("atomics", "math", "memory"):
    ran = gm.run(f"bench {name} --device cpu --threads 2 -q --host-memory 1M", limit=120)
    gm.ok(ran.code == 0 and not ran.errors, f"bench {name} with little memory", ran)

# --- Signals, refusals ---

for test, ranks in (("global", 1), ("global", 2), ("exchange", 2), ("scaling matmul --shapes 1024,1023,1022,1021", 1),
                    ("scaling matmul --shapes 1024,1023,1022,1021", 3)):
    before = gm.state()
    for _ in range(4): # on a busy machine it may end before the signal, or late
        child = gm.start(gm.command_line(f"bench {test} --device cpu --threads 1 --json out.json --csv out.csv "
                                         f"{'--plot out.svg' if shutil.which('gnuplot') else ''}", ranks))
        time.sleep(2.5 if ranks == 1 else 1.5) # bench exchange ends after 3 s by itself
        gm.wait_until_heard(child, ranks, signal.SIGTERM)
        running = child.poll() is None
        child.send_signal(signal.SIGTERM)
        ran = gm.finish(child, 10, time.monotonic())
        is_soon = ran.seconds < SOON + SLACK * (ranks > 1 or os.cpu_count() < 4) # mpirun takes 2 s to end its ranks
        ended = not running or ran.code == 0 and gm.OPEN_MPI
        if is_soon and not ended:
            break
        for name in ("out.json", "out.csv", "out.svg"):
            ended and os.path.exists(name) and os.remove(name)
    # mpirun has a code of its own (Hydra at times 0), and may lose the message
    good = ran.code == STOPPED if ranks == 1 else ran.code or not gm.OPEN_MPI
    gm.ok(good and is_soon and not ended and gm.state() == before,
          f"SIGTERM in bench {test}, {ranks} ranks: exit {STOPPED} soon, no file", ran,
          *gm.difference(before, gm.state()))

for arguments, code, pattern in (("bench global --shapes 1K", 2, "--shapes '1K'.*bench global.*at least"),
                                 ("bench global --shapes 1M,x", 2, "--shapes"),
                                 ("bench cache memory --shapes 1M", 2, "exactly one test"),
                                 ("bench scaling", 2, "needs an operation: matmul"),
                                 ("bench scaling copy", 2, "unknown operation 'copy', expected matmul"),
                                 ("bench scaling matmul --shapes 3x4", 2, "--shapes '3x4'.*bench scaling"),
                                 ("bench scaling matmul --shapes 9x4x4x4", 2, "bench scaling.*MxNxK"),
                                 ("bench scaling matmul -o x", 2, "--output 'x'"),
                                 ("bench globe", 2, "'globe'.*--list"),
                                 ("bench global copy --shapes 1M", 2, "exactly one test")):
    ran = gm.run(f"{arguments} --device cpu")
    gm.ok(ran.code == code and len(ran.errors) == 1 and re.search(pattern, ran.errors[0]), f"refused: {arguments}", ran)
gm.done()
