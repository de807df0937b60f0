/* SPDX-License-Identifier: MIT */
/*
 * Each format's parameters become registers by their architectural names, so that stream decoders
 * do not know perf. Numbers of words are taken from the record and checked against its size, since
 * each version of perf appends to it.
 */
#include "perf/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INFO_HEADER = 8, /* kind, 0 */
    MAX_UNITS = 4096,
    ETM3_REGS_0 = 4, /* registers of a unit in version 0, which does not tell their number */
    ETM4_REGS_0 = 7,
};

#define MAGIC_ETM3 0x3030303030303030
#define MAGIC_ETM4 0x4040404040404040
#define MAGIC_ETE  0x5050505050505050

/* TRCCONFIGR and ETMCR bits, and the indices of the values that give a unit's timestamp source. */
enum {
    TIMESTAMPS = 1 << 11,
    ETM3_TIMESTAMPS = 1 << 28,
    ETM4_TS_SOURCE = 7,
    ETE_TS_SOURCE = 8,
    VIRTUAL_COUNTER = 1
};

/* ETMv3, or PTM, which perf stores in the same form. */
static bool is_older(const struct tl_perf_unit *unit)
{
    return unit->protocol == TL_PROTO_ETM3 || unit->protocol == TL_PROTO_PTM;
}

static bool has_stamps(const struct tl_perf_unit *unit)
{
    return unit->protocol != TL_PROTO_NONE && unit->n_regs > 0 &&
           unit->regs[0] & (is_older(unit) ? ETM3_TIMESTAMPS : TIMESTAMPS);
}

/* ---- time ------------------------------------------------------------------------------------ */

void tl_perf_info_clock(struct tl_perf_info *info, bool swap, struct tl_bytes body)
{
    enum { CYCLES = 24, MASK = 32, HAS_ZERO = 40, IS_SHORT = 41, LONG_FORM = 42 };
    struct tl_clock clock;
    if (body.n < CYCLES || (body.n >= LONG_FORM && !body.p[HAS_ZERO]) ||
        !tl_clock_set(&clock, tl_perf_u64(swap, body.p), tl_perf_u64(swap, body.p + 8),
                      tl_perf_u64(swap, body.p + 16)))
        return;
    if (body.n >= LONG_FORM && body.p[IS_SHORT]) /* the counter's upper bits are not in the trace */
        clock.zero = tl_clock_zero(&clock, tl_perf_u64(swap, body.p + CYCLES) &
                                               ~tl_perf_u64(swap, body.p + MASK));
    info->clock = clock;
}

/* ---- AUXTRACE_INFO --------------------------------------------------------------------------- */

void tl_perf_info_fini(struct tl_perf_info *info)
{
    free(info->units);
    *info = (struct tl_perf_info){0};
}

void tl_perf_clock_state(struct tl_clock *clock, struct tl_state *s)
{
    tl_state_bool(s, &clock->known);
    tl_state_u64(s, &clock->shift);
    tl_state_u64(s, &clock->mult);
    tl_state_u64(s, &clock->zero);
    struct tl_clock made = {0};
    tl_state_check(s, !clock->known || tl_clock_set(&made, clock->shift, clock->mult, clock->zero));
}

static void unit_state(struct tl_perf_unit *unit, struct tl_state *s)
{
    tl_state_u8(s, &unit->protocol, TL_PROTOCOLS - 1);
    tl_state_u32(s, &unit->cpu);
    tl_state_u8(s, &unit->id, 0x7f);
    tl_state_bool(s, &unit->takes_id);
    tl_state_bool(s, &unit->has_sink);
    tl_state_u32(s, &unit->sink);
    tl_state_bool(s, &unit->doubled);
    tl_state_bytes(s, unit->regs, sizeof unit->regs);
    tl_state_size(s, &unit->n_regs, TL_PERF_REGS);
}

void tl_perf_info_state(struct tl_perf_info *info, struct tl_state *s)
{
    enum { UNIT_MIN = 8 * TL_PERF_REGS };
    uint64_t mtc_shift = info->mtc_shift;
    tl_state_u8(s, &info->kind, UINT8_MAX);
    tl_state_u32(s, &info->pmu);
    tl_state_bool(s, &info->snapshot);
    tl_perf_clock_state(&info->clock, s);
    tl_state_u64(s, &info->tsc_bit);
    tl_state_u64(s, &info->mtc_bits);
    tl_state_u64(s, &mtc_shift);
    info->mtc_shift = (unsigned)mtc_shift;
    tl_state_check(s, mtc_shift < 64);
    tl_state_u64(s, &info->ratio_n);
    tl_state_u64(s, &info->ratio_d);
    tl_state_u64(s, &info->max_ratio);
    tl_state_bool(s, &info->per_cpu);
    tl_state_u8(s, &info->switches, UINT8_MAX);
    tl_state_count(s, &info->units, &info->n_units, &info->cap_units, sizeof *info->units,
                   UNIT_MIN);
    for (size_t i = 0; i < info->n_units; i++)
        unit_state(&info->units[i], s);
}

