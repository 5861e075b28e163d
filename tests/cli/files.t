#!/usr/bin/env -S python3 -B
"""Every file that is made: the output, a report, JSON and CSV. It replaces nothing but what it may, no input and
nothing that an input is read from, never opens what is no ordinary file, and is refused before the work begins. Parts
belong to one file. Leftovers of ended runs are removed."""
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import gm
from gm import h5py, np

RNG = np.random.default_rng(7)
gm.write("in.h5", A=gm.integers(RNG, (60, 50)), B=gm.integers(RNG, (50, 40)))
# A command for each file that is made; {} is its name.
MADE = {"output": "matmul in.h5 --device cpu -o {}", "report": "reduce in.h5:/A --device cpu --report {}",
        "report of info": "info in.h5 --report {}", "JSON": "bench copy --shapes 64K --device cpu --json {}",
        "CSV": "bench copy --shapes 64K --device cpu --csv {}"}


def refused(title, command, pattern, code=4, limit=10):
    gm.refused(title, command, code, pattern, limit=limit)


def works(title, command, *more):
    ran = gm.run(command)
    gm.ok(ran.code == 0 and all(holds() for holds in more), title, ran)
    return ran


def hidden(folder="."):
    return [name for name in os.listdir(folder) if name.startswith(".") or ".parts-" in name]


# --- Names under which no file is made ---

os.mkdir("folder")
open("thesis", "w").write("Chapter 1\n")
os.symlink("thesis", "link")
os.symlink("nowhere", "dangling")
os.mkfifo("fifo")
KINDS = [("a link", "link", "symbolic link"), ("a dangling link", "dangling", "symbolic link"),
         ("a FIFO", "fifo", "not a regular file"), ("a folder", "folder", "is a folder"),
         ("a name in a missing folder", "missing/x", "does not exist")]
try:
    os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    KINDS.append(("a device", "device", "not a regular file"))
except PermissionError:
    gm.skip("a device", "only root makes one")
for made, command in MADE.items():
    for title, name, pattern in KINDS:
        refused(f"{made}: {title}", command.format(name) + " --force", pattern)
    refused(f"{made}: a file that exists", command.format("thesis"),
            "thesis: exists already, expected a new name or --force")
    refused(f"{made}: an empty name", [*gm.words(command.format("X"))[:-1], ""], "expected a value that is not empty",
            2)

# --- Reports replace reports ---

for made in ("report", "report of info", "JSON", "CSV"):
    name = "new"
    works(f"{made}: a new one", MADE[made].format(name))
    first = open(name).read()
    works(f"{made}: replaces its like", MADE[made].format(name), lambda: open(name).read() != first)
    os.chmod("thesis", 0o644)
    shutil.copy("thesis", "thesis2")
    works(f"{made}: replaces any file with --force", MADE[made].format("thesis2") + " --force",
          lambda: open("thesis2").read()[:7] == first[:7])
    text = open(name).read()
    with open(name, "w") as out:
        out.write(text + "\0more")
    refused(f"{made}: not what only begins as its like", MADE[made].format(name), "exists already")
    os.remove(name)
    os.remove("thesis2")
works("a report replaces that of bench, and one that was written in one line", MADE["JSON"].format("r.json"))
text = json.dumps(json.load(open("r.json")))
open("r.json", "w").write(text)
works("... in one line", MADE["report"].format("r.json"))
gm.ok(json.load(open("r.json"))["schema"] == "gpumem.report/1", "it is a report")
shutil.copy("in.h5", "user_block.h5")
if shutil.which("h5jam"):
    open("text", "w").write("x" * 100)
    subprocess.run(["h5jam", "-i", "in.h5", "-u", "text", "-o", "user_block.h5", "--clobber"])
for name in ("in.h5", "user_block.h5"):
    for made in ("report", "JSON", "CSV"):
        refused(f"{made} over {name}", MADE[made].format(name) + " --force",
                f"{name}: is an HDF5 file|{name}: is one of the inputs")
refused("a report with the name of the output", "matmul in.h5 --device cpu -o same.h5 --report same.h5",
        "same.h5: is the name of another new file")
