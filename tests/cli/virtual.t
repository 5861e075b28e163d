#!/usr/bin/env -S python3 -B
"""Virtual datasets, and inputs that change: every element is right, or the run ends with 3 and makes no output."""
import glob
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gm
from gm import h5py, np

WHY = "has changed during the run"


def parts(name, count, cols=100, folder="p", **storage):
    """NAME.h5:/d of `count` rows, each in a file of its own: row i is i + 1."""
    os.makedirs(folder, exist_ok=True)
    layout = h5py.VirtualLayout((count, cols), "f4")
    for i in range(count):
        with h5py.File(f"{folder}/{i}.h5", "w") as file:
            file.create_dataset("d", data=np.full((1, cols), i + 1, "f4"), **storage)
        layout[i] = h5py.VirtualSource(f"{folder}/{i}.h5", "d", (1, cols))
    with h5py.File(f"{name}.h5", "w") as file:
        file.create_virtual_dataset("d", layout, fillvalue=-1)
    return np.repeat(np.arange(1, count + 1, dtype="f4")[:, None], cols, 1)


def limited(files):
    return gm.wrapper(f"limit{files}", f'ulimit -n {files}\nexec "$program" "$@"')


def flips(what, x, dataset, program=None, ranks=1, options=""):
    """The rows of a dataset, reversed."""
    out = "flipped.h5"
    run = gm.run(f"flip {dataset} --axis 0 -o {out} --force -q {options}", ranks=ranks, program=program)
    good = run.code == 0 and np.array_equal(gm.read(out, "/" + dataset.split(":/")[1]), x[::-1])
    gm.ok(good, what, run)


def refuses(what, arguments, pattern, output="refused.h5", ranks=1, program=None):
    run = gm.run(arguments, ranks=ranks, program=program)
    faults = gm.faults_of_refusal(run, 3, pattern, limit=30)
    if output and os.path.exists(output):
        faults.append(f"{output} was made")
    gm.ok(not faults, what, *faults, run)


def few_files():
    x = parts("plain", 300)
    for ranks in (1, 2):
        flips(f"300 files where 64 may be open, {ranks} ranks", x, "plain.h5:/d", limited(64), ranks, "--device cpu")
    x = parts("chunked", 200, folder="c", chunks=(1, 30), compression="gzip")
    for ranks in (1, 2):
        flips(f"200 compressed files where 50 may be open, {ranks} ranks", x, "chunked.h5:/d", limited(50), ranks,
              "--device cpu")
    run = gm.run("reduce chunked.h5:/d --stat min,max,sum -q --device cpu", program=limited(40))
    gm.ok([float(line.split()[1]) for line in run.out.splitlines()] == [1, 200, 2010000],
          "200 compressed files where 40 may be open: sums", run)


def own_parts():
    """The program's own output in parts, under a limit that does not hold them all."""
    gm.run("gen matrices ab.h5 --rows 500 --inner 40 --columns 500 --type f32 -q")
    run = gm.run("matmul ab.h5 -o c.h5 --output-layout parts --threads 12 -q")
    folder = [name for name in os.listdir(".") if name.startswith("c.h5.parts-")][0]
    count = sum(len(files) for _, _, files in os.walk(folder))
    flips(f"an output in {count} parts where 36 files may be open", gm.read("c.h5", "/C"), "c.h5:/C", limited(36))


def prefix():
    os.makedirs("other/p", exist_ok=True)
    x = parts("plain", 4)
    for i in range(4):
        with h5py.File(f"other/p/{i}.h5", "w") as file:
            file["e"] = 1
    for value, what in (("other", "a folder"), ("nowhere:other", "a list of folders"),
                        ("${ORIGIN}/other", "a folder beside the file")):
        os.environ["HDF5_VDS_PREFIX"] = value
        refuses(f"HDF5_VDS_PREFIX, {what}, has files without the dataset", "flip plain.h5:/d --axis 0 -o refused.h5",
                r"its part .*other/p/0\.h5:d is missing")
        for i in range(4):
            with h5py.File(f"other/p/{i}.h5", "a") as file:
                file["d"] = np.full((1, 100), 50 + i, "f4")
        with h5py.File("plain.h5") as file:
            flips(f"HDF5_VDS_PREFIX, {what}: its files are read",
                  np.repeat(np.arange(50, 54, dtype="f4")[:, None], 100, 1), "plain.h5:/d")
        for i in range(4):
            with h5py.File(f"other/p/{i}.h5", "a") as file:
                del file["d"]
    os.environ["HDF5_VDS_PREFIX"] = "nowhere"
    flips("HDF5_VDS_PREFIX without the files: those beside the dataset are read", x, "plain.h5:/d")
    del os.environ["HDF5_VDS_PREFIX"]


