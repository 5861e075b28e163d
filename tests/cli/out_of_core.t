#!/usr/bin/env -S python3 -B
"""A product three times larger than what --device-memory and --host-memory allow: it completes within both, by its own
account and by the system's. A job that does not fit them is refused with the number that would do."""
import json
import re
import threading
import time

import gm
from gm import np

CAP, SLACK = 64 << 20, 24 << 20 # bytes; slack: what the program does not count (code, stacks, HDF5's and MPI's own)
N = 3000


def peak_of(child):
    """Follows the resident set of a process while it runs: bytes of its peak. The ru_maxrss of a child would begin with
    that of this Python."""
    peak = 0
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status") as file:
                peak = max([peak] + [int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")])
        except OSError:
            break
        time.sleep(0.005)
    return peak


def measured(arguments):
    child, peak = gm.start(gm.command_line(arguments)), []
    follower = threading.Thread(target=lambda: peak.append(peak_of(child)))
    follower.start()
    ran = gm.finish(child, 120)
    follower.join()
    return ran, peak[0]


def check_product():
    """C x against A (B x) with integers throughout: equal if C is right."""
    a, b, c = gm.read("ab.h5", "/A"), gm.read("ab.h5", "/B"), gm.read("c.h5")
    x = rng.integers(-9, 10, N).astype("f8")
    return np.array_equal(c @ x, a @ (b @ x)) and np.array_equal(x @ c, (x @ a) @ b)


def check_refusal(caps):
    """A cap that is too small is refused, with a number that does."""
    name = f"{device}: {caps}"
    command = f"matmul small.h5 -o s.h5 --force --threads 1 --device {device} --report r.json"
    ran = gm.run(f"{command} {caps}")
    names = re.findall(r"--(host|device)-memory [\d.]+ \w+", ran.err)
    numbers = re.findall(r"(\d+) bytes \(", ran.err)
    if not gm.ok(ran.code == 5 and names and len(names) == len(numbers),
                 f"{name}: refused, with the number that would do", ran):
        return
    wanted = dict(re.findall(r"(--\w+-memory) (\w+)", caps))
    wanted.update({f"--{which}-memory": number for which, number in zip(names, numbers)})
    ran = gm.run(" ".join([command, *(f"{cap} {number}" for cap, number in wanted.items())]))
    if gm.ok(ran.code == 0, f"{name}: {wanted} does", ran) and "host" in names:
        with open("r.json") as file:
            peak = json.load(file)["peak_host_bytes"]
        need = int(wanted["--host-memory"])
        gm.ok(peak <= need <= 2 * peak, f"{name}: it takes {peak / 2**20:.2f} MiB of that")


rng = np.random.default_rng(4)
gm.write("ab.h5", A=gm.integers(rng, (N, N)), B=gm.integers(rng, (N, N)))
gm.write("small.h5", A=np.ones((700, 1100)), B=np.ones((1100, 900)))
gm.write("tiny.h5", A=np.ones((8, 8)), B=np.ones((8, 8)))
size = 3 * N * N * 8
gm.ok(size >= 3 * CAP, f"the matrices take {size >> 20} MiB, {size / CAP:.1f} times what is allowed")
for device in gm.devices():
    check_refusal("--host-memory 1K")
    check_refusal("--device-memory 1K")
    check_refusal("--host-memory 1M --device-memory 100K")
    floor = measured(f"matmul tiny.h5 -o tiny_c.h5 --force --device {device}")[1]
    caps = f"--device-memory {CAP} --host-memory {CAP}"
    ran, peak = measured(f"matmul ab.h5 -o c.h5 --force --no-sync --device {device} {caps} --report r.json")
    if not gm.ok(ran.code == 0, f"{device}: it completes in {ran.seconds:.1f} s", ran):
        continue
    gm.ok(check_product(), f"{device}: the product is right", ran)
    with open("r.json") as file:
        report = json.load(file)
    for what in ("peak_host_bytes", "peak_device_bytes"):
        gm.ok(0 < report[what] <= CAP, f"{device}: {what} is {report[what] / 2**20:.1f} MiB of {CAP >> 20}")
    if device == "cpu": # a driver of GPUs maps what it likes
        gm.ok(peak - floor <= CAP + SLACK,
              f"{device}: the system saw {(peak - floor) / 2**20:.1f} MiB more than for a tiny product",
              f"{peak} bytes, {floor}")
gm.done()
