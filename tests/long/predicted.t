#!/usr/bin/env -S python3 -B
"""The tables of docs/scaling.md, "Predicted", are those that this program predicts."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import gm

FOLDER = os.path.join(gm.SOURCE, "docs")
predicted = subprocess.run([sys.executable, "-B", os.path.join(FOLDER, "scaling/predict")],
                           env={**os.environ, "GPUMEM_RUN": gm.PROGRAM}, capture_output=True, text=True)
gm.ok(predicted.returncode == 0, "the machines are planned for", predicted.stderr)
with open(os.path.join(FOLDER, "scaling.md"), encoding="utf-8") as file:
    lines = set(file.read().splitlines())
rows = [line for line in predicted.stdout.splitlines() if line]
missing = [line for line in rows if line not in lines]
gm.ok(len(rows) > 40 and not missing, f"{len(rows)} lines are in docs/scaling.md", *missing)
gm.done()
