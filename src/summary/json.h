/* json.h - text as JSON, and the memory that JSON takes. */
#ifndef GM_SRC_SUMMARY_JSON_H
#define GM_SRC_SUMMARY_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Counts memory that jansson lacks from here on. Before the first entry is made. */
void gm_json_start(void);

/* GM_EDEVICE if memory for an entry of a report was lacking: it may be incomplete. */
int gm_json_memory(void);

/* Memory of an entry's making, which the caller frees; NULL, and counted, if there is none. */
void *gm_json_allocate(size_t bytes);

/* Text of any bytes as a string of JSON, which is UTF-8: other bytes become \xHH (base/text/escape.h). NULL: no memory.
 * New reference. */
json_t *gm_json_text(const char *text);

/* The same; null for an empty text. New reference. */
json_t *gm_json_text_or_null(const char *text);

/* A number; null for a negative one, which stands for an unknown one. New reference. */
json_t *gm_json_number_or_null(int64_t number);

#endif
