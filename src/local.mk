# src/: the program. All of it but main() is a library, so that the tests can link it.
bin_PROGRAMS += src/gpumem-run
noinst_LIBRARIES += src/libgmsrc.a
GM_LIBS += src/libgmsrc.a

src_libgmsrc_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
src_libgmsrc_a_SOURCES = $(src_sources)

src_gpumem_run_SOURCES = src/main.c
src_gpumem_run_LDADD = $(GM_LIBS) $(GM_SYSTEM_LIBS)
