/* SPDX-License-Identifier: MIT */
/*
 * Two kinds of contradiction: packets that say themselves what a register says, and fields of which
 * another value leaves fewer bytes that are no packets. The latter are tried one after the other,
 * always the best first, because only a decoder knows what a wrong width does to what follows.
 */
#include "cli/setupcheck.h"

#include "cli/setupevidence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 1 << 20, TRIED = 1 << 18, ROUNDS = 6 };

struct check {
    struct tl_setup *setup;
    struct tl_bytes bytes;
    void (*report)(void *context, const char *text);
    void *context;
    struct tl_evidences *scratch;
    int found;
};

TL_PRINTF(2, 3)
static void report(struct check *c, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->found++;
    c->report(c->context, text);
}

static struct tl_bytes first(struct tl_bytes bytes, size_t n)
{
    return (struct tl_bytes){bytes.p, bytes.n < n ? bytes.n : n};
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Formats that have a field. */
enum { ETM4 = 1, ETE = 2, ETM3 = 4, PTM = 8 };

static unsigned formats_of(const struct tl_source *s)
{
    return s->protocol == TL_PROTO_ETM4   ? ETM4
           : s->protocol == TL_PROTO_ETE  ? ETE
           : s->protocol == TL_PROTO_ETM3 ? ETM3
           : s->protocol == TL_PROTO_PTM  ? PTM
                                          : 0;
}

/* A field of a register, and what decoders take for the register if a source lacks it. */
struct field {
    const char *reg, *name, *meaning;
    unsigned low, bits;
    uint64_t otherwise;
};

enum {
    CCI,
    TS,
    CID,
    VMID,
    INSTP0,
    COND,
    IASIZE,
    CIDSIZE,
    VMIDSIZE,
    COMMOPT,
    MINOR,
    ETM3_CID,
    ETM3_CYCLES,
    ETM3_DATA,
    ETM3_BRANCHES,
    ETM3_ONLY,
    FIELDS
};

static const struct field fields[FIELDS] = {
    [CCI] = {"TRCCONFIGR", "CCI", "counts of cycles", 4, 1, 0},
    [TS] = {"TRCCONFIGR", "TS", "timestamps", 11, 1, 0},
    [CID] = {"TRCCONFIGR", "CID", "context IDs", 6, 1, 0},
    [VMID] = {"TRCCONFIGR", "VMID", "virtual machines' IDs", 7, 1, 0},
    [INSTP0] = {"TRCCONFIGR", "INSTP0", "loads and stores as P0 elements", 1, 2, 0},
    [COND] = {"TRCCONFIGR", "COND", "conditional instructions", 8, 3, 0},
    [IASIZE] = {"TRCIDR2", "IASIZE", "size of addresses", 0, 5, 0x488},
    [CIDSIZE] = {"TRCIDR2", "CIDSIZE", "bytes of a context ID", 5, 5, 0x488},
    [VMIDSIZE] = {"TRCIDR2", "VMIDSIZE", "bytes of a virtual machine's ID", 10, 5, 0x488},
    [COMMOPT] = {"TRCIDR0", "COMMOPT", "counts of cycles without commits", 29, 1, 0x28000ea1},
    [MINOR] = {"TRCIDR1", "TRCARCHMIN", "version", 4, 4, 0x4100f403},
    [ETM3_CID] = {"ETMCR", "ContextIDSize", "bytes of a context ID, coded", 14, 2, 0},
    [ETM3_CYCLES] = {"ETMCR", "CycleAccurate", "counts of cycles", 12, 1, 0},
    [ETM3_DATA] = {"ETMCR", "data", "trace of data", 2, 2, 0},
    [ETM3_BRANCHES] = {"ETMIDR", "alternative branches", "encoding of branches", 20, 1, 0x4114f250},
    [ETM3_ONLY] = {"ETMCR", "data only", "no instructions", 20, 1, 0},
};

static uint64_t mask_of(const struct field *f)
{
    return ((UINT64_C(1) << f->bits) - 1) << f->low;
}

static uint64_t get(const struct tl_source *s, const struct field *f)
{
    return (tl_source_reg(s, f->reg, f->otherwise) & mask_of(f)) >> f->low;
}

static void set(struct tl_source *s, const struct field *f, uint64_t value)
{
    const uint64_t all = tl_source_reg(s, f->reg, f->otherwise);
    const int rc = tl_source_set_reg(s, f->reg, (all & ~mask_of(f)) | value << f->low);
    (void)rc; /* a source that is full of registers stays as it is */
}

/* ---- what packets say ------------------------------------------------------------------------ */

static void compare(struct check *c, struct tl_source *s, unsigned which, bool known,
                    uint64_t value)
{
    const struct field *const f = &fields[which];
    const uint64_t before = get(s, f);
    if (!known || before == value)
        return;
    report(c, "%s: %s says %s %llu (%s), the packets say %llu", s->name, f->reg, f->name,
           (unsigned long long)before, f->meaning, (unsigned long long)value);
    set(s, f, value);
}

/* In a trace with counts of cycles each beginning has one, though not all arrive. */
static void compare_old_packets(struct check *c, struct tl_source *s, const struct tl_evidence *e)
{
    const bool believed = e->errors < e->packets / 8;
    if (formats_of(s) != ETM3)
        return;
    compare(c, s, ETM3_CYCLES, believed && e->counted > 0, 1);
    compare(c, s, ETM3_CYCLES, believed && e->counted == 0 && e->starts > 2, 0);
}

/*
 * What the trace information packets tell holds only where all of them agree; what is seen at all
 * was switched on, but what is not seen may be so as well.
 */
static void compare_packets(struct check *c, struct tl_source *s, const struct tl_evidence *e)
{
    const bool agreed = e->infos && e->info_all == e->info_any;
    const uint32_t info = e->info_all;
    if (!(formats_of(s) & (ETM4 | ETE)))
        return;
    compare(c, s, CCI, agreed, info & 1);
    compare(c, s, INSTP0, agreed, info >> 4 & 3);
    compare(c, s, COND, agreed && (info >> 1 & 7) == 0, 0);
    compare(c, s, TS, e->stamps > 0, 1);
    compare(c, s, CID, e->contexts > 0, 1);
    compare(c, s, VMID, e->vmids > 0, 1);
    compare(c, s, IASIZE, e->wide > 0, 8);
}

/* ---- what fits better ------------------------------------------------------------------------ */

/* Other values of one field, or of two where one alone leaves errors. */
struct trial {
    unsigned formats;
    struct {
        unsigned field;
        uint64_t value;
    } set[2];
    unsigned n;
};

static const struct trial trials[] = {
    {ETM4 | ETE, {{CIDSIZE, 4}}, 1},
    {ETM4 | ETE, {{CIDSIZE, 0}}, 1},
    {ETM4 | ETE, {{VMIDSIZE, 4}}, 1},
    {ETM4 | ETE, {{VMIDSIZE, 1}}, 1},
    {ETM4 | ETE, {{VMIDSIZE, 0}}, 1},
    {ETM4 | ETE, {{VMIDSIZE, 2}}, 1},
    {ETM4 | ETE, {{CIDSIZE, 4}, {VMIDSIZE, 4}}, 2},
    {ETM4 | ETE, {{CIDSIZE, 4}, {VMIDSIZE, 1}}, 2},
    {ETM4 | ETE, {{CIDSIZE, 0}, {VMIDSIZE, 0}}, 2},
    {ETM4 | ETE, {{COMMOPT, 1}}, 1},
    {ETM4 | ETE, {{COMMOPT, 0}}, 1},
    {ETM4, {{MINOR, 0}}, 1},
    {ETM4, {{MINOR, 2}}, 1},
    {ETM4, {{MINOR, 3}}, 1},
    {ETM4, {{MINOR, 6}}, 1},
    {ETM3 | PTM, {{ETM3_CID, 0}}, 1},
    {ETM3 | PTM, {{ETM3_CID, 1}}, 1},
    {ETM3 | PTM, {{ETM3_CID, 2}}, 1},
    {ETM3 | PTM, {{ETM3_CID, 3}}, 1},
    {ETM3 | PTM, {{ETM3_CYCLES, 0}}, 1},
    {ETM3 | PTM, {{ETM3_CYCLES, 1}}, 1},
    {ETM3, {{ETM3_DATA, 0}}, 1},
    {ETM3, {{ETM3_DATA, 1}}, 1},
    {ETM3, {{ETM3_DATA, 2}}, 1},
    {ETM3, {{ETM3_DATA, 3}}, 1},
    {ETM3, {{ETM3_BRANCHES, 0}}, 1},
    {ETM3, {{ETM3_BRANCHES, 1}}, 1},
    {ETM3, {{ETM3_ONLY, 0}}, 1},
};

static void apply(struct tl_source *s, const struct trial *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        set(s, &fields[t->set[i].field], t->set[i].value);
        /* ETMv4.0 has one byte at most. */
        if (t->set[i].field == VMIDSIZE && t->set[i].value > 1 && formats_of(s) == ETM4 &&
            get(s, &fields[MINOR]) == 0)
            set(s, &fields[MINOR], 1);
    }
}