def shapes():
    """Kinds of mappings: gaps, overlaps, other shapes, other types, patterns, unlimited ones."""
    with h5py.File("source.h5", "w") as file:
        file["a"] = np.arange(60, dtype="i4").reshape(6, 10)
        file["f"] = np.arange(60, dtype="f8") * 1000.25
        file.create_dataset("u", data=np.arange(35, dtype="i4").reshape(7, 5), maxshape=(None, 5), chunks=(2, 5))
    for i in range(3):
        with h5py.File(f"block-{i}.h5", "w") as file:
            file["b"] = np.full((2, 5), i, "i4")
    with h5py.File("shapes.h5", "w") as file:
        layout = h5py.VirtualLayout((8, 10), "i4")
        layout[1:4] = h5py.VirtualSource("source.h5", "a", (6, 10))[::2]
        layout[3:6, ::3] = h5py.VirtualSource("source.h5", "a", (6, 10))[:3, 2:6]
        file.create_virtual_dataset("gaps", layout, fillvalue=7)
        layout = h5py.VirtualLayout((10, 6), "i2")
        layout[:] = h5py.VirtualSource("source.h5", "f", (60,))
        file.create_virtual_dataset("types", layout)
        space, source = h5py.h5s.create_simple((8, 6)), h5py.h5s.create_simple((6, 10))
        space.select_hyperslab((1, 0), (1, 1), block=(7, 5))
        source.select_hyperslab((1, 2), (1, 1), block=(5, 7))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(space, b"source.h5", b"a", source)
        h5py.h5d.create(file.id, b"torn", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((8, 6)), plist)
        layout = h5py.VirtualLayout((7, 5), "i4", maxshape=(None, 5))
        source = h5py.VirtualSource("source.h5", "u", (7, 5), maxshape=(None, 5))
        layout[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("unlimited", layout)
        whole, block = h5py.h5s.create_simple((2, 5), (h5py.h5s.UNLIMITED, 5)), h5py.h5s.create_simple((2, 5))
        whole.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (2, 5), (2, 5))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(whole, b"block-%b.h5", b"b", block)
        h5py.h5d.create(file.id, b"pattern", h5py.h5t.NATIVE_INT32, whole, plist)
        layout = h5py.VirtualLayout((6, 10), "i4")
        layout[:] = h5py.VirtualSource(".", "gaps", (8, 10))[1:7]
        file.create_virtual_dataset("nested", layout)
    with h5py.File("source.h5", "a") as file:
        file["u"].resize((9, 5))
        file["u"][7:] = 77
    for name in ("gaps", "types", "torn", "unlimited", "pattern", "nested"):
        with h5py.File("shapes.h5") as file:
            want = file[name][:]
        flips(f"{name}: as h5py reads it, {want.shape}", want, f"shapes.h5:/{name}")
    with h5py.File("shapes.h5", "a") as file:
        layout = h5py.VirtualLayout((3,), "i4")
        layout[:] = h5py.VirtualSource(".", "loop", (3,))
        file.create_virtual_dataset("loop", layout)
    refuses("a virtual dataset of itself", "flip shapes.h5:/loop --axis 0 -o refused.h5", "nested more than 8 deep")


def mapped(name, to, shape, selection=None, to_selection=None):
    """NAME.h5:/d of the shape `to`, mapped from all of source.h5:/d, whose shape is `shape`, or from a box of it."""
    space, source = h5py.h5s.create_simple(to), h5py.h5s.create_simple(shape)
    if selection:
        source.select_hyperslab((0,) * len(selection), (1,) * len(selection), block=selection)
    if to_selection:
        space.select_hyperslab((1,) + (0,) * (len(to) - 1), (1,) * len(to), block=to_selection)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_virtual(space, b"source.h5", b"d", source)
    with h5py.File(f"{name}.h5", "w") as file:
        h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple(to), plist)


