/* SPDX-License-Identifier: MIT */
/*
 * Runs of blocks to STF records: whole blocks, with the gaps and addresses between them, are copied
 * one after the other as long as nothing special is to be done. That is most of a trace, so that
 * the state of copying stays in registers.
 */
#include "stf/flow/flow_copy.h"
#include "stf/flow/flow_parts.h"

/* Space needed in addition to a block's records: INST_PC_TARGET, the previous instruction, and the
 * surplus of copying in pieces. */
#define BLOCK_ROOM ((size_t)2 * TL_BLOCK_SLACK)

/* Minimum steps of a path for which the specialised copy function pays off. */
#define LONG_PATH 6

/* Inline, so that a copier stays in registers. */
#define INLINE TL_COPY_INLINE

/* State while copying a run of whole blocks, including the gaps and addresses between them. */
struct copier {
    struct tl_stf_cursor at;
    const uint8_t *begin, *end;     /* start of the records; end of the space */
    uint64_t left;                  /* markers before the next cut; if `apart`, one more */
    uint8_t isa;                    /* instruction set of blocks that can be copied */
    bool apart;                     /* no instruction is held back: at.tail is unused */
    bool force;                     /* as in struct tl_stf_front */
    uint8_t points;                 /* as in struct tl_stf_flow */
    bool begun;                     /* `apart`, and a block was copied */
    bool open;                      /* as in struct tl_stf_flow */
    const struct tl_block *last;    /* copied except for its last instruction; NULL: none */
    bool known;                     /* `apart`: the next address is known, from `point` */
    const struct tl_item *point;    /* the last branch with only a target; NULL: none */
    bool line;                      /* the last gap's comment is to precede the next record */
    struct tl_stf_repeats *repeats; /* used if steps are noted */
};

/* Returns false if nothing can be copied, e.g. because there is no space yet. */
static INLINE bool begin_copy(const struct tl_stf_flow *flow, uint64_t stop, struct copier *c)
{
    const struct tl_stf_held *const held = &flow->held;
    const struct tl_stf_front *const front = &flow->front;
    const bool apart = !held->valid;
    if (!flow->out.p || !flow->header || flow->whole || flow->markers >= stop ||
        (flow->repeats && flow->out.cap > TL_STF_REPEAT_MAX) ||
        (apart ? front->lead.n || front->pre.n || flow->mode_due
               : front->any || !tl_stf_held_is_plain(held, (enum tl_isa)flow->state.isa)))
        return false;
    *c = (struct copier){.at = {.p = flow->out.p + flow->out.n,
                                .tail = held->close,
                                .tail_n = held->close_n,
                                .taken = held->taken,
                                .odd = held->odd_size,
                                .next = held->next},
                         .begin = flow->out.p,
                         .end = flow->out.p + flow->out.cap,
                         .left = stop - flow->markers + apart,
                         .isa = tl_stf_flow_copied_isa(flow),
                         .apart = apart,
                         .force = front->force,
                         .points = flow->points,
                         .open = flow->open,
                         .known = flow->state.has_pc,
                         .repeats = flow->repeats};
    return true;
}

/* Copy a block if there is space and no cut. Returns false if it needs individual treatment. */
static INLINE bool copy_block(struct copier *c, const struct tl_block *b, uint32_t n, bool taken,
                              bool marks)
{
    const bool fits =
        (size_t)(c->end - c->at.p) >= (size_t)b->coded_size + BLOCK_ROOM && b->n < c->left;
    if (!(fits & (n == b->n) & tl_stf_copy_leads(&c->at, b, c->isa)))
        return false;
    if (marks) {
        const uintptr_t step = tl_path_step(b, taken);
        struct tl_stf_cursor at = c->at;
        if (tl_stf_repeats_copy(c->repeats, &at, &step, &step + 1, c->begin, c->isa) == &step)
            return false;
        c->at = at;
    } else {
        tl_stf_copy_step(&c->at, b, taken, true);
    }
    c->left -= b->n;
    c->last = b;
    return true;
}

