/* SPDX-License-Identifier: MIT */
/*
 * Steps through the register accesses that start and stop the debug modules of a subnet. One access
 * is in flight at a time and repeated if unanswered, because an answer does not name the register
 * and packets may be lost.
 */
#include "osdhost/bringup.h"

#include "setup/setup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS      1000
#define QUIET_MS       300 /* after a repeated request: both answers may still arrive */
#define ATTEMPTS       3
#define SILENT_MAX     4 /* consecutive modules; then the rest is skipped */
#define PAUSE_FIRST_MS 1000
#define PAUSE_LAST_MS  30000

/* Registers. */
enum {
    MOD_VENDOR = 0x0000,
    MOD_TYPE = 0x0001,
    MOD_VERSION = 0x0002,
    MOD_CS = 0x0003,
    MOD_EVENT_DEST = 0x0004,
    SPECIAL = 0x0200,
    SCM_SYSRST = 0x0204
};
enum { SCM_NUM_MOD = 2, SCM_MAX_PKT_LEN = 3 }; /* indices in `special` */
enum { SYSRST_CPU = 2 };

/* FLAGS of register packets with 16-bit values. */
enum {
    READ = 0x0000,
    WRITE = 0x1000,
    READ_OK = 0x2000,
    READ_ERROR = 0x3000,
    WRITE_OK = 0x3800,
    WRITE_ERROR = 0x3c00,
    TYPE_AND_SUB = 0xfc00
};

enum { VENDOR_OSD = 1, SCM = 1, UART = 2, MAM = 3, STM = 4, CTM = 5, CDM = 6 };

