#!/usr/bin/env -S python3 -B
"""jobs/gpumem-scaling: a study on this machine, whose table is computed again from its reports; and, with a launcher
that stands for mpirun and srun and makes up the reports: where the ranks go, how a study that ended early goes on, what
is refused, planted times. tests/long/cluster.t has it in a real Slurm, tests/long/several_hosts.t on several hosts."""
import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

import gm

JOBS = f"{gm.SOURCE}/jobs"
if not os.path.isdir(JOBS): # the tests were taken to another machine
    gm.skip_all(f"no {JOBS}")
PHASES = ["open", "read", "to_device", "compute", "exchange", "from_device", "write", "verify"]
COLUMNS = ["kind", "operation", "nodes", "ranks", "repeat", "device", "working", "wall_s", "init_s", "sync_s",
           "bytes_read", "bytes_written", "flop"]
COLUMNS += [f"{phase}_s" for phase in PHASES]
PICTURES = ["speedup.svg", "speedup.png", "phases.svg", "phases.png"]
PATH = f"{os.path.dirname(gm.PROGRAM)}:{os.environ['PATH']}"
REAL = {name: value for name, value in os.environ.items()
        if not name.startswith(("SLURM_", "GPUMEM_", "BASH_FUNC_module"))} | {"PATH": PATH}

# --- A launcher that makes up what the program would do ---
# The file `plan` has its behaviour: the seconds of a run by kind and ranks and repeat; "fail": the exit code of a run
# that fails; "wait": one that waits for a signal; "torn": a report that is not whole.

os.mkdir("bin")
for launcher in ("mpirun", "srun"):
    with open(f"bin/{launcher}", "w") as out:
        out.write(f'''#!/usr/bin/env {os.environ.get("PYTHON") or "python3"}
import json, os, re, signal, sys
words, folder = sys.argv[1:], {os.getcwd()!r}
at = [os.path.basename(word) for word in words].index("gpumem-run")
placed, words = words[:at], words[at + 1:]
with open(folder + "/calls", "a") as out:
    out.write(json.dumps([sys.argv[0].split("/")[-1], placed, words]) + "\\n")
with open(folder + "/plan") as file:
    plan = json.load(file)
report = words[words.index("--report") + 1]
if words[0] == "gen":
    open(words[2], "x").close()
    sys.exit(plan.get("gen", 0))
kind, operation, ranks, repeat = re.match(r"(.*)-(.*)-(.*)-(.*)[.]unfinished", os.path.basename(report)).groups()
name = f"{{kind}} {{ranks}} {{repeat}}"
if name in plan.get("wait", []):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]) # one that comes before the wait is not lost
    with open(folder + "/waits.new", "w") as out:
        out.write(str(os.getpid()))
    os.rename(folder + "/waits.new", folder + "/waits")
    if signal.sigtimedwait([signal.SIGUSR2], 120):
        sys.exit(75)
open(words[words.index("-o") + 1], "x").close() # fails where an output is left
seconds = plan.get("seconds", {{}}).get(name, 1)
spent = dict.fromkeys({PHASES!r}, 0) | plan.get("phases", {{}}).get(f"{{kind}} {{ranks}}", {{"read": 0.5}})
place = " ".join(placed)
nodes = int(max(re.findall(r"--nodes=(\\d+)", place) or [1])) if "--nodes" in place else place.count(":") or 1
code = plan.get("fail", {{}}).get(name, 0)
text = json.dumps({{"schema": "gpumem.report/1", "operation": operation, "command": ['    "open": {{', "}}"],
    "init_s": 0.25, "wall_s": seconds, "sync_s": 0.125, "exit": code, "ranks": int(ranks),
    "hosts": [f"h{{i}}" for i in range(nodes)],
    "devices": [{{"rank": 0, "kind": plan.get("device", "cuda")}}], "options": {{}},
    "plan": {{"expected": {{"working": plan.get("working", int(ranks))}}}} if "working" in plan else {{}},
    "phases": {{phase: {{"min": 0, "median": 0, "max": s}} for phase, s in spent.items()}},
    "flop": 1e12, "bytes_read": 12345678901234, "bytes_written": 7}}, indent=2) + "\\n"
with open(report, "w") as out:
    out.write(text[:-20] if name in plan.get("torn", []) else text)
sys.exit(code)
''')
    os.chmod(f"bin/{launcher}", 0o755)
