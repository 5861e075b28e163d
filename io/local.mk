# io/: HDF5 files. The only folder that sees <hdf5.h>.
noinst_LIBRARIES += io/libgmio.a
GM_LIBS += io/libgmio.a

io_libgmio_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CPPFLAGS) $(LIBDEFLATE_CPPFLAGS)
io_libgmio_a_SOURCES = \
	io/attributes.c \
	io/box.c \
	io/box.h \
	io/bytes.c \
	io/bytes.h \
	io/check.c \
	io/chunk_pool.c \
	io/chunk_pool.h \
	io/chunk_read.c \
	io/chunk_read.h \
	io/chunk_vfd.c \
	io/chunk_vfd.h \
	io/chunks.c \
	io/chunks.h \
	io/cold.c \
	io/cold.h \
	io/crew.c \
	io/crew.h \
	io/dataset.c \
	io/dataset.h \
	io/decode.c \
	io/decode.h \
	io/describe.c \
	io/describe.h \
	io/finish.c \
	io/h5.c \
	io/h5.h \
	io/inspect.h \
	io/list.c \
	io/mappings.c \
	io/mappings.h \
	io/name.c \
	io/output.c \
	io/output.h \
	io/pack.c \
	io/pack.h \
	io/parted.c \
	io/parts.c \
	io/reader.c \
	io/reader.h \
	io/rows.c \
	io/rows.h \
	io/scratch.h \
	io/select.c \
	io/select.h \
	io/space.c \
	io/storage.c \
	io/stripe_read.c \
	io/stripe_read.h \
	io/stripes.c \
	io/stripes.h \
	io/trial.c \
	io/trial.h \
	io/type.c \
	io/ways.c \
	io/write.c
