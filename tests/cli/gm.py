"""Shared by the tests of the program: TAP, running gpumem-run as a user would, files to run it on.

A test is a script x.t: it imports this module, works in a folder of its own (the working directory, removed at the
end), reports with ok() and skip(), and ends with done(). It runs under tests/launch and as it is; then these say what
launch says otherwise:

    GPUMEM_RUN           the program (default: gpumem-run on PATH)
    MPIRUN, MPI_FAMILY   the launcher, and whose it is: openmpi (the default), mpich
    PYTHON               a Python with h5py and numpy
    GPUMEM_TEST_DATA     folder of real files (default: ../shared/data next to the sources)
    GPUMEM_TEST_DEVICE   not empty: this kind of device only
    GPUMEM_TEST_REQUIRE  "cuda": a failure without a GPU, instead of a skip
"""
import atexit
import concurrent.futures
import hashlib
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def skip_all(reason):
    print(f"1..0 # SKIP {reason}", flush=True)
    sys.exit(0)


def _another_python():
    """The first Python on PATH may not be the one that has h5py."""
    tried = os.environ.get("GPUMEM_TEST_TRIED", "").split(os.pathsep)
    for python in (os.environ.get("PYTHON"), "/usr/bin/python3"):
        if python and python not in tried and shutil.which(python):
            os.environ["GPUMEM_TEST_TRIED"] = os.pathsep.join([*tried, python])
            os.execvp(python, [python, "-B", *sys.argv])
    skip_all("no Python with h5py and numpy")


try:
    import h5py
    import numpy as np
except ImportError:
    _another_python()

PROGRAM = shutil.which(os.environ.get("GPUMEM_RUN") or "gpumem-run")
MPIRUN = os.environ.get("MPIRUN") or "mpirun"
OPEN_MPI = os.environ.get("MPI_FAMILY", "openmpi") == "openmpi"
ERROR = "gpumem-run: error: "
LIMIT = 60 # seconds of a run that is not to hang

if not PROGRAM:
    print("Bail out! no gpumem-run on PATH, and GPUMEM_RUN does not name it", flush=True)
    sys.exit(99)
PROGRAM = os.path.abspath(PROGRAM)
V110 = ("v110", "v110") # libver: the newest formats that every libhdf5 of the program reads
BUILD = os.environ.get("abs_top_builddir") or os.path.dirname(os.path.dirname(PROGRAM))
SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
DATA = os.path.abspath(os.environ.get("GPUMEM_TEST_DATA") or os.path.join(SOURCE, "../shared/data"))
for _name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_mpi_yield_when_idle",
              "MPIR_CVAR_POLLS_BEFORE_YIELD", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("OMPI_MCA_plm_rsh_agent", "/bin/true")
os.environ.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")

_start = os.getcwd()
_folder = tempfile.mkdtemp(prefix="gpumem-cli.")
os.chdir(_folder)


@atexit.register
def _clean():
    os.chdir(_start)
    shutil.rmtree(_folder, ignore_errors=True)


# --- TAP ---

_tests = _failed = 0
_kept = None # a list: results are kept for the process that prints them


def note(text):
    if _kept is not None:
        _kept.append((note, str(text)))
        return
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def ok(good, name, *why):
    """One test. why: what a person wants to know when it fails."""
    global _tests, _failed
    good = bool(good)
    if _kept is not None:
        _kept.append((ok, good, name, *map(str, why)))
        return good
    _tests += 1
    _failed += not good
    name = name.replace("#", "\\#").replace("\n", " ")
    print(f"{'ok' if good else 'not ok'} {_tests} - {name}", flush=True)
    if not good:
        for text in why:
            note(text)
    return good


def todo(good, name, reason):
    """One test that is not met here yet, for a reason: reported and counted as to do where it fails."""
    global _tests
    if _kept is not None:
        _kept.append((todo, good, name, reason))
    elif good:
        ok(good, name)
    else:
        _tests += 1
        print(f"not ok {_tests} - {name} # TODO {reason}", flush=True)


def skip(name, reason):
    global _tests
    if _kept is not None:
        _kept.append((skip, name, reason))
        return
    _tests += 1
    print(f"ok {_tests} - {name} # SKIP {reason}", flush=True)


