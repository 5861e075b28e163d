#!/usr/bin/env -S python3 -B
"""Reading: files of every layout (corpus.py), read on 1, 2, 3 and 5 ranks and by threads, whole and in parts, every
element against h5py and NumPy.

compare sees what the ranks read, beside a copy by NumPy that has one element changed: that one must be found, with both
of its values, and nothing else. io_cat gives the very bytes. GPUMEM_TEST_SEED chooses other selections."""
import functools
import glob
import os
import shutil
import subprocess
import sys
import traceback

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), where) for where in ("../cli", ".")]
import gm
from gm import h5py, np
import corpus
import unreadable

SEED, RANKS = int(os.environ.get("GPUMEM_TEST_SEED", "1")), (1, 2, 3, 5)
CAT = os.path.join(os.path.dirname(gm.PROGRAM), "../tests/io/cat")


# --- Selections ---

def item(rng, n, small):
    """A part of one dimension: its text and its value. Of large parts are made what every rank reads some of."""
    step = int(rng.choice([2, 3, 7])) if small or n < 1000 else 2
    a, b = sorted(int(i) for i in rng.integers(0, n + 1, 2))
    b = n if b == a else b
    forms = [(":", slice(None)), (f"{n // 9}:", slice(n // 9, None)), (f"-{n - n // 8}:{n}", slice(n // 8 - n, n)),
             (f"::{step}", slice(None, None, step))]
    if small and n:
        k = int(rng.integers(n))
        forms += [(str(k), k), (f"-{n - k}", k - n), (f"{n - 1}", n - 1), (f"{a}:{b}", slice(a, b)),
                  (f":{b}:{step}", slice(None, b, step)), (f"{n - 1}:", slice(n - 1, None)),
                  (f"{a}:{n}:{n}", slice(a, n, n))]
    return forms[rng.integers(len(forms))]


def select(rng, array, small):
    """A selection: its text, what it selects."""
    shape = array.shape
    items = [item(rng, n, small) for n in shape[:rng.integers(1, len(shape) + 1)]] if shape else []
    text = "[" + ",".join(text for text, _ in items) + "]" if items else ""
    return text, np.asarray(array[tuple(value for _, value in items)])


# --- Reading on several ranks ---

def changed(rng, want):
    """A copy with another element somewhere, and where."""
    copy = want.astype(want.dtype.newbyteorder("="))
    if copy.size == 0:
        return copy, None
    at = np.unravel_index(int(rng.integers(copy.size)), copy.shape)
    number = copy.dtype.type
    if copy.dtype.kind != "f":
        copy[at] = copy[at] ^ number(1)
    else:
        copy[at] = np.nextafter(copy[at], number(3)) if np.isfinite(copy[at]) else 1
    return copy, at


def options(rng):
    chosen = ["--threads", int(rng.integers(1, 4))]
    chosen += ["--piece", int(rng.choice([1, 300_000, 1_000_000]))] if rng.random() < 0.6 else []
    chosen += ["--depth", int(rng.integers(1, 5))] if rng.random() < 0.5 else []
    # chunks that fit nowhere
    if rng.random() < 0.4 and "--piece" not in chosen and "--depth" not in chosen:
        chosen += ["--host-memory", "3M"]
    return chosen


def faults_of_compare(ran, want, copy, at):
    said = dict(line.split(" ", 1) for line in ran.out.splitlines())
    if at is None:
        return [] if ran.code == 0 and said.get("elements") == "0" else ["expected no element"]
    faults = [] if ran.code == 1 else ["expected exit code 1"]
    if (said.get("elements"), said.get("differing")) != (str(want.size), "1"):
        faults.append(f"expected one difference in {want.size} elements")
    place, *values = said.get("first_difference", "none").split(" ")
    if place != "[" + ",".join(map(str, at)) + "]" or len(values) != 2 or not all(
            np.array_equal(np.array(value).astype(copy.dtype), side[at].astype(copy.dtype),
                           equal_nan=copy.dtype.kind == "f") for value, side in zip(values, (want, copy))):
        faults.append(f"expected it at {tuple(map(int, at))}, {want[at]} and {copy[at]}")
    return faults


def compare(rng, title, name, array, ranks):
    text, want = ("", array) if ranks == RANKS[-1] else select(rng, array, ranks == 1)
    copy, at = changed(rng, want)
    gm.write("y.h5", y=copy)
    ran = gm.run(["compare", name + text, "y.h5:/y", "-q", "--device", "cpu", *options(rng)], ranks)
    faults = faults_of_compare(ran, want, copy, at)
    gm.ok(not faults, f"{title}, {ranks} rank{'s' * (ranks > 1)}{' ' * bool(text)}{text}", *faults, ran)


# --- The bytes ---

def cat(text, rows, cols, threads):
    done = subprocess.run([CAT, text, str(rows), str(cols), str(threads)], capture_output=True)
    if done.returncode:
        return None, f"exit {done.returncode}: {done.stderr.decode().strip()}"
    head, _, data = done.stdout.partition(b"\n")
    kind, swap, _, *shape = head.decode().split(" ")
    kind = np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    kind = kind.newbyteorder() if int(swap) else kind
    return np.frombuffer(data, kind).reshape([int(d) for d in shape[0].split(",") if d]), head.decode()


def same_bytes(rng, title, name, array):
    text, want = select(rng, array, True)
    rows, cols = (want.shape[0] if want.ndim else 1), int(np.prod(want.shape[1:]))
    step_rows, step_cols = (int(max(1, rng.integers(1, n + 2) // d, n // 50)) for n, d in ((rows, 7), (cols, 5)))
    got, how = cat(name + text, step_rows, step_cols, int(rng.integers(1, 5)))
    good = got is not None and got.shape == want.shape and got.dtype.newbyteorder("=") == want.dtype.newbyteorder("=") \
        and got.astype(want.dtype).tobytes() == want.tobytes()
    gm.ok(good, f"{title}, bytes{' ' * bool(text)}{text} by {step_rows} x {step_cols}", how)


# --- The tests ---

def clean():
    for path in glob.glob("*"):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def attempt(title, job, *arguments):
    """A mistake of a test's own is a failure of this one, not the end of all."""
    try:
        job(*arguments)
    except Exception:
        gm.ok(False, f"{title}: the test itself", traceback.format_exc())


def one(number, file):
    rng = np.random.default_rng([SEED, number])
    name, array = file.make()
    path, dataset = name.split(":", 1)
    with h5py.File(path, "r") as f: # what NumPy says and what libhdf5 reads, or the maker is wrong
        read = np.empty(array.shape, array.dtype)
        f[dataset].id.read(h5py.h5s.ALL, h5py.h5s.ALL, read, h5py.h5t.py_create(array.dtype))
        gm.ok(read.tobytes() == array.tobytes(), f"{file.title}, h5py")
    for ranks in RANKS:
        compare(rng, file.title, name, array, ranks)
    for _ in range(3):
        same_bytes(rng, file.title, name, array)
    clean()


def refused(title, pattern, make):
    make()
    gm.write("y.h5", y=unreadable.stacked()[0])
    for ranks in RANKS:
        ran = gm.run(["compare", "d.h5:/d", "y.h5:/y", "-q", "--device", "cpu", "--piece", "200K"], ranks)
        faults = gm.faults_of_refusal(ran, 3, pattern)
        gm.ok(not faults, f"refused: {title}, {ranks} rank{'s' * (ranks > 1)}", *faults, ran)
    clean()


if not os.path.exists(CAT):
    gm.skip_all(f"no {CAT}: make check builds it")
gm.note(f"GPUMEM_TEST_SEED={SEED}")
jobs = [functools.partial(attempt, file.title, one, i, file) for i, file in enumerate(corpus.files())]
gm.together(jobs + [functools.partial(attempt, it[0], refused, *it) for it in unreadable.REFUSALS], 3)
gm.done()
