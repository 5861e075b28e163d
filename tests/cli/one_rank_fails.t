#!/usr/bin/env -S python3 -B
"""One rank of three fails, or a signal comes: all end together within 10 s, with one exit code and one message, and no
file is left.

Rank 1 is made to fail by the script that starts it: in another folder, where relative names mean other files or none;
or under a limit."""
import os
import shutil
import signal
import time

import gm
from gm import h5py, np

RANKS, WITHIN = 3, 10
rng = np.random.default_rng(5)


# --- Failures on rank 1 ---

def make_inputs():
    """The same names in ".", where ranks 0 and 2 work, and below broken/, where rank 1 does; its chunks in the middle
    are damaged."""
    # compare gives each rank a million elements of A
    a, b = gm.integers(rng, (1200, 2000)), gm.integers(rng, (2000, 800))
    gm.write("plain.h5", A=a, B=b)
    gm.write("packed.h5", storage=dict(chunks=(100, 100), compression="gzip", compression_opts=1), A=a, B=b)
    gm.write("tall.h5", A=np.ones((2000, 3)), B=np.ones((3, 1000))) # a product of 16 MB
    for folder in ("broken", "nothing", "here"):
        os.mkdir(folder)
    for name in ("plain.h5", "packed.h5", "tall.h5"):
        shutil.copy(name, "broken")
    with h5py.File("broken/packed.h5", "r") as f:
        middle = {name: f[name].id.get_num_chunks() // 2 for name in "AB"}
        bad = [f[name].id.get_chunk_info(i) for name in "AB" for i in range(middle[name] - 6, middle[name] + 6)]
    with open("broken/packed.h5", "r+b") as file:
        for chunk in bad:
            file.seek(chunk.byte_offset)
            file.write(os.urandom(chunk.size))
    os.truncate("broken/plain.h5", os.path.getsize("plain.h5") - 9000000)


ELSEWHERE = {where: gm.wrapper(f"in_{where}", f'[ $rank = 1 ] && cd {where}\nexec "$program" "$@"')
             for where in ("nothing", "broken")}
# Room for the files that MPI shares memory through, none for the rank's part of the output.
SMALL_FILES = gm.wrapper("small_files", '[ $rank = 1 ] && ulimit -f 6000\nexec "$program" "$@"')


def leaves(title, code, pattern, arguments, program, ranks=RANKS, environment=None):
    before = gm.state()
    ran = gm.run(arguments, ranks, 30, program, environment=environment)
    after = gm.state()
    faults = gm.faults_of_refusal(ran, code, pattern, WITHIN) + gm.difference(before, after)
    for path in after.keys() - before.keys():
        if os.path.isfile(path):
            os.remove(path)
    gm.ok(not faults, f"{title} ({code})", *faults, ran)


def matmul_fails():
    make_inputs()
    for grid in ("3x1x1", "1x3x1", "1x1x3"):
        how = f"--grid {grid} --precision fp32 --device {device} -o {os.getcwd()}/c.h5"
        leaves(f"{device}: matmul {grid}: no input on one rank", 3, r"plain\.h5.*rank 1 on", f"matmul plain.h5 {how}",
               ELSEWHERE["nothing"])
        leaves(f"{device}: matmul {grid}: an input cut short on one rank", 3, r"plain\.h5.*rank 1 on",
               f"matmul plain.h5 {how}", ELSEWHERE["broken"])
        leaves(f"{device}: matmul {grid}: a damaged chunk on one rank, in the middle", 3, r"packed\.h5.*rank 1 on",
               f"matmul packed.h5 {how} --piece 200K", ELSEWHERE["broken"])
    leaves(f"{device}: matmul: no folder for the output on one rank", 4, r"c\.h5.*rank 1 on",
           f"matmul {os.getcwd()}/plain.h5 -o here/c.h5 --output-layout parts --device {device} --grid 3x1x1",
           ELSEWHERE["nothing"])
    leaves(f"{device}: matmul: one rank may not write so much, in the middle", 4, r"c\.h5.*File too large.*rank 1 on",
           f"matmul tall.h5 -o c.h5 --grid 3x1x1 --device {device} --piece 256K", SMALL_FILES)
    chains_fail()
    batches_fail()
    if device != "cpu": # CUDA reserves more address space than a limit on it could allow
        return
    need = virtual_memory()
    small = gm.wrapper("small_memory", f'[ $rank = 1 ] && ulimit -v {(need >> 10) + 200 * 1024}\nexec "$program" "$@"')
    leaves(f"{device}: matmul: one rank gets no memory", 5, r"memory.*rank 1 on",
           f"matmul plain.h5 -o c.h5 --device {device} --threads 1 --piece 600M --depth 3 --grid 3x1x1", small)


def chains_fail():
    """Ranks whose layers are a chain, in blocks: a call fails on the first, in the middle, on the last, at the start or
    later."""
    kernel = "auto" if device == "cpu" else "simt" # of short leaves: each rank has some
    how = (f"matmul plain.h5 -o c.h5 --device {device} --precision fp32 --kernel {kernel} --grid 1x1x3 --threads 2 "
           f"--piece 64K "
           "--device-memory 8M")
    for rank in range(RANKS):
        for number in (40, 300):
            leaves(f"{device}: matmul 1x1x3: read {number} fails on rank {rank}", 3, rf"plain\.h5.*rank {rank} on", how,
                   None, environment=gm.fault(f"read:{number}:{rank}:EIO"))
            leaves(f"{device}: matmul 1x1x3: a signal at read {number} of rank {rank}", 75, rf"rank {rank} on", how,
                   None, environment=gm.fault(f"read:{number}:{rank}:signal=15"))
    for number in (1, 12):
        leaves(f"{device}: matmul 1x1x3: no space at write {number}", 4, r"c\.h5.*rank 0 on", how, None,
               environment=gm.fault(f"write:{number}+:0:ENOSPC"))


def batches_fail():
    """Ranks that have frames of a stack, in groups or frame by frame."""
    gm.write("stack.h5", A=gm.integers(rng, (90, 100, 100), dtype="f4"), B=gm.integers(rng, (90, 100, 100), dtype="f4"))
    for way, piece in (("groups", "200K"), ("products", "20K")):
        how = f"matmul --batch stack.h5 -o c.h5 --device {device} --threads 2 --piece {piece}"
        for rank in range(RANKS):
            leaves(f"{device}: --batch, {way}: read 40 fails on rank {rank}", 3, rf"stack\.h5.*rank {rank} on", how,
                   None, environment=gm.fault(f"read:40:{rank}:EIO"))
        leaves(f"{device}: --batch, {way}: a signal at read 40 of rank 1", 75, r"rank 1 on", how, None,
               environment=gm.fault("read:40:1:signal=15"))
        leaves(f"{device}: --batch, {way}: no space at write 12", 4, r"c\.h5.*rank 2 on", how, None,
               environment=gm.fault("write:12+:2:ENOSPC"))


def virtual_memory():
    """Bytes of address space that one of three ranks takes at its peak for a tiny product: libraries take more, the
    more processors they see."""
    gm.write("tiny.h5", A=np.ones((8, 8)), B=np.ones((8, 8)))
    known = gm.wrapper("known_rank", f'[ $rank = 1 ] && echo $$ >{os.getcwd()}/pid\nexec "$program" "$@"')
    words = gm.command_line("matmul tiny.h5 -o tiny_c.h5 --force --device cpu --threads 1", 3, program=known)
    child, peak = gm.start(words), 0
    while child.poll() is None:
        try:
            with open("pid") as pid, open(f"/proc/{int(pid.read())}/status") as file:
                peak = max([peak] + [int(line.split()[1]) * 1024 for line in file if line.startswith("VmPeak")])
        except (OSError, ValueError):
            pass
        time.sleep(0.002)
    gm.finish(child, 20)
    os.remove("pid")
    return peak


def others_fail():
    make_inputs()
    leaves("compare: no input on one rank", 3, r"plain\.h5.*rank 1 on", "compare plain.h5:/A packed.h5:/A",
           ELSEWHERE["nothing"])
    leaves("compare: an input cut short on one rank", 3, r"plain\.h5.*rank 1 on", "compare plain.h5:/B plain.h5:/B",
           ELSEWHERE["broken"])
    leaves("compare: a damaged chunk on one rank, in the middle", 3, r"packed\.h5.*rank 1 on",
           "compare packed.h5:/A packed.h5:/A", ELSEWHERE["broken"])
    leaves("gen: no folder on one rank", 4, r"g\.h5.*rank 1 on",
           "gen matrices here/g.h5 --size 500 --output-layout parts", ELSEWHERE["nothing"])
    leaves("gen: one rank may not write so much", 4, r"g\.h5.*File too large.*rank 1 on",
           "gen matrices g.h5 --size 2000", SMALL_FILES)


# --- A rank without memory, without threads, with an MPI that fails ---

LACKING = {"no memory": gm.fault("malloc:1+:1", start="init"), "no thread": gm.fault("thread:1+:1")}


ATTRIBUTES = {"one", "two", "three"}


def make_small():
    x = rng.integers(0, 4000, (24, 10, 9)).astype("u2")
    gm.write("small.h5", storage=dict(chunks=(1, 10, 9), compression="gzip"), x=x)
    with h5py.File("small.h5", "r+") as file:
        file["x"].attrs.update({name: np.arange(5) for name in ATTRIBUTES})
    gm.write("fields.h5", flat=x[:3], dark=x[3])
    gm.write("factors.h5", A=gm.integers(rng, (40, 30)), B=gm.integers(rng, (30, 20)))


def lacks(arguments, code=5, pattern="memory|thread", lacking=None, ranks=RANKS):
    """Rank 1 alone, from the start of MPI on: all end with the code, and nothing is left."""
    for what, environment in (lacking or LACKING).items():
        before = gm.state()
        ran = gm.run(arguments, ranks, 30, environment=environment)
        faults = gm.faults_of_refusal(ran, code, f"({pattern}).*rank 1 on",
                                      WITHIN) if code else [f"exit {ran.code}"] if ran.code else []
        after = gm.state()
        faults += gm.difference(before, after) if code else []
        for path in after.keys() - before.keys():
            if os.path.isfile(path):
                os.remove(path)
        gm.ok(not faults, f"{arguments.split(' ')[0]}: {what} on one rank ({code}): {arguments}", *faults, ran)


def without_memory():
    make_small()
    for arguments in ("matmul factors.h5 -o c.h5 --grid 3x1x1",
                      "matmul --batch small.h5:/x small.h5:/x --transpose b -o c.h5",
                      "reduce small.h5:/x --axis pixel --stat sum,min -o c.h5", "flip small.h5:/x --axis 0 -o c.h5",
                      "normalize small.h5:/x --method flatfield --flat fields.h5:/flat --dark fields.h5:/dark -o c.h5",
                      "normalize small.h5:/x --method percentile -o c.h5", "gen stack c.h5 --size 9",
                      "compare small.h5:/x small.h5:/x"):
        lacks(f"{arguments} --device cpu --threads 2 -q")
    for n in (7, 8): # the names of its datasets
        ran = gm.run("info small.h5", environment=gm.fault(f"malloc:{n}+:0"))
        gm.ok(not gm.faults_of_refusal(ran, 5, "memory"), f"info of a file: no memory from allocation {n} on (5)", ran)
    lacks("reduce small.h5:/x --device cpu", lacking={"no memory": LACKING["no memory"]})


def is_whole(made):
    if not os.path.exists(made) or made == "r.json":
        return os.path.exists(made)
    with h5py.File(made, "r") as file:
        return ATTRIBUTES | {"operation", "command", "options", "inputs"} <= set(file["x"].attrs) | set(file.attrs)


def without_memory_in_libraries():
    """jansson leaves out what it has no memory for; without memory hwloc has no binding to give."""
    make_small()
    for arguments, made in (("flip small.h5:/x --axis 0 -o c.h5", "c.h5"),
                            ("compare small.h5:/x small.h5:/x --report r.json", "r.json")):
        arguments += " -q --device cpu --threads 2"
        gm.run(arguments, environment=gm.fault(log="log"))
        last, faults = gm.struck("log")[1]["malloc"], []
        os.remove(made)
        # memory for the attributes of the output and for the entries of the report
        for n in range(last - 45, last + 1, 3):
            ran = gm.run(arguments, environment=gm.fault(f"malloc:{n}:0"))
            faults += [] if ran.code == (0 if is_whole(made) else 5) else [n, ran]
            os.path.exists(made) and os.remove(made)
        gm.ok(last > 60 and not faults, f"{arguments}: no memory at the end: all of {made} (0), or nothing (5)",
              *faults)
    if not gm.OPEN_MPI:
        gm.skip("no memory for hwloc on one rank", "MPICH looks at the host by hwloc itself, and crashes")
        return
    lacks("flip small.h5:/x --axis 0 -o c.h5 -q --device cpu --threads 2", 0,
          lacking={"no memory for hwloc": gm.fault("malloc:1+:1", start="init", callers="hwloc")})


def mpi_fails():
    make_small()
    for n in (2, 7, 12, 20, 27):
        ran = gm.run("reduce small.h5:/x --axis pixel --stat sum,min -o c.h5 -q --device cpu --threads 2", RANKS, 30,
                     environment=gm.fault(f"mpi:{n}:1", log="log"))
        struck = gm.struck("log", 1)[0]
        faults = gm.faults_of_refusal(ran, 7, r"MPI_\w+: .*rank 1 on", WITHIN) if struck else ["no call was struck"]
        gm.ok(not faults, f"MPI fails on one rank, in its call {n}: all end at once (7)", *faults, *struck, ran)
        for rank in range(RANKS):
            os.path.exists(f"log.{rank}") and os.remove(f"log.{rank}")


# --- Signals ---

def make_endless():
    """Matrices of zeros that take no room, whose product takes hours."""
    with h5py.File("endless.h5", "w") as f:
        f.create_dataset("A", (12000, 4000000), "f4", chunks=(100, 10000))
        f.create_dataset("B", (4000000, 12000), "f4", chunks=(10000, 100))


def stopped(title, code, ranks, number, times=1):
    """A signal to what the user started, in the middle of a product."""
    before = gm.state()
    child = gm.start(gm.command_line(f"matmul endless.h5 -o c.h5 --device {device} --host-memory 200M", ranks, 60))
    time.sleep(2 if device == "cpu" else 4)
    gm.wait_until_heard(child, ranks, number)
    signalled = time.monotonic()
    running = child.poll() is None
    for _ in range(times if running else 0):
        os.kill(child.pid, number)
        time.sleep(0.02)
    ran = gm.finish(child, 20, signalled)
    after = gm.state()
    faults = [] if running else ["it ended by itself"]
    faults += [f"exit code {ran.code}, expected {code}"] if ran.code != code else []
    faults += [f"took {ran.seconds:.1f} s"] if ran.seconds > WITHIN else []
    faults += gm.difference(before, after)
    if code == 75:
        faults += [] if len(ran.errors) == 1 and "signal" in ran.err else ["not one message about the signal"]
    for path in after.keys() - before.keys():
        if os.path.isfile(path):
            os.remove(path)
    gm.ok(not faults, f"{device}: {title}", *faults, ran)


def signals():
    make_endless()
    # of mpirun's own code after TERM, and of Hydra's end by USR2
    number = signal.SIGUSR2 if gm.OPEN_MPI else signal.SIGTERM
    stopped(f"{number.name} to mpirun: all ranks stop (75)", 75, RANKS, number)
    for number in (signal.SIGUSR2, signal.SIGTERM, signal.SIGINT):
        stopped(f"{number.name} to the program alone: it stops (75)", 75, 1, number)
    stopped("TERM twice, as timeout(1) sends it: one message, nothing left (75)", 75, 1, signal.SIGTERM, 2)


for device in gm.devices():
    gm.together([matmul_fails, signals])
with_faults = [without_memory, without_memory_in_libraries, mpi_fails]
gm.together([others_fail, *(with_faults if gm.HAS_FAULT else [])])
gm.done()
