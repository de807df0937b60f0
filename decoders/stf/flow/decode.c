/* SPDX-License-Identifier: MIT */
/*
 * STF as a capture format: a simulator or a rig pushes .stf or .zstf directly, wrapped or not.
 * There is one stream, "stf.0"; its offsets are those of the plain STF bytes. It is announced once
 * the header has shown the kind of trace.
 */
#include "base/cancel.h"
#include "decode/ops.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow_map.h"
#include "stf/stand.h"

#include <stdlib.h>

struct stf_decode {
    struct tl_decode base;
    struct tl_decode_sink sink;
    struct tl_decode_stream stream;
    struct tl_stf_unpack *unpack;
    struct tl_stf_reader *reader;
    struct tl_stf_flow_reader *flow;
    struct tl_buf plain;
    struct tl_buf line;
    struct tl_stf_pc pc; /* for the listing */
    uint64_t index, insn;
    uint64_t pushed;
    bool announced;
    bool over; /* the rest is unreadable or after the end, and ignored */
};

static int announce(struct stf_decode *d)
{
    if (d->announced)
        return TL_OK;
    d->announced = true;
    const struct tl_stf_header *const header = tl_stf_reader_header(d->reader);
    d->stream.isa = tl_stf_unmap_isa(header->isa, header->iem);
    if (header->transactions)
        d->stream.protocol = TL_PROTO_STF_TRANSACTIONS;
    return d->sink.stream ? d->sink.stream(d->sink.context, &d->stream) : TL_OK;
}

static int deliver(void *context, const struct tl_item *items, size_t n)
{
    struct stf_decode *const d = context;
    const int rc = d->sink.items ? d->sink.items(d->sink.context, &d->stream, items, n) : TL_OK;
    return rc < 0 ? rc : tl_give_way();
}

static void destroy(struct tl_decode *decode)
{
    struct stf_decode *const d = (struct stf_decode *)decode;
    if (!d)
        return;
    tl_stf_unpack_free(d->unpack);
    tl_stf_reader_free(d->reader);
    tl_stf_flow_reader_free(d->flow);
    tl_buf_fini(&d->plain);
    tl_buf_fini(&d->line);
    free(d);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct stf_decode *const d = calloc(1, sizeof *d);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    d->base.ops = &tl_stf_ops;
    d->sink = *sink;
    d->stream = (struct tl_decode_stream){
        .name = "stf.0", .protocol = TL_PROTO_STF, .source = tl_setup_source(setup, 0)};
    int result = tl_stf_unpack_new(&d->unpack);
    if (result == TL_OK)
        result = tl_stf_reader_new(&d->reader);
    if (result == TL_OK)
        result = tl_stf_flow_reader_new(&d->flow, deliver, d);
    if (result == TL_OK && sink->packet) /* packets come before the header is complete */
        result = announce(d);
    if (result < 0) {
        destroy(&d->base);
        return result == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "out of memory") : result;
    }
    *out = &d->base;
    return TL_OK;
}

/* Report bad input and ignore the rest, since STF cannot be resumed in the middle. */
static int lose(struct stf_decode *d, const struct tl_fail *fail)
{
    d->over = true;
    const int result = announce(d);
    if (result < 0 || !d->sink.loss)
        return result;
    const struct tl_decode_loss loss = {.stream = &d->stream,
                                        .reason = fail->text,
                                        .fault = true,
                                        .offset = fail->offset == TL_NO_OFFSET ? d->pushed
                                                                               : fail->offset};
    return d->sink.loss(d->sink.context, &loss);
}

/* Report bytes that do not belong to the container and were skipped. */
static int report_strange(struct stf_decode *d)
{
    struct tl_decode_loss loss = {.reason = "bytes between chunks that belong to none",
                                  .fault = true};
    loss.bytes = tl_stf_unpack_strange(d->unpack, &loss.offset);
    return loss.bytes && d->sink.loss ? d->sink.loss(d->sink.context, &loss) : TL_OK;
}

