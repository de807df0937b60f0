/* SPDX-License-Identifier: MIT */
/*
 * Bringing up the debug modules of one Open SoC Debug subnet: enumerate them, send their events
 * to us, switch them on; and off again at the end. All of it by register accesses, one at a time,
 * since an answer names the module but not the register.
 *
 *     begin ─▶ enumerate ─▶ halt ─▶ direct ─▶ activate ─▶ release ─▶ running ─▶ deactivate ─▶ done
 *                  │ ▲      (cores, if asked)            (cores)       stop()
 *                  ▼ │
 *                 wait: the SCM does not answer; again after a pause
 *
 * Pure: packets in, packets out, the caller's clock. Any packet is survived. Not thread-safe.
 *
 * Source: Open SoC Debug documentation (2020-03-28), "Debug Modules" (base registers, SCM, CTM,
 * STM, CDM); osd-hw where they differ (MOD_EVENT_DEST has 16 bits).
 */
#ifndef TL_OSDHOST_BRINGUP_H
#define TL_OSDHOST_BRINGUP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tl_setup;

#define TL_OSD_LOCALS        1024 /* addresses of a subnet; an address is subnet << 10 | local */
#define TL_OSD_SUBNETS       64
#define TL_OSD_REQUEST_WORDS 5 /* DEST, SRC, FLAGS, register, value */
#define TL_OSD_SPECIAL       4 /* module specific registers read, 0x0200 and the following */

/* Which kinds of modules to start: bit MOD_TYPE of vendor 1. */
#define TL_OSD_START_ALL  (1u << 2 | 1u << 4 | 1u << 5 | 1u << 6) /* DEM-UART, STM, CTM, CDM */
#define TL_OSD_START_NONE 0u

/* "yes", "all", "1"; "no", "none", "0"; or names: "ctm+stm+uart+cdm". TL_USAGE. */
TL_MUST_USE int tl_osd_start_parse(const char *text, unsigned *start);

/* What a module said of itself. */
struct tl_osd_found {
    uint16_t vendor;
    uint16_t type; /* MOD_TYPE */
    uint16_t version;
    uint16_t special[TL_OSD_SPECIAL]; /* registers 0x0200… as far as its kind has them */
    bool answers;
    bool active; /* we switched it on */
};

enum tl_osd_phase {
    TL_OSD_IDLE,
    TL_OSD_WAIT,
    TL_OSD_ENUMERATE,
    TL_OSD_HALT,
    TL_OSD_DIRECT,
    TL_OSD_ACTIVATE,
    TL_OSD_RELEASE,
    TL_OSD_RUNNING,
    TL_OSD_DEACTIVATE,
    TL_OSD_DONE
};

struct tl_osd_bringup {
    /* Set by the caller after _init. */
    unsigned start;     /* kinds to switch on */
    bool reset;         /* hold the cores while the modules are switched on */
    unsigned answer_ms; /* how long an answer may take */
    void *context;
    void (*log)(void *context, const char *line); /* may be NULL */

    /* For reading. */
    enum tl_osd_phase phase;
    bool enumerated; /* the modules are known, as far as they answer */
    unsigned rounds; /* enumerations begun */
    struct tl_osd_found *modules;
    size_t n_modules; /* by local address; 0 is the SCM */
    uint64_t timeouts;

    /* Private. */
    uint16_t base; /* address of the SCM */
    uint16_t host; /* ours */
    size_t at;     /* module in work */
    unsigned step; /* register of it */
    bool asked;    /* an answer is awaited */
    bool halted;   /* the cores are held */
    unsigned attempts;
    unsigned silent; /* modules in a row that did not answer */
    unsigned pause_ms;
    int64_t deadline; /* of the answer, or of the pause */
    int64_t quiet;    /* nothing is sent before: late answers come first */
};

void tl_osd_bringup_init(struct tl_osd_bringup *b, unsigned subnet, uint16_t host);
void tl_osd_bringup_fini(struct tl_osd_bringup *b);

/* Enumerate (again). `now`: milliseconds of any monotonic clock, here and below. TL_NOMEM. */
TL_MUST_USE int tl_osd_bringup_begin(struct tl_osd_bringup *b, int64_t now);
/* Switch off what was switched on; the phase becomes TL_OSD_DONE, at once if there is nothing. */
void tl_osd_bringup_stop(struct tl_osd_bringup *b, int64_t now);

/*
 * The packet to be sent now, or 0: none. Returns its words. Call it until it returns 0 after every
 * other call.
 */
unsigned tl_osd_bringup_next(struct tl_osd_bringup *b, uint16_t out[static TL_OSD_REQUEST_WORDS],
                             int64_t now);
/* A packet came for us: true if it is the answer that was awaited. `n` words, any number. */
bool tl_osd_bringup_take(struct tl_osd_bringup *b, const uint16_t *words, size_t n, int64_t now);

/*
 * The flags and length of the answers that may come to the request that is under way: a good one
 * and a refusal, both from `module`. False: none is awaited.
 */
struct tl_osd_awaited {
    uint16_t module;
    uint16_t good_words, good_flags;
    uint16_t bad_words, bad_flags;
};
bool tl_osd_bringup_awaits(const struct tl_osd_bringup *b, struct tl_osd_awaited *out);

/* When tl_osd_bringup_tick() is due, or -1. */
int64_t tl_osd_bringup_due(const struct tl_osd_bringup *b);
void tl_osd_bringup_tick(struct tl_osd_bringup *b, int64_t now);

/* How it stands, in a word or two. Static storage. */
const char *tl_osd_phase_name(enum tl_osd_phase phase);
/* "0.1 CTM 32 bit, version 0" of module `local`, cut at `size`; returns `out`. */
char *tl_osd_bringup_text(const struct tl_osd_bringup *b, size_t local, char *out, size_t size);

/* Add a source for every known module that the setup does not name. TL_NOMEM. */
TL_MUST_USE int tl_osd_bringup_describe(const struct tl_osd_bringup *b, struct tl_setup *setup);

#endif