/* Write the held-back instruction when the next address is unknown. */
static INLINE bool leave(const struct tl_stf_flow *flow, struct copier *c)
{
    if (c->apart)
        return true;
    if (c->left == 1)
        return false;
    const bool known =
        c->last ? c->at.taken && c->last->last_kind == TL_INSN_BRANCH : flow->held.has_target;
    const uint64_t target = !known ? c->at.next : c->last ? c->last->target : flow->held.target;
    const bool write = known | c->at.odd;
    uint8_t *p = c->at.p;
    p[0] = TL_STF_INST_PC_TARGET;
    tl_put_le64(p + 1, target);
    p += write ? TL_STF_TARGET_BYTES : 0;
    memcpy(p, c->at.tail, TL_BLOCK_TAIL);
    c->at.p = p + c->at.tail_n;
    c->at.next = target;
    c->apart = true;
    c->open = false;
    c->points = TL_STF_POINTS_ALONE;
    return true;
}

/*
 * Can this gap, or branch with only a target, be written by put_gaps()? False: it needs individual
 * treatment.
 */
static INLINE bool may_pass(struct tl_stf_flow *flow, struct copier *c, const struct tl_item *item,
                            bool line)
{
    if (line && (item->flags & TL_ITEM_HAS_VALUE || tl_stf_flow_gap_line(flow, item->sub) < 0 ||
                 tl_buf_reserve(&flow->front.lead, flow->gap.n) < 0))
        return false;
    return (size_t)(c->end - c->at.p) >= BLOCK_ROOM && leave(flow, c);
}

/*
 * Write the records of such an item, and of following items of the same kind, at `*at`; except for
 * the first one, not beyond `end`. Returns the number of items. `line`, unless NULL, is written
 * after each item that is followed by a branch, in whose group it is. This is most of a trace if
 * the image does not contain the program.
 */
static __attribute__((noinline)) size_t put_gaps(uint8_t **at, const uint8_t *end,
                                                 const struct tl_item *items, size_t n,
                                                 const struct tl_stf_gap_line *line,
                                                 uint8_t *points)
{
    const bool point = tl_item_is_branch(items);
    const uint32_t head = tl_item_head(items);
    uint8_t *p = *at;
    size_t i = 0;
    if (point && *points != TL_STF_POINTS_TARGETS) {
        *points = TL_STF_POINTS_TARGETS;
        p = tl_stf_flow_put_points(p, TL_STF_POINTS_TARGETS);
    }
    do {
        p[0] = TL_STF_FORCE_PC;
        tl_put_le64(p + 1, tl_item_address(&items[i]));
        p += point ? TL_STF_TARGET_BYTES : 0;
        i++;
        if (line && (i == n || !tl_stf_flow_is_point(&items[i])))
            break;
        if (line) {
            memcpy(p, line->line, sizeof line->line);
            p += line->n;
        }
    } while (p < end && i < n && tl_item_head(&items[i]) == head);
    *at = p;
    return i;
}

/*
 * Copy a block when nothing is held back and only its address must be reported first. Returns false
 * if it needs individual treatment.
 */
static INLINE bool copy_apart(struct copier *c, const struct tl_block *b, bool taken, uint64_t stop,
                              bool marks)
{
    if (b->plain != c->isa)
        return false;
    const uint8_t first = b->coded[0];
    /* A single instruction is held back with its FORCE_PC, so that the step after it is none to be
     * noted; without marks, that may be written now. */
    const bool good = c->force & (c->left != stop + 1) & (b->n > 1 || !marks) &
                      ((first == TL_STF_INST_32) | (first == TL_STF_INST_16)) &
                      ((size_t)(c->end - c->at.p) >= (size_t)b->coded_size + 2 * BLOCK_ROOM) &
                      (b->n < c->left);
    if (__builtin_expect(!good, 0))
        return false;
    uint8_t *const p = c->at.p;
    p[0] = TL_STF_FORCE_PC;
    tl_put_le64(p + 1, b->pc);
    c->at.p += TL_STF_TARGET_BYTES;
    c->at.taken = c->at.odd = false;
    c->at.tail_n = 0;
    tl_stf_copy_step(&c->at, b, taken, true);
    c->left -= b->n;
    c->last = b;
    c->begun = true;
    c->apart = c->force = c->known = c->open = false;
    c->points = TL_STF_POINTS_ALONE;
    return true;
}

