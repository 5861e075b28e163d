/* The account of host memory: its cap, and the part of it that is optional. */
#include "base/memory.h"
#include "base/status.h"
#include "tests/tap.h"

enum { MANY = 1 << 20 };

int main(void)
{
    void *one, *two, *three;
    gm_memory_set_cap(GM_HOST, 4 * MANY);
    tap_ok(gm_host_alloc(MANY, &one) == GM_OK && one && gm_memory_used(GM_HOST) > MANY, "memory is charged");
    tap_ok(gm_host_alloc(3 * MANY, &two) == GM_EDEVICE && !two, "no more than the cap");
    gm_error_clear();
    tap_ok(gm_host_try(MANY, &two) && two, "optional memory, as much as the cap allows");
    tap_ok(!gm_host_try(2 * MANY, &three) && !three, "no more");
    gm_memory_set_optional(2 * MANY);
    tap_ok(!gm_host_try(MANY, &three) && !three, "what is left of the cap, but not of the optional part");
    tap_ok(gm_host_alloc(MANY, &three) == GM_OK, "which leaves it to others");
    gm_host_free(two);
    gm_host_free(three);
    tap_ok(gm_host_try(MANY, &two) && gm_host_alloc(MANY, &three) == GM_OK, "what is freed can be had again");
    gm_host_free(one);
    gm_host_free(two);
    gm_host_free(three);
    gm_memory_set_cap(GM_HOST, 0);
    gm_memory_set_optional(INT64_MAX);
    tap_ok(!gm_host_try(1, &one) && gm_memory_used(GM_HOST) == 0, "a failure charges nothing");
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    gm_memory_set_optional(0);
    tap_ok(!gm_host_try(1, &one) && gm_memory_used(GM_HOST) == 0, "nor does one of the optional part");
    return tap_done();
}
