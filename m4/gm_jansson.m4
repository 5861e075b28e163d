# GM_JANSSON: jansson, for reports in JSON. Sets JANSSON_CPPFLAGS, JANSSON_LIBS.
AC_DEFUN([GM_JANSSON], [
GM_LIBRARY([JANSSON], [jansson], [jansson], [-ljansson], [jansson.h], [json_dumpf], [libjansson-dev])
])
