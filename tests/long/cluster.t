#!/usr/bin/env -S python3 -B
"""The job scripts on a Slurm cluster of three hosts: results, exit codes and logs; mpirun and srun; arrays; a warning
before the time limit; what is killed or lost; a study of scaling. It skips where namespaces are refused or Slurm is not
installed."""
import json
import os
import re
import subprocess
import sys
import time

import hosts
import slurm

if slurm.absence():
    hosts.skip_all(slurm.absence())
if os.environ.get("MPI_FAMILY", "openmpi") != "openmpi":
    hosts.skip_all("the hosts are those of Open MPI's launcher")
hosts.enter()

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

JOBS = f"{gm.SOURCE}/jobs"
LIMIT = 60 # seconds of a job


def log_of(job):
    """The text that a job has printed; of the bars of its progress only the last one."""
    names = [name for name in os.listdir() if name.endswith(f"-{job}.log")]
    text = open(names[0], newline="").read() if names else ""
    return "\n".join(line.split("\r")[-1] for line in text.split("\n"))


def report_of(job):
    names = [name for name in os.listdir() if name.endswith(f"-{job}.json")]
    if not names:
        return {}
    with open(names[0]) as file:
        return json.load(file)


def places_of(job):
    """The batch job in the report: of each rank its job, and whether its node and host are the same."""
    entries = [(rank["host"], rank["slurm"] or {}) for rank in report_of(job).get("per_rank", [])]
    return [(slurm.get("job"), host.split(".")[0] == str(slurm.get("node")).split(".")[0]) for host, slurm in entries]


class Job:
    """A submitted script of jobs/."""

    def __init__(self, script, *arguments, options=()):
        self.what = " ".join([*options, script])
        self.id = slurm.submit(script if os.path.exists(script) else f"{JOBS}/{script}.sbatch", *arguments,
                               options=options)

    def running(self, lines=0):
        """Waits until its ranks are at work: their progress is in the log, after some lines."""
        if not hosts.wait_for(lambda: re.search(r"\d %, ", "\n".join(log_of(self.id).split("\n")[lines:])), 60):
            gm.ok(False, f"{self.what}: it runs", slurm.state(self.id), log_of(self.id))

    def again(self):
        """Starts a job that is queued again. Slurm would wait for two minutes: what is to end the first run must not
        end the second."""
        time.sleep(4)
        subprocess.run(["scontrol", "update", f"JobId={self.id}", "StartTime=now"], check=True)

    def end(self, limit=LIMIT):
        self.state, self.code = slurm.wait(self.id, limit)
        if self.state not in slurm.ENDED:
            subprocess.run(["scancel", self.id], check=False)
        return self

    def check(self, name, state, code, *more):
        """It ended in this state with this exit code, and all else is true."""
        good = self.state == state and self.code == code and all(more)
        return gm.ok(good, name,
                     f"{self.what}: {self.state} {self.code}, expected {state} {code}; {[bool(one) for one in more]}",
                     log_of(self.id))


def same(file, name, want):
    return os.path.exists(file) and np.array_equal(gm.read(file, name), want)


def nothing_left(*outputs):
    """No output, and nothing that is going to be one."""
    return not [name for name in os.listdir() if any(output in name for output in outputs)]


# --- Each script, as it is and on two nodes ---

