# GM_PACKAGES: what packages/ says of this build: what it depends on by Debian's names, and its configuration. After the
# macros that find the libraries.
AC_DEFUN([GM_PACKAGES], [
AC_REQUIRE([GM_MPI])
AC_REQUIRE([GM_HDF5])
AC_REQUIRE([GM_BLAS])
AC_SUBST([MPI_NAME], [$gm_mpi_name])
AS_CASE([$MPI_FAMILY],
    [mpich], [DEB_MPI_DEV="libmpich-dev, mpich" DEB_MPI_BIN=mpich],
    [DEB_MPI_DEV="libopenmpi-dev, openmpi-bin" DEB_MPI_BIN=openmpi-bin])
AS_CASE([$gm_hdf5_flavour],
    [parallel], [DEB_HDF5_DEV=libhdf5-$MPI_FAMILY-dev],
    [DEB_HDF5_DEV=libhdf5-dev])
AS_CASE([$gm_blas_id],
    [blis], [DEB_BLAS_DEV=libblis-dev],
    [cblas], [DEB_BLAS_DEV=libblas-dev],
    [DEB_BLAS_DEV=libopenblas-dev])
DEB_CONFIGURE="MPICC='$MPICC' --with-hdf5=$gm_hdf5_flavour --with-blas=$gm_blas_id BLAS_CPPFLAGS='$BLAS_CPPFLAGS' BLAS_LIBS='$BLAS_LIBS'"
AS_IF([test -z "$gm_cuda_why"],
    [DEB_CONFIGURE="$DEB_CONFIGURE NVCC='$NVCC' NVCCFLAGS='$NVCCFLAGS' --with-cuda --with-cuda-arch=$with_cuda_arch"
     DEB_SECTION=contrib/science
     DEB_CUDA_WORDS="for CUDA GPUs ($with_cuda_arch) and CPUs"],
    [DEB_CONFIGURE="$DEB_CONFIGURE --without-cuda"
     DEB_SECTION=science
     DEB_CUDA_WORDS="without CUDA, for CPUs"])
AC_SUBST([DEB_MPI_DEV])
AC_SUBST([DEB_MPI_BIN])
AC_SUBST([DEB_HDF5_DEV])
AC_SUBST([DEB_BLAS_DEV])
AC_SUBST([DEB_CONFIGURE])
AC_SUBST([DEB_SECTION])
AC_SUBST([DEB_CUDA_WORDS])
])
