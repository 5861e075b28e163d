#!/usr/bin/env -S python3 -B
"""Signals are heard within a second in every phase, by each rank: exit code 75, one message, nothing left."""
import functools
import os
import signal
import time

import gm
from gm import h5py, np

SOON = 1 # seconds until the program has ended
SLACK = 2 # more of them where ranks share few processors, and mpirun ends

CODE = 75


def make_nothing():
    pass


def make_matrices():
    rng = np.random.default_rng(3)
    gm.write("ab.h5", A=rng.random((3000, 3000)), B=rng.random((3000, 3000)))


def make_endless():
    """Matrices of zeros that take no room, whose product takes hours."""
    with h5py.File("endless.h5", "w") as f:
        f.create_dataset("A", (1500, 4000000), "f4", chunks=(100, 10000))
        f.create_dataset("B", (4000000, 1500), "f4", chunks=(10000, 100))


def make_packed_stack():
    """Much to pack, little to read."""
    with h5py.File("stack.h5", "w") as f:
        f.create_dataset("d", data=np.random.default_rng(4).integers(0, 60000, (200, 600, 600), "u2"))


def make_chunks():
    """Millions of chunks to look up, few of them written."""
    with h5py.File("chunks.h5", "w") as f:
        d = f.create_dataset("d", (2800, 2800), "u1", chunks=(1, 1))
        d[:, :40] = 1


def make_fifo():
    os.mkfifo("fifo.h5")
    with h5py.File("link.h5", "w") as f:
        f["d"] = h5py.ExternalLink("fifo.h5", "d")


def make_groups():
    with h5py.File("deep.h5", "w") as f:
        group = f
        for _ in range(5000):
            group = group.create_group("g")
        group["d"] = np.arange(3.0)


def make_nested():
    """Virtual datasets, three levels deep, each of whose parts is mapped many times."""
    with h5py.File("l0.h5", "w") as f:
        f["d"] = np.arange(60.0)
    for level in range(1, 4):
        layout = h5py.VirtualLayout((60,), "f8")
        source = h5py.VirtualSource(f"l{level - 1}.h5", "d", (60,))
        for i in range(60):
            layout[i:i + 1] = source[i:i + 1]
        with h5py.File(f"l{level}.h5", "w", libver=gm.V110) as f:
            f.create_virtual_dataset("d", layout)


# A file system that takes long to allocate space.
SLOW_SPACE = gm.fault("space:*:0:delay=60") if gm.HAS_FAULT else {}

# A disk on which each step of a flush takes long.
SLOW_DISK = gm.fault("sync:*:*:delay=150") if SLOW_SPACE else {}

# Each phase: its title, how its input is made, the command, when (seconds from its start), and whether it may end by
# itself before.
PHASES = [("the start", make_matrices, "matmul ab.h5 -o out.h5", (0.03, 0.06, 0.1, 0.15, 0.2), False),
          ("a product", make_endless, "matmul endless.h5 -o out.h5 --host-memory 200M", (0.6, 1.2), False),
          ("packing", make_packed_stack, "normalize stack.h5 -o out.h5 --type f32 --deflate 9", (0.5, 1, 2), True),
          ("looking up chunks", make_chunks, "reduce chunks.h5", (0.5, 1.5), False),
          ("opening a FIFO", make_fifo, "info link.h5", (0.5,), True),
          ("opening a FIFO for a reduction", make_fifo, "reduce link.h5:/d", (0.5,), True),
          ("nested groups", make_groups, "info deep.h5", (0.3, 0.6), True),
          ("nested virtual datasets", make_nested, "reduce l3.h5", (0.3, 1), True),
          ("space for an output", make_nothing, "gen matrices out.h5 --size 14000 --type f32 --no-sync", (0.5, 1),
           not SLOW_SPACE), ("flushing an output", make_nothing, "gen matrices out.h5 --size 7000 --type f32",
                             (1.5, 2.5), not SLOW_DISK),
          ("flushing the parts of an output", make_nothing,
           "gen matrices out.h5 --size 7000 --type f32 --output-layout parts", (1.5, 2.5), not SLOW_DISK),
          ("a benchmark", make_nothing, "bench matmul --json out.json", (0.5, 1.5), False),]


def stopped(title, arguments, after, may_end, number, *ranks):
    """A signal to mpirun or the program. A machine that is busy with something else gets other chances, and ranks more
    time to begin."""
    for more in (0, 1.5, 1.5, 1.5):
        faults, ran = attempt(title, arguments, after + (more if ranks else 0), may_end, number, *ranks)
        # in MPI_Init only rank 0 has a message
        begun = ran.code not in (-number, 128 + number) and (ran.errors or not ranks)
        slow = not begun or all(fault.startswith("took ") for fault in faults)
        if not faults or not slow:
            break
    gm.ok(not faults, title, *faults, ran)


