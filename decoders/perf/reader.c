/* SPDX-License-Identifier: MIT */
/*
 * A state machine that parses records in place wherever they are complete, and collects only those
 * cut off by the end of a push. What follows a bad record is searched instead of given up, since a
 * single damaged page would otherwise cost the rest of the file.
 */
#include "perf/reader.h"

#include "base/cancel.h"
#include "decode/ops.h"
#include "perf/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    FILE_HEADER = 104,
    PIPE_HEADER = 16,
    SECTION = 16, /* bytes of a section's {offset, size} */
    UNPACK = 128 << 10
};

enum state {
    IN_HEADER,  /* the first 16 bytes, or a file's header */
    BEFORE,     /* before the records: attributes */
    IN_RECORDS, /* records; `gathered` is the beginning of one */
    IN_AREA,    /* the bytes after an AUXTRACE record */
    AFTER,      /* after the records: features */
    SEARCHING,  /* after a bad record; `gathered` begins where the next one may be */
    OVER        /* the rest cannot be parsed */
};

/* Why bytes cannot be parsed. */
enum why {
    OLD_FILE,
    NO_PERF_DATA,
    BAD_HEADER,
    BAD_DATA_OFFSET,
    SHORT_AREA, /* from here to BAD_RECORD: records may be found after it */
    LONG_AREA,
    LONG_TRACING_DATA,
    BAD_RECORD,
    LARGE_FEATURES,
    WHYS
};

static const char *const why_texts[WHYS] = {
    [OLD_FILE] = "perf.data of before Linux 2.6.39 is not supported; record it anew",
    [NO_PERF_DATA] = "no perf.data: it does not begin with PERFILE2",
    [BAD_HEADER] = "the perf.data header has an unknown size",
    [BAD_DATA_OFFSET] = "the perf.data header's data offset makes no sense",
    [SHORT_AREA] = "an AUXTRACE record is too short",
    [LONG_AREA] = "an AUXTRACE record says more bytes than there are",
    [LONG_TRACING_DATA] = "a TRACING_DATA record says more bytes than there are",
    [BAD_RECORD] = "a record's size makes no sense",
    [LARGE_FEATURES] = "the features of perf.data are too large",
};

/* A range of compressed bytes in the file. */
struct packed {
    uint64_t offset, n;
};

struct tl_perf_reader {
    struct tl_perf_reader_sink sink;
    enum state state;
    bool swap, piped;
    uint64_t position;      /* file offset after all bytes processed */
    struct tl_buf gathered; /* bytes collected before `position` */
    uint64_t data_at, data_end;
    struct tl_perf_attrs attrs;
    /* From a file's header. */
    uint64_t attr_size, attrs_at, attrs_size;
    uint8_t features[TL_PERF_FEATURES / 8];
    /* The current area. */
    struct tl_perf_area area;
    uint64_t area_at;
    bool passes; /* not an area, but bytes after a record to be skipped */
    /* Compressed records. */
    ZSTD_DStream *zstd;
    struct tl_buf unpacked;
    struct packed *packed; /* input of `zstd` since its frame began */
    size_t n_packed, cap_packed;
    uint64_t lost_at; /* SEARCHING, OVER: offset of the first lost byte */
    uint8_t lost_why; /* enum why */
};

bool tl_perf_is(const uint8_t *p, size_t n)
{
    return n >= 8 && (tl_le64(p) == TL_PERF_MAGIC || tl_perf_u64(true, p) == TL_PERF_MAGIC);
}

bool tl_perf_reader_swaps(const struct tl_perf_reader *r)
{
    return r->swap;
}

const struct tl_perf_attrs *tl_perf_reader_attrs(const struct tl_perf_reader *r)
{
    return &r->attrs;
}

int tl_perf_reader_new(struct tl_perf_reader **out, const struct tl_perf_reader_sink *sink)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return TL_NOMEM;
    (*out)->sink = *sink;
    return TL_OK;
}

