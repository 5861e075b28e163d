#!/usr/bin/env -S python3 -B
"""Damaged files: small files of every layout with some bytes of metadata changed. Each gives what h5py reads of it, or
an error of the input (exit 3), within 10 s and 1 GiB: libhdf5 crashes, hangs and swells on some of them.

Most are read by tests/io/read_file, some by the program itself, on 1 and 2 ranks. h5py reads in processes of its own,
which may die of it. GPUMEM_TEST_RUNS files (2000) are made from GPUMEM_TEST_SEED; GPUMEM_TEST_KEEP names a folder for
those that fail."""
import ctypes
import functools
import glob
import multiprocessing
import os
import resource
import shutil
import struct
import subprocess
import sys
import zlib

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), where) for where in ("../cli", ".")]
import gm
from gm import h5py, np
import corpus

RUNS, SEED = int(os.environ.get("GPUMEM_TEST_RUNS", "2000")), int(os.environ.get("GPUMEM_TEST_SEED", "1"))
KEEP, LIMIT, MEMORY, EACH = os.environ.get("GPUMEM_TEST_KEEP"), 10, 1100, 250
READ_FILE = os.path.join(os.path.dirname(gm.PROGRAM), "../tests/io/read_file")
WORDS = (0, 1, 2, 7, 8, 255, 256, 0x7fff, 0xffff, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


# --- Files to damage ---

class Seed:
    """A file: its bytes, the name of its dataset, where its metadata are, and the files beside it."""

    def __init__(self, title, path, dataset, others=()):
        self.title, self.dataset, self.others = title, dataset, list(others)
        with open(path, "rb") as file:
            self.data = file.read()
        free = np.ones(len(self.data), bool)
        for at, size in extents(path):
            free[at:at + size] = False
        # most of a file's metadata is room
        used = np.convolve(np.frombuffer(self.data, "u1") != 0, np.ones(9), "same") > 0
        self.places = np.flatnonzero(free & used)


def extents(path):
    """Where the elements of all datasets are."""
    found = []

    def visit(name, it):
        if not isinstance(it, h5py.Dataset):
            return
        if it.chunks:
            chunks = [it.id.get_chunk_info(i) for i in range(it.id.get_num_chunks())]
            found.extend((chunk.byte_offset, chunk.size) for chunk in chunks)
        elif it.id.get_offset() is not None:
            found.append((it.id.get_offset(), it.id.get_storage_size()))

    with h5py.File(path, "r") as f:
        f.visititems(visit)
    return found


def groups(x, rng):
    """Groups, attributes, links and types beside the dataset, with h5py's newer and older structures."""
    with h5py.File("d.h5", "w", libver="latest" if rng.random() < 0.5 else "earliest") as f:
        for i in range(12):
            g = f.create_group(f"group {i}/inner")
            g.attrs["text"] = "word" * i
            g.attrs["numbers"] = np.arange(i)
            f[f"link {i}"] = h5py.SoftLink(f"/group {i}/inner")
        f["type"] = np.dtype([("a", "i4"), ("b", "f8")])
        f.create_dataset("d", data=x, chunks=corpus.chunk(x.shape, "many"), maxshape=(None,) * x.ndim,
                         compression="gzip")
        f["d"].attrs["vlen"] = "größe"
    return "d.h5:/d", x


def seeds():
    made = []
    for file in corpus.files(small=True, each=2):
        name, _ = file.make()
        path, dataset = name.split(":", 1)
        others = {p: open(p, "rb").read() for p in glob.glob("**", recursive=True) if p != path and os.path.isfile(p)}
        made.append(Seed(file.title, path, dataset, others.items()))
        clean()
    for i in range(4):
        name, _ = groups(np.arange(35, dtype="f4").reshape(5, 7), np.random.default_rng(i))
        made.append(Seed(f"groups {i}", "d.h5", "/d"))
        clean()
    return made


def clean():
    for path in glob.glob("*"):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


# --- Damage ---

def rotate(x, k):
    return (x << k | x >> (32 - k)) & 0xffffffff


def lookup3(data):
    """The checksum of newer metadata."""
    a = b = c = (0xdeadbeef + len(data)) & 0xffffffff
    at, left = 0, len(data)
    while left > 12:
        a, b, c = ((v + w) & 0xffffffff for v, w in zip((a, b, c), struct.unpack_from("<3I", data, at)))
        for k, order in ((4, 0), (6, 1), (8, 2), (16, 0), (19, 1), (4, 2)):
            if order == 0:
                a = ((a - c) & 0xffffffff) ^ rotate(c, k)
                c = (c + b) & 0xffffffff
            elif order == 1:
                b = ((b - a) & 0xffffffff) ^ rotate(a, k)
                a = (a + c) & 0xffffffff
            else:
                c = ((c - b) & 0xffffffff) ^ rotate(b, k)
                b = (b + a) & 0xffffffff
        at, left = at + 12, left - 12
    if left == 0:
        return c
    a, b, c = ((v + w) & 0xffffffff for v, w in zip((a, b, c), struct.unpack("<3I", data[at:] + bytes(12 - left))))
    for one, other, k in (("c", "b", 14), ("a", "c", 11), ("b", "a", 25), ("c", "b", 16), ("a", "c", 4), ("b", "a", 14),
                          ("c", "b", 24)):
        v = {"a": a, "b": b, "c": c}
        v[one] = ((v[one] ^ v[other]) - rotate(v[other], k)) & 0xffffffff
        a, b, c = v["a"], v["b"], v["c"]
    return c


def checked_blocks(data):
    """Blocks of newer metadata that end with a checksum: from, to. Of those whose length is easy to know."""
    if data[:8] == b"\x89HDF\r\n\x1a\n" and data[8] in (2, 3):
        yield 0, 44
    at = data.find(b"OHDR")
    while at >= 0:
        flags, skip = data[at + 5], at + 6
        skip += 16 * (flags >> 5 & 1) + 4 * (flags >> 4 & 1)
        width = 1 << (flags & 3)
        size = int.from_bytes(data[skip:skip + width], "little")
        if skip + width + size + 4 <= len(data):
            yield at, skip + width + size
        at = data.find(b"OHDR", at + 4)


def damage(rng, seed):
    data, places = bytearray(seed.data), seed.places
    blocks = [(a, b) for a, b in checked_blocks(seed.data)
              if lookup3(seed.data[a:b]) == int.from_bytes(seed.data[b:b + 4], "little")]
    if blocks and rng.random() < 0.7: # where it is not found out at once
        a, b = blocks[rng.integers(len(blocks))]
        places = np.arange(a + 4, b)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 5]))):
        at, how = int(places[rng.integers(len(places))]), rng.integers(8)
        if how == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            data[at] = int(rng.integers(256))
        elif how == 2:
            data[at] = (data[at] + int(rng.choice([-1, 1]))) % 256
        elif how == 3:
            data[at] = int(rng.choice([0, 255]))
        elif how in (4, 5):
            width = int(rng.choice([2, 4, 8]))
            at -= at % width if rng.random() < 0.8 else 0
            word = int(WORDS[rng.integers(len(WORDS))]) % 256**width
            data[at:at + width] = word.to_bytes(width, "little")[:len(data) - at]
        elif how == 6:
            word = int(places[rng.integers(len(places))]).to_bytes(8, "little")
            at -= at % 8
            data[at:at + 8] = word[:len(data) - at]
        else:
            source, length = int(places[rng.integers(len(places))]), int(rng.integers(1, 33))
            piece = data[source:source + length]
            data[at:at + len(piece)] = piece[:len(data) - at]
    for a, b in blocks:
        data[b:b + 4] = lookup3(bytes(data[a:b])).to_bytes(4, "little")
    if rng.random() < 0.03:
        del data[int(rng.integers(len(data))):]
    return bytes(data)


