/* SPDX-License-Identifier: MIT */
/*
 * Turns the bytes of one source to messages, and these to flow, for N-Trace and SiFive's dialect.
 * Both differ in their parameters only, which the source's configuration gives.
 */
#include "riscv/nexus_flow.h"
#include "riscv/source.h"

#include <stdlib.h>

static const char BAD_MESSAGE[] = "bad message";
static const char LONG_MESSAGE[] = "message without an end";
static const char MISFIT[] = TL_LOSS_MISFIT;
static const char *const reasons[] = {TL_LOSS_NOT_SYNC, BAD_MESSAGE, LONG_MESSAGE, TL_LOSS_CUT_OFF,
                                      MISFIT};

enum where {
    BETWEEN, /* behind the end of a message */
    INSIDE,
    SKIPPING /* to the next end of a message */
};

struct stream {
    struct tl_nexus_flow flow; /* must be first */
    uint8_t where;             /* enum where */
    uint8_t n;                 /* bytes of the message so far */
    bool zeros;                /* the message consists of zeros so far */
    bool begun;                /* a message with SYNC was there */
    uint8_t bytes[TL_NEXUS_BYTES];
    uint64_t start;                  /* offset of the message */
    struct tl_nexus_message message; /* the last one that was read */
};

/* ---- messages ------------------------------------------------------------------------------ */

/* The message so far is none. A capture may begin in the middle of one. */
static void reject(struct stream *t, const char *why)
{
    tl_nexus_flow_skip(&t->flow, t->begun ? why : TL_LOSS_NOT_SYNC, t->start, t->n);
    tl_nexus_flow_lose(&t->flow);
    t->where = SKIPPING;
    t->n = 0;
}

/* A message of `n` bytes from offset `start` on; `room` may be read. */
static inline __attribute__((always_inline)) void on_message(struct stream *t, const uint8_t *p,
                                                             size_t room)
{
    struct tl_nexus_message *const m = &t->message;
    struct tl_soft *const soft = &t->flow.soft;
    const struct tl_bytes bytes = {p, t->n};
    if (tl_nexus_read(m, bytes, room, t->flow.walk.config.src_bits) < 0) {
        reject(t, BAD_MESSAGE);
        t->where = BETWEEN;
        return;
    }
    m->offset = t->start;
    if (tl_nexus_is_sync(m->tcode)) {
        tl_nexus_flow_report(&t->flow);
        t->begun = true;
    }
    if (soft->sink.packet) {
        char fields[128];
        tl_nexus_text(m, fields, sizeof fields);
        tl_soft_list(soft, t->start, tl_nexus_name(m->tcode), fields);
    }
    tl_nexus_flow_message(&t->flow, m);
    t->n = 0;
}

/* The message is longer than those that are known. Of codes that are not, nothing but the end
 * matters. */
static void limit_message(struct stream *t)
{
    if (t->zeros || tl_nexus_is_defined(t->bytes[0] >> 2))
        reject(t, LONG_MESSAGE);
    else
        t->n--;
}

static void take(struct stream *t, uint8_t byte, uint64_t offset)
{
    const unsigned mseo = TL_NEXUS_MSEO(byte);
    if (t->where == SKIPPING) {
        t->flow.lost++;
        t->where = mseo == TL_NEXUS_MESSAGE_END ? BETWEEN : SKIPPING;
        return;
    }
    if (t->where == BETWEEN && mseo == TL_NEXUS_MESSAGE_END)
        return; /* idle */
    if (t->where == BETWEEN) {
        t->start = offset;
        t->where = INSIDE;
        t->zeros = true;
    }
    t->zeros &= byte == 0;
    t->bytes[t->n++] = byte;
    if (mseo == TL_NEXUS_RESERVED || (t->n == 1 && mseo != TL_NEXUS_GOES_ON)) {
        reject(t, BAD_MESSAGE);
    } else if (mseo == TL_NEXUS_MESSAGE_END) {
        t->where = BETWEEN;
        on_message(t, t->bytes, sizeof t->bytes);
    } else if (t->n == TL_NEXUS_BYTES) {
        limit_message(t);
    }
}

/* The size of the message that begins at `p`; 0: there is none, or it is not complete. */
static inline __attribute__((always_inline)) size_t whole_message(const uint8_t *p, size_t n)
{
    const size_t most = n < TL_NEXUS_BYTES ? n : TL_NEXUS_BYTES;
    if (TL_NEXUS_MSEO(p[0]) != TL_NEXUS_GOES_ON)
        return 0;
    if (n >= 8) { /* nearly all end within 8 bytes; bit 1 of MSEO is set at the end */
        const uint64_t ends = tl_le64(p) & UINT64_C(0x0202020202020202);
        const unsigned i = ends ? (unsigned)__builtin_ctzll(ends) / 8 : 0;
        if (ends)
            return TL_NEXUS_MSEO(p[i]) == TL_NEXUS_MESSAGE_END ? i + 1 : 0;
    }
    for (size_t i = 1; i < most; i++) {
        const unsigned mseo = TL_NEXUS_MSEO(p[i]);
        if (mseo >= TL_NEXUS_RESERVED)
            return mseo == TL_NEXUS_MESSAGE_END ? i + 1 : 0;
    }
    return 0;
}

