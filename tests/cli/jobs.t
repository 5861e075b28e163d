#!/usr/bin/env -S python3 -B
"""The job scripts without Slurm: what they start, with which words and settings, that a signal reaches it and that its
exit code is theirs. A launcher that stands for mpirun and srun writes down how it was called. tests/long/cluster.t has
the real ones."""
import json
import os
import signal
import subprocess
import time

import gm

JOBS = f"{gm.SOURCE}/jobs"
SCRIPTS = ("matmul", "reduce", "normalize", "bench")
if not os.path.isdir(JOBS): # the tests were taken to another machine
    gm.skip_all(f"no {JOBS}")
os.mkdir("bin")
for name in ("mpirun", "srun"):
    with open(f"bin/{name}", "w") as out:
        out.write(f'''#!/usr/bin/env {os.environ.get("PYTHON") or "python3"}
import json, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]) # one that comes before the wait is not lost
with open("called", "w") as out:
    json.dump({{"words": sys.argv, "settings": dict(os.environ)}}, out)
os.rename("called", "call")
if "--wait" in sys.argv and signal.sigtimedwait([signal.SIGUSR2], 120):
    sys.exit(75)
sys.exit(3 if "absent.h5" in sys.argv else 0)
''')
    os.chmod(f"bin/{name}", 0o755)
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("SLURM_", "OMPI_", "PMIX_", "GPUMEM_", "BASH_FUNC_module"))}
ENVIRONMENT |= {"PATH": f"{os.getcwd()}/bin:{JOBS}:{os.path.dirname(gm.PROGRAM)}:{os.environ['PATH']}",
                "SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "name"}
KEEPALIVE = {"OMPI_MCA_oob_tcp_keepalive_time": "10", "OMPI_MCA_oob_tcp_keepalive_intvl": "2",
             "OMPI_MCA_oob_tcp_keepalive_probes": "5"}


class Call:
    """A script that has ended, and what it has called: words and settings ([] and {}: nothing)."""

    def __init__(self, script, *arguments, **settings):
        os.path.exists("call") and os.remove("call")
        path = f"{JOBS}/{script}" if script == "gpumem-job" else f"{JOBS}/{script}.sbatch"
        environment = {name: value for name, value in (ENVIRONMENT | settings).items() if value is not None}
        self.ran = subprocess.run(["bash", path, *arguments], capture_output=True, text=True, env=environment,
                                  check=False)
        self.words, self.settings = [], {}
        if os.path.exists("call"):
            with open("call") as file:
                call = json.load(file)
            self.words, self.settings = [os.path.basename(call["words"][0]), *call["words"][1:]], call["settings"]

    def __str__(self):
        return f"exit {self.ran.returncode}: {self.words}\n{self.ran.stderr}"


def starts(name, words, *arguments, code=0, more=None, **settings):
    call = Call(*arguments, **settings)
    wanted = more or {}
    gm.ok(call.ran.returncode == code and call.words == words and wanted.items() <= call.settings.items(), name, call,
          words, wanted)


def refuses(name, message, *arguments, code=2, **settings):
    call = Call(*arguments, **settings)
    gm.ok(call.ran.returncode == code and not call.words and message in call.ran.stderr, name, call)


MPIRUN = ["mpirun", "--bind-to", "none", "gpumem-run"]
REPORT = ["--report", "name-17.json"]
for script in SCRIPTS:
    starts(f"{script}: mpirun", [*MPIRUN, script, *REPORT, "a b.h5", "-q"], script, "a b.h5", "-q", more=KEEPALIVE)
starts("bench without an argument", [*MPIRUN, "bench", *REPORT], "bench")
for script in SCRIPTS[:3]:
    refuses(f"{script} without an argument", f"usage: sbatch {script}.sbatch ", script)
starts("the code of the program", [*MPIRUN, "matmul", *REPORT, "absent.h5"], "matmul", "absent.h5", code=3)
starts("srun", ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "gpumem-run", "matmul", *REPORT, "a.h5"], "matmul",
       "a.h5", GPUMEM_LAUNCH="srun", SLURM_CPUS_PER_TASK="8", more=KEEPALIVE
       | {"SRUN_CPUS_PER_TASK": "8", "PMIX_MCA_gds": "hash"})
starts("settings of the user stay", [*MPIRUN, "matmul", *REPORT, "a.h5"], "matmul", "a.h5",
       OMPI_MCA_oob_tcp_keepalive_time="60", more={"OMPI_MCA_oob_tcp_keepalive_time": "60"})
starts("words before the program", [*MPIRUN[:-1], "env", "A=1", "gpumem-run", "matmul", *REPORT, "a.h5"], "matmul",
       "a.h5", GPUMEM_RUN="env A=1 gpumem-run")
