/* SPDX-License-Identifier: MIT */
/*
 * Checks the rules of the .zstf container, see zstf.h, and complete files. Each chunk is checked as
 * soon as its records have been, so that a finding stands near its cause.
 */
#include "stf/group.h"
#include "stf/tools/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct walk {
    tl_stf_finding_sink *sink;
    void *context;
    struct tl_stf_layout layout;
    struct tl_stf_pc pc;
    int result;
};

static void TL_PRINTF(5, 6) find(struct walk *w, enum tl_stf_severity severity, const char *rule,
                                 uint64_t offset, const char *format, ...)
{
    if (w->result < 0)
        return;
    struct tl_stf_finding f = {
        .severity = (uint8_t)severity, .rule = rule, .offset = offset, .record = UINT64_MAX};
    va_list args;
    va_start(args, format);
    vsnprintf(f.text, sizeof f.text, format, args);
    va_end(args);
    const int result = w->sink(w->context, &f);
    if (result < 0)
        w->result = result;
}

/* Count the markers of a chunk; *on_marker: it ends with one. Returns < 0 if a record is truncated
 * or unreadable. */
static int64_t count(struct walk *w, struct tl_bytes plain, bool *on_marker)
{
    int64_t markers = 0;
    *on_marker = false;
    struct tl_stf_group group = {plain, w->layout};
    while (group.rest.n) {
        struct tl_stf_record r;
        if (tl_stf_group_next(&group, &r) != TL_OK)
            return -1;
        tl_stf_layout_apply(&group.layout, &r);
        tl_stf_pc_add(&w->pc, &r);
        *on_marker = tl_stf_is_marker(r.type);
        markers += *on_marker;
    }
    w->layout = group.layout;
    return markers;
}

/* Check the beginning of a chunk; w->pc is the PC there. */
static void check_begin(struct walk *w, struct tl_zstf *zstf, uint64_t i, bool odd)
{
    const struct tl_zstf_entry *const entry = tl_zstf_chunk(zstf, i);
    const unsigned long long n = i;
    if (odd)
        find(w, TL_STF_ERROR, "chunk-frame", entry->offset,
             "chunk %llu is not exactly one frame of the size that the index says", n);
    if (i && entry->start_pc != w->pc.next) /* the header has chunk 0's */
        find(w, TL_STF_ERROR, "chunk-pc", entry->offset,
             "chunk %llu: start PC 0x%" PRIx64 " in the index, 0x%" PRIx64 " in the trace", n,
             entry->start_pc, w->pc.next);
}

/* Check the end of a chunk with `markers` markers; -1: a record is incomplete. */
static void check_end(struct walk *w, struct tl_zstf *zstf, uint64_t i, int64_t markers,
                      bool on_marker)
{
    const struct tl_zstf_entry *const entry = tl_zstf_chunk(zstf, i);
    const unsigned long long n = i;
    const bool last = i + 1 == tl_zstf_chunks(zstf);
    if (markers < 0) {
        find(w, TL_STF_ERROR, "chunk-record", entry->offset,
             "chunk %llu does not end with a whole record, or has one that cannot be read", n);
        return;
    }
    if ((uint64_t)markers > tl_zstf_markers(zstf) ||
        (!last && (uint64_t)markers < tl_zstf_markers(zstf)))
        find(w, TL_STF_ERROR, "chunk-markers", entry->offset,
             "chunk %llu has %" PRId64 " markers, %" PRIu64 " are to be in each", n, markers,
             tl_zstf_markers(zstf));
    if (!last && !on_marker)
        find(w, TL_STF_ERROR, "chunk-end", entry->offset,
             "chunk %llu does not end with a marker: stf_lib loses what follows it", n);
}

static void check_first(struct walk *w, struct tl_zstf *zstf)
{
    const uint64_t first = tl_zstf_chunk(zstf, 0)->offset;
    if (first != TL_ZSTF_HEAD)
        find(w, TL_STF_ERROR, "chunk-gap", TL_ZSTF_HEAD,
             "chunk 0 begins at %" PRIu64 " by the index; readers begin at %u", first,
             TL_ZSTF_HEAD);
}

/* Check the chunks from number `i` on, where `w` is positioned, but not their records. */
static int walk_chunks(struct walk *w, struct tl_zstf *zstf, uint64_t i, struct tl_fail *fail)
{
    struct tl_buf plain = {0};
    int result = w->result;
    for (; i < tl_zstf_chunks(zstf) && result == TL_OK; i++) {
        bool odd = false, on_marker;
        tl_buf_reset(&plain);
        result = tl_zstf_read(zstf, i, &plain, &odd, fail);
        check_begin(w, zstf, i, odd);
        const int64_t markers = count(w, (struct tl_bytes){plain.p, plain.n}, &on_marker);
        check_end(w, zstf, i, markers, on_marker);
        if (w->result < 0)
            result = w->result;
    }
    tl_buf_fini(&plain);
    return result;
}

