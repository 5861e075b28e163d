#include "src/summary/rank.h"

#include "src/summary/json.h"

#include <string.h>

/* A process that is not bound counts on `processors` of those in the list. */
static json_t *processors(const gm_binding *b)
{
    return b->processors == 0
               ? json_null()
               : json_pack("{s:i, s:o, s:b, s:o}", "count", b->processors, "list", gm_json_text_or_null(b->list),
                           "bound", b->bound, "given_by", gm_json_text_or_null(b->from));
}

static json_t *device(const gm_device_info *d)
{
    return !d->kind[0]
               ? json_null()
               : json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "kind", d->kind, "index",
                           gm_json_number_or_null(d->index), "name", gm_json_text(d->name), "uuid",
                           gm_json_text_or_null(d->uuid), "pci", gm_json_text_or_null(d->pci), "numa_node",
                           gm_json_number_or_null(d->numa_node), "memory_bytes", (json_int_t)d->memory_total, "driver",
                           gm_json_text_or_null(d->driver), "runtime", gm_json_text_or_null(d->runtime));
}

static json_t *phases(const gm_phase_times *times)
{
    json_t *object = json_object();
    for (int phase = 0; phase < GM_PHASES; phase++)
        json_object_set_new(object, gm_phase_name((gm_phase)phase), json_real(times->seconds[phase]));
    return object;
}

json_t *gm_rank_json(const gm_rank_record *all, int rank)
{
    const gm_rank_record *r = &all[rank];
    int is_bound_near = r->binding.processors > 0 && r->binding.numa_node >= 0;
    json_t *entry = json_pack(
        "{s:i, s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:f, s:I, s:I, s:I, s:I}", "rank", rank, "host",
        r->host, "processors", processors(&r->binding), "threads", r->threads, "numa_node",
        gm_json_number_or_null(is_bound_near ? r->binding.numa_node : -1), "numa_nodes",
        gm_json_number_or_null(r->binding.numa_nodes > 0 ? r->binding.numa_nodes : -1), "device", device(&r->device),
        "slurm", gm_slurm_json(&r->slurm), "init_s", r->init_s, "sync_s", r->sync_s, "phases", phases(&r->times),
        "flop", r->flop, "bytes_read", (json_int_t)r->bytes_read, "bytes_written", (json_int_t)r->bytes_written,
        "peak_host_bytes", (json_int_t)r->peak_host, "peak_device_bytes", (json_int_t)r->peak_device);
    if (memcmp(&r->versions, &all[0].versions, sizeof r->versions) != 0)
        json_object_set_new(entry, "libraries", gm_versions_json(&r->versions));
    return entry;
}
