/* bench exchange on two ranks whose device is slow and does not address host memory: messages are staged, and every
 * byte that it compares is right. */
#include "tests/src/command.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

static void make_slow(gm_job *job)
{
    job->ops = slow_device_ops(job->ops);
}

int main(void)
{
    gm_ranks ranks;
    if (gm_ranks_start_all(&ranks))
        return 1;
    int status = command_run_all(&ranks, make_slow, "bench exchange --device cpu --threads 1 --host-memory 160M");
    tap_ok(status == GM_OK, "bench exchange, staged: status %d", status);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
