#include "src/readers.h"

#include "base/size.h"
#include "io/reader.h"

/* Bytes that a thread reads at memory speed with what it costs to give them to it out of sight. */
static const int64_t worth_a_thread = 2 << 20;

int gm_readers_count(const gm_dataset *dataset, int64_t bytes, int64_t units, int threads)
{
    int64_t most = gm_reader_is_parallel(dataset) ? gm_min(threads, units) : 1;
    return (int)gm_max(1, gm_min(most, (bytes + worth_a_thread / 2) / worth_a_thread));
}