static uint64_t word(bool swap, struct tl_bytes words, size_t i)
{
    return i < words.n / 8 ? tl_perf_u64(swap, words.p + 8 * i) : 0;
}

/* Words of Intel PT's record, by their names in perf's intel-pt.h. */
enum pt_word {
    PT_PMU_TYPE,
    PT_TIME_SHIFT,
    PT_TIME_MULT,
    PT_TIME_ZERO,
    PT_CAP_USER_TIME_ZERO,
    PT_TSC_BIT,
    PT_NORETCOMP_BIT,
    PT_HAVE_SCHED_SWITCH,
    PT_SNAPSHOT_MODE,
    PT_PER_CPU_MMAPS,
    PT_MTC_BIT,
    PT_MTC_FREQ_BITS,
    PT_TSC_CTC_N,
    PT_TSC_CTC_D,
    PT_CYC_BIT,
    PT_MAX_NONTURBO_RATIO,
    PT_WORDS_MIN = PT_MTC_BIT /* the first version had these */
};

static int read_pt(struct tl_perf_info *info, bool swap, struct tl_bytes w)
{
    if (w.n / 8 < PT_WORDS_MIN)
        return TL_BAD;
    info->pmu = (uint32_t)word(swap, w, PT_PMU_TYPE);
    if (word(swap, w, PT_CAP_USER_TIME_ZERO))
        (void)tl_clock_set(&info->clock, word(swap, w, PT_TIME_SHIFT), word(swap, w, PT_TIME_MULT),
                           word(swap, w, PT_TIME_ZERO));
    info->tsc_bit = word(swap, w, PT_TSC_BIT);
    info->switches = (uint8_t)word(swap, w, PT_HAVE_SCHED_SWITCH);
    info->snapshot = word(swap, w, PT_SNAPSHOT_MODE) != 0;
    info->per_cpu = word(swap, w, PT_PER_CPU_MMAPS) != 0;
    info->mtc_bits = word(swap, w, PT_MTC_FREQ_BITS);
    info->mtc_shift = info->mtc_bits ? (unsigned)__builtin_ctzll(info->mtc_bits) : 0;
    info->ratio_n = word(swap, w, PT_TSC_CTC_N);
    info->ratio_d = word(swap, w, PT_TSC_CTC_D);
    info->max_ratio = word(swap, w, PT_MAX_NONTURBO_RATIO);
    return TL_OK;
}

/* ETMIDR tells PTM from ETMv3. */
static enum tl_protocol older_protocol(const struct tl_perf_unit *unit)
{
    enum { ETMIDR = 3, MAJOR = 8, PFT = 3 };
    const uint64_t idr = unit->n_regs > ETMIDR ? unit->regs[ETMIDR] : 0;
    return (idr >> MAJOR & 15) == PFT ? TL_PROTO_PTM : TL_PROTO_ETM3;
}

static void set_unit(struct tl_perf_unit *unit, uint64_t magic, unsigned version)
{
    unit->protocol = (uint8_t)(magic == MAGIC_ETM4   ? TL_PROTO_ETM4
                               : magic == MAGIC_ETE  ? TL_PROTO_ETE
                               : magic == MAGIC_ETM3 ? older_protocol(unit)
                                                     : TL_PROTO_NONE);
    const uint64_t id = unit->n_regs > 1 ? unit->regs[1] : 0;
    const bool is_unused = version >= 2 && id >> 31 & 1;
    unit->takes_id = version >= 2;
    unit->id = is_unused ? 0 : (uint8_t)(id & 0x7f);
}

