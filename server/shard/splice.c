/* SPDX-License-Identifier: MIT */
/*
 * Rewrites the first group of a shard as it would be within a longer trace. Only that group repeats
 * the state of the trace, so that all other frames are copied as they are.
 */
#include "shard/splice.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "shard/itemlog.h"
#include "stf/flow_map.h"
#include "stf/group.h"

/* ---- heads ---------------------------------------------------------------------------------- */

/* Size of the first group, or of all records if none is closed. */
static size_t group_size(const struct tl_stf_layout *layout, struct tl_bytes stf, bool *closed)
{
    struct tl_stf_group group = {stf, *layout};
    struct tl_bytes record;
    *closed = false;
    while (!*closed && tl_stf_group_skip(&group, &record) == TL_OK)
        *closed = tl_stf_is_marker(record.p[0]);
    return (size_t)(group.rest.p - stf.p);
}

size_t tl_splice_head(struct tl_bytes records)
{
    struct tl_stf_groups groups = {0};
    size_t n = 0;
    bool closed = false;
    const int head = tl_stf_groups_read(&groups, records);
    if (head >= 0) {
        const struct tl_bytes rest = {records.p + head, records.n - (size_t)head};
        n = (size_t)head + group_size(&groups.layout, rest, &closed);
    }
    tl_stf_groups_fini(&groups);
    return closed && n <= TL_PACK_HEAD ? n : 0;
}

/* ---- the first group within a longer trace --------------------------------------------------- */

/* The first group while it is modified; what follows it is unchanged. */
struct joint {
    const struct tl_view *view;
    const struct tl_stf_groups *groups;
    struct tl_buf stf;
};

static struct tl_bytes bytes_of(const struct joint *j)
{
    return (struct tl_bytes){j->stf.p, j->stf.n};
}

/* Remove `size` bytes. */
static void drop(struct joint *j, size_t at, size_t size)
{
    memmove(j->stf.p + at, j->stf.p + at + size, j->stf.n - at - size);
    j->stf.n -= size;
}

static int insert(struct joint *j, size_t at, const struct tl_stf_record *record)
{
    struct tl_buf bytes = {0};
    int r = tl_stf_record_encode(&j->groups->layout, record, &bytes);
    if (r >= 0)
        r = tl_buf_reserve(&j->stf, bytes.n);
    if (r >= 0) {
        memmove(j->stf.p + at + bytes.n, j->stf.p + at, j->stf.n - at);
        memcpy(j->stf.p + at, bytes.p, bytes.n);
        j->stf.n += bytes.n;
    }
    tl_buf_fini(&bytes);
    return r < 0 ? r : TL_OK;
}

/* Properties of a group that matter when it follows another one. */
struct sight {
    bool iem, force;  /* it has an INST_IEM, a FORCE_PC */
    size_t own;       /* position of the first record that is specific to the group */
    size_t before;    /* position of the first record that does not describe the state before the
                         instruction */
    size_t reported;  /* the last event that only gives the instruction set; SIZE_MAX: none */
    uint32_t size;    /* size of that event */
    enum tl_isa says; /* instruction set given by that event */
    enum tl_isa mode; /* instruction set given by other changes of mode; NONE: none */
    bool has_word;
    uint64_t word; /* the last mode of all */
};

static void look_at_event(struct sight *s, const struct tl_stf_record *r, size_t at)
{
    const struct tl_bytes fields = r->event.fields;
    if (fields.n < 16)
        return;
    const uint64_t flags = tl_stf_word(fields, 1);
    if (r->event.number != TL_STF_EVENT_MODE_CHANGE) {
        if (flags & TL_STF_X_BEFORE)
            s->before = at + r->size;
        return;
    }
    if (!(flags & TL_STF_MODE_BEFORE))
        return;
    s->before = at + r->size;
    const uint64_t word = flags & ~TL_STF_MODE_FLAGS;
    if (flags & TL_STF_MODE_ISA_ONLY) {
        s->reported = at;
        s->size = r->size;
        s->says = tl_mode_isa(word);
        return;
    }
    s->word = word;
    s->has_word = true;
    if (tl_mode_isa(word) != TL_ISA_NONE)
        s->mode = tl_mode_isa(word);
}

static void look(const struct joint *j, struct sight *s)
{
    struct tl_stf_group group = {bytes_of(j), j->groups->layout};
    struct tl_stf_record r = {0};
    *s = (struct sight){.own = SIZE_MAX, .before = SIZE_MAX, .reported = SIZE_MAX};
    while (!tl_stf_is_marker(r.type) && tl_stf_group_next(&group, &r) == TL_OK) {
        const size_t at = (size_t)(group.rest.p - j->stf.p) - r.size;
        s->iem |= r.type == TL_STF_INST_IEM;
        s->force |= r.type == TL_STF_FORCE_PC;
        if (r.type >= TL_STF_INST_PC_TARGET && s->own == SIZE_MAX)
            s->own = at;
        if (r.type == TL_STF_EVENT_PC_TARGET && s->before == at)
            s->before = at + r.size; /* belongs to its event */
        if (r.type >= TL_STF_EVENT && s->before == SIZE_MAX)
            s->before = at;
        if (r.type == TL_STF_EVENT)
            look_at_event(s, &r, at);
    }
    if (s->own == SIZE_MAX)
        s->own = j->stf.n;
    if (s->before == SIZE_MAX)
        s->before = s->own;
}

