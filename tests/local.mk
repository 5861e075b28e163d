# tests/: TAP. A compiled test is called by what it tests; one that runs under mpirun has the number of its ranks as an
# extension: tests/mpi/agree.np3. A script is called x.t. No two tests share a name before the extension: their logs
# would.
#
#   make check                                        all of them
#   make check TESTS='tests/io/read/reader tests/mpi/agree.np3'  these
#   prove --exec tests/launch tests/*.np* ../tests/cli/*.t   the same with prove, in the build folder after make check
#                                                            TESTS=
#   make check-long                                   the compiled ones under valgrind, and tests/long/*.t
#
# Tests begin in the order of the lists. The slowest are first, as one that begins last ends alone: GM_TESTS by their
# time under valgrind. GPUMEM_TEST_TIMES=FILE has the seconds of each.

GM_TESTS = \
	tests/src/stream/stream_race \
	tests/src/bench/exchange.np2 \
	tests/src/caps \
	tests/io/read/chunk_faults \
	tests/kernels/normalize/normalize \
	tests/src/operation.np2 \
	tests/mpi/agree.np3 \
	tests/io/worker \
	tests/kernels/normalize/histogram \
	tests/io/read/chunks \
	tests/io/write/strategy \
	tests/mpi/bind \
	tests/io/cold \
	tests/mpi/numa \
	tests/mpi/launcher \
	tests/kernels/sight \
	tests/io/box \
	tests/io/identity \
	tests/io/virtual/patch \
	tests/io/parallel_for \
	tests/io/read/chunk_pool \
	tests/io/read/decode \
	tests/io/describe/describe \
	tests/io/describe/vds_check \
	tests/io/write/output \
	tests/io/write/output_vfd \
	tests/io/write/parts \
	tests/io/read/reader \
	tests/io/read/virtual \
	tests/io/describe/select \
	tests/io/bench/benchmark \
	tests/kernels/matmul/batch \
	tests/kernels/matmul/find \
	tests/kernels/matmul/finish \
	tests/kernels/move/flip \
	tests/kernels/move/transpose \
	tests/kernels/move/gather \
	tests/kernels/move/index_rows \
	tests/kernels/matmul/probe \
	tests/kernels/matmul/rounded \
	tests/kernels/matmul/unpack \
	tests/src/budget \
	tests/src/bench/kinds \
	tests/src/bench/limits \
	tests/src/bench/matmul \
	tests/src/bench/picture \
	tests/src/bench/shapes \
	tests/src/exchange/cut \
	tests/src/exchange/staged.np3 \
	tests/src/map \
	tests/src/move/boxes \
	tests/src/move/gather \
	tests/src/normalize/field \
	tests/src/start/environment \
	tests/src/start/early \
	tests/src/start/ranks.np2 \
	tests/src/options \
	tests/src/matmul/block \
	tests/src/matmul/cost \
	tests/src/matmul/plan \
	tests/src/progress \
	tests/src/rates/measure.np3 \
	tests/src/plan/by_rates.np2 \
	tests/src/plan/threads.np2 \
	tests/src/rates/work \
	tests/src/summary/rank \
	tests/src/summary/times \
	tests/base/memory \
	tests/base/types/dtype \
	tests/base/file/flush \
	tests/base/file/leftover \
	tests/base/file/new_file \
	tests/base/random \
	tests/base/range \
	tests/base/size \
	tests/base/stop \
	tests/base/text/escape \
	tests/base/text/nearest \
	tests/base/text/words \
	tests/src/stream/ring_plan \
	tests/src/stream/sample \
	tests/src/stream/share \
	tests/src/stream/slot \
	tests/src/stream/stream \
	tests/src/stream/io_threads

# More arithmetic than valgrind gets through, or in long double, of which it keeps 53 bits; or with limits of time, or
# processes that end by a signal; or what another test does by one rank.
GM_TESTS_HEAVY = \
	tests/src/caps_shared.np2 \
	tests/src/matmul/batch \
	tests/src/matmul/batch_plan \
	tests/src/matmul/batch_ranks.np2 \
	tests/src/matmul/chain.np4 \
	tests/src/matmul/share.np4 \
	tests/src/matmul/share_more.np8 \
	tests/src/bench/team.np3 \
	tests/src/bench/pairs.np3 \
	tests/src/rates/model \
	tests/kernels/matmul/product \
	tests/kernels/matmul/schemes \
	tests/kernels/reduce/reduce \
	tests/src/buffers \
	tests/src/buffers_shared.np2 \
	tests/src/exchange/nccl.np3 \
	tests/src/matmul/fault \
	tests/src/matmul/repair.np3 \
	tests/src/matmul/staged \
	tests/src/slow/plans \
	tests/src/slow/rules \
	tests/src/slow/plans_of_ranks.np3 \
	tests/src/reduce/staged \
	tests/base/statistics \
	tests/base/types/wide