/* ---- tl_stream_ops --------------------------------------------------------------------------- */

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct stream *const t = (struct stream *)decoder;
    for (size_t i = 0; i < run->n && t->flow.soft.rc >= 0;) {
        const uint8_t *const p = run->p + i;
        const size_t size = t->where == BETWEEN ? whole_message(p, run->n - i) : 0;
        if (size > 0) {
            t->start = tl_run_offset(run, i);
            t->n = (uint8_t)size;
            on_message(t, p, run->n - i);
        } else {
            take(t, *p, tl_run_offset(run, i));
        }
        i += size > 0 ? size : 1;
    }
    tl_walker_trim(&t->flow.walk.walker);
    return t->flow.walk.walker.failed ? TL_NOMEM : t->flow.soft.rc;
}

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_soft_flush(&((struct stream *)decoder)->flow.soft);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct stream *const t = (struct stream *)decoder;
    /* Zeros at the end are memory that the trace unit did not write. */
    if (t->where == INSIDE && !t->zeros)
        reject(t, cut);
    tl_nexus_flow_report(&t->flow);
    return flush(decoder);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct stream *const t = (struct stream *)decoder;
    if (t)
        tl_nexus_flow_fini(&t->flow);
    free(t);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct stream *const t = tl_soft_new(sizeof *t, &tl_nexus_stream_ops, source, sink);
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    if (strncmp(source->name, "cs.", 3) != 0)
        snprintf(t->flow.soft.id, sizeof t->flow.soft.id, "%u", source->id);
    const int rc = tl_nexus_flow_init(&t->flow, source, image, sink, fail);
    if (rc < 0) {
        free(t);
        return rc;
    }
    *out = &t->flow.soft.base;
    return TL_OK;
}

/* Members that do not matter are saved as zero. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    struct stream *const t = (struct stream *)decoder;
    if (t->where != INSIDE)
        t->start = t->zeros = 0;
    if (t->flow.lost == 0) {
        t->flow.soft.lost_at = 0;
        t->flow.soft.lost_why = TL_LOSS_NOT_SYNC;
    }
    tl_soft_state(&t->flow.soft, s, reasons, sizeof reasons / sizeof *reasons);
    tl_state_u8(s, &t->where, SKIPPING);
    tl_state_u8(s, &t->n, TL_NEXUS_BYTES - 1);
    tl_state_check(s, t->where == INSIDE || t->n == 0);
    tl_state_bool(s, &t->zeros);
    tl_state_bool(s, &t->begun);
    tl_state_bytes(s, t->bytes, t->n);
    tl_state_u64(s, &t->start);
    tl_nexus_flow_state(&t->flow, s);
}

/* ---- support for several threads ------------------------------------------------------------- */

static void reset(struct tl_stream_decoder *decoder)
{
    struct stream *const t = (struct stream *)decoder;
    tl_nexus_flow_reset(&t->flow);
    t->where = BETWEEN;
    t->begun = false;
    t->n = 0;
}

static struct tl_walker *walker(struct tl_stream_decoder *decoder)
{
    return &((struct stream *)decoder)->flow.walk.walker;
}

/* The first message with SYNC. It is not found if it begins at p[0]: what is in front is not known.
 */
static size_t find_sync(const uint8_t *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (TL_NEXUS_MSEO(p[i]) == TL_NEXUS_GOES_ON &&
            TL_NEXUS_MSEO(p[i - 1]) == TL_NEXUS_MESSAGE_END && tl_nexus_is_sync(p[i] >> 2))
            return i;
    return n;
}

/*
 * Position after the message with SYNC and those that go with it: Ownership, which follows, and if
 * the mode is not configured, the first one that tells it.
 */
static size_t find_rest(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n)
{
    const struct tl_nexus_config *const config =
        &((const struct stream *)decoder)->flow.walk.config;
    bool has_mode = config->mode != 0;
    struct tl_nexus_message m = {0};
    for (size_t at = 0; at < n;) {
        const size_t size = whole_message(p + at, n - at);
        const bool idle = size == 0 && TL_NEXUS_MSEO(p[at]) == TL_NEXUS_MESSAGE_END;
        if (!idle && (size == 0 || tl_nexus_read(&m, (struct tl_bytes){p + at, size}, n - at,
                                                 config->src_bits) < 0))
            break;
        if (!idle && at > 0 && has_mode && m.tcode != TL_NEXUS_OWNERSHIP)
            return at;
        has_mode |= !idle && (m.tcode == TL_NEXUS_DIRECT || m.tcode == TL_NEXUS_DIRECT_SYNC ||
                              tl_nexus_has(&m, TL_NEXUS_HISTORY) ||
                              (m.tcode == TL_NEXUS_RESOURCE_FULL && m.field[TL_NEXUS_RCODE] != 0));
        at += idle ? 1 : size;
    }
    return n;
}

static const struct tl_split_ops split = {
    .find_sync = find_sync, .find_rest = find_rest, .reset = reset, .walker = walker};

const struct tl_stream_ops tl_nexus_stream_ops = {
    .name = "nexus",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .split = &split,
};