FAKE = REAL | {"PATH": f"{os.getcwd()}/bin:{PATH}"}
SLURM = {"SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "4", "SLURM_TASKS_PER_NODE": "4(x4)"}


def plan(**what):
    with open("plan", "w") as out:
        json.dump(what, out)


def scaling(*words, environment=None, program=f"{JOBS}/scaling", **settings):
    """gpumem-scaling with these words; beside how it ran, what it called: [launcher, words of the launcher, words of
    gpumem-run]."""
    os.path.exists("calls") and os.remove("calls")
    environment = (FAKE if environment is None else environment) | settings
    ran = subprocess.run([program, *words], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL,
                         timeout=100, check=False)
    ran.calls = []
    if os.path.exists("calls"):
        with open("calls") as file:
            ran.calls = [json.loads(line) for line in file]
    ran.runs = [os.path.basename(words[words.index("--report") + 1]).replace(".unfinished.json", "") for _, _,
                words in ran.calls if words[0] != "gen"]
    return ran


def good(ran, name, *conditions):
    gm.ok(ran.returncode == 0 and all(conditions), name, ran.returncode, conditions, ran.stdout, ran.stderr,
          *ran.calls[:20])


def refused(code, message, name, *words, **settings):
    ran = scaling(*words, **settings)
    gm.ok(ran.returncode == code and message in ran.stderr and ran.stderr.count("\n") == 1 and not ran.calls, name,
          ran.returncode, ran.stderr, *ran.calls)


# --- Table and CSV, computed here from the reports ---

def reports(folder):
    """[kind, ranks, repeat, report], in order."""
    found = []
    for name in os.listdir(f"{folder}/runs"):
        part = name.removesuffix(".json").split("-")
        with open(f"{folder}/runs/{name}") as file:
            found.append([part[0], int(part[2]), int(part[3]), json.load(file)])
    return sorted(found, key=lambda row: row[:3])


def table(folder):
    """The rows of the table as dictionaries, and the text below it."""
    with open(f"{folder}/scaling.md") as file:
        lines = file.read().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rest = "\n".join(line for line in lines if not line.startswith("|"))
    return [dict(zip(cells[0], row)) for row in cells[2:]], rest


def faults_of_csv(folder):
    with open(f"{folder}/scaling.csv", newline="") as file:
        rows = list(csv.reader(file))
    faults = [] if rows[0] == COLUMNS else [f"columns {rows[0]}"]
    found = reports(folder)
    if len(rows) - 1 != len(found):
        faults.append(f"{len(rows) - 1} rows, {len(found)} reports")
    for row, (kind, ranks, repeat, report) in zip(rows[1:], found):
        want = [kind, report["operation"], len(report["hosts"]), ranks, repeat, report["devices"][0]["kind"],
                report.get("plan", {}).get("expected", {}).get("working", "")]
        numbers = [report[name] for name in ("wall_s", "init_s", "sync_s", "bytes_read", "bytes_written", "flop")]
        numbers += [report["phases"][phase]["max"] for phase in PHASES]
        if row[:7] != [str(value) for value in want] or [float(value) for value in row[7:]] != numbers:
            faults.append(f"{row}: expected {want + numbers}")
    return faults


def near(text, value):
    return abs(float(text) - value) <= 0.51 * 10.0 ** -len(text.partition(".")[2])


def faults_of_table(folder):
    points = {}
    for kind, ranks, repeat, report in reports(folder):
        if repeat:
            points.setdefault((kind, ranks), []).append(report)
    rows, _ = table(folder)
    faults = [] if [(row["kind"], int(row["ranks"]))
                    for row in rows] == list(points) else [f"rows {rows}, expected {list(points)}"]
    values = {}
    for point, runs in points.items():
        times = [run["wall_s"] for run in runs]
        spent = {phase: statistics.median(run["phases"][phase]["max"] for run in runs) for phase in PHASES}
        spent["rest"] = max(0, statistics.median(times) - sum(spent.values()))
        values[point] = (statistics.median(times), (max(times) - min(times)) / statistics.median(times), spent)
    for row, ((kind, ranks), (seconds, spread, spent)) in zip(rows, values.items()):
        fewest = min(ranks for other, ranks in points if other == kind)
        first, growth = values[kind, fewest], ranks / fewest
        speed_up = first[0] / seconds * (growth if kind == "weak" else 1)
        want = {"time s": seconds, "spread %": 100 * spread, "speed-up": speed_up,
                "efficiency %": 100 * speed_up / growth,
                "start s": statistics.median(run["init_s"] for run in points[kind, ranks]),
                "flush s": statistics.median(run["sync_s"] for run in points[kind, ranks])}
        want |= {f"{phase} %": 100 * value / seconds for phase, value in spent.items() if f"{phase} %" in row}
        faults += [f"{kind} {ranks}: {name} is {row[name]}, expected {value}" for name,
                   value in want.items() if not near(row[name], value)]
        faults += [f"{kind} {ranks}: {phase} is left out" for phase, value in spent.items() if value > 0
                   and f"{phase} %" not in row]
        more = {phase: value - first[2][phase] / (1 if kind == "weak" else growth) for phase, value in spent.items()}
        worst = max(more, key=more.get)
        longer = row["longer by s"]
        if ranks == fewest or more[worst] <= 0:
            good_longer = longer == "-"
        else:
            good_longer = longer.split(" +")[0] == worst and near(longer.split(" +")[1], more[worst])
        if row["limiting"] != max(spent, key=spent.get) or not good_longer:
            faults.append(f"{kind} {ranks}: {row['limiting']}, {longer}; expected {max(spent, key=spent.get)}, {worst} "
                          f"+{more[worst]}")
    return faults


def faults_of_pictures(folder):
    if not shutil.which("gnuplot"):
        return [name for name in PICTURES if os.path.exists(f"{folder}/{name}")]
    faults = []
    for name in PICTURES:
        with open(f"{folder}/{name}", "rb") as file:
            begin = file.read(8)
        if not begin.startswith(b"<?xml"
                                if name.endswith("svg") else b"\x89PNG") or os.path.getsize(f"{folder}/{name}") < 2000:
            faults.append(name)
    return faults + [name for name in ("gnuplot.log",) if os.path.exists(f"{folder}/{name}")]


def whole(folder, pictures=True):
    return faults_of_csv(folder) + faults_of_table(folder) + (faults_of_pictures(folder) if pictures else [])


# --- On this machine ---

def real():
    place = "a=1 'study'/x y" # "=": awk could take it for an assignment
    ran = scaling("--local", "--ranks", "1,2,4", "--size", "200", "--repeat=1", "--no-warm-up", "--out", place,
                  "matmul", "--", "--device", "cpu", "--threads", "1", environment=REAL)
    found = reports(place) if os.path.isdir(f"{place}/runs") else []
    shapes = {(kind, ranks): (one["inputs"][0]["shape"], one["inputs"][1]["shape"]) for kind, ranks, _, one in found}
    want = {(kind, ranks): ([200 * (ranks if kind == "weak" else 1), 200], [200, 200]) for kind in ("strong", "weak")
            for ranks in (1, 2, 4)}
    good(ran, "matmul on 1, 2 and 4 ranks of this machine", len(found) == 6, shapes == want,
         all(list(one["phases"]) == PHASES for *_, one in found),
         all(one["options"]["threads"] == "1" for *_, one in found))
    faults = whole(place)
    gm.ok(not faults, "its table, CSV and pictures", *faults)
    gm.ok(sorted(name for name in os.listdir(place)
                 if name not in PICTURES) == ["runs", "scaling.csv", "scaling.gnuplot", "scaling.md", "settings"],
          "inputs and outputs are gone", os.listdir(place))
    for operation in ("reduce", "normalize", "transpose"):
        ran = scaling("--local", "--ranks=2", "--size", "3M", "--repeat", "1", "--no-warm-up", "--weak", "--keep",
                      operation, environment=REAL)
        found = reports(f"scaling-{operation}") if os.path.isdir(f"scaling-{operation}/runs") else [[0, 0, 0, {}]]
        kept = [name for name in os.listdir(f"scaling-{operation}") if name.startswith("gpumem-")]
        inputs = [name for folder in kept for name in os.listdir(f"scaling-{operation}/{folder}")]
        good(ran, f"{operation}; inputs are kept", found[0][3].get("inputs", [{}])[0].get("shape") == [4, 1024, 1024],
             inputs == ["input-2.h5"], "Against 2 ranks" in table(f"scaling-{operation}")[1])


# --- Where the ranks go ---

def placed(*words, **settings):
    """ranks and what else the launcher is told, of each run"""
    shutil.rmtree("where", ignore_errors=True)
    plan()
    ran = scaling(*words, "--strong", "--repeat", "1", "--no-warm-up", "--out", "where", "reduce", **settings)
    return ran, [[launcher, *words] for launcher, words, run in ran.calls if run[0] != "gen"]


def places():
    ran, calls = placed(**SLURM)
    want = [["mpirun", "--bind-to", "none", "-np", str(p), "--map-by", f"ppr:{min(p, 4)}:node"]
            for p in (1, 2, 4, 8, 16)]
    good(ran, "a job of four nodes", calls == want)
    ran, calls = placed("--nodes", "4,1", "--per-node=2", GPUMEM_LAUNCH="srun", **SLURM)
    want = [["srun", "--mpi=pmix", "--kill-on-bad-exit=1", f"--nodes={n}", f"--ntasks={2 * n}", "--ntasks-per-node=2"]
            for n in (1, 4)]
    good(ran, "srun, full nodes", calls == want)
    ran, calls = placed(**SLURM | {"SLURM_JOB_NUM_NODES": "3", "SLURM_TASKS_PER_NODE": "3(x3)"})
    good(ran, "three nodes of three", [call[4] for call in calls] == ["1", "2", "3", "6", "9"])
    ran, calls = placed("--hosts", "a,b,c", "--ranks", "2,1,4,6,4", "--per-node", "2")
    want = [["1", "--host", "a:1"], ["2", "--host", "a:2"], ["4", "--host", "a:2,b:2"], ["6", "--host", "a:2,b:2,c:2"]]
    good(ran, "hosts", [call[4:] for call in calls] == want)
    ran, calls = placed("--local", "--ranks", "3")
    good(ran, "this machine", [call[4:] for call in calls] == [["3", "--host", "localhost:3"]])
    for most, want in ((8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12]), (64, [1, 2, 4, 8, 16, 32, 64])):
        ran, calls = placed("--local", "--per-node", str(most))
        rows, _ = table("where")
        good(ran, f"this machine, {most} ranks: a row of the table and a point of the pictures for each number",
             [int(call[4]) for call in calls] == want, [int(row["ranks"]) for row in rows] == want,
             not whole("where", False))
    ran = scaling("--strong", "--repeat=1", "--no-warm-up", "--out", "array%a", "reduce", SLURM_ARRAY_TASK_ID="7",
                  **SLURM)
    good(ran, "an array", os.path.isdir("array7"))


