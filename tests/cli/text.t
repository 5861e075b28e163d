#!/usr/bin/env -S python3 -B
"""Names may hold any bytes: messages and tables stay lines of printable text, JSON and attributes stay UTF-8, and
nothing is left out."""
import csv
import json
import os
import subprocess

import gm
from gm import h5py, np

# Bytes of a name, and how they are written on a line and in JSON.
NAMES = [(b"new\nline", "new\\nline", "new\nline"),
         (b"\x1b[31mred\x07\x7f", "\\x1b[31mred\\x07\\x7f", "\x1b[31mred\x07\x7f"),
         (b"bad\xff\xc3utf", "bad\\xff\\xc3utf", "bad\\xff\\xc3utf"),
         ("turn\u202e\u2066back\u2028".encode(), "turn\\xe2\\x80\\xae\\xe2\\x81\\xa6back\\xe2\\x80\\xa8",
          "turn\u202e\u2066back\u2028"), ("c1\x9bm".encode(), "c1\\xc2\\x9bm", "c1\x9bm"),
         ("caf\u00e9 \u20ac \U0001f600".encode(), "caf\u00e9 \u20ac \U0001f600", "caf\u00e9 \u20ac \U0001f600"),
         (b"quote\"' back\\slash", "quote\"' back\\\\slash", "quote\"' back\\slash"),
         (b"no\\newline \\x1b\x1b\\", "no\\\\newline \\\\x1b\\x1b\\\\", "no\\newline \\x1b\x1b\\"),]


def run(*arguments, ranks=1):
    """The program on words of bytes; its output as bytes."""
    command = [os.fsencode(word) for word in gm.command_line([], ranks)] + [os.fsencode(word) for word in arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def is_clean(output):
    """UTF-8, and nothing but newlines acts on a terminal."""
    text = output.decode("utf-8")
    return not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) <= 0x9f
                   or c in "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" for c in text)


def write(path, name):
    with h5py.File(path, "w") as file:
        file[name] = np.arange(12.0).reshape(3, 4)


for raw, line, plain in NAMES:
    title = ascii(raw)
    folder, file, dataset = b"dir" + raw, raw + b".h5", b"/g" + raw + b"/" + raw
    os.mkdir(folder)
    path = folder + b"/" + file
    write(path, dataset)

    ran = run("info", path)
    rows = ran.stdout.decode("utf-8").splitlines() if is_clean(ran.stdout) else []
    gm.ok(ran.returncode == 0 and len(rows) == 1 and rows[0].split("  ")[0] == f"/g{line}/{line}"
          and rows[0].endswith("3x4  contiguous"), f"{title}: info is a table", ran)
    for ranks in (1, 2):
        ran = run("reduce", path + b":/missing" + raw + b"[]", ranks=ranks)
        errors = [text for text in ran.stderr.split(b"\n") if text.startswith(gm.ERROR.encode())]
        gm.ok(ran.returncode == 3 and len(errors) == 1 and is_clean(errors[0])
              and f"dir{line}/{line}.h5:/missing{line}[]: no such dataset; it holds /g{line}/{line} (rank "
              in errors[0].decode(),
              f"{title}: a message is a line, {ranks} ranks", ran)

    report, output = b"r" + raw + b".json", b"out" + raw + b".h5"
    words = ["flip", path + b":" + dataset + b"[:,0:4]", "--axis", "0", "-o", output + b":/o" + raw + b"[]", "--report",
             report, "-q"]
    ran = run(*words)
    gm.ok(ran.returncode == 0 and not ran.stderr, f"{title}: flip", ran)
    try:
        with open(report, "rb") as text:
            found = json.loads(text.read().decode("utf-8"))
    except (OSError, ValueError) as error:
        gm.ok(False, f"{title}: the report is JSON", error)
        continue
    entry = found["inputs"][0]
    gm.ok(len(found["inputs"]) == 1 and entry["file"] == f"dir{plain}/{plain}.h5"
          and entry["dataset"] == f"/g{plain}/{plain}" and entry["selection"] == "[:,0:4]",
          f"{title}: the input in the report", entry)
    gm.ok(found["output"] and found["output"]["file"] == f"out{plain}.h5"
          and found["output"]["datasets"] == [f"/o{plain}"], f"{title}: the output", found["output"])
    gm.ok(len(found["command"]) == 1 + len(words)
          and found["command"][2] == f"dir{plain}/{plain}.h5:/g{plain}/{plain}[:,0:4]"
          and found["options"]["output"] == f"out{plain}.h5:/o{plain}[]"
          and found["options"]["report"] == f"r{plain}.json", f"{title}: the words of the command, the options",
          found["command"], found["options"])
    with h5py.File(output, "r") as made:
        attributes = dict(made[b"/o" + raw].attrs)
        gm.ok(attributes["inputs"] == f"dir{plain}/{plain}.h5:/g{plain}/{plain}[:,0:4]", f"{title}: attribute inputs",
              attributes)
        gm.ok(json.loads(attributes["options"]) == found["options"], f"{title}: attribute options",
              attributes["options"])
        told = subprocess.run(["bash", "-c", f"printf '%s\\0' {attributes['command']}"], capture_output=True)
        gm.ok(told.stdout.split(b"\0")[1:-1] == [os.fsencode(word) for word in words]
              and is_clean(attributes["command"].encode()), f"{title}: attribute command, as bash reads it",
              attributes["command"], told)

