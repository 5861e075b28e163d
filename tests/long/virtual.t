#!/usr/bin/env -S python3 -B
"""Virtual datasets at random, read whole and in parts, by io_cat and by the program on 1, 2 and 3 ranks, every element
against NumPy; and files that are removed, replaced, cut or written to at a random time of a run: the right elements, or
exit 3 and no output.

GPUMEM_TEST_RUNS: how many runs of each kind (250); GPUMEM_TEST_SEED: other ones."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import h5py, np

RUNS, SEED = int(os.environ.get("GPUMEM_TEST_RUNS", "250")), int(os.environ.get("GPUMEM_TEST_SEED", "1"))
CAT = os.path.join(os.path.dirname(gm.PROGRAM), "../tests/io/cat")
TYPES = ("<i2", "<u2", "<i4", "<f4", "<f8", ">i2", ">f4", "<i8", "|u1", "<f2", ">u4", "|i1")
FILES = ("plain", "plain", "chunk", "gzip", "late", "compact", "external", "link")


# --- Random virtual datasets ---

def slab(rng, dims):
    """A regular selection: start, stride, count, block of each dimension."""
    found = []
    for n in dims:
        block = rng.randint(1, min(4, n))
        count = rng.randint(1, n // block)
        if rng.random() < .3:
            block, count = n, 1
        if rng.random() < .2:
            block = count = 1
        stride = block + (rng.randint(0, (n - block * count) // (count - 1)) if count > 1 else rng.randint(0, 3))
        found.append((rng.randint(0, n - (count - 1) * stride - block), stride, count, block))
    return found


def cells(chosen, dims):
    """The places of its elements, in their order."""
    along = [np.concatenate([np.arange(start + k * stride, start + k * stride + block) for k in range(count)])
             for start, stride, count, block in chosen]
    return np.ravel_multi_index(np.meshgrid(*along, indexing="ij"), dims).ravel()


def size(chosen):
    return int(np.prod([count * block for _, _, count, block in chosen]))


def space(dims, *slabs):
    made = h5py.h5s.create_simple(tuple(dims))
    for i, chosen in enumerate(slabs):
        starts, strides, counts, blocks = zip(*chosen)
        made.select_hyperslab(starts, counts, strides, blocks, op=h5py.h5s.SELECT_OR if i else h5py.h5s.SELECT_SET)
    return made


def put_source(rng, name, kind, dims):
    """NAME.h5:/s, stored in one of many ways."""
    layout, kind = rng.choice(FILES), np.dtype(kind)
    low = 0 if kind.kind == "u" else -100
    data = (np.array([rng.randint(low, 100) for _ in range(int(np.prod(dims)))]).reshape(dims) *
            (rng.choice((1, 200, 1000)) if kind.itemsize > 2 else 1)).astype(kind)
    with h5py.File(f"{name}.h5", "w", libver=("earliest", gm.V110)[rng.randrange(2)]) as file:
        storage = dict(fillvalue=rng.randint(0, 100)) if layout in ("late", "chunk") else {}
        if layout in ("chunk", "gzip"):
            storage["chunks"] = tuple(rng.randint(1, n) for n in dims)
        if layout == "gzip":
            storage.update(compression="gzip", shuffle=rng.random() < .5)
        if layout == "late":
            file.create_dataset("s", dims, kind, **storage)
        elif layout == "external":
            with open(f"{name}.raw", "wb") as raw:
                raw.write(b"x" * 7 + data.tobytes())
            file.create_dataset("s", dims, kind, external=[(f"{name}.raw", 7, h5py.h5f.UNLIMITED)])
        elif layout == "compact":
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.COMPACT)
            made = h5py.h5d.create(file.id, b"s", h5py.h5t.py_create(kind), h5py.h5s.create_simple(dims), plist)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, data)
        elif layout == "link":
            gm.write(f"{name}x.h5", q=data)
            file["s"] = h5py.ExternalLink(f"{name}x.h5", "/q")
        elif layout == "chunk" and rng.random() < .5:
            file.create_dataset("s", dims, kind, **storage)[tuple(slice(0, rng.randint(0, n)) for n in dims)] = 1
        else:
            file.create_dataset("s", data=data, **storage)


class Virtual:
    """A virtual dataset NAME.h5:/v: its shape, its fill value, its mappings (source, places here, places there)."""

    def __init__(self, rng, name, depth):
        self.kind, self.fill, self.file, self.maps = rng.choice(TYPES), rng.randint(0, 50), f"{name}.h5", []
        self.dims = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_fill_value(np.array([self.fill], np.dtype(self.kind).newbyteorder("=")))
        taken, disjoint = np.zeros(int(np.prod(self.dims)), bool), rng.random() < .5
        for i in range(rng.randint(1, 6)):
            to = slab(rng, self.dims)
            if not (disjoint and taken[cells(to, self.dims)].any()):
                taken[cells(to, self.dims)] = True
                self.add(rng, plist, f"{name}_{i}", to, depth)
        if not self.maps:
            self.add(rng, plist, f"{name}_o", [(0, 1, 1, 1)] * len(self.dims), 0)
        with h5py.File(self.file, "w", libver=("earliest", gm.V110)[rng.randrange(2)]) as file:
            h5py.h5d.create(file.id, b"v", h5py.h5t.py_create(np.dtype(self.kind)), h5py.h5s.create_simple(self.dims),
                            plist)

    def add(self, rng, plist, name, to, depth):
        here, count = cells(to, self.dims), size(to)
        target, nested = space(self.dims, to), None
        if depth and rng.random() < .4:
            nested = Virtual(rng, name, depth - 1)
        dims = nested.dims if nested else (count,)
        there = [(0, 1, 1, n) for n in dims]
        for _ in range(60): # of another shape, if one is found with as many elements
            wanted = nested.dims if nested else tuple(rng.randint(1, 10) for _ in range(rng.randint(1, 3)))
            if rng.random() < .3 and not nested:
                wanted = tuple(count * block + rng.randint(0, 2) for _, _, count, block in to)
            tried = slab(rng, wanted)
            if size(tried) == count:
                dims, there = wanted, tried
                break
        if size(there) != count:
            return
        if not nested and rng.random() < .15: # no regular selection
            extra = slab(rng, self.dims)
            both = space(self.dims, to, extra)
            places = np.union1d(here, cells(extra, self.dims))
            blocks = both.get_select_hyper_blocklist()
            # libhdf5 can forget some
            if sum(int(np.prod(high - low + 1)) for low, high in blocks) == len(places) > count:
                target, here, dims = both, places, (len(places),)
                there = [(0, 1, 1, len(places))]
        if not nested:
            put_source(rng, name, rng.choice(TYPES) if rng.random() < .3 else self.kind, dims)
        source = space(dims, there)
        if all(count * block == n for (_, _, count, block), n in zip(there, dims)) and rng.random() < .5:
            source.select_all()
        plist.set_virtual(target, f"{name}.h5".encode(), b"v" if nested else b"s", source)
        self.maps.append((nested or f"{name}.h5", here, cells(there, dims)))

    def read(self, kind):
        """Its elements by NumPy, as libhdf5 converts them."""
        found = np.empty(int(np.prod(self.dims)), kind)
        found[:] = np.array([self.fill], np.dtype(self.kind).newbyteorder("=")).astype(kind.newbyteorder("="))[0]
        for source, here, there in self.maps:
            if isinstance(source, Virtual):
                elements = source.read(kind)
            else:
                with h5py.File(source) as file:
                    elements = file["s"].astype(kind)[...]
            found[here] = elements.ravel()[there]
        return found.reshape(self.dims)


def empty_folder():
    for name in os.listdir("."):
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


def select(rng, dims):
    if rng.random() < .4:
        return "", ()
    texts, items = [], []
    for n in dims:
        start, step = rng.randint(0, n - 1), rng.randint(1, 3)
        stop = rng.randint(start + 1, n)
        texts.append(f"{start}:{stop}:{step}")
        items.append(slice(start, stop, step))
    return "[" + ",".join(texts) + "]", tuple(items)


def read_by_cat(name, rng, kind):
    """The elements, or the reason why there are none."""
    done = subprocess.run([CAT, name, *(str(rng.randint(1, most)) for most in (4, 9, 3))], capture_output=True,
                          timeout=60)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.decode()[-300:]}"
    head, _, data = done.stdout.partition(b"\n")
    return np.frombuffer(data, kind.newbyteorder("S") if head.split(b" ")[1] == b"1" else kind).astype(kind)


def random_datasets():
    wrong, refused, made = [], [], 0
    for seed in range(SEED * 100000, SEED * 100000 + RUNS):
        rng = random.Random(seed)
        empty_folder()
        try:
            dataset = Virtual(rng, "m", 2)
        except ValueError: # libhdf5 refuses to make some
            continue
        made += 1
        kind = np.dtype(dataset.kind).newbyteorder("=")
        text, items = select(rng, dataset.dims)
        # libhdf5 makes other things of -1 in one order of bytes than in the other
        whole = dataset.read(np.dtype(dataset.kind)).astype(kind)
        want = np.ascontiguousarray(whole[items]).ravel()
        got = read_by_cat("m.h5:/v" + text, rng, kind)
        if isinstance(got, str):
            refused.append(f"seed {seed}: {got}")
        elif got.tobytes() != want.tobytes():
            wrong.append(f"seed {seed}, {text or 'all'}: {want[:20]} as {got[:20]}")
        if made % 8 == 0: # by the program
            run = gm.run(f"flip m.h5:/v --axis 0 -o out.h5 -q --threads {rng.randint(1, 3)} --piece "
                         f"{rng.choice(('1K', '64', '1M'))}",
                         ranks=rng.randint(1, 3))
            if run.code == 3:
                refused.append(f"seed {seed}: {run}")
            elif run.code != 0 or gm.read("out.h5", "/v").astype(kind).tobytes() != whole[::-1].tobytes():
                wrong.append(f"seed {seed}: {run}")
    gm.ok(not wrong, f"{made} random virtual datasets are read as they are", *wrong[:10])
    gm.ok(not refused, "and none is refused", *refused[:10])


# --- Files that change ---

def remove(path):
    os.remove(path)


def replace(path):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content[-64:] = bytes(64)
    with open(path + "~", "wb") as file:
        file.write(content)
    os.rename(path + "~", path)


def cut(path):
    os.truncate(path, os.path.getsize(path) - random.randint(1, 64))


def write(path):
    with open(path, "r+b") as file:
        file.seek(-64, 2)
        file.write(bytes(64))


def make_changing(rng, kind, x):
    """x.h5:/d of some kind. Returns the file that is to change, and the rows in it."""
    rows, cols = x.shape
    if kind == "plain":
        gm.write("x.h5", d=x)
    elif kind == "chunked":
        gm.write("x.h5", storage=dict(chunks=(4, cols // 2), compression="gzip"), d=x)
    elif kind == "external":
        x.tofile("x.raw")
        with h5py.File("x.h5", "w") as file:
            file.create_dataset("d", x.shape, "f4", external=[("x.raw", 0, h5py.h5f.UNLIMITED)])
        return "x.raw"
    else:
        storage = dict(chunks=(1, 50), compression="gzip") if kind == "virtual, chunked" else {}
        layout = h5py.VirtualLayout(x.shape, "f4")
        for i in range(rows):
            gm.write(f"x{i}.h5", storage=storage, d=x[i:i + 1])
            layout[i] = h5py.VirtualSource(f"x{i}.h5", "d", (1, cols))
        with h5py.File("x.h5", "w") as file:
            file.create_virtual_dataset("d", layout, fillvalue=-1)
        return f"x{rng.randrange(rows)}.h5"
    return "x.h5"


def send(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def run_and_change(rng, ranks, change, path, longest):
    """Stops the processes of a run at a random time, changes a file, and lets them go on. Not the launcher: a rank that
    ends waits 2 s for it, and then counts as one that did not call MPI_Finalize."""
    child = gm.start(gm.command_line("flip x.h5:/d --axis 0 -o out.h5 --piece 2K --threads 2 -q", ranks))
    time.sleep(rng.random() * longest)
    stopped = gm.programs(child.pid)
    send(stopped, signal.SIGSTOP)
    change(path)
    send(stopped, signal.SIGCONT)
    return gm.finish(child, 60)


def is_now(path, got):
    """Is that what a dataset holds after the change? It may have come before the run looked."""
    try:
        with h5py.File(path) as file:
            return np.array_equal(file["d"][:], got)
    except OSError:
        return False


def files_that_change():
    x = np.random.default_rng(SEED).random((60, 500), "f4") + 1
    limit = gm.wrapper("limited", 'ulimit -n 64\nexec "$program" "$@"')
    kinds, changes = ("plain", "chunked", "external", "virtual", "virtual, chunked"), (remove, replace, cut, write)
    wrong, codes, longest = [], {}, {}
    program, gm.PROGRAM = gm.PROGRAM, limit
    for i in range(RUNS):
        rng = random.Random(SEED * 1000 + i)
        kind, change, ranks = kinds[i % len(kinds)], rng.choice(changes), rng.choice((1, 1, 2, 3))
        for name in os.listdir("."):
            if name.startswith("x") or name == "out.h5":
                os.remove(name)
        path = make_changing(rng, kind, x)
        if ranks not in longest: # how long an undisturbed run takes
            began = time.monotonic()
            gm.run("flip x.h5:/d --axis 0 -o out.h5 --piece 2K --threads 2 -q", ranks=ranks)
            longest[ranks] = time.monotonic() - began
            os.remove("out.h5")
        run = run_and_change(rng, ranks, change, path, longest[ranks])
        codes[run.code] = codes.get(run.code, 0) + 1
        if run.code == 0:
            got = gm.read("out.h5", "/d")[::-1]
            if not np.array_equal(got, x) and not (change in (replace, write) and is_now("x.h5", got)):
                wrong.append(f"run {i}, {kind}, {change.__name__}, {ranks} ranks: {run}")
        elif run.code != 3 or os.path.exists("out.h5"):
            wrong.append(f"run {i}, {kind}, {change.__name__}, {ranks} ranks: {run}")
    gm.PROGRAM = program
    gm.ok(not wrong, f"{RUNS} runs whose input changes: right, or exit 3 and no output", *wrong[:10])
    gm.note(f"exit codes: {codes}")


def many_files():
    """2000 files, contiguous and compressed, where 256 and 40 may be open."""
    rows, cols = 2000, 64
    for i in range(rows):
        with h5py.File(f"x{i}.h5", "w") as file:
            file["d"] = np.full((1, cols), i + 1, "f4")
            file.create_dataset("c", data=np.full((1, cols), i + 1, "f4"), chunks=(1, 16), compression="gzip")
    want = np.repeat(np.arange(rows, 0, -1, dtype="f4")[:, None], cols, 1)
    with h5py.File("all.h5", "w") as file:
        for name in ("d", "c"):
            layout = h5py.VirtualLayout((rows, cols), "f4")
            for i in range(rows):
                layout[i] = h5py.VirtualSource(f"x{i}.h5", name, (1, cols))
            file.create_virtual_dataset(name, layout, fillvalue=-1)
    for files in (256, 40):
        limit = gm.wrapper(f"limit{files}", f'ulimit -n {files}\nexec "$program" "$@"')
        for name in ("d", "c"):
            for ranks in (1, 3):
                run = gm.run(f"flip all.h5:/{name} --axis 0 -o out.h5 --force -q --threads 3", ranks=ranks,
                             program=limit)
                gm.ok(run.code == 0 and np.array_equal(gm.read("out.h5", f"/{name}"), want),
                      f"{rows} files ({name}) on {ranks} ranks where {files} may be open", run)


gm.together([files_that_change, random_datasets, many_files])
gm.done()
