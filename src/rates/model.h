/* model.h - a machine that is only described (--model): its nodes, the GPUs of a node, and what they give in a second.
 * Plans for it rest on the nominal rates of its kind of GPU, and on those that it states. Pure. */
#ifndef GM_SRC_RATES_MODEL_H
#define GM_SRC_RATES_MODEL_H

#include "src/rates/rates.h"

enum { GM_MODEL_RANKS = 16384 }; /* at most */

/* Nodes with as many GPUs each, and a rank for each GPU, node by node. Bytes per second; 0: the nominal rate. */
typedef struct gm_model {
    int64_t nodes, gpus;  /* 0 nodes: there is no model */
    int64_t gpu;          /* the kind of GPU */
    int64_t link;         /* from GPU to GPU of a node, and back at the same time */
    int64_t net;          /* of a node, to others and from them at the same time */
    int64_t storage;      /* read and written by all nodes together */
    int64_t node_storage; /* read by a node; as much written */
    int64_t memory;       /* bytes of a node that programs may take */
} gm_model;

/* "nodes=8,gpus=4,net=50G": keys in any order, each once; without one: a node, a GPU, an H200, nominal rates.
 * GM_EUSAGE. */
int gm_model_parse(const char *text, gm_model *model);

/* One GPU of a model, alone. */
gm_model gm_model_single(const gm_model *model);

const char *gm_model_gpu_name(const gm_model *model);

/* The GPU, as a device of its kind tells of itself. */
const gm_device_info *gm_model_device(const gm_model *model);

/* Processor threads of a rank: those of the hosts that the nominal rates are from. */
int gm_model_threads(void);

/* Replaces nominal rates by what the model states. A rank gets an even share of its node's network: all ranks of a node
 * may send at the same time. */
void gm_model_set_rates(const gm_model *model, gm_rates *rates);

#endif