# --- Reads by h5py ---

def read_by_h5py(connection, turn):
    ctypes.CDLL(None).mallopt(-6, 85 * turn) # M_PERTURB: libhdf5 gives what was in memory, for some files
    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        path, dataset, kind, shape = connection.recv()
        try:
            with h5py.File(path, "r") as f:
                d = f[dataset]
                if d.shape != shape:
                    connection.send(f"shape {d.shape}")
                    continue
                x = np.zeros(shape, kind) # what the file says nothing of
                if x.size:
                    d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, x, h5py.h5t.py_create(x.dtype))
                connection.send(f"{zlib.crc32(x.tobytes()):08x}")
        except Exception as error:
            connection.send(f"error {error}")


class Reader:
    def __init__(self, turn):
        self.process, self.turn = None, turn

    def read(self, *what):
        if not self.process:
            self.connection, other = multiprocessing.Pipe()
            process = multiprocessing.get_context("fork").Process
            self.process = process(target=read_by_h5py, args=(other, self.turn), daemon=True)
            self.process.start()
            other.close()
        try:
            self.connection.send(what)
            if self.connection.poll(20):
                return self.connection.recv()
            self.process.kill()
            answer = "hangs"
        except (EOFError, OSError):
            answer = "crashes"
        self.process.join()
        self.process = None
        return answer


# --- Tests ---