GM_TESTS_SCRIPT = \
	tests/cli/reduce.t \
	tests/cli/lab.t \
	tests/cli/bench_ranks.t \
	tests/cli/scaling.t \
	tests/cli/refusals.t \
	tests/io/h5py.t \
	tests/cli/op_bench.t \
	tests/cli/transpose.t \
	tests/cli/virtual.t \
	tests/cli/signals.t \
	tests/cli/gather.t \
	tests/cli/report.t \
	tests/cli/bad_input.t \
	tests/cli/batch.t \
	tests/cli/bf16.t \
	tests/cli/bench_file.t \
	tests/cli/completion.t \
	tests/cli/exchange.t \
	tests/cli/external.t \
	tests/cli/files.t \
	tests/cli/flip.t \
	tests/cli/jobs.t \
	tests/cli/lessons.t \
	tests/cli/matmul.t \
	tests/cli/model.t \
	tests/cli/normalize.t \
	tests/cli/normalize_refusals.t \
	tests/cli/normalize_same.t \
	tests/cli/one_rank_fails.t \
	tests/cli/op_compare.t \
	tests/cli/op_gen.t \
	tests/cli/op_info.t \
	tests/cli/operands.t \
	tests/cli/out_of_core.t \
	tests/cli/packages.t \
	tests/cli/output.t \
	tests/cli/parts.t \
	tests/cli/plan.t \
	tests/cli/processors.t \
	tests/cli/real_files.t \
	tests/cli/same_bits.t \
	tests/cli/sass.t \
	tests/cli/shares.t \
	tests/cli/startup.t \
	tests/cli/short_chunks.t \
	tests/cli/sight.t \
	tests/cli/stdout_full.t \
	tests/cli/text.t \
	tests/gpu_record.t \
	tests/layering.t \
	tests/preload/fault.t

GM_TESTS_LONG = \
	tests/long/memcheck.t \
	tests/long/stream_race.t \
	tests/long/corpus.t \
	tests/long/virtual.t \
	tests/long/cluster.t \
	tests/long/same_bits_more.t \
	tests/long/mutated.t \
	tests/long/several_hosts.t \
	tests/long/reduce_bits.t \
	tests/long/failing_calls.t \
	tests/long/kill_points.t \
	tests/long/random_jobs.t \
	tests/long/full_disk.t \
	tests/long/faults.t \
	tests/long/layouts.t \
	tests/long/predicted.t

# They measure time, or leave none to others: 64 ranks poll on the processors of the machine.
GM_TESTS_ALONE = \
	tests/long/many_ranks.t \
	tests/long/cpu_speed.t

# Programs that scripts use.
GM_TESTS_TOOLS = \
	tests/src/slow/gpumem_slow \
	tests/kernels/blas_once \
	tests/mpi/empty_mpi \
	tests/io/cat \
	tests/io/read_file

TESTS += $(GM_TESTS_SCRIPT) $(GM_TESTS_HEAVY) $(GM_TESTS)
check_PROGRAMS += $(GM_TESTS) $(GM_TESTS_HEAVY) $(GM_TESTS_TOOLS)
check_LIBRARIES = tests/libtests.a
dist_check_SCRIPTS = $(GM_TESTS_SCRIPT) $(GM_TESTS_LONG) $(GM_TESTS_ALONE) tests/gpu/exchange tests/gpu/pack \
	tests/gpu/run
