/* slurm.h - the batch job of a process, as Slurm tells it by the environment. */
#ifndef GM_SRC_SUMMARY_SLURM_H
#define GM_SRC_SUMMARY_SLURM_H

#include <stdint.h>

#include <jansson.h>

enum { GM_SLURM_NUMBERS = 4, GM_SLURM_NODE_MAX = 256 };

/* A flat record. */
typedef struct gm_slurm {
    int64_t number[GM_SLURM_NUMBERS]; /* in the order of the table in slurm.c; -1: not set, or no number */
    char node[GM_SLURM_NODE_MAX];     /* "": not set */
} gm_slurm;

void gm_slurm_find(gm_slurm *slurm);

/* The variables that are set, numbers as numbers; null outside of a job. New reference. */
json_t *gm_slurm_json(const gm_slurm *slurm);

#endif