static const struct {
    const char *name;
    const char *option;
    uint8_t n_special;      /* number of registers to read from 0x0200 on */
    const char *special[4]; /* their names in a setup */
} kinds[] = {
    [SCM] = {"SCM", NULL, 4, {"SYSTEM_VENDOR_ID", "SYSTEM_DEVICE_ID", "NUM_MOD", "MAX_PKT_LEN"}},
    [UART] = {"DEM-UART", "uart", 0, {0}},
    [MAM] = {"MAM", NULL, 2, {"DATA_WIDTH", "ADDR_WIDTH"}},
    [STM] = {"STM", "stm", 1, {"VALWIDTH"}},
    [CTM] = {"CTM", "ctm", 2, {"ADDR_WIDTH", "DATA_WIDTH"}},
    [CDM] = {"CDM", "cdm", 3, {"CORE_CTRL", "CORE_REG_UPPER", "CORE_DATA_WIDTH"}},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void say(const struct tl_osd_bringup *b, const char *format, ...) TL_PRINTF(2, 3);

static void say(const struct tl_osd_bringup *b, const char *format, ...)
{
    char line[256];
    va_list args;
    if (!b->log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    b->log(b->context, line);
}

/* Index into `kinds`, 0: unknown. */
static unsigned kind_of(const struct tl_osd_found *m)
{
    return m->vendor == VENDOR_OSD && m->type < N_KINDS ? m->type : 0;
}

int tl_osd_start_parse(const char *text, unsigned *start)
{
    if (!strcmp(text, "yes") || !strcmp(text, "all") || !strcmp(text, "1")) {
        *start = TL_OSD_START_ALL;
        return TL_OK;
    }
    *start = TL_OSD_START_NONE;
    if (!strcmp(text, "no") || !strcmp(text, "none") || !strcmp(text, "0"))
        return TL_OK;
    for (;; text++) {
        const size_t n = strcspn(text, "+");
        unsigned kind = N_KINDS;
        while (--kind > 0)
            if (kinds[kind].option && strlen(kinds[kind].option) == n &&
                !strncmp(kinds[kind].option, text, n))
                break;
        if (kind == 0)
            return TL_USAGE;
        *start |= 1u << kind;
        text += n;
        if (!*text)
            return TL_OK;
    }
}

/* ---- the sequence ------------------------------------------------------------------------- */

struct access {
    uint16_t address;
    uint16_t reg;
    uint16_t value;
    bool write;
};

static bool is_started(const struct tl_osd_bringup *b, const struct tl_osd_found *m)
{
    return m->answers && kind_of(m) && (b->start >> m->type & 1);
}

/* Does the phase access this module? */
static bool concerns(const struct tl_osd_bringup *b, size_t module)
{
    const struct tl_osd_found *const m = &b->modules[module];
    switch (b->phase) {
    case TL_OSD_ENUMERATE:
        return true;
    case TL_OSD_HALT:
    case TL_OSD_RELEASE:
        return module == 0 && b->reset;
    case TL_OSD_DIRECT:
    case TL_OSD_ACTIVATE:
        return module && is_started(b, m);
    case TL_OSD_DEACTIVATE:
        return m->active || (module == 0 && b->halted);
    default:
        return false;
    }
}

/* The current access of a phase to a module; false after the last. */
static bool access_of(const struct tl_osd_bringup *b, struct access *out)
{
    if (b->at >= b->n_modules || !concerns(b, b->at))
        return false;
    const struct tl_osd_found *const m = &b->modules[b->at];
    *out = (struct access){.address = (uint16_t)(b->base + b->at), .write = true};
    switch (b->phase) {
    case TL_OSD_ENUMERATE:
        out->write = false;
        if (b->step <= MOD_VERSION) {
            out->reg = (uint16_t)b->step;
            return true;
        }
        out->reg = (uint16_t)(SPECIAL + b->step - MOD_VERSION - 1);
        return b->step - MOD_VERSION - 1 < kinds[b->at ? kind_of(m) : SCM].n_special;
    case TL_OSD_HALT:
    case TL_OSD_RELEASE:
        out->reg = SCM_SYSRST;
        out->value = b->phase == TL_OSD_HALT ? SYSRST_CPU : 0;
        break;
    case TL_OSD_DIRECT:
        out->reg = MOD_EVENT_DEST;
        out->value = b->host;
        break;
    default:
        out->reg = b->at == 0 ? SCM_SYSRST : MOD_CS;
        out->value = b->phase == TL_OSD_ACTIVATE;
    }
    return b->step == 0;
}

static void enumeration_ends(struct tl_osd_bringup *b)
{
    char text[96];
    b->enumerated = true;
    for (size_t i = 0; i < b->n_modules; i++)
        say(b, "%s", tl_osd_bringup_text(b, i, text, sizeof text));
    say(b, "%zu modules, packets of up to %u words", b->n_modules,
        b->modules[0].special[SCM_MAX_PKT_LEN]);
}

static void enter(struct tl_osd_bringup *b, enum tl_osd_phase phase)
{
    b->phase = phase;
    b->at = 0;
    b->step = 0;
    b->silent = 0;
}

static void count_started(struct tl_osd_bringup *b)
{
    unsigned n = 0;
    for (size_t i = 0; i < b->n_modules; i++)
        n += b->modules[i].active;
    say(b, "running, %u of %zu modules switched on", n, b->n_modules);
}

/* Advance to the next access, or to a phase that waits. */
static void seek(struct tl_osd_bringup *b)
{
    struct access access;
    while (b->phase >= TL_OSD_ENUMERATE && b->phase != TL_OSD_RUNNING && b->phase != TL_OSD_DONE) {
        if (access_of(b, &access))
            return;
        b->step = 0;
        if (++b->at < b->n_modules)
            continue;
        if (b->phase == TL_OSD_ENUMERATE)
            enumeration_ends(b);
        enter(b, b->phase + 1);
        if (b->phase == TL_OSD_RUNNING)
            count_started(b);
    }
}

static void advance(struct tl_osd_bringup *b, int64_t now)
{
    b->quiet = b->attempts > 1 ? now + QUIET_MS : 0;
    b->asked = false;
    b->attempts = 0;
    b->step++;
    seek(b);
}

/* ---- life --------------------------------------------------------------------------------- */

void tl_osd_bringup_init(struct tl_osd_bringup *b, unsigned subnet, uint16_t host)
{
    *b = (struct tl_osd_bringup){
        .start = TL_OSD_START_ALL,
        .answer_ms = ANSWER_MS,
        .base = (uint16_t)(subnet % TL_OSD_SUBNETS * TL_OSD_LOCALS),
        .host = host,
    };
}

void tl_osd_bringup_fini(struct tl_osd_bringup *b)
{
    free(b->modules);
    b->modules = NULL;
    b->n_modules = 0;
    b->phase = TL_OSD_IDLE;
}

int tl_osd_bringup_begin(struct tl_osd_bringup *b, int64_t now)
{
    if (!b->modules && !(b->modules = calloc(TL_OSD_LOCALS, sizeof *b->modules)))
        return TL_NOMEM;
    memset(b->modules, 0, TL_OSD_LOCALS * sizeof *b->modules);
    b->n_modules = 1; /* the SCM, which has the number of modules */
    b->rounds++;
    b->asked = false;
    b->attempts = 0;
    b->quiet = 0;
    enter(b, TL_OSD_ENUMERATE);
    return TL_OK;
}

void tl_osd_bringup_stop(struct tl_osd_bringup *b, int64_t now)
{
    if (b->phase >= TL_OSD_DEACTIVATE)
        return;
    b->quiet = b->asked ? now + QUIET_MS : 0;
    b->asked = false;
    b->attempts = 0;
    enter(b, TL_OSD_DEACTIVATE);
    seek(b);
}

/* ---- packets ------------------------------------------------------------------------------ */

unsigned tl_osd_bringup_next(struct tl_osd_bringup *b, uint16_t out[static TL_OSD_REQUEST_WORDS],
                             int64_t now)
{
    struct access access;
    if (b->asked || now < b->quiet || !access_of(b, &access))
        return 0;
    out[0] = access.address;
    out[1] = b->host;
    out[2] = access.write ? WRITE : READ;
    out[3] = access.reg;
    out[4] = access.value;
    b->asked = true;
    b->attempts++;
    b->deadline = now + b->answer_ms;
    /* It may have taken effect even without an answer. */
    if (b->phase == TL_OSD_ACTIVATE)
        b->modules[b->at].active = true;
    b->halted = b->halted || b->phase == TL_OSD_HALT;
    return access.write ? 5 : 4;
}

bool tl_osd_bringup_awaits(const struct tl_osd_bringup *b, struct tl_osd_awaited *out)
{
    struct access access;
    if (!b->asked || !access_of(b, &access))
        return false;
    *out = access.write ? (struct tl_osd_awaited){access.address, 3, WRITE_OK, 3, WRITE_ERROR}
                        : (struct tl_osd_awaited){access.address, 4, READ_OK, 3, READ_ERROR};
    return true;
}

static void keep_value(struct tl_osd_bringup *b, unsigned reg, uint16_t value)
{
    struct tl_osd_found *const m = &b->modules[b->at];
    switch (reg) {
    case MOD_VENDOR:
        m->vendor = value;
        return;
    case MOD_TYPE:
        m->type = value;
        return;
    case MOD_VERSION:
        m->version = value;
        return;
    default:
        m->special[reg - SPECIAL] = value;
    }
    if (b->at == 0 && reg - SPECIAL == SCM_NUM_MOD)
        b->n_modules = value < 1 ? 1 : value > TL_OSD_LOCALS ? TL_OSD_LOCALS : value;
}

static void take_answer(struct tl_osd_bringup *b, const struct access *access, bool good,
                        uint16_t value)
{
    struct tl_osd_found *const m = &b->modules[b->at];
    if (!access->write) {
        m->answers = true;
        if (good)
            keep_value(b, access->reg, value);
        return;
    }
    if (b->phase == TL_OSD_DEACTIVATE || !good)
        m->active = false;
    if (access->reg == SCM_SYSRST && (access->value == 0 || !good))
        b->halted = false;
    if (!good)
        say(b, "%u.%zu refuses to write register 0x%04x", b->base / TL_OSD_LOCALS, b->at,
            access->reg);
}

bool tl_osd_bringup_take(struct tl_osd_bringup *b, const uint16_t *words, size_t n, int64_t now)
{
    struct access access;
    struct tl_osd_awaited awaited;
    if (n < 3 || !access_of(b, &access) || !tl_osd_bringup_awaits(b, &awaited))
        return false;
    const uint16_t flags = words[2] & TYPE_AND_SUB;
    const bool good = flags == awaited.good_flags && n == awaited.good_words;
    if (words[0] != b->host || words[1] != awaited.module ||
        (!good && !(flags == awaited.bad_flags && n >= awaited.bad_words)))
        return false;
    b->silent = 0;
    b->pause_ms = 0;
    take_answer(b, &access, good, n > 3 ? words[3] : 0);
    advance(b, now);
    return true;
}

/* ---- time --------------------------------------------------------------------------------- */

int64_t tl_osd_bringup_due(const struct tl_osd_bringup *b)
{
    struct access access;
    if (b->phase == TL_OSD_WAIT || b->asked)
        return b->deadline;
    return b->quiet && access_of(b, &access) ? b->quiet : -1;
}

static void wait_for_scm(struct tl_osd_bringup *b, int64_t now)
{
    b->pause_ms = !b->pause_ms ? PAUSE_FIRST_MS : 2 * b->pause_ms;
    if (b->pause_ms > PAUSE_LAST_MS)
        b->pause_ms = PAUSE_LAST_MS;
    else
        say(b, "the SCM at %u.0 does not answer; trying again in %u s", b->base / TL_OSD_LOCALS,
            b->pause_ms / 1000);
    b->phase = TL_OSD_WAIT;
    b->deadline = now + b->pause_ms;
}

/* The current module does not answer any more. */
static void give_up(struct tl_osd_bringup *b, int64_t now)
{
    b->asked = false;
    b->attempts = 0;
    if (b->phase == TL_OSD_ENUMERATE && b->at == 0) {
        wait_for_scm(b, now);
        return;
    }
    if (b->phase != TL_OSD_ENUMERATE)
        say(b, "%u.%zu does not answer", b->base / TL_OSD_LOCALS, b->at);
    b->at = ++b->silent < SILENT_MAX ? b->at + 1 : b->n_modules;
    b->step = 0;
    seek(b);
}

void tl_osd_bringup_tick(struct tl_osd_bringup *b, int64_t now)
{
    if (b->phase == TL_OSD_WAIT && now >= b->deadline) {
        (void)!tl_osd_bringup_begin(b, now);
        return;
    }
    if (!b->asked || now < b->deadline)
        return;
    b->timeouts++;
    if (b->attempts < (b->phase == TL_OSD_DEACTIVATE || b->silent ? 1 : ATTEMPTS))
        b->asked = false; /* retry */
    else
        give_up(b, now);
}

/* ---- names -------------------------------------------------------------------------------- */

const char *tl_osd_phase_name(enum tl_osd_phase phase)
{
    static const char *const names[] = {
        [TL_OSD_IDLE] = "idle",
        [TL_OSD_WAIT] = "no answer",
        [TL_OSD_ENUMERATE] = "enumerating",
        [TL_OSD_HALT] = "starting",
        [TL_OSD_DIRECT] = "starting",
        [TL_OSD_ACTIVATE] = "starting",
        [TL_OSD_RELEASE] = "starting",
        [TL_OSD_RUNNING] = "running",
        [TL_OSD_DEACTIVATE] = "stopping",
        [TL_OSD_DONE] = "stopped",
    };
    return names[phase];
}

/* Width of its values in bits, 0 if it does not vary. */
static unsigned width_of(const struct tl_osd_found *m)
{
    return kind_of(m) == CTM || kind_of(m) == STM ? m->special[0] : 0;
}

char *tl_osd_bringup_text(const struct tl_osd_bringup *b, size_t local, char *out, size_t size)
{
    const struct tl_osd_found *const m = &b->modules[local];
    char what[40];
    if (!m->answers)
        snprintf(what, sizeof what, "does not answer");
    else if (!kind_of(m))
        snprintf(what, sizeof what, "type %u of vendor %u", m->type, m->vendor);
    else if (width_of(m))
        snprintf(what, sizeof what, "%s %u bit", kinds[m->type].name, width_of(m));
    else
        snprintf(what, sizeof what, "%s", kinds[m->type].name);
    snprintf(out, size, "%u.%zu %s, version %u", b->base / TL_OSD_LOCALS, local, what, m->version);
    return out;
}

static int describe_module(const struct tl_osd_bringup *b, size_t local, struct tl_setup *setup)
{
    static const uint8_t protocols[] = {
        [CTM] = TL_PROTO_OSD_CTM, [STM] = TL_PROTO_OSD_STM, [UART] = TL_PROTO_OSD_UART};
    const struct tl_osd_found *const m = &b->modules[local];
    struct tl_source *const s = tl_setup_add_source(setup);
    if (!s)
        return TL_NOMEM;
    s->id = (uint16_t)(b->base + local);
    s->protocol = m->type < sizeof protocols ? protocols[m->type] : 0;
    if (!s->protocol)
        s->protocol = TL_PROTO_OSD_OTHER;
    snprintf(s->name, sizeof s->name, "di.%u.%zu", b->base / TL_OSD_LOCALS, local);
    snprintf(s->type, sizeof s->type, "%s", kinds[m->type].name);
    int rc = tl_source_set_reg(s, "MOD_TYPE", m->type);
    for (unsigned i = 0; i < kinds[m->type].n_special && rc >= 0; i++)
        rc = tl_source_set_reg(s, kinds[m->type].special[i], m->special[i]);
    return rc;
}

int tl_osd_bringup_describe(const struct tl_osd_bringup *b, struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; i < b->n_modules && rc >= 0; i++)
        if (b->modules[i].answers && kind_of(&b->modules[i]) &&
            !tl_setup_source(setup, (unsigned)(b->base + i)))
            rc = describe_module(b, i, setup);
    return rc < 0 ? rc : TL_OK;
}
