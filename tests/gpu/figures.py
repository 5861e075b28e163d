#!/usr/bin/env python3
"""tests/gpu/figures.py: from file to result and from file to file, the program beside what a user would write in Python
(h5py with CuPy or PyTorch) and beside what the links and the file system give, in one run.

    figures.py [--gpus N] [--folder DIR] [--frames F] [--repeat R] [--rival-repeat R] [--json FILE] [PART...]

PART: link, reduce, normalize, chunks, write, matmul, transpose, flip, device (default: all). gpumem-run, mpirun: from
PATH. Files are made in --folder (/dev/shm) and removed; of a stack, --frames frames (1024) of 2048 x 2048 uint16 a GPU,
which is 9 GB, and twice that where a stack is written. --gpus: any number that nvidia-smi lists. Without CuPy, as on a
machine without GPU, the rival works with NumPy and the program with --device cpu: a trial of the script.

Every time is the median of --repeat runs (3) after one that warms up; of a rival in Python of --rival-repeat (3). The
program's is wall_s of its report, from the first open to the rename, without the start of MPI and CUDA; a rival's
begins when its processes have imported what they need and started CUDA, and ends when the last one is done. Nobody
waits for the disk.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time

FRAME = 2048
PIECE = 16 << 20


def load_arrays():
    """CuPy, or NumPy where there is no GPU."""
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
        return cupy
    except Exception:
        import numpy
        return numpy


def gpu_count():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True,
                            text=True) if shutil.which("nvidia-smi") else None
    return sum(line.startswith("GPU ")
               for line in listed.stdout.splitlines()) if listed and not listed.returncode else 0


def doubled(most):
    """1, 2, 4, ... and most"""
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a positive integer")
    return number


def on_device(arrays, values):
    return arrays.asarray(values)


def on_host(arrays, values):
    return values if arrays.__name__ == "numpy" else values.get()


# --- Programs that a user would write: each works on frames [first, last) of a stack, in batches of 64 frames ---

def batches(first, last, step=64):
    for begin in range(first, last, step):
        yield begin, min(begin + step, last)


def rival_reduce(arrays, path, first, last, shared):
    import h5py
    low, high, total = [], [], 0
    with h5py.File(path, "r") as file:
        images = file["images"]
        for begin, end in batches(first, last):
            part = on_device(arrays, images[begin:end])
            low.append(int(part.min()))
            high.append(int(part.max()))
            total += int(part.sum(dtype=arrays.uint64))
    return min(low), max(high), total


def rival_normalize(arrays, path, first, last, shared):
    import h5py
    low, high, _ = rival_reduce(arrays, path, first, last, shared)
    low, high = shared(low, high)
    scale = arrays.float32(65535 / (high - low))
    with h5py.File(path, "r") as file, h5py.File(f"{path}.rival-{first}.h5", "w", locking=False) as out:
        images = file["images"]
        result = out.create_dataset("images", (last - first, *images.shape[1:]), "u2")
        for begin, end in batches(first, last):
            part = on_device(arrays, images[begin:end]).astype(arrays.float32)
            part = arrays.rint((part - low) * scale).astype(arrays.uint16)
            result[begin - first:end - first] = on_host(arrays, part)


def rival_read(arrays, path, first, last, shared):
    """h5py alone: what reading and decoding take."""
    import h5py
    import numpy
    with h5py.File(path, "r") as file:
        images = file["images"]
        place = numpy.empty((min(16, last - first), *images.shape[1:]), images.dtype)
        for begin, end in batches(first, last, 16):
            images.read_direct(place, numpy.s_[begin:end], numpy.s_[0:end - begin])


def rival_matmul(arrays, path, first, last, shared):
    """Rows [first, last) of C, float32, as PyTorch multiplies them without TensorFloat-32."""
    import h5py
    with h5py.File(path, "r") as file:
        a, b = file["A"][first:last], file["B"][...]
    if arrays.__name__ == "numpy":
        c = a @ b
    else:
        import torch
        c = (torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda()).cpu().numpy()
    with h5py.File(f"{path}.rival-{first}.h5", "w", locking=False) as out:
        out["C"] = c


def rival_transpose(arrays, path, first, last, shared):
    """Columns [first, last) of a matrix become rows."""
    import h5py
    with h5py.File(path, "r") as file, h5py.File(f"{path}.rival-{first}.h5", "w", locking=False) as out:
        part = on_device(arrays, file["A"][:, first:last])
        out["A"] = on_host(arrays, arrays.ascontiguousarray(part.T))


def rival_flip(arrays, path, first, last, shared):
    """Frames whose columns come in the opposite order."""
    import h5py
    with h5py.File(path, "r") as file, h5py.File(f"{path}.rival-{first}.h5", "w", locking=False) as out:
        images = file["images"]
        result = out.create_dataset("images", (last - first, *images.shape[1:]), images.dtype)
        for begin, end in batches(first, last):
            part = on_device(arrays, images[begin:end])
            result[begin - first:end - first] = on_host(arrays, arrays.ascontiguousarray(part[:, :, ::-1]))


class Meeting:
    """Where the processes of a rival meet: before the clock starts, between its two passes, and at its end. The clock's
    process is at the first and last."""

    def __init__(self, context, ranks):
        self.start, self.end = context.Barrier(ranks + 1), context.Barrier(ranks + 1)
        self.middle = context.Barrier(ranks)
        self.low, self.high = context.Value("q", 1 << 62), context.Value("q", -1)

    def share(self, low, high):
        with self.low.get_lock():
            self.low.value, self.high.value = min(self.low.value, low), max(self.high.value, high)
        self.middle.wait()
        return self.low.value, self.high.value


def warm_up(arrays, work):
    """Kernels are compiled, libraries loaded when they are first used."""
    import h5py # noqa: F401
    if work is rival_matmul and arrays.__name__ != "numpy":
        import torch
        (torch.ones(64, 64).cuda() @ torch.ones(64, 64).cuda()).cpu().numpy()
        return
    ones = on_device(arrays, arrays.ones((2, 64), dtype=arrays.uint16))
    int(ones.min()), int(ones.max()), int(ones.sum(dtype=arrays.uint64))
    on_host(arrays, arrays.rint((ones.astype(arrays.float32) - 1) * arrays.float32(2)).astype(arrays.uint16))
    on_host(arrays, arrays.ascontiguousarray(ones.T)), on_host(arrays, arrays.ascontiguousarray(ones[:, ::-1]))
    on_host(arrays, arrays.ascontiguousarray(ones.astype(arrays.float32).T))


def rival_process(work, path, count, rank, ranks, meeting):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    arrays = load_arrays()
    warm_up(arrays, work)
    meeting.start.wait()
    work(arrays, path, count * rank // ranks, count * (rank + 1) // ranks, meeting.share)
    meeting.end.wait()


def time_rival(work, path, count, ranks):
    """Seconds of one run on rows or frames [0, count) by the given number of processes, each with a GPU."""
    spawn = multiprocessing.get_context("spawn")
    meeting = Meeting(spawn, ranks)
    workers = [spawn.Process(target=rival_process, args=(work, path, count, rank, ranks, meeting))
               for rank in range(ranks)]
    for worker in workers:
        worker.start()
    meeting.start.wait(120)
    start = time.perf_counter()
    meeting.end.wait(120)
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    for rank in range(ranks):
        remove(f"{path}.rival-{count * rank // ranks}.h5")
    return seconds


# --- The program ---

class Failed(Exception):
    """A run that did not do what it should; the text says which, and why."""


def remove(*paths):
    for path in paths:
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def finish(command, seconds=None):
    """The output of a command; Failed where its exit code is not 0, or where it takes longer."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as stopped:
        process.terminate() # mpirun ends its ranks
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if isinstance(stopped, subprocess.TimeoutExpired):
            raise Failed(f"{' '.join(command)}: not done in the {seconds:.0f} s that were left") from None
        raise
    if process.returncode:
        raise Failed(f"{' '.join(command)}: exit code {process.returncode}\n{err}")
    return out