refused("JSON and CSV of one name", "bench copy --shapes 64K --device cpu --json same --csv same",
        "same: is the name of another new file")
gm.ok(not hidden(), "no temporary file is left", hidden())
for name in ("r.json.tmp-1", "r.json.tmp-2"): # stale names of earlier versions are in nobody's way
    open(name, "w")
works("stale names do no harm", MADE["report"].format("r.json"))

# --- Standard output ---

ran = works("a report to standard output", MADE["report"].format("-"))
gm.ok(json.loads(ran.out)["exit"] == 0 and "mean" in ran.err, "holds nothing else", ran)
ran = works("JSON to standard output", MADE["JSON"].format("-"))
gm.ok(json.loads(ran.out)["rows"], "holds nothing else", ran)
ran = works("CSV to standard output", MADE["CSV"].format("-"))
gm.ok(ran.out.startswith("test,variant,"), "holds nothing else", ran)
refused("two files to standard output", "bench copy --shapes 64K --device cpu --json - --csv -", "standard output", 2)
ran = gm.run(MADE["report"].format("/dev/stdout"))
gm.ok(ran.code == 4 and stat.S_ISLNK(os.lstat("/dev/stdout").st_mode), "/dev/stdout is refused", ran)

# --- Inputs, and what they are read from ---

os.mkdir("sources")
os.chdir("sources")
a = gm.integers(RNG, (6, 5))
with open("raw.bin", "wb") as out:
    out.write(a.tobytes())
with h5py.File("external.h5", "w") as file:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_external(b"raw.bin", 0, a.nbytes)
    h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple(a.shape), plist)
with h5py.File("target.h5", "w") as file: # neither is read without libhdf5
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple(a.shape), plist)
    file["compact"][...] = a
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(24)
    kind.set_size(3)
    h5py.h5d.create(file.id, b"bits24", kind, h5py.h5s.create_simple(a.shape))
    file.create_dataset("plain", data=a)
    file.create_dataset("chunks", data=a, chunks=(2, 5), compression="gzip")
DATASETS = ("compact", "bits24", "plain", "chunks")
with h5py.File("link.h5", "w") as file:
    for name in DATASETS:
        file[name] = h5py.ExternalLink("target.h5", name)
with h5py.File("link2.h5", "w") as file:
    file["plain"] = h5py.ExternalLink("link.h5", "plain")
with h5py.File("virtual.h5", "w", libver=("earliest", "v110")) as file:
    for name in DATASETS[0:3:2]:
        layout = h5py.VirtualLayout(a.shape, "f8")
        layout[...] = h5py.VirtualSource("target.h5", name, a.shape)
        file.create_virtual_dataset(name, layout)
    for name in DATASETS[0:3:2]:
        layout = h5py.VirtualLayout(a.shape, "f8")
        layout[...] = h5py.VirtualSource("link.h5", name, a.shape)
        file.create_virtual_dataset("by_" + name, layout)
    layout = h5py.VirtualLayout(a.shape, "f8")
    layout[...] = h5py.VirtualSource("external.h5", "d", a.shape)
    file.create_virtual_dataset("external", layout)
with h5py.File("nested.h5", "w", libver=("earliest", "v110")) as file:
    for name in ("plain", "by_compact", "external"):
        layout = h5py.VirtualLayout(a.shape, "f8")
        layout[...] = h5py.VirtualSource("virtual.h5", name, a.shape)
        file.create_virtual_dataset(name, layout)
os.symlink("target.h5", "soft.h5")
os.link("target.h5", "hard.h5")
# Input, the files that it is read from.
READ_FROM = [("external.h5:/d", ["raw.bin", "external.h5"]),
             *((f"link.h5:/{name}", ["target.h5", "hard.h5", "link.h5"]) for name in DATASETS),
             ("link2.h5:/plain", ["link.h5", "target.h5"]), ("virtual.h5:/compact", ["target.h5"]),
             ("virtual.h5:/plain", ["target.h5"]), ("virtual.h5:/by_compact", ["target.h5", "link.h5"]),
             ("virtual.h5:/by_plain", ["target.h5"]), ("virtual.h5:/external", ["raw.bin", "external.h5"]),
             ("nested.h5:/plain", ["virtual.h5", "target.h5"]), ("nested.h5:/by_compact", ["target.h5", "link.h5"]),
             ("nested.h5:/external", ["raw.bin"]), ("soft.h5:/plain", ["target.h5", "hard.h5"])]
