/* fake_nccl.h - the faults of tests/src/exchange/fake_nccl.c, and how a test plants one. */
#ifndef GM_TESTS_SRC_EXCHANGE_FAKE_NCCL_H
#define GM_TESTS_SRC_EXCHANGE_FAKE_NCCL_H

#include <stdint.h>

typedef enum fake_fault {
    FAKE_GOOD,
    FAKE_ABSENT,        /* there is no library */
    FAKE_NO_SYMBOL,     /* it has no ncclSend */
    FAKE_OLD,           /* it is older than what the program needs */
    FAKE_OTHER_VERSION, /* it is another version than on other ranks */
    FAKE_NO_IDENTITY,
    FAKE_CONNECT_FAILS,
    FAKE_CONNECT_HANGS, /* the call does not return */
    FAKE_NEVER_READY,   /* it does, and the communicator never comes up */
    FAKE_WRONG,         /* bytes arrive wrong */
    FAKE_LOST,          /* messages do not go on */
    FAKE_SEND_FAILS,
    FAKE_REMOTE_ERROR, /* work that is under way fails */
    FAKE_ABORT_HANGS
} fake_fault;

/* Device memory of a message. */
typedef struct fake_region {
    void *memory;
    uint64_t bytes;
    int is_written;
} fake_region;

/* Puts a call into a stream, which uses device memory; where the bytes of such memory are. */
typedef void fake_put(void *stream, void (*function)(void *), void *argument, const fake_region *regions, int count);
typedef void *fake_find(void *memory);

/* Of the library: from now on. */
typedef void fake_nccl_setter(fake_put *put, fake_find *find, fake_fault what);
fake_nccl_setter fake_nccl_set;

#endif
