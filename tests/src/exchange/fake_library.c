#include "tests/src/exchange/fake_library.h"

#include "kernels/kernels.h"
#include "tests/src/slow/queue.h"
#include "tests/src/slow_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_fault fault;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

static void *fake(void)
{
    char name[512];
    const char *folder = getenv("abs_top_builddir");
    snprintf(name, sizeof name, "%s/tests/src/exchange/fake_nccl.so", folder ? folder : ".");
    return __real_dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *__wrap_dlopen(const char *name, int flags)
{
    if (!name || !strstr(name, "libnccl"))
        return __real_dlopen(name, flags);
    return fault == FAKE_ABSENT ? NULL : fake();
}

void *__wrap_dlsym(void *library, const char *name)
{
    return fault == FAKE_NO_SYMBOL && strcmp(name, "ncclSend") == 0 ? NULL : __real_dlsym(library, name);
}

static void put(void *queue, void (*function)(void *), void *argument, const fake_region *regions, int count)
{
    slow_region uses[count > 0 ? count : 1];
    for (int i = 0; i < count; i++)
        uses[i] = (slow_region){regions[i].memory, regions[i].bytes, regions[i].is_written};
    slow_queue_call(queue, function, argument, uses, count);
}

void fake_library_plant(fake_fault what)
{
    fake_nccl_setter *set;
    void *library = fake();
    fault = what;
    *(void **)&set = library ? __real_dlsym(library, "fake_nccl_set") : NULL;
    if (!set)
        exit(1);
    set(put, slow_device_bytes, fault);
}

static int attach(gm_device *of)
{
    (void)of;
    return GM_OK;
}

static void *stream(gm_queue *queue)
{
    return queue;
}

const gm_device_ops *fake_library_ops(void)
{
    static gm_device_ops ops;
    ops = *slow_device_ops(&gm_device_cpu);
    ops.attach = attach;
    ops.stream = stream;
    ops.share = NULL;
    fake_library_plant(FAKE_GOOD);
    return &ops;
}
