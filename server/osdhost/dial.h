/* SPDX-License-Identifier: MIT */
/*
 * A device that we connect to and whose modules we activate: one connection, from beginning to end.
 * Blocks; any thread.
 */
#ifndef TL_OSDHOST_DIAL_H
#define TL_OSDHOST_DIAL_H

#include "lake_ingest.h"

struct tl_lake;

struct tl_osd_dial {
    struct tl_lake *lake;
    const char *address; /* for messages */
    const char *rig;
    const char *setup; /* INI text of format di */
    enum tl_shards shards;
    enum tl_index index;
    unsigned start;     /* TL_OSD_START_… */
    bool reset;         /* hold the cores in reset during activation */
    unsigned answer_ms; /* time limit of a register access, 0: the default */
    void (*log)(const char *line);
    /*
     * Byte order of requests; replaced by the device's own once it has sent anything. If `try_both`
     * is set and no byte is received, the connection is abandoned, and the next one uses the other
     * order: requests in the wrong order may leave a device permanently out of step.
     */
    bool *little_endian;
    bool try_both;
    int fd;      /* connected */
    int stop_fd; /* readable: deactivate what was activated, and end */
};

/* Run. Returns whether any byte was received. */
bool tl_osd_dial_run(const struct tl_osd_dial *dial);

#endif