/*
 * Readers assume for the group's instruction the instruction set of the previous one, unless it is
 * given: see flow_writer.h. `reported` is the mode repeated in the shard.
 */
static int report_isa(struct joint *j, const struct sight *stored, const uint64_t *reported)
{
    const struct tl_stf_header *const header = &j->groups->header;
    const enum tl_isa before = (enum tl_isa)j->view->index.row.at.isa;
    const enum tl_isa by_header = tl_stf_unmap_isa(header->isa, header->iem);
    const enum tl_isa by_mode = reported ? tl_mode_isa(*reported) : TL_ISA_NONE;
    const enum tl_isa isa = stored->reported != SIZE_MAX ? stored->says
                            : by_mode != TL_ISA_NONE     ? by_mode
                                                         : by_header;
    struct sight s;
    int r = TL_OK;
    if (before == TL_ISA_NONE)
        return TL_OK;
    if (stored->reported != SIZE_MAX)
        drop(j, stored->reported, stored->size);
    look(j, &s);
    enum tl_isa read = s.mode != TL_ISA_NONE ? s.mode : before;
    const uint16_t iem = tl_stf_map_iem(isa);
    const bool lacks = !s.iem && iem != tl_stf_map_iem(before);
    if (lacks)
        r = insert(j, 0, &(struct tl_stf_record){.type = TL_STF_INST_IEM, .iem = iem});
    if (s.iem || lacks)
        read = tl_stf_isa_by_iem(read, iem);
    if (r < 0 || read == isa)
        return r;
    look(j, &s);
    const uint64_t *const word = s.has_word ? &s.word : reported;
    const uint64_t mode = word ? (*word & ~UINT64_C(255)) | (uint64_t)isa
                               : tl_mode(tl_stf_arch(isa), 15, TL_SEC_NONE, isa);
    uint8_t fields[8 * TL_STF_MODE_FIELDS] = {(uint8_t)tl_stf_map_level(mode)};
    tl_put_le64(fields + 8, mode | TL_STF_MODE_ISA_ONLY | TL_STF_MODE_BEFORE);
    return insert(
        j, s.before,
        &(struct tl_stf_record){.type = TL_STF_EVENT,
                                .event = {TL_STF_EVENT_MODE_CHANGE, {fields, sizeof(fields)}}});
}

/* Drop comments that a shard begins with only because it is read alone: the mode ("m"), and that
 * addresses are instructions, as in any group ("J 0"). */
static void drop_begin(struct joint *j)
{
    static const uint8_t alone[] = {'J', ' ', '0' + TL_STF_POINTS_ALONE};
    struct tl_stf_group group = {bytes_of(j), j->groups->layout};
    struct tl_bytes record;
    while (tl_stf_group_skip(&group, &record) == TL_OK && record.p[0] < TL_STF_INST_PC_TARGET) {
        const struct tl_bytes text = {record.p + 5, record.n - 5};
        const bool said = record.p[0] == TL_STF_COMMENT && text.n > 0 && text.p[0] == 'J';
        const bool mode =
            record.p[0] == TL_STF_COMMENT && text.n > 1 && memcmp(text.p, "m ", 2) == 0;
        if (mode || (said && text.n == sizeof alone && memcmp(text.p, alone, text.n) == 0)) {
            const size_t at = (size_t)(record.p - j->stf.p);
            drop(j, at, (uint32_t)record.n);
            group.rest = (struct tl_bytes){j->stf.p + at, j->stf.n - at};
        }
        if (said)
            return;
    }
}

/* Join records that were made from flow items. */
static int join_ours(struct joint *j, uint64_t pc)
{
    const struct tl_stf_header *const header = &j->groups->header;
    uint32_t size = 0;
    uint64_t mode = 0;
    drop_begin(j);
    const size_t at = tl_stf_groups_mode_reported(j->groups, bytes_of(j), NULL, &size);
    if (at != SIZE_MAX) {
        mode = tl_le64(j->stf.p + at + size - 8) & ~TL_STF_MODE_FLAGS;
        drop(j, at, size);
    }
    struct sight s;
    look(j, &s);
    int r = TL_OK;
    if (!s.force && header->pc != pc)
        r = insert(j, s.own, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = header->pc});
    if (r >= 0)
        look(j, &s);
    return r < 0 ? r : report_isa(j, &s, at != SIZE_MAX ? &mode : NULL);
}

/* Join imported records, which are complete by themselves. */
static void join_others(struct joint *j)
{
    struct tl_bytes records;
    uint32_t size = 0;
    size_t known = 0;
    if (j->view->index.version >= 3) {
        const size_t at = tl_stf_groups_known(j->groups, bytes_of(j), &known, &records);
        if (at != SIZE_MAX)
            drop(j, at, known);
    }
    const size_t at = tl_stf_groups_mode_reported(j->groups, bytes_of(j), NULL, &size);
    if (at != SIZE_MAX)
        drop(j, at, size);
}