def replaced_sources():
    """Sources of other shapes than they had when they were mapped. `box`: mapped by a selection, not as a whole; None:
    refused."""
    def case(to, shape, why=None, box=None, to_selection=None):
        mapped("stale", to, to_selection or to, box, to_selection)
        x = np.arange(1, 1 + np.prod(shape), dtype="i4").reshape(shape)
        gm.write("source.h5", d=x)
        was, now = ("x".join(map(str, one)) for one in (to_selection or to, shape))
        title = f"a source of {was}, mapped {'by a selection' if box else 'as a whole'}, is {now}"
        if why:
            return refuses(f"{title}: refused", "flip stale.h5:/d --axis 0 -o refused.h5",
                           why.format(part=r"stale\.h5:/d: its part \S*source\.h5:d", was=was, now=now))
        with h5py.File("stale.h5") as file:
            want = file["d"][:] # by a hyperslab: H5Dread of all fails where the source has grown
        own = x[tuple(slice(n) for n in to)] if x.ndim == len(to) and x.shape[1:] == to[1:] or box else want
        gm.ok(to_selection or np.array_equal(want, own), f"{title}: h5py has its first rows", want)
        flips(f"{title}: as h5py reads it", want, "stale.h5:/d")

    other = "{part} has the shape {now}, and all of it is mapped to {was}: expected as many elements"
    short = "{part} has the shape {now}, smaller than the selection of it, which needs {was}"
    for to, shape in (((4, 6), (6, 6)), ((4,), (7,)), ((2, 3, 4), (5, 3, 4)), ((4, 6), (1, 5, 6)),
                      ((4, 6), (5, 1, 6, 1)), ((1, 1, 6), (3, 6)), ((4, 6), (6, 4)), ((4, 6), (24,)),
                      ((4, 6), (2, 2, 6))):
        case(to, shape)
    case((4, 6), (3, 6), to_selection=(2, 6))
    for to, shape in (((4, 6), (4, 10)), ((4, 6), (6, 10)), ((2, 3, 4), (2, 3, 6)), ((2, 3, 4), (2, 5, 4)),
                      ((4, 6), (2, 14)), ((4, 6), (8, 4)), ((4, 6), (2, 3, 6)), ((4, 6), (4, 4)), ((4, 6), (3, 6)),
                      ((4, 6), (20,)), ((4,), (3,)), ((2, 3, 4), (2, 3, 3))):
        case(to, shape, other)
    case((4, 6), (2, 8), other, to_selection=(2, 6))
    for to, shape in (((4, 6), (4, 10)), ((4, 6), (6, 6)), ((4, 6), (6, 10)), ((2, 3, 4), (2, 5, 6))):
        case(to, shape, box=to)
    for to, shape in (((4, 6), (4, 5)), ((4, 6), (3, 9)), ((4, 6), (6, 4)), ((4,), (3,))):
        case(to, shape, short, box=to)


def orders():
    """An output has the order of bytes of the dataset that was named, whatever that of its sources is."""
    x = np.arange(1, 121, dtype="i4").reshape(12, 10)
    gm.write("index.h5", rows=np.array([3, 0, 11], "i8"))
    for own, other in ("<>", "><"):
        gm.write("bytes.h5", plain=x.astype(f"{other}i4"), narrow=x.astype(f"{other}i2"))
        gm.write("packed.h5", dict(chunks=(5, 4), compression="gzip", shuffle=True), d=x.astype(f"{other}i4"))
        gm.write("half.h5", half=x[:6].astype(f"{own}i4"))
        with h5py.File("orders.h5", "w") as file:
            for name, parts in dict(plain=["bytes.h5:plain"], chunked=["packed.h5:d"], converted=["bytes.h5:narrow"],
                                    mixed=["bytes.h5:plain", "half.h5:half"]).items():
                layout = h5py.VirtualLayout((14, 10), f"{own}i4")
                for part in parts:
                    rows = slice(1, 7) if "half" in part else slice(7, 13) if len(parts) > 1 else slice(1, 13)
                    source = h5py.VirtualSource(*part.split(":"), (6 if "half" in part else 12, 10))
                    layout[rows] = source[:rows.stop - rows.start]
                file.create_virtual_dataset(name, layout, fillvalue=258)
            layout = h5py.VirtualLayout((12, 10), f"{other}i4")
            layout[:] = h5py.VirtualSource(".", "mixed", (14, 10))[1:13]
            file.create_virtual_dataset("nested", layout)
            file.create_dataset("external", data=x.astype(f"{own}i4"), external=[("orders.raw", 0, x.nbytes)])
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.COMPACT)
            compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.py_create(np.dtype(f"{own}i4")),
                                      h5py.h5s.create_simple(x.shape), plist)
            h5py.Dataset(compact)[...] = x
            wants = {name: file[name][:] for name in file}
        faults = []
        for i, (name, want) in enumerate(wants.items()):
            for command, expected in (("flip --axis 0", want[::-1]), ("transpose", want.T),
                                      ("gather --index index.h5", want[[3, 0, 11]])):
                run = gm.run(f"{command} orders.h5:/{name} -o orders.out.h5 --force --no-sync -q --device cpu "
                             "--piece 200", ranks=1 + i % 2)
                made = gm.read("orders.out.h5", f"/{name}") if run.code == 0 else None
                if made is None or made.dtype != want.dtype or not np.array_equal(made, expected):
                    faults.append(f"{command} {name}: {run}, {made.dtype if made is not None else 'nothing'}, expected "
                                  f"{want.dtype}")
        gm.ok(not faults, f"outputs of datasets declared {own}i4, over sources of the other order of bytes", *faults)