for word in ("--report=own.json", "--report own.json", "--rep own.json", "--repo=own.json"):
    starts(f"a report of the user's: {word}", [*MPIRUN, "reduce", "a.h5", *word.split()], "reduce", "a.h5",
           *word.split())
starts("operands after --", [*MPIRUN, "reduce", *REPORT, "-q", "--", "--report"], "reduce", "-q", "--", "--report")
starts("an option without its value", [*MPIRUN, "reduce", *REPORT, "a.h5", "-o"], "reduce", "a.h5", "-o")
starts("an option before the operation", [*MPIRUN, *REPORT, "--threads", "2", "reduce", "a.h5"], "gpumem-job",
       "--threads", "2", "reduce", "a.h5")
starts("a job's name with slashes", [*MPIRUN, "reduce", "--report", "a_b c-17.json", "a.h5"], "reduce", "a.h5",
       SLURM_JOB_NAME="a/b c")
starts("an array", [*MPIRUN, "reduce", *REPORT, "a7.h5:/d7"], "reduce", "a%a.h5:/d%a", SLURM_ARRAY_TASK_ID="7")
starts("no array", [*MPIRUN, "reduce", *REPORT, "a%a.h5"], "reduce", "a%a.h5")
refuses("modules that cannot be loaded", "module", "matmul", "a.h5", code=127, GPUMEM_MODULES="openmpi")
refuses("another launcher", "GPUMEM_LAUNCH=rsh: expected mpirun or srun", "matmul", "a.h5", GPUMEM_LAUNCH="rsh")
refuses("a program that is missing", "/absent/run: not found on PATH", "matmul", "a.h5", GPUMEM_RUN="/absent/run")
refuses("no job", "SLURM_JOB_ID is not set", "matmul", "a.h5", SLURM_JOB_ID=None)
SOME = {"GPUMEM_RANKS": "6x3"}
PRODUCT = ["matmul", "a.h5", "--report=r"]
starts("some of the ranks", [*MPIRUN[:-1], "-np", "6", "--map-by", "ppr:2:node", "gpumem-run", *PRODUCT], "gpumem-job",
       *PRODUCT, **SOME)
starts("some of the ranks, by srun", ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "--nodes=3", "--ntasks=6",
                                      "--ntasks-per-node=2", "gpumem-run", *PRODUCT], "gpumem-job", *PRODUCT,
       GPUMEM_LAUNCH="srun", **SOME)
starts("hosts without Slurm", [*MPIRUN[:-1], "-np", "6", "--host", "a:2,b:2,c:2", gm.PROGRAM, *PRODUCT], "gpumem-job",
       *PRODUCT, SLURM_JOB_ID=None, GPUMEM_HOSTS="a,b,c,d", more=KEEPALIVE, **SOME)
for wrong, message in (({"GPUMEM_RANKS": "6"}, "expected RANKSxNODES"),
                       ({"GPUMEM_RANKS": "6x4"}, "the same number of ranks on each node"),
                       ({"GPUMEM_RANKS": "6x3", "GPUMEM_HOSTS": "a,b"}, "GPUMEM_HOSTS=a,b has 2"),
                       ({"GPUMEM_HOSTS": "a", "GPUMEM_LAUNCH": "rsh"}, "GPUMEM_LAUNCH=rsh: expected mpirun or srun"),
                       ({"GPUMEM_HOSTS": "a"}, "needs GPUMEM_RANKS")):
    refuses(f"ranks or hosts: {wrong}", message, "gpumem-job", "matmul", "a.h5", **wrong)
refuses("scaling without an argument", "usage: sbatch scaling.sbatch ", "scaling")
refuses("scaling: a wrong option", "--fast: no such option", "scaling", "--fast")
refuses("no operation", "no operation", "gpumem-job")

settings = set()
for script in (*SCRIPTS, "scaling"):
    with open(f"{JOBS}/{script}.sbatch") as file:
        lines = [line for line in file if line.startswith(("#SBATCH", "##SBATCH", "#export", "exec"))]
        settings.add("".join(line.replace("exec gpumem-scaling", "exec gpumem-job NAME").replace(script, "NAME")
                             for line in lines))
gm.ok(len(settings) == 1, "the scripts have the same settings", *settings)

os.path.exists("call") and os.remove("call")
child = subprocess.Popen(["bash", f"{JOBS}/matmul.sbatch", "a.h5", "--wait"], env=ENVIRONMENT)
for _ in range(500):
    if os.path.exists("call"):
        break
    time.sleep(0.02)
child.send_signal(signal.SIGUSR2)
gm.ok(child.wait(20) == 75, "a signal to the script is one to the launcher", child.returncode)
gm.done()