static bool is_new(const struct tl_source *s, const struct trial *t)
{
    bool new = t->formats &formats_of(s);
    for (unsigned i = 0; i < t->n; i++)
        new = new &&get(s, &fields[t->set[i].field]) != t->set[i].value;
    return new;
}

static void report_trial(struct check *c, const struct tl_source *s, const struct trial *t,
                         uint64_t before, uint64_t after)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct field *const f = &fields[t->set[i].field];
        report(c,
               "%s: %s says %s %llu (%s), the packets say %llu: with that there are %llu errors "
               "instead of %llu",
               s->name, f->reg, f->name, (unsigned long long)get(s, f), f->meaning,
               (unsigned long long)t->set[i].value, (unsigned long long)after,
               (unsigned long long)before);
    }
}

/* Errors of a source with the setup as it is. */
static int count_errors(struct check *c, unsigned id, uint64_t *out)
{
    const int rc = tl_evidence_list(c->setup, first(c->bytes, TRIED), c->scratch);
    *out = c->scratch->of[id].errors;
    return rc;
}

/* Find the trial with the fewest errors, at most half of `*errors`; NULL: none. */
static int best_trial(struct check *c, struct tl_source *s, uint64_t *errors,
                      const struct trial **best)
{
    const struct tl_source before = *s;
    uint64_t least = *errors / 2;
    int rc = TL_OK;
    *best = NULL;
    for (size_t i = 0; rc == TL_OK && i < sizeof trials / sizeof *trials; i++) {
        const struct trial *const t = &trials[i];
        uint64_t now;
        if (!is_new(s, t))
            continue;
        apply(s, t);
        rc = count_errors(c, s->id, &now);
        *s = before;
        if (rc == TL_OK && (now < least || (now == least && !*best))) {
            least = now;
            *best = t;
        }
    }
    *errors = *best ? least : *errors;
    return rc;
}

