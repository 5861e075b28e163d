# base/: the ground floor, plain C11.
noinst_LIBRARIES += base/libgmbase.a
GM_LIBS += base/libgmbase.a

base_libgmbase_a_SOURCES = \
	base/both.h \
	base/clock.h \
	base/device.h \
	base/dtype.c \
	base/dtype.h \
	base/dtypes.def \
	base/log.c \
	base/log.h \
	base/measure.h \
	base/memory.c \
	base/memory.h \
	base/precision.c \
	base/precision.h \
	base/precisions.def \
	base/random.c \
	base/random.h \
	base/size.c \
	base/size.h \
	base/statistics.c \
	base/statistics.h \
	base/status.c \
	base/status.def \
	base/status.h \
	base/wide.c \
	base/wide.h