static int read_units(struct tl_perf_info *info, bool swap, struct tl_bytes w)
{
    if (w.n / 8 < 3)
        return TL_BAD;
    const unsigned version = word(swap, w, 0) & 0xff;
    info->pmu = (uint32_t)(word(swap, w, 1) >> 32);
    info->snapshot = word(swap, w, 2) != 0;
    uint64_t n = word(swap, w, 1) & UINT32_MAX;
    n = n < MAX_UNITS ? n : MAX_UNITS;
    size_t at = 3;
    for (uint64_t i = 0; i < n; i++) {
        const size_t there = w.n / 8;
        const size_t header = version >= 1 ? 3 : 2;
        if (at > there || there - at < header)
            return TL_BAD;
        const uint64_t magic = word(swap, w, at);
        const uint64_t reported = version >= 1          ? word(swap, w, at + 2)
                                  : magic == MAGIC_ETM3 ? ETM3_REGS_0
                                                        : ETM4_REGS_0;
        struct tl_perf_unit unit = {.cpu = (uint32_t)word(swap, w, at + 1)};
        at += header;
        if (reported > there - at)
            return TL_BAD;
        for (size_t k = 0; k < reported && k < TL_PERF_REGS; k++)
            unit.regs[unit.n_regs++] = word(swap, w, at + k);
        at += (size_t)reported;
        set_unit(&unit, magic, version);
        if (tl_grow(&info->units, &info->cap_units, info->n_units + 1, sizeof *info->units) < 0)
            return TL_NOMEM;
        info->units[info->n_units++] = unit;
    }
    return TL_OK;
}

/* {PMU type << 32 | n, n times {cpu, k, k registers}}, or nothing but a PMU type. */
static int read_encoders(struct tl_perf_info *info, bool swap, struct tl_bytes w)
{
    const size_t there = w.n / 8;
    if (there < 1)
        return TL_BAD;
    const uint64_t first = word(swap, w, 0);
    info->pmu = (uint32_t)(there == 1 ? first : first >> 32);
    uint64_t n = there == 1 ? 0 : first & UINT32_MAX;
    n = n < MAX_UNITS ? n : MAX_UNITS;
    for (size_t at = 1; n > 0; n--) {
        struct tl_perf_unit unit = {.cpu = (uint32_t)word(swap, w, at)};
        const uint64_t reported = word(swap, w, at + 1);
        if (there - at < 2 || reported > there - at - 2)
            return TL_BAD;
        for (size_t k = 0; k < reported && k < TL_PERF_REGS; k++)
            unit.regs[unit.n_regs++] = word(swap, w, at + 2 + k);
        at += 2 + (size_t)reported;
        unit.protocol = unit.regs[TL_PERF_FORMAT] == 1 ? TL_PROTO_N_TRACE : TL_PROTO_E_TRACE;
        unit.id = unit.regs[TL_PERF_SRC_ID] & 0x7f;
        if (tl_grow(&info->units, &info->cap_units, info->n_units + 1, sizeof *info->units) < 0)
            return TL_NOMEM;
        info->units[info->n_units++] = unit;
    }
    return TL_OK;
}

/* The PMU's type comes first, or in later versions, which have more than two words, third. */
static int read_spe(struct tl_perf_info *info, bool swap, struct tl_bytes words)
{
    enum { PMU = 0, PMU_LATER = 2 };
    if (words.n < 16)
        return TL_BAD;
    info->pmu = (uint32_t)word(swap, words, words.n > 16 ? PMU_LATER : PMU);
    return TL_OK;
}

int tl_perf_info_read(struct tl_perf_info *info, bool swap, struct tl_bytes body,
                      struct tl_fail *fail)
{
    static const char *const others[] = {
        "?",       "Intel PT",      "Intel BTS",     "CoreSight",
        "Arm SPE", "s390 sampling", "HiSilicon PTT", "PowerPC VPA DTL"};
    if (body.n < INFO_HEADER)
        return tl_fail_set(fail, TL_BAD, "AUXTRACE_INFO is too short");
    const uint32_t kind = tl_perf_u32(swap, body.p);
    const struct tl_bytes words = {body.p + INFO_HEADER, body.n - INFO_HEADER};
    int rc;
    info->n_units = 0;
    if (kind == TL_PERF_TRACE_PT)
        rc = read_pt(info, swap, words);
    else if (kind == TL_PERF_TRACE_CORESIGHT)
        rc = read_units(info, swap, words);
    else if (kind == TL_PERF_TRACE_RISCV)
        rc = read_encoders(info, swap, words);
    else if (kind == TL_PERF_TRACE_SPE)
        rc = read_spe(info, swap, words);
    else
        return tl_fail_set(
            fail, TL_UNSUPPORTED,
            "the trace is of kind %u (%s); Intel PT, CoreSight, SPE and RISC-V can be decoded",
            kind, others[kind < sizeof others / sizeof *others ? kind : 0]);
    if (rc == TL_BAD)
        tl_fail_set(fail, TL_BAD, "AUXTRACE_INFO is shorter than its own header says");
    if (rc == TL_OK)
        info->kind = (uint8_t)kind;
    return rc;
}

