"""The recipe of gpumem for Spack 1.0 or newer. The repository that holds it is part of a clone, which is what it
builds:

    spack repo add packages/spack/spack_repo/gpumem
    spack install gpumem +cuda cuda_arch=90a
"""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *

CLONE = os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), *[os.pardir] * 6))


class Gpumem(AutotoolsPackage, CudaPackage):
    """gpumem-run multiplies matrices in HDF5 files, computes statistics of datasets and normalizes image stacks: on
    GPUs or CPUs, on many hosts under MPI, with files that are larger than memory."""

    homepage = "file://" + CLONE
    git = "file://" + CLONE

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("blas", default="openblas", values=("openblas", "blis"), multi=False, description="products on the CPU")
    variant("plot", default=False, description="gnuplot, for pictures of benchmarks")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.15:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi@3:")
    depends_on("hdf5@1.10.3:")
    depends_on("hwloc@2:")
    depends_on("jansson")
    depends_on("libdeflate")
    depends_on("openblas", when="blas=openblas")
    depends_on("blis+cblas", when="blas=blis")
    depends_on("cuda@12:", when="+cuda")
    depends_on("gnuplot", type="run", when="+plot")

    def autoreconf(self, spec, prefix):
        Executable(os.path.join(self.stage.source_path, "autogen.sh"))()

    def configure_args(self):
        blas = self.spec[self.spec.variants["blas"].value]
        args = [
            f"MPICC={self.spec['mpi'].mpicc}",
            f"--with-hdf5={self.spec['hdf5'].prefix}",
            f"--with-blas={blas.name}",
            f"BLAS_CPPFLAGS={blas.headers.include_flags}",
            f"BLAS_LIBS={blas.libs.ld_flags}",
        ]
        if not self.spec.satisfies("+cuda"):
            return args + ["--without-cuda"]
        args.append(f"--with-cuda={self.spec['cuda'].prefix}")
        architectures = [arch for arch in self.spec.variants["cuda_arch"].value if arch != "none"]
        if architectures:
            args.append("--with-cuda-arch=" + ",".join(architectures))
        return args