for name, files in READ_FROM:
    for file in files:
        refused(f"{file} is not replaced by an output of {name}", f"normalize {name} --device cpu -o {file} --force",
                f"{file}: .*expected another file")
for name, file in (("external.h5:/d", "raw.bin"), ("nested.h5:/external", "raw.bin")):
    refused(f"{file} is not replaced by a report on {name}", f"reduce {name} --device cpu --report {file} --force",
            f"{file}: .*external storage")
    refused(f"{file} is not replaced by one of info", f"info {name.split(':')[0]} --report {file} --force",
            f"{file}: .*external storage")
    for made in ("json", "csv", "report"):
        refused(f"{file} is not replaced by the {made} of bench",
                f"bench file {name} --shapes 64K --device cpu --{made} {file} --force", f"{file}: .*external storage",
                limit=20)
before = gm.state()
ran = gm.run("reduce external.h5:/missing --device cpu --report raw.bin --force")
gm.ok(ran.code == 3 and gm.state() == before, "nor by one on a run that failed before it knew its inputs", ran)
works("another file may be replaced", "normalize nested.h5:/plain --device cpu -o other.h5")
works("... with --force", "normalize nested.h5:/plain --device cpu -o other.h5 --force")
gm.ok(not hidden(), "no temporary file is left", hidden())
os.chdir("..")

# --- Parts belong to one file ---

PARTS = "gen matrices {} --size 300 --output-layout parts --device cpu --threads 3 -q --no-sync"


def folder_of(name):
    with h5py.File(name, "r") as file:
        mark = file.attrs["gpumem_parts"]
    return mark.decode() if isinstance(mark, bytes) else mark


def whole(name):
    with h5py.File(name, "r") as file:
        return bool(np.isfinite(file["A"][()]).all() and np.isfinite(file["B"][()]).all())


os.mkdir("parts")
os.chdir("parts")
works("parts", PARTS.format("out.h5"))
kept = folder_of("out.h5")
gm.ok(re.fullmatch(r"out\.h5\.parts-[0-9a-f]{12}", kept) and sorted(os.listdir(kept))[0].startswith("part-00"),
      "a folder with parts only", os.listdir(kept))
shutil.copy("out.h5", "copy.h5")
ran = works("a copy is replaced", (PARTS.format("copy.h5") + " --force").replace(" -q", ""))
gm.ok(whole("out.h5") and whole("copy.h5"), "the parts of the original stay", os.listdir("."))
gm.ok("copied from another" in ran.err, "and a note says so", ran)
shutil.copy("out.h5", "out.h5.bak")
works("a copy with a longer name", PARTS.format("out.h5.bak") + " --force")
gm.ok(whole("out.h5"), "the parts of the original stay", os.listdir("."))
os.mkdir("else")
shutil.copy("out.h5", "else/out.h5")
os.symlink(f"../{kept}", f"else/{kept}")
works("a copy in another folder, with a link to the parts", PARTS.format("else/out.h5") + " --force")
gm.ok(whole("out.h5"), "the parts of the original stay")
os.link("out.h5", "hard.h5")
works("one of two hard links", PARTS.format("hard.h5") + " --force")
gm.ok(whole("out.h5"), "the parts of the other stay")
os.link("out.h5", "hard2.h5")
works("the original, with a hard link left", PARTS.format("out.h5") + " --force")
gm.ok(whole("out.h5") and whole("hard2.h5"), "the parts of the link stay", os.listdir("."))
old = folder_of("out.h5")
works("the original without one", PARTS.format("out.h5") + " --force")
gm.ok(whole("out.h5") and not os.path.exists(old), "its old parts go")
os.rename("out.h5", "moved.h5")
works("the old name again", PARTS.format("out.h5"))
gm.ok(whole("out.h5") and whole("moved.h5"), "the parts of a moved output stay")
long = "n" * 230 + ".h5"
works("a long name", PARTS.format(long))
works("a long name, replaced", PARTS.format(long) + " --force")
gm.ok(whole(long) and len([name for name in os.listdir(".") if name.startswith("nnn")]) == 2, "has one folder",
      os.listdir("."))