def scripts():
    square = gm.read("ab.h5", "A") @ gm.read("ab.h5", "B")
    jobs = [Job("matmul", "ab.h5", "-o", "c1.h5"),
            Job("matmul", "ab.h5", "-o", "c2.h5", options=("-N2", "--ntasks-per-node=2"))]
    for job, file, nodes in zip(jobs, ("c1.h5", "c2.h5"), (1, 2)):
        report = report_of(job.end().id)
        job.check(f"matmul on {nodes} node{'s' * (nodes > 1)}", "COMPLETED", "0:0", same(file, "C", square),
                  len(report.get("hosts", [])) == nodes, report.get("ranks") == 4, report.get("exit") == 0,
                  "passed its check" in log_of(job.id), "limited by" in log_of(job.id),
                  places_of(job.id) == [(int(job.id), True)] * 4)
    job = Job("reduce", "stack.h5:/d", "--stat", "sum",
              options=("-N2", "--ntasks-per-node=1", "--gpus-per-node=0")).end()
    job.check("reduce", "COMPLETED", "0:0", f"sum {int(gm.read('stack.h5', 'd').sum(dtype='u8'))}\n" in log_of(job.id))
    job = Job("normalize", "stack.h5:/d", "--type", "f32", "-o", "n.h5", options=("-N2", "--ntasks-per-node=2")).end()
    alone = gm.run("normalize stack.h5:/d --type f32 -o alone.h5 --device cpu")
    job.check("normalize", "COMPLETED", "0:0", alone.code == 0, same("n.h5", "d", gm.read("alone.h5", "d")))
    job = Job("bench", "copy", "--shapes", "1M", "--json", "bench.json", options=("--ntasks-per-node=2",)).end()
    job.check("bench", "COMPLETED", "0:0", os.path.exists("bench.json"))


def refusals():
    job = Job("matmul").end()
    job.check("a script without an argument", "FAILED", "2:0", "usage: sbatch matmul.sbatch FILE" in log_of(job.id))
    job = Job("matmul", "absent.h5", options=("-N2", "--ntasks-per-node=1")).end()
    job.check("a file that is missing: its message, its code", "FAILED", "3:0", log_of(job.id).count(gm.ERROR) == 1,
              "absent.h5" in log_of(job.id))
    os.environ["GPUMEM_RUN"] = "/absent/gpumem-run"
    job = Job("matmul", "ab.h5").end()
    del os.environ["GPUMEM_RUN"]
    job.check("a program that is missing", "FAILED", "2:0", "/absent/gpumem-run: not found" in log_of(job.id))


# --- Launchers, the environment, arrays ---

def by_srun():
    square = gm.read("ab.h5", "A") @ gm.read("ab.h5", "B")
    os.environ["GPUMEM_LAUNCH"] = "srun"
    job = Job("matmul", "ab.h5", "-o", "c3.h5", options=("-N2", "--ntasks-per-node=2", "--cpus-per-task=2")).end()
    job.check("srun", "COMPLETED", "0:0", same("c3.h5", "C", square), len(report_of(job.id).get("hosts", [])) == 2,
              places_of(job.id) == [(int(job.id), True)] * 4,
              all("step" in rank["slurm"] for rank in report_of(job.id).get("per_rank", [])))
    job = Job("matmul", "absent.h5", options=("-N2", "--ntasks-per-node=1")).end()
    job.check("srun: the code of the program", "FAILED", "3:0", log_of(job.id).count(gm.ERROR) == 1)
    del os.environ["GPUMEM_LAUNCH"]
    for mpi in ("none", "pmix"):
        with open("shell", "w") as out: # as srun --pty bash
            run = f"{gm.PROGRAM} reduce stack.h5:/d --stat max -q"
            out.write(f"#!/bin/bash\n#SBATCH --output=shell-%j.log\nsrun --mpi={mpi} -n1 bash -c '{run} && {run}'\n")
        job = Job("shell", options=("-N1",)).end()
        job.check(f"a shell of srun --mpi={mpi}: each run is alone", "COMPLETED", "0:0",
                  re.search(r"^max (\S+)\nmax \1$", log_of(job.id), re.M))


