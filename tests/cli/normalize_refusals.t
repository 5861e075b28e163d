#!/usr/bin/env -S python3 -B
"""normalize: what it refuses, and the memory that a refusal asks for."""
import re

import gm
from gm import h5py, np

RNG = np.random.default_rng(12)


def stack(dtype, shape):
    return gm.integers(RNG, shape, 0, 60000, dtype)


def refusals():
    gm.write("in.h5", x=stack("u2", (5, 9, 13)))
    gm.write("other.h5", x=stack("u2", (5, 9, 12)))
    for arguments, code, pattern in (("--method percentile --per pixel", 2, "stack or frame"),
                                     ("--low 50 --high 50 --method percentile", 2, "low < high"),
                                     ("--high 101 --method percentile", 2, "low < high"),
                                     ("--range 5,1", 2, "the smaller one first"), ("--range 5", 2, "LO,HI"),
                                     ("--range 0,70000", 2, "integers that u16 holds"),
                                     ("--range 0.5,7", 2, "integers that u16"), ("--range 0,inf", 2, "LO,HI"),
                                     ("--range 0,65520 --type f16", 2, r"numbers that f16 holds, up to 65504 in"),
                                     ("--range=-1e39,1 --type f32", 2, "numbers that f32 holds"),
                                     ("--method percentile --high 100.00001", 2, r"--high 100\.00001: expected"),
                                     ("--type u7", 2, "--type 'u7'"), ("--method flatfield", 2, "needs --flat"),
                                     ("--sub 3", 2, "--sub is not an option of --method minmax"),
                                     ("--method scale --per frame", 2, "--per is not an option"),
                                     ("--log", 2, "--log is not an option"),
                                     ("--flat other.h5", 2, "--flat is not an option"),
                                     ("--method flatfield --flat other.h5", 3,
                                      "other.h5:/x is 5x9x12, expected one frame"),
                                     ("--method flatfield --flat in.h5 --dark other.h5", 3, "other.h5:/x is 5x9x12"),
                                     ("--method flatfield --flat no.h5", 3, "no.h5"),
                                     ("--round up", 2, "nearest-even|half-up|truncate"), ("--method best", 2, "minmax"),
                                     ("--chunk 1,2", 2, "--chunk"),
                                     ("--output-layout parts --deflate 1", 2, "parts takes no")):
        gm.refused(f"{device}: refused: {arguments}", f"normalize in.h5 -o no.h5 --device {device} {arguments}", code,
                   pattern)
    for out, pattern in (("in.h5", "is one of the inputs"), ("other.h5", "is one of the inputs")):
        words = f"normalize {out} -o {out} --force --device {device}"
        if out == "in.h5":
            words += " --method flatfield --flat in.h5 --dark in.h5"
        gm.refused(f"{device}: no input is replaced: {out}", words, 4, pattern)


def small_memory():
    """The number that a refusal names would do, also where decoding and statistics of columns take more when there is
    more."""
    with h5py.File("in.h5", "w") as file:
        file.create_dataset("x", data=stack("f4", (40, 128, 128)), chunks=(4, 128, 128), compression=1)
        file.create_dataset("tiles", data=stack("u2", (10, 300, 300)), chunks=(1, 100, 100), compression=1)
    for name, arguments in (("x", "--per pixel"), ("tiles", "--per pixel --method zscore"), ("x", "--per frame"),
                            ("tiles", "--method percentile"), ("x", "--method scale --factor 2")):
        command = f"normalize in.h5:/{name} -o out.h5 {arguments} --force --device {device} --host-memory"
        ran = gm.run(f"{command} 20K")
        needed = re.findall(r"expected at least (\d+) bytes", ran.err) or ["20K"]
        again = gm.run(f"{command} {needed[0]}")
        gm.ok(ran.code == 5 and again.code == 0,
              f"{device}: the number that a refusal names would do: {name} {arguments}", ran, again)


for device in gm.devices():
    gm.together([refusals, small_memory])
gm.done()