gm.ok(not [name for name in os.listdir(".") if name.startswith(".")], "no temporary file is left", os.listdir("."))
os.chdir("..")

os.mkdir("two")
os.chdir("two")
faults = []


def start_apart(number):
    """Runs that start at the same time can fail to make the folder of MPI that they share."""
    os.environ["TMPDIR"] = os.path.abspath(f"../tmp{number}")
    os.makedirs(os.environ["TMPDIR"], exist_ok=True)
    return gm.start(gm.command_line(PARTS.format("out.h5") + " --force"))


for trial in range(6):
    runs = [start_apart(number) for number in range(3)]
    ended = [gm.finish(child, 60) for child in runs]
    faults += [str(ran) for ran in ended if ran.code != 0]
    if not whole("out.h5") or len(os.listdir(".")) != 2:
        faults.append(f"trial {trial}: {os.listdir('.')}")
gm.ok(not faults, "three runs at once with --force leave one output and its parts", *faults)
os.chdir("..")

# --- Leftovers of ended runs ---

os.mkdir("left")
os.chdir("left")
BIG = "gen matrices big.h5 --size 3000 --output-layout parts --device cpu --threads 2 --no-sync"
for _ in range(5): # a busy machine may be too late to stop it
    child = gm.start(gm.command_line(BIG + " --force"))
    while child.poll() is None and not glob.glob("big.h5.parts-*/part-00.h5"):
        time.sleep(0.002)
    child.send_signal(signal.SIGSTOP)
    if glob.glob("big.h5.parts-*/.gpumem-*"):
        break
    child.send_signal(signal.SIGCONT)
    gm.finish(child, 60)
    os.remove("big.h5")
    shutil.rmtree(*glob.glob("big.h5.parts-*"))
ran = gm.run("info --leftovers .")
gm.ok(ran.code == 0 and f"process {child.pid}, running" in ran.out and "1 temporary file or folder in ." in ran.out,
      "a run at work is listed", ran)
ran = gm.run("info --leftovers . --clean --force")
gm.ok(ran.code == 0 and ", 0 removed" in ran.out and glob.glob("big.h5.parts-*"), "and left alone", ran)
ran = gm.run(BIG + " --force")
gm.ok(ran.code == 0 and whole("big.h5") and "removed" not in ran.err and len(glob.glob("big.h5.parts-*")) == 2,
      "also by a run of the same output", ran)
os.kill(child.pid, signal.SIGKILL)
gm.finish(child, 10)
ran = gm.run("info --leftovers .")
gm.ok(ran.code == 0 and f"process {child.pid}, ended" in ran.out, "an ended run is listed", ran)
before = gm.state("..")
ran = gm.run("info --leftovers ..")
gm.ok(ran.code == 0 and "0 temporary" in ran.out and gm.state("..") == before, "not from the folder above")
ran = gm.run("info --leftovers . --clean")
gm.ok(ran.code == 0 and ", 1 removed" in ran.out and len(glob.glob("big.h5.parts-*")) == 1 and whole("big.h5"),
      "and removed", ran, os.listdir("."))


def left(owner, kind="tmp", stem="out.h5", size=10):
    name = f".{stem}.gpumem-{owner}-0123456789ab.{kind}"
    with open(name, "wb") as file:
        file.write(b"x" * size)
    return name


# The words of owners, as a run of this host writes them.
for _ in range(5): # a busy machine may look too late
    child = gm.start(gm.command_line(BIG + " --force"))
    found = []
    while child.poll() is None and not found:
        found = glob.glob("big.h5.parts-*/.gpumem-*")
        time.sleep(0.002)
    ran = gm.finish(child, 60)
    if found:
        break
