/* SPDX-License-Identifier: MIT */
/*
 * Writes packets of ETMv3 and PTM as text. Names are those of the standards, so that a listing can
 * be read beside them.
 */
#include "etm3/packet_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct line {
    char *p;
    size_t n;
};

TL_PRINTF(2, 3)
static void put(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line->p + line->n, TL_ETM3_TEXT_MAX - line->n, format, args);
    va_end(args);
    if (n > 0)
        line->n += (size_t)n;
    if (line->n >= TL_ETM3_TEXT_MAX)
        line->n = TL_ETM3_TEXT_MAX - 1;
}

static const char *name_of(const struct tl_etm3_config *config, const struct tl_etm3_packet *p)
{
    switch (p->type) {
    case TL_ETM3_ASYNC:
        return "A_SYNC";
    case TL_ETM3_NOT_SYNC:
        return "NOTSYNC";
    case TL_ETM3_ATOMS:
        return config->ptm ? "ATOM" : "P_HDR";
    case TL_ETM3_BRANCH:
        return "BRANCH_ADDRESS";
    case TL_ETM3_ISYNC:
        return p->has_cycles && !config->ptm ? "I_SYNC_CYCLE" : "I_SYNC";
    case TL_ETM3_WAYPOINT:
        return "WAYPOINT_UPDATE";
    case TL_ETM3_CYCLES:
        return "CYCLE_COUNT";
    case TL_ETM3_TIMESTAMP:
        return "TIMESTAMP";
    case TL_ETM3_CONTEXT:
        return "CONTEXT_ID";
    case TL_ETM3_VMID:
        return "VMID";
    case TL_ETM3_EXCEPTION_EXIT:
        return config->ptm ? "EXCEPTION_RETURN" : "EXCEPTION_EXIT";
    case TL_ETM3_EXCEPTION_ENTRY:
        return "EXCEPTION_ENTRY";
    case TL_ETM3_TRIGGER:
        return "TRIGGER";
    case TL_ETM3_IGNORE:
        return "IGNORE";
    case TL_ETM3_DATA:
        return "DATA";
    default:
        return "RESERVED";
    }
}

static void put_data(struct line *line, const struct tl_etm3_packet *p)
{
    static const char *const kinds[] = {"normal",       "pending",    "late",
                                        "store-failed", "suppressed", "not-traced"};
    put(line, " kind=%s", kinds[p->data]);
    if (p->tag)
        put(line, " tag=%u", p->tag);
    if (p->has_address)
        put(line, " addr=0x%08x", p->address);
    if (p->has_value)
        put(line, " size=%u value=0x%x", p->value_size, p->value);
}

/* W: a cycle; E: passed; N: failed. */
static void put_atoms(struct line *line, const struct tl_etm3_packet *p)
{
    put(line, " atoms=");
    for (unsigned i = 0; i < p->lead; i++)
        put(line, "W");
    for (unsigned i = 0; i < p->n; i++)
        put(line, "%s%c", i > 0 && p->each ? "W" : "", p->atoms >> i & 1 ? 'E' : 'N');
}

static void put_address(struct line *line, const struct tl_etm3_packet *p)
{
    static const char *const isas[] = {"arm", "thumb", "thumbee", "jazelle"};
    put(line, " addr=0x%08x isa=%s", p->address, isas[p->isa]);
}

static void put_state(struct line *line, const struct tl_etm3_packet *p)
{
    put(line, " ns=%d hyp=%d", p->ns, p->hyp);
}

void tl_etm3_packet_text(char out[static TL_ETM3_TEXT_MAX], const struct tl_etm3_config *config,
                         const struct tl_etm3_packet *p)
{
    static const char *const reasons[] = {"periodic", "trace-on", "overflow", "debug-exit"};
    struct line line = {out, 0};
    put(&line, "%" PRIu64 " %02x %s", p->offset, config->trace_id, name_of(config, p));
    switch (p->type) {
    case TL_ETM3_ATOMS:
        put_atoms(&line, p);
        break;
    case TL_ETM3_BRANCH:
        put_address(&line, p);
        put_state(&line, p);
        if (p->has_exception)
            put(&line, " exc=%u cancelled=%d", p->exception, p->cancelled);
        break;
    case TL_ETM3_DATA:
        put_data(&line, p);
        break;
    case TL_ETM3_WAYPOINT:
        put_address(&line, p);
        break;
    case TL_ETM3_ISYNC:
        put(&line, " reason=%s", reasons[p->reason]);
        if (p->has_load)
            put(&line, " lsip=0x%08x", p->load);
        put_address(&line, p);
        put_state(&line, p);
        break;
    case TL_ETM3_TIMESTAMP:
        put(&line, " ts=%" PRIu64, p->time);
        break;
    case TL_ETM3_VMID:
        put(&line, " vmid=0x%x", p->context);
        break;
    case TL_ETM3_BAD:
    case TL_ETM3_NOT_SYNC:
        put(&line, " bytes=%u", p->context);
        break;
    default:
        break;
    }
    if (p->has_context)
        put(&line, " ctxt=0x%x", p->context);
    if (p->has_cycles)
        put(&line, " cycles=%u", p->cycles);
}