static INLINE void end_copy(struct tl_stf_flow *flow, uint64_t stop, const struct copier *c)
{
    struct tl_stf_front *const front = &flow->front;
    const struct tl_block *const b = c->last;
    if (!b && !c->apart)
        return;
    flow->out.n = (size_t)(c->at.p - flow->out.p);
    if (c->begun || c->point)
        flow->reported = flow->state;
    if (c->point)
        flow->state.pc = tl_item_address(c->point);
    if (c->line) {
        memcpy(front->lead.p + front->lead.n, flow->gap.line, flow->gap.n);
        front->lead.n += flow->gap.n;
    }
    flow->state.has_pc = c->known;
    front->force = front->any = c->force;
    flow->points = c->points;
    flow->open = c->open;
    flow->held.valid = false;
    const uint64_t markers = stop - c->left + c->apart;
    if (c->apart && markers != flow->markers)
        flow->track = c->at.next;
    flow->markers = markers; /* one is written as another is held back */
    if (c->apart)
        return;
    flow->track = b->pc + b->size - b->last_size;
    tl_stf_flow_hold(flow, b, true, c->at.taken, c->at.tail, c->at.tail_n, b->size - b->last_size,
                     b->last_size);
}

/* Is there space for everything a path can need, and no cut? */
static INLINE bool is_ample(const struct copier *c, const struct tl_item *item)
{
    const uint64_t room = (uint64_t)(c->end - c->at.p);
    return item->value < c->left && room > 4 * BLOCK_ROOM &&
           item->value < room / 2 / TL_STF_CLOSE_MAX &&
           item->n < (room / 2 - BLOCK_ROOM) / TL_STF_TARGET_BYTES;
}

/* Copy the steps of a path from `i` on, with space for all of them; as copy_steps(). */
static INLINE size_t copy_many(const struct tl_stf_flow *flow, struct copier *c,
                               const struct tl_item *item, size_t i, bool marks)
{
    const uintptr_t *const path = item->path;
    struct tl_stf_cursor at = c->at; /* a copy, so that the address of the copier is not taken */
    const uintptr_t *const step =
        marks ? tl_stf_repeats_copy(c->repeats, &at, path + i, path + item->n, c->begin, c->isa)
              : tl_stf_copy_path(&at, path + i, path + item->n, c->isa);
    const size_t end = (size_t)(step - path);
    c->at = at;
    if (end > i)
        c->last = tl_path_block(path[end - 1]);
    if (i == 0 && end == item->n)
        c->left -= item->value;
    else
        for (; i < end; i++)
            c->left -= tl_path_block(path[i])->n;
    return end;
}

/* Copy the steps of a path from `i` on; returns the first one not copied. */
static INLINE size_t copy_steps(const struct tl_stf_flow *flow, struct copier *c,
                                const struct tl_item *item, size_t i, bool marks)
{
    if (item->n - i >= LONG_PATH && is_ample(c, item))
        return copy_many(flow, c, item, i, marks);
    for (; i < item->n; i++) {
        const struct tl_block *const b = tl_path_block(item->path[i]);
        if (!copy_block(c, b, b->n, tl_path_taken(item->path[i]), marks))
            break;
    }
    return i;
}

/* Kinds of items that leave no records unless there are comments. Notes may be of accesses. */
#define SILENT                                                                                     \
    (1u << TL_ITEM_TIME | 1u << TL_ITEM_CYCLES | 1u << TL_ITEM_EVENT | 1u << TL_ITEM_SOFTWARE |    \
     1u << TL_ITEM_HARDWARE)

