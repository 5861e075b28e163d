#!/usr/bin/env -S python3 -B
"""The program under valgrind: each operation once, a few ways of failing; each layout written; each layout read once by
io_cat, and each that cannot be. No error of memory, no leak."""
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), where) for where in ("../cli", ".")]
import gm
from gm import np
import corpus
import unreadable

MARK = 99 # exit code of valgrind when it has something to say

# Exit code, command.
CASES = [
    (0, "matmul ab.h5 -o c.h5 --device cpu --threads 2"),
    (0, "matmul single.h5 -o c.h5 --device cpu --precision exact --type f32 --chunk 20,20 --deflate 1 --transpose b "
        "--alpha 2 --report r.json"),
    (0, "matmul packed.h5 -o c.h5 --device cpu --beta 2 --add packed.h5:/C --piece 5000 --depth 2 --host-memory 20M"),
    (0, "matmul ab.h5:/A ab.h5:/A -o c.h5 --device cpu --transpose b --plan"),
    (0, "gen matrices g.h5 --size 40 --chunk 10,10 --deflate 2 --big-endian --type u16"),
    (0, "gen stack g.h5 --frames 3 --height 20 --width 30 --distribution normal --type f32"),
    (0, "transpose packed.h5:/A -o t.h5 --device cpu --chunk 7,9 --deflate 1"),
    (0, "gather packed.h5:/A --index rows.h5:/i -o g.h5 --device cpu --threads 2"),
    (0, "gather packed.h5:/A --index rows.h5:/i -o g.h5 --device cpu --threads 1 --device-memory 40K --piece 4K"),
    (0, "compare ab.h5:/A packed.h5:/A"),
    (1, "compare ab.h5:/A packed.h5:/B"),
    (0, "info"),
    (0, "info packed.h5"),
    (0, "matmul --help"),
    (2, "matmul ab.h5 --fast"),
    (2, "matmul ab.h5 --grid 2x1x1 -o c.h5"),
    (3, "matmul nofile.h5"),
    (3, "matmul bad.h5 -o c.h5 --device cpu"),
    (4, "matmul ab.h5 -o nofolder/c.h5"),
    (5, "matmul ab.h5 -o c.h5 --device cpu --host-memory 10K"),
]

# Outputs: the options, and the number of ranks.
OUTPUTS = [("", 1), ("--no-sync --threads 3", 2), ("--output-layout parts", 1),
           ("--output-layout parts --threads 3", 2), ("--output-layout auto", 1), ("--chunk 7,60", 1),
           ("--chunk 16,13 --deflate 4 --shuffle", 1), ("--chunk 16,13 --deflate 1 --threads 3", 2)]


def checked(command, ranks=1):
    return gm.run(command, ranks, 200, CHECKED)


def is_clean(ran, code):
    return ran.code == code and "==" not in ran.err


def make():
    rng = np.random.default_rng(6)
    a, b, c = (gm.integers(rng, (60, 60)) for _ in range(3))
    gm.write("ab.h5", A=a, B=b)
    gm.write("single.h5", A=a.astype("f4"), B=b.astype("f4"))
    chunk = dict(chunks=(25, 25), compression="gzip", shuffle=True)
    gm.write("packed.h5", storage=chunk, A=a, B=b, C=c)
    gm.write("bad.h5", storage=chunk, A=a, B=b)
    gm.write("rows.h5", i=rng.integers(0, 60, 90))
    with gm.h5py.File("bad.h5", "r") as f:
        where = f["B"].id.get_chunk_info(4)
    with open("bad.h5", "r+b") as file:
        file.seek(where.byte_offset)
        file.write(os.urandom(where.size))
    return a @ b


def case(code, command):
    make()
    ran = checked(command)
    gm.ok(is_clean(ran, code), f"{command} ({code})", ran)


def written(options, ranks):
    """A product in this layout, then once more in its place; random numbers in the same one."""
    want = make()
    for force in ("", " --force"):
        ran = checked(f"matmul ab.h5 -o c.h5 --device cpu {options}{force}" + gm.all_work(ranks), ranks)
        gm.ok(is_clean(ran, 0) and np.array_equal(gm.read("c.h5"), want), f"matmul {options}{force}, {ranks} ranks",
              ran)
    ran = checked(f"gen matrices g.h5 --size 60 {options}", ranks)
    gm.ok(is_clean(ran, 0), f"gen {options}, {ranks} ranks", ran)


def cat(name, *steps):
    """A dataset as io_cat reads it, which has no MPI to start: that takes longest under valgrind."""
    ran = subprocess.run([*CHECK, CAT, name, *steps, "2"], capture_output=True, timeout=200, check=False)
    head, _, data = ran.stdout.partition(b"\n")
    return ran.returncode, head.decode().split(" "), data, ran.stderr.decode(errors="replace")


def read(file):
    name, x = file.make()
    code, head, data, err = cat(name, "20", "30")
    kind = np.dtype(f"{head[0][0]}{int(head[0][1:]) // 8}" if code == 0 else "u1")
    got = np.frombuffer(data, kind.newbyteorder() if code == 0 and int(head[1]) else kind)
    gm.ok(code == 0 and "==" not in err and got.astype(x.dtype).tobytes() == x.tobytes(), file.title, code, head, err)


def refused(title, pattern, make_it):
    make_it()
    code, _, data, err = cat("d.h5:/d", "200", "2000")
    gm.ok(code == 3 and "==" not in err and not data and re.search(pattern, err), f"refused: {title}", code, err)


VALGRIND = shutil.which("valgrind")
if not VALGRIND:
    gm.skip_all("no valgrind")
os.environ["HWLOC_COMPONENTS"] = "-x86" # it would say that it cannot work here
CAT = os.path.join(os.path.dirname(gm.PROGRAM), "../tests/io/cat")
if not os.path.exists(CAT):
    gm.skip_all(f"no {CAT}: make check builds it")
CHECK = [VALGRIND, "--quiet", f"--error-exitcode={MARK}", "--leak-check=full", "--errors-for-leak-kinds=definite",
         f"--suppressions={gm.SOURCE}/tests/valgrind.supp"]
CHECKED = gm.wrapper("checked", f'exec {shlex.join(CHECK)} "$program" "$@"')
jobs = [functools.partial(case, *it) for it in CASES] + [functools.partial(written, *it) for it in OUTPUTS]
jobs += [functools.partial(read, file) for file in corpus.files(small=True, each=1)]
jobs += [functools.partial(refused, *it) for it in unreadable.REFUSALS]
gm.together(jobs, 3)
gm.done()
