/* uses.h - for tests: the memory that a call of the slow device uses. */
#ifndef GM_TESTS_SRC_SLOW_USES_H
#define GM_TESTS_SRC_SLOW_USES_H

#include "kernels/matmul/calls.h"
#include "kernels/move/calls.h"
#include "kernels/normalize/calls.h"
#include "kernels/reduce/calls.h"

typedef enum slow_how {
    SLOW_READS,
    SLOW_WRITES,
    SLOW_ADDS /* by atomic additions: two calls may do so at the same time */
} slow_how;

/* rows[1] times, `step[1]` bytes apart, rows[0] rows of `width` bytes that are step[0] bytes apart. */
typedef struct slow_use {
    const char *name;
    const char *at;
    void *field; /* of the call: the address, which slow_uses_settle() replaces; NULL: it is host memory */
    slow_how how;
    size_t align, width, step[2];
    int64_t rows[2];
} slow_use;

enum { SLOW_USES = 16 };
typedef struct slow_uses {
    const char *call;
    int count;
    slow_use use[SLOW_USES];
} slow_uses;

/* Adds rows at the address that `field` points to, of host or device memory. */
void slow_uses_add(slow_uses *uses, const char *name, void *field, int is_host, slow_how how, size_t pitch,
                   size_t width, int64_t rows);

/* What the operations of the table use, and a product. */
#define GM_DEVICE_OP(name, cpu, cuda) void slow_uses_##name(gm_##name##_call *call, slow_uses *uses);
#include "base/device_ops.def"
#undef GM_DEVICE_OP
void slow_uses_product(const gm_product *product, gm_product_call *call, slow_uses *uses);

/* Ends the test if an address is none of the device, if a use leaves its allocation, or is not aligned as the kernels
 * of GPUs need it, or if host memory is the device's. The calls get the addresses of the bytes. */
void slow_uses_settle(const slow_uses *uses);

/* Have both uses a byte in common? Where there are several matrices, bytes between them count too. */
int slow_uses_meet(const slow_use *a, const slow_use *b);

/* A number made of the bytes of a use of host memory; of a large one, of some of them. */
uint64_t slow_uses_digest(const slow_use *use);

#endif