EXTRA_DIST += \
	tests/cli/bfloat.py \
	tests/cli/gm.py \
	tests/cli/moves.py \
	tests/cli/oracle.py \
	tests/cli/plain_statistics.py \
	tests/gpu/README.md \
	tests/gpu/figures.py \
	tests/gpu/parts.sh \
	tests/gpu/scaling.py \
	tests/long/campaign.py \
	tests/long/corpus.py \
	tests/long/hosts.py \
	tests/long/random_cases.py \
	tests/long/random_data.py \
	tests/long/random_products.py \
	tests/long/slurm.py \
	tests/long/unreadable.py \
	$(GM_FAULT) \
	tests/src/exchange/fake_nccl.c \
	tests/valgrind.supp

tests_libtests_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_libtests_a_SOURCES = \
	tests/affinity.c \
	tests/affinity.h \
	tests/capture.c \
	tests/capture.h \
	tests/folder.c \
	tests/folder.h \
	tests/src/command.c \
	tests/src/command.h \
	tests/src/exchange/fake_library.c \
	tests/src/exchange/fake_library.h \
	tests/src/exchange/fake_nccl.h \
	tests/src/exchange/links.c \
	tests/src/exchange/links.h \
	tests/src/failing_device.c \
	tests/src/failing_device.h \
	tests/src/slow/host.c \
	tests/src/slow/host.h \
	tests/src/slow/memory.c \
	tests/src/slow/memory.h \
	tests/src/slow/order.c \
	tests/src/slow/order.h \
	tests/src/slow/products.c \
	tests/src/slow/products.h \
	tests/src/slow/queue.c \
	tests/src/slow/queue.h \
	tests/src/slow/uses.c \
	tests/src/slow/uses.h \
	tests/src/slow_device.c \
	tests/src/slow_device.h \
	tests/tap.c \
	tests/tap.h

# Not by libtool, and with nothing of the program's: it is preloaded. Where it cannot be built it is empty, and its
# tests skip.
check_DATA = tests/preload/fault.so tests/src/exchange/fake_nccl.so
MOSTLYCLEANFILES += $(check_DATA)
GM_FAULT = tests/preload/fault.c tests/preload/fault_files.c tests/preload/fault_process.c tests/preload/fault.h
tests/preload/fault.so: $(GM_FAULT)
	$(AM_V_CC)$(MKDIR_P) $(@D) && { \
	$(CC) $(GM_CFLAGS) $(AM_CPPFLAGS) $(MPI_CPPFLAGS) -O2 -g -shared -fPIC -o $@ $(filter %.c,$^) -ldl || : >$@; }

# Opened in the place of NCCL by tests/src/exchange/nccl.np3.
tests/src/exchange/fake_nccl.so: tests/src/exchange/fake_nccl.c tests/src/exchange/fake_nccl.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && \
	$(CC) $(GM_CFLAGS) $(AM_CPPFLAGS) -O2 -g -shared -fPIC -o $@ $(top_srcdir)/tests/src/exchange/fake_nccl.c

# Every program but src/gpumem-run is of the tests.
LDADD = tests/libtests.a $(GM_LIBS) $(GM_SYSTEM_LIBS)
GM_TESTS_HDF5 = $(AM_CPPFLAGS) $(HDF5_CPPFLAGS)

