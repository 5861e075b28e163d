# tests/: TAP. A compiled test is called by what it tests; one that runs under mpirun has the number of its ranks as an extension:
# tests/agree.np3. A script is called x.t. No two tests share a name before the extension: their logs would.
#
#   make check                                        all of them
#   make check TESTS='tests/io_reader tests/agree.np3'  these
#   prove --exec tests/launch tests/*.np* ../tests/cli/*.t   the same with prove, in the build folder after make check TESTS=
#   make check-long                                   the compiled ones under valgrind, and tests/long/*.t

GM_TESTS = \
	tests/agree.np3 \
	tests/io_chunks \
	tests/io_cold \
	tests/io_describe \
	tests/io_output \
	tests/io_output_parts \
	tests/io_output_ways \
	tests/io_reader \
	tests/io_select \
	tests/io_stripes \
	tests/io_trial \
	tests/kernels_finish \
	tests/kernels_histogram \
	tests/kernels_normalize \
	tests/kernels_probe \
	tests/kernels_unpack \
	tests/normalize_apart \
	tests/options \
	tests/plan \
	tests/progress \
	tests/random \
	tests/stream \
	tests/stream_race

# More arithmetic than valgrind gets through, or in long double, of which it keeps 53 bits.
GM_TESTS_HEAVY = \
	tests/kernels_product \
	tests/kernels_reduce \
	tests/matmul_fault \
	tests/matmul_staged \
	tests/reduce_staged \
	tests/statistics

GM_TESTS_SCRIPT = \
	tests/cli/bad_input.t \
	tests/cli/bench_file.t \
	tests/cli/matmul.t \
	tests/cli/normalize.t \
	tests/cli/normalize_same.t \
	tests/cli/one_rank_fails.t \
	tests/cli/op_bench.t \
	tests/cli/op_compare.t \
	tests/cli/op_gen.t \
	tests/cli/op_info.t \
	tests/cli/out_of_core.t \
	tests/cli/output.t \
	tests/cli/parts.t \
	tests/cli/real_files.t \
	tests/cli/reduce.t \
	tests/cli/same_bits.t \
	tests/cli/shares.t \
	tests/cli/startup.t \
	tests/gpu_record.t \
	tests/io_h5py.t \
	tests/layering.t

GM_TESTS_LONG = \
	tests/long/corpus.t \
	tests/long/cpu_speed.t \
	tests/long/layouts.t \
	tests/long/memcheck.t \
	tests/long/reduce_bits.t \
	tests/long/same_bits_more.t \
	tests/long/stream_race.t

# What scripts use beside the program.
GM_TESTS_TOOLS = \
	tests/blas_once \
	tests/empty_mpi \
	tests/io_cat

TESTS += $(GM_TESTS) $(GM_TESTS_HEAVY) $(GM_TESTS_SCRIPT)
check_PROGRAMS += $(GM_TESTS) $(GM_TESTS_HEAVY) $(GM_TESTS_TOOLS)
check_LIBRARIES = tests/libtap.a
dist_check_SCRIPTS = $(GM_TESTS_SCRIPT) $(GM_TESTS_LONG) tests/gpu/pack tests/gpu/run
EXTRA_DIST += \
	tests/cli/gm.py \
	tests/cli/oracle.py \
	tests/cli/plain_statistics.py \
	tests/gpu/README.md \
	tests/gpu/figures.py \
	tests/long/corpus.py \
	tests/long/unreadable.py \
	tests/valgrind.supp

tests_libtap_a_SOURCES = \
	tests/tap.c \
	tests/tap.h

# Every program but src/gpumem-run is of the tests.
LDADD = tests/libtap.a $(GM_LIBS) $(GM_SYSTEM_LIBS)
GM_TESTS_HDF5 = $(AM_CPPFLAGS) $(HDF5_CPPFLAGS)

