/* sight.h - which one of its host's GPUs a process has in sight: the value of CUDA_VISIBLE_DEVICES. CUDA starts the
 * slower the more GPUs a process sees, so a rank sees its own alone, if it is certain which one that is. Nothing here
 * calls CUDA. */
#ifndef GM_KERNELS_SIGHT_H
#define GM_KERNELS_SIGHT_H

#ifdef __cplusplus
extern "C" {
#endif

enum { GM_SIGHT_MAX = 64 };   /* bytes of an entry of CUDA_VISIBLE_DEVICES */
enum { GM_SIGHT_LEAVE = -1 }; /* instead of a number of GPUs: what is in sight must not be changed */
typedef char gm_sight_entry[GM_SIGHT_MAX];

/* The number of GPUs that CUDA finds on this host if CUDA_VISIBLE_DEVICES allows all of them; 0: unknown.
 * GM_SIGHT_LEAVE where what CUDA finds may be something else: GPUs cut into parts (MIG) or served by another process
 * (MPS), or device files that are missing or not for this process. root: "", or for tests the folder that holds
 * /proc, /dev and /tmp. */
int gm_sight_count(const char *root);

/* May a batch system have given this process less than all GPUs, by other means than CUDA_VISIBLE_DEVICES? By the
 * environment. */
int gm_sight_is_job(void);

/* The entry for the rank of this number on its host: number local_rank, modulo their count, of the entries of visible
 * (CUDA_VISIBLE_DEVICES; NULL: not set), or of `gpus` GPUs (gm_sight_count()). *position: its place in the list.
 * Returns whether there is one: not for a list of fewer than two, nor where anything is unclear: a list that is not
 * plainly one of different numbers below `gpus` or of whole UUIDs, a local_rank below 0, GM_SIGHT_LEAVE. Pure. */
int gm_sight_choose(const char *visible, int gpus, int local_rank, gm_sight_entry entry, int *position);

/* The number that a person knows device `index` of CUDA by: that of the entry of visible, if it has numbers, else
 * index. Pure. */
int gm_sight_number(const char *visible, int index);

#ifdef __cplusplus
}
#endif
#endif