int tl_stf_check_container(struct tl_zstf *zstf, tl_stf_finding_sink *sink, void *context,
                           struct tl_fail *fail)
{
    struct walk w = {.sink = sink, .context = context};
    check_first(&w, zstf);
    return walk_chunks(&w, zstf, 0, fail);
}

/*
 * ---- records and container together -----------------------------------------------------------
 */

/*
 * A file's chunks as a source of records. Each chunk is checked as soon as its records have been.
 */
struct chunks {
    struct walk walk; /* position at the beginning of the current chunk */
    struct tl_zstf *zstf;
    const struct tl_stf_checker *checker;
    uint64_t n;       /* number of the current chunk, or the next one */
    bool in_hand;     /* there is a current chunk */
    bool odd;         /* its frame is irregular */
    int result;       /* < 0: it is damaged, and `plain` is the part that could be unpacked */
    uint64_t end;     /* offset of its end in the plain stream */
    uint64_t markers; /* markers before it */
    struct tl_buf plain;
    struct tl_fail fail;
};

static void end_chunk(struct chunks *c)
{
    const struct tl_stf_checked at = tl_stf_checker_at(c->checker);
    const bool whole = at.end == c->end;
    check_begin(&c->walk, c->zstf, c->n, c->odd);
    check_end(&c->walk, c->zstf, c->n, whole ? (int64_t)(at.markers - c->markers) : -1,
              at.on_marker);
    c->walk.pc = (struct tl_stf_pc){.next = at.pc};
    c->walk.layout = at.layout;
    c->markers = at.markers;
    c->in_hand = false;
    c->n++;
}

static int next_chunk(void *context, struct tl_bytes *out, struct tl_fail *fail)
{
    struct chunks *const c = context;
    if (c->result < 0 && fail)
        *fail = c->fail;
    if (c->result < 0)
        return c->result;
    do {
        if (c->in_hand)
            end_chunk(c);
        if (c->walk.result < 0)
            return c->walk.result;
        if (c->n == tl_zstf_chunks(c->zstf))
            return TL_EOF;
        tl_buf_reset(&c->plain);
        c->odd = false;
        c->result = tl_zstf_read(c->zstf, c->n, &c->plain, &c->odd, &c->fail);
        c->in_hand = true;
        c->end += c->plain.n;
    } while (c->plain.n == 0 && c->result == TL_OK);
    *out = (struct tl_bytes){c->plain.p, c->plain.n};
    if (c->plain.n)
        return TL_OK;
    if (fail)
        *fail = c->fail;
    return c->result;
}

static int check_records(const struct tl_stf_source *source, struct tl_stf_checker *checker,
                         struct tl_fail *fail)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    int result = tl_stf_reader_open(&reader, source);
    if (result < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    while ((result = tl_stf_reader_next(reader, &record, fail)) == TL_OK) {
        result = tl_stf_checker_add(checker, &record);
        if (result < 0)
            break;
    }
    const int end = tl_stf_checker_finish(checker);
    tl_stf_reader_free(reader);
    if (result == TL_EOF)
        return end;
    return result;
}

static int check_chunks(struct tl_zstf *zstf, struct tl_stf_checker *checker,
                        tl_stf_finding_sink *sink, void *context, struct tl_fail *fail)
{
    struct chunks c = {
        .walk = {.sink = sink, .context = context}, .zstf = zstf, .checker = checker};
    const struct tl_stf_source source = {&c, next_chunk, NULL};
    check_first(&c.walk, zstf);
    const int result = c.walk.result < 0 ? c.walk.result : check_records(&source, checker, fail);
    tl_buf_fini(&c.plain);
    /* Check the chunks after the records end or become unreadable: they may show the reason. */
    struct tl_fail second;
    const int rest = walk_chunks(&c.walk, zstf, c.n, result < 0 ? &second : fail);
    return result < 0 ? result : rest;
}

int tl_stf_check_file(struct tl_stf_file *file, struct tl_stf_checker *checker,
                      tl_stf_finding_sink *sink, void *context, struct tl_fail *fail)
{
    struct tl_zstf *const zstf = tl_stf_file_zstf(file);
    if (zstf)
        return check_chunks(zstf, checker, sink, context, fail);
    const struct tl_stf_source source = tl_stf_file_source(file);
    const int result = check_records(&source, checker, fail);
    const struct tl_fail *const odd = tl_stf_file_warning(file);
    if (odd) {
        struct walk w = {.sink = sink, .context = context};
        find(&w, TL_STF_ERROR, "container", odd->offset == TL_NO_OFFSET ? 0 : odd->offset, "%s",
             odd->text);
        if (w.result < 0)
            return w.result;
    }
    return result;
}
