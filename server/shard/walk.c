/* SPDX-License-Identifier: MIT */
/*
 * Reads instructions of a frame and items of its log in order, and joins them to blocks. Nearly all
 * groups are only their closing record, and skipping these quickly decides the speed of a walk.
 */
#include "shard/walk.h"

#include "isa/x86.h"
#include "shard/itemlog.h"
#include "shard/walk_kept.h"

#include <stdlib.h>

void tl_walk_fini(struct tl_walk *walk)
{
    free(walk->items);
    free(walk->positions);
    free(walk->blocks);
    tl_buf_fini(&walk->code);
    tl_buf_fini(&walk->stf);
    tl_buf_fini(&walk->log);
    tl_buf_fini(&walk->frame);
    tl_view_put(walk->view);
    tl_stf_groups_fini(&walk->groups);
    tl_view_put(walk->headed);
    tl_walk_kept_free(walk->kept);
    *walk = (struct tl_walk){0};
}

void tl_walk_slim(struct tl_walk *walk)
{
    tl_buf_fini(&walk->frame);
    tl_view_put(walk->view);
    walk->view = NULL;
}

/* ---- instructions of a frame ----------------------------------------------------------------- */

/* Get the next instruction of the frame, and advance. */
static int next_insn(struct tl_walk *w, uint8_t isa, struct tl_walk_step *insn)
{
    const struct tl_bytes rest = {w->frame.p + w->at, w->frame.n - w->at};
    const int size = tl_walk_step(&w->groups.layout, isa, w->whole, rest, w->pc, insn);
    if (size < 0)
        return size;
    w->pc = insn->next;
    w->at += (size_t)size;
    w->marker++;
    return TL_OK;
}

/*
 * Skip instructions of which only the closing record is present, and that are followed by the next
 * one: nearly all are. At most `n`, or up to the last few of the frame. Returns the number; `*size`
 * is the size of the last.
 */
static inline uint64_t pass_plain(struct tl_walk *w, uint64_t n, uint32_t *size)
{
    const uint8_t *const begin = w->frame.p + w->at, *p = begin;
    const uint8_t *const end = w->frame.p + w->frame.n;
    uint64_t done = 0, wide = 0;
    for (; done < n && end - p >= TL_STF_CLOSING_BYTES; done++) {
        if (*p == TL_STF_INST_32) {
            p += TL_STF_CLOSING_BYTES;
            wide++;
            *size = 4;
        } else if (*p == TL_STF_INST_16) {
            p += TL_STF_CLOSING_BYTES - 2;
            *size = 2;
        } else {
            break;
        }
    }
    w->pc += 2 * (done + wide);
    w->at += (size_t)(p - begin);
    w->marker += done;
    return done;
}

/* Remove `size` bytes of the frame, `at` after the current position; SIZE_MAX: none. */
static void drop(struct tl_walk *w, size_t at, size_t size)
{
    if (at == SIZE_MAX)
        return;
    uint8_t *const p = w->frame.p + w->at + at;
    memmove(p, p + size, w->frame.n - w->at - at - size);
    w->frame.n -= size;
}

static struct tl_bytes rest_of(const struct tl_walk *w)
{
    return (struct tl_bytes){w->frame.p + w->at, w->frame.n - w->at};
}

/* Remove what the shard repeats in its first group, since it was not in the trace: imported records
 * are copied unchanged there, and the current state is in the index. */
static void drop_reported(struct tl_walk *w)
{
    const struct tl_shard_index *const index = &w->headed->index;
    const bool old = index->version < 2;
    if (index->row.number == 0)
        return;
    if (index->version >= 3) {
        struct tl_bytes records;
        size_t size = 0;
        const size_t at = tl_stf_groups_known(&w->groups, rest_of(w), &size, &records);
        drop(w, at, size);
    }
    uint32_t size = 0;
    if (!old || index->row.at.has_mode) {
        const size_t at = tl_stf_groups_mode_reported(&w->groups, rest_of(w),
                                                      old ? &index->row.at.mode : NULL, &size);
        drop(w, at, size);
    }
}

/* The walk's next marker is the first one of the frame. */
static void begin_frame(struct tl_walk *w, const struct tl_shard_frame *frame)
{
    w->marker = frame->marker;
    w->at = 0;
    w->pc = frame->pc;
    if (w->whole && w->frame_number == 0) {
        w->at = w->head;
        w->pc = w->groups.header.pc;
        drop_reported(w);
    }
}