/*
 * The paths at the begin of items[0..n) whose steps lie side by side in memory, with nothing but
 * silent items between them, as one path. Returns the number of items up to the last of them.
 */
static INLINE size_t join_paths(const struct tl_item *items, size_t n, uint32_t silent,
                                struct tl_item *joined)
{
    enum { ENOUGH = 256 }; /* steps */
    size_t end = 1;
    *joined = *items;
    for (size_t i = 1; i < n && joined->n < ENOUGH; i++) {
        if (silent >> items[i].kind & 1)
            continue;
        if (items[i].kind != TL_ITEM_PATH || items[i].path != joined->path + joined->n)
            break;
        joined->n += items[i].n;
        joined->value += items[i].value;
        end = i + 1;
    }
    return end;
}

/* Progress: items before `item`, and of that one the steps before `step`. */
struct progress {
    size_t item, step;
    uint32_t insns; /* in these steps */
};

/* Progress where `step` counts from the begin of items[item], and steps of following paths, too. */
static INLINE struct progress progress_at(const struct tl_item *items, size_t item, size_t step)
{
    struct progress at = {item, step, 0};
    for (; at.step >= items[at.item].n || items[at.item].kind != TL_ITEM_PATH; at.item++)
        at.step -= items[at.item].kind == TL_ITEM_PATH ? items[at.item].n : 0;
    for (size_t i = 0; i < at.step; i++)
        at.insns += tl_path_block(items[at.item].path[i])->n;
    return at;
}

/* copy_from(), specialised by `marks`. */
static INLINE void copy_items(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                              uint64_t stop, struct progress *at, bool marks)
{
    const bool comments = flow->options.comments;
    const uint32_t silent = comments ? 0 : SILENT;
    struct copier c;
    size_t i = 0, step = at->step;
    if (!begin_copy(flow, stop, &c))
        return;
    for (; i < n; i++) {
        const struct tl_item *const item = &items[i];
        if (flow->dry && (item->kind == TL_ITEM_PATH || item->kind == TL_ITEM_BLOCK))
            break;
        if (item->kind == TL_ITEM_PATH) {
            struct tl_item joined;
            const struct tl_item *path = item;
            size_t last = i;
            if (i + 2 < n && silent >> item[1].kind & 1) {
                last += join_paths(item, n - i, silent, &joined) - 1;
                path = &joined;
            }
            if (c.apart) {
                const uintptr_t first = item->path[step];
                if (!copy_apart(&c, tl_path_block(first), tl_path_taken(first), stop, marks))
                    break;
                step++;
            }
            step = copy_steps(flow, &c, path, step, marks);
            if (step < path->n)
                break;
            step = 0;
            i = last;
        } else if (item->kind == TL_ITEM_GAP || tl_stf_flow_is_point(item)) {
            const bool line = comments && item->kind == TL_ITEM_GAP;
            if (!may_pass(flow, &c, item, line))
                break;
            if (line || tl_item_is_branch(item)) {
                uint8_t *p = c.at.p;
                i += put_gaps(&p, c.end - BLOCK_ROOM, item, n - i, line ? &flow->gap : NULL,
                              &c.points) -
                     1;
                c.at.p = p;
            }
            c.force = true;
            if (tl_item_is_branch(item)) {
                c.point = &items[i];
                c.known = c.open = true;
            }
            if (line && (i + 1 == n || !tl_stf_flow_is_point(&items[i + 1]))) {
                c.line = true; /* goes before whatever comes next */
                i++;
                break;
            }
        } else if (item->kind == TL_ITEM_BLOCK) {
            if (c.apart ||
                !copy_block(&c, item->block, item->n, item->flags & TL_ITEM_TAKEN, marks))
                break;
        } else if (!(silent >> item->kind & 1)) {
            break;
        }
    }
    end_copy(flow, stop, &c);
    *at = step > 0 ? progress_at(items, i, step) : (struct progress){i, 0, 0};
}

