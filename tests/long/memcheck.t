#!/usr/bin/env -S python3 -B
"""The program under valgrind: each operation once, a few ways of failing. No error of memory, no leak."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import np

MARK = 99 # exit code of valgrind when it has something to say

CASES = [
    (0, "matmul ab.h5 -o c.h5 --device cpu --threads 2"),
    (0, "matmul single.h5 -o c.h5 --device cpu --precision exact --type f32 --chunk 20,20 --deflate 1 --transpose b --alpha 2 --report r.json"),
    (0, "matmul packed.h5 -o c.h5 --device cpu --beta 2 --add packed.h5:/C --piece 5000 --depth 2 --host-memory 20M"),
    (0, "matmul ab.h5:/A ab.h5:/A -o c.h5 --device cpu --transpose b --plan"),
    (0, "gen matrices g.h5 --size 40 --chunk 10,10 --deflate 2 --big-endian --type u16"),
    (0, "gen stack g.h5 --frames 3 --height 20 --width 30 --distribution normal --type f32"),
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

valgrind = shutil.which("valgrind")
if not valgrind:
    gm.skip_all("no valgrind")
os.environ["HWLOC_COMPONENTS"] = "-x86" # it would say that it cannot work here
checked = gm.wrapper("checked", f'exec {valgrind} --quiet --error-exitcode={MARK} --leak-check=full --errors-for-leak-kinds=definite '
                     f'--suppressions={gm.SOURCE}/tests/valgrind.supp "$program" "$@"')
rng = np.random.default_rng(6)
a, b, c = (gm.integers(rng, (60, 60)) for _ in range(3))
gm.write("ab.h5", A=a, B=b)
gm.write("single.h5", A=a.astype("f4"), B=b.astype("f4"))
chunk = dict(chunks=(25, 25), compression="gzip", shuffle=True)
gm.write("packed.h5", storage=chunk, A=a, B=b, C=c)
gm.write("bad.h5", storage=chunk, A=a, B=b)
with gm.h5py.File("bad.h5", "r") as f:
    where = f["B"].id.get_chunk_info(4)
with open("bad.h5", "r+b") as file:
    file.seek(where.byte_offset)
    file.write(os.urandom(where.size))
for code, command in CASES:
    for made in ("c.h5", "g.h5"):
        if os.path.exists(made):
            os.remove(made)
    ran = gm.run(command, 1, 200, checked)
    gm.ok(ran.code == code and "==" not in ran.err, f"{command} ({code})", ran)
gm.done()
