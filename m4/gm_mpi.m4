# GM_MPI: Open MPI. Sets MPI_CPPFLAGS, MPI_LIBS, MPIRUN, gm_mpi_version.
# Its compiler wrapper is asked for the flags and not used to compile, so that CC stays free.
AC_DEFUN([GM_MPI], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_ARG_VAR([MPICC], [Open MPI's compiler wrapper, asked for its flags])
AC_ARG_VAR([MPIRUN], [Open MPI's launcher, for the tests])
AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc])
gm_mpi_flags=no
AS_IF([test -n "$MPICC" && $MPICC --showme:version >/dev/null 2>&1],
    [MPI_CPPFLAGS=`$MPICC --showme:compile`
     MPI_LIBS=`$MPICC --showme:link`
     gm_mpi_flags=yes],
    [test -n "$PKG_CONFIG" && $PKG_CONFIG --exists ompi-c],
    [MPI_CPPFLAGS=`$PKG_CONFIG --cflags ompi-c`
     MPI_LIBS=`$PKG_CONFIG --libs ompi-c`
     gm_mpi_flags=yes])
AS_IF([test $gm_mpi_flags = no],
    [AC_MSG_ERROR([Open MPI is needed (mpicc on PATH, or MPICC=...); on Debian and Ubuntu: apt-get install libopenmpi-dev openmpi-bin])])
GM_TRY_LINK([Open MPI], [$MPI_CPPFLAGS], [$MPI_LIBS],
    [AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef OPEN_MPI
#error not Open MPI
#endif]], [[return MPI_Init(0, 0);]])],
    [],
    [AC_MSG_ERROR([the flags of ${MPICC:-pkg-config} do not link a program with Open MPI: see config.log])])
AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [`AS_DIRNAME(["${MPICC:-.}"])`$PATH_SEPARATOR$PATH])
AS_IF([test -z "$MPIRUN"],
    [AC_MSG_ERROR([Open MPI's mpirun is needed; on Debian and Ubuntu: apt-get install openmpi-bin])])
gm_mpi_version=`$MPIRUN --version 2>/dev/null | sed -n ['1s/.* \([0-9][0-9.]*\).*/\1/p']`
AC_SUBST([MPI_CPPFLAGS])
AC_SUBST([MPI_LIBS])
])
