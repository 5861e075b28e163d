/* read_file.c - reads whole datasets, one after the other: each line of standard input is FILE[:DATASET[SELECTION]],
 * for which it writes a line "ok SECONDS TYPE DIM,DIM,... CRC32", of the elements in this machine's order, "large
 * SECONDS TYPE DIM,DIM,..." where only the first ones were read, or "error SECONDS CODE MESSAGE". The last line is
 * "peak MIB": the most memory that a worker took. */
#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/status.h"
#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "io/worker.h"

enum { MOST_ELEMENTS = 1 << 18 };

static void print_shape(const gm_dataset *record)
{
    printf("%s ", gm_dtype_name(record->type));
    for (int d = 0; d < record->view_rank; d++)
        printf("%s%" PRId64, d ? "," : "", record->view[d]);
    if (record->view_rank == 0)
        putchar('-');
}

static void swap_all(char *data, int64_t elements, size_t size)
{
    for (int64_t i = 0; i < elements; i++, data += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            char byte = data[a];
            data[a] = data[b];
            data[b] = byte;
        }
}

static int read_all(const gm_dataset *record, double began)
{
    gm_reader *reader = NULL;
    int64_t all = gm_dataset_elements(record), elements = gm_min(all, MOST_ELEMENTS);
    size_t size = gm_dtype_size(record->type);
    char *data = malloc((size_t)elements * size + 1);
    int status = data ? gm_reader_open(record, &reader) : GM_EDEVICE;
    if (!status)
        status = gm_reader_read_range(reader, 0, elements, data);
    gm_reader_close(reader);
    if (!status) {
        if (record->swap)
            swap_all(data, elements, size);
        printf("%s %.3f ", all > elements ? "large" : "ok", gm_clock() - began);
        print_shape(record);
        printf(" %08" PRIx32 "\n", libdeflate_crc32(0, data, (size_t)elements * size));
    }
    free(data);
    return status;
}

int main(void)
{
    char line[2 * GM_PATH_MAX];
    struct rusage usage;
    gm_dataset record;
    gm_error error;
    while (fgets(line, sizeof line, stdin)) {
        double began = gm_clock();
        line[strcspn(line, "\n")] = '\0';
        int status = gm_describe(line, NULL, &record);
        if (!status)
            status = read_all(&record, began);
        gm_error_get(&error);
        gm_error_clear();
        if (status)
            printf("error %.3f %d %s\n", gm_clock() - began, status, error.text);
        else if (error.code)
            printf("error %.3f 70 success with the message: %s\n", gm_clock() - began, error.text);
        fflush(stdout);
    }
    gm_worker_stop();
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("peak %ld\n", usage.ru_maxrss / 1024);
    return 0;
}
