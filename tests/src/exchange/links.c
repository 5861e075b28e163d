#include "tests/src/exchange/links.h"

#include "base/random.h"
#include "base/size.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { CASES = 40, GAP = 0xEE };

const link link_ring[LINK_RANKS] = {{0, 1, 3, 90, 40000}, {1, 2, 3, 90, 40000}, {2, 0, 3, 90, 40000}};

/* --- Regions --- */

static unsigned char value(const link *l, int64_t row, int64_t col)
{
    uint32_t x = (uint32_t)row * 2654435761U + (uint32_t)col * 40503U + (uint32_t)(l->number * 31 + l->from * 97);
    return (unsigned char)(x >> 7 ^ x >> 15);
}

static gm_exchange_region lend(const way *w, const link *l, int peer, int64_t gap)
{
    gm_exchange_region r = {
        .peer = peer, .width = (size_t)l->width, .pitch = (size_t)(l->width + gap), .rows = l->rows};
    size_t bytes = r.pitch * (size_t)r.rows + 1;
    if (w->ops->alloc(w->device, bytes, &r.memory))
        exit(1);
    memset(slow_device_bytes(r.memory), GAP, bytes);
    return r;
}

static gm_exchange_region lend_source(const way *w, const link *l, int64_t gap)
{
    gm_exchange_region r = lend(w, l, l->to, gap);
    for (int64_t i = 0; i < l->rows; i++)
        for (int64_t k = 0; k < l->width; k++)
            ((unsigned char *)slow_device_bytes(r.memory))[i * (int64_t)r.pitch + k] = value(l, i, k);
    return r;
}

/* Is every byte of the link there, and none beside it changed? */
static int has_arrived(const link *l, const gm_exchange_region *r)
{
    const unsigned char *at = slow_device_bytes(r->memory);
    int64_t wrong = 0, pitch = (int64_t)r->pitch;
    for (int64_t i = 0; i < l->rows; i++)
        for (int64_t k = 0; k < pitch; k++)
            wrong += at[i * pitch + k] != (k < l->width ? value(l, i, k) : GAP);
    return wrong == 0 && at[pitch * l->rows] == GAP;
}

/* --- Exchanges --- */

int link_exchange(const way *w, const link *links, int count, int gap, int status, int *arrived)
{
    const link *out = NULL, *in = NULL;
    for (int i = 0; i < count; i++) {
        out = links[i].from == w->ranks->rank ? &links[i] : out;
        in = links[i].to == w->ranks->rank ? &links[i] : in;
    }
    gm_exchange_region send = {0}, receive = {0};
    if (out)
        send = lend_source(w, out, gap);
    if (in)
        receive = lend(w, in, in->from, 2 * gap);
    w->path->begin(w->state, out ? &send : NULL, in ? &receive : NULL, NULL, status);
    int result = w->path->end(w->state);
    *arrived = !in || has_arrived(in, &receive);
    w->ops->free(w->device, send.memory);
    w->ops->free(w->device, receive.memory);
    return result;
}

static int64_t draw(uint64_t *state, int64_t n)
{
    return (int64_t)(gm_random_bits(7, (*state)++) % (uint64_t)n);
}

/* No bytes, one, some rows, narrow rows, rows of several pieces. */
static link random_link(uint64_t *state, int from, int to, int number)
{
    const int64_t shapes[][2] = {{0, 77},
                                 {5, 0},
                                 {1, 1},
                                 {1, 1 + draw(state, 3 << 20)},
                                 {1 + draw(state, 300), 1 + draw(state, 9000)},
                                 {1 + draw(state, 20000), 1 + draw(state, 5)},
                                 {1 + draw(state, 3), (1 << 18) + draw(state, 1 << 19)}};
    const int64_t *shape = shapes[draw(state, 7)];
    return (link){from, to, number, shape[0], shape[1]};
}

/* Links from each rank to the next, or to the one before; some are absent. */
void link_test_random(const way *w)
{
    uint64_t state = 1;
    int faults = 0;
    for (int i = 0; i < CASES; i++) {
        int shift = 1 + (int)draw(&state, 2), gap = (int)draw(&state, 2) * (int)draw(&state, 99), count = 0, arrived;
        link links[LINK_RANKS];
        for (int from = 0; from < LINK_RANKS; from++) {
            links[count] = random_link(&state, from, (from + shift) % LINK_RANKS, i);
            count += draw(&state, 4) > 0;
        }
        int status = link_exchange(w, links, count, gap, GM_OK, &arrived);
        faults += status != GM_OK || !arrived;
    }
    tap_ok(!faults, "%s: %d exchanges, faults %d", w->name, CASES, faults);
}

/* Two ranks, both directions, while the third has nothing to do; pieces of the largest size. */
void link_test_large(const way *w)
{
    const link links[] = {{0, 2, 1, 1, (34 << 20) + 13}, {2, 0, 2, 4100, 8200}};
    int arrived, status = link_exchange(w, links, 2, 3, GM_OK, &arrived);
    tap_ok(status == GM_OK && arrived, "%s: a row, and rows, of 32 MiB and more", w->name);
}

/* The copies begin after an event, and the rank does other work meanwhile. */
void link_test_event(const way *w)
{
    const link *out = &link_ring[w->ranks->rank], *in = &link_ring[(w->ranks->rank + LINK_RANKS - 1) % LINK_RANKS];
    gm_exchange_region source = lend_source(w, out, 0), send = lend(w, out, out->to, 64),
                       receive = lend(w, in, in->from, 0);
    const gm_device_ops *ops = w->ops;
    gm_queue *queue = NULL;
    gm_event *filled = NULL;
    int status = ops->queue_open(w->device, &queue);
    if (!status)
        status = ops->event_open(w->device, 0, &filled);
    for (int64_t i = 0; i < out->rows && !status; i++)
        status = ops->copy_in(queue, (char *)send.memory + (size_t)i * send.pitch, send.pitch,
                              (char *)slow_device_bytes(source.memory) + (size_t)i * source.pitch, source.pitch,
                              send.width, 1);
    if (!status)
        status = ops->event_record(filled, queue);
    w->path->begin(w->state, &send, &receive, filled, status);
    while (!w->path->advance(w->state))
        ;
    status = gm_agree_all(w->ranks, w->path->end(w->state)); /* failures follow */
    tap_ok(!status && has_arrived(in, &receive), "%s: data of work that is under way", w->name);
    ops->event_close(filled);
    ops->queue_close(queue);
    w->ops->free(w->device, source.memory);
    w->ops->free(w->device, send.memory);
    w->ops->free(w->device, receive.memory);
}
