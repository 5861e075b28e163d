/* hash.h - the steps of FNV-1a, a hash of bytes or of numbers. */
#ifndef GM_BASE_TEXT_HASH_H
#define GM_BASE_TEXT_HASH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GM_HASH_START UINT64_C(0xcbf29ce484222325) /* of nothing */

/* The hash of what `hash` is of, and of value after it. */
static inline uint64_t gm_hash_step(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

#ifdef __cplusplus
}
#endif
#endif
