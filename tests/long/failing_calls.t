#!/usr/bin/env -S python3 -B
"""A call of a file that fails, is cut short, interrupted or late, at any point and on any rank: the result is right, or
all ranks end with one message and the exit code that the file's part in the run gives (3: an input, 4: an output, 5:
memory), within 10 s; nothing is left, no input changes.

The long form (GPUMEM_TEST_RUNS) goes over every call of each kind with each error."""
import os
import re

import campaign

ERRORS = {"read": ("EIO", "ENOMEM", "EINTR", "short"), "write": ("EIO", "ENOSPC", "EDQUOT", "EINTR", "short"),
          "open": ("EMFILE", "ENOMEM", "EACCES", "EIO"), "close": ("EIO", "EINTR", "ENOSPC"),
          "sync": ("EIO", "EINTR", "ENOSPC"), "rename": ("EIO", "ENOSPC", "EACCES"), "unlink": ("EIO", "EACCES"),
          "folder": ("EIO", "ENOSPC", "EACCES"), "stat": ("EIO", "ENOMEM"), "space": ("ENOSPC", "EIO", "EINTR"),
          "mmap": ("ENOMEM",)}
LASTING = {"ENOSPC", "EMFILE", "EDQUOT", "EACCES"} # what goes on failing


def specs_of(counts, rank):
    for kind, errors in ERRORS.items():
        for n in range(1, counts[kind] + 1):
            for error in errors:
                yield f"{kind}:{n}:{rank}:{error}"
                if error in LASTING and n % 3 == 1:
                    yield f"{kind}:{n}+:{rank}:{error}"
            if n % 4 == 0:
                yield f"{kind}:{n}:{rank}:delay=200"


def judge(trial):
    if not trial.struck or "delay" in trial.spec:
        return trial.faults(())
    codes = {4 if re.search(r" of \S*(out\.h5|report\.json)\S*$| of \.$| of /proc/\w+/fd/\d+$", line)
             or os.path.isdir(line.split()[-1]) else 3 for line in trial.struck}
    if "ENOMEM" in trial.spec:
        codes.add(5)
    removing = any(line.split()[1] in ("unlink", "folder") or "EMFILE" in trial.spec for line in trial.struck)
    return trial.faults(codes, may_leave=removing)


campaign.campaign(specs_of, judge, short=8)
