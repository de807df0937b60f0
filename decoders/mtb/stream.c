/* SPDX-License-Identifier: MIT */
/*
 * MTB as a stream decoder: a dump of the unit's RAM to records in the order of time. The buffer is
 * a ring, so its beginning may be younger than its end: then it is kept until the end.
 *
 * Source: Arm DDI0486 (CoreSight MTB-M0+), "Trace packet format", "POSITION".
 */
#include "decode/soft.h"
#include "mtb/flow.h"

struct mtb {
    struct tl_soft soft;
    struct tl_mtb_flow flow;
    uint8_t bytes[TL_MTB_RECORD];
    uint8_t n;
    uint64_t start;      /* offset of these bytes */
    struct tl_buf young; /* the beginning of the buffer, which continues its end */
};

static const struct tl_mtb_config *config_of(const struct mtb *m)
{
    return &m->flow.config;
}

/* Without registers nothing tells records from memory that was never written, but what they say. */
static bool is_written(const struct mtb *m, uint32_t source, uint32_t destination)
{
    if (source == destination && (source == 0 || source == UINT32_MAX))
        return false;
    if (config_of(m)->placed)
        return true;
    const struct tl_image *const image = m->flow.image;
    return !image || tl_image_is_empty(image) || tl_mtb_is_exc_return(source) ||
           tl_image_at(image, TL_SPACE_ANY, source & ~1u).n > 0 || destination & 1;
}

/* `at`: where the record is in the dump; `offset`: the same if the dump were in the order of time.
 */
static void on_record(struct mtb *m, const uint8_t *p, uint64_t at, uint64_t offset)
{
    const uint32_t source = tl_le32(p), destination = tl_le32(p + 4);
    const struct tl_mtb_record r = {.source = source & ~1u,
                                    .destination = destination & ~1u,
                                    .atomic = source & 1,
                                    .starts = destination & 1,
                                    .offset = offset};
    char fields[80];
    if (!is_written(m, source, destination)) {
        tl_mtb_flow_cut(&m->flow);
        return;
    }
    snprintf(fields, sizeof fields, "source=0x%08x a=%d destination=0x%08x s=%d", r.source,
             r.atomic, r.destination, r.starts);
    tl_soft_list(&m->soft, at, "MTB", fields);
    tl_mtb_flow_record(&m->flow, &r);
}

/* ---- the order of bytes
 * ------------------------------------------------------------------------------------------ */

static void assemble(struct mtb *m, uint8_t b, uint64_t at, uint64_t offset)
{
    if (m->n > 0 && at != m->start + m->n) { /* bytes are missing */
        m->n = 0;
        tl_mtb_flow_cut(&m->flow);
    }
    if (m->n == 0)
        m->start = at;
    m->bytes[m->n++] = b;
    if (m->n < TL_MTB_RECORD)
        return;
    m->n = 0;
    on_record(m, m->bytes, m->start, offset - (TL_MTB_RECORD - 1));
}

/* Keep byte `in` of the buffer. Records that lack bytes become none. */
static int keep(struct mtb *m, uint8_t b, uint64_t in)
{
    struct tl_buf *const young = &m->young;
    if (young->n < in) {
        const size_t whole = young->n - young->n % TL_MTB_RECORD;
        const size_t next = (size_t)(in + TL_MTB_RECORD - 1) / TL_MTB_RECORD * TL_MTB_RECORD;
        if (tl_buf_reserve(young, next - young->n) < 0)
            return TL_NOMEM;
        memset(young->p + whole, 0, next - whole);
        young->n = next;
    }
    return young->n == in ? tl_buf_add(young, &b, 1) : TL_OK;
}

/* A byte at `in` of the buffer. */
static int take_placed(struct mtb *m, uint8_t b, uint64_t in, uint64_t at)
{
    const struct tl_mtb_config *const c = config_of(m);
    const uint64_t before = at - in; /* bytes of the dump in front of the buffer */
    if (in >= c->size)
        return TL_OK;
    if (in < c->head && c->wrapped)
        return keep(m, b, in);
    if (in >= c->head && c->wrapped)
        assemble(m, b, at, before + in - c->head);
    else if (in < c->head)
        assemble(m, b, at, at);
    return TL_OK;
}

