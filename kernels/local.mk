# kernels/: the devices. x_cpu.c and x_cuda.cu never share a name, nor do their objects.
noinst_LIBRARIES += kernels/libgmkernels.a
GM_LIBS += kernels/libgmkernels.a

kernels_libgmkernels_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CPPFLAGS) $(CUDA_CPPFLAGS)
kernels_libgmkernels_a_SOURCES = \
	kernels/compare_cpu.c \
	kernels/device_cpu.c \
	kernels/device_cpu.h \
	kernels/device_cuda.h \
	kernels/devices.c \
	kernels/element.h \
	kernels/elementwise_cuda.cuh \
	kernels/finish_cpu.c \
	kernels/histogram_cpu.c \
	kernels/kernels.h \
	kernels/ladder/matmul_1_naive_cpu.c \
	kernels/ladder/matmul_2_compensated_cpu.c \
	kernels/ledger.c \
	kernels/ledger.h \
	kernels/matmul_cpu.c \
	kernels/matmul_cuda.cuh \
	kernels/measure_cpu.c \
	kernels/normalize.h \
	kernels/normalize_cuda.cuh \
	kernels/normalize_cpu.c \
	kernels/normalize_words_cuda.cuh \
	kernels/probe_cpu.c \
	kernels/random_cpu.c \
	kernels/reduce.h \
	kernels/reduce_columns_cpu.c \
	kernels/reduce_columns_cuda.cuh \
	kernels/reduce_columns_loops.h \
	kernels/reduce_cpu.c \
	kernels/reduce_cpu.h \
	kernels/reduce_cuda.cuh \
	kernels/reduce_float_cuda.cuh \
	kernels/reduce_loops.h \
	kernels/reference_cpu.c \
	kernels/unpack_cpu.c \
	kernels/versions.c

GM_CUDA_KERNELS = \
	kernels/clock_cuda.cu \
	kernels/copy_cuda.cu \
	kernels/finish_cuda.cu \
	kernels/histogram_cuda.cu \
	kernels/ladder/matmul_1_naive_cuda.cu \
	kernels/ladder/matmul_2_compensated_cuda.cu \
	kernels/matmul_cuda_fp32.cu \
	kernels/matmul_cuda_fp64.cu \
	kernels/normalize_any_cuda.cu \
	kernels/normalize_cuda.cu \
	kernels/probe_cuda.cu \
	kernels/reduce_columns_cuda_float.cu \
	kernels/reduce_columns_cuda_whole.cu \
	kernels/reduce_cuda_float.cu \
	kernels/reduce_cuda_whole.cu \
	kernels/rival_cub_cuda.cu \
	kernels/unpack_cuda.cu

GM_CUDA_DEPS = $(GM_CUDA_KERNELS:.cu=.d)
MOSTLYCLEANFILES += $(GM_CUDA_DEPS)

if HAVE_CUDA
kernels_libgmkernels_a_SOURCES += kernels/device_cuda.c kernels/measure_cuda.c kernels/pages_cuda.c kernels/rival_cuda.c $(GM_CUDA_KERNELS)
-include $(GM_CUDA_DEPS)
else
kernels_libgmkernels_a_SOURCES += kernels/device_cuda_none.c
endif