static struct tl_perf_unit *unit_of(const struct tl_perf_info *info, int64_t cpu)
{
    for (size_t i = 0; i < info->n_units; i++)
        if (info->units[i].cpu == cpu)
            return &info->units[i];
    return NULL;
}

/*
 * Bits 7..0 are the ID, 63..60 a version that must be 0; if 59..56 are not 0, 39..8 are the sink.
 */
void tl_perf_info_hw_id(struct tl_perf_info *info, uint32_t cpu, uint64_t hw_id)
{
    struct tl_perf_unit *const unit = unit_of(info, cpu);
    if (!unit || !unit->takes_id || hw_id >> 60 != 0)
        return;
    unit->id = hw_id & 0x7f;
    unit->has_sink = hw_id >> 56 & 15;
    unit->sink = (uint32_t)(hw_id >> 8);
    for (size_t i = 0; i < info->n_units; i++) {
        const struct tl_perf_unit *const other = &info->units[i];
        unit->doubled |= unit->has_sink && other->has_sink && other != unit &&
                         other->id == unit->id && other->sink != unit->sink;
    }
}

bool tl_perf_info_shares_sink(const struct tl_perf_info *info, int64_t cpu,
                              const struct tl_perf_unit *unit)
{
    const struct tl_perf_unit *const own = unit_of(info, cpu);
    return !own || !own->has_sink || !unit->has_sink || own->sink == unit->sink;
}

/*
 * ---- conversion to sources ---------------------------------------------------------------------
 */

#define MTC_FREQ_DEFAULT 3 /* what perf record sets unless told otherwise */

static void set(struct tl_source *source, const char *name, uint64_t value)
{
    const int rc = tl_source_set_reg(source, name, value);
    (void)rc; /* names and count are fixed, and fit */
}

void tl_perf_info_pt(const struct tl_perf_info *info, const struct tl_perf_attr *attr,
                     struct tl_source *source)
{
    source->protocol = TL_PROTO_PT;
    if (info->mtc_bits)
        set(source, "MTC_FREQ",
            attr ? (attr->config & info->mtc_bits) >> info->mtc_shift & 15 : MTC_FREQ_DEFAULT);
    const uint64_t rate = tl_clock_rate(&info->clock);
    const uint64_t ratio = info->max_ratio ? info->max_ratio : (rate + 50000000) / 100000000;
    if (ratio > 0 && ratio < 256)
        set(source, "NOM_FREQ", ratio);
    if (info->ratio_n && info->ratio_d && info->ratio_n <= UINT32_MAX &&
        info->ratio_d <= UINT32_MAX) {
        set(source, "CPUID_15_EAX", info->ratio_d);
        set(source, "CPUID_15_EBX", info->ratio_n);
    }
    source->clock_hz = rate;
}

void tl_perf_info_unit(const struct tl_perf_unit *unit, struct tl_source *source)
{
    static const char *const newer[] = {"TRCCONFIGR", "TRCTRACEIDR", "TRCIDR0",      "TRCIDR1",
                                        "TRCIDR2",    "TRCIDR8",     "TRCAUTHSTATUS"};
    static const char *const older[] = {"ETMCR", "ETMTRACEIDR", "ETMCCER", "ETMIDR"};
    const char *const *const names = is_older(unit) ? older : newer;
    const size_t n_names =
        is_older(unit) ? sizeof older / sizeof *older : sizeof newer / sizeof *newer;
    source->protocol = unit->protocol;
    source->id = unit->id;
    const int n = snprintf(source->name, sizeof source->name, "cs.%02x", unit->id);
    if (unit->doubled)
        snprintf(source->name + n, sizeof source->name - (size_t)n, ".cpu%" PRIu32, unit->cpu);
    snprintf(source->core, sizeof source->core, is_older(unit) ? "ARMv7-A" : "ARM-AA64");
    const char *const type = unit->protocol == TL_PROTO_ETE    ? "ETE"
                             : unit->protocol == TL_PROTO_ETM4 ? "ETM4"
                             : unit->protocol == TL_PROTO_PTM  ? "PTM"
                             : unit->protocol == TL_PROTO_ETM3 ? "ETM3"
                                                               : "?";
    snprintf(source->type, sizeof source->type, "%s", type);
    if (unit->protocol == TL_PROTO_NONE)
        return;
    for (size_t i = 0; i < unit->n_regs && i < n_names; i++)
        set(source, names[i], i == 1 ? unit->id : unit->regs[i]);
    if (unit->protocol == TL_PROTO_ETE && unit->n_regs > 7)
        set(source, "TRCDEVARCH", unit->regs[7]);
}