static int take(struct mtb *m, uint8_t b, uint64_t at)
{
    const struct tl_mtb_config *const c = config_of(m);
    if (!c->placed) {
        if (m->n > 0 || at % TL_MTB_RECORD == 0)
            assemble(m, b, at, at);
        return TL_OK;
    }
    const int64_t in = (int64_t)at - c->start;
    return in < 0 ? TL_OK : take_placed(m, b, (uint64_t)in, at);
}

static int verdict(const struct mtb *m, int rc)
{
    return rc < 0                  ? rc
           : m->soft.rc < 0        ? m->soft.rc
           : m->soft.out.rc < 0    ? m->soft.out.rc
           : m->flow.walker.failed ? TL_NOMEM
                                   : TL_OK;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct mtb *const m = (struct mtb *)decoder;
    int rc = TL_OK;
    for (size_t i = 0; i < run->n && rc == TL_OK; i++)
        rc = verdict(m, take(m, run->p[i], tl_run_offset(run, i)));
    tl_walker_trim(&m->flow.walker);
    return verdict(m, rc);
}

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_soft_flush(&((struct mtb *)decoder)->soft);
}

/* What was kept is younger than all before. */
static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct mtb *const m = (struct mtb *)decoder;
    const struct tl_mtb_config *const c = config_of(m);
    const uint64_t first = c->start > 0 ? (uint64_t)c->start : 0, older = c->size - c->head;
    uint64_t at = 0;
    for (; at + TL_MTB_RECORD <= m->young.n && verdict(m, TL_OK) == TL_OK; at += TL_MTB_RECORD)
        on_record(m, m->young.p + at, first + at, first + older + at);
    tl_mtb_flow_finish(&m->flow, at ? first + older + at : m->start);
    if (m->n > 0)
        tl_soft_cut(&m->soft, cut, m->start, m->n);
    else
        tl_soft_cut(&m->soft, cut, first + at, m->young.n - at);
    const int rc = flush(decoder);
    return verdict(m, rc);
}

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

static void destroy(struct tl_stream_decoder *decoder)
{
    struct mtb *const m = (struct mtb *)decoder;
    if (!m)
        return;
    tl_mtb_flow_fini(&m->flow);
    tl_buf_fini(&m->young);
    free(m);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_mtb_config config;
    tl_mtb_config_init(&config, source);
    const int rc = tl_mtb_config_check(&config, fail);
    if (rc < 0)
        return rc;
    struct mtb *const m = tl_soft_new(sizeof *m, &tl_mtb_ops, source, sink);
    if (!m)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    m->soft.out.paths = sink->paths;
    if (tl_mtb_flow_init(&m->flow, &config, image, &m->soft.out) < 0) {
        destroy(&m->soft.base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    }
    tl_walker_code(&m->flow.walker, sink->code);
    *out = &m->soft.base;
    return TL_OK;
}

/* Members that do not matter are saved as zero. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC};
    struct mtb *const m = (struct mtb *)decoder;
    memset(m->bytes + m->n, 0, sizeof m->bytes - m->n);
    tl_soft_state(&m->soft, s, reasons, 1);
    tl_item_batch_state(&m->soft.out, s);
    tl_state_u8(s, &m->n, TL_MTB_RECORD - 1);
    tl_state_bytes(s, m->bytes, sizeof m->bytes);
    tl_state_u64(s, &m->start);
    tl_state_buf(s, &m->young, TL_MTB_BUF_MAX);
    tl_mtb_flow_state(&m->flow, s);
}

static size_t bytes(struct tl_stream_decoder *decoder)
{
    return ((struct mtb *)decoder)->young.cap;
}

const struct tl_stream_ops tl_mtb_ops = {
    .name = "mtb",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .bytes = bytes,
};
