#!/usr/bin/env -S python3 -B
"""Bad input, each case on 3 ranks: its exit code within 10 s, our message once and naming what it must, nothing made,
nothing changed."""
import functools
import os
import shutil
import subprocess

import gm
from gm import h5py, np

RANKS = 3


# --- Files, good and bad ---

def make_good():
    with h5py.File("good.h5", "w") as f:
        for name, shape in {"A": (6, 4), "B": (4, 5), "C": (6, 5), "vector": (4,), "stack": (3, 4, 4)}.items():
            f[name] = np.ones(shape)
        f["scalar"] = 1.0
        f["f32"] = np.ones((4, 4), "f4")
        f["group/inside"] = np.ones((4, 4))
        f["long"] = np.ones((4, 4), "i8")
        f["long"][3, 1] = -2**53 - 1
        f["ulong"] = np.ones((4, 4), "u8")
        f["ulong"][0, 2] = 2**64 - 1
        f["longdouble"] = np.ones((4, 4), "g")
        f["complex"] = np.ones((4, 4), "c8")
        f["compound"] = np.zeros((4, 4), [("x", "f4"), ("y", "i4")])
        f["fixed"] = np.zeros((4, 4), "S5")
        f["bool"] = np.ones((4, 4), bool)
        f["opaque"] = np.zeros((4, 4), "V3")
        f.create_dataset("string", (4, 4), h5py.string_dtype())
        f.create_dataset("enum", (4, 4), h5py.enum_dtype({"OFF": 0, "ON": 1}))
        f.create_dataset("reference", (4, 4), h5py.ref_dtype)
        f.create_dataset("ragged", (4, 4), h5py.vlen_dtype("f4"))
        f.create_dataset("null", data=h5py.Empty("f8"))
        f["type"] = np.dtype("f8")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["elsewhere"] = h5py.ExternalLink("nofile.h5", "/A")
    gm.write("only_a.h5", A=np.ones((4, 4)), P=np.ones((4, 4)), title="words")
    gm.write("several.h5", x=np.ones((4, 4)), y=np.ones((4, 4)))
    gm.write("words.h5", title="words")
    gm.write("differs.h5", x=np.ones((4, 5)))
    h5py.File("nothing.h5", "w").close()


def cut(source, target, size):
    shutil.copy(source, target)
    os.truncate(target, size)


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def make_filtered(path, **storage):
    """A chunked B, and where its first chunk lies."""
    gm.write(path, storage=dict(chunks=(16, 16), **storage), B=np.random.default_rng(1).random((64, 64)))
    with h5py.File(path, "r+") as f:
        f["A"] = np.ones((6, 64))
        return f["B"].id.get_chunk_info(7)


def make_bad():
    with open("text.h5", "w") as file:
        file.write("this is no HDF5 file\n" * 100)
    open("empty.h5", "w").close()
    os.mkdir("folder.h5")
    gm.write("whole.h5", A=np.ones((6, 400)), B=np.ones((400, 300)))
    cut("whole.h5", "cut.h5", 100000)
    cut("whole.h5", "stub.h5", 50)
    # A file that knows that it is short: data of B reach beyond its end, which the superblock (version 0, byte 40)
    # gives.
    with h5py.File("whole.h5", "r") as f:
        end = f["B"].id.get_offset() + 5000
    cut("whole.h5", "cut_data.h5", end)
    overwrite("cut_data.h5", 40, int(end).to_bytes(8, "little"))
    # Data that do not unpack; data whose checksum is wrong.
    chunk = make_filtered("bad_deflate.h5", compression="gzip")
    overwrite("bad_deflate.h5", chunk.byte_offset, os.urandom(chunk.size))
    chunk = make_filtered("bad_checksum.h5", fletcher32=True)
    overwrite("bad_checksum.h5", chunk.byte_offset + 8, b"\0" * 8)
    # A heap of names overwritten: the root group cannot be read.
    shutil.copy("only_a.h5", "damaged.h5")
    overwrite("damaged.h5", 96, b"\xff" * 400)
    make_unknown_filter()
    layout = h5py.VirtualLayout((4, 4), "f8")
    layout[:2] = h5py.VirtualSource("only_a.h5", "A", (4, 4))[:2]
    layout[2:] = h5py.VirtualSource("nofile.h5", "A", (4, 4))[2:]
    with h5py.File("virtual.h5", "w") as f:
        f.create_virtual_dataset("A", layout)
        f["B"] = np.ones((4, 4))