# --- Planted times ---

def planted():
    seconds = {("strong", 2): 8, ("strong", 4): 5, ("strong", 8): 2.5, ("weak", 2): 8, ("weak", 4): 10, ("weak", 8): 16}
    noise = {0: 100, 1: 0, 2: 0.5, 3: -0.25}
    spent = {f"{kind} {p}": {"read": s / 2, "compute": s / (3 if p < 8 else 4), "exchange": 0.1 * p,
                             "write": 5 if (kind, p) == ("strong", 8) else 0.01} for (kind, p), s in seconds.items()}
    plan(seconds={f"{kind} {p} {i}": s + more for (kind, p), s in seconds.items() for i, more in noise.items()},
         phases=spent, device="cpu", working=4)
    ran = scaling("--hosts", "a,b", "--per-node", "4", "--ranks", "2,4,8", "--out", "planted", "normalize")
    faults = whole("planted")
    good(ran, "planted times: table and CSV", not faults)
    gm.ok(not faults, "as computed from the reports", *faults)
    rows, below = table("planted")
    found = [(row["speed-up"], row["efficiency %"]) for row in rows]
    gm.ok(found == [("1.00", "100"), ("1.60", "80"), ("3.20", "80"), ("1.00", "100"), ("1.60", "80"), ("2.00", "50")]
          and [row["limiting"] for row in rows[:3]] == ["read", "read", "write"]
          and rows[2]["longer by s"] == "write +4.997"
          and all(row["nodes"] == ("2" if row["ranks"] == "8" else "1") and row["runs"] == "3" for row in rows),
          "speed-up and efficiency against 2 ranks; the run that warms up does not count", *rows)
    gm.ok("Against 2 ranks" in below and "`-- --threads N`" in below and "strong, 8 ranks: 4 had no work" in below
          and "strong, 4 ranks:" not in below, "what the table stands on", below)
    for name in ("scaling.csv", "scaling.md", "scaling.gnuplot"):
        shutil.copy(f"planted/{name}", name)
        os.remove(f"planted/{name}")
    ran = scaling("--table", "--out", "planted")
    good(ran, "--table: the same again, without a run", not ran.calls,
         *(open(name).read() == open(f"planted/{name}").read()
           for name in ("scaling.csv", "scaling.md", "scaling.gnuplot")))