static int try_fields(struct check *c, struct tl_source *s)
{
    uint64_t errors;
    int rc = count_errors(c, s->id, &errors);
    for (unsigned round = 0; rc == TL_OK && errors > 0 && round < ROUNDS; round++) {
        const struct trial *t;
        const uint64_t before = errors;
        rc = best_trial(c, s, &errors, &t);
        if (rc < 0 || !t)
            break;
        report_trial(c, s, t, before, errors);
        apply(s, t);
    }
    return rc;
}

/* ---- frames and trace IDs -------------------------------------------------------------------- */

/* Synchronisation words between frames that are said to have none, and the like. */
static int try_frames(struct check *c)
{
    static const char *const formats[] = {"tpiu", "tpiu,sync=fsync", "tpiu,sync=hsync"};
    struct tl_setup *const setup = c->setup;
    const uint8_t before = setup->sync;
    int rc = tl_evidence_list(setup, first(c->bytes, TRIED), c->scratch), best = -1;
    const uint64_t packets = c->scratch->packets;
    uint64_t least = c->scratch->errors / 2, most = packets;
    for (uint8_t i = TL_SYNC_NONE; rc == TL_OK && i <= TL_SYNC_HSYNC; i++) {
        if (i == before)
            continue;
        setup->sync = i;
        rc = tl_evidence_list(setup, first(c->bytes, TRIED), c->scratch);
        if (rc == TL_OK && c->scratch->packets > most && c->scratch->errors <= least) {
            least = c->scratch->errors;
            most = c->scratch->packets;
            best = i;
        }
    }
    setup->sync = before;
    if (rc == TL_OK && best >= 0) {
        report(c,
               "the format is said to be %s, the frames are %s: with that there are %llu packets "
               "instead of %llu",
               setup->format, formats[best], (unsigned long long)most, (unsigned long long)packets);
        setup->sync = (uint8_t)best;
        snprintf(setup->format, sizeof setup->format, "%s", formats[best]);
    }
    return rc;
}

/* Is it trace of an ETMv4? Bytes of something else are hardly ever packets. */
static bool is_trace(const struct tl_evidence *e)
{
    return e->syncs && e->errors < e->packets / 8;
}

