/* options.h - the command line: one table of operations (operations.def), one of options (options.def). */
#ifndef GM_SRC_OPTIONS_H
#define GM_SRC_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

enum gm_operation_id {
#define GM_OPERATION(id, name, operation, device, groups, least, most, arguments, help) GM_OP_##id,
#include "src/operations.def"
#undef GM_OPERATION
    GM_OPERATIONS /* their number */
};

/* Options that go together: an operation takes all of a group, or none. In operations.def they have their short names.
 */
enum {
    GM_GROUP_NAME = 1,   /* --output */
    GM_GROUP_OUTPUT = 2, /* how an output is written */
    GM_GROUP_PLAN = 4,   /* --plan */
    GM_GROUP_AXIS = 8    /* --axis */
};

enum { GM_WORDS_MOST = 8 };      /* words after the operation */
enum { GM_THREADS_MOST = 1024 }; /* of --threads: far more than a host has processors for one rank */

enum {
#define GM_OPTION(field, name, letter, kind, start, operations, metavar, help) GM_OPTION_ROW_##field,
#include "src/options.def"
#undef GM_OPTION
    GM_OPTIONS
};

typedef struct gm_options {
    int operation; /* gm_operation_id; GM_OPERATIONS when only --help or --version was given */
    const char *operands[GM_WORDS_MOST];
    int operand_count;
#define GM_OPTION_FLAG int
#define GM_OPTION_TEXT const char *
#define GM_OPTION_CHOICE const char *
#define GM_OPTION_COUNT int64_t
#define GM_OPTION_INDEX int64_t
#define GM_OPTION_SIZE int64_t
#define GM_OPTION_SIZE_OR_0 int64_t
#define GM_OPTION_REAL double
#define GM_OPTION(field, name, letter, kind, start, operations, metavar, help) GM_OPTION_##kind field;
#include "src/options.def"
#undef GM_OPTION
    int given[GM_OPTIONS]; /* [GM_OPTION_ROW_field]: the option is on the command line */
} gm_options;

/* Reads the command line; strings keep pointing into argv. GM_EUSAGE with a message. argv may be reordered. */
int gm_options_parse(int argc, char **argv, gm_options *options);

/* Was the option called name given on the command line? For tables of names; elsewhere given[GM_OPTION_ROW_field]. */
int gm_options_given(const gm_options *options, const char *name);

/* Help on one operation, or on all for GM_OPERATIONS. */
void gm_options_help(FILE *out, int operation);

/* Every option that was given, in the order of the table: "name" and its value as text; calls visit for each. */
typedef void gm_option_visit(void *context, const char *name, const char *value);
void gm_options_each(const gm_options *options, gm_option_visit *visit, void *context);

const char *gm_operation_name(int operation);

#endif
