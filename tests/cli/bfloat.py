"""bfloat16, which NumPy and h5py lack: as bits (u2), and as the float32 of the same values.

BF16 is a kind beside those of NumPy ("f4"). An array of that kind has float32 elements, each of them a bfloat16."""
import contextlib

from gm import h5py, np

BF16 = "fb"


def kind(big=False, exponent=8, bias=127):
    """A float of 16 bits with so many of exponent."""
    made = (h5py.h5t.IEEE_F32BE if big else h5py.h5t.IEEE_F32LE).copy()
    made.set_fields(15, 15 - exponent, exponent, 0, 15 - exponent)
    made.set_size(2)
    made.set_ebias(bias)
    return made


def value(bits):
    """NaN are quiet: NumPy's minimum and maximum may take a signaling one for the result."""
    return (np.where((bits & np.uint16(0x7fff)) > 0x7f80, bits | np.uint16(0x40),
                     bits).astype("u4") << np.uint32(16)).view("f4")


def rounded(x):
    """The bits of the bfloat16 nearest to float64, ties to even; NaN has the same bits everywhere."""
    x = np.asarray(x, "f8")
    with np.errstate(all="ignore"):
        quantum = np.ldexp(1.0, np.maximum(np.frexp(x)[1], -125) - 8)
        near = np.where(np.isfinite(x), np.rint(x / quantum) * quantum, x)
        near = np.where(np.abs(near) < 2.0**128, near, np.copysign(np.inf, near)).astype("f4")
    return np.where(np.isnan(x), 0x7fc0, near.view("u4") >> np.uint32(16)).astype("u2")


# --- Arrays of any kind ---

def array_type(kind):
    return np.dtype("f4" if kind == BF16 else kind)


def cast(x, kind):
    return value(rounded(x)) if kind == BF16 else np.asarray(x).astype(kind)


def largest(kind):
    return np.float32(2.0**128 - 2.0**120) if kind == BF16 else np.finfo(kind).max


# --- Files ---

def put(file, name, bits, made=None, chunks=None):
    """bits: in the order of this machine; made: the type in the file."""
    made = made or kind()
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        properties.set_chunk(chunks)
        properties.set_shuffle()
        properties.set_deflate(1)
    with h5py.File(file, "a") as f:
        data = h5py.h5d.create(f.id, name.encode(), made, h5py.h5s.create_simple(bits.shape), properties)
        raw = bits.byteswap() if made.get_order() == h5py.h5t.ORDER_BE else bits
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(raw), made)


def is_stored(file, name):
    """Is the type of a dataset bfloat16?"""
    with h5py.File(file, "r") as f:
        return f[name].id.get_type() in (kind(), kind(big=True))


def get(file, name):
    """The bits of a dataset, which is bfloat16; None if it is not. h5py itself reads their values as float32."""
    if not is_stored(file, name):
        return None
    with h5py.File(file, "r") as f:
        made = f[name].id.get_type()
        raw = np.empty(f[name].shape, "u2")
        f[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, made)
        return raw.byteswap() if made.get_order() == h5py.h5t.ORDER_BE else raw


@contextlib.contextmanager
def narrowed(wanted=True):
    """Within it, if it is wanted, datasets of float32 that h5py makes are bfloat16: libhdf5 converts their elements,
    and keeps all but which NaN it was."""
    create = h5py.h5t.py_create

    def of(dtype, *more, **named):
        dtype = np.dtype(dtype)
        return kind(dtype.str[0] == ">") if dtype.str[1:] == "f4" else create(dtype, *more, **named)
    if wanted:
        h5py.h5t.py_create = of
    try:
        yield
    finally:
        h5py.h5t.py_create = create