/*
 * Copy as many of items[0..n) as possible, from step at->step of the first one on: whole blocks,
 * gaps and mere addresses between them, and items without records. Advances `at`.
 */
static __attribute__((noinline)) void copy_from(struct tl_stf_flow *flow,
                                                const struct tl_item *items, size_t n,
                                                uint64_t stop, struct progress *at)
{
    if (tl_stf_flow_notes(flow))
        copy_items(flow, items, n, stop, at, true);
    else
        copy_items(flow, items, n, stop, at, false);
}

size_t tl_stf_flow_run(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                       uint64_t stop, uint32_t *done)
{
    struct progress at = {0};
    copy_from(flow, items, n, stop, &at);
    *done = at.insns;
    return at.item;
}

int64_t tl_stf_flow_path(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                         uint64_t stop, uint32_t *done)
{
    struct progress at = {0};
    uint32_t within = *done; /* instructions of the next step that were used already */
    for (; within > 0 && within >= tl_path_block(items->path[at.step])->n; at.step++)
        within -= tl_path_block(items->path[at.step])->n;
    at.insns = *done - within;
    for (;;) {
        const struct tl_item one = tl_path_item(items, at.step);
        const int rc = tl_stf_flow_block(flow, &one, stop, &within);
        if (rc < 0) {
            *done = at.insns + within;
            return rc;
        }
        at.insns += one.n;
        within = 0;
        if (++at.step == items->n) {
            *done = 0;
            return 1;
        }
        if (!flow->dry) /* nothing is copied */
            copy_from(flow, items, n, stop, &at);
        if (at.item > 0) {
            *done = at.insns;
            return (int64_t)at.item;
        }
    }
}

/*
 * Number of items of items[0..n) up to the last path of at least two steps, as long as they are
 * paths like the first one, with fewer than `most` instructions in all (returned in `*insns`), or
 * items without records.
 */
static size_t passable(const struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                       uint64_t most, uint64_t *insns)
{
    const uint32_t silent = flow->options.comments ? 0 : SILENT;
    const uint8_t isa = tl_path_block(items->path[0])->isa;
    uint64_t sum = 0;
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tl_item *const item = &items[i];
        if (silent >> item->kind & 1)
            continue;
        if (item->kind != TL_ITEM_PATH || item->value >= most - sum)
            break;
        const struct tl_block *const first = tl_path_block(item->path[0]);
        if (first->whole || first->isa != isa)
            break;
        sum += item->value;
        if (item->n < 2)
            continue;
        end = i + 1;
        *insns = sum;
    }
    return end;
}

size_t tl_stf_flow_pass(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                        uint64_t stop, int *result)
{
    const uint64_t most = stop > flow->markers ? stop - flow->markers : 0;
    uint64_t insns = 0;
    *result = TL_OK;
    if (!flow->header || flow->whole || most <= flow->held.valid)
        return 0;
    const size_t passed = passable(flow, items, n, most - flow->held.valid, &insns);
    const struct tl_item *const last = passed > 0 ? &items[passed - 1] : NULL;
    if (!last || (passed == 1 && last->n < 4))
        return 0;
    /* The first block consumes pending records before it; the last two determine how the flow
     * continues. */
    const struct tl_item ends[] = {tl_path_item(items, 0), tl_path_item(last, last->n - 2),
                                   tl_path_item(last, last->n - 1)};
    for (unsigned i = 0; i < 3; i++)
        insns -= ends[i].n;
    for (unsigned i = 0; i < 3 && *result >= 0; i++) {
        uint32_t done = 0;
        *result = tl_stf_flow_block(flow, &ends[i], stop, &done);
        if (i > 0 || *result < 0)
            continue;
        *result = tl_stf_flow_release(flow, NULL);
        flow->markers += insns;
        flow->track = ends[1].pc;
    }
    return passed;
}
