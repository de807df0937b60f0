/* SPDX-License-Identifier: MIT */
/*
 * Raw trace bytes over TCP: listeners that rigs connect to, and sources that the server connects
 * to. Every connection is a capture of its own, which ends with the connection, unless the rig is
 * waited for: then its next connection continues the capture, and the place is marked. One thread
 * per connection; TCP flow control provides back-pressure to the rig while the disk is busy.
 */
#ifndef TL_RPC_RAW_H
#define TL_RPC_RAW_H

#include "lake_ingest.h"

struct tl_lake;
struct tl_raw;

/* A trace that an earlier server process received by a connection, and did not complete. */
struct tl_raw_orphan {
    char trace[64];
    char from[128]; /* the other end */
};

/*
 * Parsed form of "ADDR:PORT,format=FMT,rig=NAME[,config=F][,shards=KIND][,index=WHEN]". FMT may
 * have options after commas. "rejoin=AGE" is `rejoin_s`; DI also "start=ctm+stm+uart+cdm" (or yes,
 * no), "reset=yes", "order=little" and "control=no", for devices that we connect to.
 */
struct tl_raw_spec {
    char address[128]; /* ADDR:PORT */
    char rig[64];
    char *setup; /* as INI text, images named by content */
    enum tl_shards shards;
    enum tl_index index;
    bool is_di;
    unsigned start;  /* DI: kinds of modules to start, TL_OSD_START_… */
    bool reset;      /* DI: hold the cores in reset meanwhile */
    bool no_control; /* GLIP: without the control connection to the next port */
    int order;       /* byte order of what we send: 'b', 'l', or 0: to be detected */
    bool joins;      /* the address is of a host controller, of which we become a host module */
    unsigned subnet; /* of the device, then */
    bool resumes;    /* its format can be decoded behind missing bytes */
    bool dials;      /* it is for tl_raw_dial() */
    struct tl_raw_orphan *orphans; /* that it waits for, owned; a source has at most one */
    size_t n_orphans;
    uint64_t rejoin_s; /* a connection within this time of the last one continues its trace; 0: each
                          has its own */
};

/*
 * Parse a specification; images that the configuration names are stored in `lake` (NULL: they are
 * ignored). A leading "tcp://" is accepted. TL_USAGE, TL_BAD, TL_IO.
 */
TL_MUST_USE int tl_raw_parse(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                             struct tl_fail *fail);
/*
 * The same for what we connect to, which may also be a host controller that we join as a host
 * module: "osd://HOST[:PORT],rig=NAME[,subnet=N]…", where the format is di and all modules are
 * started by default.
 */
TL_MUST_USE int tl_raw_parse_source(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                                    struct tl_fail *fail);
/*
 * The same for a host controller, "ADDR[:PORT][,rig=NAME][,config=F][,start=…][,reset=yes]…": by
 * default the format is di, the rig "osd", and all modules are started.
 */
TL_MUST_USE int tl_raw_parse_controller(struct tl_raw_spec *out, struct tl_lake *lake,
                                        const char *text, struct tl_fail *fail);
void tl_raw_spec_fini(struct tl_raw_spec *spec);

/*
 * Create. `lake` is borrowed until tl_raw_free(). `log` receives a line per event, from any thread.
 */
TL_MUST_USE int tl_raw_new(struct tl_raw **out, struct tl_lake *lake,
                           void (*log)(const char *line));
/*
 * Give the traces of connections of an earlier server process to those of these listeners and
 * sources that wait for them, and complete all others. Call before anything listens or connects.
 * TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_raw_assign_orphans(struct tl_lake *lake, struct tl_raw_spec *specs, size_t n,
                                      void (*log)(const char *line));
/* Listen. `url` receives "tcp://127.0.0.1:9000" with the actual port. Takes ownership of `spec`. */
TL_MUST_USE int tl_raw_listen(struct tl_raw *raw, struct tl_raw_spec *spec, char url[static 96],
                              struct tl_fail *fail);
/* Connect, and reconnect when the connection ends or fails. Takes ownership of `spec`, of
 * tl_raw_parse_source(). */
TL_MUST_USE int tl_raw_dial(struct tl_raw *raw, struct tl_raw_spec *spec, struct tl_fail *fail);
/* Close all connections; received bytes are kept, and the captures of rigs that are not waited for
 * are completed. Accepts NULL. */
void tl_raw_free(struct tl_raw *raw);

#endif
