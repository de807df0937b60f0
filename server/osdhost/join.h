/* SPDX-License-Identifier: MIT */
/*
 * A device behind somebody else's host controller, which this server joins as a host module: one
 * connection, from beginning to end. Only what the device sends to our address is received: events
 * of the modules that we activate. Blocks; any thread.
 *
 * Source: osd-sw (2020-03-29), hostmod.
 */
#ifndef TL_OSDHOST_JOIN_H
#define TL_OSDHOST_JOIN_H

#include "lake_ingest.h"

struct tl_lake;

struct tl_osd_join {
    struct tl_lake *lake;
    const char *address; /* of the host controller, HOST:PORT */
    const char *rig;
    const char *setup; /* INI text of format di */
    enum tl_shards shards;
    enum tl_index index;
    unsigned subnet;    /* of the device */
    unsigned start;     /* TL_OSD_START_… */
    bool reset;         /* hold the cores in reset during activation */
    unsigned answer_ms; /* time limit of an answer, 0: the default */
    void (*log)(const char *line);
    int stop_fd; /* readable: deactivate what was activated, give the address back, and end */
};

/*
 * Run. Returns whether any packet was received. `why`: why it ended, of static storage or
 * `reason`'s.
 */
bool tl_osd_join_run(const struct tl_osd_join *join, const char **why, struct tl_fail *reason);

#endif
