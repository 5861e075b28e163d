#!/usr/bin/env -S python3 -B
"""Chunks that hold less than libhdf5, which does not compare, takes them to: refused wherever it reads them, whatever
their filters; whole ones are read."""
import ctypes
import zlib

import gm
from gm import h5py, np

CHUNK, CHUNKS = 2500, 4
VALUES = np.arange(CHUNK * CHUNKS, dtype="i4") * 7 % 5000


def make(path, kind, fill=lambda dcpl: None, short=None):
    """A dataset d of integers; short: the bytes that its second chunk is stored in."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((CHUNK,))
    fill(dcpl)
    with h5py.File(path, "w") as file:
        dataset = h5py.h5d.create(file.id, b"d", kind, h5py.h5s.create_simple(VALUES.shape), dcpl)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES)
        if short is not None:
            dataset.write_direct_chunk((CHUNK,), short)


def filters(*names):
    def fill(dcpl):
        for name in names:
            {"deflate": lambda: dcpl.set_deflate(6), "shuffle": dcpl.set_shuffle, "fletcher32": dcpl.set_fletcher32,
             "nbit": lambda: dcpl.set_filter(5, h5py.h5z.FLAG_MANDATORY, ()),
             "scaleoffset": lambda: dcpl.set_scaleoffset(h5py.h5z.SO_INT, 0)}[name]()
    return fill


def fletcher32(data):
    """As libhdf5 has it, of an even number of bytes."""
    a = b = 0
    for word in np.frombuffer(data, ">u2"):
        a = (a + int(word)) % 65535
        b = (b + a) % 65535
    return data + int(b << 16 | a).to_bytes(4, "little")


whole = h5py.h5t.NATIVE_INT32.copy()
odd = h5py.h5t.NATIVE_INT32.copy() # which only libhdf5 converts
odd.set_precision(20)
EVEN = next(packed for packed in (zlib.compress(b"abcd" * n) for n in range(10, 99)) if len(packed) % 2 == 0)
scaled = bytes([27, 0, 0, 0, 8]) + bytes(16) + bytes(CHUNK) # says 27 bits of each element
CASES = [("deflate", odd, zlib.compress(b"abcd" * 10)), ("shuffle deflate", odd, zlib.compress(b"abcd" * 10)),
         ("fletcher32", odd, fletcher32(b"abcd" * 10)), ("deflate fletcher32", odd, fletcher32(EVEN)),
         ("fletcher32 deflate", odd, zlib.compress(fletcher32(b"abcd" * 10))), ("nbit", odd, b"abcd" * 10),
         ("nbit deflate", odd, zlib.compress(b"abcd" * 10)), ("scaleoffset", whole, scaled),
         ("scaleoffset", whole, scaled[:20]), ("scaleoffset deflate", whole, zlib.compress(scaled)),
         ("", odd, b"abcd" * 10), ("deflate", whole, zlib.compress(b"abcd" * 10))]
for names, kind, short in CASES:
    title = f"{names or 'no filter'}, {len(short)} bytes, {'20' if kind is odd else '32'} bits"
    make("good.h5", kind, filters(*names.split()))
    make("short.h5", kind, filters(*names.split()), short)
    for memory in ("", "--host-memory 100K"): # with little memory libhdf5 decodes what the program could
        ran = gm.run(f"reduce good.h5:/d --stat sum --device cpu --threads 2 -q {memory}")
        gm.ok(ran.code == 0 and ran.out == f"sum {VALUES.sum()}\n", f"{title}: whole chunks {memory}", ran)
        ran = gm.run(f"reduce short.h5:/d --stat sum --device cpu --threads 2 -q {memory}")
        gm.ok(not gm.faults_of_refusal(ran, 3, r"short\.h5:/d: chunk \(1\): .*damaged"),
              f"{title}: a short chunk is refused {memory}", ran)

# Chunks at the edge without filters, of which h5py knows nothing: the last one has fewer bytes than scale-offset would
# need. HDF5 1.10 reads no later format.
EXEMPT = 2 # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
dcpl.set_chunk((4,))
filters("scaleoffset")(dcpl)
ctypes.CDLL(h5py.h5p.__file__).H5Pset_chunk_opts(ctypes.c_int64(dcpl.id), ctypes.c_uint(EXEMPT))
with h5py.File("edge.h5", "w", libver=("v110", "v110")) as file:
    h5py.h5d.create(file.id, b"d", whole, h5py.h5s.create_simple((6,)),
                    dcpl).write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES[:6])
ran = gm.run("reduce edge.h5:/d --stat sum --device cpu -q")
gm.ok(ran.code == 0 and ran.out == f"sum {VALUES[:6].sum()}\n", "a chunk at the edge that is exempt from its filters",
      ran)
gm.done()
