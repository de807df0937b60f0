/* SPDX-License-Identifier: MIT */
/*
 * Bring-up of the debug modules of an Open SoC Debug subnet: enumerate them, direct their events to
 * us, activate them; and deactivate them at the end. Everything is done by register accesses, one
 * at a time, since an answer identifies the module but not the register.
 *
 *     begin ─▶ enumerate ─▶ halt ─▶ direct ─▶ activate ─▶ release ─▶ running ─▶ deactivate ─▶ done
 *                  │ ▲      (cores, if asked)            (cores)       stop()
 *                  ▼ │
 *                 wait: the SCM does not answer; again after a pause
 *
 * Pure: packets in, packets out, the caller's clock. Tolerates any packet. Not thread-safe.
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
#define TL_OSD_SPECIAL       4 /* number of module-specific registers read, from 0x0200 */

/* Which kinds of modules to start: bit MOD_TYPE of vendor 1. */
#define TL_OSD_START_ALL  (1u << 2 | 1u << 4 | 1u << 5 | 1u << 6) /* DEM-UART, STM, CTM, CDM */
#define TL_OSD_START_NONE 0u

/* Parse "yes", "all", "1"; "no", "none", "0"; or names: "ctm+stm+uart+cdm". TL_USAGE. */
TL_MUST_USE int tl_osd_start_parse(const char *text, unsigned *start);

/* Identification registers of a module. */
struct tl_osd_found {
    uint16_t vendor;
    uint16_t type; /* MOD_TYPE */
    uint16_t version;
    uint16_t special[TL_OSD_SPECIAL]; /* registers 0x0200…, as far as its type has them */
    bool answers;
    bool active; /* activated by us */
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
    unsigned start;     /* kinds to activate */
    bool reset;         /* hold the cores in reset during activation */
    unsigned answer_ms; /* time limit for an answer */
    void *context;
    void (*log)(void *context, const char *line); /* may be NULL */

    /* Read-only for the caller. */
    enum tl_osd_phase phase;
    bool enumerated; /* the modules are known, as far as they answer */
    unsigned rounds; /* number of enumerations begun */
    struct tl_osd_found *modules;
    size_t n_modules; /* indexed by local address; 0 is the SCM */
    uint64_t timeouts;

    /* Private. */
    uint16_t base; /* address of the SCM */
    uint16_t host; /* our address */
    size_t at;     /* module being processed */
    unsigned step; /* its register being accessed */
    bool asked;    /* waiting for an answer */
    bool halted;   /* the cores are held in reset */
    unsigned attempts;
    unsigned silent; /* consecutive modules that did not answer */
    unsigned pause_ms;
    int64_t deadline; /* for the answer, or of the pause */
    int64_t quiet;    /* nothing is sent before this time, so that late answers arrive first */
};

void tl_osd_bringup_init(struct tl_osd_bringup *b, unsigned subnet, uint16_t host);
void tl_osd_bringup_fini(struct tl_osd_bringup *b);

/* Enumerate (again). `now`: milliseconds of any monotonic clock, here and below. TL_NOMEM. */
TL_MUST_USE int tl_osd_bringup_begin(struct tl_osd_bringup *b, int64_t now);
/*
 * Deactivate what was activated; the phase becomes TL_OSD_DONE, at once if there is nothing to do.
 */
void tl_osd_bringup_stop(struct tl_osd_bringup *b, int64_t now);

/*
 * Get the packet to send now; returns its number of words, or 0: none. Call repeatedly until it
 * returns 0 after every other call.
 */
unsigned tl_osd_bringup_next(struct tl_osd_bringup *b, uint16_t out[static TL_OSD_REQUEST_WORDS],
                             int64_t now);
/* Process a packet addressed to us: true if it is the expected answer. `n` words, any number. */
bool tl_osd_bringup_take(struct tl_osd_bringup *b, const uint16_t *words, size_t n, int64_t now);

/*
 * Flags and length of the possible answers to the current request: success and refusal, both from
 * `module`. False: none is expected.
 */
struct tl_osd_awaited {
    uint16_t module;
    uint16_t good_words, good_flags;
    uint16_t bad_words, bad_flags;
};
bool tl_osd_bringup_awaits(const struct tl_osd_bringup *b, struct tl_osd_awaited *out);

/* Time at which to call tl_osd_bringup_tick(), or -1. */
int64_t tl_osd_bringup_due(const struct tl_osd_bringup *b);
void tl_osd_bringup_tick(struct tl_osd_bringup *b, int64_t now);

/* Short name of the phase. Static storage. */
const char *tl_osd_phase_name(enum tl_osd_phase phase);
/* Format "0.1 CTM 32 bit, version 0" for module `local`, truncated to `size`; returns `out`. */
char *tl_osd_bringup_text(const struct tl_osd_bringup *b, size_t local, char *out, size_t size);

/* Add a source to the setup for every known module that it does not name. TL_NOMEM. */
TL_MUST_USE int tl_osd_bringup_describe(const struct tl_osd_bringup *b, struct tl_setup *setup);

#endif