/* Load a frame. */
static int load_frame(struct tl_walk *w, struct tl_view *view, size_t number, struct tl_fail *fail)
{
    tl_buf_reset(&w->frame);
    const int r = tl_view_frame(view, number, &w->frame, fail);
    tl_view_put(w->view);
    w->view = NULL;
    if (r < 0)
        return r;
    w->view = tl_view_get(view);
    w->frame_number = number;
    begin_frame(w, &view->index.frames[number]);
    return TL_OK;
}

/* Its frame is likely to be the next one needed, if any. */
int tl_walk_head(struct tl_walk *w, struct tl_view *view, struct tl_fail *fail)
{
    if (w->headed == view || view->index.n_frames == 0)
        return TL_OK;
    struct tl_bytes head = tl_view_head(view);
    const bool known = head.n > 0;
    tl_view_put(w->headed);
    w->headed = NULL;
    w->whole = false;
    int r = known ? TL_OK : load_frame(w, view, 0, fail);
    if (r < 0)
        return r;
    if (!known)
        head = (struct tl_bytes){w->frame.p, w->frame.n};
    r = tl_stf_groups_read(&w->groups, head);
    if (r < 0)
        return r;
    w->headed = tl_view_get(view);
    w->head = (size_t)r;
    w->whole = !w->groups.ours;
    if (known)
        return TL_OK;
    tl_view_keep_head(view, (struct tl_bytes){head.p, w->head});
    begin_frame(w, &view->index.frames[0]);
    return TL_OK;
}

/* Move to marker `marker` of the chunk's frame. */
static int seek_marker(struct tl_walk *w, struct tl_view *view, const struct tl_chunk *chunk,
                       uint64_t marker, struct tl_fail *fail)
{
    const bool here = w->view == view && w->frame_number == chunk->stf && w->marker <= marker;
    if (!here && chunk->stf >= view->index.n_frames)
        return TL_BAD;
    const int r = here ? TL_OK : load_frame(w, view, chunk->stf, fail);
    if (r < 0)
        return r;
    struct tl_walk_step insn;
    uint32_t size;
    for (;;) {
        pass_plain(w, marker - w->marker, &size);
        if (w->marker == marker)
            return TL_OK;
        if (next_insn(w, TL_ISA_NONE, &insn) < 0)
            return TL_BAD;
    }
}

/* ---- results ------------------------------------------------------------------------------- */

/* Add an item at `position`. NULL: out of memory. */
static inline struct tl_item *next_item(struct tl_walk *w, uint64_t position)
{
    if ((w->n == w->cap_items &&
         tl_grow(&w->items, &w->cap_items, w->n + 1, sizeof(*w->items)) < 0) ||
        (w->n == w->cap_positions &&
         tl_grow(&w->positions, &w->cap_positions, w->n + 1, sizeof(*w->positions)) < 0))
        return NULL;
    w->positions[w->n] = position;
    return &w->items[w->n++];
}

/* Are blocks without code and STF? */
static bool is_brief(const struct tl_walk *w)
{
    return w->each || w->detail > TL_WALK_ALL;
}

/* Begin a block with the instruction at `pc`, whose group is at byte `at` of the frame; its code
 * and stf are offsets until fix_blocks(). */
static struct tl_block *new_block(struct tl_walk *w, uint64_t pc, size_t at,
                                  const struct tl_flow_now *now, uint64_t position)
{
    if (w->n_blocks == w->cap_blocks &&
        tl_grow(&w->blocks, &w->cap_blocks, w->n_blocks + 1, sizeof(*w->blocks)) < 0)
        return NULL;
    struct tl_item *const item = next_item(w, position);
    if (!item)
        return NULL;
    w->last_block = w->n - 1;
    *item = (struct tl_item){.kind = TL_ITEM_BLOCK, .offset = now->offset};
    struct tl_block *b = &w->blocks[w->n_blocks++];
    const size_t stf = is_brief(w) ? at : w->stf.n;
    tl_block_init(b, pc, (enum tl_isa)now->isa);
    if (w->image)
        b->function = tl_walk_kept_function(w, now, pc);
    b->whole = w->whole && !is_brief(w);
    b->code = (const uint8_t *)(uintptr_t)w->code.n;
    b->coded = (const uint8_t *)(uintptr_t)stf;
    return b;
}

