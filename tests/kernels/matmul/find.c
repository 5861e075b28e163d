/* Which product a CUDA device takes: by precision, family, sizes and capability; in any build, for --model plans too.
 */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/matmul/calls.h"
#include "tests/tap.h"

typedef struct wanted {
    gm_product_query query;
    const char *kernel; /* NULL: there is none */
} wanted;

static const wanted cases[] = {
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 0, 0, 0, 90}, "hopper-fp16x3"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 0, 0, 0, 80}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 4096, 4096, 4096, 90}, "hopper-fp16x3"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 4096, 4096, 4096, 80}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 4096, 8191, 64, 90}, "hopper-fp16x3"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 8192, 8192, 32, 90}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 90}, "dmma-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 80}, "dmma-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 70}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 86}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 103}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_AUTO, 64, 64, 64, 120}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_SIMT, 64, 64, 64, 90}, "simt-fp32"},
    {{GM_PRECISION_FP32, GM_KERNEL_MMA, 64, 64, 64, 90}, "mma-fp16x3"},
    {{GM_PRECISION_FP32, GM_KERNEL_MMA, 64, 64, 64, 70}, NULL},
    {{GM_PRECISION_FP32, GM_KERNEL_HOPPER, 64, 64, 64, 90}, "hopper-fp16x3"},
    {{GM_PRECISION_FP32, GM_KERNEL_HOPPER, 64, 64, 64, 100}, NULL},
    {{GM_PRECISION_EXACT, GM_KERNEL_AUTO, 64, 64, 64, 86}, "dmma-exact"},
    {{GM_PRECISION_BF16, GM_KERNEL_AUTO, 64, 64, 64, 86}, "mma-bf16"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gm_product_query *q = &cases[i].query;
        const gm_product *found = gm_product_find(&gm_device_cuda, NULL, q);
        const char *kernel = found ? found->kernel : "none";
        tap_ok(strcmp(kernel, cases[i].kernel ? cases[i].kernel : "none") == 0,
               "%s, --kernel %s, %lld x %lld x %lld, capability %d: %s", gm_precision_get(q->precision)->name,
               gm_kernel_name(q->kernel), (long long)q->m, (long long)q->n, (long long)q->k, q->capability, kernel);
    }
    return tap_done();
}
