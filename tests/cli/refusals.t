#!/usr/bin/env -S python3 -B
"""A job that does not fit --host-memory is refused with a number: with that it runs and is right, with one byte less it
is refused. Inputs whose readers take memory, fields, outputs in chunks, several ranks."""
import itertools
import json
import os
import re

import gm
from gm import h5py, np

rng = np.random.default_rng(13)
GZIP = dict(compression="gzip", shuffle=True)


def packed(name, x, chunks):
    with h5py.File(name, "w") as f:
        f.create_dataset("d", data=x, chunks=chunks, **GZIP)
    return f"{name}:/d"


def virtual(name, x, parts=5):
    """Over files of their own, in chunks."""
    layout, borders = h5py.VirtualLayout(x.shape, x.dtype), [len(x) * i // parts for i in range(parts + 1)]
    for i, (a, b) in enumerate(zip(borders, borders[1:])):
        packed(f"{name}.{i}", x[a:b], (1, *x.shape[1:]))
        layout[a:b] = h5py.VirtualSource(f"{name}.{i}", "d", x[a:b].shape, x.dtype)
    with h5py.File(name, "w", libver=gm.V110) as f:
        f.create_virtual_dataset("d", layout)
    return f"{name}:/d"


def check(title, arguments, is_right, cap=8192, ranks=1):
    """Refused, runs with the number, does not with less."""
    command = f"{arguments} --device cpu --report r.json"
    ran = gm.run(f"{command} --host-memory {cap}", ranks)
    match = re.search(r"--host-memory [\d.]+ \w+ is too little for \w+(?: with --depth \d+)?, "
                      r"expected at least (\d+) bytes", ran.err)
    if not gm.ok(ran.code == 5 and match, f"{title}: refused with the number that would do", ran):
        return
    enough = int(match[1])
    for _ in range(3): # threads take memory in different orders
        ran = gm.run(f"{command} --host-memory {enough}", ranks)
        if ran.code != 0 or not is_right():
            break
    with open("r.json") as file:
        peak = json.load(file)["peak_host_bytes"]
    gm.ok(ran.code == 0 and is_right() and peak <= enough, f"{title}: {enough} bytes do, {peak} are used", ran)
    ran = gm.run(f"{command} --host-memory {enough - 1}", ranks)
    gm.ok(ran.code == 5 and "too little" in ran.err, f"{title}: one byte less is refused", ran)


def products():
    a, b = (gm.integers(rng, shape) for shape in ((150, 200), (200, 170)))
    c = a @ b
    names = {"compressed": (packed("a.h5", a, (40, 50)), packed("b.h5", b, (40, 50))),
             "virtual": (virtual("va.h5", a), virtual("vb.h5", b))}
    for (kind, operands), threads in itertools.product(names.items(), (1, 4)):
        check(f"product of {kind} matrices, {threads} threads",
              f"matmul {' '.join(operands)} -o c.h5 --force --no-sync --threads {threads}",
              lambda: np.array_equal(gm.read("c.h5"), c))
    check("product of compressed matrices, 3 ranks",
          f"matmul {' '.join(names['compressed'])} -o c.h5 --force --no-sync --threads 2" + gm.all_work(3),
          lambda: np.array_equal(gm.read("c.h5"), c), ranks=3)
    check("product whose layers are a chain",
          f"matmul {' '.join(names['compressed'])} -o c.h5 --force --no-sync --threads 2 --precision fp32 --grid 1x1x2",
          lambda: np.array_equal(gm.read("c.h5"), c), ranks=2)


def fields():
    x, flat, dark = (rng.integers(low, high, (n, 12, 40)).astype("u2")
                     for n, low, high in ((6, 0, 60000), (9, 50000, 60000), (5, 0, 300)))
    mean = [f.mean(axis=0, dtype="f8") for f in (flat, dark)]
    want = (x.astype("f4") - mean[1].astype("f4")) * (1 / (mean[0] - mean[1])).astype("f4")
    for kind, put in (("compressed", lambda name, data: packed(name, data, (1, 12, 40))), ("virtual", virtual)):
        names = [put(f"{kind}{i}.h5", data) for i, data in enumerate((x, flat, dark))]
        for ranks in (1, 2):
            check(f"{kind} fields, {ranks} ranks", f"normalize {names[0]} --method flatfield --flat {names[1]} --dark "
                                                   f"{names[2]} -o c.h5 --force --no-sync "
                  "--threads 4", lambda: np.array_equal(gm.read("c.h5", "/d"), want), ranks=ranks)


def outputs():
    x = rng.integers(0, 99, (40, 50, 60)).astype("u2")
    name = packed("x.h5", x, (1, 50, 60))
    for chunk, threads in (("40,50,60", 1), ("40,50,60", 4), ("1,1,1", 1)):
        for ranks in (1, 2):
            check(f"output in chunks of {chunk}, {threads} threads, {ranks} ranks",
                  f"flip {name} --axis 0 -o c.h5 --force --no-sync --chunk {chunk} " f"--deflate 1 --threads {threads}",
                  lambda: np.array_equal(gm.read("c.h5", "/d"), x[::-1]), ranks=ranks)
    wide = rng.integers(0, 60000, (2, 50, 3000)).astype("u2")
    gm.write("w.h5", d=wide)
    low, high = (np.percentile(wide, p) for p in (1, 99))
    bytes_ = np.clip(np.rint((wide.astype("f4") - np.float32(low)) * np.float32(255 / (high - low))), 0,
                     255).astype("u1")
    for threads in (1, 4):
        check(f"percentiles, {threads} threads", f"normalize w.h5 --method percentile --type u8 -o c.h5 --force "
                                                 f"--no-sync --threads {threads} --chunk 1,50,300",
              lambda: np.array_equal(gm.read("c.h5", "/d"), bytes_))


def two_caps():
    """A cap that does is not named beside one that does not."""
    gm.write("t.h5", d=rng.standard_normal((3, 40, 4)).astype("f4"))
    command, caps = "reduce t.h5 --axis 2 -o c.h5 --force --no-sync --threads 1 --device cpu", {}
    for device in (1, 500, 5283, 40000):
        caps = {"host": 5336, "device": device}
        ran = gm.run(f"{command} --host-memory {caps['host']} --device-memory {caps['device']}")
        named = dict(zip(re.findall(r"--(host|device)-memory [\d.]+ \w+", ran.err),
                         re.findall(r"(\d+) bytes", ran.err)))
        caps.update({name: int(size) for name, size in named.items()})
        again = gm.run(f"{command} --host-memory {caps['host']} --device-memory {caps['device']}")
        less = [gm.run(f"{command} --host-memory {caps['host'] - (name == 'host')} --device-memory "
                       f"{caps['device'] - (name == 'device')}") for name in named]
        gm.ok(ran.code == 5 and named and again.code == 0 and all(run.code == 5 for run in less),
              f"--device-memory {device}: least caps", ran, again, *less)


gm.together([products, fields, outputs, two_caps])
gm.done()