def fault_of(line, path, dataset, h5):
    """The fault of an answer of read_file; None: it is right."""
    verdict, seconds, *rest = line.split(" ", 3)
    if verdict == "error":
        late = float(seconds) > LIMIT * max(1, os.getloadavg()[0] / os.cpu_count())
        return f"took {seconds} s" if late else None if rest[0] == "3" else "an error of another kind"
    if verdict == "large":
        return None
    kind, (dims, crc) = rest[0], rest[1].split(" ")
    kind = "f2" if kind == "f16" else f"{kind[0]}{int(kind[1:]) // 8}" if kind[1:].isdigit() else None
    if not kind:
        return None
    shape = tuple(int(d) for d in dims.split(",") if d != "-")
    if 0 in shape:
        return None
    got = [one.read(path, dataset, kind, shape) for one in h5]
    grown = "different number of elements" in got[0] # a source of a virtual dataset, in one dimension
    return None if got[0] == crc or got[0] != got[1] or "hangs" in got or grown else f"h5py: {got[0]}"


def write(seed, path, data):
    with open(path, "wb") as out:
        out.write(data)
    for name, content in seed.others:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as out:
            out.write(content)


def batch(number, runs, all_seeds):
    """Files of one seed after the other, `runs` in all."""
    rng, h5 = np.random.default_rng([SEED, number]), (Reader(1), Reader(2))
    faults, answers, peak, turn, shown = [], {}, 0, 0, 0
    while turn < runs:
        seed = all_seeds[int(rng.integers(len(all_seeds)))]
        paths = ["d.h5"] if seed.others else [f"m{i}.h5" for i in range(min(25, runs - turn))] # others name it
        for path in paths:
            write(seed, path, damage(rng, seed))
        done = subprocess.run([READ_FILE], input="".join(f"{path}:{seed.dataset}\n" for path in paths),
                              capture_output=True, text=True, errors="replace")
        lines = done.stdout.splitlines()
        if done.returncode or len(lines) != len(paths) + 1:
            faults.append(f"{seed.title}: read_file ended with {done.returncode} at file {len(lines)}: "
                          f"{done.stderr[:300]}")
            keep(number, turn, paths[min(len(lines), len(paths) - 1)])
            lines = lines[:len(paths)] + ["peak 0"]
        peak = max(peak, int(lines.pop().split()[1]))
        for path, line in zip(paths, lines):
            word = line.split(" ")[0] + (" by a crash" if "libhdf5 crashed" in line or "was killed" in line else
                                         " by a hang" if "does not answer" in line else "")
            answers[word] = answers.get(word, 0) + 1
            fault = fault_of(line, path, seed.dataset, h5)
            if word.endswith("crash") and shown < 1: # the program survives it, too
                shown += 1
                ran = gm.run(["reduce", f"{path}:{seed.dataset}", "--axis", "all", "-q", "--device", "cpu"], 2, 60)
                fault = fault or "; ".join(gm.faults_of_refusal(ran, 3, ".", 3 * LIMIT))
            if fault:
                faults.append(f"{seed.title}: {fault}; {line}")
                keep(number, turn, path)
        turn += len(paths)
        clean()
    gm.note(f"{number}: {answers}, {peak} MiB at most")
    gm.ok(not faults and peak < MEMORY, f"{runs} damaged files", *faults)


def keep(*words):
    if KEEP:
        shutil.copy(words[-1], os.path.join(KEEP, "-".join(map(str, words))))


def by_program(number, all_seeds):
    """A refusal for memory, of sizes that a file may have, is exit 5."""
    rng, faults = np.random.default_rng([SEED, 1, number]), []
    seed = all_seeds[int(rng.integers(len(all_seeds)))]
    path = "d.h5"
    write(seed, path, damage(rng, seed))
    said = subprocess.run([READ_FILE], input=f"{path}:{seed.dataset}\n", capture_output=True, text=True,
                          errors="replace").stdout.split(" ")
    for ranks in (1, 2):
        ran = gm.run(["reduce", f"{path}:{seed.dataset}", "--axis", "all", "-q", "--device", "cpu"], ranks, 60)
        if said[0] == "error":
            if ran.code != 5 or "expected at least" not in ran.err:
                faults += gm.faults_of_refusal(ran, 3, ".", 3 * LIMIT)
        elif said[0] == "ok" and ran.code != 0 and "nan" not in ran.out: # some operations refuse what is no matrix
            faults += [] if ran.code == 3 else [str(ran)]
    gm.ok(not faults, f"{seed.title}, damaged, on 1 and 2 ranks: {said[0]}", *faults)


if not os.path.exists(READ_FILE):
    gm.skip_all(f"no {READ_FILE}: make check builds it")
gm.note(f"GPUMEM_TEST_SEED={SEED} GPUMEM_TEST_RUNS={RUNS}")
ALL = seeds()
gm.together([functools.partial(batch, i, min(EACH, RUNS - EACH * i), ALL) for i in range(-(-RUNS // EACH))] +
            [functools.partial(by_program, i, ALL) for i in range(min(24, RUNS // 50))], 3)
gm.done()
