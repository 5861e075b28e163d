#!/usr/bin/env -S python3 -B
"""Kernels are what their rows of bench say: the instructions that a row is about are in its machine code, as often as
its loop has them."""
import collections
import re
import shutil
import subprocess

import gm

# The instructions of a product whose parameter is too long: its registers spill.
LOCAL = tuple(f"{one}{width}" for one in ("LDL", "STL") for width in ("", ".64", ".128"))
# Kernel, instructions and their numbers (None: some), instructions that must not be there.
KERNELS = [*((f"_Z10read_wordsILi{width}EEvjjiPj", {load: 16}, ()) for width,
             load in ((1, "LDS.U8"), (2, "LDS.U16"), (4, "LDS"), (8, "LDS.64"), (16, "LDS.128"))),
           *((f"_Z4walkI{kind}L13gm_walk_order0EEvPKT_PS{other}_jjjj", {f"LDG.E{width}": 1, f"STG.E{width}": 1}, ())
             for kind, other, width in (("h", 1, ".U8"), ("t", 1, ".U16"), ("j", 1, ""), ("f", 1, ""), ("d", 1, ".64"),
                                        ("5uint4", 2, ".128"))),
           ("_Z14transpose_tileILi0EEvPKjPjl", {"STS": 4, "LDS": 4}, ()),
           ("_Z15transpose_naivePKjPjl", {"LDG.E": 4, "STG.E": 4}, ("STS", "LDS")),
           *((f"_Z12swap_alignedI{kind}Ev7swap_of", {"LDG.E.128.CONSTANT": None, "LDS.128": None, "STG.E.128": None},
              ("LDG.E", "STG.E")) for kind in "htjm"),
           ("_Z11visit_itemsI14all_of_structsI6fieldsEEvPKvPvl", {"LDG.E": 8, "STG.E": 8}, ("LDG.E.128",)),
           ("_Z11visit_itemsI14all_of_structsI14aligned_fieldsEEvPKvPvl", {"LDG.E.128": 2, "STG.E.128": 2}, ("LDG.E",)),
           ("_Z14lengths_stagedPK6float4Pf", {"LDG.E.128": 3, "STS.128": 3, "LDS": 12}, ("LDG.E",)),
           ("_Z4loadILb0ELb0EEvPKjPjlll", {"LDG.E.STRONG.SM": 8}, ("LDG.E.STRONG.GPU",)),
           ("_Z4loadILb1ELb0EEvPKjPjlll", {"LDG.E.STRONG.GPU": 8}, ("LDG.E.STRONG.SM",)),
           ("_Z8add_eachIjEvPKjljPT_S3_", {"REDG.E.ADD.STRONG.GPU": 1}, ("REDUX.SUM", "ATOMS.ADD")),
           ("_Z9add_warpsPKjljPjS1_", {"REDUX.SUM": 1, "REDG.E.ADD.STRONG.GPU": 1}, ()),
           ("_Z10read_localPK5uint4Pjil", {"STL.128": 16, "LDL.128": None}, ()),
           ("_Z13follow_shared13gm_chase_call", {"LDS": None}, ("LDL",)),
           ("_Z6chainsI3FmaEvPKNT_4typeEPS2_llS2_S2_", {"FFMA": None}, ("FMUL",)),
           ("_Z6chainsI7FastSinEvPKNT_4typeEPS2_llS2_S2_", {"MUFU.SIN": None}, ()),
           ("_Z6chainsI7FastExpEvPKNT_4typeEPS2_llS2_S2_", {"MUFU.EX2": None}, ()),
           *((f"_Z17multiply_matricesI{operand}Lb{batch}ELb{a}ELb{b}EEv11kernel_call", {instruction: None}, LOCAL)
             for operand, instruction in (("Li2ELi64E", "FFMA"), ("Li1ELi64E", "FFMA"), ("Li2ELi32E", "FFMA"),
                                          *((f"5shapeI{one}{rows}Li{columns}ELi64ELi32EE", "DMMA.16") for one,
                                            columns in (("d", 4), ("f", 2)) for rows in ("Li2E", "Li1E")),
                                          *((f"5shapeI{one}{block}E", "DMMA.16") for one in "fd"
                                            for block in ("Li2ELi2ELi32ELi32E", "Li1ELi4ELi32ELi8E")))
             for batch in (0, 1) for a in (0, 1) for b in (0, 1)),
           *((f"_Z13multiply_leafI12hopper_shapeI{operand}Li1E{shape}EEv11hopper_work", {instruction: None}, LOCAL)
             for operand, instruction in (("9wgmma_f16", "HGMMA.64"), ("10wgmma_bf16", "HGMMA.64"),
                                          ("10wgmma_tf32", "HGMMA.64"),
                                          *((f"10wgmma_int8I{a}{b}E", "IGMMA.64") for a in "ah" for b in "ah"))
             for shape in ("Li2ELi256E", "Li1ELi128E", "Li1ELi64E")),
           *(("_Z16multiply_schemesI12hopper_shapeI9wgmma_f16Li2E"
              f"{shape}ES0_I10wgmma_bf16Li3E{shape}EEv11hopper_workS5_", {"HGMMA.64": None}, LOCAL)
             for shape in ("Li2ELi128E", "Li1ELi128E", "Li1ELi64E")),
           *((f"_Z15multiply_planesI{len(operand)}{operand}Li{planes}EEv10mma_planesS1_10plane_leaf",
              {instruction: 32 * terms, "LDSM.16.M88.4": None}, LOCAL) for operand, planes, terms,
             instruction in (("mma_f16", 2, 1.5, "HMMA.16816.F32"), ("mma_bf16", 3, 3, "HMMA.16816.F32.BF16"),
                             ("mma_f16", 1, 1, "HMMA.16816.F32"), ("mma_bf16", 1, 1, "HMMA.16816.F32.BF16"),
                             ("mma_tf32", 1, 1, "HMMA.1688.F32.TF32"))),
           *((f"_Z15multiply_planesI8mma_int8I{a}{b}ELi1EEv10mma_planesS2_10plane_leaf", {"IMMA.16832." + signs: 32},
              LOCAL) for a, b, signs in (("a", "a", "S8.S8"), ("a", "h", "S8.U8"), ("h", "a", "U8.S8"),
                                         ("h", "h", "U8.U8"))),
           *((f"_Z14multiply_unitsILb{beside}ELb{a}ELb{b}EEv11kernel_call8units_of", {"FFMA": None}, LOCAL)
             for beside in (0, 1) for a in (0, 1) for b in (0, 1)),
           ("_Z6chainsI6FmaF64EvPKNT_4typeEPS2_llS2_S2_", {"DFMA": None}, ()),]

