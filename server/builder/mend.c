/* SPDX-License-Identifier: MIT */
/*
 * Rebuilds a shard's index and logs from what is intact of its redundant parts. What it builds on
 * must match its checksum, as an index made from damaged bytes would answer wrongly instead of
 * failing.
 */
#include "builder/mend.h"

#include "base/crc32c.h"
#include "builder/recount.h"
#include "shard/itemlog.h"
#include "shard/sums.h"
#include "stf/flow/flow_groups.h"
#include "stf/flow/flow_reader.h"
#include "stf/group.h"
#include "stf/zstf.h"

#include <stdlib.h>
#include <zstd.h>

struct patient {
    struct tl_bytes file;
    const struct tl_mend *mend;
    struct tl_sums sums;
    bool has_sums;
    bool has_index;       /* the body was intact, and is in view->index */
    struct tl_view *view; /* in memory */
    bool open_end;        /* what its STF has after the last instruction is logged here */
    int lost;             /* number of lost item logs */
    uint64_t end;         /* raw offset at the end of the last item log */
    struct tl_fail *fail;
};

static int hopeless(struct patient *p, const char *why)
{
    return tl_fail_set(p->fail, TL_BAD, "%s", why);
}

/* The bytes, if they lie in the file and match this checksum; otherwise none. */
static struct tl_bytes good_bytes(const struct patient *p, uint64_t offset, struct tl_sum sum)
{
    if (offset > p->file.n || sum.size > p->file.n - offset || sum.size == 0 ||
        tl_crc32c(0, p->file.p + offset, sum.size) != sum.crc)
        return (struct tl_bytes){0};
    return (struct tl_bytes){p->file.p + offset, sum.size};
}

/* ---- the index, as far as present ------------------------------------------------------------ */

/*
 * The version, as far as the footer at `at` is left: of an intact one the version that its checksum
 * matches, so that a damaged field makes no older shard of it, otherwise the one it tells.
 */
static uint32_t reported_version(struct tl_bytes file, uint64_t at)
{
    uint8_t footer[TL_SHARD_FOOTER];
    if (at > file.n || file.n - at < TL_SHARD_FOOTER)
        return TL_SHARD_VERSION;
    memcpy(footer, file.p + at, TL_SHARD_FOOTER);
    const uint32_t reported = tl_le32(footer + 8);
    for (uint32_t version = 1; version <= TL_SHARD_VERSION; version++) {
        tl_put_le32(footer + 8, version);
        if (tl_shard_footer_intact(footer))
            return version;
    }
    return reported > 0 && reported < TL_SHARD_VERSION ? reported : TL_SHARD_VERSION;
}

/* Where the sums tell that the body is. */
static uint64_t body_by_sums(const struct tl_sums *s)
{
    uint64_t at = s->at + s->size;
    for (size_t i = 0; i < s->n_blocks; i++)
        at += s->sums[s->n_frames + i].size;
    return at;
}

/* Find the body, by the footer or by the sums. */
static int find_index(struct patient *p)
{
    struct tl_shard_footer footer;
    const struct tl_bytes file = p->file;
    if (file.n > TL_SHARD_FOOTER &&
        tl_shard_footer_read(file.p + file.n - TL_SHARD_FOOTER, file.n, &footer) >= 0) {
        const struct tl_bytes body = {file.p + footer.body, (size_t)footer.body_size};
        const int r = tl_shard_index_decode(&p->view->index, body, &footer);
        if (r != TL_BAD)
            return r;
    }
    if (!p->has_sums)
        return TL_BAD;
    const struct tl_sums *s = &p->sums;
    const uint64_t at = body_by_sums(s);
    const struct tl_bytes body = good_bytes(p, at, s->body);
    const uint32_t version = reported_version(file, at + s->body.size);
    footer = (struct tl_shard_footer){version, s->at, at, s->body.size, s->body.crc};
    return tl_shard_index_decode(&p->view->index, body, &footer);
}

/* No body: take frames and chunks from the sums; nothing else is known of them. */
static int layout(struct patient *p)
{
    const struct tl_sums *s = &p->sums;
    struct tl_shard_index *index = &p->view->index;
    uint64_t at = TL_ZSTF_HEAD;
    if (s->n_frames == 0 || s->n_blocks == 0)
        return hopeless(p, "the checksums cover nothing");
    if (tl_grow(&index->frames, &index->cap_frames, s->n_frames, sizeof(*index->frames)) < 0 ||
        tl_grow(&index->chunks, &index->cap_chunks, s->n_blocks, sizeof(*index->chunks)) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < s->n_frames; i++) {
        index->frames[i] =
            (struct tl_shard_frame){.offset = at, .size = s->sums[i].size, .crc = s->sums[i].crc};
        at += s->sums[i].size;
    }
    at = s->at + s->size;
    for (size_t i = 0; i < s->n_blocks; i++) {
        const struct tl_sum sum = s->sums[s->n_frames + i];
        index->chunks[i] =
            (struct tl_chunk){.items_offset = at, .items_size = sum.size, .items_crc = sum.crc};
        at += sum.size;
    }
    index->n_frames = s->n_frames;
    index->n_chunks = s->n_blocks;
    index->version = reported_version(p->file, body_by_sums(s) + s->body.size);
    return TL_OK;
}

