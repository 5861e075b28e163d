#!/usr/bin/env -S python3 -B
"""Three hosts, under mpirun, with TCP between them: names, ranks and processors of each host; the bits of one host; a
study of scaling; which host a failure is on; a link that is cut for a while or for good; a signal. It skips where
namespaces are refused."""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import hosts

if os.environ.get("MPI_FAMILY", "openmpi") != "openmpi":
    hosts.skip_all("the hosts are those of Open MPI's launcher")
hosts.enter()

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

NAMES = ("host1", "host2", "host3")
LIMIT = 60 # seconds of a run
SOON = 30 # seconds until a run has ended whose link was cut
PATIENCE = {} # of the daemons of mpirun, as jobs/gpumem-job has it
with open(f"{gm.SOURCE}/jobs/gpumem-job") as script:
    for name, value in re.findall(r"^export (OMPI_MCA_oob_tcp_keepalive_\w+)=\S+:-(\d+)", script.read(), re.M):
        PATIENCE[name] = value


def command(arguments, each, environment=None, program=None):
    """mpirun beside the hosts, as on the front end of a cluster; each: ranks of each host."""
    where = ",".join(f"{host.name}:{each}" for host in HOSTS)
    settings = [word for name, value in (environment or {}).items() for word in ("-x", f"{name}={value}")]
    return [gm.MPIRUN, "--timeout", str(LIMIT), "--host", where, "-np", str(each * len(HOSTS)), *settings,
            program or gm.PROGRAM, *gm.words(arguments)]


def run(arguments, each=2, environment=None):
    started = time.monotonic()
    return gm.finish(gm.start(command(arguments, each, environment)), LIMIT, started)


# --- Who is where ---

def numbers(text):
    """"0-2,5" -> {0, 1, 2, 5}"""
    ends = [part.split("-") for part in text.split(",")]
    return {n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)}


def places():
    everything = os.sched_getaffinity(0)
    for each in (1, 2):
        ran = run("info", each)
        rows = re.findall(r"^(\d+) +(\S+) +\d+ +(\S+) +(yes|no) +(\w+)", ran.out, re.M)
        shares = {name: [numbers(row[2]) for row in rows if row[1] == name] for name in NAMES}
        gm.ok(ran.code == 0 and f"{3 * each} ranks on 3 hosts\n" in ran.out
              and [row[1] for row in rows] == [name for name in NAMES for _ in range(each)],
              f"{each} on each of three hosts: their names, in order", ran)
        if len(everything) >= 2:
            gm.ok(all(set().union(*shares[name]) == everything and sum(map(len, shares[name])) == len(everything)
                      for name in NAMES) and all(row[3] == "yes" for row in rows),
                  f"{each} on each: the ranks of a host share its processors", shares, ran)
        gm.ok(len(re.findall(r"^\d+ .*  staged, [0-9.e+-]+ GB/s +\w+ ", ran.out, re.M)) == 3 * each,
              f"{each} on each: the exchange of each rank with the next", ran)
    ran = run("matmul ab.h5 --grid 6x1x1 -o placed.h5 --report placed.json --progress always --verbose")
    with open("placed.json") as file:
        report = json.load(file)
    gm.ok(ran.code == 0 and report["ranks"] == 6 and report["hosts"] == list(NAMES) and report["exit"] == 0
          and [one["host"] for one in report["devices"]] == [name for name in NAMES for _ in range(2)]
          and [one["host"] for one in report["per_rank"]] == [name for name in NAMES for _ in range(2)], "the report",
          ran, report)
    gm.ok(ran.err.count("passed its check") == 1 and ran.err.count("limited by") == 1
          and re.search(rf"slowest rank {report['work']['slowest']} on {NAMES[report['work']['slowest'] // 2]}$",
                        ran.err, re.M), "notes come once", ran)


# --- The same bits ---

def digest(path):
    """A digest of all datasets of a file."""
    found = hashlib.sha256()
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update(name.encode() + item[()].tobytes())
                        if isinstance(item, h5py.Dataset) else None)
    return found.hexdigest()


