/* flush.h - a file to the disk. */
#ifndef GM_BASE_FILE_FLUSH_H
#define GM_BASE_FILE_FLUSH_H

/* fsync() that is not ended by a signal. Returns 0 or an errno. */
int gm_file_flush(int fd);

/* The same for a file that may be large and is no result yet: goes step by step, so that a signal, or the failure of
 * another rank, ends it within a fraction of a second, as no single step takes longer; only the last one, for which
 * little is left, is fsync(). *stopped: what gm_stop_status() says; the file may not be on the disk then. Returns 0 or
 * an errno. File systems without steps (no pages in the page cache of Linux) have one fsync(), which nothing ends. */
int gm_file_flush_stoppable(int fd, int *stopped);

#endif
