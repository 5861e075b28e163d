# GM_LIBRARY(PREFIX, NAME, PKG-CONFIG MODULE, LINKER FLAG, HEADER, FUNCTION, DEBIAN PACKAGE)
#
# Finds a library that the program cannot do without: by pkg-config where it knows the module, else where the compiler
# looks by itself. PREFIX_CPPFLAGS and PREFIX_LIBS set by the user win. Either way FUNCTION must link.
AC_DEFUN([GM_LIBRARY], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_ARG_VAR([$1_CPPFLAGS], [preprocessor flags for $2, instead of what pkg-config says])
AC_ARG_VAR([$1_LIBS], [linker flags for $2, instead of what pkg-config says])
AS_IF([test -z "$$1_LIBS"],
    [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$3"],
        [$1_CPPFLAGS="$$1_CPPFLAGS `$PKG_CONFIG --cflags "$3"`"
         $1_LIBS=`$PKG_CONFIG --libs "$3"`
         gm_$1_version=`$PKG_CONFIG --modversion "$3"`],
        [$1_LIBS="$4"])])
GM_TRY_LINK([$2], [$$1_CPPFLAGS], [$$1_LIBS],
    [AC_LANG_PROGRAM([[#include <$5>]], [[return (int)(long)(void *)&$6;]])],
    [],
    [AC_MSG_ERROR([$2 ($6 of <$5>) is needed; on Debian and Ubuntu: apt-get install $7])])
])

# GM_TRY_LINK(WHAT, CPPFLAGS, LIBS, PROGRAM, IF GOOD, IF NOT): links PROGRAM with these flags, leaving the user's alone.
AC_DEFUN([GM_TRY_LINK], [
AC_MSG_CHECKING([for $1])
gm_save_CPPFLAGS=$CPPFLAGS
gm_save_LIBS=$LIBS
CPPFLAGS="$2 $CPPFLAGS"
LIBS="$3 $LIBS"
AC_LINK_IFELSE([$4], [gm_linked=yes], [gm_linked=no])
CPPFLAGS=$gm_save_CPPFLAGS
LIBS=$gm_save_LIBS
AC_MSG_RESULT([$gm_linked])
AS_IF([test $gm_linked = yes], [$5], [$6])
])