/* Are blocks kept? */
static bool keeps(const struct tl_walk *w)
{
    return w->detail == TL_WALK_FLOW && !w->each && !w->whole;
}

/* Add the blocks that are kept of the next `n` instructions. Returns the number of instructions, or
 * TL_NOMEM. */
static int64_t add_kept(struct tl_walk *w, uint64_t n, uint64_t position,
                        const struct tl_flow_now *now)
{
    const struct tl_block *b;
    uint64_t done = 0;
    for (; done < n && (b = tl_walk_kept_take(w, now, n - done)); done += b->n) {
        struct tl_item *const item = next_item(w, position + done);
        if (!item)
            return TL_NOMEM;
        w->last_block = w->n - 1;
        *item = (struct tl_item){.kind = TL_ITEM_BLOCK,
                                 .flags = TL_ITEM_TAKEN,
                                 .offset = now->offset,
                                 .n = b->n,
                                 .block = b};
    }
    return (int64_t)done;
}

/* In a block every instruction of odd length except the last gives the address of the next one. */
static void put_target(struct tl_walk *w, struct tl_block *b)
{
    uint8_t *last = w->stf.p + w->stf.n - b->last_coded;
    memmove(last + TL_STF_TARGET_BYTES, last, b->last_coded);
    last[0] = TL_STF_INST_PC_TARGET;
    tl_put_le64(last + 1, b->pc + b->size);
    w->stf.n += TL_STF_TARGET_BYTES;
    b->coded_size += TL_STF_TARGET_BYTES;
}

static int add_insn(struct tl_walk *w, struct tl_block *b, struct tl_walk_step *insn)
{
    tl_walk_code(insn, b->isa);
    if (tl_buf_reserve(&w->stf, TL_STF_CLOSE_MAX + TL_STF_TARGET_BYTES) < 0 ||
        tl_buf_add(&w->code, insn->code, insn->size) < 0)
        return TL_NOMEM;
    uint8_t close[TL_STF_CLOSE_MAX];
    struct tl_bytes stf = insn->group;
    if (!w->whole) {
        if (b->n > 0 && tl_stf_is_odd(b->last_size))
            put_target(w, b);
        const uint32_t skip = tl_stf_is_odd(insn->size) ? TL_STF_TARGET_BYTES : 0;
        const uint32_t n = tl_stf_close_insn(close, insn->pc, insn->code, insn->size, insn->opcode);
        stf = (struct tl_bytes){close + skip, n - skip};
    }
    const uint32_t n = (uint32_t)stf.n;
    if (tl_buf_add(&w->stf, stf.p, n) < 0)
        return TL_NOMEM;
    b->coded_size += n;
    b->n++;
    b->size += insn->size;
    b->last_size = insn->size;
    b->last_coded = n;
    return TL_OK;
}

static int report_insn(struct tl_walk *w, struct tl_block *b, struct tl_walk_step *insn)
{
    if (w->each) {
        tl_walk_code(insn, b->isa);
        const struct tl_walk_insn reported = {.pc = insn->pc,
                                              .opcode = insn->opcode,
                                              .size = insn->size,
                                              .isa = b->isa,
                                              .code = insn->code,
                                              .group =
                                                  w->whole ? insn->group : (struct tl_bytes){0},
                                              .layout = &w->groups.layout};
        w->each(w->context, &reported);
    }
    b->n++;
    b->size += insn->size;
    b->last_size = insn->size;
    return TL_OK;
}

/* Is the last block an instruction after a gap? */
static bool is_found(const struct tl_walk *w, const struct tl_block *b)
{
    const size_t i = w->last_block;
    return b->n == 1 && i > 0 && w->items[i - 1].kind == TL_ITEM_GAP &&
           w->positions[i - 1] == w->positions[i];
}

/* Can the instruction have branched to the one right after it? After a gap our records give an
 * instruction's destination whether or not it branched: a return is unlikely to have led there. */
static bool may_turn(const struct tl_insn *insn, uint64_t next, bool found)
{
    if (insn->kind == TL_INSN_BRANCH)
        return insn->target == next;
    return !found && (insn->kind == TL_INSN_INDIRECT || insn->kind == TL_INSN_RETURN_EX);
}

/* The same instructions end blocks repeatedly: they are cached by address. NULL: not an
 * instruction. */
