/* The rules of the slow device: each is broken once, in a process of its own, which the device ends; work that keeps
 * them ends well. */
#include "tests/src/slow/memory.h"
#include "tests/src/slow/queue.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "kernels/kernels.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4000, SIDE = 64 };

static gm_device_ops ops;
static gm_device *device;
static gm_queue *queue, *other;
static gm_event *event;
static char *memory, *host;
static sem_t gate; /* work behind wait_for_gate() is not done before it opens */

static void open_device(void)
{
    void *on_device, *on_host;
    ops = *slow_device_ops(&gm_device_cpu);
    slow_device_imitate(&ops);
    if (ops.open(0, 1, &device) || ops.queue_open(device, &queue) || ops.queue_open(device, &other) ||
        sem_init(&gate, 0, 0) || ops.event_open(device, 1, &event) || ops.alloc(device, BYTES, &on_device) ||
        ops.host_alloc(device, BYTES, &on_host))
        exit(2);
    memory = on_device;
    host = on_host;
}

static void close_device(void)
{
    ops.queue_sync(queue);
    ops.queue_sync(other);
    ops.queue_close(queue);
    ops.queue_close(other);
    ops.event_close(event);
    ops.free(device, memory);
    ops.host_free(device, host);
    ops.close(device);
}

static void wait_for_gate(void *argument)
{
    (void)argument;
    while (sem_wait(&gate))
        ;
}

/* --- Work --- */

static void keep_rules(void)
{
    memset(host, 5, BYTES);
    ops.copy_in(queue, memory, BYTES, host, BYTES, BYTES, 1);
    ops.event_record(event, queue);
    ops.event_wait(other, event);
    ops.zero(other, memory, BYTES / 2);
    ops.copy_out(other, host, BYTES, memory, BYTES, BYTES, 1);
    ops.queue_sync(other);
    if (host[0] != 0 || host[BYTES - 1] != 5)
        slow_die("a copy is not done");
}

static void touch_from_host(void)
{
    memory[0] = 1;
}

static void clear_host(void)
{
    ops.zero(queue, host, BYTES);
}

static void copy_from_device_as_host(void)
{
    ops.copy_in(queue, memory, 10, memory + 20, 10, 10, 1);
}

static void copy_pageable(void)
{
    void *pages = NULL;
    ops.host_alloc_pageable(device, BYTES, &pages);
    ops.copy_in(queue, memory, 10, pages, 10, 10, 1);
}

static void leave_allocation(void)
{
    ops.zero(queue, memory + 1, BYTES);
}

static void leave_host_memory(void)
{
    ops.copy_out(queue, host + BYTES - 9, 10, memory, 10, 10, 1);
}

static void write_red_zone(void)
{
    ((char *)slow_device_bytes(memory))[BYTES] = 1;
}

static void forget_memory(void)
{
    void *more;
    ops.alloc(device, 1, &more);
}

static void overtake(void)
{
    ops.zero(queue, memory, 100);
    ops.copy_out(other, host, 1, memory + 99, 1, 1, 1);
}

static void record_too_early(void)
{
    ops.event_record(event, queue);
    ops.zero(queue, memory, 100);
    ops.event_wait(other, event);
    ops.zero(other, memory, 100);
}

static void time_unrecorded(void)
{
    double seconds;
    ops.event_seconds(event, event, &seconds);
}

static void time_untimed(void)
{
    double seconds;
    gm_event *untimed;
    ops.event_open(device, 0, &untimed);
    ops.event_record(untimed, queue);
    ops.event_sync(untimed);
    ops.event_seconds(untimed, untimed, &seconds);
}

static void change_source(void)
{
    memset(host, 0, BYTES);
    slow_queue_call(queue, wait_for_gate, NULL, NULL, 0);
    ops.copy_in(queue, memory, BYTES, host, BYTES, BYTES, 1);
    host[7] = 1;
    sem_post(&gate);
}

static void read_target_early(void)
{
    memset(host, 0, BYTES);
    ops.zero(queue, memory, BYTES);
    slow_queue_call(queue, wait_for_gate, NULL, NULL, 0);
    ops.copy_out(queue, host, BYTES, memory, BYTES, BYTES, 1);
    if (host[7])
        slow_die("it is not yet there");
    sem_post(&gate);
}

