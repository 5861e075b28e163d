/* bind.h - which processors and which memory a rank uses. */
#ifndef GM_MPI_BIND_H
#define GM_MPI_BIND_H

typedef struct gm_binding {
    int processors;  /* that this rank may use: its share of what the job has on this host */
    int numa_nodes;  /* of the host; 0: unknown */
    int numa_node;   /* that memory comes from; -1: any */
    int bound;       /* was this process bound to them? */
    char list[128];  /* "0-7": the processors, as the system numbers them; "" if unknown */
} gm_binding;

/* Gives this process the share `index` of `of` equal, contiguous shares of the processors that the job may use on this host, and memory near them:
 * binds the process (threads started later inherit it) unless the user or a batch system has bound the ranks already. With fewer processors than
 * shares nobody is bound. prefer_numa: node whose processors are shared out (near a device; index and of count the ranks that prefer it);
 * -1: all nodes. Not collective. Never fails: what cannot be bound is left to the system, *binding says so. */
void gm_bind(int index, int of, int prefer_numa, gm_binding *binding);

/* "2.9.0": the hwloc library at run time. text has room for 32 bytes. Returns text. */
char *gm_hwloc_version(char *text);

#endif