static int list(struct stf_decode *d, const struct tl_stf_record *record)
{
    const uint64_t pc = tl_stf_pc_add(&d->pc, record);
    d->insn += record->type == TL_STF_INST_32 || record->type == TL_STF_INST_16;
    tl_buf_reset(&d->line);
    const int result = tl_stf_listing_line(d->index++, record, pc, d->insn, &d->line);
    if (result < 0)
        return result;
    d->line.p[d->line.n - 1] = 0; /* replaces the line end */
    return d->sink.packet(d->sink.context, &d->stream, (const char *)d->line.p);
}

/* Read all available records. */
static int read_records(struct stf_decode *d)
{
    struct tl_stf_record record;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int result = TL_OK;
    while (result == TL_OK) {
        result = tl_stf_reader_next(d->reader, &record, &fail);
        if (result == TL_AGAIN)
            return TL_OK;
        if (result == TL_EOF) {
            d->over = true;
            return TL_OK;
        }
        if (result == TL_BAD || result == TL_LIMIT)
            return lose(d, &fail);
        if (result == TL_OK && tl_stf_reader_header(d->reader)->complete)
            result = announce(d);
        if (result == TL_OK && d->sink.packet)
            result = list(d, &record);
        if (result == TL_OK)
            result = tl_stf_flow_reader_add(d->flow, &record);
    }
    return result;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct stf_decode *const d = (struct stf_decode *)decode;
    struct tl_bytes in = {p, n};
    d->pushed += n;
    int result = TL_OK;
    for (bool more = true; more && result == TL_OK && !d->over;) {
        struct tl_fail fail = {.offset = TL_NO_OFFSET};
        const size_t before = in.n;
        tl_buf_reset(&d->plain);
        result = tl_stf_unpack_push(d->unpack, &in, &d->plain, &fail);
        if (result == TL_BAD)
            return lose(d, &fail);
        more = d->plain.n || in.n < before;
        if (result == TL_OK) /* records need not give any items */
            result = tl_give_way();
        if (result == TL_OK && d->plain.n) {
            tl_stf_reader_push(d->reader, (struct tl_bytes){d->plain.p, d->plain.n});
            result = read_records(d);
        }
    }
    return result < 0 ? result : tl_stf_flow_reader_deliver(d->flow);
}

static int finish(struct tl_decode *decode)
{
    struct stf_decode *const d = (struct stf_decode *)decode;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int result = TL_OK;
    if (!d->over) {
        tl_stf_reader_finish(d->reader);
        result = tl_stf_unpack_finish(d->unpack, &fail);
        result = result < 0 ? lose(d, &fail) : read_records(d);
    }
    if (result == TL_OK)
        result = report_strange(d);
    if (result == TL_OK)
        result = announce(d);
    const int end = tl_stf_flow_reader_finish(d->flow);
    return result < 0 ? result : end;
}

static int reread(const void *context, uint64_t offset, uint64_t n, struct tl_buf *out)
{
    return tl_decode_reread(context, offset, n, out);
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct stf_decode *const d = (struct stf_decode *)decode;
    bool announced = d->announced;
    tl_state_check(s, d->pushed == 0);
    if (d->sink.packet) /* a packet listing cannot be continued */
        tl_state_fail(s, TL_UNSUPPORTED);
    tl_state_u64(s, &d->pushed);
    tl_state_bool(s, &announced);
    tl_state_bool(s, &d->over);
    tl_stf_unpack_state(d->unpack, reread, decode, s);
    tl_stf_reader_state(d->reader, s);
    tl_stf_flow_reader_state(d->flow, s);
    if (tl_state_loads(s) && s->rc >= 0 && announced)
        tl_state_fail(s, announce(d));
}

static size_t bytes(struct tl_decode *decode)
{
    const struct stf_decode *const d = (struct stf_decode *)decode;
    return TL_STREAM_BYTES + d->plain.cap + tl_stf_unpack_bytes(d->unpack);
}

const struct tl_decode_ops tl_stf_ops = {.name = "stf",
                                         .bytes = bytes,
                                         .create = create,
                                         .push = push,
                                         .finish = finish,
                                         .destroy = destroy,
                                         .state = state};
