/* random.h - counter-based random numbers: element i of a random dataset is a pure function of (seed, dataset, i), the
 * same on any rank and thread and in any piece.
 *
 * The counter passes twice through the finalizer of SplitMix64, each time with a key made from seed and dataset: G. L.
 * Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
 * doi:10.1145/2660193.2660195; constants: D. Stafford's "Mix13". */
#ifndef GM_BASE_RANDOM_H
#define GM_BASE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_distribution {
    GM_DISTRIBUTION_UNIFORM,  /* floats in [0, 1); integers over the whole range of their type */
    GM_DISTRIBUTION_NORMAL,   /* floats N(0, 1); integers: the middle of the range + range/8 N(0, 1), rounded to nearest
                                 even, saturated */
    GM_DISTRIBUTION_INTEGERS, /* 0, 1, ... 9 in every type */
    GM_DISTRIBUTIONS          /* their number */
} gm_distribution;

/* A bijection of 64-bit words in which every bit of x changes half of the bits of the result. */
static inline uint64_t gm_random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#define GM_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio, odd */

/* The key of a dataset, from the seed and its number. */
static inline uint64_t gm_random_key(uint64_t seed, uint64_t dataset)
{
    return gm_random_mix(gm_random_mix(seed + GM_RANDOM_STEP) + (dataset + 1) * GM_RANDOM_STEP);
}

/* 64 random bits for an element. */
static inline uint64_t gm_random_bits(uint64_t key, uint64_t index)
{
    return gm_random_mix(gm_random_mix(key + index * GM_RANDOM_STEP) + key);
}

/* A number of N(0, 1) for an element, by Box and Muller (Ann. Math. Statist. 29, 1958): elements 2 j and 2 j + 1 are
 * the two coordinates of a point that is made of the bits of both. Uses libm: the last bit may differ from one C
 * library to another. */
double gm_random_normal(uint64_t key, uint64_t index);

#ifdef __cplusplus
}
#endif
#endif
