/* SPDX-License-Identifier: MIT */
/*
 * What is known for certain of a module, by the setup or by register reads, is kept apart from what
 * was inferred: only the latter is dropped when events do not fit. Inference waits for a second
 * event where one alone could be a memory transfer.
 */
#include "osd/reader.h"

#include <stdlib.h>
#include <string.h>

#define LOCALS 1024 /* modules per subnet */

/* Registers. */
enum {
    MOD_TYPE = 0x0001,
    FIRST_SPECIAL = 0x0200, /* CTM: ADDR_WIDTH, STM: VALWIDTH */
    MAX_PKT_LEN = 0x0203    /* SCM */
};

/* TYPE_SUB of register packets. */
enum { SUB_WRITE = 4, SUB_RESPONSE = 8, SUB_READ_OK_16 = 8, SUB_READ_ERROR = 12 };

/* CTM flags word. */
enum {
    CTM_RET = 0x04,
    CTM_CALL = 0x08,
    CTM_MODECHANGE = 0x10,
    CTM_WHY = CTM_RET | CTM_CALL | CTM_MODECHANGE,
    CTM_ZERO = 0xffe0
};

/* ---- modules ---------------------------------------------------------------------------- */

struct tl_osd_module *tl_osd_make_module(struct tl_osd_reader *r, uint16_t address)
{
    struct tl_osd_module ***const subnet = &r->subnets[address >> 10];
    if (!*subnet && !(*subnet = calloc(LOCALS, sizeof **subnet)))
        return NULL;
    struct tl_osd_module **const module = &(*subnet)[address % LOCALS];
    if (!*module && (*module = calloc(1, sizeof **module))) {
        (*module)->address = address;
        if (address % LOCALS == 0)
            (*module)->type = TL_OSD_SCM;
    }
    return *module;
}

