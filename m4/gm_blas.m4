# GM_BLAS: BLAS with its C interface, for products on the CPU. Sets BLAS_CPPFLAGS, BLAS_LIBS, gm_blas_name.
#
# Each call must take one thread (docs/design.md, promise 3), and OpenBLAS and BLIS have functions to say so. Another
# BLAS is taken on request only, and must have one thread by itself: the reference BLAS and serial ATLAS do.
AC_DEFUN([GM_BLAS], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_ARG_WITH([blas],
    [AS_HELP_STRING([--with-blas=NAME], [openblas, blis, or cblas: another one with <cblas.h> and without threads, as the reference BLAS;
        BLAS_LIBS says where @<:@default: openblas, else blis@:>@])],
    [], [with_blas="openblas blis"])
AC_ARG_VAR([BLAS_CPPFLAGS], [preprocessor flags for BLAS, instead of what pkg-config says])
AC_ARG_VAR([BLAS_LIBS], [linker flags for BLAS, instead of what pkg-config says])
gm_blas_name=
for gm_blas in $with_blas; do
    AS_IF([test -n "$gm_blas_name"], [break])
    AS_CASE([$gm_blas],
        [openblas], [gm_blas_try([openblas], [OpenBLAS], [openblas], [-lopenblas], [openblas_set_num_threads(1)])],
        [blis], [gm_blas_try([blis], [BLIS], [blis blis-mt], [-lblis], [f77_int one = 1; bli_thread_set_num_threads(one)])],
        [cblas], [gm_blas_try([cblas], [BLAS with CBLAS], [blas-netlib], [-lcblas -lblas], [])
            gm_blas_check_threads],
        [AC_MSG_ERROR([--with-blas=$gm_blas: expected openblas, blis or cblas])])
done
AS_IF([test -z "$gm_blas_name"],
    [AC_MSG_ERROR([BLAS with <cblas.h> is needed ($with_blas; BLAS_CPPFLAGS and BLAS_LIBS say where); on Debian and Ubuntu: apt-get install libopenblas-dev])])
AC_SUBST([BLAS_CPPFLAGS])
AC_SUBST([BLAS_LIBS])
])

# OpenBLAS under the name of libblas, as Debian's alternatives have it, would take the threads that it likes.
m4_define([gm_blas_check_threads], [
AS_IF([test -n "$gm_blas_name"],
    [GM_TRY_LINK([threads of OpenBLAS in $BLAS_LIBS], [$BLAS_CPPFLAGS], [$BLAS_LIBS],
        [AC_LANG_SOURCE([[void openblas_set_num_threads(int n);
int main(void) { openblas_set_num_threads(1); return 0; }]])],
        [AC_MSG_ERROR([BLAS_LIBS=$BLAS_LIBS is OpenBLAS: --with-blas=openblas])])
     GM_TRY_LINK([threads of BLIS in $BLAS_LIBS], [$BLAS_CPPFLAGS], [$BLAS_LIBS],
        [AC_LANG_SOURCE([[void bli_thread_set_num_threads(long n);
int main(void) { bli_thread_set_num_threads(1); return 0; }]])],
        [AC_MSG_ERROR([BLAS_LIBS=$BLAS_LIBS is BLIS: --with-blas=blis])])])
])

# gm_blas_try(ID, NAME, PKG-CONFIG MODULES, LINKER FLAGS, STATEMENT): BLAS_CPPFLAGS and BLAS_LIBS of the user, else
# those of the first module, else the flags. A product and STATEMENT must link.
m4_define([gm_blas_try], [
gm_cppflags=$BLAS_CPPFLAGS
gm_libs=$BLAS_LIBS
for gm_module in $3; do
    AS_IF([test -z "$gm_libs" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $gm_module],
        [gm_cppflags="$gm_cppflags `$PKG_CONFIG --cflags $gm_module`"
         gm_libs=`$PKG_CONFIG --libs $gm_module`])
done
AS_IF([test -z "$gm_libs"], [gm_libs="$4"])
GM_TRY_LINK([$2], [$gm_cppflags], [$gm_libs],
    [AC_LANG_PROGRAM([[#include <cblas.h>
#define GM_BLAS_$1
#ifdef GM_BLAS_blis
#include <blis.h>
#endif]],
    [[float x = 1;
cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);
$5;]])],
    [# The headers of BLIS hold functions, with warnings of their own.
     BLAS_CPPFLAGS=`AS_ECHO(["$gm_cppflags"]) | $SED 's/-I */-isystem /g'`
     BLAS_LIBS=$gm_libs
     gm_blas_name="$2"
     gm_blas_id=$1
     AC_DEFINE([GM_BLAS_]m4_toupper([$1]), [1], [Define to 1 if BLAS is $2.])])
])