void tl_perf_reader_free(struct tl_perf_reader *r)
{
    if (!r)
        return;
    tl_buf_fini(&r->gathered);
    tl_buf_fini(&r->unpacked);
    tl_perf_attrs_fini(&r->attrs);
    ZSTD_freeDStream(r->zstd);
    free(r->packed);
    free(r);
}

/* Stop parsing at `offset`. */
static void give_up(struct tl_perf_reader *r, enum why why, uint64_t offset)
{
    if (r->state != OVER) {
        r->lost_at = offset;
        r->lost_why = (uint8_t)why;
    }
    r->state = OVER;
}

/* Search for the next record after the bad one at `offset`. */
static void search_from(struct tl_perf_reader *r, enum why why, uint64_t offset)
{
    give_up(r, why, offset);
    r->state = SEARCHING;
}

static int report_loss(struct tl_perf_reader *r, const char *why, uint64_t offset, uint64_t bytes)
{
    return r->sink.loss(r->sink.context, why, offset, bytes);
}

/*
 * ---- before the records -----------------------------------------------------------------------
 */

static void read_header(struct tl_perf_reader *r)
{
    const uint8_t *const p = r->gathered.p;
    if (!tl_perf_is(p, 8)) {
        give_up(r, memcmp(p, "PERFFILE", 8) == 0 ? OLD_FILE : NO_PERF_DATA, 0);
        return;
    }
    r->swap = tl_le64(p) != TL_PERF_MAGIC;
    const uint64_t size = tl_perf_u64(r->swap, p + 8);
    if (size == PIPE_HEADER) {
        r->piped = true;
        r->data_end = UINT64_MAX;
        tl_buf_drop(&r->gathered, PIPE_HEADER);
        r->state = IN_RECORDS;
        return;
    }
    if (size != FILE_HEADER) {
        give_up(r, BAD_HEADER, 8);
        return;
    }
    if (r->gathered.n < FILE_HEADER)
        return;
    r->attr_size = tl_perf_u64(r->swap, p + 16);
    r->attrs_at = tl_perf_u64(r->swap, p + 24);
    r->attrs_size = tl_perf_u64(r->swap, p + 32);
    r->data_at = tl_perf_u64(r->swap, p + 40);
    const uint64_t data_size = tl_perf_u64(r->swap, p + 48);
    /* A bitmap consists of longs, whose bytes are swapped in the other byte order. */
    for (unsigned i = 0; i < sizeof r->features; i++)
        r->features[r->swap ? i ^ 7 : i] = p[72 + i];
    if (r->data_at < FILE_HEADER) {
        give_up(r, BAD_DATA_OFFSET, 40);
        return;
    }
    /* A truncated recording has size 0, and extends to the end. */
    r->data_end =
        data_size == 0 || data_size > UINT64_MAX - r->data_at ? UINT64_MAX : r->data_at + data_size;
    r->state = BEFORE;
}

/* Is [at, at + size) within the first `n` bytes? */
static bool within(uint64_t at, uint64_t size, uint64_t n)
{
    return at <= n && size <= n - at;
}