static const struct tl_insn *decode_last(struct tl_walk *w, uint8_t isa, struct tl_walk_step *last)
{
    static const struct tl_isa_options options = {.arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct tl_walk_last *const known = &w->lasts[(last->pc >> 1 ^ last->pc >> 9) % TL_WALK_LASTS];
    const bool usual = last->size == 4 || last->size == 2; /* otherwise the opcode is incomplete */
    if (usual && known->size == last->size && known->pc == last->pc &&
        known->opcode == last->opcode && known->isa == isa)
        return &known->insn;
    known->size = 0;
    tl_walk_code(last, isa);
    if (tl_insn_decode((enum tl_isa)isa, &options, last->pc,
                       (struct tl_bytes){last->code, last->size}, &known->insn) < 0)
        return NULL;
    known->pc = last->pc;
    known->opcode = last->opcode;
    known->isa = isa;
    known->size = usual ? last->size : 0;
    return &known->insn;
}

/* Is it an unconditional x86 jump, call or return? One of odd size that leads to the next
 * instruction only has the records that all instructions of that size have. */
static bool always_turns(struct tl_walk *w, uint8_t isa, struct tl_walk_step *insn)
{
    if (w->whole || !tl_isa_is_x86((enum tl_isa)isa) || tl_x86_quick((enum tl_isa)isa, insn->code))
        return false;
    const struct tl_insn *const decoded = decode_last(w, isa, insn);
    return decoded && decoded->kind != TL_INSN_PLAIN && !decoded->conditional;
}

/* Finish a block after its last instruction, which is classified for callers that follow calls.
 * `end` is the byte of the frame where its group ends. */
static void end_block(struct tl_walk *w, struct tl_block *b, struct tl_walk_step *last, size_t end)
{
    struct tl_item *const item = &w->items[w->n - 1];
    const bool reported = !w->each && w->detail <= TL_WALK_FLOW;
    const bool straight = !w->whole && !last->leaves && item->flags & TL_ITEM_TAKEN &&
                          last->next == last->pc + last->size;
    const struct tl_insn *const insn = reported || straight ? decode_last(w, b->isa, last) : NULL;
    if (is_brief(w))
        b->coded_size = (uint32_t)(end - (uintptr_t)b->coded);
    if (!insn)
        return;
    if (straight && !may_turn(insn, last->next, is_found(w, b)))
        item->flags &= (uint8_t)~TL_ITEM_TAKEN;
    if (!reported)
        return;
    /* Other writers need not say that an exception return went somewhere. */
    if (w->whole && insn->kind == TL_INSN_RETURN_EX && !insn->conditional && !last->faulted)
        item->flags |= TL_ITEM_TAKEN;
    tl_block_set_last(b, insn);
}

/* ---- several instructions at once --------------------------------------------------------- */

/* Add as many plain instructions as belong to the block and need no callback, at most `n`: `last`
 * is then the last of them. Returns their number. */
static uint64_t add_plain(struct tl_walk *w, struct tl_block *b, uint64_t n,
                          struct tl_walk_step *last)
{
    const uint64_t room = TL_BLOCK_MAX - b->n;
    uint32_t size = 0;
    n = pass_plain(w, n < room ? n : room, &size);
    if (n == 0)
        return 0;
    const uint8_t *const end = w->frame.p + w->at;
    *last = (struct tl_walk_step){.pc = w->pc - size,
                                  .next = w->pc,
                                  .opcode = size == 4 ? tl_le32(end - 4) : tl_le16(end - 2),
                                  .size = (uint8_t)size};
    b->n += (uint32_t)n;
    b->size = (uint32_t)(w->pc - b->pc);
    b->last_size = (uint8_t)size;
    return n;
}

/* Skip the next instruction if only its destination is recorded. */
static inline bool pass_taken(struct tl_walk *w, struct tl_walk_step *insn)
{
    const uint8_t *const p = w->frame.p + w->at, *const closing = p + TL_STF_TARGET_BYTES;
    if (w->frame.n - w->at < TL_STF_TARGET_BYTES + TL_STF_CLOSING_BYTES ||
        p[0] != TL_STF_INST_PC_TARGET)
        return false;
    const bool wide = closing[0] == TL_STF_INST_32;
    if (!wide && closing[0] != TL_STF_INST_16)
        return false;
    *insn = (struct tl_walk_step){.pc = w->pc,
                                  .next = tl_le64(p + 1),
                                  .opcode = wide ? tl_le32(closing + 1) : tl_le16(closing + 1),
                                  .size = wide ? 4 : 2,
                                  .taken = true};
    w->pc = insn->next;
    w->at += TL_STF_TARGET_BYTES + (wide ? TL_STF_CLOSING_BYTES : TL_STF_CLOSING_BYTES - 2);
    w->marker++;
    return true;
}

/* Such an instruction ends its block. */
static bool add_taken(struct tl_walk *w, struct tl_block *b, struct tl_walk_step *last)
{
    if (b->n == TL_BLOCK_MAX || !pass_taken(w, last))
        return false;
    b->n++;
    b->size += last->size;
    b->last_size = last->size;
    b->end = TL_BLOCK_WAYPOINT;
    w->items[w->n - 1].flags |= TL_ITEM_TAKEN;
    return true;
}

/* Skip runs of plain instructions, and branches after them, outside of the wanted addresses. At
 * most `n`; returns their number. */
static uint64_t pass_elsewhere(struct tl_walk *w, uint64_t n)
{
    uint64_t done = 0;
    for (;;) {
        const uint64_t pc = w->pc, marker = w->marker;
        const size_t at = w->at;
        struct tl_walk_step insn;
        uint32_t size;
        uint64_t run = pass_plain(w, n - done, &size), end = w->pc;
        if (run < n - done && pass_taken(w, &insn)) {
            end = insn.pc + insn.size;
            run++;
        }
        if (run == 0)
            return done;
        if (end > w->pc_from && pc < w->pc_to) {
            w->pc = pc;
            w->at = at;
            w->marker = marker;
            return done;
        }
        done += run;
    }
}

/*
 * Add as many of `n` instructions to brief blocks as can be processed quickly. `*block` is the
 * unfinished one, or NULL, and `last` its last instruction. Returns their number, or TL_NOMEM.
 */
static int64_t add_quickly(struct tl_walk *w, struct tl_block **block, uint64_t n,
                           uint64_t position, const struct tl_flow_now *now,
                           struct tl_walk_step *last)
{
    struct tl_block *b = *block;
    uint64_t done = 0;
    while (done < n && now->isa != TL_ISA_NONE) {
        if (!b && w->pc_to > 0)
            done += pass_elsewhere(w, n - done);
        if (!b && keeps(w)) {
            const int64_t known = add_kept(w, n - done, position + done, now);
            if (known < 0)
                return TL_NOMEM;
            done += (uint64_t)known;
            if (done == n)
                break;
        }
        const uint8_t *const p = w->frame.p + w->at;
        if (!b && (w->frame.n - w->at < TL_STF_CLOSING_BYTES ||
                   (*p != TL_STF_INST_32 && *p != TL_STF_INST_16)))
            break;
        if (!b && !(b = new_block(w, w->pc, w->at, now, position + done)))
            return TL_NOMEM;
        done += add_plain(w, b, n - done, last);
        if (done == n || !add_taken(w, b, last))
            break;
        end_block(w, b, last, w->at);
        if (keeps(w))
            tl_walk_keep(w, now, b, TL_STF_TARGET_BYTES + 1u + last->size);
        b = NULL;
        done++;
    }
    *block = b;
    return (int64_t)done;
}

/* Add `n` instructions of the frame, the first at `position`. */
static int add_insns(struct tl_walk *w, uint64_t n, uint64_t position,
                     const struct tl_flow_now *now)
{
    struct tl_block *b = NULL;
    struct tl_walk_step insns[2], *insn = &insns[0];
    struct tl_walk_step *last = &insns[1]; /* of the block, if there is one */
    const bool quick = is_brief(w) && !w->each;
    for (uint64_t i = 0;; i++) {
        const int64_t done = quick ? add_quickly(w, &b, n - i, position + i, now, last) : 0;
        if (done < 0)
            return TL_NOMEM;
        i += (uint64_t)done;
        if (i == n)
            break;
        if (next_insn(w, now->isa, insn) < 0)
            return TL_BAD;
        if (b && (insn->pc != b->pc + b->size || b->n == TL_BLOCK_MAX || b->isa == TL_ISA_NONE)) {
            end_block(w, b, last, w->at - insn->group.n);
            b = NULL;
        }
        if (!b)
            b = new_block(w, insn->pc, w->at - insn->group.n, now, position + i);
        if (!b || (is_brief(w) ? report_insn(w, b, insn) : add_insn(w, b, insn)) < 0)
            return TL_NOMEM;
        const bool jumps = insn->next != insn->pc + insn->size;
        const bool taken =
            jumps || !tl_stf_is_odd(insn->size) ? insn->taken : always_turns(w, now->isa, insn);
        if (taken)
            w->items[w->n - 1].flags |= TL_ITEM_TAKEN;
        if (taken || jumps) {
            b->end = TL_BLOCK_WAYPOINT;
            end_block(w, b, insn, w->at);
            if (keeps(w) && taken && !insn->leaves && !insn->faulted)
                tl_walk_keep(w, now, b, insn->group.n);
            b = NULL;
        }
        struct tl_walk_step *const other = last;
        last = insn;
        insn = other;
    }
    if (b)
        end_block(w, b, last, w->at);
    return TL_OK;
}

int tl_walk_insn(const struct tl_walk *walk, const struct tl_block *block, size_t *at, uint64_t pc,
                 struct tl_walk_step *out)
{
    const struct tl_bytes rest = {block->coded + *at, block->coded_size - *at};
    const int size = tl_walk_step(&walk->groups.layout, block->isa, walk->whole, rest, pc, out);
    if (size < 0)
        return size;
    *at += (size_t)size;
    return TL_OK;
}

/* Buffers no longer move: convert the blocks' offsets to pointers. */
static void fix_blocks(struct tl_walk *w)
{
    struct tl_block *b = w->blocks;
    for (size_t i = 0; i < w->n; i++) {
        struct tl_item *item = &w->items[i];
        if (item->kind != TL_ITEM_BLOCK || item->block)
            continue;
        const size_t stf = (uintptr_t)b->coded;
        b->code = is_brief(w) ? NULL : w->code.p + (uintptr_t)b->code;
        b->coded = is_brief(w) ? w->frame.p + stf : w->stf.p + stf;
        if (b->whole)
            b->reported = &w->groups.reported;
        item->n = b->n;
        item->block = b++;
    }
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Current position of a walk in a chunk. */
struct place {
    const struct tl_chunk *chunk;
    struct tl_view *view;
    const struct tl_walk_range *range;
    uint64_t position;
    uint64_t marker; /* marker of the shard, for the instruction at `position` */
    struct tl_flow_now now;
};

/* Process instructions up to position `to`. */
static int pass_insns(struct tl_walk *w, struct place *at, uint64_t to, struct tl_fail *fail)
{
    const struct tl_walk_range *range = at->range;
    uint64_t begin = at->position > range->from ? at->position : range->from;
    uint64_t end = to < range->to ? to : range->to;
    if (begin < end && w->detail != TL_WALK_ITEMS) {
        int r = seek_marker(w, at->view, at->chunk, at->marker + (begin - at->position), fail);
        if (r >= 0) {
            r = add_insns(w, end - begin, begin, &at->now);
        }
        if (r < 0)
            return r;
    }
    at->marker += to - at->position;
    at->position = to;
    return TL_OK;
}

static bool wanted(const struct place *at)
{
    const struct tl_walk_range *range = at->range;
    if (at->position < range->from)
        return false;
    return at->position < range->to || range->tail;
}

/* The log, rather than a record, contains that the last instruction changed the flow. */
static void turn_last(struct tl_walk *w, uint64_t position)
{
    struct tl_block *const b = w->n_blocks > 0 ? &w->blocks[w->n_blocks - 1] : NULL;
    if (!b || w->items[w->last_block].block || w->positions[w->last_block] + b->n != position)
        return;
    b->end = TL_BLOCK_WAYPOINT;
    w->items[w->last_block].flags |= TL_ITEM_TAKEN;
}

static int pass_item(struct tl_walk *w, struct place *at, const struct tl_item *item)
{
    const bool before = at->position < at->range->from;
    if (item->kind == TL_ITEM_STACK)
        w->stack = (struct tl_bytes){item->data, item->n};
    if (wanted(at) && item->kind < TL_ITEM_KINDS) {
        struct tl_item *const next = next_item(w, at->position);
        if (!next)
            return TL_NOMEM;
        *next = *item;
    }
    tl_flow_now_item(&at->now, item);
    if (w->kept)
        tl_walk_kept_pass(w, item, &at->now);
    if (before)
        w->now = at->now;
    return TL_OK;
}

/* The log's last GAP and NOTE, which are about a missing range, belong to any range that begins in
 * it. */
static int report_missing(struct tl_walk *w, struct place *at)
{
    const struct tl_chunk *const c = at->chunk;
    struct tl_itemlog_reader reader;
    struct tl_item item, last[2] = {{.kind = TL_ITEM_LOST}, {.kind = TL_ITEM_LOST}};
    uint64_t position;
    int r = TL_OK;
    tl_itemlog_read(&reader, (struct tl_bytes){w->log.p, w->log.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    while (tl_itemlog_next(&reader, &item, &position) == TL_OK)
        if (item.kind == TL_ITEM_GAP || item.kind == TL_ITEM_NOTE)
            last[item.kind == TL_ITEM_NOTE] = item;
    for (size_t i = 0; i < 2 && r >= 0; i++)
        if (last[i].kind != TL_ITEM_LOST)
            r = pass_item(w, at, &last[i]);
    return r;
}

/* Skip the missing positions up to `to`. */
static int pass_missing(struct tl_walk *w, struct place *at, uint64_t to)
{
    const bool reported = at->position >= at->range->from;
    int r = TL_OK;
    if (!reported && to > at->range->from) {
        at->position = at->range->from;
        r = report_missing(w, at);
    }
    at->position = to;
    return r;
}

static int pass_chunk(struct tl_walk *w, struct place *at, struct tl_fail *fail)
{
    const struct tl_chunk *c = at->chunk;
    const uint64_t end = c->first + c->n;
    struct tl_itemlog_reader reader;
    tl_itemlog_read(&reader, (struct tl_bytes){w->log.p, w->log.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    for (;;) {
        struct tl_item item;
        uint64_t position;
        int r = tl_itemlog_next(&reader, &item, &position);
        if (r == TL_EOF)
            return pass_insns(w, at, end, fail);
        if (r < 0)
            return r;
        position += c->first;
        if (position < at->position)
            return TL_BAD;
        /* A snapshot's log may be ahead of the readable instructions. */
        if (position > end)
            return pass_insns(w, at, end, fail);
        r = pass_insns(w, at, position, fail);
        if (r >= 0 && reader.turned)
            turn_last(w, position);
        if (r >= 0 && item.kind == TL_ITEM_LOST) {
            r = item.value > end - position ? TL_BAD : pass_missing(w, at, position + item.value);
            if (r < 0)
                return r;
            continue;
        }
        const bool point = tl_item_is_point(at->range->protocol, item.kind);
        if (r >= 0 && point && position == end)
            return TL_OK;
        if (r >= 0)
            r = pass_item(w, at, &item);
        if (r < 0)
            return r;
        at->position += point;
        if (at->position > at->range->to && !at->range->tail)
            return TL_OK;
    }
}

int tl_walk_chunk(struct tl_walk *w, struct tl_view *view, size_t chunk,
                  const struct tl_walk_range *range, struct tl_fail *fail)
{
    const struct tl_chunk *c = &view->index.chunks[chunk];
    struct place at = {.chunk = c,
                       .view = view,
                       .range = range,
                       .position = c->first,
                       .marker = c->marker,
                       .now = c->at};
    w->n = w->n_blocks = 0;
    w->stack = (struct tl_bytes){0};
    w->now = c->at;
    tl_buf_reset(&w->code);
    tl_buf_reset(&w->stf);
    tl_buf_reset(&w->log);
    int r = tl_view_items(view, chunk, &w->log, fail);
    if (r < 0)
        return r;
    if (tl_protocol_has(range->protocol, TL_TRAIT_RECORDS))
        r = tl_walk_head(w, view, fail);
    if (r >= 0 && (w->image || w->detail == TL_WALK_FLOW))
        r = tl_walk_kept_begin(w);
    if (r >= 0)
        r = pass_chunk(w, &at, fail);
    if (r == TL_BAD)
        return tl_fail_set(fail, TL_BAD, "%s: chunk %zu contradicts its index; decode again",
                           view->key[0] ? view->key : "the live shard", chunk);
    if (r < 0)
        return r;
    fix_blocks(w);
    return TL_OK;
}
