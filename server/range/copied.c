/* SPDX-License-Identifier: MIT */
/*
 * Makes a range of frames copied from shards and of a few new records at both ends. Copied frames
 * can stay compressed, so that a range costs little more than reading it.
 */
#include "range/copied.h"

#include "builder/build.h"
#include "range/rewritten.h"
#include "stf/flow/flow_groups.h"
#include "virtual/remake.h"

static void end_views(struct tl_range_copy *copy)
{
    tl_inorder_free(copy->views);
    copy->views = NULL;
}

void tl_range_copy_end(struct tl_range_copy *copy)
{
    tl_buf_fini(&copy->head);
    tl_buf_fini(&copy->trail);
    tl_buf_fini(&copy->frame);
    tl_view_put(copy->view);
    copy->view = NULL;
    end_views(copy);
}

static int contradiction(struct tl_fail *fail, const struct tl_view *view)
{
    return tl_fail_set(fail, TL_BAD, "%s: a chunk contradicts its index; decode again",
                       view->key[0] ? view->key : "the live shard");
}

/* ---- the first group ------------------------------------------------------------------------ */

/* Read the header and the first group of a file: the layout given by the header, the state of a
 * reader after the group, and the size of both. `*size` SIZE_MAX: there is no complete group. */
static int read_first(struct tl_bytes stf, struct tl_stf_layout *layout, uint64_t *pc, size_t *size)
{
    struct tl_stf_groups groups = {0};
    const int head = tl_stf_groups_read(&groups, stf);
    if (head >= 0) {
        *layout = groups.layout;
        *pc = groups.header.pc;
        *size =
            tl_splice_pass(layout, (struct tl_bytes){stf.p + head, stf.n - (size_t)head}, 1, pc);
        *size += *size == SIZE_MAX ? 0 : (size_t)head;
    }
    tl_stf_groups_fini(&groups);
    return head < 0 ? head : TL_OK;
}

#define NEAR 64 /* initial number of positions searched for the first instruction */

/* Write the header and the first group of [from, to) to copy->head. TL_EOF: it ends before it is
 * known what follows that group. */
static int write_head(struct tl_range_copy *copy, uint64_t from, uint64_t to, bool tail,
                      uint64_t *position, struct tl_fail *fail)
{
    struct tl_range_flow flow;
    int r = TL_OK;
    tl_range_flow_begin(&flow, copy->cut, from, to, tail);
    while (r == TL_OK)
        r = tl_range_flow_feed(&flow, 1, fail);
    if (r == TL_AGAIN && flow.flow) { /* otherwise the shard's error */
        const struct tl_bytes bytes = tl_stf_flow_bytes(flow.flow);
        r = tl_buf_add(&copy->head, bytes.p, bytes.n);
        *position = flow.position;
    }
    tl_range_flow_end(&flow);
    return r;
}