static int read_attrs(struct tl_perf_reader *r)
{
    const struct tl_bytes front = {r->gathered.p, r->gathered.n};
    const uint64_t min = TL_PERF_ATTR_MIN + SECTION;
    if (!within(r->attrs_at, r->attrs_size, front.n) || r->attr_size < min)
        return report_loss(r, "the attributes of perf.data are not where its header says", 16, 0);
    for (uint64_t at = 0; r->attrs_size - at >= r->attr_size; at += r->attr_size) {
        const uint8_t *const p = front.p + r->attrs_at + at;
        struct tl_perf_attr attr;
        const size_t size = (size_t)r->attr_size - SECTION;
        const uint64_t ids_at = tl_perf_u64(r->swap, p + size);
        const uint64_t ids_size = tl_perf_u64(r->swap, p + size + 8);
        int rc = TL_BAD;
        if (tl_perf_attr_read(&attr, r->swap, (struct tl_bytes){p, size}) == TL_OK) {
            const bool known = within(ids_at, ids_size, front.n);
            rc = tl_perf_attrs_add(
                &r->attrs, &attr, r->swap,
                (struct tl_bytes){front.p + (known ? ids_at : 0), known ? (size_t)ids_size : 0});
        }
        if (rc == TL_BAD || rc == TL_LIMIT)
            rc = report_loss(r, "an attribute of perf.data makes no sense", r->attrs_at + at, 0);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

/* Skip the bytes between what was collected and the records, if there are any. */
static void skip_to_records(struct tl_perf_reader *r)
{
    r->area = (struct tl_perf_area){.size = r->data_at - r->position};
    r->area_at = 0;
    r->passes = true;
    r->state = r->area.size > 0 ? IN_AREA : IN_RECORDS;
}

/* ---- records --------------------------------------------------------------------------------- */

static int take_raw(struct tl_perf_reader *r, const uint8_t *p, size_t size, uint64_t offset);

static int take_attr(struct tl_perf_reader *r, struct tl_bytes body, uint64_t offset)
{
    struct tl_perf_attr attr;
    int rc = tl_perf_attr_read(&attr, r->swap, body);
    if (rc == TL_OK)
        rc = tl_perf_attrs_add(&r->attrs, &attr, r->swap,
                               (struct tl_bytes){body.p + attr.size, body.n - attr.size});
    return rc == TL_BAD || rc == TL_LIMIT ? report_loss(r, "a bad ATTR record", offset, body.n)
                                          : rc;
}

/* Process complete records in the decompressed data. */
static int take_unpacked(struct tl_perf_reader *r, uint64_t offset)
{
    size_t at = 0;
    int rc = TL_OK;
    while (rc >= 0 && r->unpacked.n - at >= TL_PERF_RECORD_HEADER) {
        const uint8_t *const p = r->unpacked.p + at;
        const size_t size = tl_perf_u16(r->swap, p + 6);
        if (size < TL_PERF_RECORD_HEADER) {
            at = r->unpacked.n;
            rc = report_loss(r, "a bad record in a compressed one", offset, 0);
            break;
        }
        if (size > r->unpacked.n - at)
            break;
        rc = take_raw(r, p, size, offset);
        at += size;
    }
    tl_buf_drop(&r->unpacked, at);
    return rc;
}

/* Decompress a record. One zstd frame spans all records. With `perf record --threads` each file has
 * its own frame, which begins before the previous one has ended. */
static int unpack(struct tl_perf_reader *r, const uint8_t *header, struct tl_bytes in,
                  uint64_t offset)
{
    const uint64_t body = offset + (uint64_t)(in.p - header);
    bool begins_anew = r->zstd && in.n >= 4 && tl_le32(in.p) == ZSTD_MAGICNUMBER;
    if (!r->zstd)
        r->zstd = ZSTD_createDStream();
    if (!r->zstd || tl_grow(&r->packed, &r->cap_packed, r->n_packed + 1, sizeof *r->packed) < 0)
        return TL_NOMEM;
    r->packed[r->n_packed++] = (struct packed){body, in.n};
    ZSTD_inBuffer from = {in.p, in.n, 0};
    for (;;) {
        if (tl_buf_reserve(&r->unpacked, UNPACK) < 0)
            return TL_NOMEM;
        ZSTD_outBuffer to = {r->unpacked.p + r->unpacked.n, UNPACK, 0};
        const size_t rest = ZSTD_decompressStream(r->zstd, &to, &from);
        if (ZSTD_isError(rest) && begins_anew) {
            (void)ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
            r->packed[0] = r->packed[r->n_packed - 1];
            r->n_packed = 1;
            from.pos = 0;
            begins_anew = false;
            continue;
        }
        if (ZSTD_isError(rest)) {
            ZSTD_freeDStream(r->zstd);
            r->zstd = NULL;
            r->n_packed = 0;
            tl_buf_reset(&r->unpacked);
            return report_loss(r, "a compressed record cannot be unpacked", offset,
                               in.n - from.pos);
        }
        r->unpacked.n += to.pos;
        int rc = take_unpacked(r, offset);
        if (rc >= 0)
            rc = tl_give_way(); /* a few bytes may stand for gigabytes */
        if (rc < 0)
            return rc;
        if (from.pos == in.n && to.pos < UNPACK) {
            r->n_packed = rest == 0 ? 0 : r->n_packed;
            return TL_OK;
        }
    }
}

static int take_index(struct tl_perf_reader *r, struct tl_bytes body, uint64_t offset)
{
    const int rc = tl_perf_attrs_index(&r->attrs, r->swap, body);
    return rc == TL_LIMIT ? report_loss(r, "too many event IDs", offset, body.n) : rc;
}

static int take_feature(struct tl_perf_reader *r, struct tl_bytes body)
{
    if (body.n < 8 || !r->sink.feature)
        return TL_OK;
    const uint64_t feature = tl_perf_u64(r->swap, body.p);
    return feature < TL_PERF_FEATURES ? r->sink.feature(r->sink.context, (unsigned)feature,
                                                        (struct tl_bytes){body.p + 8, body.n - 8})
                                      : TL_OK;
}

/* Process a complete record of `size` >= 8 bytes, other than AUXTRACE. */
static int take_raw(struct tl_perf_reader *r, const uint8_t *p, size_t size, uint64_t offset)
{
    const struct tl_perf_raw raw = {
        .type = tl_perf_u32(r->swap, p),
        .misc = tl_perf_u16(r->swap, p + 4),
        .body = {p + TL_PERF_RECORD_HEADER, size - TL_PERF_RECORD_HEADER},
        .offset = offset,
        .packed = r->unpacked.n > 0 && p >= r->unpacked.p && p < r->unpacked.p + r->unpacked.n,
    };
    const struct tl_bytes body = raw.body;
    if (raw.packed && (raw.type == TL_PERF_COMPRESSED || raw.type == TL_PERF_COMPRESSED2 ||
                       raw.type == TL_PERF_AUXTRACE))
        return report_loss(r, "a bad record in a compressed one", offset, 0);
    switch (raw.type) {
    case TL_PERF_ATTR:
        return take_attr(r, body, offset);
    case TL_PERF_ID_INDEX:
        return take_index(r, body, offset);
    case TL_PERF_HEADER_FEATURE:
        return take_feature(r, body);
    case TL_PERF_COMPRESSED:
        return unpack(r, p, body, offset);
    case TL_PERF_COMPRESSED2: {
        const uint64_t n = body.n < 8 ? 0 : tl_perf_u64(r->swap, body.p);
        if (body.n < 8 || n > body.n - 8)
            return report_loss(r, "a bad COMPRESSED2 record", offset, body.n);
        return unpack(r, p, (struct tl_bytes){body.p + 8, (size_t)n}, offset);
    }
    default:
        return r->sink.record(r->sink.context, &raw);
    }
}

static int begin_area(struct tl_perf_reader *r, const uint8_t *p, size_t size, uint64_t offset)
{
    if (size < TL_PERF_AREA_RECORD) {
        search_from(r, SHORT_AREA, offset);
        return TL_OK;
    }
    const uint8_t *const b = p + TL_PERF_RECORD_HEADER;
    r->area = (struct tl_perf_area){
        .size = tl_perf_u64(r->swap, b),
        .offset = tl_perf_u64(r->swap, b + 8),
        .reference = tl_perf_u64(r->swap, b + 16),
        .idx = tl_perf_u32(r->swap, b + 24),
        .tid = (int32_t)tl_perf_u32(r->swap, b + 28),
        .cpu = (int32_t)tl_perf_u32(r->swap, b + 32),
    };
    r->area_at = 0;
    const uint64_t from = offset + size;
    if (r->area.size > r->data_end - from) {
        search_from(r, LONG_AREA, offset);
        return TL_OK;
    }
    r->state = IN_AREA;
    r->passes = false;
    return r->sink.area(r->sink.context, &r->area, 0, (struct tl_bytes){0}, from);
}

/* In a pipe, tracepoint formats follow their record: skip them. */
static int pass_tracing(struct tl_perf_reader *r, const uint8_t *p, size_t size, uint64_t offset)
{
    const uint64_t n =
        size < TL_PERF_RECORD_HEADER + 4 ? 0 : tl_perf_u32(r->swap, p + TL_PERF_RECORD_HEADER);
    if (n > r->data_end - (offset + size)) {
        search_from(r, LONG_TRACING_DATA, offset);
        return TL_OK;
    }
    r->area = (struct tl_perf_area){.size = n};
    r->area_at = 0;
    r->passes = true;
    r->state = n > 0 ? IN_AREA : IN_RECORDS;
    return TL_OK;
}

/* Process complete records at the beginning of `in`, which is at `offset`. Returns their size. */
static int64_t take_records(struct tl_perf_reader *r, struct tl_bytes in, uint64_t offset)
{
    size_t at = 0;
    while (r->state == IN_RECORDS) {
        const uint64_t here = offset + at;
        if (here == r->data_end) {
            r->state = AFTER;
            break;
        }
        if (in.n - at < TL_PERF_RECORD_HEADER)
            break;
        const size_t size = tl_perf_u16(r->swap, in.p + at + 6);
        if (size < TL_PERF_RECORD_HEADER || size > r->data_end - here) {
            search_from(r, BAD_RECORD, here);
            break;
        }
        if (size > in.n - at)
            break;
        const uint32_t type = tl_perf_u32(r->swap, in.p + at);
        const int rc = type == TL_PERF_AUXTRACE       ? begin_area(r, in.p + at, size, here)
                       : type == TL_PERF_TRACING_DATA ? pass_tracing(r, in.p + at, size, here)
                                                      : take_raw(r, in.p + at, size, here);
        if (rc < 0)
            return rc;
        if (r->state != SEARCHING)
            at += size;
    }
    return (int64_t)at;
}

/* Process bytes after an AUXTRACE record. Returns how many. */
static int64_t take_area(struct tl_perf_reader *r, struct tl_bytes in, uint64_t offset)
{
    const uint64_t left = r->area.size - r->area_at;
    const size_t n = in.n < left ? in.n : (size_t)left;
    if (n > 0 && !r->passes) {
        const int rc =
            r->sink.area(r->sink.context, &r->area, r->area_at, (struct tl_bytes){in.p, n}, offset);
        if (rc < 0)
            return rc;
    }
    r->area_at += n;
    if (r->area_at == r->area.size)
        r->state = IN_RECORDS;
    return (int64_t)n;
}

/* ---- after a bad record ---------------------------------------------------------------------- */

/* Report what was not read, up to `end`: the next record, or the end of records or input. */
static int report_unread(struct tl_perf_reader *r, uint64_t end, bool found)
{
    char text[128];
    snprintf(text, sizeof text, "%s; not read up to %s at 0x%" PRIx64, why_texts[r->lost_why],
             found                ? "the next intact record"
             : end == r->data_end ? "the end of the records"
                                  : "the end",
             end);
    return report_loss(r, text, r->lost_at, end - r->lost_at);
}

/* Parsing continues at `offset`, with a record or after all of them. */
static int end_search(struct tl_perf_reader *r, uint64_t offset, bool found)
{
    /* Compressed records continue a frame of which a part may be missing. */
    ZSTD_freeDStream(r->zstd);
    r->zstd = NULL;
    r->n_packed = 0;
    tl_buf_reset(&r->unpacked);
    r->state = found ? IN_RECORDS : AFTER;
    return report_unread(r, offset, found);
}

/*
 * Search `in`, which is at `offset`, for the next record. Returns the number of bytes before it, or
 * before the first place that cannot be decided yet. `last`: nothing follows.
 */
static int64_t search(struct tl_perf_reader *r, struct tl_bytes in, uint64_t offset, bool last)
{
    for (size_t at = 0;; at++) {
        const uint64_t here = offset + at, room = r->data_end - here;
        const struct tl_bytes rest = {in.p + at, in.n - at < room ? in.n - at : (size_t)room};
        enum tl_perf_found found = TL_PERF_NO_RECORD;
        if (here != r->lost_at && room > 0)
            found = tl_perf_search(r->swap, rest, last ? rest.n : room);
        if (found == TL_PERF_RECORD || room == 0) {
            const int rc = end_search(r, here, found == TL_PERF_RECORD);
            return rc < 0 ? rc : (int64_t)at;
        }
        if (found == TL_PERF_MORE_NEEDED || at == in.n)
            return (int64_t)at;
    }
}

/* Process collected records, and search on where one is bad. */
static int take_collected(struct tl_perf_reader *r, bool last)
{
    const uint64_t offset = r->position - r->gathered.n;
    size_t at = 0;
    int64_t n = 0;
    enum state before;
    do {
        const struct tl_bytes in = {r->gathered.p + at, r->gathered.n - at};
        before = r->state;
        n = before == SEARCHING ? search(r, in, offset + at, last)
            : before == IN_AREA ? take_area(r, in, offset + at)
                                : take_records(r, in, offset + at);
        at += n > 0 ? (size_t)n : 0;
    } while (n >= 0 && r->state != before && r->state != AFTER && at < r->gathered.n);
    tl_buf_drop(&r->gathered, at);
    return n < 0 ? (int)n : TL_OK;
}

/* ---- push ------------------------------------------------------------------------------------ */

/* Process records and areas directly from `in`. */
static int take_data(struct tl_perf_reader *r, struct tl_bytes *in)
{
    while (in->n > 0) {
        int64_t n;
        if (r->state == IN_AREA)
            n = take_area(r, *in, r->position);
        else if (r->state == IN_RECORDS)
            n = take_records(r, *in, r->position);
        else
            break;
        if (n < 0)
            return (int)n;
        if (n == 0 && r->state == IN_RECORDS)
            break;
        in->p += n;
        in->n -= (size_t)n;
        r->position += (uint64_t)n;
    }
    return TL_OK;
}

/* Number of bytes that must be collected to continue. */
static uint64_t wanted(const struct tl_perf_reader *r)
{
    switch (r->state) {
    case IN_HEADER:
        return r->gathered.n < PIPE_HEADER ? PIPE_HEADER : FILE_HEADER;
    case BEFORE: /* the attributes are at the beginning, wherever the records are */
        return r->data_at < TL_PERF_HEAD_MAX ? r->data_at : TL_PERF_HEAD_MAX;
    case IN_RECORDS: {
        if (r->gathered.n < TL_PERF_RECORD_HEADER)
            return TL_PERF_RECORD_HEADER;
        const size_t size = tl_perf_u16(r->swap, r->gathered.p + 6);
        return size < TL_PERF_RECORD_HEADER ? TL_PERF_RECORD_HEADER : size;
    }
    case SEARCHING:
        return r->gathered.n + TL_PERF_CHAIN_MAX;
    default:
        return 0;
    }
}

/* Process the collected bytes. */
static int take_gathered(struct tl_perf_reader *r)
{
    int rc = TL_OK;
    if (r->state == IN_HEADER) {
        read_header(r);
    } else if (r->state == BEFORE) {
        rc = read_attrs(r);
        tl_buf_reset(&r->gathered);
        if (r->state != OVER)
            skip_to_records(r);
    } else {
        rc = take_collected(r, false);
    }
    return rc;
}

static int gather(struct tl_perf_reader *r, struct tl_bytes *in)
{
    const uint64_t want = wanted(r);
    const uint64_t more = want > r->gathered.n ? want - r->gathered.n : 0;
    const size_t n = in->n < more ? in->n : (size_t)more;
    if (tl_buf_add(&r->gathered, in->p, n) < 0)
        return TL_NOMEM;
    in->p += n;
    in->n -= n;
    r->position += n;
    return r->gathered.n >= want || r->state == SEARCHING ? take_gathered(r) : TL_OK;
}

int tl_perf_reader_push(struct tl_perf_reader *r, struct tl_bytes in)
{
    int rc = TL_OK;
    while (rc >= 0 && in.n > 0) {
        if (r->state == OVER)
            break;
        if (r->state == AFTER) {
            if (in.n > TL_PERF_HEAD_MAX - r->gathered.n)
                give_up(r, LARGE_FEATURES, r->position);
            else if (tl_buf_add(&r->gathered, in.p, in.n) < 0)
                return TL_NOMEM;
            else
                r->position += in.n;
            break;
        }
        if (r->gathered.n == 0 && (r->state == IN_RECORDS || r->state == IN_AREA)) {
            rc = take_data(r, &in);
            if (rc < 0 || in.n == 0 || (r->state != IN_RECORDS && r->state != IN_AREA))
                continue;
        }
        rc = gather(r, &in);
    }
    if (r->state == OVER)
        r->position += in.n;
    return rc;
}

/* The features' sections follow the records, in order of their bits. */
static int take_features(struct tl_perf_reader *r)
{
    const uint64_t base = r->position - r->gathered.n;
    size_t at = 0;
    for (unsigned f = 0; f < TL_PERF_FEATURES && r->sink.feature; f++) {
        if (!(r->features[f / 8] >> f % 8 & 1))
            continue;
        if (r->gathered.n - at < SECTION)
            return report_loss(r, "the features of perf.data are cut off", base + at, 0);
        const uint64_t offset = tl_perf_u64(r->swap, r->gathered.p + at);
        const uint64_t size = tl_perf_u64(r->swap, r->gathered.p + at + 8);
        at += SECTION;
        int rc = TL_OK;
        if (offset >= base && within(offset - base, size, r->gathered.n))
            rc = r->sink.feature(r->sink.context, f,
                                 (struct tl_bytes){r->gathered.p + (offset - base), (size_t)size});
        else if (size > 0)
            rc = report_loss(r, "a feature of perf.data is not where it should be", base + at, 0);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_perf_reader_finish(struct tl_perf_reader *r)
{
    const int rc = r->state == SEARCHING ? take_collected(r, true) : TL_OK;
    if (rc < 0)
        return rc;
    const uint64_t waits = r->position - r->gathered.n;
    switch (r->state) {
    case IN_HEADER:
        return r->position > 0 ? report_loss(r, "the perf.data header is cut off", 0, r->position)
                               : TL_OK;
    case BEFORE:
        return report_loss(r, "perf.data ends before its records", waits, r->gathered.n);
    case IN_AREA:
        return report_loss(r,
                           r->position < r->data_at ? "perf.data ends before its records"
                                                    : "perf.data ends within an AUX area",
                           r->position, 0);
    case IN_RECORDS:
        if (r->gathered.n > 0)
            return report_loss(r, "perf.data ends within a record", waits, r->gathered.n);
        return !r->piped && r->data_end != UINT64_MAX && r->position < r->data_end
                   ? report_loss(r, "perf.data ends before its last record", r->position, 0)
                   : TL_OK;
    case AFTER:
        return take_features(r);
    default:
        return report_unread(r, r->position, false);
    }
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

bool tl_perf_reader_in_area(const struct tl_perf_reader *r)
{
    return r->state == IN_AREA && !r->passes;
}

/* Bring zstd to the same position in its frame, since its state cannot be saved. */
static int unpack_again(struct tl_perf_reader *r, const struct tl_decode *decode)
{
    struct tl_buf in = {0}, out = {0};
    int rc = tl_buf_reserve(&out, UNPACK);
    r->zstd = ZSTD_createDStream();
    rc = rc < 0 || !r->zstd ? TL_NOMEM : TL_OK;
    for (size_t i = 0; rc >= 0 && i < r->n_packed; i++) {
        tl_buf_reset(&in);
        rc = tl_decode_reread(decode, r->packed[i].offset, r->packed[i].n, &in);
        ZSTD_inBuffer from = {in.p, in.n, 0};
        for (ZSTD_outBuffer to = {.pos = UNPACK};
             rc >= 0 && (from.pos < in.n || to.pos == UNPACK);) {
            to = (ZSTD_outBuffer){out.p, UNPACK, 0};
            if (ZSTD_isError(ZSTD_decompressStream(r->zstd, &to, &from)))
                rc = TL_BAD;
            else
                rc = tl_give_way();
        }
    }
    tl_buf_fini(&in);
    tl_buf_fini(&out);
    return rc;
}

static void area_state(struct tl_perf_area *area, struct tl_state *s)
{
    tl_state_u64(s, &area->size);
    tl_state_u64(s, &area->offset);
    tl_state_u64(s, &area->reference);
    tl_state_u32(s, &area->idx);
    tl_state_i32(s, &area->tid);
    tl_state_i32(s, &area->cpu);
}

void tl_perf_reader_state(struct tl_perf_reader *r, const struct tl_decode *decode,
                          struct tl_state *s)
{
    uint8_t state = (uint8_t)r->state;
    bool unpacks = r->zstd != NULL;
    tl_state_u8(s, &state, OVER);
    r->state = (enum state)state;
    tl_state_bool(s, &r->swap);
    tl_state_bool(s, &r->piped);
    tl_state_u64(s, &r->position);
    tl_state_buf(s, &r->gathered, TL_PERF_HEAD_MAX);
    tl_state_u64(s, &r->data_at);
    tl_state_u64(s, &r->data_end);
    tl_perf_attrs_state(&r->attrs, s);
    tl_state_u64(s, &r->attr_size);
    tl_state_u64(s, &r->attrs_at);
    tl_state_u64(s, &r->attrs_size);
    tl_state_bytes(s, r->features, sizeof r->features);
    area_state(&r->area, s);
    tl_state_u64(s, &r->area_at);
    tl_state_bool(s, &r->passes);
    tl_state_bool(s, &unpacks);
    tl_state_buf(s, &r->unpacked, TL_PERF_HEAD_MAX);
    tl_state_array(s, &r->packed, &r->n_packed, &r->cap_packed, sizeof *r->packed);
    tl_state_u64(s, &r->lost_at);
    tl_state_u8(s, &r->lost_why, WHYS - 1);
    tl_state_check(s, r->gathered.n <= r->position && r->lost_at <= r->position);
    tl_state_check(s, state != BEFORE || r->data_at >= FILE_HEADER);
    tl_state_check(s,
                   state != SEARCHING || (r->lost_why >= SHORT_AREA && r->lost_why <= BAD_RECORD &&
                                          r->lost_at <= r->position - r->gathered.n &&
                                          r->position - r->gathered.n <= r->data_end));
    tl_state_check(s, state != IN_AREA || (r->area_at <= r->area.size && r->gathered.n == 0));
    tl_state_check(s, unpacks || r->n_packed == 0);
    for (size_t i = 0; tl_state_loads(s) && i < r->n_packed; i++)
        tl_state_check(s, r->packed[i].n <= UINT16_MAX);
    if (tl_state_loads(s) && s->rc >= 0 && unpacks)
        tl_state_fail(s, unpack_again(r, decode));
}