def same(title, arguments, ways=("",)):
    """The bits of one rank on one host."""
    alone = gm.run(f"{arguments} --device cpu -o alone.h5 --force --no-sync")
    want = digest("alone.h5") if alone.code == 0 else alone
    for way in ways:
        ran = run(f"{arguments} --device cpu -o several.h5 --force --no-sync {way}")
        found = digest("several.h5") if ran.code == 0 else ran
        gm.ok(found == want, f"{title} {way}: the bits of one host", ran)


def bits():
    for precision in ("fp64", "fp32"):
        same(f"a product, {precision}", f"matmul ab.h5 --precision {precision}",
             ("", "--grid 6x1x1", "--grid 2x3x1", "--grid 1x1x6", "--grid 1x2x3"))
    same("columns", "reduce stack.h5:/f --axis pixel --stat mean,std", ("", "--chunk 13,17"))
    same("frames", "reduce stack.h5:/f --axis frame --stat sum,var,min")
    same("normalize", "normalize stack.h5:/f --method zscore", ("", "--output-layout parts", "--deflate 1"))
    same("percentiles", "normalize stack.h5:/d --method percentile --type u8")
    same("transpose", "transpose stack.h5:/d")
    same("gather", "gather stack.h5:/d --index stack.h5:/rows")
    alone = gm.run("reduce stack.h5:/f --device cpu")
    ran = run("reduce stack.h5:/f --device cpu")
    gm.ok(ran.code == 0 and ran.out == alone.out, "statistics of all elements: the bits of one host", ran, alone)
    ran = run("compare several.h5:/d alone.h5:/d")
    gm.ok(ran.code == 0, "compare", ran)


# --- A study of scaling ---

def study():
    words = ["--hosts", ",".join(NAMES), "--ranks", "1,3", "--repeat", "1", "--no-warm-up", "--size", "300", "--out",
             "study", "matmul"]
    ran = gm.finish(gm.start(["env", f"PATH={os.path.dirname(gm.PROGRAM)}:{os.environ['PATH']}",
                              f"{gm.SOURCE}/jobs/gpumem-scaling", *words]), LIMIT)
    found = {}
    for kind in ("strong", "weak"):
        for ranks in (1, 3):
            name = f"study/runs/{kind}-matmul-{ranks}-1.json"
            if os.path.exists(name):
                with open(name) as file:
                    report = json.load(file)
                found[kind, ranks] = (report["hosts"], report["inputs"][0]["shape"])
    want = {(kind, ranks): (list(NAMES[:ranks]), [300 * (ranks if kind == "weak" else 1), 300])
            for kind in ("strong", "weak") for ranks in (1, 3)}
    gm.ok(ran.code == 0 and found == want and "| weak | 3 | 3 | 1 |" in ran.out,
          "a study of scaling on one and three hosts", ran, found)
    shutil.rmtree("study", ignore_errors=True)


# --- Failures ---

def failures():
    before = gm.state()
    ran = run("matmul absent.h5")
    faults = gm.faults_of_refusal(ran, 3, r"absent\.h5.*rank 0 on host1")
    gm.ok(not faults, "a missing input", *faults, ran)
    if gm.HAS_FAULT:
        ran = run("matmul ab.h5 --grid 6x1x1 -o failed.h5 --device cpu", environment=gm.fault("read:1+:5:EIO"))
        faults = gm.faults_of_refusal(ran, 3, r"ab\.h5.*rank 5 on host3")
        gm.ok(not faults, "a read that fails on the last host: its rank and host", *faults, ran)
    else:
        gm.skip("a read that fails on the last host", f"no {gm.FAULT}")
    gm.ok(gm.state() == before, "nothing is left", *gm.difference(before, gm.state()))


# --- A signal, and links ---

ENDLESS = "matmul endless.h5 -o out.h5 --host-memory 200M --grid 6x1x1 --device cpu --progress always"


