"""What the tests of flip, transpose and gather have in common: data of any bits, runs of which an output is compared
with NumPy's."""
import itertools
import json
import os
import re

import gm
from gm import h5py, np

TYPES = "u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8".split()
rng = np.random.default_rng(2025)
ranks_in_turn = itertools.cycle((1, 1, 2, 1, 1, 3, 1, 4))
_cases = itertools.count()


def data(shape, dtype):
    """Any bits, NaN among the floats."""
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)


def same(a, b):
    """Shape, type, order of bytes and bits."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def moved(title, want, words, device, options="", ranks=None):
    """One test: the output is `want`. ranks None: 1 to 4 in turn."""
    ranks = ranks or next(ranks_in_turn)
    ran = gm.run(f"{words} -o out.h5:/out --force --no-sync --device {device} {options}", ranks)
    good = ran.code == 0 and same(gm.read("out.h5", "/out"), want)
    gm.ok(good, f"{device}: {title}, {ranks} ranks {options}", ran)
    return ran


def is_sampled(device):
    """On a GPU one case in three is, as CUDA takes long to start: tests/kernels/move has all kernels."""
    return device == "cpu" or next(_cases) % 3 == 0


def too_little(words, device, again):
    """The number that a refusal names does: again(title, options, ranks)."""
    for options, ranks in (("--host-memory 5K", 1), ("--host-memory 10K --depth 5", 2),
                           ("--piece 1M --host-memory 900K --depth 3 --buffer 0", 2),
                           ("--host-memory 64M --device-memory 4K", 1), ("--host-memory 3K --device-memory 4K", 2)):
        ran = gm.run(f"{words} -o small.h5 --device {device} {options}", ranks)
        named = re.findall(r"(--\w+-memory) [\d.]+ \w+", ran.err)
        numbers = re.findall(r"(\d+) bytes \(", ran.err)
        if ran.code == 0 and "--device-memory" in options:
            os.remove("small.h5") # the device addresses host memory
            continue
        if gm.ok(ran.code == 5 and named and len(named) == len(numbers) and not os.path.exists("small.h5"),
                 f"{device}: {options} is too little, {ranks} ranks", ran):
            caps = options
            for name, number in zip(named, numbers):
                caps = re.sub(f"{name} \\S+|$", f" {name} {number}", caps, count=1)
            again("the number that a refusal names", caps, ranks)


def out_of_core(device, option, ways, move):
    """Caps far below the size of the dataset. ways: what the option may be; move(title, x, source, way, options, ranks)
    runs one and compares."""
    x = data((12, 500, 400), "<f4")
    with h5py.File("x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("chunks", data=x, chunks=(1, 100, 400), compression="gzip", compression_opts=1)
    for name, ranks in (("plain", 1), ("chunks", 2)):
        for way in ways:
            move(f"{name}, out of core", x, f"x.h5:/{name}", way,
                 "--host-memory 2M --device-memory 1M --threads 2 --report r.json", ranks)
            with open("r.json") as file:
                report = json.load(file)
            gm.ok(report["peak_host_bytes"] <= 2 << 20 and report["peak_device_bytes"] <= 1 << 20,
                  f"{device}: {name}, {option} {way}: within its caps", report)