tests_agree_np3_SOURCES = tests/agree.c
tests_blas_once_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CPPFLAGS)
tests_blas_once_SOURCES = tests/blas_once.c
tests_empty_mpi_CPPFLAGS = $(MPI_CPPFLAGS)
tests_empty_mpi_LDADD = $(MPI_LIBS)
tests_empty_mpi_SOURCES = tests/empty_mpi.c
tests_io_cat_SOURCES = tests/io_cat.c
tests_io_chunks_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_chunks_SOURCES = tests/io_chunks.c tests/io_each.h
tests_io_cold_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_cold_SOURCES = tests/io_cold.c tests/io_each.h
tests_io_describe_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_describe_SOURCES = tests/io_describe.c tests/io_each.h
tests_io_output_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_output_SOURCES = tests/io_output.c tests/io_output_each.h tests/io_each.h
tests_io_output_parts_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_output_parts_SOURCES = tests/io_output_parts.c tests/io_output_each.h tests/io_each.h
tests_io_output_ways_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_output_ways_SOURCES = tests/io_output_ways.c tests/io_output_each.h tests/io_each.h
tests_io_reader_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_reader_SOURCES = tests/io_reader.c tests/io_each.h
tests_io_select_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_select_SOURCES = tests/io_select.c tests/io_each.h
tests_io_stripes_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_stripes_SOURCES = tests/io_stripes.c tests/io_stripes_make.c tests/io_stripes_make.h tests/io_each.h
tests_io_trial_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_trial_SOURCES = tests/io_trial.c tests/io_each.h
tests_kernels_finish_SOURCES = tests/kernels_finish.c tests/kernels_each.h
tests_kernels_histogram_SOURCES = tests/kernels_histogram.c tests/kernels_each.h
tests_kernels_normalize_SOURCES = tests/kernels_normalize.c tests/kernels_each.h
tests_kernels_probe_SOURCES = tests/kernels_probe.c tests/kernels_each.h
tests_kernels_product_SOURCES = tests/kernels_product.c tests/kernels_each.h
tests_kernels_reduce_SOURCES = tests/kernels_reduce.c tests/kernels_each.h
tests_kernels_unpack_SOURCES = tests/kernels_unpack.c tests/kernels_each.h
tests_matmul_fault_SOURCES = tests/matmul_fault.c
tests_matmul_staged_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_matmul_staged_SOURCES = tests/matmul_staged.c tests/slow_device.c tests/slow_device.h
tests_normalize_apart_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_normalize_apart_SOURCES = tests/normalize_apart.c
tests_options_SOURCES = tests/options.c
tests_plan_SOURCES = tests/plan.c
tests_progress_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_progress_SOURCES = tests/progress.c
tests_random_SOURCES = tests/random.c
tests_reduce_staged_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_reduce_staged_SOURCES = tests/reduce_staged.c
tests_statistics_SOURCES = tests/statistics.c
tests_stream_SOURCES = tests/stream.c
tests_stream_race_SOURCES = tests/stream_race.c tests/late_device.c tests/late_device.h

# tests/launch starts a test with as many ranks as its extension says, in an environment of its own and under a time limit.
TEST_EXTENSIONS = .t .np2 .np3 .np4 .np8
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(LOG_DRIVER)
NP2_LOG_DRIVER = $(LOG_DRIVER)
NP3_LOG_DRIVER = $(LOG_DRIVER)
NP4_LOG_DRIVER = $(LOG_DRIVER)
NP8_LOG_DRIVER = $(LOG_DRIVER)
LOG_COMPILER = tests/launch
T_LOG_COMPILER = $(LOG_COMPILER)
NP2_LOG_COMPILER = $(LOG_COMPILER)
NP3_LOG_COMPILER = $(LOG_COMPILER)
NP4_LOG_COMPILER = $(LOG_COMPILER)
NP8_LOG_COMPILER = $(LOG_COMPILER)

.PHONY: check-long
check-long: all
	$(AM_V_at)$(MAKE) check TESTS="$(GM_TESTS)" TEST_SUITE_LOG=tests/memcheck.log GPUMEM_TEST_MEMCHECK=1
	$(AM_V_at)test -z "$(GM_TESTS_LONG)" || $(MAKE) check TESTS="$(GM_TESTS_LONG)" TEST_SUITE_LOG=tests/long.log GPUMEM_TEST_TIMEOUT=1800
