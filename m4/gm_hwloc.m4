# GM_HWLOC: hwloc, for binding of ranks and memory to the hardware near a device. Sets HWLOC_CPPFLAGS, HWLOC_LIBS.
AC_DEFUN([GM_HWLOC], [
GM_LIBRARY([HWLOC], [hwloc], [hwloc], [-lhwloc], [hwloc.h], [hwloc_topology_init], [libhwloc-dev])
])
