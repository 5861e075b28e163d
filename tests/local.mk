# tests/: TAP. A compiled test is called by what it tests; one that runs under mpirun has the number of its ranks as an extension:
# tests/agree.np3. A script is called x.t. No two tests share a name before the extension: their logs would.
#
#   make check                                     all of them
#   make check TESTS='tests/size tests/agree.np3'  these
#   prove --exec tests/launch tests/*.np* ../tests/cli/*.t   the same with prove, in the build folder after make check TESTS=
#   make check-long                                the compiled ones under valgrind, and tests/long/*.t

GM_TESTS = \
	tests/kernels_finish \
	tests/kernels_probe \
	tests/kernels_product \
	tests/kernels_unpack

GM_TESTS_SHELL = \
	tests/layering.t

GM_TESTS_LONG =

TESTS += $(GM_TESTS) $(GM_TESTS_SHELL)
check_PROGRAMS += $(GM_TESTS)
check_LIBRARIES = tests/libtap.a
dist_check_SCRIPTS = $(GM_TESTS_SHELL) $(GM_TESTS_LONG)
EXTRA_DIST += tests/valgrind.supp

tests_libtap_a_SOURCES = \
	tests/tap.c \
	tests/tap.h

# Every program but src/gpumem-run is a test.
LDADD = tests/libtap.a $(GM_LIBS) $(GM_SYSTEM_LIBS)

tests_kernels_finish_SOURCES = tests/kernels_finish.c tests/kernels_each.h
tests_kernels_probe_SOURCES = tests/kernels_probe.c tests/kernels_each.h
tests_kernels_product_SOURCES = tests/kernels_product.c tests/kernels_each.h
tests_kernels_unpack_SOURCES = tests/kernels_unpack.c tests/kernels_each.h

# tests/launch starts a test with as many ranks as its extension says, in an environment of its own and under a time limit.
TEST_EXTENSIONS = .t .np1 .np2 .np3 .np4 .np5 .np8
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(LOG_DRIVER)
NP1_LOG_DRIVER = $(LOG_DRIVER)
NP2_LOG_DRIVER = $(LOG_DRIVER)
NP3_LOG_DRIVER = $(LOG_DRIVER)
NP4_LOG_DRIVER = $(LOG_DRIVER)
NP5_LOG_DRIVER = $(LOG_DRIVER)
NP8_LOG_DRIVER = $(LOG_DRIVER)
LOG_COMPILER = tests/launch
T_LOG_COMPILER = $(LOG_COMPILER)
NP1_LOG_COMPILER = $(LOG_COMPILER)
NP2_LOG_COMPILER = $(LOG_COMPILER)
NP3_LOG_COMPILER = $(LOG_COMPILER)
NP4_LOG_COMPILER = $(LOG_COMPILER)
NP5_LOG_COMPILER = $(LOG_COMPILER)
NP8_LOG_COMPILER = $(LOG_COMPILER)

.PHONY: check-long
check-long: all
	$(AM_V_at)$(MAKE) check TESTS="$(GM_TESTS)" TEST_SUITE_LOG=tests/memcheck.log GPUMEM_TEST_MEMCHECK=1
	$(AM_V_at)test -z "$(GM_TESTS_LONG)" || $(MAKE) check TESTS="$(GM_TESTS_LONG)" TEST_SUITE_LOG=tests/long.log GPUMEM_TEST_TIMEOUT=1800
