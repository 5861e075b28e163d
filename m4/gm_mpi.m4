# GM_MPI: MPI 3, Open MPI or MPICH (and what is made of them: Intel MPI, MVAPICH). Sets MPI_CPPFLAGS, MPI_LIBS, MPIRUN,
# MPI_FAMILY (openmpi, mpich, other), gm_mpi_name. The compiler wrapper is asked for the flags and not used to compile,
# so that CC stays free.
AC_DEFUN([GM_MPI], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_REQUIRE([AC_PROG_CPP])
AC_REQUIRE([AC_PROG_SED])
AC_ARG_VAR([MPICC], [MPI's compiler wrapper, asked for its flags; MPICC=mpicc.mpich selects MPICH on Debian])
AC_ARG_VAR([MPIRUN], [MPI's launcher, for the tests])
AC_CHECK_PROGS([MPICC], [mpicc.openmpi mpicc mpicc.mpich mpiicc])
AS_IF([test -n "$MPICC" && ! command -v $MPICC >/dev/null],
    [AC_MSG_ERROR([MPICC=$MPICC: there is no such command])])
gm_mpi_flags=no
AS_IF([test -n "$MPICC" && $MPICC --showme:version >/dev/null 2>&1],
    [MPI_CPPFLAGS=`$MPICC --showme:compile`
     MPI_LIBS=`$MPICC --showme:link`
     gm_mpi_flags=yes],
    [test -n "$MPICC" && gm_words=`$MPICC -show 2>/dev/null`],
    [gm_mpi_read_words],
    [gm_mpi_search([ompi-c mpich])])
AS_IF([test $gm_mpi_flags = no],
    [AC_MSG_ERROR([MPI is needed (mpicc on PATH, or MPICC=...); on Debian and Ubuntu: apt-get install libopenmpi-dev openmpi-bin])])
GM_TRY_LINK([MPI 3], [$MPI_CPPFLAGS], [$MPI_LIBS],
    [AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error too old
#endif]], [[return MPI_Init(0, 0);]])],
    [],
    [AC_MSG_ERROR([the flags of ${MPICC:-pkg-config} do not link a program with MPI 3: see config.log])])
gm_mpi_identify
gm_mpi_launcher
AC_SUBST([MPI_CPPFLAGS])
AC_SUBST([MPI_LIBS])
AC_SUBST([MPI_FAMILY])
])

# The command that the wrapper would run: its options for the preprocessor, and those for the linker.
m4_define([gm_mpi_read_words], [
for gm_word in $gm_words; do
    AS_CASE([$gm_word],
        [-I*|-D*], [MPI_CPPFLAGS="$MPI_CPPFLAGS $gm_word"],
        [-L*|-l*|-Wl,*|*.so|*.a], [MPI_LIBS="$MPI_LIBS $gm_word"])
done
gm_mpi_flags=yes
])

m4_define([gm_mpi_search], [
for gm_module in $1; do
    AS_IF([test $gm_mpi_flags = no && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $gm_module],
        [MPI_CPPFLAGS=`$PKG_CONFIG --cflags $gm_module`
         MPI_LIBS=`$PKG_CONFIG --libs $gm_module`
         gm_mpi_flags=yes])
done
])

# What <mpi.h> says of itself: "openmpi 4.1.4", "mpich 4.0.2"; without such words "other".
m4_define([gm_mpi_identify], [
AC_MSG_CHECKING([which MPI])
cat >conftest_mpi.c <<GM_EOF
#include <mpi.h>
#if defined(OPEN_MPI)
gm_mpi openmpi OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(MPICH_VERSION)
gm_mpi mpich MPICH_VERSION
#else
gm_mpi other MPI_VERSION.MPI_SUBVERSION
#endif
GM_EOF
gm_words=`$CPP $CPPFLAGS $MPI_CPPFLAGS conftest_mpi.c 2>&AS_MESSAGE_LOG_FD | $SED -n 's/["]//g; s/^gm_mpi //p' | tr -d '\r'`
rm -f conftest_mpi.c
MPI_FAMILY=`AS_ECHO(["$gm_words"]) | $SED 's/ .*//'`
gm_mpi_number=`AS_ECHO(["$gm_words"]) | $SED 's/^[[a-z]]* //; s/ //g'`
AS_CASE([$MPI_FAMILY],
    [openmpi], [gm_mpi_name="Open MPI $gm_mpi_number"],
    [mpich], [gm_mpi_name="MPICH $gm_mpi_number"],
    [gm_mpi_name="another MPI, by the standard $gm_mpi_number"])
AC_MSG_RESULT([$gm_mpi_name])
])

# The launcher that lies beside the wrapper and has its suffix (mpicc.mpich, mpirun.mpich). One of another MPI would
# start each rank alone, so it must say that it is the one of this MPI.
m4_define([gm_mpi_launcher], [
gm_suffix=`AS_ECHO(["$MPICC"]) | $SED -n ['s/.*mpii*cc\([^/]*\)$/\1/p']`
AS_IF([test -n "$MPICC"],
    [gm_path=`command -v $MPICC`
     gm_path=`AS_DIRNAME(["$gm_path"])`$PATH_SEPARATOR$PATH],
    [gm_path=$PATH])
AS_IF([test -n "$MPIRUN"], [MPIRUN=`command -v $MPIRUN`])
AC_PATH_PROGS([MPIRUN], [mpirun$gm_suffix mpiexec$gm_suffix mpirun.$MPI_FAMILY mpirun mpiexec], [], [$gm_path])
AS_IF([test -z "$MPIRUN"],
    [AC_MSG_ERROR([mpirun is needed; on Debian and Ubuntu: apt-get install openmpi-bin])])
gm_words=`$MPIRUN --version 2>/dev/null`
AS_CASE([$MPI_FAMILY:$gm_words],
    [openmpi:*HYDRA*|mpich:*"Open MPI"*|mpich:*OpenRTE*|mpich:*PRRTE*|mpich:*prte*],
    [AC_MSG_ERROR([$MPIRUN does not belong to $gm_mpi_name of ${MPICC:-pkg-config}: MPIRUN=... names its launcher])])
])
