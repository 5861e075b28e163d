/* kernels.h - the devices of the program, and the functions of their operations. Both compilers read it.
 *
 *   devices.c                      the kinds of device of this build
 *   device_cpu.c                   the processor as a device
 *   device_cuda.c, device_cuda_*   GPUs; device_cuda_none.c in a build without CUDA
 *   <room>/calls.h                 the operations: what a call takes, and which file implements it
 *   exchange/nccl.h                NCCL, which is opened at run time
 *   bench/measure.h                what only benchmarks need of a device
 *   host.h                         work on host memory that is no operation of a device
 *   element.h                      the rules of one element, for both compilers
 *   dispatch.cuh                   element types as C++ types, and the choice among them
 *   elementwise_cuda.cuh           blocks and threads of kernels that visit a matrix element by element */
#ifndef GM_KERNELS_KERNELS_H
#define GM_KERNELS_KERNELS_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of device of this build, best first; the last one is NULL. The CPU is always among them. */
extern const gm_device_ops *const gm_device_kinds[];

extern const gm_device_ops gm_device_cpu;
extern const gm_device_ops gm_device_cuda; /* counts 0 devices in a build without CUDA */

/* The operations of base/device_ops.def. gm_cpu_name() works on the given number of processor threads and returns a
 * gm_status. gm_cuda_name() launches kernels on a stream (a cudaStream_t): it allocates nothing, waits for nothing, and
 * returns the cudaError_t of the launch as an int, 0 for success. */
typedef struct CUstream_st *gm_cuda_stream;
#define GM_DEVICE_OP(name, cpu, cuda)                             \
    int gm_cpu_##name(int threads, const gm_##name##_call *call); \
    int gm_cuda_##name(gm_cuda_stream stream, const gm_##name##_call *call);
#include "base/device_ops.def"
#undef GM_DEVICE_OP

/* Whether this program has code for the current device: 0, or cudaErrorNoKernelImageForDevice. */
int gm_cuda_code_check(void);

/* Begins the program once more, with its command line, if OpenBLAS has threads of its own and address space is limited:
 * they ask for memory as soon as the program is loaded, and where they get none the process never ends. They are not
 * needed. Nor does malloc reserve 64 MiB for each thread then. First of all in main(). */
void gm_blas_restart(char **argv);

/* "OpenBLAS 0.3.21 ...", "13.0, driver for up to 13.0": for a person. text has room for GM_VERSION_TEXT bytes. Return
 * text. */
enum { GM_VERSION_TEXT = 256 };
char *gm_blas_version(char *text);
char *gm_cuda_version(char *text);

/* "580.65.06": the version in the file in which NVIDIA's driver tells it; "" if there is none. Returns text. */
enum { GM_DRIVER_TEXT = 32 };
char *gm_driver_version(const char *file, char text[GM_DRIVER_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
