/* owner.h - the process that made a file, as a word of the file's name: a later run knows by it whether the file is
 * left over. */
#ifndef GM_BASE_FILE_OWNER_H
#define GM_BASE_FILE_OWNER_H

#include <time.h>

enum { GM_OWNER_TEXT = 80 };

/* ELSEWHERE: on another host, in another container, or not to be told. */
typedef enum gm_owner { GM_OWNER_DEAD, GM_OWNER_ALIVE, GM_OWNER_ELSEWHERE } gm_owner;

/* The word of this process, "HOST-BOOT-PROCESS-START": hashes of the host and of its last boot, the process's number
 * and when it was started; in a job of Slurm with "-JOB-COUNT", a hash of the job and how often it was queued again.
 * word has room for GM_OWNER_TEXT bytes. Returns word. */
char *gm_owner_word(char *word);

/* The state of the process of a word, which ends at '\0' or '.'. changed: when its file was last changed. A process of
 * an earlier start of this process's batch job is DEAD, on any host. *process gets its number. Any other word:
 * GM_OWNER_ELSEWHERE, process 0. */
gm_owner gm_owner_find(const char *word, time_t changed, long *process);

#endif
