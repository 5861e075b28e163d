/* libraries.h - the versions of the libraries that a rank runs with. Those of a GPU are in its description
 * (base/device.h), NCCL's in the choice of a path (src/exchange/exchange.h). */
#ifndef GM_SRC_SUMMARY_LIBRARIES_H
#define GM_SRC_SUMMARY_LIBRARIES_H

#include "kernels/kernels.h"

#include <jansson.h>

typedef struct gm_library {
    const char *title, *key; /* in a table, and in JSON */
    char *(*version)(char *text);
} gm_library;

enum { GM_LIBRARIES = 6 };
extern const gm_library gm_libraries[GM_LIBRARIES];

/* A flat record; equal ones have the same bytes. */
typedef struct gm_versions {
    char text[GM_LIBRARIES][GM_VERSION_TEXT];
} gm_versions;

void gm_versions_find(gm_versions *versions);

/* The versions by the names of their libraries. New reference. */
json_t *gm_versions_json(const gm_versions *versions);

#endif
