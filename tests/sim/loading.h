/* SPDX-License-Identifier: MIT */
/*
 * A core with two processes that load and unload code while it is traced (sim/etm4_encoder.h):
 * plug-ins that use the same address one after another, and the records about them as an operating
 * system writes them. The programs of the processes also share one address.
 *
 * Deterministic, not thread-safe. The members may be read.
 */
#ifndef TL_SIM_LOADING_H
#define TL_SIM_LOADING_H

#include "sim/etm4_encoder.h"
#include "sim/program_rng.h"

#define TL_SIM_PLUGINS 5

/* The files that contain the code, raw. */
enum tl_sim_loading_file {
    TL_SIM_FILE_KERNEL,
    TL_SIM_FILE_MAIN, /* and the next value: one for each process */
    TL_SIM_FILE_PLUGIN = TL_SIM_FILE_MAIN + 2,
    TL_SIM_LOADING_FILES = TL_SIM_FILE_PLUGIN + TL_SIM_PLUGINS
};

/* A record that `file` was mapped at `address` of a process at that time, or unmapped. */
struct tl_sim_record {
    uint64_t time;    /* ticks; 0: before the trace began */
    uint32_t process; /* context ID: TL_SIM_LOADING_FIRST or one more; 0: of the kernel */
    unsigned file;
    uint64_t address;
    bool unloads;
};

#define TL_SIM_LOADING_FIRST 0x200

struct tl_sim_loading {
    struct tl_buf files[TL_SIM_LOADING_FILES];
    struct tl_buf trace;
    struct tl_buf truth; /* flow text, instructions only: "I pc encoding" */
    struct tl_sim_record *records;
    size_t n_records, cap_records;
    unsigned changes; /* plug-ins that replaced another one */
    struct tl_sim_etm4 *etm;
    struct tl_sim_rng rng;
    uint64_t cycles;
    unsigned process;  /* the running one: 0 or 1 */
    int plugin[2];     /* loaded by each process; -1: none */
    bool was_there[2]; /* a plug-in was loaded before */
    bool settled;      /* may be set: no more loading or unloading */
};

/* A tick is 10 cycles; `options` should have context IDs and timestamps. TL_NOMEM. */
TL_MUST_USE int tl_sim_loading_init(struct tl_sim_loading *l, uint64_t seed,
                                    const struct tl_sim_etm4_options *options);
void tl_sim_loading_fini(struct tl_sim_loading *l);

/* Run `n` system calls, and write out the data pending in the trace unit. TL_NOMEM. */
TL_MUST_USE int tl_sim_loading_run(struct tl_sim_loading *l, unsigned n);

#endif