def phases_of(report):
    """Seconds of the busiest rank in each phase."""
    return {name: values["max"] if isinstance(values, dict) else values for name, values in report["phases"].items()}


class Session:
    deadline = None # of time.monotonic(), for all that runs

    def __init__(self, options):
        self.options = options
        self.device = "cuda" if gpu_count() else "cpu"
        self.folder = tempfile.mkdtemp(prefix="gpumem-figures.", dir=options.folder)
        self.rows = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def room(self, size):
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise Failed(f"{self.options.folder} has room for {free / 1e9:.1f} GB, wanted {size / 1e9:.1f}")

    def time_left(self):
        return None if self.deadline is None else max(0, self.deadline - time.monotonic())

    def command(self, words, ranks=1, prefix=()):
        """The words of a run, under mpirun for more ranks than one; the prefix names another version's environment,
        which has its mpirun."""
        mpirun = ["mpirun" if prefix else os.environ.get("MPIRUN", "mpirun"), "-np", str(ranks)] if ranks > 1 else []
        return [*prefix, *mpirun, "gpumem-run", *words, "-q"]

    def run(self, words, ranks=1, prefix=()):
        """One run of the program: its report."""
        report = self.path("report.json")
        remove(report)
        finish(self.command([*words, "--report", report], ranks, prefix), self.time_left())
        with open(report) as file:
            return json.load(file)

    def rounds(self, first, times):
        """How often runs are repeated; first: those that warmed up."""
        return self.options.repeat if times is None else times

    def in_turn(self, measures, times=None):
        """Of each measure() -> (seconds, more) the median run, by seconds: --repeat rounds after one that warms up (and
        counts, if it is all)."""
        first = [measure() for measure in measures]
        rounds = [[measure() for measure in measures] for _ in range(self.rounds(first, times))] or [first]
        return [sorted(runs, key=lambda run: run[0])[len(runs) // 2] for runs in zip(*rounds)]

    def repeat(self, measure, times=None):
        return self.in_turn([measure], times)[0]

    def clear(self, output):
        """Removes an output and its parts; None: there is none."""
        for name in os.listdir(self.folder) if output else ():
            if name.startswith(os.path.basename(output)):
                remove(self.path(name))

    def timed(self, words, ranks=1, output=None, prefix=()):
        """wall_s and the report of one run."""
        # a rival's output is gone before the next one, and memory that was never used before is slow to come by
        self.clear(output)
        report = self.run([*words, "--device", self.device], ranks, prefix)
        return report["wall_s"], report

    def ours(self, words, ranks=1, output=None):
        """Median wall_s of runs, and the phases of that run."""
        seconds, report = self.repeat(lambda: self.timed(words, ranks, output))
        self.clear(output)
        return seconds, phases_of(report)

    def rival(self, work, path, count, ranks):
        return self.repeat(lambda: (time_rival(work, path, count, ranks), None), self.options.rival_repeat)[0]

    def add(self, what, seconds, size, rival=None, rival_name="", phases=None):
        """One row: size in bytes, the rival in seconds."""
        row = {"what": what, "seconds": seconds, "gbs": size / seconds / 1e9, "rival": rival_name,
               "rival_seconds": rival, "ratio": rival / seconds if rival else None, "phases": phases}
        if phases:
            row["wall_over_busiest"] = seconds / max(phases.values())
        self.rows.append(row)
        print(f"{what}: {seconds:.3f} s, {row['gbs']:.1f} GB/s"
              + (f", {row['ratio']:.2f} x {rival_name} ({rival:.3f} s)" if rival else ""), flush=True)
        if phases:
            print("    " + ", ".join(f"{name} {value:.3f}" for name, value in phases.items() if value >= 0.0005) +
                  f"; wall / busiest {row['wall_over_busiest']:.2f}", flush=True)


def make_stack(session, name, frames, *layout):
    path = session.path(name)
    session.room(frames * FRAME * FRAME * 2)
    session.run(["gen", "stack", path, "--frames", str(frames), "--height", str(FRAME), "--width", str(FRAME), "--type",
                 "u16", "--no-sync", *layout])
    return path


def make_matrices(session, name, rows, inner, columns):
    path = session.path(name)
    session.run(["gen", "matrices", path, "--rows", str(rows), "--inner", str(inner), "--columns", str(columns),
                 "--type", "f32", "--no-sync"])
    return path


# --- The parts ---

def part_link(session):
    """A contiguous float32 dataset to a reduction on the device, against pinned memory to the device."""
    ranks, size = session.options.gpus, session.options.gpus * session.options.frames * FRAME * FRAME * 2
    path = session.path("f.h5")
    side = 1 << 16
    session.run(["gen", "stack", path, "--frames", str(size // (4 * side)), "--height", str(side >> 8), "--width",
                 "256", "--type", "f32", "--no-sync"])
    seconds, phases = session.ours(["reduce", path, "--stat", "count,min,max,sum"], ranks)
    ceiling = link_ceiling(ranks)
    session.add(f"float32 file to statistics, {ranks} GPUs", seconds, size, size / ceiling if ceiling else None,
                 f"pinned copy at {ceiling / 1e9 if ceiling else 0:.1f} GB/s", phases)
    remove(path)


def link_process(rank, start, end, rates):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    import cupy
    host = cupy.cuda.alloc_pinned_memory(256 << 20)
    device = cupy.cuda.alloc(256 << 20)
    stream = cupy.cuda.Stream()
    for timed in (False, True):
        start.wait()
        from_ = time.perf_counter()
        for _ in range(32):
            device.copy_from_host_async(host.ptr, 256 << 20, stream)
        stream.synchronize()
        rates[rank] = 32 * (256 << 20) / (time.perf_counter() - from_)
        end.wait()


def link_ceiling(ranks):
    """Bytes a second from pinned memory to all devices at once; None without GPU."""
    if not gpu_count():
        return None
    spawn = multiprocessing.get_context("spawn")
    start, end, rates = spawn.Barrier(ranks), spawn.Barrier(ranks), spawn.Array("d", ranks)
    workers = [spawn.Process(target=link_process, args=(rank, start, end, rates)) for rank in range(ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def part_reduce(session):
    frames, ranks = session.options.gpus * session.options.frames, session.options.gpus
    size = frames * FRAME * FRAME * 2
    path = make_stack(session, "s.h5", frames)
    seconds, phases = session.ours(["reduce", path, "--stat", "min,max,sum"], ranks)
    session.add(f"uint16 file to min, max, sum, {ranks} GPUs", seconds, size,
                session.rival(rival_reduce, path, frames, ranks), "h5py + CuPy", phases)
    seconds, phases = session.ours(["reduce", path], ranks)
    session.add(f"uint16 file to all statistics but arg*, {ranks} GPUs", seconds, size, phases=phases)
    remove(path)


def part_normalize(session):
    frames, ranks = session.options.gpus * session.options.frames, session.options.gpus
    size = frames * FRAME * FRAME * 2
    path, out = make_stack(session, "s.h5", frames), session.path("n.h5")
    rival = session.rival(rival_normalize, path, frames, ranks)
    for layout in ("parts", "single"):
        seconds, phases = session.ours(["normalize", path, "-o", out, "--output-layout", layout, "--no-sync"], ranks,
                                       out)
        session.add(f"uint16 file to min-max normalized file, {layout}, {ranks} GPUs", seconds, size, rival,
                    "h5py + CuPy", phases)
    remove(path)


def part_chunks(session):
    """Chunks of one frame, deflate 4 and shuffle; h5py reads them in one process."""
    frames = 128
    path = session.path("c.h5")
    session.run(["gen", "stack", path, "--frames", str(frames), "--height", str(FRAME), "--width", str(FRAME), "--type",
                 "u16", "--no-sync", "--distribution", "integers", "--chunk", f"1,{FRAME},{FRAME}", "--deflate", "4",
                 "--shuffle"])
    seconds, phases = session.ours(["reduce", path, "--stat", "min,max,sum"])
    session.add(f"uint16 chunks, deflate 4 + shuffle, to min, max, sum on {os.cpu_count()} processors", seconds,
                frames * FRAME * FRAME * 2, session.rival(rival_read, path, frames, 1), "h5py reading it", phases)
    remove(path)


def time_pwrite(path, size):
    """Seconds of a plain loop of pwrite into one new file."""
    piece = os.urandom(1 << 20) * (PIECE >> 20)
    remove(path)
    start = time.perf_counter()
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    for at in range(0, size, PIECE):
        os.pwrite(file, piece, at)
    os.close(file)
    seconds = time.perf_counter() - start
    remove(path)
    return seconds


def part_write(session):
    """A product of small inner size: nearly all of its time is the way from the device to the file."""
    n, out = 46336 if session.device == "cuda" else 8192, session.path("c.h5")
    path = make_matrices(session, "thin.h5", n, 64, n)
    size = n * n * 4
    loop = session.repeat(lambda: (time_pwrite(session.path("w"), size), None))[0]
    for layout in ("single", "parts"):
        seconds, phases = session.ours(["matmul", path, "-o", out, "--output-layout", layout, "--no-sync"], 1, out)
        session.add(f"{size / 1e9:.1f} GB from the device to a file, {layout}", seconds, size, loop, "a loop of pwrite",
                    phases)
        session.add(f"    its writing alone", phases["write"], size, loop, "a loop of pwrite")
    remove(path)


def part_matmul(session):
    n, ranks = 32768 if session.device == "cuda" else 4096, session.options.gpus
    path, out = make_matrices(session, "ab.h5", n, n, n), session.path("c.h5")
    rival = session.rival(rival_matmul, path, n, ranks)
    for layout in ("parts", "single"):
        seconds, phases = session.ours(["matmul", path, "-o", out, "--output-layout", layout, "--no-sync"], ranks, out)
        session.add(f"C = A B, n = {n}, float32, {layout}, {ranks} GPUs", seconds, 3 * n * n * 4, rival,
                    "h5py + PyTorch", phases)
    remove(path)


def part_transpose(session):
    n, ranks = 32768 if session.device == "cuda" else 4096, session.options.gpus
    path, out = make_matrices(session, "ab.h5", n, n, 16), session.path("t.h5")
    rival = session.rival(rival_transpose, path, n, ranks)
    for layout in ("parts", "single"):
        seconds, phases = session.ours(["transpose", f"{path}:A", "-o", out, "--output-layout", layout, "--no-sync"],
                                       ranks, out)
        session.add(f"transposed matrix, n = {n}, float32, {layout}, {ranks} GPUs", seconds, n * n * 4, rival,
                    "h5py + CuPy", phases)
    remove(path)


def part_flip(session):
    frames, ranks = session.options.gpus * session.options.frames, session.options.gpus
    path, out = make_stack(session, "s.h5", frames), session.path("f.h5")
    rival = session.rival(rival_flip, path, frames, ranks)
    for layout in ("parts", "single"):
        seconds, phases = session.ours(["flip", path, "--axis", "-1", "-o", out, "--output-layout", layout,
                                        "--no-sync"], ranks, out)
        session.add(f"uint16 frames with columns reversed, {layout}, {ranks} GPUs", seconds, frames * FRAME * FRAME * 2,
                    rival, "h5py + CuPy", phases)
    remove(path)


def bench_reduce(session, gpu):
    """Starts bench reduce on one GPU; what it writes."""
    report = session.path(f"bench-{gpu}.json")
    size = "4G" if session.device == "cuda" else "4M"
    command = ["gpumem-run", "bench", "reduce", "--shapes", size, "--json", report, "--device", session.device, "-q"]
    return subprocess.Popen(command, env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu)), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL), report


def fused_rates(running):
    """Of each process: GB/s by shape of the fused reduction."""
    found = []
    for process, report in running:
        if process.wait():
            raise Failed(f"bench reduce: exit code {process.returncode}")
        with open(report) as file:
            found.append({row["shape"]: row["rate"] for row in json.load(file)["rows"]
                          if row["variant"] == "min max sum sumsq"})
    return found


def part_device(session):
    """Data that are in the devices' memory: one GPU alone, then all at once. A rank adds nothing to that but a few
    numbers at the end."""
    gpus = session.options.gpus
    alone = fused_rates([bench_reduce(session, 0)])[0]
    together = fused_rates([bench_reduce(session, gpu) for gpu in range(gpus)])
    for shape, rate in alone.items():
        share = sum(rates[shape] for rates in together) / (gpus * rate)
        session.rows.append({"what": f"reduction in memory, {shape}", "gbs": rate, "gpus": gpus, "efficiency": share})
        print(f"reduction of {shape} in memory: {rate:.0f} GB/s alone, {gpus} GPUs at once {share:.3f} of {gpus} times "
              f"that", flush=True)


PARTS = {"link": part_link, "reduce": part_reduce, "normalize": part_normalize, "chunks": part_chunks,
         "write": part_write, "matmul": part_matmul, "transpose": part_transpose, "flip": part_flip,
         "device": part_device}


def main():
    parser = argparse.ArgumentParser(description="The program beside Python, the links and the file system.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--gpus", type=positive, default=1)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--frames", type=positive, default=1024, help="a GPU")
    parser.add_argument("--repeat", type=positive, default=3)
    parser.add_argument("--rival-repeat", type=positive, default=3, metavar="R")
    parser.add_argument("--json")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}: {', '.join(PARTS)}")
    if gpu_count() and options.gpus > gpu_count():
        parser.error(f"--gpus {options.gpus}: nvidia-smi lists {gpu_count()}")
    session = Session(options)
    try:
        for part in options.parts or PARTS:
            PARTS[part](session)
    except Failed as failure:
        sys.exit(str(failure))
    finally:
        shutil.rmtree(session.folder)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(session.rows, file, indent=1)


if __name__ == "__main__":
    main()
