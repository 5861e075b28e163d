/* kinds.h - the device functions of the laboratory for each kind of memory: the arguments of a call. Pointers are to
 * device memory.
 *
 *   memory_cpu.c, memory_cuda.cu   chains of pointers in each space, and windows of the spaces of a GPU
 *   image_cuda.cu                  images by textures and by loads
 *   texture_cuda.c                 texture objects, and pinned host memory as a GPU sees it */
#ifndef GM_KERNELS_LAB_KINDS_H
#define GM_KERNELS_LAB_KINDS_H

#include "kernels/lab/lab_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_space {
    GM_SPACE_GLOBAL, /* past L1: device memory, the L2 cache or host memory */
    GM_SPACE_L1,     /* device memory through L1 */
    GM_SPACE_LOCAL,
    GM_SPACE_SHARED,
    GM_SPACE_CONSTANT,
    GM_SPACE_TEXTURE, /* linear memory by a texture object */
    GM_SPACES
} gm_space;

enum {
    GM_LAB_LOCAL_CHUNKS = 16, /* fewer words of a thread would be kept in registers */
    GM_LAB_SHARED_CHUNKS = 4,
    GM_LAB_TEXTURE_CHUNKS = 8,
    GM_LAB_CONSTANTS = 256, /* words of 4 bytes to read, and as many of a chain */
    GM_LAB_LOCAL_LINKS = 64,
    GM_LAB_SHARED_LINKS = 1024
};

/* The GM_LAB_CONSTANTS words to read, then those of the chain, become constant memory. */
struct gm_constants_call {
    const uint32_t *src; /* [2 * GM_LAB_CONSTANTS] */
};

/* Block b copies its window of src, b times the size of a window from its begin, to local or shared memory, or reads it
 * by a texture of 16-byte texels, `passes` times. Or each thread reads all words of constant memory as often: those of
 * a warp the same word at once, or (is_divergent) other ones. dst as of gm_window_call. */
struct gm_space_call {
    gm_space space; /* LOCAL, SHARED, CONSTANT, TEXTURE */
    int is_divergent;
    int64_t blocks, passes;
    uint64_t texture;
    const void *src;
    uint32_t (*dst)[GM_LAB_WARPS]; /* [blocks] */
};

/* One cycle through `count` places, `stride` bytes apart: a place holds base + scale q, q the number of the next one.
 * Step s is at place gm_lab_permuted(s, count). */
struct gm_chain_call {
    int64_t count, stride, scale; /* count: a power of two */
    uint64_t base;
    int bytes; /* of a link: 4, 8 */
    void *dst;
};

/* One thread follows a chain: of pointers (GLOBAL, L1), of offsets in bytes (LOCAL, SHARED, CONSTANT; src is copied to
 * the first two) or of texels of 4 bytes (TEXTURE). It begins where *state says, as an offset from the first place, and
 * says in *state where it ends. */
struct gm_chase_call {
    gm_space space;
    int64_t count, stride, steps;
    uint64_t texture;
    const void *src;
    uint64_t *state;
};

typedef enum gm_texel { GM_TEXEL_U32, GM_TEXEL_U32X4, GM_TEXEL_F32, GM_TEXEL_RGBA8, GM_TEXELS } gm_texel;

/* A texture object over [height][width] texels at src, or, height 0, over `width` texels in a line. F32 is filtered
 * between texels; RGBA8 is read as floats in [0, 1]. The work of both calls is done at once, on the host. */
struct gm_texture_open_call {
    gm_texel texel;
    int64_t width, height;
    const void *src;
    uint64_t *texture; /* host memory */
};
struct gm_texture_close_call {
    uint64_t texture;
};

/* *device = the address of host memory for kernels, NULL if it is not pinned: host memory too, and at once. */
struct gm_mapped_call {
    void *host, **device;
};

typedef enum gm_image_step {
    GM_IMAGE_SUM,      /* uint32: the sum of 3 x 3 texels, those outside are the nearest inside */
    GM_IMAGE_BILINEAR, /* float: between four texels, a part right of the first one, and a part below it */
    GM_IMAGE_UNPACK,   /* four bytes to four floats in [0, 1] */
    GM_IMAGE_STEPS
} gm_image_step;

/* dst[y][x] = the step at (x, y), by the texture or by loads from src. is_turned: a warp has a column, not a row. */
struct gm_image_call {
    gm_image_step step;
    int by_texture, is_turned;
    int64_t width, height; /* multiples of 32 */
    float right, below;    /* BILINEAR */
    uint64_t texture;
    const void *src;
    void *dst;
};

#ifdef __cplusplus
}
#endif
#endif