def levels():
    """Three levels of 60 mappings: each source is described once."""
    with h5py.File("levels.h5", "w") as file:
        file["l0"] = np.arange(60, dtype="f4")
        for level in (1, 2, 3):
            layout = h5py.VirtualLayout((60,), "f4")
            for i in range(60):
                layout[i] = h5py.VirtualSource(".", f"l{level - 1}", (60,))[i:i + 1]
            file.create_virtual_dataset(f"l{level}", layout)
    flips("three levels of 60 mappings", np.arange(60, dtype="f4"), "levels.h5:/l3")
    run = gm.run("info levels.h5")
    gm.ok(run.code == 0 and run.seconds < 10, "info of them does not take long", run)


def many_mappings():
    rows = 16384
    with h5py.File("many.h5", "w", libver=gm.V110) as file:
        file["s"] = np.arange(rows * 4, dtype="f4").reshape(rows, 4)
        layout, source = h5py.VirtualLayout((rows, 4), "f4"), h5py.VirtualSource(".", "s", (rows, 4))
        for i in range(rows):
            layout[rows - 1 - i] = source[i]
        file.create_virtual_dataset("d", layout)
    began = time.monotonic()
    with h5py.File("many.h5") as file:
        file["d"].id.get_create_plist()
        want = file["d"][:]
    theirs = time.monotonic() - began
    run = gm.run("reduce many.h5:/d --axis all --stat min,max -q")
    gm.ok(run.out.splitlines() == ["min 0", f"max {rows * 4 - 1}"], f"{rows} mappings", run)
    gm.ok(run.seconds < 10 * theirs + 5, f"in {run.seconds:.1f} s, libhdf5 alone {theirs:.1f} s")
    flips(f"{rows} mappings on 3 ranks", want, "many.h5:/d", ranks=3)


def another_file():
    """A rank whose working folder has another file of the same name."""
    for folder, low in (("here", 0), ("there", 1)):
        os.makedirs(folder, exist_ok=True)
        gm.write(f"{folder}/x.h5", d=np.arange(low, low + 1000, dtype="f4"))
        gm.write(f"{folder}/z.h5", storage=dict(chunks=(10,), compression="gzip"),
                 d=np.arange(low, low + 1000, dtype="f4"))
        gm.write(f"{folder}/n.h5", storage=dict(chunks=(10,), scaleoffset=3), d=np.arange(low, low + 1000, dtype="f4"))
        with h5py.File(f"{folder}/v.h5", "w") as file:
            layout = h5py.VirtualLayout((1000,), "f4")
            layout[:] = h5py.VirtualSource("x.h5", "d", (1000,))
            file.create_virtual_dataset("d", layout)
    split = gm.wrapper("split", f'cd {os.getcwd()}/$([ $rank = 0 ] && echo here || echo there)\nexec "$program" "$@"')
    for name in ("x.h5", "z.h5", "n.h5", "v.h5"):
        refuses(f"rank 1 has another {name}", f"flip {name}:/d --axis 0 -o {os.getcwd()}/refused.h5",
                WHY + r" \(another file\)", ranks=2, program=split)
    refuses("rank 1 has another file: sums", "reduce x.h5:/d -q", WHY, None, 2, split)


