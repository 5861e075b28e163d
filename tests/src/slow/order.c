#include "tests/src/slow/order.h"

#include "base/size.h"
#include "tests/src/slow/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A use that may be under way as far as the host knows. */
typedef struct entry {
    struct entry *next;
    int queue;
    int64_t number;
    const char *call;
    slow_use use;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;
static slow_clock host;
static int64_t begun[SLOW_QUEUES]; /* never fewer: a queue that is opened later may have the number of one before */
static int is_open[SLOW_QUEUES];

static void join(slow_clock *to, const slow_clock *from)
{
    for (int i = 0; i < SLOW_QUEUES; i++)
        to->done[i] = gm_max(to->done[i], from->done[i]);
}

static int is_known(const entry *e)
{
    return e->number <= host.done[e->queue];
}

static int has_entries(int queue)
{
    int has = 0;
    for (const entry *e = entries; e; e = e->next)
        has |= e->queue == queue;
    return has;
}

void slow_order_open(slow_line *line)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < SLOW_QUEUES && (is_open[i] || has_entries(i)))
        i++;
    if (i == SLOW_QUEUES)
        slow_die("more than %d queues", SLOW_QUEUES);
    is_open[i] = 1;
    *line = (slow_line){.number = i};
    pthread_mutex_unlock(&lock);
}

void slow_order_close(slow_line *line)
{
    pthread_mutex_lock(&lock);
    is_open[line->number] = 0;
    pthread_mutex_unlock(&lock);
}

static void compare(const slow_line *line, const char *call, const slow_use *use)
{
    for (const entry *e = entries; e; e = e->next)
        if (e->queue != line->number && line->after.done[e->queue] < e->number &&
            (e->use.how != use->how || use->how == SLOW_WRITES) && slow_uses_meet(&e->use, use))
            slow_die("%s of %s (queue %d) is not ordered after %s of %s (queue %d)", use->name, call, line->number,
                     e->use.name, e->call, e->queue);
}

void slow_order_add(slow_line *line, const slow_uses *uses)
{
    pthread_mutex_lock(&lock);
    join(&line->after, &host);
    int64_t number = ++begun[line->number];
    for (int i = 0; i < uses->count; i++)
        compare(line, uses->call, &uses->use[i]);
    line->after.done[line->number] = number;
    for (int i = 0; i < uses->count; i++) {
        entry *e = malloc(sizeof *e);
        if (!e)
            slow_die("out of host memory");
        *e = (entry){entries, line->number, number, uses->call, uses->use[i]};
        entries = e;
    }
    pthread_mutex_unlock(&lock);
}

void slow_order_wait(slow_line *line, const slow_clock *event)
{
    pthread_mutex_lock(&lock);
    join(&line->after, event);
    pthread_mutex_unlock(&lock);
}

void slow_order_know(const slow_clock *done)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOW_QUEUES; i++)
        host.done[i] = gm_max(host.done[i], done ? done->done[i] : begun[i]);
    for (entry **at = &entries; *at;) {
        entry *e = *at;
        if (is_known(e)) {
            *at = e->next;
            free(e);
        } else {
            at = &e->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

int slow_order_uses(const slow_use *use)
{
    int uses = 0;
    pthread_mutex_lock(&lock);
    for (const entry *e = entries; e; e = e->next)
        uses |= slow_uses_meet(&e->use, use);
    pthread_mutex_unlock(&lock);
    return uses;
}
