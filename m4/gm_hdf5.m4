# GM_HDF5: HDF5 1.10.3 or newer (H5Dread_chunk, H5Dwrite_chunk), serial or parallel: the program makes no parallel call.
# Sets HDF5_CPPFLAGS, HDF5_LIBS, gm_hdf5_version. The places, in order: --with-hdf5=DIR; the modules of pkg-config, or
# the one of --with-hdf5=serial or parallel; the compiler wrappers; the compiler's own folders. A parallel HDF5 brings
# its MPI: that of another MPI than ours is passed over.
AC_DEFUN([GM_HDF5], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_REQUIRE([GM_MPI])
AC_ARG_WITH([hdf5],
    [AS_HELP_STRING([--with-hdf5=DIR], [HDF5 below DIR/include and DIR/lib, or serial or parallel for a flavour of Debian @<:@default: by pkg-config, h5cc or h5pcc@:>@])],
    [], [with_hdf5=yes])
AS_CASE([$with_hdf5],
    [no], [AC_MSG_ERROR([HDF5 is needed: --without-hdf5 makes no sense])],
    [yes], [gm_hdf5_search([hdf5 hdf5-serial hdf5-$MPI_FAMILY])],
    [serial], [gm_hdf5_search([hdf5-serial])],
    [parallel], [gm_hdf5_search([hdf5-$MPI_FAMILY])],
    [HDF5_CPPFLAGS="-I$with_hdf5/include"
     HDF5_LIBS="-L$with_hdf5/lib -Wl,-rpath,$with_hdf5/lib -lhdf5"])

# The header of a parallel HDF5 includes <mpi.h>.
gm_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$HDF5_CPPFLAGS $MPI_CPPFLAGS $CPPFLAGS"
gm_hdf5_flavour=serial
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <H5pubconf.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif]])],
    [gm_hdf5_flavour=parallel
     HDF5_CPPFLAGS="$HDF5_CPPFLAGS $MPI_CPPFLAGS"
     HDF5_LIBS="$HDF5_LIBS $MPI_LIBS"])
CPPFLAGS=$gm_save_CPPFLAGS
AS_CASE([$with_hdf5:$gm_hdf5_flavour], [serial:parallel|parallel:serial],
    [AC_MSG_ERROR([--with-hdf5=$with_hdf5: only a $gm_hdf5_flavour HDF5 for $MPI_FAMILY was found])])

GM_TRY_LINK([HDF5 1.10.3 or newer], [$HDF5_CPPFLAGS], [$HDF5_LIBS],
    [AC_LANG_PROGRAM([[#include <hdf5.h>
#if !H5_VERSION_GE(1, 10, 3)
#error too old
#endif]], [[return H5open() < 0;]])],
    [],
    [AC_MSG_ERROR([HDF5 1.10.3 or newer is needed (--with-hdf5=DIR says where); on Debian and Ubuntu: apt-get install libhdf5-dev])])
AC_SUBST([HDF5_CPPFLAGS])
AC_SUBST([HDF5_LIBS])
])

m4_define([gm_hdf5_search], [
HDF5_CPPFLAGS=
HDF5_LIBS=
for gm_module in $1; do
    AS_IF([test -z "$HDF5_LIBS" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$gm_module >= 1.10.3"],
        [HDF5_CPPFLAGS=`$PKG_CONFIG --cflags $gm_module`
         HDF5_LIBS=`$PKG_CONFIG --libs $gm_module`
         AS_CASE([$MPI_FAMILY:$HDF5_LIBS], [openmpi:*mpich*|mpich:*openmpi*], [HDF5_CPPFLAGS= HDF5_LIBS=])])
done
AS_IF([test -z "$HDF5_LIBS"],
    [AC_PATH_PROGS([H5CC], [h5cc h5pcc])
     AS_IF([test -n "$H5CC"],
        [for gm_word in `$H5CC -shlib -show`; do
            AS_CASE([$gm_word],
                [-I*], [HDF5_CPPFLAGS="$HDF5_CPPFLAGS $gm_word"],
                [-L*|-Wl,*|-lhdf5], [HDF5_LIBS="$HDF5_LIBS $gm_word"])
         done],
        [HDF5_LIBS=-lhdf5])])
])