/* List the IDs that the setup lacks as if each were an ETMv4. */
static int list_unnamed(struct check *c, struct tl_evidences *out)
{
    struct tl_setup all;
    struct tl_fail fail;
    tl_setup_init(&all);
    int rc = tl_setup_format(&all, c->setup->format, &fail);
    for (unsigned id = 1; rc == TL_OK && id < 0x70; id++) {
        struct tl_source *const s = tl_setup_add_source(&all);
        if (!s) {
            rc = TL_NOMEM;
            break;
        }
        s->id = (uint16_t)id;
        s->protocol = TL_PROTO_ETM4;
        snprintf(s->name, sizeof s->name, "cs.%02x", id);
    }
    if (rc == TL_OK)
        rc = tl_evidence_list(&all, first(c->bytes, LISTED), out);
    tl_setup_fini(&all);
    return rc == TL_NOMEM ? rc : TL_OK;
}

static const char *id_register(const struct tl_source *s)
{
    return formats_of(s) & (ETM4 | ETE) ? "TRCTRACEIDR" : "ETMTRACEIDR";
}

static void change_id(struct check *c, struct tl_source *s, unsigned id)
{
    report(c, "%s: %s says 0x%x, the frames say 0x%x: it is the only ID there", s->name,
           id_register(s), s->id, id);
    s->id = (uint16_t)id;
    snprintf(s->name, sizeof s->name, "cs.%02x", id);
    const int rc = tl_source_set_reg(s, id_register(s), id);
    (void)rc; /* the ID of the section counts */
}

/*
 * IDs in the frames that no source has. A single one is the single source's, whatever number that
 * was thought to have: Linux changes its rules for them.
 */
static int compare_ids(struct check *c)
{
    struct tl_evidences *const all = c->scratch;
    struct tl_source *const only = c->setup->n_sources == 1 ? c->setup->sources : NULL;
    const bool silent = only && formats_of(only) && all->of[only->id].packets == 0;
    const int rc = list_unnamed(c, all);
    unsigned n = 0, last = 0;
    for (unsigned id = 1; rc == TL_OK && id < 0x70; id++)
        if (is_trace(&all->of[id]) && !tl_setup_source(c->setup, id)) {
            n++;
            last = id;
        }
    if (n == 1 && silent) {
        change_id(c, only, last);
        n = 0;
    }
    for (unsigned id = 1; n && id < 0x70; id++)
        if (is_trace(&all->of[id]) && !tl_setup_source(c->setup, id))
            report(c, "trace ID 0x%x is in the frames, as an ETMv4 or ETE, but no [source] has it",
                   id);
    return rc;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int compare_source(struct check *c, struct tl_source *s)
{
    int rc = try_fields(c, s);
    if (rc == TL_OK)
        rc = tl_evidence_list(c->setup, first(c->bytes, LISTED), c->scratch);
    const struct tl_evidence *const e = &c->scratch->of[s->id];
    if (rc < 0)
        return rc;
    compare_packets(c, s, e);
    compare_old_packets(c, s, e);
    if (e->errors > e->packets)
        report(c, "%s: with all of this %llu bytes are no packets of %s: is that what the unit is?",
               s->name, (unsigned long long)e->errors, tl_format_of(s->protocol)->name);
    return rc;
}

int tl_setup_check(struct tl_setup *setup, struct tl_bytes bytes,
                   void (*to)(void *context, const char *text), void *context)
{
    struct check c = {.setup = setup,
                      .bytes = bytes,
                      .report = to,
                      .context = context,
                      .scratch = malloc(sizeof *c.scratch)};
    const bool framed = setup->container == TL_CONTAINER_TPIU;
    int rc = c.scratch ? TL_OK : TL_NOMEM;
    if (rc == TL_OK && framed)
        rc = try_frames(&c);
    if (rc == TL_OK)
        rc = tl_evidence_list(setup, first(bytes, LISTED), c.scratch);
    if (rc == TL_OK && framed && c.scratch->unnamed)
        rc = compare_ids(&c);
    for (size_t i = 0; rc == TL_OK && i < setup->n_sources; i++)
        if (setup->sources[i].id < TL_EVIDENCE_IDS && formats_of(&setup->sources[i]))
            rc = compare_source(&c, &setup->sources[i]);
    free(c.scratch);
    return rc < 0 ? rc : c.found;
}