static void free_under_way(void)
{
    ops.copy_in(queue, memory, BYTES, host, BYTES, BYTES, 1);
    ops.host_free(device, host);
}

static void allocate_beside_message(void)
{
    slow_queue_call(queue, wait_for_gate, NULL, NULL, 0);
    forget_memory();
    sem_post(&gate);
}

static void launch_beside_message(void)
{
    gm_fold_call call = {
        .rows = 1, .cols = 1, .part = memory, .part_ld = 1, .acc = memory + 64, .ld = 1, .type = GM_DTYPE_F32};
    slow_queue_call(other, wait_for_gate, NULL, NULL, 0);
    ops.fold(queue, &call);
    sem_post(&gate);
}

/* A product of 4 x 4 by 4, of the first kind that has work space. */
static int multiply(int64_t lda, int at, int ready)
{
    int i = 0, status;
    void *work[2];
    while (!ops.product(device, i)->work.planes)
        i++;
    const gm_product *product = ops.product(device, i);
    size_t bytes = gm_split_lay(&product->work, 4, 4, 64, 0).bytes;
    if (ops.alloc(device, bytes, &work[0]) || ops.alloc(device, bytes, &work[1]) || ops.zero(queue, memory, BYTES))
        exit(2);
    gm_product_call call = {.m = 4,
                            .n = 4,
                            .k = 4,
                            .a = memory + at,
                            .lda = lda,
                            .b = memory + 512,
                            .ldb = 16,
                            .acc = memory + 1024,
                            .ldacc = 16,
                            .leaf = 64,
                            .tile = SIDE,
                            .work = {work[0], work[1]},
                            .ready = {ready, ready}};
    status = product->run(queue, &call);
    ops.queue_sync(queue);
    ops.free(device, work[0]);
    ops.free(device, work[1]);
    return status;
}

static void keep_rules_of_products(void)
{
    if (multiply(16, 0, 0))
        slow_die("a product fails");
}

static void misalign_panel(void)
{
    multiply(16, 4, 0);
}

static void misalign_rows(void)
{
    multiply(6, 0, 0);
}

static void claim_planes(void)
{
    multiply(16, 0, 1);
}

/* --- Processes --- */

static const struct {
    const char *name;
    void (*work)(void);
    int signal;
} cases[] = {
    {"rules that are kept", keep_rules, 0},
    {"products that keep them", keep_rules_of_products, 0},
    {"device memory that the host writes", touch_from_host, SIGSEGV},
    {"host memory as device memory", clear_host, SIGABRT},
    {"device memory as host memory", copy_from_device_as_host, SIGABRT},
    {"a copy of memory that is not pinned", copy_pageable, SIGABRT},
    {"a call beyond an allocation", leave_allocation, SIGABRT},
    {"a copy beyond host memory", leave_host_memory, SIGABRT},
    {"a byte after an allocation", write_red_zone, SIGABRT},
    {"an allocation that is left", forget_memory, SIGABRT},
    {"queues without an event", overtake, SIGABRT},
    {"an event before the work", record_too_early, SIGABRT},
    {"the time of an event that was never recorded", time_unrecorded, SIGABRT},
    {"the time of an event that is not timed", time_untimed, SIGABRT},
    {"host memory that changes before it is copied", change_source, SIGABRT},
    {"host memory that is read before a copy is done", read_target_early, SIGABRT},
    {"host memory that is freed too early", free_under_way, SIGABRT},
    {"an allocation while a message is under way", allocate_beside_message, SIGABRT},
    {"the first launch of a kernel while a message is under way", launch_beside_message, SIGABRT},
    {"a panel between words", misalign_panel, SIGABRT},
    {"rows of a panel between words", misalign_rows, SIGABRT},
    {"planes that nobody has made", claim_planes, SIGABRT},
};

static int signal_of(void (*work)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        open_device();
        work();
        close_device();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) ? -1 : 0;
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int found = signal_of(cases[i].work);
        tap_ok(found == cases[i].signal, "%s: signal %d", cases[i].name, found);
    }
    return tap_done();
}
