"""Datasets that cannot be read. REFUSALS: title, what the message must match, a function that makes d.h5:/d in the
working folder. All but the first have the shape of stacked()."""
import os
import zlib
from functools import partial

from gm import h5py, np
import corpus


def stacked():
    """Chunks of 4 frames each; of their million elements every one of 4 ranks compares some."""
    x = np.random.default_rng(3).integers(0, 100, (40, 160, 170)).astype("i4")
    return x, dict(chunks=(4, 160, 170))


def null():
    with h5py.File("d.h5", "w") as f:
        f["d"] = h5py.Empty("f4")


def lzf():
    x, storage = stacked()
    corpus.plain(x, None, compression="lzf", **storage)


def unknown_filter():
    x, storage = stacked()
    properties = corpus.properties_of(storage["chunks"])
    properties.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    with h5py.File("d.h5", "w") as f:
        corpus.create(f, x, properties, write=False).id.write_direct_chunk((0, 0, 0), b"packed by a stranger", 0)


def damage(index, back, **filters):
    """One bit of a chunk turned over, `back` bytes before its end."""
    x, storage = stacked()
    corpus.plain(x, None, **storage, **filters)
    with h5py.File("d.h5", "r") as f:
        where = f["d"].id.get_chunk_info_by_coord((index, 0, 0))
    with open("d.h5", "r+b") as file:
        file.seek(where.byte_offset + where.size - back)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 16]))


def other_length(more):
    """A chunk that unpacks to more or fewer bytes than it has."""
    x, storage = stacked()
    corpus.plain(x, None, compression="gzip", **storage)
    with h5py.File("d.h5", "r+") as f:
        f["d"].id.write_direct_chunk((24, 0, 0), zlib.compress(bytes(4 * 160 * 170 * 4 + more)))


def virtual_without(spoil, *how):
    x, _ = stacked()
    corpus.virtual(x, None)
    spoil(*how)


def spoil_part():
    with open("part 1.h5", "w") as out:
        out.write("no HDF5 file\n" * 1000)


def empty_part():
    h5py.File("part 1.h5", "w").close()


def part_outside(name):
    """A part whose bytes lie in another file, which is gone or too short."""
    with h5py.File("part 1.h5", "r+") as f:
        shape, kind = f["p"].shape, f["p"].dtype
        del f["p"]
        f.create_dataset("p", shape, kind, external=[(name, 0, h5py.h5s.UNLIMITED)])


def part_filtered():
    with h5py.File("part 1.h5", "r+") as f:
        x = f["p"][...]
        del f["p"]
        f.create_dataset("p", data=x, chunks=x.shape, compression="lzf")


def part_damaged():
    with h5py.File("part 1.h5", "r+") as f:
        x = f["p"][...]
        del f["p"]
        data = f.create_dataset("p", data=x, chunks=x.shape, fletcher32=True)
        data.id.write_direct_chunk((0, 0, 0), x.tobytes() + b"none") # no checksum


def external_without(spoil, *how):
    corpus.external(stacked()[0], None, pieces=3)
    spoil(*how)


REFUSALS = [("no dataspace", r"d\.h5:/d: .*null", null), ("lzf, of h5py's own", r"d\.h5:/d: .*32000 \(lzf\)", lzf),
            ("a filter that nobody has", r"d\.h5:/d: .*32013", unknown_filter),
            ("fletcher32 of the first chunk", r"d\.h5:/d: chunk \(0, 0, 0\): checksum",
             partial(damage, 0, 1000, fletcher32=True)),
            ("fletcher32 of the last chunk", r"d\.h5:/d: chunk \(9, 0, 0\): checksum",
             partial(damage, 36, 1, fletcher32=True)),
            ("fletcher32 behind deflate", r"d\.h5:/d: chunk \(5, 0, 0\): checksum",
             partial(damage, 20, 30, **corpus.EVERYTHING)),
            ("a chunk that does not inflate", r"d\.h5:/d: chunk \(7, 0, 0\): .*inflate",
             partial(damage, 28, 400, compression="gzip")),
            ("a chunk whose deflate checksum is wrong", r"d\.h5:/d: chunk \(3, 0, 0\): .*inflate",
             partial(damage, 12, 1, compression="gzip")),
            ("a chunk that inflates to less", r"d\.h5:/d: chunk \(6, 0, 0\): inflates to less",
             partial(other_length, -4)),
            ("a chunk that inflates to more", r"d\.h5:/d: chunk \(6, 0, 0\): inflates to more",
             partial(other_length, 4)), ("a part that is missing", r"d\.h5:/d: .*part 1\.h5.*missing",
                                         partial(virtual_without, os.remove, "part 1.h5")),
            ("a part that is no HDF5 file", r"d\.h5:/d: .*part 1\.h5", partial(virtual_without, spoil_part)),
            ("a part without its dataset", r"d\.h5:/d: .*part 1\.h5.*/?p", partial(virtual_without, empty_part)),
            ("a part whose bytes are elsewhere and missing", r"d\.h5:/d: .*part 1\.h5:p: .*gone\.bin",
             partial(virtual_without, part_outside, "gone.bin")),
            ("a part whose bytes are elsewhere and cut short", r"d\.h5:/d: .*part 1\.h5:p: .*d\.h5 ends",
             partial(virtual_without, part_outside, "d.h5")),
            ("a part whose filter is missing", r"d\.h5:/d: .*part 1\.h5:p: .*32000",
             partial(virtual_without, part_filtered)),
            ("a part with a wrong checksum", r"d\.h5:/d: its part .*part 1\.h5: chunk .*checksum",
             partial(virtual_without, part_damaged)),
            ("an external file that is missing", r"d\.h5:/d: .*raw1\.bin",
             partial(external_without, os.remove, "raw1.bin")),
            ("an external file cut short", r"d\.h5:/d: .*raw2\.bin",
             partial(external_without, os.truncate, "raw2.bin", 2000)),]
