/* memory.h - the memory that the program itself allocates, counted against the caps of --host-memory and
 * --device-memory.
 *
 * Two accounts, per process. Every big allocation of the program goes through gm_host_alloc() or a device's table,
 * which charge them; small bookkeeping (a few KiB) uses malloc. Thread-safe. */
#ifndef GM_BASE_MEMORY_H
#define GM_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that an allocation may take beyond those asked for, at most: for plans. */
enum { GM_ALLOC_OVERHEAD = 8192 };

typedef enum gm_account { GM_HOST, GM_DEVICE, GM_ACCOUNTS } gm_account;

/* Sets the cap of an account in bytes; INT64_MAX (the start value) for none. */
void gm_memory_set_cap(gm_account account, int64_t bytes);

/* Bytes: the cap, the charges now, the most that they have been. */
int64_t gm_memory_cap(gm_account account);
int64_t gm_memory_used(gm_account account);
int64_t gm_memory_peak(gm_account account);

/* Charges bytes. GM_EDEVICE with a message, and no charge, if that would exceed the cap. */
int gm_memory_charge(gm_account account, int64_t bytes);
void gm_memory_release(gm_account account, int64_t bytes);

/* Host memory, aligned to 4096 bytes, charged to GM_HOST; not cleared. *out is NULL on failure (GM_EDEVICE). A size of
 * 0 is valid. The caller frees it with gm_host_free(), which takes NULL as well. */
int gm_host_alloc(size_t bytes, void **out);
void gm_host_free(void *memory);

/* The same for a caller that can do without the memory: returns whether it was allocated; records no error. All such
 * allocations together take no more than gm_memory_set_optional() allows (at the start INT64_MAX), so that what a plan
 * counts for others is there when they ask for it. */
int gm_host_try(size_t bytes, void **out);

/* The same for memory that is allocated elsewhere: a charge, and its release. */
int gm_host_try_charge(int64_t bytes);
void gm_host_release_charge(int64_t bytes);

/* Sets what the allocations of gm_host_try() and gm_host_try_charge() may take together from now on. */
void gm_memory_set_optional(int64_t bytes);

/* Is the address space limited (ulimit -v)? And does the limit leave room for a mapping of this size? */
int gm_memory_is_limited(void);
int gm_memory_has_room(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
