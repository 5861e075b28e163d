/* ledger.h - the bytes charged for each allocation of a device: memory is freed by its address alone. */
#ifndef GM_KERNELS_LEDGER_H
#define GM_KERNELS_LEDGER_H

#include "base/memory.h"

typedef struct gm_ledger {
    gm_account account;
    struct gm_ledger_entry *first;
    int64_t count; /* of all allocations so far */
} gm_ledger;

/* An allocation: its number, from 1, is of no other one of the ledger, also of none before it. */
typedef struct gm_allocation {
    void *memory; /* NULL: there is none */
    int64_t bytes, number;
} gm_allocation;

/* Charges bytes to the account and adds an entry for them; on GM_EDEVICE nothing is charged. */
int gm_ledger_charge(gm_ledger *ledger, size_t bytes);
/* Sets the address of the bytes charged last. */
void gm_ledger_place(gm_ledger *ledger, void *memory);
/* Releases the charge of memory; NULL: of the bytes charged last, whose allocation failed. */
void gm_ledger_release(gm_ledger *ledger, void *memory);
/* The allocation that an address lies in. */
gm_allocation gm_ledger_find(const gm_ledger *ledger, const void *address);

#endif
