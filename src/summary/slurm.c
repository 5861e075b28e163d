#include "src/summary/slurm.h"

#include "base/size.h"
#include "src/summary/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB };
static const struct {
    const char *key, *variable;
} numbers[GM_SLURM_NUMBERS] = {
    [JOB] = {"job", "SLURM_JOB_ID"},
    {"step", "SLURM_STEP_ID"},
    {"array_job", "SLURM_ARRAY_JOB_ID"},
    {"array_task", "SLURM_ARRAY_TASK_ID"},
};

void gm_slurm_find(gm_slurm *slurm)
{
    memset(slurm, 0, sizeof *slurm);
    for (int i = 0; i < GM_SLURM_NUMBERS; i++) {
        const char *text = getenv(numbers[i].variable);
        if (!text || gm_integer_parse(text, 0, INT64_MAX, &slurm->number[i]))
            slurm->number[i] = -1;
    }
    const char *node = getenv("SLURMD_NODENAME");
    snprintf(slurm->node, sizeof slurm->node, "%s", node ? node : "");
}

json_t *gm_slurm_json(const gm_slurm *slurm)
{
    if (slurm->number[JOB] < 0)
        return json_null();
    json_t *object = json_object();
    for (int i = 0; i < GM_SLURM_NUMBERS; i++)
        if (slurm->number[i] >= 0)
            json_object_set_new(object, numbers[i].key, json_integer((json_int_t)slurm->number[i]));
    if (slurm->node[0])
        json_object_set_new(object, "node", gm_json_text(slurm->node));
    return object;
}
