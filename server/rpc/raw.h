/* SPDX-License-Identifier: MIT */
/*
 * Raw trace bytes by TCP: listeners that rigs connect to, and sources that we connect to. Every
 * connection is a capture of its own, which ends where the connection ends. A thread each; TCP's
 * own window holds the rig back while the disk is busy.
 */
#ifndef TL_RPC_RAW_H
#define TL_RPC_RAW_H

#include "lake.h"

struct tl_raw;

/*
 * What "ADDR:PORT,format=FMT,rig=NAME[,config=F][,shards=stored|virtual]" says. FMT may have
 * options behind commas; DI also "start=ctm+stm+uart+cdm" (or yes, no), "reset=yes", "order=little"
 * and "control=no", for devices that we dial.
 */
struct tl_raw_spec {
    char address[128]; /* ADDR:PORT */
    char rig[64];
    char *setup; /* as INI text, images by content */
    enum tl_shards shards;
    bool is_di;
    unsigned start;  /* DI: kinds of modules to switch on, TL_OSD_START_… */
    bool reset;      /* … and hold the cores meanwhile */
    bool no_control; /* GLIP: do without the control connection, to the port after */
    int order;       /* of the bytes we send: 'b', 'l', or 0: to be found out */
};

/*
 * Take a specification apart; `lake` gets the images that the configuration names (NULL: they are
 * not looked at). A leading "tcp://" is fine. TL_USAGE, TL_BAD, TL_IO.
 */
TL_MUST_USE int tl_raw_parse(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                             struct tl_fail *fail);
/*
 * The same for a host controller, "ADDR[:PORT][,rig=NAME][,config=F][,start=…][,reset=yes]…": the
 * format is di, the rig "osd" and all modules are switched on, where nothing else is said.
 */
TL_MUST_USE int tl_raw_parse_controller(struct tl_raw_spec *out, struct tl_lake *lake,
                                        const char *text, struct tl_fail *fail);
void tl_raw_spec_fini(struct tl_raw_spec *spec);

/* `lake` is borrowed until tl_raw_free(). `log` gets a line per event, from any thread. */
TL_MUST_USE int tl_raw_new(struct tl_raw **out, struct tl_lake *lake,
                           void (*log)(const char *line));
/*
 * Complete the traces that came over connections of a server which ended without a word. Before
 * anything listens or dials. TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_raw_end_orphans(struct tl_lake *lake, void (*log)(const char *line));
/* Listen. `url` gets "tcp://127.0.0.1:9000" with the true port. `spec` is taken over. */
TL_MUST_USE int tl_raw_listen(struct tl_raw *raw, struct tl_raw_spec *spec, char url[static 96],
                              struct tl_fail *fail);
/* Connect, and again when the connection ends or cannot be made. `spec` is taken over. */
TL_MUST_USE int tl_raw_dial(struct tl_raw *raw, struct tl_raw_spec *spec, struct tl_fail *fail);
/* Cut all connections; what has come is kept and their captures are complete. NULL is fine. */
void tl_raw_free(struct tl_raw *raw);

#endif
