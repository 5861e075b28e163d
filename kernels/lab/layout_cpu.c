/* Items in a layout, by the processor. */
#include "base/size.h"
#include "kernels/lab/calls.h"

typedef struct item_8 {
    float x[2];
} item_8;

typedef struct vector {
    float x, y, z;
} vector;

typedef struct aligned_vector {
    float x, y, z, unused;
} aligned_vector;

typedef struct fields {
    float x[GM_LAYOUT_FIELDS];
} fields;

typedef struct words {
    uint32_t word[4];
} words;

/* A function that visits items i of src and dst, arrays of these types. */
#define VISIT(name, IN, OUT, statement)                                                      \
    static void visit_##name(int threads, const gm_layout_call *c)                           \
    {                                                                                        \
        const IN *src = c->src;                                                              \
        OUT *dst = c->dst;                                                                   \
        int64_t count = c->count;                                                            \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t i = 0; i < count; i++) \
        {                                                                                    \
            statement;                                                                       \
        }                                                                                    \
    }

VISIT(copy_4, float, float, dst[i] = src[i])
VISIT(copy_8, item_8, item_8, dst[i] = src[i])
VISIT(copy_12, vector, vector, dst[i] = src[i])
VISIT(copy_16, aligned_vector, aligned_vector, dst[i] = src[i])
VISIT(field_structs, fields, fields, dst[i].x[GM_LAYOUT_FIELD] = src[i].x[GM_LAYOUT_FIELD] + 1)
VISIT(field_array, float, float, dst[i] = src[i] + 1)
VISIT(structs, fields, fields, for (int f = 0; f < GM_LAYOUT_FIELDS; f++) dst[i].x[f] = src[i].x[f] + 1)
VISIT(mixed, words, words,
      for (int w = 0; w < 4; w++) dst[i].word[w] = src[i].word[w] ^ src[count + i].word[w] ^ src[2 * count + i].word[w])
VISIT(lengths, vector, float, dst[i] = src[i].x * src[i].x + src[i].y * src[i].y + src[i].z * src[i].z)
VISIT(lengths_aligned, aligned_vector, float, dst[i] = src[i].x * src[i].x + src[i].y * src[i].y + src[i].z * src[i].z)
VISIT(lengths_arrays, float, float,
      dst[i] = src[i] * src[i] + src[count + i] * src[count + i] + src[2 * count + i] * src[2 * count + i])

/* Some items of one array, then of the next one: rows that lie a power of two apart compete for places in a cache. */
static void visit_arrays(int threads, const gm_layout_call *c)
{
    const float *src = c->src;
    float *dst = c->dst;
#pragma omp parallel for num_threads(threads)
    for (int64_t from = 0; from < c->count; from += GM_LAYOUT_STAGE)
        for (int f = 0; f < GM_LAYOUT_FIELDS; f++)
            for (int64_t i = from; i < gm_min(from + GM_LAYOUT_STAGE, c->count); i++)
                dst[f * c->count + i] = src[f * c->count + i] + 1;
}

/* A processor has no shared memory, and its structs need no more than 4-byte alignment: some kinds are the same. */
int gm_cpu_layout(int threads, const gm_layout_call *call)
{
    static void (*const visits[GM_LAYOUT_KINDS])(int threads, const gm_layout_call *c) = {
        [GM_LAYOUT_COPY_4] = visit_copy_4,
        [GM_LAYOUT_COPY_8] = visit_copy_8,
        [GM_LAYOUT_COPY_12] = visit_copy_12,
        [GM_LAYOUT_COPY_12_IN_16] = visit_copy_16,
        [GM_LAYOUT_COPY_16] = visit_copy_16,
        [GM_LAYOUT_FIELD_STRUCTS] = visit_field_structs,
        [GM_LAYOUT_FIELD_ARRAY] = visit_field_array,
        [GM_LAYOUT_STRUCTS] = visit_structs,
        [GM_LAYOUT_STRUCTS_ALIGNED] = visit_structs,
        [GM_LAYOUT_ARRAYS] = visit_arrays,
        [GM_LAYOUT_MIXED] = visit_mixed,
        [GM_LAYOUT_LENGTHS] = visit_lengths,
        [GM_LAYOUT_LENGTHS_ALIGNED] = visit_lengths_aligned,
        [GM_LAYOUT_LENGTHS_ARRAYS] = visit_lengths_arrays,
        [GM_LAYOUT_LENGTHS_STAGED] = visit_lengths};
    visits[call->kind](threads, call);
    return GM_OK;
}
