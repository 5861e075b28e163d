#!/usr/bin/env -S python3 -B
"""The processors that a run was given, by taskset or by mpirun, are those that it uses, and info says so."""
import os
import re
import shutil

import gm

MINE = sorted(os.sched_getaffinity(0))
if len(MINE) < 2 or not shutil.which("taskset"):
    gm.skip_all("one processor, or no taskset")
FIRST, LAST = MINE[0], MINE[-1]
gm.write("x.h5", x=gm.np.arange(1000))


def numbers(text):
    """"0-2,5" -> {0, 1, 2, 5}"""
    ends = [part.split("-") for part in text.split(",")]
    return {n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)}


def check(name, before, ranks, after, want, given):
    """mpirun (for ranks > 0) between the words before and after it. want: processors of each rank."""
    command = [*before, *(gm.launcher(ranks) if ranks else []), *after]
    ran = gm.finish(gm.start([*command, gm.PROGRAM, "info"]), 60)
    rows = re.findall(r"^\d+ +\S+ +(\d+) +(\S+) +(yes|no) +(\w+)", ran.out, re.M)
    used = [numbers(row[1]) for row in rows]
    gm.ok(ran.code == 0 and used == want and {row[3] for row in rows} == {given}
          and all(int(row[0]) == (len(set_) if row[2] == "yes" else 1) for row, set_ in zip(rows, used)), name, ran,
          want)


everything = set(MINE)
whole = "host" if len(MINE) == os.cpu_count() else "affinity"
one = ["taskset", "-c", str(LAST)]
check("alone", [], 0, [], [everything], whole)
check("alone, one processor", one, 0, [], [{LAST}], "affinity")
check("alone, the first processor", ["taskset", "-c", str(FIRST)], 0, [], [{FIRST}], "affinity")
if whole == "host":
    half = len(MINE) // 2
    check("mpirun, one rank", [], 1, [], [everything], "host")
    # Hydra binds no rank
    check("a launcher with one processor", one, 1, [], [{LAST}], "launcher" if gm.OPEN_MPI else "affinity")
    check("taskset after mpirun, one rank", [], 1, one, [{LAST}], "affinity")
    check("taskset after mpirun, two ranks", [], 2, one, [{LAST}] * 2, "affinity")
    check("taskset after mpirun, the first processor", [], 1, ["taskset", "-c", str(FIRST)], [{FIRST}], "affinity")
    check("an option of mpirun", [], 1, ["--bind-to", "none"], [everything], "host")
    first = f"taskset -c {FIRST}"
    check("taskset after another command, the first processor", [], 1, ["env", "A=1", *first.split()], [{FIRST}],
          "affinity")
    check("taskset in a line of a shell, the first processor", [], 1, ["sh", "-c", f'exec {first} "$0" "$@"'],
          [{FIRST}], "affinity")
    binding = gm.wrapper("binding", f'exec {first} "$@"')
    check("a script that binds, where mpirun does not", [], 1, ["--bind-to", "none", binding], [{FIRST}], "affinity")
    script = gm.wrapper("script", 'exec "$@"')
    check("a script between them", [], 1, [script], [everything], "host")
    check("a script that is their parent", [], 1, [gm.wrapper("parent", '"$@"')], [everything], "host")
    if len(MINE) == 2:
        check("mpirun, two ranks", [], 2, [], [{FIRST}, {LAST}], "host")

ran = gm.finish(gm.start([*one, gm.PROGRAM, "reduce", "x.h5", "--stat", "sum", "--threads", "3"]), 60)
gm.ok(ran.code == 0 and ran.out == "sum 499500\n", "and it computes there", ran)
gm.done()