int tl_osd_each_module(struct tl_osd_reader *r, int (*fn)(void *, struct tl_osd_module *),
                       void *context)
{
    for (size_t i = 0; i < 64 * (size_t)LOCALS; i++) {
        struct tl_osd_module **const subnet = r->subnets[i / LOCALS];
        if (!subnet) {
            i += LOCALS - 1;
            continue;
        }
        const int rc = subnet[i % LOCALS] ? fn(context, subnet[i % LOCALS]) : TL_OK;
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static bool is_width(uint64_t value)
{
    return value == 16 || value == 32 || value == 64;
}

static void declare(struct tl_osd_reader *r, struct tl_osd_module *m, uint64_t type, bool exact)
{
    m->foreign = type > TL_OSD_CDM;
    if (m->foreign)
        m->exact = exact;
    if (type == TL_OSD_UNKNOWN || m->foreign)
        return;
    if (m->type != type)
        m->width = 0;
    m->type = (uint8_t)type;
    m->declared = true;
    m->exact = exact;
    m->misfits = 0;
    r->any_declared = true;
}

static uint64_t type_of_protocol(enum tl_protocol protocol)
{
    switch (protocol) {
    case TL_PROTO_OSD_CTM:
        return TL_OSD_CTM;
    case TL_PROTO_OSD_STM:
        return TL_OSD_STM;
    case TL_PROTO_OSD_UART:
        return TL_OSD_UART;
    default:
        return TL_OSD_UNKNOWN;
    }
}

static int take_source(struct tl_osd_reader *r, const struct tl_source *source)
{
    struct tl_osd_module *const m = tl_osd_module_at(r, source->id);
    if (!m)
        return TL_NOMEM;
    const uint64_t otherwise = type_of_protocol((enum tl_protocol)source->protocol);
    declare(r, m, tl_source_reg(source, "MOD_TYPE", otherwise), true);
    const char *const name = m->type == TL_OSD_STM ? "VALWIDTH" : "ADDR_WIDTH";
    const uint64_t width = tl_source_reg(source, name, 0);
    if (is_width(width))
        m->width = (uint8_t)width;
    const uint64_t longest = tl_source_reg(source, "MAX_PKT_LEN", 0);
    if (longest <= UINT16_MAX && longest > r->max_pkt_len)
        r->max_pkt_len = (unsigned)longest;
    return TL_OK;
}

int tl_osd_reader_init(struct tl_osd_reader *r, const struct tl_setup *setup)
{
    *r = (struct tl_osd_reader){0};
    for (size_t i = 0; setup && i < setup->n_sources; i++)
        if (take_source(r, &setup->sources[i]) < 0)
            return TL_NOMEM;
    return TL_OK;
}

static int free_module(void *context, struct tl_osd_module *m)
{
    free(m);
    return TL_OK;
}

void tl_osd_reader_fini(struct tl_osd_reader *r)
{
    (void)tl_osd_each_module(r, free_module, NULL);
    for (size_t i = 0; i < 64; i++)
        free(r->subnets[i]);
    *r = (struct tl_osd_reader){0};
}

static int drop_parts(void *context, struct tl_osd_module *m)
{
    m->n_words = 0;
    m->too_long = false;
    m->n_asked = 0;
    return TL_OK;
}

void tl_osd_reader_lost(struct tl_osd_reader *r)
{
    (void)tl_osd_each_module(r, drop_parts, NULL);
}

/* ---- register access -------------------------------------------------------------------- */

static void learn(struct tl_osd_reader *r, struct tl_osd_module *m, unsigned address,
                  uint16_t value)
{
    if (address == MOD_TYPE)
        declare(r, m, value, true);
    else if (address == FIRST_SPECIAL && (m->type == TL_OSD_CTM || m->type == TL_OSD_STM) &&
             is_width(value))
        m->width = (uint8_t)value;
    else if (address == MAX_PKT_LEN && m->type == TL_OSD_SCM && value > r->max_pkt_len)
        r->max_pkt_len = value;
}

/*
 * Only answers are in the stream: a host first reads vendor and type, and of a CTM or STM the width
 * before any other register whose value could be mistaken for one.
 */
static void guess(struct tl_osd_reader *r, struct tl_osd_module *m, uint16_t value)
{
    const bool heard = m->type != TL_OSD_UNKNOWN && m->type != TL_OSD_SCM;
    const bool scm = m->address % LOCALS == 0;
    if (m->n_replies == 1 && m->reply == 1 && !heard && scm == (value == TL_OSD_SCM))
        declare(r, m, value, false);
    else if ((m->type == TL_OSD_CTM || m->type == TL_OSD_STM) && !m->width && is_width(value))
        m->width = (uint8_t)value;
    m->reply = value;
    if (m->n_replies < 2)
        m->n_replies++;
}

static int take_request(struct tl_osd_reader *r, const struct tl_di_packet *packet)
{
    struct tl_osd_module *const m = tl_osd_module_at(r, packet->words[0]);
    if (!m)
        return TL_NOMEM;
    const size_t cap = sizeof m->asked / sizeof m->asked[0];
    if (m->n_asked == cap || packet->n <= TL_DI_HEADER) {
        m->n_asked = 0; /* unanswered requests: out of step */
        return TL_OK;
    }
    m->asked[m->n_asked++] = packet->words[TL_DI_HEADER];
    return TL_OK;
}

static int take_register(struct tl_osd_reader *r, struct tl_osd_module *m,
                         const struct tl_di_packet *packet)
{
    const unsigned sub = TL_DI_TYPE_SUB(packet->words[2]);
    if (!(sub & SUB_RESPONSE))
        return take_request(r, packet);
    const bool value = sub == SUB_READ_OK_16 && packet->n == TL_DI_HEADER + 1;
    if (m->n_asked) {
        if (value)
            learn(r, m, m->asked[0], packet->words[TL_DI_HEADER]);
        m->n_asked--;
        memmove(m->asked, m->asked + 1, m->n_asked * sizeof m->asked[0]);
    } else if (value && !m->exact) {
        guess(r, m, packet->words[TL_DI_HEADER]);
    }
    return TL_OK;
}

/* ---- events ----------------------------------------------------------------------------- */

static unsigned ctm_width(size_t n)
{
    return n == 5 ? 16 : n == 7 ? 32 : n == 11 ? 64 : 0;
}

static unsigned stm_width(size_t n)
{
    return n == 4 ? 16 : n == 5 ? 32 : n == 7 ? 64 : 0;
}

static bool ctm_flags(uint16_t flags)
{
    return !(flags & CTM_ZERO) && (flags & CTM_WHY);
}

/* Type of module that sends such events. A 16-bit CTM event and a 32-bit STM event have the same
 * length. */
static enum tl_osd_type infer(const uint16_t *words, size_t n)
{
    if (n == 1)
        return words[0] <= 1 ? TL_OSD_CDM : words[0] <= 0xff ? TL_OSD_UART : TL_OSD_UNKNOWN;
    if (ctm_width(n) && ctm_flags(words[n - 1]))
        return TL_OSD_CTM;
    return stm_width(n) ? TL_OSD_STM : TL_OSD_UNKNOWN;
}

static bool read_ctm(struct tl_osd_event *e, const uint16_t *words, size_t n, unsigned width)
{
    if (ctm_width(n) == 0 || (width && ctm_width(n) != width) || words[n - 1] & CTM_ZERO)
        return false;
    return tl_osd_read_ctm(e, words, ctm_width(n));
}

static bool read_stm(struct tl_osd_event *e, const uint16_t *words, size_t n, unsigned width)
{
    if (stm_width(n) == 0 || (width && stm_width(n) != width))
        return false;
    tl_osd_read_stm(e, words, stm_width(n));
    return true;
}

static bool read_word(struct tl_osd_event *e, const uint16_t *words, size_t n,
                      enum tl_osd_kind kind, uint16_t mask)
{
    if (n != 1)
        return false;
    e->kind = (uint8_t)kind;
    e->value = words[0] & mask;
    return true;
}

static bool read_as(struct tl_osd_event *e, const struct tl_osd_module *m, const uint16_t *words,
                    size_t n)
{
    switch (m->type) {
    case TL_OSD_CTM:
        return read_ctm(e, words, n, m->width);
    case TL_OSD_STM:
        return read_stm(e, words, n, m->width);
    case TL_OSD_UART:
        return read_word(e, words, n, TL_OSD_CHARACTER, 0xff);
    case TL_OSD_CDM:
        return read_word(e, words, n, TL_OSD_STALL, 1);
    case TL_OSD_MAM:
        e->kind = TL_OSD_MEMORY;
        return true;
    default:
        return false;
    }
}

/*
 * Drop an inferred type after two consecutive events that do not fit it; a type known for certain
 * is kept.
 */
static void misfit(struct tl_osd_module *m, const uint16_t *words, size_t n)
{
    if (m->exact || m->type == TL_OSD_SCM || infer(words, n) == TL_OSD_UNKNOWN)
        return;
    if (++m->misfits < 2)
        return;
    m->misfits = 0;
    if (m->type == infer(words, n)) {
        m->width = 0;
        return;
    }
    m->type = TL_OSD_UNKNOWN;
    m->width = 0;
    m->declared = false;
}

/* ---- memory access ---------------------------------------------------------------------- */

#define LONG_STEP (1u << 26) /* ticks; the first two events of a trace are rarely so far apart */

/* Is this the first word of a transfer: read or write, single or burst, with the five low bits 0,
 * and a number of words or a byte mask? */
static bool begins_transfer(uint16_t word)
{
    const unsigned what = word >> 8;
    return (what == 0x40 || what == 0x80 || what == 0xa0 || what == 0xc0 || what == 0xe0) &&
           (word & 0xff);
}

/*
 * Events of an undeclared module that fit an STM may also be a memory transfer. Decide by the
 * second event: in a trace it is not much later, and it does not begin another transfer.
 */
static void settle_doubt(struct tl_osd_module *m, const uint16_t *words)
{
    const uint32_t time = (uint32_t)words[1] << 16 | words[0];
    m->doubtful = false;
    if (begins_transfer(words[0]) || time - m->time >= LONG_STEP) {
        m->type = TL_OSD_MAM;
        m->width = 0;
    }
}

/* First event of an undeclared module: could it be a transfer? */
static void doubt(struct tl_osd_module *m, struct tl_osd_event *e, const uint16_t *words, size_t n)
{
    if (n < 3 || !begins_transfer(words[0]) || m->type == TL_OSD_CTM)
        return;
    if (m->type == TL_OSD_UNKNOWN) {
        m->type = TL_OSD_MAM;
        return;
    }
    m->doubtful = e->doubtful = true;
    m->time = (uint32_t)words[1] << 16 | words[0];
}

/*
 * Does the packet go from a host to a module? Trace never does. Only the memory access module and
 * the UART receive anything other than register accesses.
 */
static bool is_inbound(struct tl_osd_reader *r, const struct tl_di_packet *packet)
{
    const uint16_t dest = packet->words[0], src = packet->words[1];
    const struct tl_osd_module *const to = tl_osd_find_module(r, dest);
    const struct tl_osd_module *const from = tl_osd_find_module(r, src);
    if (from && (from->declared || from->type != TL_OSD_UNKNOWN))
        return false;
    if (to && to->declared)
        return to->type == TL_OSD_MAM || to->type == TL_OSD_UART;
    return dest / LOCALS == 0 && src / LOCALS != 0;
}

static int take_inbound(struct tl_osd_reader *r, const struct tl_di_packet *packet,
                        struct tl_osd_event *e, struct tl_osd_module **module)
{
    struct tl_osd_module *const m = tl_osd_module_at(r, packet->words[0]);
    if (!m)
        return TL_NOMEM;
    *module = m;
    const size_t n = packet->n - TL_DI_HEADER;
    const uint16_t first = n ? packet->words[TL_DI_HEADER] : 0;
    e->inbound = true;
    if (m->type == TL_OSD_UNKNOWN && n > 1)
        m->type = TL_OSD_MAM;
    else if (m->type == TL_OSD_UNKNOWN && n == 1 && first <= 0xff)
        m->type = TL_OSD_UART;
    e->type = m->type;
    e->value = first;
    if (m->type == TL_OSD_MAM)
        e->kind = TL_OSD_MEMORY;
    else if (m->type == TL_OSD_UART && n == 1 && first <= 0xff)
        e->kind = TL_OSD_CHARACTER;
    else
        e->kind = TL_OSD_MISFIT;
    return TL_OK;
}

/* ---- complete events -------------------------------------------------------------------- */

static void take_whole(struct tl_osd_module *m, struct tl_osd_event *e, const uint16_t *words,
                       size_t n)
{
    if (m->type == TL_OSD_UNKNOWN && !(m->foreign && m->exact)) {
        m->type = (uint8_t)infer(words, n);
        m->width = (uint8_t)(m->type == TL_OSD_CTM   ? ctm_width(n)
                             : m->type == TL_OSD_STM ? stm_width(n)
                                                     : 0);
        doubt(m, e, words, n);
    } else if (m->doubtful && n >= 2) {
        settle_doubt(m, words);
    }
    e->type = m->type;
    if (m->foreign && (m->exact || m->type == TL_OSD_UNKNOWN)) {
        e->kind = TL_OSD_FOREIGN;
        return;
    }
    if (read_as(e, m, words, n)) {
        m->misfits = 0;
        if (e->doubtful)
            e->kind = TL_OSD_MEMORY;
        return;
    }
    e->kind = TL_OSD_MISFIT;
    misfit(m, words, n);
}

/* Append a part of an event to the previous ones. */
static void append(struct tl_osd_module *m, const struct tl_di_packet *packet)
{
    const size_t n = packet->n - TL_DI_HEADER;
    if (m->n_words && m->dest != packet->words[0])
        m->n_words = 0;
    m->dest = packet->words[0];
    if (n > TL_OSD_PAYLOAD_MAX - (size_t)m->n_words) {
        m->too_long = true;
        return;
    }
    memcpy(m->words + m->n_words, packet->words + TL_DI_HEADER, n * sizeof m->words[0]);
    m->n_words += (uint8_t)n;
}

static void take_last(struct tl_osd_module *m, struct tl_osd_event *e,
                      const struct tl_di_packet *packet)
{
    if (!m->n_words && !m->too_long) {
        take_whole(m, e, packet->words + TL_DI_HEADER, packet->n - TL_DI_HEADER);
        return;
    }
    append(m, packet);
    if (m->too_long)
        e->kind = TL_OSD_MISFIT;
    else
        take_whole(m, e, m->words, m->n_words);
    m->n_words = 0;
    m->too_long = false;
}

/* Record events lost before the first event: they belong to a module of unknown type. */
static void keep_early(struct tl_osd_module *m, const struct tl_osd_event *e)
{
    if (m->n_early == 0)
        m->early_at = e->offset;
    if (m->n_early == TL_OSD_EARLY_MAX)
        m->early[TL_OSD_EARLY_MAX - 1] += (uint32_t)e->value;
    else
        m->early[m->n_early++] = (uint32_t)e->value;
}

static void take_event(struct tl_osd_module *m, struct tl_osd_event *e,
                       const struct tl_di_packet *packet)
{
    switch (TL_DI_TYPE_SUB(packet->words[2])) {
    case TL_DI_EVENT_LAST:
        take_last(m, e, packet);
        break;
    case TL_DI_EVENT_CONT:
        append(m, packet);
        e->kind = TL_OSD_PART;
        break;
    case TL_DI_EVENT_OVERFLOW:
        e->kind = packet->n == TL_DI_HEADER + 1 ? TL_OSD_OVERFLOW : TL_OSD_MISFIT;
        e->value = packet->n > TL_DI_HEADER ? packet->words[TL_DI_HEADER] : 0;
        if (e->kind == TL_OSD_OVERFLOW && m->type == TL_OSD_UNKNOWN && !m->foreign)
            keep_early(m, e);
        break;
    default:
        e->kind = TL_OSD_MISFIT;
    }
    e->type = m->type;
}

int tl_osd_read(struct tl_osd_reader *r, const struct tl_di_packet *packet,
                struct tl_osd_event *event, struct tl_osd_module **module)
{
    const uint16_t src = packet->words[1];
    struct tl_osd_module *const m = tl_osd_module_at(r, src);
    if (!m)
        return TL_NOMEM;
    *event = (struct tl_osd_event){.src = src, .type = m->type, .offset = packet->offset};
    struct tl_osd_module *of = m;
    if (!module)
        module = &of;
    *module = m;
    switch (TL_DI_TYPE(packet->words[2])) {
    case TL_DI_TYPE_REG:
        event->kind = TL_OSD_REGISTER;
        return take_register(r, m, packet);
    case TL_DI_TYPE_EVENT:
        if (packet->words[2] == TL_DI_PLAIN_EVENT && is_inbound(r, packet))
            return take_inbound(r, packet, event, module);
        take_event(m, event, packet);
        return TL_OK;
    default:
        event->kind = TL_OSD_RESERVED;
        return TL_OK;
    }
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

void tl_osd_reader_state(struct tl_osd_reader *r, struct tl_state *s)
{
    uint32_t longest = r->max_pkt_len;
    tl_state_u32(s, &longest);
    tl_state_check(s, longest <= UINT16_MAX);
    r->max_pkt_len = longest;
    tl_state_bool(s, &r->any_declared);
}

void tl_osd_module_state(struct tl_osd_module *m, struct tl_state *s)
{
    tl_state_u8(s, &m->type, TL_OSD_CDM);
    tl_state_u8(s, &m->width, 64);
    tl_state_check(s, tl_osd_is_width(m->width));
    tl_state_bool(s, &m->declared);
    tl_state_bool(s, &m->exact);
    tl_state_bool(s, &m->foreign);
    tl_state_u8(s, &m->misfits, 1);
    tl_state_bool(s, &m->doubtful);
    tl_state_u32(s, &m->time);
    tl_state_u8(s, &m->n_words, TL_OSD_PAYLOAD_MAX);
    tl_state_bool(s, &m->too_long);
    tl_state_u16(s, &m->dest);
    tl_state_bytes(s, m->words, m->n_words * sizeof m->words[0]);
    tl_state_u8(s, &m->n_replies, 2);
    tl_state_u16(s, &m->reply);
    tl_state_u8(s, &m->n_asked, sizeof m->asked / sizeof m->asked[0]);
    tl_state_bytes(s, m->asked, m->n_asked * sizeof m->asked[0]);
    tl_state_u8(s, &m->n_early, TL_OSD_EARLY_MAX);
    tl_state_bytes(s, m->early, m->n_early * sizeof m->early[0]);
    tl_state_u64(s, &m->early_at);
}