# --- A study that goes on ---

QUICK = ("--hosts", "a,b", "--no-warm-up", "--repeat", "2", "--strong")
ALL = [f"strong-reduce-{p}-{i}" for p in (1, 2) for i in (1, 2)]


def waiting(folder, *words):
    """A study, when one of its runs waits for a signal."""
    os.path.exists("waits") and os.remove("waits")
    child = subprocess.Popen([f"{JOBS}/gpumem-scaling", *words, "--out", folder, "reduce"], env=FAKE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 20
    while not os.path.exists("waits") and time.monotonic() < until:
        time.sleep(0.02)
    return child


def goes_on():
    for number, code in ((signal.SIGUSR2, 75), (signal.SIGTERM, 75), (signal.SIGINT, 75), (signal.SIGKILL, -9)):
        folder = f"on {number.name}"
        plan(wait=["strong 2 1"])
        child = waiting(folder, *QUICK)
        if number == signal.SIGUSR2:
            refused(4, "is at work there", "two studies in one folder", *QUICK, "--out", folder, "reduce")
        child.send_signal(number)
        if number == signal.SIGKILL: # its launcher is left: nobody measures beside it
            child.wait(20)
            refused(4, "is at work there", "a run that is left", *QUICK, "--out", folder, "reduce")
            with open("waits") as file:
                os.kill(int(file.read()), signal.SIGUSR2)
        out, err = child.communicate(timeout=20) # when the launcher has ended, too
        tidy = number == signal.SIGKILL or not [name for name in os.listdir(folder) if name.startswith("gpumem-")]
        table_there = number == signal.SIGKILL or len(table(folder)[0]) == 1
        gm.ok(child.returncode == code and tidy and table_there
              and (code < 0 or err.count("error: stopped by a signal") == 1),
              f"{number.name} ends a study with {code}; what is done is shown", child.returncode, os.listdir(folder),
              out, err)
        plan()
        ran = scaling(*QUICK, "--out", folder, "reduce")
        faults = whole(folder, False)
        good(ran, "the same command goes on", ran.runs == ALL[2:], not faults, len(reports(folder)) == 4,
             not [name for name in os.listdir(folder) if name.startswith("gpumem-")])
    ran = scaling(*QUICK, "--out", folder, "reduce")
    good(ran, "a study that is done makes no run", not ran.calls)
    ran = scaling(*QUICK, "--repeat", "3", "--ranks", "2", "--out", folder, "reduce")
    good(ran, "more repeats", ran.runs == ["strong-reduce-2-3"])
    with open(f"{folder}/runs/strong-reduce-1-2.json", "r+") as file:
        file.truncate(os.path.getsize(f"{folder}/runs/strong-reduce-1-2.json") - 3)
    ran = scaling(*QUICK, "--out", folder, "reduce")
    good(ran, "a report that is not whole: again", ran.runs == ["strong-reduce-1-2"], not whole(folder, False))
    plan()
    ran = scaling("--hosts", "a,b", "--repeat", "2", "--out", "warm", "reduce")
    want = [f"{kind}-reduce-{p}-{i}" for kind in ("strong", "weak") for p in (1, 2) for i in (0, 1, 2)]
    made = [os.path.basename(words[2]) for _, _, words in ran.calls if words[0] == "gen"]
    good(ran, "the first run of each point warms up; one input at a time", ran.runs == want,
         made == ["input-1.h5", "input-2.h5"])


# --- Refusals and failures ---

def refusals():
    base = [*QUICK, "--out", "refused"]
    plan()
    scaling(*base, "--size", "4M", "reduce", "--", "--threads", "2")
    for title, wrong, *words in (("another size", "\"size 2 of stack\", not \"size 3 of stack\"", "--size", "5M",
                                  "reduce", "--", "--threads", "2"),
                                 ("another operation", "\"operation reduce\"", "--size", "4M", "normalize", "--",
                                  "--threads", "2"),
                                 ("other words", "\"words --threads 2\", not \"words --threads 1\"", "--size", "4M",
                                  "reduce", "--", "--threads", "1"),
                                 ("no words", "not \"words\"", "--size", "4M", "reduce"),
                                 ("other ranks a node", "2 on each\"", "--per-node", "2", "--size", "4M", "reduce",
                                  "--", "--threads", "2")):
        refused(4, wrong, f"the folder of a study: {title}", *base, *words)
    os.mkdir("used")
    open("used/mine", "w").close()
    refused(4, "has files, but no study", "a used folder", *QUICK, "--out", "used", "reduce")
    gm.ok(os.listdir("used") == ["mine"], "and it stays as it was")
    refused(3, "no study there", "--table without a study", "--table", "--out", "absent")
    refused(4, "--folder absent: no such folder", "a folder of inputs that is missing", *QUICK, "--out", "new",
            "--folder", "absent", "reduce")
    refused(2, "expected a path without a colon", "a folder that gpumem-run would take for a file and a dataset",
            *QUICK, "--out", "a:b", "reduce")
    refused(2, "--ranks: expected a value", "refused: no value", "reduce", "--ranks")
    for message, *words in (("expected an operation", "--local"), ("sort: expected one of", "--local", "sort"),
                            ("--fast: no such option", "--fast", "reduce"),
                            ("expected one operation", "reduce", "matmul"), ("--ranks 0", "--ranks", "0", "reduce"),
                            ("--ranks 1,,2", "--ranks=1,,2", "reduce"), ("--repeat x", "--repeat", "x", "reduce"),
                            ("--size 1X", "--local", "--size", "1X", "reduce"),
                            ("--size 8G", "--local", "--size", "8G", "matmul"),
                            ("expected one of them", "--ranks", "1", "--nodes", "1", "reduce"),
                            ("5 ranks: there is room for 4", "--hosts", "a,b", "--per-node", "2", "--ranks", "5",
                             "reduce"), ("3 ranks: expected at most 2", "--hosts", "a,b", "--per-node", "2", "--ranks",
                                         "3", "reduce"), ("expected --local, --hosts, or a job of Slurm", "reduce"),
                            ("--nodes: --local has one", "--local", "--nodes", "1", "reduce")):
        refused(2, message, f"refused: {' '.join(words)}", *words, "--out", "new2")
    for option in ("--hosts", "--ranks", "--nodes", "--per-node", "--size", "--repeat", "--out", "--folder"):
        for words in ([f"{option}="], [option, ""]):
            refused(2, f"{option}: expected a value that is not empty", f"refused: {words}", "--out", "new2", "--local",
                    *words, "reduce")
    refused(2, "--fast: no such option", "refused: --fast=", "--local", "--fast=", "reduce", "--out", "new2")
    refused(2, "in a job of Slurm its nodes are used", "--local in a job", "--local", "reduce", **SLURM)
    for words, message in ((["--local=3"], "--local takes no value"), (["--keep=no"], "--keep takes no value")):
        refused(2, message, f"refused: {words[0]}", *words, "reduce", "--out", "new2")
    for word in ("--plan", "--pla", "--help", "--hel", "-h", "--vers"):
        refused(2, f"{word}: expected words of a run", f"refused: -- {word}", *QUICK, "--out", "new2", "reduce", "--",
                word)
    gm.ok(not os.path.exists("new2"), "nothing is made then", os.listdir())
    help_text = scaling("--help")
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+)", help_text.stdout, re.M)
    with open(f"{gm.SOURCE}/docs/gpumem-scaling.1") as page:
        explained = re.findall(r"^\.TP\n\.BR?I? .*?(\\-\\-[a-z\\-]+)", page.read(), re.M)
    good(help_text, "--help and the man page have the same options", len(listed) > 10
         and listed == [option.replace("\\", "") for option in explained])


