#include "tests/src/failing_device.h"

#include "base/status.h"

#include <signal.h>
#include <stddef.h>

const char *const failing_names[FAILING_CALLS] = {"fold", "copy in", "copy out", "product", "event", "finish"};
failing_plan failing = {.call = FAILING_CALLS};
static gm_device_ops ops;
static const gm_device_ops *working;
static gm_product product;
static int (*multiply)(gm_queue *queue, const gm_product_call *call);

static int is_struck(int call)
{
    if (failing.rank != failing.victim || call != failing.call || failing.left-- != 0)
        return 0;
    if (failing.stops)
        raise(SIGTERM);
    return !failing.stops;
}

static int fail(void)
{
    return gm_fail(GM_EDEVICE, "planted failure");
}

static int fold(gm_queue *queue, const gm_fold_call *call)
{
    return is_struck(FAILING_FOLD) ? fail() : working->fold(queue, call);
}

static int copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                   int64_t rows)
{
    return is_struck(FAILING_COPY_IN) ? fail() : working->copy_in(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int copy_out(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                    int64_t rows)
{
    return is_struck(FAILING_COPY_OUT) ? fail() : working->copy_out(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int record(gm_event *event, gm_queue *queue)
{
    return is_struck(FAILING_RECORD) ? fail() : working->event_record(event, queue);
}

static int finish(gm_queue *queue, const gm_finish_call *call)
{
    return is_struck(FAILING_FINISH) ? fail() : working->finish(queue, call);
}

static int run_product(gm_queue *queue, const gm_product_call *call)
{
    return is_struck(FAILING_PRODUCT) ? fail() : multiply(queue, call);
}

static const gm_product *give_product(gm_device *device, int index)
{
    const gm_product *real = working->product(device, index);
    if (!real)
        return NULL;
    product = *real;
    multiply = real->run;
    product.run = run_product;
    return &product;
}

const gm_device_ops *failing_device_ops(const gm_device_ops *real)
{
    working = real;
    ops = *real;
    ops.fold = fold;
    ops.copy_in = copy_in;
    ops.copy_out = copy_out;
    ops.event_record = record;
    ops.finish = finish;
    ops.product = give_product;
    return &ops;
}