tool = shutil.which("cuobjdump")
if not tool:
    gm.skip_all("no cuobjdump")
names = [name for name, *_ in KERNELS]
said = subprocess.run([tool, "-sass", "-fun", ",".join(names), gm.PROGRAM], capture_output=True, text=True)
found, architectures, kernel = collections.defaultdict(collections.Counter), set(), None
for line in said.stdout.splitlines():
    if match := re.search(r"arch = sm_(\d+)", line):
        architecture = match[1]
    elif match := re.search(r"Function : (\S+)", line):
        kernel = match[1]
    elif kernel and (match := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)", line)):
        found[architecture, kernel][match[1]] += 1
        architectures.add(architecture)
if "90" not in {one[:2] for one in architectures}:
    gm.skip_all("the program has no code for sm_90")
for name, wanted, unwanted in KERNELS:
    code = next((code for (architecture, kernel), code in found.items() if kernel == name and architecture[:2] == "90"),
                None)
    if gm.ok(code is not None, f"{name}: it is there"):
        gm.ok(all(code[one] == count if count else code[one] > 0 for one, count in wanted.items()),
              f"{name}: {' '.join(wanted)}", dict(code))
        gm.ok(not any(code[one] for one in unwanted), f"{name}: no {' '.join(unwanted) or '-'}", dict(code))
gm.done()
