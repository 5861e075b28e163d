#!/usr/bin/env -S python3 -B
"""normalize gives the same elements for any number of ranks, pieces, slots, threads, caps and layouts of input and
output; real files."""
import functools
import json
import os

import gm
import oracle
from gm import np

SHAPE = (23, 41, 211)
CONFIGURATIONS = ((2, ""), (3, "--piece 20000 --depth 3"), (5, "--threads 1 --piece 7000"),
                  (1, "--threads 3 --piece 100K"), (1, "--host-memory 700K --threads 1"),
                  (2, "--chunk 4,20,100 --deflate 1 --shuffle"), (3, "--output-layout parts --threads 2"))
# Options, type, storage.
CASES = (("", "u2", {}), ("--method zscore", "f4", {}),
         ("--method zscore --per frame", "f4", {"chunks": (1, 41, 211), "compression": "gzip"}),
         ("--method zscore --per pixel", "f8", {"chunks": (4, 20, 100), "compression": "gzip", "shuffle": True}),
         ("--per pixel --type u8", "i4", {}),
         ("--method zscore --per pixel", "u2", {"chunks": (1, 41, 211), "compression": "gzip"}),
         ("--per pixel", "f4", {"chunks": (2, 41, 211), "compression": "gzip"}),
         ("--per frame", "f8", {"chunks": (4, 20, 100)}), ("--method percentile", "f4", {}),
         ("--method percentile --per frame --high 90", "u4", {"chunks": (3, 41, 50)}),
         ("--method percentile", "i8", {"chunks": (23, 10, 10)}),
         ("--method flatfield --flat flat.h5 --dark flat.h5:/x[1]", "u2", {"chunks": (8, 8, 8)}))


def run(arguments, ranks):
    ran = gm.run(f"normalize in.h5 -o out.h5 --force --no-sync --report r.json --device {device} {arguments}", ranks)
    return ran, gm.read("out.h5", "/x").tobytes() if ran.code == 0 else b""


def check(case):
    arguments, dtype, storage = case
    rng = np.random.default_rng(3)
    x = rng.standard_normal(SHAPE) * 1000 + 5000
    gm.write("in.h5", storage, x=x.astype(dtype))
    gm.write("flat.h5", x=rng.integers(1000, 60000, (4, *SHAPE[1:])).astype("u2"))
    ran, first = run(arguments, 1)
    gm.ok(ran.code == 0, f"{device}: {arguments} of {dtype}", ran)
    for ranks, more in CONFIGURATIONS:
        if "--host-memory" in more and ("pixel" in arguments or "flatfield" in arguments or device != "cpu"):
            more = "--host-memory 6M --threads 1"
        ran, got = run(f"{arguments} {more}", ranks)
        gm.ok(got == first != b"", f"{device}: {arguments} of {dtype}: the same from {ranks} ranks {more}", ran)


def caps():
    """Not kept: read twice, and the same; too little: refused, with a number that does."""
    gm.write("in.h5", x=np.random.default_rng(4).integers(0, 60000, (50, 60, 70)).astype("u2"))
    ran, first = run("--threads 1", 1)
    with open("r.json") as file:
        kept = json.load(file)
    ran, second = run("--threads 1 --device-memory 300K" + (" --host-memory 300K" if device == "cpu" else ""), 1)
    gm.ok(ran.code == 0 and second == first, f"{device}: the same when it is not kept", ran)
    with open("r.json") as file:
        again = json.load(file)
    gm.ok(kept["plan"]["keep"] and not again["plan"]["keep"]
          and again["bytes_read"] == 2 * kept["bytes_read"] == 4 * 50 * 60 * 70,
          f"{device}: read once when it is kept, else twice", kept["plan"], again["plan"])
    ran, none = run("--threads 1 --host-memory 20K", 1)
    number = ran.err.partition("at least ")[2].split(" ")[0]
    gm.ok(ran.code == 5 and number.isdigit(), f"{device}: too little memory is refused", ran)
    ran, third = run(f"--threads 1 --host-memory {number}", 1)
    gm.ok(third == first, f"{device}: the number that it named does", ran)


def reduced():
    """Mean and deviation have the bits that reduce prints."""
    gm.write("in.h5", x=(np.random.default_rng(5).standard_normal((70, 90, 200)) * 3 + 1000).astype("f4"))
    for ranks in (1, 3):
        ran = gm.run(f"normalize in.h5 -o out.h5 --force --no-sync --report r.json --device {device} --method zscore "
                     f"--type f64", ranks)
        with open("r.json") as file:
            reported = json.load(file)["results"]
        other = gm.run(f"reduce in.h5 --stat mean,std --device {device}")
        mean, deviation = (float(line.split()[1]) for line in other.out.splitlines())
        gm.ok((reported["sub"], reported["factor"]) == (mean, 1 / deviation),
              f"{device}: mean and deviation are those of reduce, {ranks} ranks", reported, other)


def real():
    if not os.path.isdir(gm.DATA):
        gm.skip(f"{device}: real files", f"no folder {gm.DATA} (GPUMEM_TEST_DATA)")
        return
    tooth, k11 = os.path.join(gm.DATA, "tooth.h5"), os.path.join(gm.DATA, "diad_k11_imaging.h5")
    x, flat, dark = (gm.read(tooth, f"/exchange/{name}") for name in ("data", "data_white", "data_dark"))
    for log in (False, True):
        ran = gm.run(f"normalize {tooth}:/exchange/data --method flatfield --flat {tooth}:/exchange/data_white --dark "
                     f"{tooth}:/exchange/data_dark"
                     f" -o out.h5 --force --no-sync --device {device} {'--log' if log else ''}", 2)
        got = gm.read("out.h5", "/exchange/data") if ran.code == 0 else None
        want = oracle.flatfield(x, flat, dark, log=log)[0]
        gm.ok(ran.code == 0 and got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True),
              f"{device}: tooth, flat fields, log {log}", ran)
    x = gm.read(k11, "/entry/detector/detector")
    for arguments, options in (("", {}),
                               ("--per frame --type u8 --round half-up",
                                {"per": "frame", "out": "u1", "rounding": "half-up"}),
                               ("--method percentile --type f32", {"method": "percentile", "out": "f4"})):
        ran = gm.run(f"normalize {k11}:/entry/detector/detector -o out.h5 --force --no-sync --device {device} "
                     f"{arguments}", 2)
        got = gm.read("out.h5", "/entry/detector/detector") if ran.code == 0 else None
        want = oracle.normalize(x, **options)[0]
        gm.ok(ran.code == 0 and got.dtype == want.dtype and np.array_equal(got, want),
              f"{device}: detector {arguments}", ran)


for device in gm.devices():
    gm.together([*(functools.partial(check, case) for case in CASES), caps, reduced, real])
gm.done()