tests_mpi_agree_np3_SOURCES = tests/mpi/agree.c
tests_mpi_bind_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CPPFLAGS)
tests_mpi_bind_SOURCES = tests/mpi/bind.c
tests_mpi_numa_SOURCES = tests/mpi/numa.c
tests_mpi_launcher_SOURCES = tests/mpi/launcher.c
tests_kernels_sight_SOURCES = tests/kernels/sight.c
tests_kernels_blas_once_CPPFLAGS = $(AM_CPPFLAGS) $(BLAS_CPPFLAGS)
tests_kernels_blas_once_SOURCES = tests/kernels/blas_once.c
tests_mpi_empty_mpi_CPPFLAGS = $(MPI_CPPFLAGS)
tests_mpi_empty_mpi_LDADD = $(MPI_LIBS)
tests_mpi_empty_mpi_SOURCES = tests/mpi/empty_mpi.c
tests_io_read_file_CPPFLAGS = $(AM_CPPFLAGS) $(LIBDEFLATE_CPPFLAGS)
tests_io_read_file_SOURCES = tests/io/read_file.c
tests_io_cat_SOURCES = tests/io/cat.c
tests_io_read_chunks_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_read_chunks_SOURCES = tests/io/read/chunks.c tests/io/each.h
tests_io_read_chunk_faults_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_read_chunk_faults_LDFLAGS = -Wl,--wrap=pread
tests_io_read_chunk_faults_SOURCES = tests/io/read/chunk_faults.c tests/io/each.h
tests_io_box_SOURCES = tests/io/box.c
tests_io_worker_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_worker_SOURCES = tests/io/worker.c tests/io/each.h
tests_io_identity_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_identity_SOURCES = tests/io/identity.c tests/io/each.h
tests_io_virtual_patch_SOURCES = tests/io/virtual/patch.c
tests_io_parallel_for_SOURCES = tests/io/parallel_for.c
tests_io_read_chunk_pool_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_read_chunk_pool_SOURCES = tests/io/read/chunk_pool.c
tests_io_read_decode_CPPFLAGS = $(GM_TESTS_HDF5) $(LIBDEFLATE_CPPFLAGS)
tests_io_read_decode_SOURCES = tests/io/read/decode.c tests/io/each.h
tests_io_cold_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_cold_SOURCES = tests/io/cold.c tests/io/each.h
tests_io_describe_describe_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_describe_describe_SOURCES = tests/io/describe/describe.c tests/io/each.h
tests_io_describe_vds_check_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_describe_vds_check_SOURCES = tests/io/describe/vds_check.c tests/io/each.h
tests_io_write_output_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_write_output_SOURCES = tests/io/write/output.c tests/io/write/each.h tests/io/each.h
tests_io_write_output_vfd_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_write_output_vfd_LDFLAGS = -Wl,--wrap=pwrite,--wrap=pread,--wrap=ftruncate,--wrap=malloc
tests_io_write_output_vfd_SOURCES = tests/io/write/output_vfd.c tests/io/each.h
tests_io_write_parts_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_write_parts_SOURCES = tests/io/write/parts.c tests/io/write/each.h tests/io/each.h
tests_io_write_strategy_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_write_strategy_SOURCES = tests/io/write/strategy.c tests/io/write/each.h tests/io/each.h
tests_io_read_virtual_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_read_virtual_SOURCES = tests/io/read/virtual.c tests/io/read/virtual_make.c tests/io/read/virtual_make.h \
	tests/io/each.h