# A note, a warning, a refusal of the command line.
write("plain.h5", "d")
with h5py.File("plain.h5", "a") as file:
    file["d"].attrs[b"at\\\x1b\xff"] = file["d"].ref
ran = run("flip", "plain.h5:/d", "--axis", "0", "-o", "flipped.h5")
gm.ok(ran.returncode == 0 and is_clean(ran.stderr) and b"'at\\\\\\x1b\\xff'" in ran.stderr, "a name in a warning", ran)
ran = run(b"multi\nply", "plain.h5")
gm.ok(ran.returncode == 2 and is_clean(ran.stderr) and b"no operation 'multi\\nply'" in ran.stderr,
      "a word of the command", ran)
ran = run("reduce", b"/" + 70 * "\u20ac".encode() + 5000 * b"x")
gm.ok(ran.returncode == 2 and is_clean(ran.stderr) and b"\\x" not in ran.stderr, "a name is cut between characters",
      ran)
ran = run("reduce", "\u20ac".encode() * 1000 + b"/" + "\u20ac".encode() * 80 + b".h5")
gm.ok(ran.returncode == 3 and is_clean(ran.stderr) and b"\\x" not in ran.stderr, "and so is a message", ran)

ran = run("flip", "plain.h5:/d", "--axis", "0", "-o", b"x" + "\u20ac".encode() * 1364)
gm.ok(ran.returncode == 4 and is_clean(ran.stderr) and b"\\x" not in ran.stderr,
      "the name of an output is cut between characters", ran)

# Names with brackets.
with h5py.File("brackets.h5", "w") as file:
    file["x[0] it=0"] = np.arange(6.0)
    file["grid[0]"] = np.arange(4.0)
for name, total in (("x[0] it=0", 15), ("x[0] it=0[2:]", 14), ("grid[0]", 6), ("grid[0][1:]", 6), ("grid[0][0]", 0)):
    ran = gm.run(["reduce", f"brackets.h5:/{name}", "--stat", "sum"])
    gm.ok(ran.code == 0 and ran.out == f"sum {total}\n", f"a dataset named {name}", ran)
for name, made in (("y[1] it=1", "y[1] it=1"), ("z[2][]", "z[2]")):
    ran = gm.run(["flip", "brackets.h5:/x[0] it=0", "--axis", "0", "-o", f"o{made}.h5:/{name}"])
    gm.ok(ran.code == 0 and list(gm.read(f"o{made}.h5", made)) == [5, 4, 3, 2, 1, 0], f"an output named {name}", ran)
for name in ("z[2]", "z[2"):
    ran = gm.run(["flip", "brackets.h5:/x[0] it=0", "--axis", "0", "-o", f"bad.h5:/{name}"])
    faults = gm.faults_of_refusal(ran, 2, r"\[\] after it makes it a part of the name")
    gm.ok(not faults, f"refused as an output: {name}", ran, *faults)

# bench: JSON and CSV.
name = b"b\xff\n"
ran = run("bench", "copy", "--shapes", "1M", "--device", "cpu", "--json", name + b".json", "--csv", name + b".csv")
with open(name + b".json", "rb") as text:
    found = json.loads(text.read().decode("utf-8"))
gm.ok(ran.returncode == 0 and found["command"][-1] == "b\\xff\n.csv", "bench --json", ran, found["command"])
with open(name + b".csv", newline="") as text:
    rows = list(csv.DictReader(text, strict=True))
gm.ok(len(rows) == len(found["rows"]) and rows[0]["test"] == "copy" and rows[0]["unit"] == found["rows"][0]["unit"],
      "bench --csv", rows[:1])
gm.done()
