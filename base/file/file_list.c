#include "base/file/file_list.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/status.h"

static int fail_memory(void)
{
    return gm_fail(GM_EDEVICE, "no memory for the list of input files");
}

int gm_file_list_begin(gm_file_list *list, const char *input)
{
    const char **more = realloc(list->inputs, (size_t)(list->input_count + 1) * sizeof *more);
    if (!more)
        return fail_memory();
    list->inputs = more;
    list->inputs[list->input_count++] = input;
    return GM_OK;
}

static const gm_file_entry *find(const gm_file_list *list, uint64_t device, uint64_t inode)
{
    for (int i = 0; i < list->count; i++)
        if (list->entry[i].inode == inode && list->entry[i].device == device)
            return &list->entry[i];
    return NULL;
}

int gm_file_list_add(gm_file_list *list, gm_file_role role, uint64_t device, uint64_t inode)
{
    if (find(list, device, inode))
        return GM_OK;
    if (list->count == list->room) {
        int room = 2 * list->room + 16;
        gm_file_entry *more = realloc(list->entry, (size_t)room * sizeof *more);
        if (!more)
            return fail_memory();
        list->entry = more;
        list->room = room;
    }
    list->entry[list->count++] = (gm_file_entry){device, inode, role, list->input_count - 1};
    return GM_OK;
}

int gm_file_list_refuse(const gm_file_list *list, const char *path, const char *name)
{
    static const char *const why[GM_FILE_ROLES] = {
        [GM_FILE_INPUT] = "is one of the inputs",
        [GM_FILE_LINKED] = "an external link leads to it from an input",
        [GM_FILE_EXTERNAL] = "is the external storage of an input",
        [GM_FILE_VIRTUAL] = "an input is a virtual dataset over it",
    };
    struct stat st;
    const gm_file_entry *e = stat(path, &st) ? NULL : find(list, st.st_dev, st.st_ino);
    return e ? gm_fail(GM_EOUTPUT, "%s: %s (%s), expected another file", name, why[e->role], list->inputs[e->input])
             : GM_OK;
}

void gm_file_list_free(gm_file_list *list)
{
    free(list->entry);
    free(list->inputs);
    *list = (gm_file_list){0};
}