def failures():
    plan(fail={"strong 2 1": 6})
    ran = scaling(*QUICK, "--out", "failed", "reduce")
    gm.ok(ran.returncode == 6 and ran.stderr.count("strong, 2 ranks, 2 nodes, run 1 of 2 failed with exit code 6") == 1
          and ran.runs == ALL[:3] and len(table("failed")[0]) == 1
          and "strong-reduce-2-1.unfinished.json" in os.listdir("failed/runs"),
          "a run that fails: its code, and what is done stays", ran.returncode, ran.stderr, ran.runs)
    plan()
    ran = scaling(*QUICK, "--out", "failed", "reduce")
    good(ran, "and the study goes on from there", ran.runs == ALL[2:], not whole("failed", False))
    plan(fail={"strong 1 1": 2, "strong 1 0": 2})
    ran = scaling(*QUICK, "--out", "usage", "reduce", "--", "--wrong")
    gm.ok(ran.returncode == 2 and "no study is begun" in ran.stderr and "goes on" not in ran.stderr
          and not os.path.exists("usage"), "words that gpumem-run refuses leave no study", ran.returncode, ran.stderr)
    os.mkdir("usage")
    ran = scaling(*QUICK, "--keep", "--out", "usage", "reduce", "--", "--wrong")
    gm.ok(ran.returncode == 2 and not os.listdir("usage"), "nor an input that is kept, in a folder that was there",
          ran.returncode, ran.stderr, os.listdir("usage"))
    plan(gen=255)
    ran = scaling(*QUICK, "--out", "usage", "reduce")
    gm.ok(ran.returncode == 255 and "no study is begun" in ran.stderr and not os.listdir("usage"),
          "nor does a host that is not reached", ran.returncode, ran.stderr, os.listdir("usage"))
    plan()
    ran = scaling(*QUICK, "--out", "usage", "reduce")
    good(ran, "and the corrected command begins there", ran.runs == ALL)
    plan(fail={"strong 2 1": 2})
    ran = scaling(*QUICK, "--out", "later", "reduce")
    gm.ok(ran.returncode == 2 and "goes on from there" in ran.stderr and len(table("later")[0]) == 1,
          "a code 2 after a run that counts: that run stays", ran.returncode, ran.stderr)
    plan(torn=["strong 1 1"])
    ran = scaling(*QUICK, "--out", "torn", "reduce")
    gm.ok(ran.returncode == 4 and "run 1 of 2 ended with exit code 0, but left no whole report (" in ran.stderr
          and "failed" not in ran.stderr and ran.stderr.count("\n") == 1 and not os.path.exists("torn/scaling.csv"),
          "a run without a whole report", ran.returncode, ran.stderr)
    plan()
    ran = scaling(*QUICK, "--out", "torn", "reduce")
    good(ran, "and the study goes on from there", ran.runs == ALL, not whole("torn", False))
    plan(gen=4)
    ran = scaling(*QUICK, "--out", "gen", "reduce")
    gm.ok(ran.returncode == 4 and "the input of 1 ranks failed with exit code 4" in ran.stderr and not ran.runs,
          "an input that cannot be made", ran.returncode, ran.stderr)
    ran = scaling("--local", "--ranks", "1", "--no-warm-up", "--out", "grid", "--size", "50", "matmul", "--", "--grid",
                  "bad", environment=REAL)
    gm.ok(ran.returncode == 2 and gm.ERROR in ran.stderr, "the program's own word and code", ran.returncode, ran.stderr)
    ran = scaling("--local", "--ranks", "1", "--no-warm-up", "--repeat", "1", "--strong", "--out", "stat", "--size",
                  "2M", "reduce", "--", "--stat", "count", environment=REAL)
    gm.ok(ran.returncode == 0, "a --stat of the user's replaces that of the study", ran.returncode, ran.stderr)


