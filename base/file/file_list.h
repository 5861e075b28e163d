/* file_list.h - files by device and inode, as links lead to them as well: the inputs of a run and all that they are
 * read from, none of which a new file may replace. */
#ifndef GM_BASE_FILE_FILE_LIST_H
#define GM_BASE_FILE_FILE_LIST_H

#include <stdint.h>

/* Why a file is listed. */
typedef enum gm_file_role {
    GM_FILE_INPUT,    /* an input itself */
    GM_FILE_LINKED,   /* external links lead into it or through it */
    GM_FILE_EXTERNAL, /* external storage */
    GM_FILE_VIRTUAL,  /* a source of a virtual dataset */
    GM_FILE_ROLES
} gm_file_role;

/* A flat record. */
typedef struct gm_file_entry {
    uint64_t device, inode;
    int role;  /* gm_file_role */
    int input; /* index in `inputs` */
} gm_file_entry;

typedef struct gm_file_list {
    gm_file_entry *entry;
    int count, room;
    const char **inputs;
    int input_count;
} gm_file_list;

/* Begins the entries of an input; its name is lent until the list is freed. GM_EDEVICE. */
int gm_file_list_begin(gm_file_list *list, const char *input);

/* Adds a file of that input, unless it is there. GM_EDEVICE. */
int gm_file_list_add(gm_file_list *list, gm_file_role role, uint64_t device, uint64_t inode);

/* GM_EOUTPUT when the list has the file at path: then `name`, which the user gave, must not be replaced. */
int gm_file_list_refuse(const gm_file_list *list, const char *path, const char *name);

void gm_file_list_free(gm_file_list *list);

#endif
