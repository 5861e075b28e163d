/* sources_describe.h - finds and describes the sources of a dataset (io/virtual/sources.h). Internal to io/. */
#ifndef GM_IO_DESCRIBE_SOURCES_DESCRIBE_H
#define GM_IO_DESCRIBE_SOURCES_DESCRIBE_H

#include "io/virtual/mappings.h"
#include "io/virtual/sources.h"

/* Describes the sources of a record, virtual or with external storage, and sets its table. Checks that every source is
 * there, can be read and converted, and has what is selected of it. GM_EINPUT; GM_EDEVICE; GM_ESTOPPED. title:
 * FILE:DATASET; mappings: of a virtual record, or NULL to read them. */
int gm_sources_describe(gm_dataset *record, const char *title, const gm_mappings *mappings);

/* The table of a record; made anew where this process has none. Good until the process ends. GM_EINPUT: something has
 * changed since it was described. GM_EDEVICE. */
int gm_sources_open(const gm_dataset *record, const char *title, gm_sources *sources);

#endif
