/* locate.h - where libhdf5 finds the file of a virtual dataset's source. Internal to io/. */
#ifndef GM_IO_VIRTUAL_LOCATE_H
#define GM_IO_VIRTUAL_LOCATE_H

/* The location of the file that a virtual dataset in the file master calls name ("." is master itself), to path
 * [GM_PATH_MAX]. The first of these that exists counts: an absolute name as it is; then its last component, or a
 * relative name, in the folders of HDF5_VDS_PREFIX, beside master, from the working folder, and beside the file that
 * master is a symbolic link to. Returns whether there is one; path is "" otherwise. */
int gm_locate(const char *master, const char *name, char *path);

#endif
