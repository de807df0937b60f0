/* SPDX-License-Identifier: MIT */
/*
 * A device that we dialled and whose modules we are to start ourselves: one connection, from its
 * beginning to its end. Blocks; any thread.
 */
#ifndef TL_OSDHOST_DIAL_H
#define TL_OSDHOST_DIAL_H

#include "lake.h"

struct tl_osd_dial {
    struct tl_lake *lake;
    const char *address; /* for messages */
    const char *rig;
    const char *setup; /* INI text of format di */
    enum tl_shards shards;
    unsigned start;     /* TL_OSD_START_… */
    bool reset;         /* hold the cores while modules are switched on */
    unsigned answer_ms; /* how long a register access may take, 0: the usual time */
    void (*log)(const char *line);
    /*
     * In which byte order to ask; the device's own once it has said anything. Where `try_both` is
     * set and not one byte comes, the connection is given up, and the next one shall be in the
     * other order: half understood, requests may leave a device out of step for good.
     */
    bool *little_endian;
    bool try_both;
    int fd;      /* connected */
    int stop_fd; /* readable: switch off what was switched on, and end */
};

/* Returns whether any byte came. */
bool tl_osd_dial_run(const struct tl_osd_dial *dial);

#endif