tests_io_read_reader_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_read_reader_SOURCES = tests/io/read/reader.c tests/io/each.h
tests_io_describe_select_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_describe_select_SOURCES = tests/io/describe/select.c tests/io/each.h
tests_io_bench_benchmark_CPPFLAGS = $(GM_TESTS_HDF5)
tests_io_bench_benchmark_SOURCES = tests/io/bench/benchmark.c tests/io/each.h
tests_kernels_matmul_batch_SOURCES = tests/kernels/matmul/batch.c tests/kernels/each.h
tests_kernels_matmul_find_SOURCES = tests/kernels/matmul/find.c
tests_kernels_matmul_finish_SOURCES = tests/kernels/matmul/finish.c tests/kernels/each.h
tests_kernels_move_flip_SOURCES = tests/kernels/move/flip.c tests/kernels/each.h
tests_kernels_move_transpose_SOURCES = tests/kernels/move/transpose.c tests/kernels/each.h
tests_kernels_move_gather_SOURCES = tests/kernels/move/gather.c tests/kernels/each.h
tests_kernels_move_index_rows_SOURCES = tests/kernels/move/index_rows.c tests/kernels/each.h
tests_kernels_normalize_histogram_SOURCES = tests/kernels/normalize/histogram.c tests/kernels/each.h
tests_kernels_normalize_normalize_SOURCES = tests/kernels/normalize/normalize.c tests/kernels/each.h
tests_kernels_matmul_probe_SOURCES = tests/kernels/matmul/probe.c tests/kernels/each.h
tests_kernels_matmul_rounded_SOURCES = tests/kernels/matmul/rounded.c tests/kernels/each.h
tests_kernels_matmul_product_SOURCES = tests/kernels/matmul/product.c tests/kernels/each.h
tests_kernels_matmul_schemes_SOURCES = tests/kernels/matmul/schemes.c tests/kernels/each.h
tests_kernels_reduce_reduce_SOURCES = tests/kernels/reduce/reduce.c tests/kernels/each.h
tests_kernels_matmul_unpack_SOURCES = tests/kernels/matmul/unpack.c tests/kernels/each.h
tests_src_budget_SOURCES = tests/src/budget.c
tests_src_slow_rules_SOURCES = tests/src/slow/rules.c
tests_src_slow_plans_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_slow_plans_SOURCES = tests/src/slow/plans.c
tests_src_slow_plans_of_ranks_np3_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_slow_plans_of_ranks_np3_SOURCES = tests/src/slow/plans.c
tests_src_slow_gpumem_slow_SOURCES = src/main.c tests/src/slow/gpumem_slow.c
tests_src_caps_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_caps_SOURCES = tests/src/caps.c
tests_src_caps_shared_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_caps_shared_np2_SOURCES = tests/src/caps.c
tests_src_bench_exchange_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_exchange_np2_SOURCES = tests/src/bench/exchange.c
tests_src_bench_kinds_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_kinds_SOURCES = tests/src/bench/kinds.c
tests_src_bench_limits_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_limits_SOURCES = tests/src/bench/limits.c
tests_src_bench_matmul_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_matmul_SOURCES = tests/src/bench/matmul.c
tests_src_bench_pairs_np3_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_pairs_np3_SOURCES = tests/src/bench/pairs.c
tests_src_bench_picture_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_picture_SOURCES = tests/src/bench/picture.c
tests_src_bench_shapes_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_shapes_SOURCES = tests/src/bench/shapes.c
tests_src_exchange_cut_SOURCES = tests/src/exchange/cut.c
tests_src_exchange_nccl_np3_LDFLAGS = -Wl,--wrap=dlopen,--wrap=dlsym
tests_src_exchange_nccl_np3_SOURCES = tests/src/exchange/nccl.c
tests_src_exchange_staged_np3_LDFLAGS = -Wl,--wrap=memfd_create
tests_src_exchange_staged_np3_SOURCES = tests/src/exchange/staged.c
tests_src_bench_team_np3_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_bench_team_np3_SOURCES = tests/src/bench/team.c
tests_src_map_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_map_SOURCES = tests/src/map.c
tests_src_move_boxes_SOURCES = tests/src/move/boxes.c
tests_src_move_gather_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_buffers_SOURCES = tests/src/buffers.c
tests_src_buffers_shared_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_buffers_shared_np2_SOURCES = tests/src/buffers.c
tests_src_move_gather_SOURCES = tests/src/move/gather.c
tests_src_operation_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_operation_np2_SOURCES = tests/src/operation.c
tests_src_start_environment_SOURCES = tests/src/start/environment.c
tests_src_start_early_LDFLAGS = -Wl,--wrap=pthread_create
tests_src_start_early_SOURCES = tests/src/start/early.c
tests_src_start_ranks_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_start_ranks_np2_SOURCES = tests/src/start/ranks.c
tests_src_matmul_fault_SOURCES = tests/src/matmul/fault.c
tests_src_matmul_batch_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_batch_SOURCES = tests/src/matmul/batch.c
tests_src_matmul_batch_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_batch_plan_SOURCES = tests/src/matmul/batch_plan.c
tests_src_matmul_batch_ranks_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_batch_ranks_np2_SOURCES = tests/src/matmul/batch.c
tests_src_matmul_chain_np4_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_chain_np4_LDFLAGS = -Wl,--wrap=dlopen,--wrap=dlsym
tests_src_matmul_chain_np4_SOURCES = tests/src/matmul/chain.c
tests_src_matmul_share_np4_LDFLAGS = -Wl,--wrap=pwrite,--wrap=gm_reader_read_part,--wrap=dlopen,--wrap=dlsym
tests_src_matmul_share_np4_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_share_np4_SOURCES = tests/src/matmul/share.c
tests_src_matmul_share_more_np8_LDFLAGS = -Wl,--wrap=pwrite,--wrap=gm_reader_read_part,--wrap=dlopen,--wrap=dlsym
tests_src_matmul_share_more_np8_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_share_more_np8_SOURCES = tests/src/matmul/share.c
tests_src_matmul_repair_np3_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_repair_np3_SOURCES = tests/src/matmul/repair.c
tests_src_matmul_staged_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_matmul_staged_SOURCES = tests/src/matmul/staged.c
tests_src_normalize_field_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_normalize_field_SOURCES = tests/src/normalize/field.c
tests_src_options_SOURCES = tests/src/options.c
tests_src_plan_by_rates_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_plan_by_rates_np2_SOURCES = tests/src/plan/by_rates.c
tests_src_plan_threads_np2_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_plan_threads_np2_SOURCES = tests/src/plan/threads.c
tests_src_matmul_block_SOURCES = tests/src/matmul/block.c tests/src/matmul/plans.h tests/src/matmul/float32.h
tests_src_matmul_cost_SOURCES = tests/src/matmul/cost.c tests/src/matmul/float32.h
tests_src_matmul_plan_SOURCES = tests/src/matmul/plan.c tests/src/matmul/plans.h tests/src/matmul/float32.h
tests_src_progress_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_progress_SOURCES = tests/src/progress.c
tests_src_rates_measure_np3_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_rates_measure_np3_SOURCES = tests/src/rates/measure.c
tests_src_rates_model_SOURCES = tests/src/rates/model.c tests/src/matmul/float32.h
tests_src_rates_work_SOURCES = tests/src/rates/work.c
tests_src_summary_rank_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_summary_rank_SOURCES = tests/src/summary/rank.c
tests_src_summary_times_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_summary_times_SOURCES = tests/src/summary/times.c
tests_base_types_dtype_SOURCES = tests/base/types/dtype.c
tests_base_memory_SOURCES = tests/base/memory.c
tests_base_file_flush_SOURCES = tests/base/file/flush.c
tests_base_file_leftover_SOURCES = tests/base/file/leftover.c tests/base/file/each.h
tests_base_file_new_file_SOURCES = tests/base/file/new_file.c tests/base/file/each.h
tests_base_random_SOURCES = tests/base/random.c
tests_base_range_SOURCES = tests/base/range.c
tests_base_size_SOURCES = tests/base/size.c
tests_base_stop_SOURCES = tests/base/stop.c
tests_base_text_escape_SOURCES = tests/base/text/escape.c
tests_base_text_nearest_SOURCES = tests/base/text/nearest.c
tests_base_text_words_SOURCES = tests/base/text/words.c
tests_base_types_wide_SOURCES = tests/base/types/wide.c
tests_src_reduce_staged_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CPPFLAGS)
tests_src_reduce_staged_SOURCES = tests/src/reduce/staged.c
tests_base_statistics_SOURCES = tests/base/statistics.c
tests_src_stream_ring_plan_SOURCES = tests/src/stream/ring_plan.c
tests_src_stream_sample_SOURCES = tests/src/stream/sample.c
tests_src_stream_share_SOURCES = tests/src/stream/share.c
tests_src_stream_slot_SOURCES = tests/src/stream/slot.c
tests_src_stream_stream_SOURCES = tests/src/stream/stream.c
tests_src_stream_stream_race_SOURCES = \
	tests/src/stream/stream_race.c \
	tests/src/stream/checked_program.c \
	tests/src/stream/checked_program.h \
	tests/src/stream/late_device.c \
	tests/src/stream/late_device.h