def _apart(number, job):
    global _kept
    folder, temporary = f"{_folder}/{number}", f"{_folder}/{number}.tmp"
    os.mkdir(folder)
    os.mkdir(temporary)
    os.environ["TMPDIR"] = temporary # mpiruns that start together can fail to make the folder that they share
    os.chdir(folder)
    _kept = []
    job()
    os.chdir(_folder)
    shutil.rmtree(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    return _kept


def together(jobs, workers=int(os.environ.get("GPUMEM_TEST_TOGETHER", 0))
             or max(3, min(6, (os.cpu_count() or 1) // 4))):
    """Runs functions without arguments at the same time, each in a process and an empty folder of its own: mpirun
    mostly waits. The results come in the order of the jobs."""
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        for results in pool.map(_apart, range(len(jobs)), jobs):
            for report, *arguments in results:
                report(*arguments)


def done():
    print(f"1..{_tests}", flush=True)
    sys.exit(_failed > 0)


# --- Running the program ---

class Run:
    """How a run went: code (exit code; None: it had to be killed), out, err, seconds, left (processes that were
    killed)."""

    def __init__(self, command, code, out, err, seconds, left):
        self.command, self.code, self.out, self.err, self.seconds, self.left = command, code, out, err, seconds, left

    @property
    def errors(self):
        """Our error messages; the banner of mpirun is none."""
        return [line for line in self.err.splitlines() if ERROR in line]

    @property
    def is_lost(self):
        """Open MPI's mpirun misses the end of a rank where it does not answer within 2 s, as on a busy machine:
        PMIx_Finalize waits no longer. mpirun then exits with 1, whatever the rank returns. Rarely it hangs itself, when
        all its ranks have ended."""
        hangs = self.code is None and self.left and all(MPIRUN in line for line in self.left.splitlines())
        return OPEN_MPI and (hangs or self.code == 1 and "exiting improperly" in self.err)

    def __str__(self):
        text = f"$ {shlex.join(self.command)}\nexit {self.code} after {self.seconds:.1f} s"
        return text + "".join(f"\n{what}: {line}" for what,
                              lines in (("out", self.out), ("err", self.err), ("left", self.left))
                              for line in lines.splitlines()[:30])


def words(arguments):
    return shlex.split(arguments) if isinstance(arguments, str) else [str(word) for word in arguments]


def launcher(ranks, limit=LIMIT, environment=None):
    """The words that start a program on so many ranks, on as few processors as there are, for limit seconds at most.
    environment: variables of the program alone."""
    variables = (environment or {}).items()
    if OPEN_MPI:
        exported = [word for name, value in variables for word in ("-x", f"{name}={value}")]
        return [MPIRUN, "-np", str(ranks), "--oversubscribe", "--timeout", str(limit), *exported]
    return ["env", f"MPIEXEC_TIMEOUT={limit}", MPIRUN, "-np", str(ranks),
            *(word for name, value in variables for word in ("-genv", name, str(value)))]


def command_line(arguments, ranks=1, limit=LIMIT, program=None, mpirun=False, environment=None):
    """environment: variables of the program alone, not of mpirun: gm.fault()."""
    command = [program or PROGRAM, *words(arguments)]
    if ranks > 1 or mpirun:
        return [*launcher(ranks, limit, environment), *command]
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    return ["env", *settings, *command] if settings else command


# The library that fails calls; empty where it could not be built.
FAULT = os.path.join(BUILD, "tests/preload/fault.so")
HAS_FAULT = os.path.exists(FAULT) and os.path.getsize(FAULT) > 0


def need_fault():
    """Ends the test where there is no library that fails calls."""
    if not HAS_FAULT:
        skip_all(f"{FAULT} could not be built here")


def fault(spec="", **settings):
    """The environment of a run whose calls fail by tests/preload/fault.c: "KIND:N:RANK:ACTION"; log=FILE,
    callers=NAMES, under=FOLDER, start=POINT (GPUMEM_FAULT_FROM)."""
    names = {"log": "LOG", "callers": "CALLERS", "under": "UNDER", "start": "FROM"}
    given = {f"GPUMEM_FAULT_{names[key]}": os.path.abspath(value) if key in ("log", "under") else value
             for key, value in settings.items()}
    return {"LD_PRELOAD": FAULT, "GPUMEM_FAULT": spec, "GPUMEM_FAULT_PROGRAM": os.path.basename(PROGRAM)} | given


def struck(log, rank=0):
    """The log of a rank: the calls that were struck, and the number of calls of each kind."""
    calls, counts = [], {}
    if os.path.exists(f"{log}.{rank}"):
        with open(f"{log}.{rank}") as file:
            for line in file:
                word = line.split()
                if word[0] == "struck":
                    calls.append(line.strip())
                else:
                    counts[word[1]] = int(word[2])
    return calls, counts


_children = set() # what start() started and finish() has not waited for


def start(command):
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, errors="replace", start_new_session=True)
    _children.add(child)
    return child


def _end(number, _):
    """A test that is ended leaves nothing running: what it started has sessions of its own, which the signal did not
    reach."""
    for last in (signal.SIGTERM, signal.SIGKILL):
        for child in _children:
            if child.poll() is None:
                os.killpg(child.pid, last)
        until = time.monotonic() + 3
        while time.monotonic() < until and any(child.poll() is None for child in _children):
            time.sleep(0.05)
    os._exit(128 + number)


signal.signal(signal.SIGTERM, _end)


def _processes_of(session):
    """The processes of a session and their children, a line each as ps has it."""
    if not shutil.which("ps"):
        return ""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,sess=,stat=,wchan:24=,time=,args="], capture_output=True,
                           text=True).stdout
    rows = [line.split(None, 6) for line in table.splitlines()]
    members = {row[0] for row in rows if row[2] == str(session)}
    return "\n".join(" ".join(row)[:150] for row in rows if row[0] in members or row[1] in members)


def programs(process, with_workers=True):
    """The processes of the program from this one down: ranks, and the worker of each."""
    try:
        with open(f"/proc/{process}/comm") as file:
            found = [process] if file.read().strip() == os.path.basename(PROGRAM)[:15] else []
        if found and not with_workers:
            return found
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as file:
                for child in file.read().split():
                    found += programs(int(child), with_workers)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return found


def hear(child, ranks, number):
    """Do all ranks of this run handle this signal? Before they do, it ends them."""
    count = 0
    for process in programs(child.pid, with_workers=False):
        try:
            with open(f"/proc/{process}/status") as file:
                caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt:"))
            count += caught >> number - 1 & 1
        except (FileNotFoundError, ProcessLookupError):
            pass
    return count >= ranks


def wait_until_heard(child, ranks, number, limit=60):
    """Until all ranks handle this signal, or the run has ended."""
    until = time.monotonic() + limit
    while child.poll() is None and time.monotonic() < until and not hear(child, ranks, number):
        time.sleep(0.02)


def finish(child, limit, started=None):
    """Waits for what start() started, limit seconds at most. mpirun gets the time to end its ranks."""
    started = time.monotonic() if started is None else started
    code, left = 0, ""
    for wait, number in ((limit + 3, signal.SIGTERM), (3, signal.SIGKILL), (3, None)):
        try:
            out, err = child.communicate(timeout=wait)
            break
        except subprocess.TimeoutExpired:
            code, left = None, left or _processes_of(child.pid)
            if number:
                os.killpg(child.pid, number)
    _children.discard(child)
    return Run(child.args, child.returncode if code == 0 else None, out, err, time.monotonic() - started, left)


def run(arguments, ranks=1, limit=LIMIT, program=None, mpirun=False, environment=None):
    """gpumem-run with these arguments (a string is split as a shell does), alone for one rank, else under mpirun. A run
    whose end mpirun missed is made once more."""
    command = command_line(arguments, ranks, limit, program, mpirun, environment)
    started = time.monotonic()
    ran = finish(start(command), limit, started)
    if ran.is_lost:
        note(f"once more, as mpirun missed the end of a rank:\n{ran}")
        started = time.monotonic()
        ran = finish(start(command), limit, started)
    return ran


def wrapper(name, body):
    """A script to start instead of the program, which it is to exec as "$program" "$@"; $rank is the rank."""
    with open(name, "w") as out:
        out.write(f'#!/bin/bash\nprogram={shlex.quote(PROGRAM)}\n'
                  f'rank=${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-0}}}}\n{body}\n')
    os.chmod(name, 0o755)
    return os.path.abspath(name)


def all_work(ranks):
    """An option with which all ranks share the rows of a small product: left to itself the program takes fewer."""
    return f" --grid {ranks}x1x1"


def devices():
    """Yields every kind of device that is there; one that is not is a test skipped, or failed if it is required."""
    only, required = os.environ.get("GPUMEM_TEST_DEVICE"), os.environ.get("GPUMEM_TEST_REQUIRE")
    for kind in ("cpu", "cuda"):
        if only and kind != only:
            continue
        why = None if kind == "cpu" else absence(kind)
        if why is None:
            yield kind
        elif required == kind:
            ok(False, f"{kind}: there is one (GPUMEM_TEST_REQUIRE)", why)
        else:
            skip(f"{kind}: everything", why)


def absence(kind):
    """None when a product runs on this kind of device, else the program's own word why not."""
    write("absence.h5", A=np.ones((1, 1)), B=np.ones((1, 1)))
    tried = run(f"matmul absence.h5 --device {kind} -o absence_c.h5 --force -q")
    for name in ("absence.h5", "absence_c.h5"):
        if os.path.exists(name):
            os.remove(name)
    return None if tried.code == 0 else (tried.errors or ["?"])[0].replace(ERROR, "")


def faults_of_refusal(ran, code, pattern, limit=10):
    """The faults in the way a run was refused: its exit code, its time, its one message. One that took too long is made
    once more, as the start counts and a machine may be busy; it leaves nothing."""
    faults = []
    if ran.code != code:
        faults.append(f"exit code {ran.code}, expected {code}")
    if ran.seconds > limit:
        started = time.monotonic()
        again = finish(start(ran.command), 3 * limit, started)
        if again.seconds > limit:
            faults.append(f"took {ran.seconds:.1f} s, then {again.seconds:.1f} s, expected {limit} at most")
    if len(ran.errors) != 1 or ran.err.count(ERROR) != 1:
        faults.append(f"{ran.err.count(ERROR)} messages of ours, expected one")
    for line in ran.errors[:1]:
        if not line.startswith(ERROR):
            faults.append("our message does not begin its line")
        if not re.search(r" \(rank \d+ on [^\s()]+\)$", line):
            faults.append('our message does not end with "(rank R on HOST)"')
        if not re.search(pattern, line[len(ERROR):]):
            faults.append(f"our message does not match /{pattern}/")
    if ran.out:
        faults.append("something on standard output")
    return faults


def refused(title, command, code, pattern, ranks=1, limit=10):
    """A run that is refused with one message, and makes, changes and removes no file."""
    before = state()
    ran = run(command, ranks)
    faults = faults_of_refusal(ran, code, pattern, limit) + difference(before, state())
    return ok(not faults, title, *faults, ran)


# --- Files ---

def write(path, storage=None, **datasets):
    """A new file with these datasets; storage: options of h5py's create_dataset, for all of them."""
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file.create_dataset(name, data=data, **(storage or {}))
    return path


def write_damaged(path):
    """A stack x of six frames, of which the fifth cannot be decoded."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.ones((6, 50, 70), "u2"), chunks=(1, 50, 70), compression="gzip")
        chunk = file["x"].id.get_chunk_info(4)
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\377" * 10)


def read(path, name="/C"):
    with h5py.File(path, "r") as file:
        return file[name][()]


def state(folder="."):
    """Every file below folder with what is in it: equal states mean that nothing was made, removed or written."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[path] = hashlib.sha256(file.read()).hexdigest()
            else:
                found[path] = "folder" if os.path.isdir(path) else "link"
    return found


def difference(before, after):
    """The changes from one state to another, in words."""
    return [f"{path}: {'is new' if path not in before else 'is gone' if path not in after else 'was changed'}"
            for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]


def integers(rng, shape, low=-4, high=5, dtype="f8"):
    """Small integers: products of them are exact in every precision."""
    return rng.integers(low, high, shape).astype(dtype)


def shortened(x, precision):
    """float32 as products of tf32, fp16 or bf16 take it, rounded to nearest, ties to even; of other precisions as it
    is. In float64."""
    x = x.astype("f4")
    if precision == "fp16":
        return x.astype("f2").astype("f8")
    bits = {"tf32": 13, "bf16": 16}.get(precision, 0) # that are dropped
    word = x.view("u4")
    half = (1 << bits >> 1) - 1 + (word >> bits & 1) if bits else 0
    return np.where(np.isnan(x), x, ((word + half) >> bits << bits).astype("u4").view("f4")).astype("f8")