void tl_perf_info_encoder(const struct tl_perf_unit *unit, bool framed, struct tl_source *source)
{
    const bool nexus = unit->protocol == TL_PROTO_N_TRACE;
    const uint16_t id = framed ? unit->id : unit->regs[TL_PERF_SRC_ID] & 0xfff;
    source->protocol = unit->protocol;
    source->id = id;
    snprintf(source->name, sizeof source->name, framed ? "cs.%02x" : nexus ? "nt.%u" : "et.%u", id);
    set(source, "trTeSrcBits", unit->regs[TL_PERF_SRC_BITS]);
    set(source, "trTeInhibitSrc", unit->regs[TL_PERF_INHIBIT_SRC]);
}

/* Does an encoder tell the context, which is the thread? */
static bool tells_context(const struct tl_perf_info *info)
{
    bool any = info->n_units == 0;
    for (size_t i = 0; i < info->n_units; i++)
        any |= info->units[i].regs[TL_PERF_CONTEXTS] != 0;
    return any;
}

enum tl_perf_context tl_perf_info_context(const struct tl_perf_info *info)
{
    enum { CID = 1 << 6, VMID = 1 << 7, VMIDOPT = 1 << 15, WHOLE_CONTEXT = 3 << 14 };
    uint64_t config = 0;
    if (info->kind == TL_PERF_TRACE_RISCV)
        return tells_context(info) ? TL_PERF_CONTEXT_ID : TL_PERF_CONTEXT_NONE;
    if (info->kind != TL_PERF_TRACE_CORESIGHT)
        return TL_PERF_CONTEXT_ID;
    for (size_t i = 0; i < info->n_units; i++) {
        const struct tl_perf_unit *const u = &info->units[i];
        const uint64_t own = u->n_regs ? u->regs[0] : 0;
        /* ETMv3 and PTM may trace a part of the context ID, which names no thread. */
        const bool whole = (own & WHOLE_CONTEXT) == WHOLE_CONTEXT;
        config |= is_older(u) ? (whole ? CID : 0) : own;
    }
    /* With both, Linux runs at EL2, and context IDs are those of virtual machines. */
    return config & VMID && config & VMIDOPT ? TL_PERF_CONTEXT_VMID
           : config & CID                    ? TL_PERF_CONTEXT_ID
                                             : TL_PERF_CONTEXT_NONE;
}

/* Do all units with timestamps use the virtual counter? */
static bool has_virtual_stamps(const struct tl_perf_info *info)
{
    bool any = false;
    for (size_t i = 0; i < info->n_units; i++) {
        const struct tl_perf_unit *const u = &info->units[i];
        const size_t source = u->protocol == TL_PROTO_ETE ? ETE_TS_SOURCE : ETM4_TS_SOURCE;
        if (!has_stamps(u))
            continue;
        if (source >= u->n_regs || u->regs[source] != VIRTUAL_COUNTER)
            return false;
        any = true;
    }
    return any;
}

bool tl_perf_info_is_timed(const struct tl_perf_info *info, const struct tl_perf_attr *attr)
{
    if (info->kind == TL_PERF_TRACE_CORESIGHT)
        return info->clock.known && has_virtual_stamps(info);
    if (info->kind == TL_PERF_TRACE_SPE)
        return info->clock.known;
    return info->kind == TL_PERF_TRACE_PT && info->clock.known &&
           (!attr || !info->tsc_bit || attr->config & info->tsc_bit);
}

bool tl_perf_info_has_stamps(const struct tl_perf_info *info)
{
    bool any = false;
    for (size_t i = 0; i < info->n_units && info->kind == TL_PERF_TRACE_CORESIGHT; i++)
        any |= has_stamps(&info->units[i]);
    return any;
}

struct tl_clock tl_perf_info_axis(const struct tl_perf_info *info, const struct tl_perf_attr *attr)
{
    static const struct tl_clock ns = {.known = true, .mult = 1};
    return tl_perf_info_is_timed(info, attr) ? info->clock : ns;
}

void tl_perf_cpuid(const char *cpuid, char *out, size_t size)
{
    unsigned family, model, stepping;
    out[0] = 0;
    if (sscanf(cpuid, "GenuineIntel,%u,%u,%u", &family, &model, &stepping) == 3)
        snprintf(out, size, "%u/%u/%u", family, model, stepping);
}