def replace(path, x):
    """A file of zeros in the place of another, by rename."""
    if path.endswith(".raw"):
        np.zeros_like(x).tofile(path + "~")
        return os.rename(path + "~", path)
    with h5py.File(path) as file:
        name = list(file)[0]
        other = np.zeros_like(file[name][:])
    gm.write(path + "~", **{name: other})
    os.rename(path + "~", path)


def touch(path, x):
    with open(path, "r+b") as file:
        file.seek(-4, 2)
        last = file.read()
        file.seek(-4, 2)
        file.write(last)


CHANGES = (("removed", lambda path, x: os.remove(path)), ("replaced", replace), ("written to", touch),
           ("cut", lambda path, x: os.truncate(path, os.path.getsize(path) - 8)))


def changing(arguments, delay, change, output):
    """Runs, and makes a change while the run is stopped."""
    child = gm.start(gm.command_line(arguments))
    time.sleep(delay)
    try:
        os.kill(child.pid, signal.SIGSTOP)
        change()
        os.kill(child.pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
    return gm.finish(child, 60)


def changed_while_packed():
    """An input is replaced after its last element is read: the attributes of another file are not copied."""
    x = np.random.default_rng(2).integers(0, 60000, (20, 1000, 1000), "u2")
    for name in ("packed.h5", "another.h5"):
        gm.write(name, d=x)
        with h5py.File(name, "a") as file:
            file["d"].attrs["who"] = name
    child = gm.start(gm.command_line("normalize packed.h5 -o z.h5 --deflate 9 --device cpu --no-sync"))
    until = time.monotonic() + 60
    while time.monotonic() < until and not glob.glob(".z.h5*.spool.*"):
        time.sleep(0.01)
    os.replace("another.h5", "packed.h5")
    running = child.poll() is None
    ran = gm.finish(child, 60)
    left = glob.glob("*z.h5*") + glob.glob(".z.h5*")
    gm.ok(running and not gm.faults_of_refusal(ran, 3, WHY, 60) and not left,
          "replaced while the chunks of the output are packed", running, ran, left)
    os.remove("packed.h5")


def changed_inputs():
    """Whenever an input changes: the right elements or no output at all."""
    rng = np.random.default_rng(1)
    kinds = {"plain": {}, "chunked": dict(chunks=(4, 50), compression="gzip"), "external": {}, "virtual": {}}
    x = rng.random((64, 500)).astype("f4")
    ended = 0
    for kind, storage in kinds.items():
        for what, change in CHANGES:
            wrong = []
            for delay in (0.0, 0.15, 0.3, 0.45):
                target, row = "x.h5", slice(None)
                if kind == "external":
                    target = "x.raw"
                    x.tofile("x.raw")
                    with h5py.File("x.h5", "w") as file:
                        file.create_dataset("d", x.shape, "f4", external=[("x.raw", 0, h5py.h5f.UNLIMITED)])
                elif kind == "virtual":
                    for i in range(64):
                        gm.write(f"x{i}.h5", d=x[i:i + 1])
                    with h5py.File("x.h5", "w") as file:
                        layout = h5py.VirtualLayout(x.shape, "f4")
                        for i in range(64):
                            layout[i] = h5py.VirtualSource(f"x{i}.h5", "d", (1, 500))
                        file.create_virtual_dataset("d", layout, fillvalue=-1)
                    row = rng.integers(64)
                    target = f"x{row}.h5"
                else:
                    gm.write("x.h5", storage=storage, d=x)
                if os.path.exists("out.h5"):
                    os.remove("out.h5")
                run = changing("flip x.h5:/d --axis 0 -o out.h5 --piece 4K --threads 1 -q", delay,
                               lambda: change(target, x), "out.h5")
                ended += run.code == 3
                if run.code == 0: # the change may have come first
                    before, after = x[::-1], x.copy()
                    after[row] = 0
                    got = gm.read("out.h5", "/d")
                    if np.array_equal(got, before) or (what == "replaced" and np.array_equal(got, after[::-1])):
                        continue
                if run.code != 3 or os.path.exists("out.h5"):
                    wrong.append(run)
            gm.ok(not wrong, f"{kind}: a file that is {what} while it is read", *wrong)
    gm.note(f"{ended} of 64 runs ended with 3")


few_files()
own_parts()
prefix()
shapes()
replaced_sources()
orders()
levels()
many_mappings()
another_file()
changed_while_packed()
changed_inputs()
gm.done()
