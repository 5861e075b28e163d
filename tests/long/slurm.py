"""A Slurm cluster of hosts (hosts.py), for tests: munged and slurmctld on the side of the test, slurmd on each host. No
systemd, no cgroups, no data base. Everything ends with the namespaces of the test."""
import os
import re
import shutil
import subprocess
import time

import hosts

# and their packages
PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
LOST = 10 # seconds without an answer, after which a node is lost
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random") # stand for GPUs: Slurm wants files of devices
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE"}

SETTINGS = """
ClusterName=test
SlurmctldHost={controller}({address})
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
TmpFS={folder}/tmp-%n
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=1
MpiDefault=pmix
GresTypes=gpu
ReturnToService=2
JobRequeue=1
SlurmdTimeout={lost}
MessageTimeout=5
TCPTimeout=2
KillWait=2
CompleteWait=0
InactiveLimit=0
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def absence():
    """The packages that a Slurm of our own lacks; None: none."""
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        return f"no {', '.join(missing)} (packages of Slurm)"
    return None


class Cluster:
    """nodes: number of them, called node1, node2, ...; cpus, gpus: of each, whatever this machine has. Its files are in
    a file system of its own, as munged takes no folder that others cannot pass through."""

    def __init__(self, nodes, cpus, gpus, folder="/run/cluster"):
        self.folder = folder
        hosts.call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        self.nodes = hosts.up([f"node{number + 1}" for number in range(nodes)])
        self.daemons = {}
        os.environ["SLURM_CONF"] = f"{self.folder}/slurm.conf"
        for name in ("munge", "state", *(f"tmp-{host.name}" for host in self.nodes)):
            os.makedirs(f"{self.folder}/{name}", 0o755)
        lines = [f"NodeName={host.name} NodeAddr={host.address} CPUs={cpus} RealMemory=2000 Gres=gpu:test:{gpus} "
                 f"State=UNKNOWN" for host in self.nodes]
        with open(os.environ["SLURM_CONF"], "w") as out:
            out.write(SETTINGS.format(controller=os.uname().nodename, address=hosts.BRIDGE, folder=self.folder,
                                      lost=LOST, nodes="\n".join(lines), user="root"))
        with open(f"{self.folder}/gres.conf", "w") as out:
            out.write(f"NodeName=node[1-{nodes}] Name=gpu Type=test File={','.join(DEVICES[:gpus])}\n")
        with open(os.open(f"{self.folder}/munge/key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(os.urandom(128))

    def start(self):
        place = f"{self.folder}/munge"
        self.daemon("munged", ["munged", "--foreground", f"--key-file={place}/key", f"--socket={place}/socket",
                               f"--pid-file={place}/pid", f"--log-file={place}/log", f"--seed-file={place}/seed"])
        hosts.wait_for(lambda: os.path.exists(f"{place}/socket"), 10)
        self.daemon("slurmctld", ["slurmctld", "-D", "-i"])
        for host in self.nodes:
            self.start_node(host)
        return hosts.wait_for(lambda: self.idle() == len(self.nodes), 20)

    def daemon(self, name, command):
        with open(f"{self.folder}/{name}.out", "a") as out:
            self.daemons[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")

    def start_node(self, host):
        self.daemon(host.name, [*host.inside(), "slurmd", "-D", "-N", host.name])

    def idle(self):
        return len(set(self.ask("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()))

    def ask(self, *words):
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def logs(self):
        """The last lines of each daemon's log."""
        return "".join(self.ask("tail", "-n", "5", f"{self.folder}/{name}.log")
                       for name in ("slurmctld", *(host.name for host in self.nodes)))


def submit(script, *arguments, options=()):
    """Submits a script; returns the number of the job, as a string. An error of sbatch is raised."""
    ran = subprocess.run(["sbatch", "--parsable", *options, script, *arguments], capture_output=True, text=True,
                         check=False)
    if ran.returncode:
        raise RuntimeError(f"sbatch {' '.join(options)} {script}: {ran.stderr.strip()}")
    return ran.stdout.strip().split(";")[0]


def show(job):
    """The record of a job in Slurm: {"JobState": "RUNNING", ...}; {}: there is none."""
    ran = subprocess.run(["scontrol", "show", "job", "-o", job], capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines() if ran.returncode == 0 else []
    return dict(re.findall(r"(\w+)=(\S*)", lines[0])) if lines else {}


def state(job):
    return show(job).get("JobState", "?")


def wait(job, limit, states=ENDED):
    """Waits until the job is in one of these states. Returns its state and exit code ("0:0": status and signal)."""
    until = time.monotonic() + limit
    while state(job) not in states and time.monotonic() < until:
        time.sleep(0.1)
    found = show(job)
    return found.get("JobState", "?"), found.get("ExitCode", "?")