def settings():
    with open("words", "w") as out:
        out.write('#!/bin/bash\nexec "$@"\n')
    os.chmod("words", 0o755)
    module = 'module() { echo "module $*"; }; export -f module; '
    command = (f"{module}sbatch --parsable -N2 --ntasks-per-node=1 {JOBS}/reduce.sbatch stack.h5:/d --stat max "
               "--report own.json")
    os.environ |= {"GPUMEM_MODULES": "openmpi/4.1 hdf5", "GPUMEM_RUN": f"{os.path.abspath('words')} {gm.PROGRAM}",
                   "SBATCH_PARTITION": "main"}
    number = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.strip()
    for name in ("GPUMEM_MODULES", "GPUMEM_RUN", "SBATCH_PARTITION"):
        del os.environ[name]
    state, code = slurm.wait(number, LIMIT)
    log = log_of(number)
    gm.ok((state, code) == ("COMPLETED", "0:0") and "module load openmpi/4.1 hdf5\n" in log and "\nmax " in log
          and os.path.exists("own.json"), "modules, words before the program, a report of the user's", state, code, log)


def arrays():
    for index in range(3):
        gm.write(f"part{index}.h5", d=np.full((10, 20, 30), index + 1, "u2"))
    number = slurm.submit(f"{JOBS}/reduce.sbatch", "part%a.h5", "--stat", "sum",
                          options=("--array=0-2", "--ntasks-per-node=1"))
    ended = hosts.wait_for(lambda: not subprocess.run(["squeue", "-h", "-j", number], capture_output=True, text=True,
                                                      check=False).stdout, LIMIT)
    logs = "".join(open(name).read() for name in os.listdir() if name.startswith("gpumem-reduce-")
                   and name.endswith(".log"))
    gm.ok(ended and all(f"sum {6000 * (index + 1)}\n" in logs for index in range(3)), "an array of jobs", logs)


# --- Signals ---

ENDLESS = ("endless.h5", "--host-memory", "200M", "--progress", "always")


def warn(job):
    """Warns a job as Slurm does before the time limit. Returns the seconds until the job has ended."""
    signalled = time.monotonic()
    subprocess.run(["scancel", "--batch", "--signal=USR2", job.id], check=False)
    job.end()
    return time.monotonic() - signalled


def stopped(launcher):
    os.environ["GPUMEM_LAUNCH"] = launcher
    job = Job("matmul", *ENDLESS, "-o", f"{launcher}.h5", "--grid", "4x1x1", options=("-N2", "--ntasks-per-node=2"))
    del os.environ["GPUMEM_LAUNCH"]
    job.running()
    seconds = warn(job)
    log = log_of(job.id)
    job.check(f"{launcher}: a warning ends all ranks with 75", "FAILED", "75:0", log.count(gm.ERROR) == 1,
              "stopped by signal 12" in log, report_of(job.id).get("exit") == 75, nothing_left(f"{launcher}.h5"),
              seconds < 15)


def requeued():
    """A job that was stopped is queued again: it begins anew, with the same log."""
    job = Job("matmul", *ENDLESS, "-o", "again.h5", options=("--ntasks-per-node=1",))
    job.running()
    warn(job)
    before = log_of(job.id).count("\n")
    subprocess.run(["scontrol", "requeue", job.id], check=True)
    job.again()
    job.running(before)
    warn(job)
    log = log_of(job.id)
    job.check("a job that was stopped is queued again", "FAILED", "75:0", log.count(gm.ERROR) == 2,
              slurm.show(job.id).get("Restarts") == "1", nothing_left("again.h5"))


def cancelled(launcher):
    os.environ["GPUMEM_LAUNCH"] = launcher
    job = Job("matmul", *ENDLESS, "-o", f"{launcher}.h5", options=("-N2", "--ntasks-per-node=1"))
    del os.environ["GPUMEM_LAUNCH"]
    job.running()
    subprocess.run(["scancel", job.id], check=True)
    job.end()
    gm.ok(job.state == "CANCELLED" and not os.path.exists(f"{launcher}.h5") and nobody(), f"{launcher}: scancel",
          job.state, log_of(job.id))
    clean()


