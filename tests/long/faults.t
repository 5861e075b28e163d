#!/usr/bin/env -S python3 -B
"""A rank that gets no memory, or no thread, at any point: all ranks end with exit code 5 and one message, within 10 s,
and leave nothing; or the program goes on with less, and the result is right. A call of MPI that fails on one rank ends
all at once, with 7.

Every allocation and every thread of the program's own fails in some run of the long form (GPUMEM_TEST_RUNS), those
after it too in others."""
import campaign


def specs_of(counts, rank):
    for kind in ("malloc", "thread", "mmap", "fork"):
        for n in range(1, counts[kind] + 1):
            yield f"{kind}:{n}:{rank}"
            if n % 5 == 1:
                yield f"{kind}:{n}+:{rank}"
    for n in range(1, counts["mpi"] + 1, 3):
        yield f"mpi:{n}:{rank}"


def judge(trial):
    if trial.spec.startswith("mpi"):
        return trial.faults((7,), may_leave=True)
    return trial.faults((5,))


campaign.campaign(specs_of, judge, short=8)