/* Get the layout from the head, and where the flow continues after its group. */
static int read_head(struct tl_range_copy *copy)
{
    size_t size;
    const struct tl_bytes head = {copy->head.p, copy->head.n};
    const int r = read_first(head, &copy->layout, &copy->pc, &size);
    return r >= 0 && size == SIZE_MAX ? TL_BAD : r;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Write the records after the group of the instruction at `position`, the last one before `to`, to
 * copy->trail. */
static int write_trail(struct tl_range_copy *copy, uint64_t position, uint64_t to, bool tail,
                       struct tl_fail *fail)
{
    struct tl_range_flow flow;
    int r = TL_OK;
    tl_range_flow_begin(&flow, copy->cut, position, to, tail);
    while (r == TL_OK || r == TL_AGAIN)
        r = tl_range_flow_feed(&flow, UINT64_MAX, fail);
    if (r == TL_EOF) {
        const struct tl_bytes bytes = tl_stf_flow_bytes(flow.flow);
        struct tl_stf_layout layout;
        uint64_t pc;
        size_t at;
        r = read_first(bytes, &layout, &pc, &at);
        if (r >= 0 && at != SIZE_MAX)
            r = tl_buf_add(&copy->trail, bytes.p + at, bytes.n - at);
    }
    tl_range_flow_end(&flow);
    return r < 0 ? r : TL_OK;
}

/* ---- places --------------------------------------------------------------------------------- */

/* Markers of the shard before `position` + `after` (0 or 1), and the last of them, as
 * tl_splice_markers(). */
static int markers_at(const struct tl_range_copy *copy, uint64_t position, unsigned after,
                      size_t *shard, uint64_t *markers, uint64_t *last, struct tl_fail *fail)
{
    const struct tl_cut *const cut = copy->cut;
    struct tl_view *view;
    *shard = tl_cut_shard_at(cut, position);
    if (*shard >= cut->n_rows)
        return TL_UNSUPPORTED;
    int r = tl_cut_view(cut, *shard, &view, fail);
    if (r < 0)
        return r;
    const size_t chunk = tl_shard_chunk_at(&view->index, position);
    r = tl_splice_markers(view, chunk, cut->lane->protocol, position + after, markers, last, fail);
    tl_view_put(view);
    return r;
}

/* Does the shard's last group contain where the flow continues? Others ended among very many items,
 * some of whose records may not be stored, or are older. */
static bool ends_with_group(const struct tl_shard_index *index)
{
    return index->version >= 4 && index->n_frames > 0 && index->frames[0].pc != 0 &&
           tl_shard_ends_with_insn(index);
}

/* Can the groups of this shard be copied? */
static bool copyable(const struct tl_range_copy *copy, size_t shard, const struct tl_view *view)
{
    const struct tl_cut *const cut = copy->cut;
    const struct tl_shard_index *const index = &view->index;
    const struct tl_shard_stats *const stats = &index->stats;
    if (shard < copy->end_shard && !ends_with_group(index))
        return false;
    if (!tl_protocol_has(cut->lane->protocol, TL_TRAIT_RECORDS))
        return index->version >= 2;
    /* Page walks count instructions from the begin of their trace. */
    const bool walks = !stats->reported || !stats->counted ||
                       stats->records[tl_stats_record(TL_STF_PAGE_TABLE_WALK)] > 0;
    return index->version >= 3 && (copy->from == 0 || !walks);
}

/* Is there any marker? */
static bool any_marker(const struct tl_cut *cut, uint64_t from, uint64_t to)
{
    for (size_t i = tl_cut_shard_at(cut, from); i < cut->n_rows && cut->rows[i].first < to; i++)
        if (cut->rows[i].markers > 0)
            return true;
    return false;
}

int tl_range_copy_begin(struct tl_range_copy *out, const struct tl_cut *cut, uint64_t from,
                        uint64_t to, bool tail, struct tl_fail *fail)
{
    *out = (struct tl_range_copy){.cut = cut, .from = from};
    uint64_t first, last;
    if (to > cut->end)
        to = cut->end;
    if (from >= to || !any_marker(cut, from, to))
        return TL_UNSUPPORTED;
    int r = TL_EOF;
    if (to - from > NEAR)
        r = write_head(out, from, from + NEAR, false, &first, fail);
    if (r == TL_EOF)
        r = write_head(out, from, to, tail, &first, fail);
    if (r == TL_EOF)
        return TL_UNSUPPORTED;
    if (r >= 0)
        r = read_head(out);
    if (r >= 0)
        r = markers_at(out, first, 0, &out->shard, &out->marker, NULL, fail);
    if (r >= 0)
        r = markers_at(out, to - 1, 1, &out->end_shard, &out->end_marker, &last, fail);
    if (r >= 0 && last == UINT64_MAX)
        return TL_UNSUPPORTED;
    if (r >= 0 && (tail || last + 1 < to))
        r = write_trail(out, last, to, tail, fail);
    out->marker++; /* it is in the head */
    return r;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* The next frame. */
struct next {
    struct tl_view *view; /* referenced */
    size_t frame;
    uint64_t begin, end; /* its markers, as numbers in the shard */
    uint64_t to;         /* end of the wanted ones */
};

/* The frame that contains a marker. */
static size_t frame_at(const struct tl_shard_index *index, uint64_t marker)
{
    size_t frame = 0;
    while (frame + 1 < index->n_frames && index->frames[frame + 1].marker <= marker)
        frame++;
    return frame;
}

static uint64_t frame_end(const struct tl_shard_index *index, size_t frame)
{
    return frame + 1 < index->n_frames ? index->frames[frame + 1].marker : index->row.markers;
}

/* The end of the frames wanted of a shard. */
static size_t frames_end(const struct tl_range_copy *copy, size_t shard,
                         const struct tl_shard_index *index)
{
    return shard == copy->end_shard ? frame_at(index, copy->end_marker - 1) + 1 : index->n_frames;
}

/* The view of a shard with its wanted frames: those from copy->first_marker on. On any thread. */
static int make_view(void *context, size_t i, void **out, struct tl_fail *fail)
{
    const struct tl_range_copy *const copy = context;
    const size_t shard = copy->first_shard + i;
    struct tl_view *view, *part;
    int r = tl_cut_view(copy->cut, shard, &view, fail);
    if (r < 0)
        return r;
    r = tl_view_part(view, i == 0 ? frame_at(&view->index, copy->first_marker) : 0,
                     frames_end(copy, shard, &view->index), copy->packed, &part, fail);
    tl_view_put(view);
    *out = r < 0 ? NULL : part;
    return r;
}

static void drop_view(void *view)
{
    tl_view_put(view);
}

/* Begin with the next shard. The crew makes the one after it if they are virtual, and not to be
 * packed: then it does the packing. */
static int begin_views(struct tl_range_copy *copy)
{
    const struct tl_cut *const cut = copy->cut;
    const size_t end = copy->end_shard < cut->n_stored ? copy->end_shard + 1 : cut->n_stored;
    const bool helped = !copy->packed && atomic_load(&cut->lane->is_virtual);
    copy->first_shard = copy->shard;
    copy->first_marker = copy->marker;
    copy->views =
        tl_inorder_new(helped ? cut->gen->lake->crew : NULL,
                       end > copy->shard ? end - copy->shard : 0, 1, make_view, drop_view, copy);
    return copy->views ? TL_OK : TL_NOMEM;
}

/* The view of the next shard, with a reference: nearly always that of the last frame. It has the
 * wanted frames from copy->marker on. */
static int view_of(struct tl_range_copy *copy, struct tl_view **out, struct tl_fail *fail)
{
    if (!copy->view || copy->view_shard != copy->shard) {
        void *view = NULL;
        tl_view_put(copy->view);
        copy->view = NULL;
        if (copy->shard != copy->next_shard) /* the reader began anew */
            end_views(copy);
        int r = copy->views ? TL_OK : begin_views(copy);
        if (r >= 0)
            r = tl_inorder_take(copy->views, &view, fail);
        if (r == TL_EOF) /* it is not stored */
            r = make_view(copy, copy->shard - copy->first_shard, &view, fail);
        if (r < 0) {
            end_views(copy); /* the next attempt begins with this shard */
            return r;
        }
        copy->view = view;
        copy->view_shard = copy->shard;
        copy->next_shard = copy->shard + 1;
    }
    *out = tl_view_get(copy->view);
    return TL_OK;
}

/* Can all of the range be regenerated, whose first shard, `view`, is virtual? If it is the only one
 * it is regenerated now. */
static int check_raw(struct tl_range_copy *copy, const struct tl_view *view, struct tl_fail *fail)
{
    const struct tl_cut *const cut = copy->cut;
    struct tl_fail damage = {0};
    struct tl_view *made;
    int r;
    if (copy->shard == copy->end_shard && copy->marker < copy->end_marker) {
        r = view_of(copy, &made, fail);
        if (r >= 0) {
            r = made->incomplete ? TL_UNSUPPORTED : TL_OK;
            tl_view_put(made);
        }
        return r;
    }
    r = tl_remake_check(cut->lane, view, tl_shard_chunk_at(&view->index, copy->from),
                        cut->rows[copy->end_shard].byte_last, &damage);
    if (r < 0 && r != TL_BAD && fail)
        *fail = damage;
    return r == TL_BAD ? TL_UNSUPPORTED : r;
}

int tl_range_copy_check(struct tl_range_copy *copy, struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = copy->shard; i <= copy->end_shard && r >= 0; i++) {
        struct tl_view *view;
        r = tl_cut_view(copy->cut, i, &view, fail);
        if (r < 0)
            break;
        if (!copyable(copy, i, view))
            r = TL_UNSUPPORTED;
        else if (i == copy->shard && view->make)
            r = check_raw(copy, view, fail);
        tl_view_put(view);
    }
    return r;
}

/* TL_EOF: there is none. */
static int find_next(struct tl_range_copy *copy, struct next *out, struct tl_fail *fail)
{
    for (;;) {
        struct tl_view *view;
        if (copy->shard > copy->end_shard ||
            (copy->shard == copy->end_shard && copy->marker >= copy->end_marker))
            return TL_EOF;
        int r = view_of(copy, &view, fail);
        if (r < 0)
            return r;
        const struct tl_shard_index *const index = &view->index;
        const bool last = copy->shard == copy->end_shard;
        if (view->incomplete || !copyable(copy, copy->shard, view)) {
            tl_view_put(view);
            return TL_UNSUPPORTED;
        }
        const uint64_t to = last ? copy->end_marker : index->row.markers;
        if (copy->marker < to) {
            const size_t frame = frame_at(index, copy->marker);
            const uint64_t end = frame_end(index, frame);
            *out =
                (struct next){view, frame, index->frames[frame].marker, end, end < to ? end : to};
            return TL_OK;
        }
        copy->pc = index->frames[0].pc;
        tl_view_put(view);
        copy->shard++;
        copy->marker = 0;
    }
}

/* Skip groups before the next marker: `at` receives the position after them in copy->frame, whose
 * records begin at `at`. */
static int skip(struct tl_range_copy *copy, const struct next *next, size_t *at,
                struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &next->view->index;
    const struct tl_bytes stf = {copy->frame.p, copy->frame.n};
    uint64_t pc = next->frame == 0 ? 0 : index->frames[next->frame].pc;
    if (next->frame == 0) {
        struct tl_stf_groups groups = {0};
        const int r = tl_stf_groups_read(&groups, stf);
        pc = groups.header.pc;
        tl_stf_groups_fini(&groups);
        if (r < 0)
            return contradiction(fail, next->view);
        *at = (size_t)r;
    }
    const size_t size = tl_splice_pass(&copy->layout, (struct tl_bytes){stf.p + *at, stf.n - *at},
                                       copy->marker - next->begin, &pc);
    if (size == SIZE_MAX)
        return contradiction(fail, next->view);
    *at += size;
    return TL_OK;
}

/* Size of the wanted groups from `at` on; advances copy->pc. */
static int measure(struct tl_range_copy *copy, const struct next *next, size_t at, size_t *size,
                   struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &next->view->index;
    const struct tl_bytes rest = {copy->frame.p + at, copy->frame.n - at};
    *size = rest.n;
    if (next->to == next->end && next->frame + 1 < index->n_frames) {
        copy->pc = index->frames[next->frame + 1].pc;
        return TL_OK;
    }
    if (next->to == next->end && copy->shard < copy->end_shard)
        return TL_OK; /* found by find_next() */
    *size = tl_splice_pass(&copy->layout, rest, next->to - copy->marker, &copy->pc);
    return *size == SIZE_MAX ? contradiction(fail, next->view) : TL_OK;
}

int tl_range_copy_next(struct tl_range_copy *copy, struct tl_range_piece *out, struct tl_fail *fail)
{
    struct next next;
    int r = find_next(copy, &next, fail);
    if (r < 0)
        return r;
    size_t at = 0, size = 0;
    tl_buf_reset(&copy->frame);
    if (next.frame == 0 && copy->marker == 0) {
        struct tl_buf plain = {0};
        r = tl_view_frame(next.view, 0, &plain, fail);
        if (r >= 0)
            r = tl_splice_join(next.view, (struct tl_bytes){plain.p, plain.n}, copy->pc,
                               &copy->frame);
        tl_buf_fini(&plain);
    } else {
        r = tl_view_frame(next.view, next.frame, &copy->frame, fail);
        if (r >= 0 && copy->marker > next.begin)
            r = skip(copy, &next, &at, fail);
    }
    out->pc = copy->pc;
    out->markers = next.to - copy->marker;
    if (r >= 0)
        r = measure(copy, &next, at, &size, fail);
    if (r == TL_BAD && fail && !fail->text[0])
        r = contradiction(fail, next.view);
    tl_view_put(next.view);
    if (r < 0)
        return r;
    copy->marker = next.to;
    out->stf = (struct tl_bytes){copy->frame.p + at, size};
    return TL_OK;
}

/* ---- frames in packed form ------------------------------------------------------------------ */

/* Read the begin of the packed frame. */
static int read_begin(const struct tl_range_frame *f, struct tl_packer *packer, struct tl_buf *out,
                      struct tl_fail *fail)
{
    const struct tl_view *const view = f->view;
    const struct tl_shard_frame *const frame = &view->index.frames[f->frame];
    if (!view->backend)
        return tl_splice_packed(view, f->frame, packer, out, fail);
    const size_t n = frame->size < TL_PACK_HEAD_READ ? frame->size : TL_PACK_HEAD_READ;
    return view->backend->ops->get(view->backend, view->key, frame->offset, n, out, fail);
}

/* The frame's own head, kept by its view, or in `begin`. TL_AGAIN: it is not stored separately. */
static int own_head(const struct tl_range_frame *f, struct tl_packer *packer, struct tl_buf *begin,
                    struct tl_bytes *out, struct tl_fail *fail)
{
    *out = tl_view_apart(f->view);
    if (out->n > 0)
        return TL_OK;
    const int r = read_begin(f, packer, begin, fail);
    if (r < 0)
        return r;
    *out = tl_pack_head((struct tl_bytes){begin->p, begin->n});
    if (out->n == 0 || tl_splice_head(*out) != out->n)
        return TL_AGAIN;
    if (f->view->backend)
        tl_view_keep_apart(f->view, *out);
    return TL_OK;
}

/* Make the head of a shard's first frame. TL_AGAIN: it is not stored separately. */
static int make_head(struct tl_range_copy *copy, struct tl_range_frame *f, struct tl_packer *packer,
                     struct tl_fail *fail)
{
    struct tl_buf begin = {0};
    struct tl_bytes old = {0};
    if (f->view->index.version < 4)
        return TL_AGAIN;
    int r = own_head(f, packer, &begin, &old, fail);
    if (r == TL_OK)
        r = tl_splice_join(f->view, old, copy->pc, &f->head);
    if (r == TL_OK && f->head.n > TL_PACK_HEAD)
        r = TL_AGAIN;
    f->old = old.n;
    f->plain = f->plain - old.n + f->head.n;
    f->size = tl_pack_reheaded_size(f->size, old.n, f->head.n);
    tl_buf_fini(&begin);
    return r;
}

void tl_range_frame_end(struct tl_range_frame *frame)
{
    tl_view_put(frame->view);
    tl_buf_fini(&frame->head);
    frame->view = NULL;
}

/* Size of the frame as stored; for a growing shard it is packed. */
static int packed_size(const struct tl_range_frame *f, struct tl_packer *packer, size_t *out)
{
    struct tl_bytes bytes = {.n = f->view->index.frames[f->frame].size};
    const int r =
        f->view->backend ? TL_OK : tl_blob_packed(f->view->frames[f->frame], packer, &bytes);
    *out = bytes.n;
    return r;
}

int tl_range_copy_frame(struct tl_range_copy *copy, uint64_t markers, struct tl_packer *packer,
                        struct tl_range_frame *out, struct tl_fail *fail)
{
    struct next next;
    int r = find_next(copy, &next, fail);
    if (r < 0)
        return r;
    const struct tl_shard_index *const index = &next.view->index;
    const bool inner = next.frame + 1 < index->n_frames;
    /* A chunk ends with a marker. */
    const bool closed = inner || copy->shard < copy->end_shard;
    *out = (struct tl_range_frame){.view = next.view,
                                   .shard = copy->shard,
                                   .frame = next.frame,
                                   .pc = copy->pc,
                                   .plain = index->frames[next.frame].plain};
    if (copy->marker != next.begin || next.to != next.end || next.end - next.begin != markers ||
        !closed)
        r = TL_AGAIN;
    if (r == TL_OK)
        r = packed_size(out, packer, &out->size);
    if (r == TL_OK && next.frame == 0)
        r = make_head(copy, out, packer, fail);
    if (r != TL_OK) {
        tl_range_frame_end(out);
        return r;
    }
    copy->marker = next.to;
    if (inner)
        copy->pc = index->frames[next.frame + 1].pc;
    return TL_OK;
}

int tl_range_frame_read(const struct tl_view *view, size_t frame, const struct tl_bytes *head,
                        struct tl_packer *packer, struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_buf packed = {0};
    if (!head)
        return tl_splice_packed(view, frame, packer, out, fail);
    int r = tl_splice_packed(view, frame, packer, &packed, fail);
    if (r >= 0)
        r = tl_pack_reheaded((struct tl_bytes){packed.p, packed.n}, *head, out);
    tl_buf_fini(&packed);
    return r;
}