/* ---- the blocks ------------------------------------------------------------------------------ */

static int load_frames(struct patient *p)
{
    struct tl_view *v = p->view;
    v->frames = calloc(v->index.n_frames + 1, sizeof(struct tl_blob *));
    v->items = calloc(v->index.n_chunks + 1, sizeof(struct tl_blob *));
    if (!v->frames || !v->items)
        return TL_NOMEM;
    v->cap_frames = v->index.n_frames + 1;
    v->cap_items = v->index.n_chunks + 1;
    for (size_t i = 0; i < v->index.n_frames; i++) {
        struct tl_shard_frame *f = &v->index.frames[i];
        const struct tl_bytes bytes = good_bytes(p, f->offset, (struct tl_sum){f->size, f->crc});
        const unsigned long long plain = ZSTD_getFrameContentSize(bytes.p, bytes.n);
        if (bytes.n == 0 || plain > UINT32_MAX)
            return hopeless(p, "a chunk of instructions is damaged");
        f->plain = (uint32_t)plain;
        v->frames[i] = tl_blob_of_packed(bytes);
        if (!v->frames[i])
            return TL_NOMEM;
    }
    return TL_OK;
}

static int load_items(struct patient *p)
{
    struct tl_view *v = p->view;
    for (size_t i = 0; i < v->index.n_chunks; i++) {
        const struct tl_chunk *c = &v->index.chunks[i];
        const struct tl_sum sum = {c->items_size, c->items_crc};
        const struct tl_bytes bytes = good_bytes(p, c->items_offset, sum);
        if (sum.size == 0)
            continue;
        if (bytes.n == 0) {
            p->lost++;
            continue;
        }
        v->items[i] = tl_blob_of_packed(bytes);
        if (!v->items[i])
            return TL_NOMEM;
    }
    return TL_OK;
}

/* ---- chunks by their logs -------------------------------------------------------------------- */

struct log_facts {
    struct tl_chunk head;
    bool has_head;
    uint64_t points; /* positions that are items */
    uint64_t end;    /* raw offset */
    uint32_t plain;
};

/* Offsets are relative to the chunk's begin, which is in the log's head. */
static int read_log(struct patient *p, size_t i, struct log_facts *out)
{
    struct tl_buf log = {0};
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position;
    *out = (struct log_facts){0};
    int r = p->view->items[i] ? tl_blob_plain(p->view->items[i], &log) : TL_BAD;
    tl_itemlog_read(&reader, (struct tl_bytes){log.p, log.n}, 0, 0);
    while (r >= 0 && (r = tl_itemlog_next(&reader, &item, &position)) >= 0) {
        if (item.kind == TL_ITEM_CHUNK && !out->has_head) {
            r = tl_chunk_head_decode(&out->head, (struct tl_bytes){item.data, item.n});
            out->has_head = true;
        }
        out->points += tl_item_is_point(p->mend->protocol, item.kind);
    }
    out->end = out->head.at.offset + reader.base.offset;
    out->plain = (uint32_t)log.n;
    tl_buf_fini(&log);
    if (r == TL_EOF)
        r = out->has_head ? TL_OK : TL_BAD;
    return r == TL_BAD ? hopeless(p, "an item log does not tell how its chunk begins") : r;
}

/* Count the markers in a frame. */
static int count_markers(struct patient *p, size_t frame, uint64_t *out)
{
    struct tl_stf_groups head = {0}; /* layout from the shard's header */
    struct tl_buf plain = {0};
    int r = tl_blob_plain(p->view->frames[0], &plain);
    if (r >= 0)
        r = tl_stf_groups_read(&head, (struct tl_bytes){plain.p, plain.n});
    tl_buf_reset(&plain);
    if (r >= 0)
        r = tl_blob_plain(p->view->frames[frame], &plain);
    *out = 0;
    struct tl_stf_group group = {{plain.p, plain.n}, head.layout};
    while (r >= 0 && group.rest.n) {
        struct tl_bytes record;
        if (tl_stf_group_skip(&group, &record) != TL_OK)
            r = hopeless(p, "a chunk of instructions makes no sense");
        else
            *out += record.p[0] == TL_STF_INST_32 || record.p[0] == TL_STF_INST_16;
    }
    tl_stf_groups_fini(&head);
    tl_buf_fini(&plain);
    return r;
}