int tl_splice_join(const struct tl_view *view, struct tl_bytes stf, uint64_t pc, struct tl_buf *out)
{
    struct tl_stf_groups groups = {0};
    struct joint j = {.view = view, .groups = &groups};
    int r = tl_stf_groups_read(&groups, stf);
    if (r >= 0) {
        const struct tl_bytes rest = {stf.p + r, stf.n - (size_t)r};
        bool closed;
        const size_t n = group_size(&groups.layout, rest, &closed);
        r = tl_buf_add(&j.stf, rest.p, n);
        if (r >= 0 && groups.ours)
            r = join_ours(&j, pc);
        else if (r >= 0)
            join_others(&j);
        if (r >= 0)
            r = tl_buf_add(out, j.stf.p, j.stf.n);
        if (r >= 0)
            r = tl_buf_add(out, rest.p + n, rest.n - n);
    }
    tl_stf_groups_fini(&groups);
    tl_buf_fini(&j.stf);
    return r < 0 ? r : TL_OK;
}

/* ---- places --------------------------------------------------------------------------------- */

size_t tl_splice_pass(const struct tl_stf_layout *layout, struct tl_bytes stf, uint64_t n,
                      uint64_t *pc)
{
    const uint8_t *p = stf.p, *const end = stf.p + stf.n;
    struct tl_stf_pc at = {.next = *pc};
    while (n > 0) {
        /* Nearly all groups consist only of their closing record. */
        while (n > 0 && end - p >= TL_STF_CLOSING_BYTES && !at.has_target &&
               (*p == TL_STF_INST_32 || *p == TL_STF_INST_16)) {
            const bool wide = *p == TL_STF_INST_32;
            p += wide ? TL_STF_CLOSING_BYTES : TL_STF_CLOSING_16_BYTES;
            at.next += wide ? 4 : 2;
            n--;
        }
        if (n == 0)
            break;
        struct tl_stf_group group = {{p, (size_t)(end - p)}, *layout};
        struct tl_stf_record record;
        if (tl_stf_group_next(&group, &record) != TL_OK)
            return SIZE_MAX;
        tl_stf_pc_add(&at, &record);
        n -= tl_stf_is_marker(record.type);
        p = group.rest.p;
    }
    *pc = at.next;
    return (size_t)(p - stf.p);
}

int tl_splice_markers(struct tl_view *view, size_t chunk, enum tl_protocol protocol,
                      uint64_t position, uint64_t *markers, uint64_t *last, struct tl_fail *fail)
{
    const struct tl_chunk *const c = &view->index.chunks[chunk];
    struct tl_itemlog_reader reader;
    struct tl_buf log = {0};
    bool any = false;
    uint64_t points = 0, next = 0; /* position after the last point item */
    uint64_t marked = UINT64_MAX;  /* the last marker before that */
    for (unsigned kind = 0; kind < TL_ITEM_KINDS; kind++)
        any |= c->kinds >> kind & 1 && tl_item_is_point(protocol, kind);
    int r = any ? tl_view_items(view, chunk, &log, fail) : TL_EOF;
    tl_itemlog_read(&reader, (struct tl_bytes){log.p, log.n}, 0, 0);
    while (r >= 0) {
        struct tl_item item;
        uint64_t at;
        r = tl_itemlog_next(&reader, &item, &at);
        if (r < 0 || c->first + at >= position)
            break;
        if (!tl_item_is_point(protocol, item.kind))
            continue;
        points++;
        if (at > next)
            marked = c->first + at - 1;
        next = at + 1;
    }
    tl_buf_fini(&log);
    if (r == TL_BAD)
        return tl_fail_set(fail, TL_BAD, "%s: a chunk contradicts its index", view->key);
    if (r < 0 && r != TL_EOF)
        return r;
    const uint64_t n = position - c->first;
    if (points > n)
        return tl_fail_set(fail, TL_BAD, "%s: a chunk contradicts its index", view->key);
    *markers = c->marker + n - points;
    if (last)
        *last = n > next ? position - 1 : marked;
    return TL_OK;
}

/* ---- packed --------------------------------------------------------------------------------- */

int tl_splice_packed(const struct tl_view *view, size_t i, struct tl_packer *packer,
                     struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_shard_frame *const f = &view->index.frames[i];
    const size_t before = out->n;
    int r = tl_cancel_check();
    if (r < 0)
        return r;
    if (!view->backend) {
        struct tl_bytes bytes;
        r = tl_blob_packed(view->frames[i], packer, &bytes);
        return r < 0 ? r : tl_buf_add(out, bytes.p, bytes.n);
    }
    r = view->backend->ops->get(view->backend, view->key, f->offset, f->size, out, fail);
    if (r < 0)
        return r;
    if (out->n - before != f->size || tl_crc32c(0, out->p + before, f->size) != f->crc)
        return tl_fail_at(fail, TL_BAD, f->offset, "%s: a block is damaged; decode the trace again",
                          view->key);
    return TL_OK;
}