def without_gnuplot():
    os.remove("bin/gnuplot")
    os.mkdir("tools")
    for tool in "bash awk sort tr od mv rm mkdir grep cat readlink dirname nproc flock ls env python3 head".split():
        os.path.exists(f"/usr/bin/{tool}") and os.symlink(f"/usr/bin/{tool}", f"tools/{tool}")
    plan()
    ran = scaling(*QUICK, "--out", "plain", "reduce",
                  PATH=f"{os.getcwd()}/bin:{os.getcwd()}/tools:{os.path.dirname(gm.PROGRAM)}")
    good(ran, "without gnuplot", "no gnuplot on PATH" in ran.stdout, not faults_of_csv("plain"),
         not faults_of_table("plain"), not [name for name in PICTURES if os.path.exists(f"plain/{name}")])
    with open("tools/gnuplot", "w") as out:
        out.write("#!/bin/bash\necho no terminal >&2\nexit 1\n")
    os.chmod("tools/gnuplot", 0o755)
    ran = scaling("--table", "--out", "plain", PATH=f"{os.getcwd()}/tools")
    gm.ok(ran.returncode == 0 and "gnuplot failed" in ran.stderr and "no terminal" in open("plain/gnuplot.log").read(),
          "a gnuplot that fails", ran.stderr)


def fewer_pictures():
    """Pictures take most of the time of a study that is made up."""
    with open("bin/gnuplot", "w") as out:
        out.write("#!/bin/bash\n")
    os.chmod("bin/gnuplot", 0o755)


for test in (real, planted, fewer_pictures, places, goes_on, refusals, failures, without_gnuplot):
    begun = time.monotonic()
    test()
    gm.note(f"{test.__name__}: {time.monotonic() - begun:.1f} s")
gm.done()
