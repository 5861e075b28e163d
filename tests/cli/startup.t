#!/usr/bin/env -S python3 -B
"""Start-up: comparing two tiny datasets on 2 ranks takes little more than an MPI program that does nothing; alone it
needs no folder of MPI."""
import os
import shutil
import subprocess

import gm
from gm import np

ALLOWED, RUNS, ATTEMPTS = 0.3, 5, 6 # seconds; a machine that is busy with something else gets another chance


def empty_program():
    """tests/mpi/empty_mpi of the build, else compiled here."""
    built = os.path.join(gm.BUILD, "tests/mpi/empty_mpi")
    if os.access(built, os.X_OK):
        return built
    mpicc = shutil.which("mpicc")
    if not mpicc or subprocess.run([mpicc, os.path.join(gm.SOURCE, "tests/mpi/empty_mpi.c"), "-o",
                                    "empty_mpi"]).returncode != 0:
        gm.skip_all("no tests/mpi/empty_mpi, and no mpicc to make it with")
    return os.path.abspath("empty_mpi")


def measure(programs, seconds):
    """Adds the seconds of RUNS runs of each, in turn so that both meet the same moods of the machine."""
    for _ in range(RUNS):
        for one, (program, arguments) in zip(seconds, programs):
            ran = gm.run(arguments, 2, 20, program)
            if ran.code != 0:
                gm.ok(False, "it runs", ran)
                gm.done()
            one.append(ran.seconds)


gm.write("xy.h5", x=np.ones((8, 8)), y=np.ones((8, 8)))
programs = [(empty_program(), ""), (gm.PROGRAM, "compare xy.h5:/x xy.h5:/y")]
seconds = [[] for _ in programs]
for attempt in range(ATTEMPTS):
    measure(programs, seconds)
    empty, compare = (min(one) for one in seconds) # other programs only add to the time
    gm.note(f"the shortest of {len(seconds[0])} runs: empty MPI program {empty:.3f} s, compare {compare:.3f} s")
    if compare - empty <= ALLOWED:
        break
gm.ok(compare - empty <= ALLOWED, f"{compare - empty:.3f} s more than an empty MPI program, at most {ALLOWED} s")

# Open MPI has one folder for all processes that no launcher started: where some made it while others removed it, they
# failed.
ran = gm.run("compare xy.h5:/x xy.h5:/y", environment={"TMPDIR": os.path.abspath("xy.h5")})
gm.ok(ran.code == 0, "alone it makes no folder of MPI in TMPDIR", ran)

if gm.OPEN_MPI:
    ran = gm.run("compare xy.h5:/x xy.h5:/y", environment={"SLURM_JOBID": "7", "SLURM_NODELIST": "here",
                                                           "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"})
    gm.ok(ran.code == 0 and not ran.errors, "alone in a step of Slurm that does not serve MPI", ran)
    for number in ("0", "1"):
        ran = gm.run("compare xy.h5:/x xy.h5:/y", environment={"PMI_RANK": number, "PMI_SIZE": "2"})
        gm.ok(ran.code == 7 and len(ran.errors) == (number == "0") and not ran.out,
              f"rank {number} of the launcher of another MPI: refused, by one message", ran)
ran = gm.run("compare --help", environment={"POSIXLY_CORRECT": "1"})
gm.ok(ran.code == 0 and "Usage: gpumem-run compare" in ran.out, "options follow the operation with POSIXLY_CORRECT too",
      ran)

# Open MPI ends with messages of its own, or crashes, where it can open no file.
faults = []
for files in (4, 6, 8, 10, 12, 13, 20, 31):
    few = gm.wrapper(f"files{files}", f'ulimit -n {files}\nexec "$program" "$@"')
    ran = gm.run("compare xy.h5:/x xy.h5:/y", program=few)
    faults += gm.faults_of_refusal(ran, 5, rf"the limit of open files \(ulimit -n\) is {files}, expected at least 32")
    for words in ("--version", "--help", "matmul --help"):
        ran = gm.run(words, program=few)
        faults += [] if ran.code == 0 and ran.out and not ran.err else [ran]
for ranks in (1, 2):
    ran = gm.run("compare xy.h5:/x xy.h5:/y", ranks, program=gm.wrapper("enough", 'ulimit -n 32\nexec "$program" "$@"'))
    faults += [] if ran.code == 0 else [ran]
ran = gm.run("compare xy.h5:/x xy.h5:/y", 2, program=few)
faults += gm.faults_of_refusal(ran, 5, "is 31, expected at least 32")
gm.ok(not faults, "too few open files: refused before MPI starts (5)", *faults)
gm.done()
