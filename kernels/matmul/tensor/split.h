/* split.h - the work space of products on tensor cores: a panel of float32 as planes of shorter elements.
 *
 * A panel of `outer` rows of op(A) or columns of op(B) becomes planes [plane][outer][pitch], k fastest. Lines are the
 * rows or columns in one leaf; GM_SPLIT_GROUP lines below each other have one scheme. */
#ifndef GM_KERNELS_MATMUL_TENSOR_SPLIT_H
#define GM_KERNELS_MATMUL_TENSOR_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GM_SPLIT_K = 64, GM_SPLIT_GROUP = 64 };

/* How the sum of products of a unit, a group of A with a group of B in a leaf, is computed: by the lowest scheme that
 * serves all lines of both. */
typedef enum gm_scheme {
    GM_SCHEME_F16,  /* two parts of float16: 26 powers of 2 between the largest and the smallest element of a line */
    GM_SCHEME_BF16, /* three parts of bfloat16: 109 powers of 2 */
    GM_SCHEME_F32,  /* float32: all else, Inf and NaN among it */
    GM_SCHEMES
} gm_scheme;

/* The kind of a work space. All 0: a product that needs none. */
typedef struct gm_split_kind {
    int32_t element; /* bytes of an element of a plane */
    int32_t planes;
    int32_t schemes; /* lines have schemes: there are three planes of bfloat16 as well */
} gm_split_kind;

/* Where its parts begin, in bytes. */
typedef struct gm_split_layout {
    int64_t outer, pitch, leaves, groups;
    size_t planes; /* [planes][outer][pitch] */
    size_t wide;   /* [3][outer][wide_pitch], of a leaf, or of those that are computed side by side */
    int64_t wide_pitch;
    /* [leaves][outer] uint32: bits of the largest |x|; 0x7fffffff - bits of the least but 0. One after the other, and
     * then scale[0]. */
    size_t largest, least;
    size_t scale[2]; /* [leaves][outer] int16: exponents of 2 that sums are multiplied by, of both tensor schemes */
    size_t scheme;   /* [leaves][groups] uint8 */
    size_t count;    /* [leaves][GM_SCHEMES] uint32: groups of each scheme */
    size_t all;      /* [GM_SCHEMES] uint32: the same in all leaves */
    size_t bytes;
} gm_split_layout;

/* The layout for a panel of k elements of each of `outer` lines, or for the panels of a batch below each other, of so
 * many lines together. parts: leaves that are computed side by side; 0: one after the other. Pure; more of any but
 * `leaf` never takes less. */
gm_split_layout gm_split_lay(const gm_split_kind *kind, int64_t outer, int64_t k, int64_t leaf, int64_t parts);

#ifdef __cplusplus
}
#endif
#endif