def killed(launcher):
    """The first rank on the second node is killed."""
    os.environ["GPUMEM_LAUNCH"] = launcher
    job = Job("matmul", *ENDLESS, "-o", f"{launcher}.h5", "--grid", "4x1x1", options=("-N2", "--ntasks-per-node=2"))
    del os.environ["GPUMEM_LAUNCH"]
    job.running()
    subprocess.run([*CLUSTER.nodes[1].inside(), "kill", "-9", CLUSTER.nodes[1].processes("gpumem-run")[0]], check=True)
    job.end()
    job.check(f"{launcher}: a rank that is killed ends the job with 137", "FAILED", "137:0",
              not os.path.exists(f"{launcher}.h5"), nobody())
    clean()


def nobody():
    """Waits until no rank is left on any node."""
    return hosts.wait_for(lambda: not any(host.processes("gpumem-run") for host in CLUSTER.nodes), 10)


def clean():
    """Removes what runs that were killed have left."""
    for name in os.listdir():
        if ".gpumem-" in name:
            os.remove(name)


# --- Lost nodes ---

def lost(title, lose, regain):
    """The last node is lost: the job ends, and one that may be is queued again."""
    options = ("-N2", "--nodelist=node2,node3", "--ntasks-per-node=1")
    job = Job("matmul", *ENDLESS, "-o", "lost.h5", options=(*options, "--no-requeue"))
    job.running()
    before = time.monotonic()
    lose()
    job.end()
    seconds = time.monotonic() - before
    failed = job.state == "NODE_FAIL" or (job.state == "FAILED" and job.code != "0:0")
    gm.ok(failed and seconds < 30 + slurm.LOST and not os.path.exists("lost.h5"),
          f"{title}: the job ends after {seconds:.0f} s", job.state, job.code, log_of(job.id))
    regain()
    back = hosts.wait_for(lambda: CLUSTER.idle() == len(CLUSTER.nodes), 30)
    gm.ok(back and nobody(), f"{title}: nobody is left", CLUSTER.ask("sinfo", "-N", "-l"), CLUSTER.logs())
    clean()


def restart(host):
    host.start()
    CLUSTER.start_node(host)


def returned():
    """The node of a job crashes: Slurm queues it again, for another node, where it removes what it has left before."""
    job = Job("matmul", *ENDLESS, "-o", "back.h5", "--output-layout", "parts", options=("--ntasks-per-node=1",))
    job.running()
    first = slurm.show(job.id)["BatchHost"]
    host = next(host for host in CLUSTER.nodes if host.name == first)
    left = [name for name in os.listdir() if name.startswith("back.h5.parts-")]
    host.end()
    state, _ = slurm.wait(job.id, 60, {"PENDING"})
    before = log_of(job.id).count("\n")
    job.again()
    again = hosts.wait_for(lambda: any("removed the leftovers of a run that has ended" in line
                                       for line in log_of(job.id).split("\n")[before:]), 30)
    job.running(before)
    second = slurm.show(job.id).get("BatchHost")
    warn(job)
    job.check("a node that crashes: the job goes to another one, and removes what it left", "FAILED", "75:0",
              state == "PENDING", len(left) == 1, again, second != first, nothing_left("back.h5"))
    restart(host)
    gm.ok(hosts.wait_for(lambda: CLUSTER.idle() == len(CLUSTER.nodes), 30), "and the node is back",
          CLUSTER.ask("sinfo", "-N", "-l"), CLUSTER.logs())


# --- A study of scaling ---

def study(launcher):
    """On 1 rank, 2 of a node, 4 of two nodes."""
    os.environ["GPUMEM_LAUNCH"] = launcher
    words = ("--strong", "--size", "4M", "--repeat", "1", "--no-warm-up", "--out", f"study of {launcher}", "reduce")
    job = Job("scaling", *words, options=("-N2", "--ntasks-per-node=2")).end(120)
    del os.environ["GPUMEM_LAUNCH"]
    hosts_of = {}
    for ranks in (1, 2, 4):
        name = f"study of {launcher}/runs/strong-reduce-{ranks}-1.json"
        if os.path.exists(name):
            with open(name) as file:
                hosts_of[ranks] = len(json.load(file)["hosts"])
    job.check(f"{launcher}: a study on 1, 2 and 4 ranks of two nodes", "COMPLETED", "0:0",
              hosts_of == {1: 1, 2: 1, 4: 2}, os.path.exists(f"study of {launcher}/scaling.md"),
              "| strong | 4 | 2 | 1 |" in log_of(job.id))


