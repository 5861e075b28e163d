/* A rank's frames: in groups, or each as a product of its own. */
#include "src/matmul/batch/batch.h"

/* Frames that failed their check, each as a group of its own: an error of the device is rare. */
static int repair_groups(gm_batch *b, gm_phase_times *times)
{
    gm_matmul *p = &b->product;
    const gm_verdict found = p->verdict;
    gm_program program;
    int status = GM_OK;
    gm_batch_program(b, &program);
    p->is_repair = 1;
    for (int64_t i = 0; i < found.suspects && !status; i++) {
        int64_t frame = found.suspect[i].frame;
        if (i > 0 && frame == found.suspect[i - 1].frame)
            continue;
        gm_batch_walk(b, (gm_range){frame, frame + 1}, 0);
        status = gm_stream_run(p->stream, &program, times);
    }
    p->is_repair = 0;
    if (!status)
        p->verdict.repaired = found.suspects;
    return status;
}

static int run_groups(gm_batch *b, gm_phase_times *times)
{
    gm_program program;
    gm_batch_program(b, &program);
    gm_batch_walk(b, b->share, 1);
    int status = gm_stream_run(b->product.stream, &program, times);
    return status ? status : repair_groups(b, times);
}

/* A frame is over, with its repair, before the next one begins. */
static int run_products(gm_batch *b, gm_phase_times *times)
{
    gm_matmul *p = &b->product;
    gm_verdict all = gm_verdict_none;
    gm_program program;
    int status = GM_OK;
    for (int64_t f = b->share.begin; f < b->share.end && !status; f++) {
        p->frame = f;
        p->cursor = (gm_cursor){0};
        p->products = 0;
        p->verdict = gm_verdict_none;
        gm_matmul_program(p, &program);
        status = gm_stream_run(p->stream, &program, times);
        if (!status)
            status = gm_matmul_repair(p, times);
        gm_verdict_add(&all, &p->verdict);
    }
    p->verdict = all;
    return status;
}

int gm_batch_run(gm_batch *b, gm_phase_times *times)
{
    if (gm_range_length(b->share) == 0)
        return GM_OK;
    return b->plan.group ? run_groups(b, times) : run_products(b, times);
}
