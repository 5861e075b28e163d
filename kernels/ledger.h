/* ledger.h - what each piece of a device's memory was charged with: whoever frees it says only where it lies. */
#ifndef GM_KERNELS_LEDGER_H
#define GM_KERNELS_LEDGER_H

#include "base/memory.h"

typedef struct gm_ledger {
    gm_account account;
    struct gm_ledger_entry *first;
} gm_ledger;

/* Charges bytes to the account and keeps a line for them; GM_EDEVICE with a message, nothing charged then. */
int gm_ledger_charge(gm_ledger *ledger, size_t bytes);
/* Says where the bytes charged last lie. */
void gm_ledger_place(gm_ledger *ledger, void *memory);
/* Gives back the charge of memory; NULL: of the bytes charged last, which found no place. */
void gm_ledger_release(gm_ledger *ledger, void *memory);

#endif