/* Chunk `i` begins as given in its log; the previous one ends there. */
static int place_chunk(struct patient *p, size_t i, const struct log_facts *facts)
{
    struct tl_shard_index *index = &p->view->index;
    struct tl_chunk *c = &index->chunks[i];
    const uint32_t before = i > 0 ? index->chunks[i - 1].stf : 0;
    c->first = facts->head.first;
    c->marker = facts->head.marker;
    c->at = facts->head.at;
    c->items_plain = facts->plain;
    c->stf = facts->head.stf < index->n_frames ? facts->head.stf : (uint32_t)index->n_frames - 1;
    if (i == 0)
        return c->stf == 0 && c->marker == 0 ? TL_OK : hopeless(p, "item logs are mixed up");
    if (c->first < c[-1].first || c->marker < c[-1].marker || c->stf < before ||
        c->stf > before + 1)
        return hopeless(p, "item logs are mixed up");
    c[-1].n = c->first - c[-1].first;
    if (c->stf > before)
        index->frames[c->stf].marker = c->marker;
    return TL_OK;
}

static int place_chunks(struct patient *p)
{
    struct tl_shard_index *index = &p->view->index;
    struct log_facts facts = {0};
    int r = TL_OK;
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++) {
        r = read_log(p, i, &facts);
        if (r >= 0)
            r = place_chunk(p, i, &facts);
    }
    if (r < 0)
        return r;
    struct tl_chunk *last = &index->chunks[index->n_chunks - 1];
    uint64_t markers;
    r = count_markers(p, index->n_frames - 1, &markers);
    if (r < 0)
        return r;
    markers += index->frames[index->n_frames - 1].marker;
    if (last->stf + 1 != index->n_frames || markers < last->marker)
        return hopeless(p, "item logs and instructions contradict each other");
    last->n = markers - last->marker + facts.points;
    p->end = facts.end;
    index->row.number = p->mend->number;
    index->row.first = index->chunks[0].first;
    index->row.n = last->first + last->n - index->row.first;
    return TL_OK;
}

/* ---- a lost item log ------------------------------------------------------------------------- */

/* Logs what STF contains of a chunk. */
struct relog {
    const struct tl_chunk *chunk; /* its positions are instructions only */
    enum tl_protocol protocol;
    uint64_t markers; /* of the chunk */
    bool open_end;    /* what follows its last instruction belongs to it */
    uint64_t at;      /* marker of the shard */
    uint8_t isa;
    struct tl_itemlog log;
};

static int relog_item(struct relog *l, const struct tl_item *item)
{
    const uint64_t begin = l->chunk->marker, end = begin + l->markers;
    if (item->kind == TL_ITEM_BLOCK) {
        const bool inside = l->at < end && l->at + item->n > begin;
        const uint64_t at = l->at > begin ? l->at - begin : 0;
        int r = TL_OK;
        if (inside && item->block->isa != l->isa)
            r = tl_itemlog_add_isa(&l->log, at, (enum tl_isa)item->block->isa);
        if (inside)
            l->isa = item->block->isa;
        l->at += item->n;
        return r;
    }
    if (l->at < begin || l->at > end || (l->at == end && !l->open_end))
        return TL_OK;
    /* An address after a gap: STF does not distinguish it from a branch. */
    if (tl_item_is_point(l->protocol, item->kind))
        return TL_OK;
    struct tl_item copy = *item;
    copy.offset = l->log.base.offset; /* the STF's offset is meaningless */
    return tl_itemlog_add(&l->log, l->at - begin, &copy);
}

static int relog_items(void *context, const struct tl_item *items, size_t n)
{
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = relog_item(context, &items[i]);
    return r;
}

static int begin_log(struct relog *l)
{
    static const struct tl_item note = {
        .kind = TL_ITEM_NOTE,
        .text = "the item log of these instructions was damaged: times, events and notes are lost"};
    const struct tl_chunk *c = l->chunk;
    struct tl_buf head = {0};
    tl_itemlog_reset(&l->log, c->at.offset, c->at.has_time ? c->at.time : 0);
    l->isa = c->at.isa;
    int r = tl_chunk_head_encode(c, &head);
    if (r >= 0)
        r = tl_itemlog_add_chunk(&l->log, (struct tl_bytes){head.p, head.n});
    tl_buf_fini(&head);
    struct tl_item item = note;
    item.offset = c->at.offset;
    return r < 0 ? r : tl_itemlog_add(&l->log, 0, &item);
}

