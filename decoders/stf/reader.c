/* SPDX-License-Identifier: MIT */
/*
 * Reads records from pushed or pulled pieces. A record that spans pieces is assembled in `carry`;
 * all others are decoded in place.
 */
#include "stf/reader.h"

#include "stf/stand.h"

#include <stdlib.h>

struct tl_stf_reader {
    struct tl_stf_reader_front front; /* front.p: borrowed bytes, not used yet */
    const uint8_t *end;               /* end of those bytes */
    struct tl_stf_source source;
    struct tl_buf carry; /* the beginning of a record that spans pieces */
    struct tl_stf_layout layout;
    struct tl_stf_header header;
    bool finished; /* end of input: nothing follows `end` */
    int result;    /* < 0: final */
    struct tl_fail fail;
};

int tl_stf_reader_open(struct tl_stf_reader **out, const struct tl_stf_source *source)
{
    struct tl_stf_reader *const reader = calloc(1, sizeof *reader);
    if (!reader)
        return TL_NOMEM;
    reader->source = *source;
    *out = reader;
    return TL_OK;
}

int tl_stf_reader_new(struct tl_stf_reader **out)
{
    const struct tl_stf_source none = {0};
    return tl_stf_reader_open(out, &none);
}

void tl_stf_reader_free(struct tl_stf_reader *reader)
{
    if (!reader)
        return;
    tl_buf_fini(&reader->carry);
    free(reader);
}

/* Stream offset of the next record; `front.offset` is relative to the address. */
static uint64_t offset_of(const struct tl_stf_reader *reader)
{
    return reader->front.offset + (uint64_t)(uintptr_t)reader->front.p - reader->carry.n;
}

static struct tl_bytes rest(const struct tl_stf_reader *reader)
{
    return (struct tl_bytes){reader->front.p, (size_t)(reader->end - reader->front.p)};
}

/* Continue with these bytes. */
static void set_rest(struct tl_stf_reader *reader, struct tl_bytes bytes)
{
    struct tl_stf_reader_front *const front = &reader->front;
    front->offset += (uint64_t)(uintptr_t)front->p - (uint64_t)(uintptr_t)bytes.p;
    front->p = front->hot = bytes.p;
    reader->end = bytes.p + bytes.n;
}

/* Enable inline decoding of usual records as far as they are certainly complete. */
static void set_hot(struct tl_stf_reader *reader)
{
    const bool hot = reader->header.complete && reader->carry.n == 0 && reader->result == 0;
    const bool room = reader->end - reader->front.p >= TL_STF_HOT_ROOM;
    reader->front.hot = hot && room ? reader->end - TL_STF_HOT_ROOM + 1 : reader->front.p;
}

void tl_stf_reader_push(struct tl_stf_reader *reader, struct tl_bytes bytes)
{
    set_rest(reader, bytes);
}

void tl_stf_reader_finish(struct tl_stf_reader *reader)
{
    reader->finished = true;
}

const struct tl_stf_header *tl_stf_reader_header(const struct tl_stf_reader *reader)
{
    return &reader->header;
}

/* Store a failure, which is final. */
static int stop(struct tl_stf_reader *reader, int code, const char *what)
{
    reader->result = code;
    tl_fail_at(&reader->fail, (enum tl_err)code, offset_of(reader), "%s", what);
    return code;
}

static int stop_bad(struct tl_stf_reader *reader, int code, uint8_t descriptor)
{
    return reader->result = tl_stf_fail_record(&reader->fail, code, offset_of(reader),
                                               &reader->header, descriptor);
}

/* Get the next piece. Returns TL_OK, TL_AGAIN, TL_EOF, or the source's error. */
static int more(struct tl_stf_reader *reader)
{
    if (reader->finished)
        return TL_EOF;
    if (!reader->source.next)
        return TL_AGAIN;
    struct tl_bytes in = rest(reader);
    const int result = reader->source.next(reader->source.context, &in, &reader->fail);
    set_rest(reader, in);
    if (result == TL_EOF)
        reader->finished = true;
    else if (result < 0)
        reader->result = result;
    return result;
}

/* End of input, at a record boundary or not. */
static int at_end(struct tl_stf_reader *reader, struct tl_bytes left)
{
    return reader->result =
               tl_stf_fail_end(&reader->fail, offset_of(reader), &reader->header, left);
}

