# base/: the ground floor, plain C11.
noinst_LIBRARIES += base/libgmbase.a
GM_LIBS += base/libgmbase.a

base_libgmbase_a_SOURCES = $(base_sources)
