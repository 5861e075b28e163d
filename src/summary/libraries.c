#include "src/summary/libraries.h"

#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "mpi/bind.h"
#include "src/summary/json.h"

#include <stdio.h>
#include <string.h>

static char *jansson_version(char *text)
{
    snprintf(text, GM_VERSION_TEXT, "%s", JANSSON_VERSION);
    return text;
}

const gm_library gm_libraries[GM_LIBRARIES] = {
    {"HDF5", "hdf5", gm_hdf5_version},       {"MPI", "mpi", gm_mpi_version},
    {"BLAS", "blas", gm_blas_version},       {"hwloc", "hwloc", gm_hwloc_version},
    {"jansson", "jansson", jansson_version}, {"libdeflate", "libdeflate", gm_deflate_version},
};

void gm_versions_find(gm_versions *versions)
{
    memset(versions, 0, sizeof *versions);
    for (int i = 0; i < GM_LIBRARIES; i++)
        gm_libraries[i].version(versions->text[i]);
}

json_t *gm_versions_json(const gm_versions *versions)
{
    json_t *object = json_object();
    for (int i = 0; i < GM_LIBRARIES; i++)
        json_object_set_new(object, gm_libraries[i].key, gm_json_text(versions->text[i]));
    return object;
}
