/* map.h - work that is one range of elements (gm_map): ranks have shares of it, pieces are parts of a share, and each
 * piece is read, computed and written by itself. The frame's own plan, prepare and run.
 *
 * A piece holds whole units of one size of map.unit, the largest that begins where the piece begins and fits a slot,
 * and lies within one unit of the size before. With units {n * m, m, 1} a piece is some matrices of n x m, or some rows
 * of one, or some elements of one row. Only the end of a share cuts a unit of the last size.
 *
 * A slot holds what is read, piece->cols elements of map.in bytes, and from run->out_at on what is written, map.out
 * bytes each, which the ring copies from the device. Stages that the operation leaves out: read takes the same range of
 * the first input, or the one that begins at operation->source(), write puts the range into the first dataset of the
 * output. With map.in 0 nothing is read and the stage read may make the elements; with map.out 0 nothing is written. */
#ifndef GM_SRC_MAP_H
#define GM_SRC_MAP_H

#include "src/run.h"

/* The members of gm_operation that an operation may leave out. */
int gm_map_plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need);
void gm_map_print_plan(const gm_run *run);
void gm_map_print_share(const gm_run *run, int rank);
int gm_map_work(const gm_run *run, int rank, gm_work *passes);
json_t *gm_map_plan_json(const gm_run *run);
int gm_map_prepare(gm_run *run); /* opens readers and ring */
int gm_map_run_all(gm_run *run);

#endif
