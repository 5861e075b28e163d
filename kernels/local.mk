# kernels/: the devices. x_cpu.c and x_cuda.cu never share a name, nor do their objects.
noinst_LIBRARIES += kernels/libgmkernels.a
GM_LIBS += kernels/libgmkernels.a

kernels_libgmkernels_a_CPPFLAGS = $(AM_CPPFLAGS) $(BLAS_CPPFLAGS) $(CUDA_CPPFLAGS)
kernels_libgmkernels_a_SOURCES = $(kernels_sources)

GM_CUDA_DEPS = $(kernels_cuda_kernels:.cu=.d)
MOSTLYCLEANFILES += $(GM_CUDA_DEPS)

if HAVE_CUDA
kernels_libgmkernels_a_SOURCES += $(kernels_cuda_sources) $(kernels_cuda_kernels)
-include $(GM_CUDA_DEPS)
else
kernels_libgmkernels_a_SOURCES += kernels/device_cuda_none.c
endif
