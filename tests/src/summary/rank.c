/* The report of a rank: processors, device, libraries, and the batch job by its environment. */
#include "src/summary/rank.h"
#include "src/summary/json.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The entry of all[rank] in one line. */
static char *text_of(const gm_rank_record *all, int rank)
{
    static char *text;
    json_t *entry = gm_rank_json(all, rank);
    free(text);
    text = json_dumps(entry, JSON_COMPACT);
    json_decref(entry);
    return text ? text : "";
}

static void check(const char *text, const char *part, const char *name)
{
    int is_there = strstr(text, part) != NULL;
    tap_ok(is_there, "%s", name);
    if (!is_there)
        tap_diag("expected %s in %s", part, text);
}

static void test_entry(void)
{
    gm_rank_record all[2];
    memset(all, 0, sizeof all);
    for (int r = 0; r < 2; r++) {
        snprintf(all[r].host, sizeof all[r].host, "n%d", r);
        gm_versions_find(&all[r].versions);
        all[r].slurm = (gm_slurm){.number = {-1, -1, -1, -1}};
    }
    const char *text = text_of(all, 0);
    check(text, "\"rank\":0,\"host\":\"n0\",\"processors\":null", "of an operation that binds to no processors");
    check(text, "\"numa_node\":null,\"numa_nodes\":null,\"device\":null,\"slurm\":null",
          "and opens no device, without Slurm");

    all[1].binding = (gm_binding){.processors = 4, .numa_nodes = 2, .numa_node = 1, .bound = 1, .list = "8-11"};
    strcpy(all[1].binding.from, "host");
    all[1].threads = 3;
    all[1].device = (gm_device_info){.index = 2, .numa_node = 1, .memory_total = (int64_t)80 << 30};
    strcpy(all[1].device.kind, "cuda");
    strcpy(all[1].device.name, "GPU \xff");
    strcpy(all[1].device.uuid, "GPU-12");
    strcpy(all[1].device.pci, "0000:1b:00.0");
    strcpy(all[1].device.driver, "580.65.06");
    strcpy(all[1].device.runtime, "13.0");
    all[1].times.seconds[GM_PHASE_READ] = 1.5;
    all[1].bytes_read = (int64_t)1 << 40;
    text = text_of(all, 1);
    check(text, "\"processors\":{\"count\":4,\"list\":\"8-11\",\"bound\":true,\"given_by\":\"host\"},\"threads\":3",
          "its processors");
    check(text, "\"numa_node\":1,\"numa_nodes\":2", "its NUMA node");
    check(text,
          "{\"kind\":\"cuda\",\"index\":2,\"name\":\"GPU \\\\xff\",\"uuid\":\"GPU-12\",\"pci\":\"0000:1b:00.0\","
          "\"numa_node\":1,\"memory_bytes\":85899345920,\"driver\":\"580.65.06\",\"runtime\":\"13.0\"}",
          "its GPU, a name of any bytes");
    check(text, "\"read\":1.5", "its phases");
    check(text, "\"bytes_read\":1099511627776", "its bytes are a number");
    tap_ok(!strstr(text, "libraries"), "libraries that are those of rank 0 are not said again");
    strcpy(all[1].versions.text[0], "0.0.1");
    check(text_of(all, 1), "\"libraries\":{\"hdf5\":\"0.0.1\",", "others are");

    json_t *versions = gm_versions_json(&all[0].versions);
    int known = 0;
    for (int i = 0; i < GM_LIBRARIES; i++)
        known += strpbrk(json_string_value(json_object_get(versions, gm_libraries[i].key)), "0123456789") != NULL;
    tap_ok(known == GM_LIBRARIES && json_object_size(versions) == GM_LIBRARIES, "all libraries have a version");
    json_decref(versions);
}

static void check_slurm(const char *want, const char *name)
{
    gm_slurm slurm;
    gm_slurm_find(&slurm);
    json_t *entry = gm_slurm_json(&slurm);
    char *text = json_dumps(entry, JSON_COMPACT | JSON_ENCODE_ANY);
    tap_ok(text && strcmp(text, want) == 0, "%s: %s", name, text ? text : "");
    free(text);
    json_decref(entry);
}

static void test_slurm(void)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_ARRAY_JOB_ID",
                                            "SLURM_ARRAY_TASK_ID", "SLURMD_NODENAME"};
    for (int i = 0; i < 5; i++)
        unsetenv(variables[i]);
    check_slurm("null", "no job");
    setenv("SLURMD_NODENAME", "n\xff", 1);
    setenv("SLURM_STEP_ID", "7", 1);
    check_slurm("null", "a node and a step without a job");
    setenv("SLURM_JOB_ID", "4711", 1);
    check_slurm("{\"job\":4711,\"step\":7,\"node\":\"n\\\\xff\"}", "a step; a name of any bytes");
    setenv("SLURM_STEP_ID", "4294967291", 1);
    setenv("SLURM_ARRAY_JOB_ID", "4700", 1);
    setenv("SLURM_ARRAY_TASK_ID", "0", 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    check_slurm("{\"job\":4711,\"step\":4294967291,\"array_job\":4700,\"array_task\":0,\"node\":\"n1\"}",
                "a batch step of an array");
    setenv("SLURM_STEP_ID", "0x1", 1);
    setenv("SLURM_ARRAY_JOB_ID", "99999999999999999999", 1);
    setenv("SLURM_ARRAY_TASK_ID", "-1", 1);
    check_slurm("{\"job\":4711,\"node\":\"n1\"}", "what is no number is left out");
    setenv("SLURM_JOB_ID", "", 1);
    check_slurm("null", "an empty number");
}

static void check_driver(const char *content, const char *want, const char *name)
{
    char text[GM_DRIVER_TEXT], path[] = "driver.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, content, strlen(content)) < 0)
        exit(99);
    close(fd);
    gm_driver_version(path, text);
    unlink(path);
    tap_ok(strcmp(text, want) == 0, "the driver: %s: '%s'", name, text);
}

int main(void)
{
    char folder[4096], text[GM_DRIVER_TEXT];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpumem-rank.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder) || chdir(folder))
        return 99;
    test_entry();
    test_slurm();
    check_driver(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.12  Wed Sep 20 09:35:17 UTC 2023\nGCC version:  12.2",
        "535.104.12", "closed modules");
    check_driver("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs@x)\n",
                 "580.65.06", "open modules");
    check_driver("NVRM version: unknown\nGCC version:  12.2", "", "no version in the first line");
    check_driver("", "", "an empty file");
    check_driver("1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0", "1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6", "a long one is cut");
    tap_ok(!*gm_driver_version("absent", text), "the driver: no file");
    if (chdir("/") || rmdir(folder))
        return 99;
    return tap_done();
}