def attempt(title, arguments, after, may_end, number, ranks=1, only=None):
    """only: the signal goes to this rank alone. Returns the faults, and the run."""
    before = gm.state()
    slow = SLOW_SPACE if title.startswith("space") else SLOW_DISK if "flush" in title else None
    command = gm.command_line(arguments + " --device cpu", ranks, 60, environment=slow)
    if only is not None:
        command.insert(-len(gm.words(arguments)) - 3, gm.wrapper("named", 'echo $$ >"pid.$rank"; exec "$program" "$@"'))
        del command[command.index(gm.PROGRAM)]
    child = gm.start(command)
    time.sleep(after)
    if not title.startswith("the start"):
        gm.wait_until_heard(child, ranks, number)
    heard = gm.hear(child, ranks, number)
    running = child.poll() is None
    try:
        if running and only is None:
            child.send_signal(number)
        elif running:
            with open(f"pid.{only}") as file:
                os.kill(int(file.read()), number)
    except OSError: # it has just ended
        running = False
    signalled = time.monotonic()
    ran = gm.finish(child, 20, signalled)
    for name in ["named", *(f"pid.{rank}" for rank in range(ranks))]:
        if os.path.exists(name):
            os.remove(name)
    faults = gm.difference(before, gm.state())
    if not running and not may_end:
        faults.append("it ended by itself")
    # Before the handlers are there, the signal ends the process, without a message.
    early = ran.code == -number and not heard
    if not running and may_end:
        faults = []
        os.path.exists("out.h5") and os.remove("out.h5")
    if running and not early and not (may_end and ran.code in (0, 3)):
        faults += [f"exit code {ran.code}, expected {CODE}"] if ran.code != CODE else []
        faults += ["not one message about the signal"] if len(ran.errors) != 1 or "signal" not in ran.err else []
    if ran.seconds > SOON + (SLACK if ranks > 1 else 0):
        faults.append(f"took {ran.seconds:.1f} s")
    return faults, ran


def phase(title, make, arguments, moments, may_end):
    make()
    for number in (signal.SIGTERM, signal.SIGUSR2):
        for after in moments:
            stopped(f"{title}: {number.name} after {after} s", arguments, after, may_end, number)


def ranks():
    make_endless()
    for only in range(3):
        for after in (0.9, 1.8):
            stopped(f"3 ranks, TERM to rank {only} alone after {after} s",
                    "matmul endless.h5 -o out.h5 --host-memory 200M", after, False, signal.SIGTERM, 3, only)
    make_chunks()
    for only in range(2):
        stopped(f"2 ranks that look up chunks, USR2 to rank {only} alone", "reduce chunks.h5", 1.5, False,
                signal.SIGUSR2, 2, only)


def flushes_of_ranks():
    """The rank that finishes the file flushes, the others wait for it."""
    for only in range(3 if SLOW_DISK else 0):
        stopped(f"3 ranks that flush an output, TERM to rank {only} alone",
                "gen matrices out.h5 --size 7000 --type f32", 3, False, signal.SIGTERM, 3, only)


def too_late():
    """A signal while rank 0 completes the output and the others wait for it: the run ends as if there had been none."""
    if not SLOW_DISK:
        return
    words = "gen matrices out.h5 --size 64 --type f32 --threads 1 --device cpu --report report.json"
    child = gm.start(gm.command_line(words, 2, 60, environment=gm.fault("sync:3:0:delay=4000"))) # the last one
    until = time.monotonic() + 20
    while time.monotonic() < until and not os.path.exists("out.h5"): # it has its name; the folder is to be flushed
        time.sleep(0.05)
    time.sleep(1)
    running = child.poll() is None
    os.kill(child.pid, signal.SIGUSR2)
    ran = gm.finish(child, 20)
    gm.ok(running and ran.code == 0 and not ran.errors and os.path.exists("report.json")
          and gm.read("out.h5", "/A").shape == (64, 64), "2 ranks, a signal after the output is complete", running, ran)


def failures():
    """A disk that fails in the middle of a flush tells it in that step alone."""
    for call in (1, 2, 3, 7) if SLOW_DISK else ():
        ran = gm.run("gen matrices out.h5 --size 4000 --type f32 --device cpu",
                     environment=gm.fault(f"sync:{call}:0:EIO"))
        faults = gm.faults_of_refusal(ran, 4, "flushing.* to the disk failed: Input/output error")
        gm.ok(not faults and gm.state() == {}, f"step {call} of a flush fails", *faults, ran)
    ran = gm.run("gen matrices out.h5 --size 4000 --type f32 --device cpu",
                 environment=gm.fault("sync:1:0:EINVAL,sync:3:0:38"))
    gm.ok(ran.code == 0 and gm.read("out.h5", "/A").shape == (4000, 4000), "a file system without steps", ran)


for it in PHASES:
    gm.together([functools.partial(phase, *it)])
gm.together([ranks])
gm.together([flushes_of_ranks, too_late, failures])
gm.done()
