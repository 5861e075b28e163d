# GM_OPENMP: OpenMP, for loops on the CPU. Sets OPENMP_CFLAGS.
AC_DEFUN([GM_OPENMP], [
AC_OPENMP
AS_IF([test "x$ac_cv_prog_c_openmp" = xunsupported || test "x$ac_cv_prog_c_openmp" = x],
    [AC_MSG_ERROR([OpenMP is needed and $CC has none; clang on Debian and Ubuntu: apt-get install libomp-dev])])
])