class Long:
    """A run of hours, with what it prints in a file."""

    def __init__(self):
        with open("printed", "w") as out:
            self.child = subprocess.Popen(command(ENDLESS, 2), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          start_new_session=True)
        gm.ok(hosts.wait_for(lambda: self.done() > 0, 30), "a long run begins", self.text())

    def text(self):
        with open("printed", newline="", errors="replace") as file:
            return "\n".join(line.split("\r")[-1] for line in file.read().split("\n"))

    def shown(self):
        """The amounts that its bar has shown, in MiB."""
        with open("printed", newline="", errors="replace") as file:
            found = re.findall(r" %, ([\d.]+) ([KMG])iB of", file.read())
        return [float(number) * {"K": 1 / 1024, "M": 1, "G": 1024}[unit] for number, unit in found]

    def done(self):
        return max(self.shown(), default=0)

    def goes_on(self):
        before = self.done()
        return hosts.wait_for(lambda: self.done() > before, 30)

    def stop(self):
        """USR2 to mpirun. Returns its exit code."""
        self.child.send_signal(signal.SIGUSR2)
        return self.end(20)

    def end(self, limit):
        """Waits for its end. Returns its exit code; None: it was killed."""
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return None


def nobody():
    """Waits until no process of the run is left on any host."""
    return hosts.wait_for(lambda: not any(host.processes("gpumem-run") + host.processes("orted") for host in HOSTS), 15)


def signals():
    before = gm.state()
    long = Long()
    long.goes_on()
    code = long.stop()
    text, shown = long.text(), long.shown()
    os.remove("printed")
    gm.ok(len(shown) > 1 and shown == sorted(shown), "one rank shows the progress of all", shown)
    gm.ok(code == 75 and text.count(gm.ERROR) == 1 and gm.state() == before and nobody(),
          "USR2 to mpirun: 75, one message, nothing left", code, text, *gm.difference(before, gm.state()))


def outage():
    long = Long()
    HOSTS[2].cut()
    time.sleep(6)
    HOSTS[2].heal()
    gm.ok(long.child.poll() is None and long.goes_on() and long.goes_on(),
          "a link that is cut for 6 s: the run goes on", long.text())
    code = long.stop()
    gm.ok(code == 75 and nobody(), "and hears a signal", code, long.text())
    os.remove("printed")


def cut():
    before = gm.state()
    long = Long()
    HOSTS[2].cut()
    started = time.monotonic()
    code = long.end(2 * SOON)
    seconds = time.monotonic() - started
    text = long.text()
    os.remove("printed")
    gm.ok(code and seconds < SOON and "lost communication" in text and "host3" in text,
          f"a link that is cut: exit code {code} after {seconds:.0f} s", text)
    gm.ok(nobody(), "nobody is left, on either side", *(str(host.processes("gpumem-run")) for host in HOSTS))
    HOSTS[2].heal()
    gm.ok(not os.path.exists("out.h5"), "no output")
    again = run("matmul ab.h5 -o out.h5 --device cpu")
    os.path.exists("out.h5") and os.remove("out.h5")
    gm.ok(again.code == 0 and gm.state() == before, "the next run of that output removes what was left", again,
          *gm.difference(before, gm.state()))


RNG = np.random.default_rng(3)
gm.write("ab.h5", A=RNG.standard_normal((700, 1100)), B=RNG.standard_normal((1100, 900)))
gm.write("stack.h5", d=RNG.integers(0, 60000, (24, 40, 50)).astype("u2"),
         f=RNG.standard_normal((24, 40, 50)).astype("f4"), rows=RNG.integers(0, 24, 30))
with h5py.File("endless.h5", "w") as made: # of zeros that take no room: their product takes hours
    made.create_dataset("A", (1500, 4000000), "f4", chunks=(100, 10000))
    made.create_dataset("B", (4000000, 1500), "f4", chunks=(10000, 100))

HOSTS = hosts.up(NAMES)
os.environ |= PATIENCE | hosts.launching("agent", HOSTS)
gm.ok(len(PATIENCE) == 3, "the patience of gpumem-job", PATIENCE)
for test in (places, bits, study, failures, signals, outage, cut):
    begun = time.monotonic()
    test()
    gm.note(f"{test.__name__}: {time.monotonic() - begun:.1f} s")
gm.done()
