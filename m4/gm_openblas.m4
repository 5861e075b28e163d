# GM_OPENBLAS: OpenBLAS, for products on the CPU. Another BLAS will not do: the number of its threads must be ours to set.
# Sets OPENBLAS_CPPFLAGS, OPENBLAS_LIBS.
AC_DEFUN([GM_OPENBLAS], [
GM_LIBRARY([OPENBLAS], [OpenBLAS], [openblas], [-lopenblas], [cblas.h], [openblas_set_num_threads], [libopenblas-dev])
])
