/* hash.h - FNV-1a, a hash of bytes, of text or of numbers. Each function takes the hash of what came before, at first
 * GM_HASH_START. */
#ifndef GM_BASE_TEXT_HASH_H
#define GM_BASE_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GM_HASH_START UINT64_C(0xcbf29ce484222325) /* of nothing */

static inline uint64_t gm_hash_step(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

static inline uint64_t gm_hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++)
        hash = gm_hash_step(hash, at[i]);
    return hash;
}

static inline uint64_t gm_hash_text(uint64_t hash, const char *text)
{
    return gm_hash_bytes(hash, text, strlen(text));
}

#ifdef __cplusplus
}
#endif
#endif