tests_src_stream_io_threads_LDFLAGS = -Wl,--wrap=pthread_create
tests_src_stream_io_threads_SOURCES = tests/src/stream/io_threads.c

# tests/launch starts a test with as many ranks as its extension says, in an environment of its own and under a time
# limit.
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

# The slow tests start several programs each, have limits of time, and wait much: two at a time, beside valgrind, which
# computes (with make -j3 check-long: two at a time as well). Both find the programs built. GM_TESTS_ALONE run after
# them, one by one.
.PHONY: check-long check-memcheck check-slow
check-long: all $(check_PROGRAMS) $(check_LIBRARIES) $(check_DATA)
	$(AM_V_at)status=0; \
	$(MAKE) -k check-memcheck check-slow || status=1; \
	$(MAKE) -j1 check TESTS="$(GM_TESTS_ALONE)" TEST_SUITE_LOG=tests/alone.log GPUMEM_TEST_TIMEOUT=1800 || status=1; \
	exit $$status
check-memcheck:
	$(AM_V_at)$(MAKE) check TESTS="$(GM_TESTS)" TEST_SUITE_LOG=tests/memcheck.log GPUMEM_TEST_MEMCHECK=1
check-slow:
	$(AM_V_at)$(MAKE) -j2 check TESTS="$(GM_TESTS_LONG)" TEST_SUITE_LOG=tests/long.log GPUMEM_TEST_TIMEOUT=1800