def study_again():
    """A study that is warned: 75, and the same job goes on."""
    words = ("--strong", "--ranks", "1,2", "--size", "4000", "--repeat", "1", "--no-warm-up", "--out", "warned",
             "matmul")
    job = Job("scaling", *words, options=("--ntasks-per-node=2",))
    if hosts.wait_for(lambda: "run 1 of 1" in log_of(job.id), 60): # the first one is done
        time.sleep(1)
    warn(job)
    job.check("a study that is warned", "FAILED", "75:0",
              os.path.exists("warned/runs/strong-matmul-1-1.json"),
              not os.path.exists("warned/runs/strong-matmul-2-1.json"),
              "stopped by a signal" in log_of(job.id), "| strong | 1 | 1 | 1 |" in log_of(job.id), nobody())
    job = Job("scaling", *words, options=("--ntasks-per-node=2",)).end()
    log = log_of(job.id)
    job.check("and goes on", "COMPLETED", "0:0", log.count("run 1 of 1: ") == 1,
              "strong, 2 ranks, 1 node, run 1 of 1: " in log, "| strong | 2 | 1 | 1 |" in log)


def warned(job):
    job.end(90)
    log = log_of(job.id)
    job.check("Slurm warns before the time limit: 75", "FAILED", "75:0", "stopped by signal 12" in log,
              nothing_left("limit.h5"))


os.environ["PATH"] = f"{os.path.dirname(gm.PROGRAM)}:{JOBS}:{os.environ['PATH']}"
# jobs inherit the environment: that of tests makes things easier
for setting in [name for name in os.environ if name.startswith("OMPI_MCA_")]:
    del os.environ[setting]
os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1" # the nodes share the processors of this machine
RNG = np.random.default_rng(5)
gm.write("ab.h5", A=gm.integers(RNG, (300, 200)), B=gm.integers(RNG, (200, 250)))
gm.write("stack.h5", d=RNG.integers(0, 4000, (24, 40, 50)).astype("u2"))
with h5py.File("endless.h5", "w") as made: # of zeros that take no room: their product takes hours
    made.create_dataset("A", (1500, 4000000), "f4", chunks=(100, 10000))
    made.create_dataset("B", (4000000, 1500), "f4", chunks=(10000, 100))

CLUSTER = slurm.Cluster(nodes=3, cpus=64, gpus=4)
if not gm.ok(CLUSTER.start(), "a cluster of three nodes", CLUSTER.logs()):
    gm.done()
LIMITED = Job("matmul", *ENDLESS, "-o", "limit.h5", options=("--ntasks-per-node=1", "-t1", "--signal=B:USR2@40"))
LAST = CLUSTER.nodes[-1]
for test, *given in ((scripts,), (refusals,), (by_srun,), (settings,), (arrays,), (stopped, "mpirun"),
                     (stopped, "srun"), (requeued,), (study, "mpirun"), (study, "srun"), (study_again,),
                     (warned, LIMITED), (cancelled, "mpirun"), (cancelled, "srun"), (killed, "mpirun"),
                     (killed, "srun"), (returned,), (lost, "a node that crashes", LAST.end, lambda: restart(LAST)),
                     (lost, "a link that is cut", LAST.cut, LAST.heal)):
    begun = time.monotonic()
    test(*given)
    gm.note(f"{test.__name__}: {time.monotonic() - begun:.1f} s")
gm.done()