struct once {
    struct tl_bytes bytes;
    bool given;
};

static int give_once(void *context, struct tl_bytes *out, struct tl_fail *fail)
{
    struct once *once = context;
    if (once->given || once->bytes.n == 0)
        return TL_EOF;
    once->given = true;
    *out = once->bytes;
    return TL_OK;
}

/* Read all STF up to the chunk's end: its state may have been set long before. */
static int read_stf(struct patient *p, uint32_t upto, struct relog *l)
{
    struct tl_buf stf = {0};
    int r = TL_OK;
    for (size_t i = 0; i <= upto && r >= 0; i++)
        r = tl_blob_plain(p->view->frames[i], &stf);
    struct once once = {.bytes = {stf.p, stf.n}};
    const struct tl_stf_source source = {.context = &once, .next = give_once};
    if (r >= 0)
        r = tl_stf_flow_read(&source, relog_items, l, p->fail);
    tl_buf_fini(&stf);
    return r;
}

static int relog_chunk(struct patient *p, size_t i)
{
    struct tl_shard_index *index = &p->view->index;
    struct tl_chunk *c = &index->chunks[i];
    const bool last = i + 1 == index->n_chunks;
    const uint64_t end = last ? index->row.markers : c[1].marker;
    struct relog l = {.chunk = c,
                      .protocol = p->mend->protocol,
                      .markers = end - c->marker,
                      .open_end = last && p->open_end};
    if (end < c->marker || l.markers != c->n)
        return hopeless(p, "an item log is damaged that holds positions itself");
    int r = begin_log(&l);
    if (r >= 0)
        r = read_stf(p, c->stf, &l);
    if (r >= 0) {
        p->view->items[i] = tl_blob_new((struct tl_bytes){l.log.bytes.p, l.log.bytes.n});
        c->items_plain = (uint32_t)l.log.bytes.n;
        r = p->view->items[i] ? TL_OK : TL_NOMEM;
    }
    tl_itemlog_fini(&l.log);
    return r;
}

static int relog(struct patient *p)
{
    struct tl_shard_index *index = &p->view->index;
    int r = TL_OK;
    p->open_end = !p->mend->follows || !tl_shard_ends_with_insn(index);
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++)
        if (!p->view->items[i] && index->chunks[i].items_size > 0)
            r = relog_chunk(p, i);
    return r;
}

/* ---- the whole shard ------------------------------------------------------------------------- */

/* An intact index is kept, except for the contents of its lost logs. */
static int mend_index(struct patient *p)
{
    const struct tl_mend *mend = p->mend;
    const uint64_t byte_last = p->view->index.row.byte_last;
    int r = load_frames(p);
    if (r >= 0)
        r = load_items(p);
    if (r < 0 || (p->has_index && p->lost == 0))
        return r;
    if (!p->has_index && p->lost > 0)
        return hopeless(p, "both the index and an item log are damaged");
    r = p->has_index ? relog(p) : place_chunks(p);
    if (r >= 0)
        r = tl_view_recount(p->view, mend->protocol, mend->image, !p->has_index, p->fail);
    p->view->index.row.byte_last = p->has_index ? byte_last : p->end;
    return r;
}

static int examine(struct patient *p)
{
    int r = tl_sums_find(p->file, &p->sums);
    p->has_sums = r >= 0;
    if (r < 0 && r != TL_NOTFOUND)
        return r;
    r = find_index(p);
    p->has_index = r >= 0;
    if (r != TL_BAD)
        return r;
    return p->has_sums ? layout(p) : hopeless(p, "neither the index nor its checksums are left");
}

int tl_shard_mend(struct tl_bytes file, const struct tl_mend *mend, struct tl_buf *out,
                  struct tl_fail *fail)
{
    const uint64_t head = file.n >= TL_ZSTF_HEAD ? tl_le64(file.p + 4) : 0;
    struct patient p = {.file = file, .mend = mend, .fail = fail, .view = tl_view_new()};
    int r = p.view ? examine(&p) : TL_NOMEM;
    if (r >= 0)
        r = mend_index(&p);
    if (r >= 0)
        r = tl_view_encode(p.view, tl_shard_chunk_markers(&p.view->index, head), mend->packer, out,
                           fail);
    if (r == TL_USAGE)
        r = hopeless(&p, "chunks of instructions are mixed up");
    tl_sums_fini(&p.sums);
    tl_view_put(p.view);
    return r < 0 ? r : p.lost;
}