def make_unknown_filter():
    """A chunk packed, as its header says, by filter 32013 (ZFP), which no plain installation has."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((4, 4))
    properties.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    with h5py.File("filter.h5", "w") as f:
        dataset = h5py.h5d.create(f.id, b"A", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((4, 4)), properties)
        dataset.write_direct_chunk((0, 0), b"packed by a stranger", 0)
        f["B"] = np.ones((4, 4))


def make_outputs():
    shutil.copy("good.h5", "exists.h5")
    os.link("good.h5", "hard.h5")
    os.symlink("good.h5", "soft.h5")
    open("file", "w").close()


# --- The cases: title, exit code, what the message must match, command ---

CASES = [
    # Files.
    ("no such file", 3, r"nofile\.h5.*[Nn]o such file", "matmul nofile.h5"),
    ("no such file for B", 3, r"nofile\.h5.*[Nn]o such file", "matmul good.h5:/A nofile.h5:/B"),
    ("a folder as input", 3, r"folder\.h5.*(folder|directory)", "matmul folder.h5"),
    ("text, not HDF5", 3, r"text\.h5.*HDF5", "matmul text.h5"),
    ("an empty file", 3, r"empty\.h5", "matmul empty.h5"),
    ("a file cut short", 3, r"cut\.h5.*(cut|truncated|damaged)", "matmul cut.h5"),
    ("a file of 50 bytes", 3, r"stub\.h5", "matmul stub.h5"),
    ("a file with a damaged group", 3, r"damaged\.h5", "matmul damaged.h5"),
    ("data beyond the end of the file", 3, r"cut_data\.h5:/B.*(ends|cut|damaged)", "matmul cut_data.h5"),
    ("a chunk that does not inflate", 3, r"bad_deflate\.h5:/B", "matmul bad_deflate.h5"),
    ("a chunk with a wrong checksum", 3, r"bad_checksum\.h5:/B", "matmul bad_checksum.h5"),
    ("a filter that is not installed", 3, r"filter\.h5:/A.*32013", "matmul filter.h5"),
    ("a virtual dataset with a part missing", 3, r"virtual\.h5:/A.*nofile\.h5.*missing", "matmul virtual.h5"),
    # Datasets.
    ("no such dataset", 3, r"good\.h5:/nope.*/A", "matmul good.h5:/nope good.h5:/B"),
    ("no such dataset in a group", 3, r"good\.h5:/group/nope", "matmul good.h5:/group/nope good.h5:/B"),
    ("a path through a dataset", 3, r"good\.h5:/A/B", "matmul good.h5:/A/B good.h5:/B"),
    ("a group", 3, r"good\.h5:/group.*group", "matmul good.h5:/group good.h5:/B"),
    ("a named type", 3, r"good\.h5:/type", "matmul good.h5:/type good.h5:/B"),
    ("a link to nothing", 3, r"good\.h5:/dangling", "matmul good.h5:/dangling good.h5:/B"),
    ("a link to a file that is missing", 3, r"good\.h5:/elsewhere", "matmul good.h5:/elsewhere good.h5:/B"),
    ("one file without B", 3, r"only_a\.h5.*/A, /P", "matmul only_a.h5"),
    ("a bare file with several datasets", 3, r"several\.h5.*/x.*/y", "matmul several.h5 good.h5:/B"),
    ("a bare file with nothing numeric", 3, r"words\.h5.*numeric", "matmul words.h5 good.h5:/B"),
    ("a file with nothing in it", 3, r"nothing\.h5", "matmul nothing.h5 good.h5:/B"),
    # Types.
    ("complex numbers", 3, r"good\.h5:/complex.*complex", "matmul good.h5:/complex good.h5:/B"),
    ("a compound", 3, r"good\.h5:/compound.*compound", "matmul good.h5:/compound good.h5:/B"),
    ("strings", 3, r"good\.h5:/string.*string", "matmul good.h5:/string good.h5:/B"),
    ("strings of fixed length", 3, r"good\.h5:/fixed.*string", "matmul good.h5:/fixed good.h5:/B"),
    ("an enumeration", 3, r"good\.h5:/enum.*enum", "matmul good.h5:/enum good.h5:/B"),
    ("booleans", 3, r"good\.h5:/bool.*(bool|enum)", "matmul good.h5:/bool good.h5:/B"),
    ("references", 3, r"good\.h5:/reference.*reference", "matmul good.h5:/reference good.h5:/B"),
    ("opaque bytes", 3, r"good\.h5:/opaque.*opaque", "matmul good.h5:/opaque good.h5:/B"),
    ("ragged rows", 3, r"good\.h5:/ragged.*variable", "matmul good.h5:/ragged good.h5:/B"),
    ("long doubles", 3, r"good\.h5:/longdouble.*float", "matmul good.h5:/longdouble good.h5:/B"),
    ("integers beyond 2^53", 3, r"good\.h5:/long: element \(3, 1\) is -9007199254740993.*2\^53",
     "matmul good.h5:/long good.h5:/B"),
    ("integers beyond 2^53 as B", 3, r"good\.h5:/ulong: element \(0, 2\) is 18446744073709551615.*2\^53",
     "matmul good.h5:/A good.h5:/ulong"),
    ("64-bit integers for --precision exact", 2, r"exact.*long is i64",
     "matmul good.h5:/long good.h5:/B --precision exact"),
    ("a string as C0", 3, r"good\.h5:/string.*string", "matmul good.h5 --beta 1 --add good.h5:/string"),
    # Shapes.
    ("no dataspace", 3, r"good\.h5:/null.*null", "matmul good.h5:/null good.h5:/B"),
    ("a stack without --flatten", 3, r"good\.h5:/stack.*3.*--flatten", "matmul good.h5:/stack good.h5:/B"),
    ("a vector of another length", 3, r"good\.h5:/vector is a vector of 4 and good\.h5:/A is 6x4",
     "matmul good.h5:/vector good.h5:/A"),
    ("a scalar", 3, r"good\.h5:/scalar", "matmul good.h5:/scalar good.h5:/B"),
    ("inner sizes that differ", 3, r"good\.h5:/A.*4.*6", "matmul good.h5:/A good.h5:/A"),
    ("inner sizes that differ after --transpose", 3, r"6.*4", "matmul good.h5 --transpose a"),
    ("C0 of another shape", 3, r"good\.h5:/A.*6.*5", "matmul good.h5 --beta 1 --add good.h5:/A"),
    # Selections.
    ("a selection without its end", 2, r"\[1:2", "matmul good.h5:/A[1:2 good.h5:/B"),
    ("a selection of letters", 2, r"good\.h5:/A", "matmul good.h5:/A[a:b] good.h5:/B"),
    ("a step of 0", 2, r"good\.h5:/A.*step", "matmul good.h5:/A[::0,:] good.h5:/B"),
    ("an index out of range", 3, r"good\.h5:/stack.*3.*3", "matmul good.h5:/stack[3,:,:] good.h5:/B"),
    ("a selection of too many dimensions", 3, r"good\.h5:/A.*dimension", "matmul good.h5:/A[:,:,:] good.h5:/B"),
    ("no dataset after the colon", 2, r"good\.h5:", "matmul good.h5: good.h5:/B"),
    # Operations and options.
    ("no operation", 2, r"operation", ""),
    ("an unknown operation", 2, r"'multiply'; gpumem-run --help", "multiply good.h5"),
    ("an unknown option", 2, r"'--fast'; gpumem-run --help", "matmul good.h5 --fast"),
    ("a mistyped operation", 2, r"no operation 'matmull' \(did you mean 'matmul'\?\);", "matmull good.h5"),
    ("a mistyped option", 2, r"'--devcie=cpu' \(did you mean '--device'\?\);", "matmul good.h5 --devcie=cpu"),
    ("an unknown letter", 2, r"-x", "matmul good.h5 -x"),
    ("an option without its value", 2, r"--alpha", "matmul good.h5 --alpha"),
    ("a value for a flag", 2, r"--force", "matmul good.h5 --force=yes"),
    ("an option of another operation", 2, r"--rows.*matmul", "matmul good.h5 --rows 5"),
    ("no operand", 2, r"matmul", "matmul"),
    ("one operand that names its dataset", 2, r"good\.h5:/A", "matmul good.h5:/A"),
    ("too many operands", 2, r"third\.h5", "matmul good.h5 good.h5:/B third.h5"),
    ("an empty operand", 2, r"file", "matmul ''"),
    ("a bad number", 2, r"--alpha.*2x", "matmul good.h5 --alpha 2x"),
    ("a number that is none", 2, r"--alpha.*nan", "matmul good.h5 --alpha nan"),
    ("a bad size", 2, r"--host-memory.*12Q", "matmul good.h5 --host-memory 12Q"),
    ("a negative size", 2, r"--piece.*-1", "matmul good.h5 --piece=-1"),
    ("a size beyond 64 bits", 2, r"--device-memory.* at most 4194304T", "matmul good.h5 --device-memory 99999999T"),
    ("a size of 2^63 - 1", 2, r"--host-memory '9223372036854775807': .* at most 4194304T",
     "matmul good.h5 --host-memory 9223372036854775807"),
    ("no threads", 2, r"--threads.*0", "matmul good.h5 --threads 0"),
    ("a bad choice", 2, r"--device.*tpu.*cuda", "matmul good.h5 --device tpu"),
    ("a bad --transpose", 2, r"--transpose.*x", "matmul good.h5 --transpose x"),
    ("a grid for other ranks", 2, r"--grid.*8.*3", "matmul good.h5 --grid 2x2x2"),
    ("a grid of two numbers", 2, r"--grid.*3x1", "matmul good.h5 --grid 3x1"),
    ("a grid beyond 64 bits", 2, r"--grid '18446744073709551617x1x1': .* to 9223372036854775807",
     "matmul good.h5 --grid 18446744073709551617x1x1"),
    ("a grid of four numbers", 2, r"--grid '1x1x3x1': expected RxCxK", "matmul good.h5 --grid 1x1x3x1"),
    ("a grid of 0", 2, r"--grid.*3x1x0", "matmul good.h5 --grid 3x1x0"),
    ("--beta without --add", 2, r"--beta.*--add", "matmul good.h5 --beta 2"),
    ("an unknown precision", 2, r"--precision.*fp128.*fp64, fp32, exact", "matmul good.h5 --precision fp128"),
    ("kernel hopper", 2, r"--kernel hopper: the device cpu has no such kernel, expected --kernel auto",
     "matmul good.h5 --kernel hopper --device cpu --precision fp32"),
    ("kernel mma", 2, r"--kernel mma: the device cpu has no such kernel, expected --kernel auto",
     "matmul good.h5 --kernel mma --device cpu --precision bf16"),
    ("kernel fast", 2, r"--kernel .fast.", "matmul good.h5 --kernel fast"),
    ("precision exact of f64 data", 2, r"exact.*f(loat)?64", "matmul good.h5 --precision exact"),
    ("an integer type for C", 2, r"--type.*i16.*f16, bf16, f32 or f64", "matmul good.h5 --type i16"),
    ("an unknown type for C", 2, r"--type.*f99", "matmul good.h5 --type f99"),
    ("a chunk of the wrong rank", 2, r"--chunk.*2", "matmul good.h5 --chunk 2"),
    ("a chunk of 0", 2, r"[Cc]hunk", "matmul good.h5 --chunk 0,2"),
    ("a chunk beyond 64 bits", 2, r"--chunk '2,9223372036854775808': .* to 9223372036854775807",
     "matmul good.h5 --chunk 2,9223372036854775808"),
    ("a chunk with blanks", 2, r"--chunk '2, 2'", "matmul good.h5 --chunk '2, 2'"),
    ("a chunk with more after it", 2, r"--chunk '2,2,'", "matmul good.h5 --chunk 2,2,"),
    ("a chunk of a scalar", 2, r"--chunk 2: the output is a scalar, which has no chunks",
     "matmul good.h5:/vector good.h5:/vector --chunk 2"),
    ("a chunk of letters", 2, r"--chunk.*big", "matmul good.h5 --chunk big"),
    ("deflate 10", 2, r"--deflate 10: .* 0 .*to 9", "matmul good.h5 --deflate 10"),
    ("deflate -1", 2, r"--deflate.*-1.*non-negative", "matmul good.h5 --deflate -1"),
    # Outputs.
    ("an output to standard output", 2, r"output '-' must be the name of a file", "matmul good.h5 -o -"),
    ("a dataset to standard output", 2, r"output '-' must be the name of a file", "flip good.h5:/A --axis 0 -o -:/A"),
    ("gen to standard output", 2, r"output '-' must be the name of a file", "gen stack - --size 3"),
    ("an output that is a group", 2, r"--output new\.h5:/: expected the name of a dataset",
     "matmul good.h5 -o new.h5:/"),
    ("an output with .. in its name", 2, r"--output new\.h5:/a/\.\./b: expected a name without",
     "flip good.h5:/A --axis 0 -o new.h5:/a/../b"),
    ("an output that is a group by many slashes", 2, r"--output new\.h5://: expected the name of a dataset",
     "flip good.h5:/A --axis 0 -o new.h5://"),
    ("an output that exists", 4, r"exists\.h5.*--force", "matmul good.h5 -o exists.h5"),
    ("an output that is the input", 4, r"good\.h5.*input", "matmul good.h5 -o good.h5"),
    ("an output that is the input, with --force", 4, r"good\.h5.*input", "matmul good.h5 -o good.h5 --force"),
    ("an output that is the input by another path", 4, r"input", "matmul good.h5 -o ../$HERE/good.h5 --force"),
    ("an output that is the input by a hard link", 4, r"hard\.h5.*input", "matmul good.h5 -o hard.h5 --force"),
    ("an output that is the input by a symbolic link", 4, r"soft\.h5.*(input|link)",
     "matmul good.h5 -o soft.h5 --force"),
    ("an output that is C0", 4, r"exists\.h5.*input",
     "matmul good.h5 --beta 1 --add exists.h5:/C -o exists.h5 --force"),
    ("an output in no folder", 4, r"nofolder/c\.h5.*folder", "matmul good.h5 -o nofolder/c.h5"),
    ("an output below a file", 4, r"file/c\.h5", "matmul good.h5 -o file/c.h5"),
    ("an output in a folder that is not writable", 4, r"/proc/c\.h5", "matmul good.h5 -o /proc/c.h5"),
    ("an output that is a folder", 4, r"folder\.h5.*folder", "matmul good.h5 -o folder.h5"),
    ("an output that is a folder, with --force", 4, r"folder\.h5.*folder", "matmul good.h5 -o folder.h5 --force"),
    ("an output that is a device", 4, r"/dev/null", "matmul good.h5 -o /dev/null --force"),
    ("an output without a name", 2, r"-?-o", "matmul good.h5 -o ''"),
    ("a report where none can be", 4, r"nofolder/r\.json", "matmul good.h5 --report nofolder/r.json"),
    # Memory and devices.
    ("too little host memory", 5, r"--host-memory .* expected at least [\d.]+", "matmul whole.h5 --host-memory 10K"),
    ("too little device memory", 5, r"--device-memory .* expected at least [\d.]+",
     "matmul whole.h5 --device-memory 1K"),
    ("a ring that does not fit", 5, r"--host-memory .* for matmul with --depth 4, expected at least [\d.]+",
     "matmul whole.h5 --piece 64M --depth 4 --host-memory 100M"),
    # Other operations.
    ("compare of two shapes", 3, r"4.*5", "compare only_a.h5:/A differs.h5:/x"),
    ("compare with a missing file", 3, r"nofile\.h5", "compare only_a.h5:/A nofile.h5"),
    ("compare of strings", 3, r"good\.h5:/string.*string", "compare good.h5:/string good.h5:/string"),
    ("compare with nothing", 2, r"compare", "compare good.h5:/A"),
    ("compare with a bad tolerance", 2, r"--tolerance.*much", "compare good.h5:/A good.h5:/A --tolerance much"),
    ("compare with data cut off", 3, r"cut_data\.h5:/B", "compare cut_data.h5:/B whole.h5:/B"),
    ("info on a missing file", 3, r"nofile\.h5", "info nofile.h5"),
    ("info on text", 3, r"text\.h5", "info text.h5"),
    ("gen of what there is not", 2, r"pictures", "gen pictures new.h5 --size 4"),
    ("gen without a file", 2, r"gen", "gen matrices"),
    ("gen with a dataset", 2, r"gen stack new\.h5:data: expected the name of a file alone, in which it makes /images ",
     "gen stack new.h5:data --size 4"),
    ("gen of matrices with a dataset", 2, r"new\.h5:/A: .* makes /A and /B ", "gen matrices new.h5:/A --size 4"),
    ("gen with a selection", 2, r"new\.h5\[2\]: expected the name of a file alone", "gen stack new.h5[2] --size 4"),
    ("gen without extents", 2, r"--rows|--size", "gen matrices new.h5"),
    ("gen without one extent", 2, r"--width", "gen stack new.h5 --frames 2 --height 3"),
    ("gen of a negative extent", 2, r"--rows.*-4", "gen matrices new.h5 --size 4 --rows=-4"),
    ("gen of a bad type", 2, r"--type.*f99.*u8, u16, .* or f64", "gen matrices new.h5 --size 4 --type f99"),
    ("gen of a bad distribution", 2, r"--distribution.*flat", "gen matrices new.h5 --size 4 --distribution flat"),
    ("gen with a chunk of the wrong rank", 2, r"--chunk", "gen stack new.h5 --size 4 --chunk 2,2"),
    ("gen with a chunk beyond 64 bits", 2,
     r"--chunk '99999999999999999999,1,1': expected 3 integers from 1 to 9223372036854775807",
     "gen stack new.h5 --size 4 --chunk 99999999999999999999,1,1"),
    ("gen with a chunk of 0", 2, r"[Cc]hunk", "gen stack new.h5 --size 4 --chunk 0,2,2"),
    ("gen with deflate 10", 2, r"--deflate.*10", "gen stack new.h5 --size 4 --deflate 10"),
    ("gen of more than 2^63 bytes", 2, r"4000000000.*2\^63", "gen stack new.h5 --size 4000000000"),
    ("gen of more than the disk holds", 4, r"new\.h5.*room", "gen matrices new.h5 --size 16000000"),
    ("gen onto a file that exists", 4, r"exists\.h5.*--force", "gen matrices exists.h5 --size 4"),
    ("gen in no folder", 4, r"nofolder/new\.h5", "gen matrices nofolder/new.h5 --size 4"),
]


def case(title, code, pattern, command, program=None):
    before = gm.state()
    ran = gm.run(command.replace("$HERE", os.path.basename(os.getcwd())), RANKS, 20, program)
    faults = gm.faults_of_refusal(ran, code, pattern)
    after = gm.state()
    faults += gm.difference(before, after)
    for path in after.keys() - before.keys(): # or every case from here on would find it
        if os.path.isfile(path):
            os.remove(path)
    gm.ok(not faults, f"{title} ({code})", *faults, ran)


def case_no_gpu():
    if gm.absence("cuda") is None:
        gm.skip("no GPU (5)", "there is one")
    else:
        case("no GPU", 5, r"cuda|GPU|CUDA", "matmul good.h5 --device cuda")


def case_full_disk():
    """A file system that is too small: seen before anything is computed."""
    os.mkdir("small")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", "small"], capture_output=True)
    if mounted.returncode != 0:
        gm.skip("a disk that is too small (4)", "a file system cannot be mounted here")
        return
    try:
        case("a disk that is too small", 4, r"small/c\.h5.*room", "matmul outer.h5 -o small/c.h5")
        case("a disk that is too small, compressed", 4, r"small/c\.h5", "matmul outer.h5 -o small/c.h5 --deflate 1")
        case("gen on a disk that is too small", 4, r"small/g\.h5.*room", "gen matrices small/g.h5 --size 1000")
    finally:
        subprocess.run(["umount", "small"], check=True)


def case_file_size():
    """A limit on the size of files, as some batch systems set: seen while the output is written. The limit leaves room
    for the files that MPI shares memory through."""
    limited = gm.wrapper("limited", 'ulimit -f 6000 && exec "$program" "$@"')
    case("an output beyond the limit on files", 4, r"c\.h5.*[Ff]ile too large", "matmul outer.h5 -o c.h5", limited)
    case("gen beyond the limit on files", 4, r"g\.h5.*[Ff]ile too large", "gen matrices g.h5 --size 1000", limited)


def case_address_space():
    """A limit of address space: the program ends, whatever its libraries do for lack of memory."""
    for kib in (250_000, 400_000, 600_000):
        limited = gm.wrapper(f"limited-{kib}", f'ulimit -v {kib} && exec timeout -k 1 60 "$program" "$@"')
        for command in (["--version"], ["matmul", "outer.h5", "-o", f"c-{kib}.h5", "--device", "cpu", "--threads",
                                        "2"]):
            ran = subprocess.run([limited, *command], capture_output=True, text=True)
            # libhdf5 may be what finds no memory, for the output
            refused = ran.returncode in (4, 5) and "error: " in ran.stderr
            gm.ok(ran.returncode == 0 or refused or "libgomp: " in ran.stderr,
                  f"{command[0]} in {kib} KiB of address space: {ran.returncode}", ran.stderr)


def cases(some):
    make_good()
    make_bad()
    make_outputs()
    for it in some:
        case(*it)


def limits():
    make_good()
    gm.write("outer.h5", A=np.ones((1200, 2)), B=np.ones((2, 1000))) # a product of 9.6 MB
    case_no_gpu()
    case_full_disk()
    case_file_size()
    case_address_space()


JOBS = 4
at = [len(CASES) * i // JOBS for i in range(JOBS + 1)]
gm.together([*(functools.partial(cases, CASES[i:j]) for i, j in zip(at, at[1:])), limits], JOBS)
gm.done()
