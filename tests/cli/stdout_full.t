#!/usr/bin/env -S python3 -B
"""Standard output that takes nothing, /dev/full or a closed one: exit code 4 and one message, whatever prints."""
import os
import subprocess

import gm
from gm import np

RNG = np.random.default_rng(19)
gm.write("in.h5", A=gm.integers(RNG, (40, 30)), B=gm.integers(RNG, (30, 20)))
gm.write("stack.h5", d=gm.integers(RNG, (9, 8, 7)))
COMMANDS = ("--help", "--version", "gen --help", "bench --list", "info", "info stack.h5", "reduce stack.h5:/d",
            "compare stack.h5:/d stack.h5:/d", "matmul in.h5 -o out.h5 --plan",
            "flip stack.h5 --axis 0 -o out.h5 --plan", "normalize stack.h5 -o out.h5 --plan",
            "reduce stack.h5:/d --plan", "reduce stack.h5:/d --axis 0 -o out.h5 --plan")


def messages(command, out, ranks=1):
    """The exit code, and our messages, of a run with this standard output of each rank."""
    ran = subprocess.run(gm.command_line(["-c", f'exec "$0" "$@" {out}', gm.PROGRAM, *gm.words(command)], ranks,
                                         program="/bin/sh", mpirun=ranks > 1), stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    return ran.returncode, [line for line in ran.stderr.splitlines() if gm.ERROR in line]


before = gm.state()
for command in COMMANDS:
    if os.path.exists("/dev/full"):
        code, lines = messages(command, ">/dev/full")
        gm.ok(code == 4 and len(lines) == 1 and "standard output: No space left on device" in lines[0],
              f"{command}: a full device", code, lines)
    code, lines = messages(command, ">&-")
    gm.ok(code == 4 and len(lines) == 1 and "standard output: " in lines[0], f"{command}: closed", code, lines)
for command in ("--help", "info stack.h5", "reduce stack.h5:/d", "matmul in.h5 -o out.h5 --plan", "bench --list"):
    code, lines = messages(command, ">/dev/full", 2)
    gm.ok(code == 4 and len(lines) == 1, f"{command}: a full device, 2 ranks", code, lines)
code, lines = messages("info stack.h5", ">&- <&-")
gm.ok(code == 4 and len(lines) == 1, "standard input closed as well", code, lines)
gm.ok(gm.state() == before, "nothing was made", *gm.difference(before, gm.state()))

# Nothing that is printed goes to a file that has taken the place of standard error.
for command, name in (("matmul in.h5 -o OUT -v", "/C"), ("flip stack.h5 --axis 0 -o OUT -v", "/d")):
    code, _ = messages(command.replace("OUT", "closed.h5"), ">&- <&- 2>&-")
    ran = gm.run(command.replace("OUT", "open.h5"))
    gm.ok(code == 0 and ran.code == 0 and np.array_equal(gm.read("closed.h5", name), gm.read("open.h5", name)),
          f"{command}: all closed, the same output", code, ran)
    os.remove("closed.h5")
    os.remove("open.h5")
gm.done()
