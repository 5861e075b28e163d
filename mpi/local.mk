# mpi/: the ranks. The only folder that sees <mpi.h>.
noinst_LIBRARIES += mpi/libgmmpi.a
GM_LIBS += mpi/libgmmpi.a

mpi_libgmmpi_a_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) $(HWLOC_CPPFLAGS)
mpi_libgmmpi_a_SOURCES = $(mpi_sources)