word = os.path.basename(found[0])[len(".gpumem-"):] if found else None
gm.ok(word and ran.code == 0, "the word of an owner", word, ran)
host, boot, process, start = word.split("-")[:4] # and in a batch job two more
dead, spool = left(word), left(word, "spool.3")
reused = left(f"{host}-{boot}-{os.getpid()}-{start}", "raw")
stat_words = open("/proc/self/stat").read().rpartition(")")[2].split()
alive = left(f"{host}-{boot}-{os.getpid()}-{int(stat_words[19]):x}")
other = left(f"{int(host, 16) ^ 1:08x}-{boot}-{process}-{start}")
rebooted = left(f"{host}-{int(boot, 16) ^ 1:08x}-{process}-{start}", "old")
os.utime(rebooted, (1e9, 1e9))
clone = left(f"{host}-{int(boot, 16) ^ 1:08x}-{process}-{start}", "new")
another = left(word, stem="other.h5")
odd = left("nonsense")
ran = works("the next run", "gen matrices out.h5 --size 10 --no-sync")
there = set(hidden())
gm.ok(not {dead, spool, reused, rebooted} & there, "removes what ended runs of this host left", there)
gm.ok({alive, other, clone, another, odd} <= there, "and nothing else", there)
gm.ok("out.h5: removed the leftovers of a run that has ended: 4 temporary files" in ran.err, "and says so", ran)
gm.ok("out.h5: found 2 temporary files or folders, 8.00 KiB, of a run on another host, which is running or was killed: "
      "see gpumem-run info --leftovers ." in ran.err,
      "and what it does not know about", ran)
dead = left(word, "txt", "r.json")
ran = works("the next report", "info --report r.json")
gm.ok(not os.path.exists(dead) and dead in ran.err, "does the same", ran)
ran = gm.run("info --leftovers . --clean")
gm.ok(ran.code == 0 and not os.path.exists(another) and {alive, other, clone, odd} <= set(hidden()), "--clean", ran)
ran = gm.run("info --leftovers . --clean --force")
gm.ok(ran.code == 0 and not {other, clone} & set(hidden()) and {alive, odd} <= set(hidden()),
      "--clean --force: those of other hosts", ran)
os.chdir("..")

# --- Ranks that cannot open each other's descriptors: the temporary file has a name ---

os.mkdir("apart")
os.chdir("apart")
APART = gm.wrapper("run_apart", '[ $rank = 1 ] && exec unshare --pid --fork --kill-child --mount-proc "$program" '
                                '"$@"\nexec "$program" "$@"')
if not gm.OPEN_MPI:
    gm.skip("ranks in PID namespaces of their own", "MPICH's shared memory wants one of all")
elif subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                    capture_output=True).returncode or not gm.HAS_FAULT:
    gm.skip("ranks in PID namespaces of their own", "there are none here, or no library that fails calls")
else:
    there = set(os.listdir("."))
    ran = gm.run("gen stack out.h5 --size 20", 2, program=APART, environment=gm.fault("sync:1:0:kill"))
    gm.ok(ran.code != 0 and [name for name in hidden() if name.startswith(".out.h5.gpumem-") and name.endswith(".tmp")],
          "a killed run leaves it", ran, hidden())
    ran = gm.run("gen stack out.h5 --size 20", 2, program=APART)
    gm.ok(ran.code == 0 and not hidden() and "1 temporary file" in ran.err
          and gm.read("out.h5", "/images").shape == (20, 20, 20), "the next run removes it", ran, hidden())
    gm.ok(set(os.listdir(".")) == there | {"out.h5"}, "and leaves nothing", os.listdir("."))
refused("--clean alone", "info --clean", "--leftovers FOLDER", 2)
refused("--leftovers and a file", "info out.h5 --leftovers .", "no FILE", 2)
refused("--leftovers of no folder", "info --leftovers missing", "--leftovers missing: no such folder", 3)
refused("--leftovers and --force", "info --leftovers . --force", "expected --clean as well", 2)
os.chdir("..")
gm.done()