/* Process a record at `offset` that the reader has already passed. */
static int accept(struct tl_stf_reader *reader, struct tl_stf_record *record, uint64_t offset)
{
    record->offset = offset;
    if (!reader->header.complete && tl_stf_header_add(&reader->header, record) < 0) {
        reader->header.records = 0;
        reader->front.offset -= record->size; /* report the error at its beginning */
        return stop_bad(reader, TL_BAD, record->type);
    }
    tl_stf_layout_apply(&reader->layout, record);
    if (record->type == TL_STF_RESERVE_END)
        reader->result = TL_EOF; /* after this record */
    return TL_OK;
}

/*
 * Assemble a record that spans pieces in `carry`. It never contains more than one record, since
 * only the missing bytes are added.
 */
static int next_carried(struct tl_stf_reader *reader, struct tl_stf_record *record)
{
    for (;;) {
        const struct tl_bytes have = {reader->carry.p, reader->carry.n};
        const int size = tl_stf_record_size(&reader->layout, have);
        if (size < 0 && size != TL_AGAIN)
            return stop_bad(reader, size, have.p[0]);
        if (size > 0 && (size_t)size <= have.n) {
            const uint64_t offset = offset_of(reader);
            if (tl_stf_record_decode(&reader->layout, have, record) < 0)
                return stop_bad(reader, TL_BAD, have.p[0]);
            reader->carry.n = 0;
            return accept(reader, record, offset);
        }
        const struct tl_bytes in = rest(reader);
        if (in.n == 0) {
            const int result = more(reader);
            if (result == TL_EOF)
                return at_end(reader, have);
            if (result < 0)
                return result;
            continue;
        }
        size_t n = size > 0 ? (size_t)size - have.n : 1;
        if (n > in.n)
            n = in.n;
        if (tl_buf_add(&reader->carry, in.p, n) < 0)
            return stop(reader, TL_NOMEM, "out of memory");
        reader->front.p += n;
    }
}

/* Decode a record that is complete in the rest: TL_OK. TL_AGAIN: it is truncated. */
static int next_whole(struct tl_stf_reader *reader, struct tl_stf_record *record)
{
    const uint64_t offset = offset_of(reader);
    const int size = tl_stf_record_decode(&reader->layout, rest(reader), record);
    if (size > 0) {
        reader->front.p += size;
        return accept(reader, record, offset);
    }
    return size == TL_AGAIN ? TL_AGAIN : stop_bad(reader, size, reader->front.p[0]);
}

static int next(struct tl_stf_reader *reader, struct tl_stf_record *record)
{
    if (reader->carry.n)
        return next_carried(reader, record);
    while (rest(reader).n == 0) {
        const int result = more(reader);
        if (result == TL_EOF)
            return at_end(reader, (struct tl_bytes){0});
        if (result < 0)
            return result;
    }
    const int result = next_whole(reader, record);
    if (result != TL_AGAIN)
        return result;
    const struct tl_bytes in = rest(reader);
    if (tl_buf_add(&reader->carry, in.p, in.n) < 0)
        return stop(reader, TL_NOMEM, "out of memory");
    reader->front.p = reader->end;
    return next_carried(reader, record);
}

int tl_stf_reader_next_any(struct tl_stf_reader *reader, struct tl_stf_record *record,
                           struct tl_fail *fail)
{
    reader->front.hot = reader->front.p;
    const int result = reader->result < 0 ? reader->result : next(reader, record);
    set_hot(reader);
    if (result < 0 && fail)
        *fail = reader->fail;
    return result;
}

void tl_stf_reader_state(struct tl_stf_reader *reader, struct tl_state *s)
{
    bool final = reader->result < 0;
    uint64_t offset = offset_of(reader);
    if (!tl_state_loads(s) && !reader->header.complete)
        tl_state_fail(s, TL_AGAIN);
    tl_stf_header_state(&reader->header, s);
    tl_state_check(s, reader->header.complete);
    tl_stf_layout_state(&reader->layout, s);
    tl_state_buf(s, &reader->carry, TL_STF_RECORD_MAX);
    tl_state_u64(s, &offset);
    tl_state_bool(s, &final);
    if (tl_state_loads(s))
        reader->front.offset = offset + reader->carry.n - (uint64_t)(uintptr_t)reader->front.p;
    if (final)
        reader->result = TL_EOF;
}
