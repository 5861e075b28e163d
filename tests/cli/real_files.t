#!/usr/bin/env -S python3 -B
"""Real files of real instruments (GPUMEM_TEST_DATA), against NumPy."""
import os

import gm
from gm import np

TOOTH, K11 = "tooth.h5:/exchange/data", "diad_k11_imaging.h5:/entry/detector/detector"
FRAME, SERIES = "one_frame_u8.h5:/exchange/data", "bigendian_i32.h5:/dataset0"


def load(name):
    file, dataset = name.split(":")
    return gm.read(os.path.join(gm.DATA, file), dataset)


def product(title, want, arguments, ranks, bound=0.0):
    """want: the product in float64, and what the errors of its elements are relative to. bound 0: equal."""
    ran = gm.run([*arguments, "--device", device, "-o", "c.h5", "--force"], ranks)
    if ran.code != 0:
        gm.ok(False, f"{device}: {title}", ran)
        return
    c = gm.read("c.h5").astype("f8")
    error = np.max(np.abs(c - want[0]) / want[1], initial=0.0) if c.shape == want[0].shape else np.inf
    gm.ok(error <= bound, f"{device}: {title}", f"error {error:.3g}, allowed {bound:.3g}", ran)


def gram(x, transpose):
    """The product of x with itself and what its errors are relative to."""
    x = x.reshape(x.shape[0], -1).astype("f8")
    x = x if transpose == "b" else x.T
    norm = np.linalg.norm(x, axis=1)
    return x @ x.T, np.outer(norm, norm)


def path(name):
    return os.path.join(gm.DATA, name)


def check(title, name, transpose, ranks, selection="", bound=0.0, options=()):
    x = load(name)
    x = eval(f"x{selection}") if selection else x # selections are written as NumPy's
    operand = path(name) + selection
    product(title, gram(x, transpose), ["matmul", operand, operand, "--flatten", "--transpose", transpose,
                                        *gm.all_work(ranks).split(), *options], ranks, bound)


if not os.path.isdir(gm.DATA):
    gm.skip_all(f"no folder {gm.DATA} (GPUMEM_TEST_DATA)")
before = gm.state(gm.DATA)
for device in gm.devices():
    check("tooth, projections by projections, fp32", TOOTH, "b", 2, bound=1e-6 + 6e-8)
    check("tooth, pixels by pixels, fp64", TOOTH, "a", 3, bound=3e-14, options=("--precision", "fp64"))
    check("tooth, exact, every third projection of one row", TOOTH, "b", 1, "[::3,1,:]", 6e-8, ("--precision", "exact"))
    check("detector, 16-bit frames in chunks, pixels by pixels", K11, "a", 2)
    check("detector, 400 frames by themselves", K11, "b", 3, "[1000:1400]")
    check("one frame of bytes", FRAME, "b", 2, "[0,:,:]")
    check("one frame of bytes as one row", FRAME, "b", 3)
    check("big-endian series, its outer product", SERIES, "b", 2, "[100:400]")
    white = load("tooth.h5:/exchange/data_white").reshape(10, -1).astype("f8")
    data = load(TOOTH).reshape(181, -1).astype("f8")
    norms = np.outer(np.linalg.norm(data, axis=1), np.linalg.norm(white, axis=1))
    product("tooth, projections by flat fields", (data @ white.T, norms),
            ["matmul", path(TOOTH), path("tooth.h5:/exchange/data_white"), "--flatten", "--transpose", "b", "--grid",
             "2x1x1"], 2, 1e-6 + 6e-8)
for title, arguments in (("a title is no matrix",
                          ["matmul", path("tooth.h5:/exchange/title"), path(TOOTH), "--flatten"]),
                         ("compare wants numbers", ["compare", path("tooth.h5:/exchange/title"), path(TOOTH)])):
    ran = gm.run([*arguments, "-o", "no.h5"] if arguments[0] == "matmul" else arguments, 3)
    faults = gm.faults_of_refusal(ran, 3, r"/exchange/title.*string")
    gm.ok(not faults and not os.path.exists("no.h5"), title, *faults, ran)
ran = gm.run(["compare", path(K11), path(K11)], 2)
gm.ok(ran.code == 0, "compare of frames with themselves", ran)
ran = gm.run(["info", path("tooth.h5")])
words = ("/exchange/data", "181", "640", "float32", "contiguous", "string")
gm.ok(ran.code == 0 and all(word in ran.out for word in words), "info lists the datasets of a file", ran)
gm.ok(gm.state(gm.DATA) == before, "the files are as they were", *gm.difference(before, gm.state(gm.DATA)))
gm.done()
