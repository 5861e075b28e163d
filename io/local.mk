# io/: HDF5 files. The only folder that sees <hdf5.h>.
noinst_LIBRARIES += io/libgmio.a
GM_LIBS += io/libgmio.a

io_libgmio_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CPPFLAGS) $(LIBDEFLATE_CPPFLAGS)
io_libgmio_a_SOURCES = $(io_sources)
