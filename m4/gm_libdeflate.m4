# GM_LIBDEFLATE: libdeflate, for compressed chunks. Sets LIBDEFLATE_CPPFLAGS, LIBDEFLATE_LIBS.
AC_DEFUN([GM_LIBDEFLATE], [
GM_LIBRARY([LIBDEFLATE], [libdeflate], [libdeflate], [-ldeflate], [libdeflate.h], [libdeflate_zlib_decompress], [libdeflate-dev])
])
