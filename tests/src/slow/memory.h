/* memory.h - for tests: the memory of the slow device, which no host code reaches. An address of it is of a page
 * without access; the bytes are elsewhere, and only calls of the device find them. So the program crashes where it
 * takes device memory for host memory, and the test ends where it does the reverse, or leaves an allocation. */
#ifndef GM_TESTS_SRC_SLOW_MEMORY_H
#define GM_TESTS_SRC_SLOW_MEMORY_H

#include "base/device.h"

#include <stddef.h>

/* Ends the test: prints a reason. */
_Noreturn void slow_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory at a multiple of 256 bytes, and not of more, between red zones; NULL: there is none. Freed by its address,
 * where bytes of a red zone that have changed end the test. */
void *slow_memory_alloc(size_t bytes);
void slow_memory_free(void *memory);

/* Says where memory of an allocation lies. The begin of an allocation that another process has shared, freed as one of
 * this process; NULL: it cannot be had. */
void slow_memory_share(const void *address, gm_shared_memory *shared);
void *slow_memory_open(const gm_shared_memory *shared);

/* Memory of the test, which both sides may use, as device memory from now on; and no longer. */
void slow_memory_add(void *memory, size_t bytes);
void slow_memory_remove(const void *memory);

/* The bytes at an address. NULL: it is none of the device, or not all of them are of one allocation. */
char *slow_memory_find(const void *address, size_t bytes);

/* Is any byte of these the device's? Bytes from an address to the end of its allocation. Allocations that are left. */
int slow_memory_has(const void *address, size_t bytes);
size_t slow_memory_rest(const void *address);
int slow_memory_count(void);

#endif
