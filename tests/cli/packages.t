#!/usr/bin/env -S python3 -B
"""Packages: one version everywhere, a recipe for Spack whose arguments configure knows, and a module file that
loads."""
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import types

import gm



def text(name):
    with open(os.path.join(gm.SOURCE, name)) as file:
        return file.read()


# --- One version ---

VERSION = re.search(r"AC_INIT\(\[gpumem\], \[(.*?)\]\)", text("configure.ac"))[1]
said = {"--version": gm.run("--version").out.split()[-1] if gm.run("--version").out.split() else "",
        "CITATION.cff": re.search(r"^version: (\S+)$", text("CITATION.cff"), re.M)[1],
        "CHANGELOG.md, its first": re.search(r"^## \[?(\d[\d.]*)", text("CHANGELOG.md"), re.M)[1],
        **{page: re.search(r'"gpumem (\S+)"', text(page))[1]
           for page in ("docs/gpumem-run.1", "docs/gpumem-job.1", "docs/gpumem-scaling.1")}}
gm.ok(set(said.values()) == {VERSION}, f"version {VERSION} everywhere", said)

# --- CITATION.cff: the keys that the format asks for; keys at the margin, one each ---

keys = re.findall(r"^([a-z-]+):", text("CITATION.cff"), re.M)
gm.ok({"cff-version", "message", "title", "authors"} <= set(keys) and len(keys) == len(set(keys))
      and "cff-version: 1.2.0\n" in text("CITATION.cff"), "CITATION.cff: what the format asks for", keys)
try:
    import yaml
    citation = yaml.safe_load(text("CITATION.cff"))
    gm.ok(all(author.get("name") or author.get("family-names") for author in citation["authors"])
          and isinstance(citation["title"], str), "CITATION.cff as YAML", citation)
except ImportError:
    gm.skip("CITATION.cff as YAML", "no Python module yaml")

# --- Spack: the recipe on a stand-in of what it imports ---


class Stand:
    """Answers to anything: spec["mpi"].mpicc, blas.libs.ld_flags, ..."""

    def __init__(self, **values):
        self.__dict__.update(values)


class Spec:
    def __init__(self, words, **variants):
        self.words, self.variants = words, {name: Stand(value=value) for name, value in variants.items()}

    def __getitem__(self, name):
        return Stand(name=name, prefix=f"/opt/{name}", mpicc="/opt/mpi/bin/mpicc",
                     libs=Stand(ld_flags=f"-L/opt/{name}/lib -l{name}"),
                     headers=Stand(include_flags=f"-I/opt/{name}/include"))

    def satisfies(self, word):
        return word in self.words


def recipe():
    """The class of package.py, and what it declares."""
    declared = {name: [] for name in ("license", "version", "variant", "depends_on")}

    def declare(name):
        return lambda *words, **settings: declared[name].append((words, settings))

    names = {"spack": {}, "spack.package": {name: declare(name) for name in declared} | {"Executable": Stand},
             "spack_repo": {}, "spack_repo.builtin": {}, "spack_repo.builtin.build_systems": {},
             "spack_repo.builtin.build_systems.autotools": {"AutotoolsPackage": type("AutotoolsPackage", (), {})},
             "spack_repo.builtin.build_systems.cuda": {"CudaPackage": type("CudaPackage", (), {})}}
    for name, members in names.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(members)
    place = os.path.join(gm.SOURCE, "packages/spack/spack_repo/gpumem/packages/gpumem/package.py")
    spec = importlib.util.spec_from_file_location("recipe", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, declared


module, declared = recipe()
gm.ok(os.path.samefile(module.CLONE, gm.SOURCE), "Spack: the clone that the recipe builds", module.CLONE)
wanted = {words[0].split("@")[0].split("+")[0] for words, _ in declared["depends_on"]}
gm.ok({"mpi", "hdf5", "hwloc", "jansson", "libdeflate", "openblas", "blis", "cuda", "gnuplot"} <= wanted,
      "Spack: what it depends on", wanted)
configure = os.path.join(gm.SOURCE, "configure")
known = subprocess.run([configure, "--help"], capture_output=True,
                       text=True).stdout if os.path.exists(configure) else ""
CASES = [("on CPUs", Spec("", blas="openblas", cuda_arch=("none",)), ["--without-cuda", "--with-blas=openblas"]),
         ("by BLIS", Spec("", blas="blis", cuda_arch=("none",)),
          ["--with-blas=blis", "BLAS_LIBS=-L/opt/blis/lib -lblis"]),
         ("on GPUs", Spec("+cuda", blas="openblas", cuda_arch=("none",)), ["--with-cuda=/opt/cuda"]),
         ("on certain GPUs", Spec("+cuda", blas="openblas", cuda_arch=("80", "90a")),
          ["--with-cuda=/opt/cuda", "--with-cuda-arch=80,90a"])]
for name, spec, want in CASES:
    package = module.Gpumem()
    package.spec = spec
    arguments = package.configure_args()
    unknown = [word for word in arguments
               if not re.search(rf"^ +{re.escape(re.sub('^--without', '--with', word.split('=')[0]))}\b", known,
                                re.M)] if known else []
    gm.ok(set(want) <= set(arguments) and not unknown and ("--without-cuda" in arguments) != bool(spec.words),
          f"Spack: {name}", arguments, unknown)

# --- The module file ---

modulefile = os.path.join(gm.BUILD, "packages/module", VERSION)
command = next(iter(glob.glob("/usr/lib/*/modulecmd.tcl") + glob.glob("/usr/lib/modulecmd.tcl")
                    + glob.glob("/usr/share/Modules/libexec/modulecmd.tcl")), None)
if not os.path.exists(modulefile):
    gm.skip("the module file", "not made in this build")
elif not command or not shutil.which("tclsh"):
    gm.skip("the module file", "no Environment Modules here")
else:
    os.makedirs("modules/gpumem")
    shutil.copy(modulefile, "modules/gpumem")
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("MODULE", "LOADEDMODULES", "__MODULES"))}
    clean["MODULEPATH"] = os.path.abspath("modules")
    root = re.search(r"setenv GPUMEM_ROOT \{(.+)\}", open(modulefile).read())[1]
    # that would stay where it is
    clean["PATH"] = ":".join(folder for folder in clean["PATH"].split(":") if folder != f"{root}/bin")
    ran = subprocess.run(["tclsh", command, "sh", "load", "gpumem"], capture_output=True, text=True, env=clean)
    found = subprocess.run(["sh", "-c", ran.stdout + '\necho "$PATH|$GPUMEM_ROOT|$LOADEDMODULES"'], capture_output=True,
                           text=True, env=clean).stdout
    gm.ok(ran.returncode == 0 and not ran.stderr and found.startswith(f"{root}/bin:")
          and f"|{root}|gpumem/{VERSION}" in found, "the module loads", ran, found)
    ran = subprocess.run(["tclsh", command, "sh", "help", "gpumem"], capture_output=True, text=True, env=clean)
    gm.ok("gpumem-run" in ran.stderr and "@" not in ran.stderr, "and helps", ran)
    with open("modules/gpumem/0.0.1", "w") as file:
        file.write("#%Module1.0\nthis is no command\n")
    ran = subprocess.run(["tclsh", command, "sh", "load", "gpumem/0.0.1"], capture_output=True, text=True, env=clean)
    gm.ok("this" in ran.stderr, "a damaged one is found out", ran)
gm.done()
