#include "src/exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "src/exchange/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gm_path *const paths[] = {&gm_path_ipc, &gm_path_nccl, &gm_path_staged, NULL};

struct gm_exchange {
    gm_exchange_setup setup;
    const gm_path *path;
    void *state;
    gm_pool shown; /* device memory of probes, which other ranks may address */
    int is_under_way;
    double begun, seconds;
};

const gm_path *gm_exchange_path(int index)
{
    return paths[index];
}

/* --- The choice --- */

static void close_path_all(gm_exchange *x)
{
    if (x->path)
        x->path->close_all(x->state);
    gm_pool_release(&x->shown);
    x->path = NULL;
    x->state = NULL;
}

/* Opens a path and tries it. Collective. */
static int try_all(gm_exchange *x, const gm_path *path, gm_exchange_choice *choice)
{
    char version[GM_PATH_VERSION];
    x->path = path;
    int status = path->open_all(&x->setup, &x->state, version);
    if (version[0])
        snprintf(choice->version, sizeof choice->version, "%s", version);
    if (!status && x->setup.ranks->size > 1)
        status = gm_probe_bytes_all(&x->setup, path, x->state, &x->shown);
    if (!path->is_addressed)
        gm_pool_release(&x->shown);
    if (status)
        close_path_all(x);
    else
        snprintf(choice->path, sizeof choice->path, "%s", path->name);
    return status;
}

void gm_exchange_add_reason(gm_exchange_choice *choice, const char *why)
{
    size_t length = strlen(choice->reason);
    snprintf(choice->reason + length, sizeof choice->reason - length, "%s%s", length ? "; " : "", why);
}

/* Collective. */
static int choose_all(gm_exchange *x, gm_exchange_choice *choice)
{
    const char *wanted = x->setup.wanted;
    gm_error error;
    int is_auto = strcmp(wanted, "auto") == 0, is_alone = x->setup.ranks->size == 1;
    for (int i = 0; paths[i]; i++) {
        int is_last = !paths[i + 1];
        if (is_auto ? is_alone && !is_last : strcmp(wanted, paths[i]->name) != 0)
            continue;
        if (is_auto && paths[i]->start_s > x->setup.seconds) {
            gm_exchange_add_reason(choice, paths[i]->too_slow);
            continue;
        }
        int status = try_all(x, paths[i], choice);
        if (status == GM_OK || status == GM_ESTOPPED)
            return status;
        gm_error_get(&error);
        gm_exchange_add_reason(choice, error.text);
        if (!is_auto || is_last)
            return status;
        gm_error_clear(); /* it is no failure of the run while there is another path */
    }
    return gm_fail(GM_EUSAGE, "--exchange %s: there is no such path", wanted);
}

int gm_exchange_open_all(const gm_exchange_setup *setup, gm_exchange_choice *choice, gm_exchange **exchange)
{
    gm_exchange *x = *exchange = calloc(1, sizeof *x);
    *choice = (gm_exchange_choice){0};
    int status = gm_agree_all(setup->ranks, x ? GM_OK : gm_fail(GM_EDEVICE, "no memory for exchanges between ranks"));
    if (status)
        return status;
    x->setup = *setup;
    x->shown = (gm_pool){.ops = setup->ops, .device = setup->device};
    status = choose_all(x, choice);
    if (!status && strcmp(setup->wanted, "auto") != 0 && x->path != paths[0])
        snprintf(choice->reason, sizeof choice->reason, "%s", setup->reason ? setup->reason : "asked for");
    x->setup.way_count = 0; /* they were lent */
    if (!status)
        gm_detail("exchange between ranks: %s%s%s%s%s", choice->path, choice->version[0] ? ", NCCL " : "",
                  choice->version, choice->reason[0] ? ": " : "", choice->reason);
    return status;
}

void gm_exchange_close_all(gm_exchange *x)
{
    if (x)
        close_path_all(x);
    free(x);
}

int gm_exchange_rate_all(gm_exchange *x, double *own, double *least)
{
    *own = *least = 0;
    return x->setup.ranks->size == 1 ? GM_OK : gm_probe_rate_all(&x->setup, x->path, x->state, &x->shown, own, least);
}

/* --- Exchanges --- */

void gm_exchange_begin(gm_exchange *x, const gm_exchange_region *send, const gm_exchange_region *receive,
                       gm_event *after, int status)
{
    x->begun = gm_clock();
    x->is_under_way = 1;
    x->path->begin(x->state, send, receive, after, status);
}

int gm_exchange_advance(gm_exchange *x)
{
    return x->path->advance(x->state);
}

void gm_exchange_fail(gm_exchange *x, int status)
{
    x->path->fail(x->state, status);
}

int gm_exchange_end(gm_exchange *x)
{
    int status = x->path->end(x->state);
    x->seconds += gm_clock() - x->begun;
    x->is_under_way = 0;
    return status;
}

int gm_exchange_is_under_way(const gm_exchange *x)
{
    return x->is_under_way;
}

double gm_exchange_seconds(const gm_exchange *x)
{
    return x->seconds;
}

int gm_exchange_trade(gm_exchange *x, const gm_exchange_region *send, const gm_exchange_region *receive,
                      gm_event *after, int status)
{
    gm_exchange_begin(x, send, receive, after, status);
    return gm_exchange_end(x);
}
