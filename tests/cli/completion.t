#!/usr/bin/env -S python3 -B
"""Completion for bash and zsh: what the tables of the command line and the help of the program say, both of them in
full."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import gm

FOLDER = os.path.join(os.path.dirname(os.path.dirname(gm.PROGRAM)), "packages/completion")
if not os.path.exists(f"{FOLDER}/gpumem-run"):
    gm.skip_all("not made in this build")
os.mkdir("sub")
for name in ("data.h5", "with space.h5"):
    with open(name, "w") as file:
        file.write("x")
FILES = {"data.h5", "with space.h5", "sub", "queries"}


def options_of(operation):
    """{--name or -o: metavar or ""} by the help: a metavar is in capitals or has a "|"."""
    options = {}
    for line in gm.run(f"{operation} --help").out.split("Options", 1)[1].split("Exit codes")[0].splitlines():
        row = re.match(r"  (?:(-\w), |    )--([\w-]+)(?: (\S+))?", line)
        if row:
            metavar = row[3] if row[3] and line[row.end(2)] == " " and line[row.end(2) + 1] != " " else ""
            options |= {name: metavar for name in (row[1], f"--{row[2]}") if name}
    return options


OPERATIONS = re.findall(r"^  (\w+) ", gm.run("--help").out.split("Operations:")[1].split("Options")[0], re.M)
TESTS = re.findall(r"^([a-z]+) +(?! |\(operation\))", gm.run("bench --list").out, re.M)
OPTIONS = {operation: options_of(operation) for operation in OPERATIONS}
gm.ok(len(OPERATIONS) >= 10, f"{len(OPERATIONS)} operations by the help")
gm.ok(len(TESTS) > 20 and "scaling" in TESTS and "global" in TESTS, f"{len(TESTS)} tests by bench --list", TESTS)
usage = gm.run("bench --help").out.split("measure")[0].splitlines()
gm.ok([line.split("[OPTION]... ")[-1]
       for line in usage] == ["[TEST [FILE]]...", "compare OLD NEW", "plot RESULTS [TEST]... --plot FILE"]
      and all(" gpumem-run bench [OPTION]... " in line for line in usage), "a line of usage for each form of bench",
      *usage)


def of_value(metavar):
    """The words that complete a value of this metavar; None: there are none."""
    if "|" in metavar:
        return set(metavar.split("|"))
    if "FOLDER" in metavar:
        return {"sub"}
    return FILES if "FILE" in metavar or "DATASET" in metavar else set()


# Each query: its name, the words up to the cursor, the completions.
queries = [("an operation", ["gpumem-run", ""], set(OPERATIONS)), ("its begin", ["gpumem-run", "no"], {"normalize"}),
           ("an operation after an option", ["gpumem-run", "-q", "fl"], {"flip"}),
           ("an operation after a value", ["gpumem-run", "--report", "r.json", "fl"], {"flip"}),
           ("all options", ["gpumem-run", "-"], {name for options in OPTIONS.values() for name in options}),
           ("the first word of gen", ["gpumem-run", "gen", ""], {"matrices", "stack"}),
           ("the second word of gen", ["gpumem-run", "gen", "stack", ""], FILES),
           ("a file", ["gpumem-run", "reduce", "da"], {"data.h5"}),
           ("a file with a space", ["gpumem-run", "reduce", "wi"], {"with space.h5"}),
           ("the second file", ["gpumem-run", "matmul", "data.h5", "--panels", "read", ""], FILES),
           ("a test", ["gpumem-run", "bench", ""], {*TESTS, "compare", "plot"}),
           ("another test", ["gpumem-run", "bench", "copy", ""], set(TESTS)),
           ("a test after a test", ["gpumem-run", "bench", "copy", "ma"], {"matmul", "math"}),
           ("a file of a test", ["gpumem-run", "bench", "file", "da"], {"data.h5"}),
           ("a word of a test", ["gpumem-run", "bench", "scaling", ""], {"matmul"}),
           ("a form: bench compare", ["gpumem-run", "bench", "comp"], {"compare"}),
           ("files of bench compare", ["gpumem-run", "bench", "compare", ""], FILES),
           ("files of bench compare, the second", ["gpumem-run", "bench", "compare", "data.h5", ""], FILES),
           ("files of bench plot", ["gpumem-run", "bench", "plot", ""], FILES),
           ("tests of bench plot: test", ["gpumem-run", "bench", "plot", "data.h5", ""], set(TESTS)),
           ("after a test of bench plot: test", ["gpumem-run", "bench", "plot", "data.h5", "file", ""], set(TESTS)),
           ("no operation of this name", ["gpumem-run", "mutliply", "--"], set()),
           ("nothing begins so", ["gpumem-run", "reduce", "--qqq"], set()),
           ("a value after =", ["gpumem-run", "matmul", "--panels", "=", "ex"], {"exchange"}),
           ("all values after =", ["gpumem-run", "matmul", "--panels", "="], {"auto", "read", "exchange"})]
for operation, options in OPTIONS.items():
    queries += [(f"options of {operation}", ["gpumem-run", operation, "-"], set(options))]
    queries += [(f"{operation} {name} {metavar}", ["gpumem-run", operation, name, ""], of_value(metavar)) for name,
                metavar in options.items() if metavar]

# bash: all of them by one shell.
SCRIPT = r"""
. "$1/gpumem-run" || exit
compopt() { :; }
while IFS= read -r line; do
    IFS=$'\x1f' read -r -a COMP_WORDS <<<"$line."
    last=$((${#COMP_WORDS[@]} - 1))
    COMP_WORDS[last]=${COMP_WORDS[last]%.}
    COMP_CWORD=$last
    _gpumem_run
    (IFS=$'\x1f'; printf '%s\n' "${COMPREPLY[*]}")
done <queries
"""
with open("queries", "w") as file:
    file.writelines("\x1f".join(words) + "\n" for _, words, _ in queries)
ran = subprocess.run(["bash", "--norc", "-c", SCRIPT, "bash", FOLDER], stdin=subprocess.DEVNULL, capture_output=True,
                     text=True, timeout=120)
answers = ran.stdout.split("\n")[:-1]
gm.ok(ran.returncode == 0 and not ran.stderr and len(answers) == len(queries), "bash answers", ran.stderr, len(answers))
wrong = [(name, sorted(want), answer) for (name, _, want), answer in zip(queries, answers)
         if set(answer.split("\x1f")) - {""} != want]
gm.ok(not wrong, f"bash: {len(queries)} completions, of {sum(map(len, OPTIONS.values()))} options", *wrong[:10])
registered = subprocess.run(["bash", "--norc", "-c", '. "$0/gpumem-run"; complete -p gpumem-run', FOLDER],
                            capture_output=True, text=True)
gm.ok("-F _gpumem_run gpumem-run" in registered.stdout, "bash: of the program", registered)

# zsh: what the function gives to _arguments, for every operation; then a terminal.
MOCK = r"""
_arguments() { for spec in "$@"; do print -r -- "$spec"; done; _gpumem_run_operand; }
_describe() { for word in "${(@P)2}"; do print -r -- "word ${word%%:*}"; done; }
_files() { print files; }
compadd() { shift; for word in "$@"; do print -r -- "word $word"; done; }
words=(gpumem-run "${@:2}")
CURRENT=$#words
. $1/_gpumem-run
"""


def zsh(*words):
    mocked = subprocess.run(["zsh", "-f", "-c", MOCK, "zsh", FOLDER, *words], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=60)
    return mocked.stdout.splitlines(), mocked.stderr


def on_terminal(line, want):
    """The line that zsh makes of one that ends with a tab, once it holds what is wanted."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "dumb", "PS1": "> ", "ZDOTDIR": os.getcwd()}
        os.execvp("zsh", ["zsh", "-f", "-i"])
    os.write(terminal, f"fpath=({FOLDER} $fpath); autoload -Uz compinit; compinit -D -u; setopt no_beep; print "
                       f"re''ady\n".encode())
    output, line_there, until, is_sent = "", "", time.monotonic() + 60, False
    while time.monotonic() < until and want not in line_there:
        if select.select([terminal], [], [], 0.1)[0]:
            output += os.read(terminal, 4096).decode(errors="replace")
            line_there = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|.\x08|\r", "", output.partition("ready")[2])
        if not is_sent and "> " in line_there: # the prompt: zsh reads keys
            os.write(terminal, (line + "\t").encode())
            is_sent = True
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(terminal)
    return line_there


if not shutil.which("zsh"):
    gm.skip("zsh", "no zsh here")
    gm.done()
for operation, options in OPTIONS.items():
    out, errors = zsh(operation, "")
    specs = {re.match(r"--?[\w-]+", line)[0]: line for line in out if re.match(r"--?\w", line) and line != "-s"}
    actions = {name: spec.rsplit(":", 1)[1] if re.search(r"\]:", spec) else "" for name, spec in specs.items()}
    want = {name: f"({metavar.replace('|', ' ')})" if "|" in metavar else "_files -/" if "FOLDER" in metavar
            else "_files" if of_value(metavar) else " " if metavar else "" for name, metavar in options.items()}
    gm.ok(actions == want and not errors, f"zsh: options of {operation}", errors,
          {name: (actions.get(name), want.get(name)) for name in {*actions, *want}
           if actions.get(name) != want.get(name)})
for name, words, want in queries:
    if (name.split()[-1] in ("operation", "test") and name != "a file of a test"
            or name.startswith(("the first word", "the second word", "a word of", "a form", "files of"))):
        out, errors = zsh(*words[1:])
        found = {line[5:] for line in out if line.startswith("word ")}
        exact = found == want or words[-1] and found >= want
        gm.ok((exact if want != FILES else out[-1] == "files") and not errors, f"zsh: {name}", errors, out[-3:])
for line, want in (("gpumem-run norm", "gpumem-run normalize"), ("gpumem-run bench comp", "gpumem-run bench compare"),
                   ("gpumem-run matmul --panels ex", "--panels exchange"), ("gpumem-run reduce dat", "reduce data.h5")):
    seen = on_terminal(line, want)
    gm.ok(want in seen, f"zsh on a terminal: {line}", repr(seen))
gm.done()
