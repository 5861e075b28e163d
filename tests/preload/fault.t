#!/usr/bin/env -S python3 -B
"""The library that fails calls of the program: it counts them, and strikes the call that it is told to, on the rank
that it is told to."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm
from gm import np

gm.need_fault()
gm.write("in.h5", A=np.arange(12.0).reshape(3, 4))
FLIP = "flip in.h5:/A --axis 0 -o out.h5 --force -q"


def counts(ranks):
    if os.path.exists("out.h5"):
        os.remove("out.h5")
    ran = gm.run(FLIP, ranks, environment=gm.fault(log="log"))
    found = [gm.struck("log", rank)[1] for rank in range(ranks)]
    for rank in range(ranks):
        os.remove(f"log.{rank}")
    return ran, found


ran, (alone,) = counts(1)
gm.ok(ran.code == 0 and all(alone[kind] > 0 for kind in ("read", "write", "open", "close", "malloc", "thread")),
      "calls are counted", ran, alone)
gm.ok(alone["file"] == sum(alone[kind]
                           for kind in "read write open close sync rename unlink folder stat space mmap".split()),
      "calls of files add up", alone)
again = counts(1)[1][0]
gm.ok(again["malloc"] == alone["malloc"], "as many allocations in each run", alone, again)
ran, both = counts(2)
gm.ok(ran.code == 0 and both[0]["write"] > both[1]["write"], "ranks are counted apart", ran, *both)

ran = gm.run(FLIP, environment=gm.fault("rename:1::EDQUOT", log="log"))
calls, _ = gm.struck("log")
gm.ok(ran.code == 4 and "quota" in ran.err and len(calls) == 1 and calls[0].startswith("struck rename 1 "),
      "a call fails", ran, *calls)
os.remove("log.0")
ran = gm.run(FLIP, 2, environment=gm.fault("rename:1:1:EIO", log="log"))
gm.ok(ran.code == 0 and not gm.struck("log", 0)[0], "not the call of another rank", ran, *gm.struck("log", 0)[0])
ran = gm.run(FLIP, environment=gm.fault("open:1:0:delay=700,file:20:0:kill"))
gm.ok(ran.code == -9 and ran.seconds > 0.7, "a call is late; one kills", ran)
ran = gm.run(FLIP, environment=gm.fault("write:1+:0:short"))
gm.ok(ran.code == 0 and np.array_equal(gm.read("out.h5", "/A"), gm.read("in.h5", "/A")[::-1]), "short writes go on",
      ran)
ran = gm.run(FLIP, environment=gm.fault("malloc:1+", start="init", callers="nothing"))
gm.ok(ran.code == 0, "calls of others do not count", ran)
ran = gm.run("--version", environment=gm.fault("thing:1"))
gm.ok(ran.code == 99, "an unknown kind is refused", ran)
gm.done()
