# src/: the program. All of it but main() is a library, so that the tests can link it.
bin_PROGRAMS += src/gpumem-run
noinst_LIBRARIES += src/libgmsrc.a
GM_LIBS += src/libgmsrc.a

src_libgmsrc_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
src_libgmsrc_a_SOURCES = \
	src/bench.h \
	src/bench_clock.c \
	src/bench_copy.c \
	src/bench_data.c \
	src/bench_file.c \
	src/bench_histogram.c \
	src/bench_matmul.c \
	src/bench_normalize.c \
	src/bench_sizes.c \
	src/bench_reduce.c \
	src/bench_table.c \
	src/benches.def \
	src/budget.c \
	src/budget.h \
	src/flat.c \
	src/flat.h \
	src/job.c \
	src/job.h \
	src/matmul.h \
	src/matmul_case.c \
	src/matmul_check.c \
	src/matmul_device.c \
	src/matmul_memory.c \
	src/matmul_pieces.c \
	src/matmul_strips.c \
	src/normalize.h \
	src/normalize_case.c \
	src/normalize_field.c \
	src/normalize_moments.c \
	src/normalize_pass.c \
	src/normalize_percentile.c \
	src/normalize_plan.c \
	src/op_bench.c \
	src/op_compare.c \
	src/op_gen.c \
	src/op_info.c \
	src/op_matmul.c \
	src/op_normalize.c \
	src/op_reduce.c \
	src/operations.def \
	src/options.c \
	src/options.def \
	src/options.h \
	src/plan.c \
	src/plan.h \
	src/progress.c \
	src/progress.h \
	src/readers.c \
	src/readers.h \
	src/reduce.c \
	src/reduce.h \
	src/reduce_pieces.c \
	src/reduce_plan.c \
	src/reduce_run.c \
	src/reduce_run.h \
	src/report.c \
	src/report.h \
	src/result.c \
	src/result.h \
	src/share.c \
	src/share.h \
	src/slot.c \
	src/slot.h \
	src/stop.c \
	src/stop.h \
	src/stream.c \
	src/stream.h \
	src/stream_io.c \
	src/stream_io.h \
	src/workers.c \
	src/workers.h

src_gpumem_run_SOURCES = src/main.c
src_gpumem_run_LDADD = $(GM_LIBS) $(GM_SYSTEM_LIBS)
