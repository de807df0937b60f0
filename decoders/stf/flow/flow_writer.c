/* SPDX-License-Identifier: MIT */
/*
 * Flow items to STF records.
 *
 * A group consists of these parts, in the order that all writers' rules allow:
 *
 *     lead    INST_IEM, PROCESS_ID_EXT, COMMENT, FORCE_PC
 *     target  INST_PC_TARGET
 *     access  INST_MEM_ACCESS, INST_MEM_CONTENT, made from the text of NOTE items, which also
 *             becomes a COMMENT
 *     pre     EVENT MODE_CHANGE: the mode in force already for the instruction (marked by a flag in
 *             a field)
 *     post    EVENT (EVENT_PC_TARGET) for what happened at or after the instruction, COMMENT
 *     close   INST_MICROOP…, INST_32 or INST_16
 *
 * Almost all instructions have only the last part, which is copied from their block. The last
 * instruction of each block is held back, because target and post are known with the next item.
 */
#include "stf/flow/flow_writer.h"

#include "base/digits.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow_map.h"
#include "stf/group.h"
#include "stf/writer.h"

#include <stdio.h>
#include <stdlib.h>

int tl_stf_flow_new(struct tl_stf_flow **out, const struct tl_stf_flow_options *options,
                    const struct tl_stf_flow_state *initial)
{
    struct tl_stf_flow *const flow = calloc(1, sizeof *flow);
    if (!flow)
        return TL_NOMEM;
    flow->options = *options;
    if (initial)
        flow->state = *initial;
    flow->reported = flow->state;
    flow->mode_due = flow->state.has_mode;
    flow->mode_flags = TL_STF_MODE_BEFORE;
    flow->points = TL_STF_POINTS_UNSAID;
    if (options->repeats && !(flow->repeats = tl_stf_repeats_new())) {
        tl_stf_flow_free(flow);
        return TL_NOMEM;
    }
    *out = flow;
    return TL_OK;
}

static void front_fini(struct tl_stf_front *front)
{
    tl_buf_fini(&front->lead);
    tl_buf_fini(&front->pre);
}

void tl_stf_flow_free(struct tl_stf_flow *flow)
{
    if (!flow)
        return;
    tl_buf_fini(&flow->out);
    tl_buf_fini(&flow->scratch);
    tl_stf_repeats_free(flow->repeats);
    tl_buf_fini(&flow->held.post);
    tl_buf_fini(&flow->held.accesses);
    front_fini(&flow->held.front);
    front_fini(&flow->front);
    tl_stf_known_free(flow->known);
    free(flow);
}

void tl_stf_flow_know(struct tl_stf_flow *flow, struct tl_stf_known *known)
{
    tl_stf_known_free(flow->known);
    flow->known = known;
}

/* ---- single records ----------------------------------------------------------------------- */

/* Extend `out` by `n` bytes to be filled in; NULL: out of memory. */
static inline uint8_t *more(struct tl_buf *out, size_t n)
{
    if (out->cap - out->n < n && tl_buf_reserve(out, n) < 0)
        return NULL;
    uint8_t *const p = out->p + out->n;
    out->n += n;
    return p;
}

static inline uint8_t *append_address(uint8_t *p, uint8_t type, uint64_t address)
{
    p[0] = type;
    tl_put_le64(p + 1, address);
    return p + TL_STF_TARGET_BYTES;
}

int tl_stf_flow_put_address(struct tl_buf *out, uint8_t type, uint64_t address)
{
    uint8_t *const p = more(out, TL_STF_TARGET_BYTES);
    if (!p)
        return TL_NOMEM;
    append_address(p, type, address);
    return TL_OK;
}

/* Append an EVENT with `n` fields, to be filled in by the caller. NULL: out of memory. */
static uint8_t *put_event(struct tl_buf *out, uint64_t number, size_t n)
{
    uint8_t *const p = more(out, 6 + 8 * n);
    if (!p)
        return NULL;
    p[0] = TL_STF_EVENT;
    tl_put_le32(p + 1, (uint32_t)(number & 0x3fffffff) | (uint32_t)(number >> 62) << 30);
    p[5] = (uint8_t)n;
    return p + 6;
}

int tl_stf_flow_put_mode(struct tl_buf *out, uint64_t mode, uint64_t flags)
{
    uint8_t *const fields = put_event(out, TL_STF_EVENT_MODE_CHANGE, TL_STF_MODE_FIELDS);
    if (!fields)
        return TL_NOMEM;
    tl_put_le64(fields, tl_stf_map_level(mode));
    tl_put_le64(fields + 8, mode | flags);
    return TL_OK;
}

int tl_stf_flow_put_comment(struct tl_buf *out, struct tl_bytes text)
{
    if (text.n > TL_STF_RECORD_MAX - TL_STF_COMMENT_HEAD)
        return TL_USAGE;
    uint8_t *const p = more(out, TL_STF_COMMENT_HEAD + text.n);
    if (!p)
        return TL_NOMEM;
    p[0] = TL_STF_COMMENT;
    tl_put_le32(p + 1, (uint32_t)text.n);
    memcpy(p + TL_STF_COMMENT_HEAD, text.p, text.n);
    return TL_OK;
}

int tl_stf_flow_put_parting(struct tl_buf *out)
{
    static const uint8_t letter = 'B';
    return tl_stf_flow_put_comment(out, (struct tl_bytes){&letter, 1});
}

/* Contents of PROCESS_ID_EXT. */
struct process {
    uint32_t tgid, tid, asid;
};

static struct process process_of(const struct tl_stf_flow_state *state)
{
    return (struct process){
        .tgid = state->has_context ? (uint32_t)state->context : TL_STF_ABSENT,
        .tid = state->has_context ? (uint32_t)(state->context >> 32) : TL_STF_ABSENT,
        .asid = state->has_vmid ? (uint32_t)state->vmid : TL_STF_ABSENT,
    };
}

/* ---- header ------------------------------------------------------------------------------- */

int tl_stf_flow_put_header(struct tl_stf_flow *flow, uint64_t pc)
{
    const struct tl_stf_flow_state *const s = &flow->reported;
    if (flow->state.isa == TL_ISA_NONE && s->has_mode) /* only addresses so far: no block had one */
        flow->state.isa = (uint8_t)tl_mode_isa(s->mode);
    if (flow->state.isa == TL_ISA_NONE &&
        flow->state.has_mode) /* a mode that no group has told yet */
        flow->state.isa = (uint8_t)tl_mode_isa(flow->state.mode);
    if (flow->state.isa == TL_ISA_NONE)
        flow->state.isa = (uint8_t)flow->options.isa;
    const enum tl_isa isa = (enum tl_isa)flow->state.isa;
    const struct process process =
        s->has_context || s->has_vmid ? process_of(s) : (struct process){0};
    const struct tl_stf_header_spec spec = {
        .comments = flow->options.header_comments,
        .n_comments = flow->options.n_header_comments,
        .isa = tl_stf_map_isa(isa),
        .iem = tl_stf_map_iem(isa),
        .generator = flow->options.generator ? flow->options.generator
                                             : TL_STF_GENERATOR_NAME " " TL_VERSION,
        .features = TL_STF_FEATURE_EVENT | (isa == TL_ISA_RV64 ? TL_STF_FEATURE_RV64 : 0) |
                    (tl_stf_map_isa(isa) == TL_STF_ISA_X86 ? TL_STF_FEATURE_MICROOP : 0) |
                    (s->has_context || s->has_vmid ? TL_STF_FEATURE_PROCESS_ID : 0),
        .pc = pc,
        .tgid = process.tgid,
        .tid = process.tid,
        .asid = process.asid,
    };
    const int result = tl_stf_header_write(&spec, &flow->out, NULL);
    if (result < 0)
        return result;
    flow->header = true;
    flow->track = pc;
    flow->chunk_pc = 0;
    flow->read_isa = tl_stf_unmap_isa(spec.isa, spec.iem);
    flow->front.any |= flow->mode_due;
    return TL_OK;
}

/* ---- groups ------------------------------------------------------------------------------- */

static inline uint8_t *append(uint8_t *p, struct tl_bytes bytes)
{
    if (bytes.n)
        memcpy(p, bytes.p, bytes.n);
    return p + bytes.n;
}

int tl_stf_flow_put_group(struct tl_stf_flow *flow, struct tl_stf_front *front, uint64_t pc,
                          const uint64_t *target, struct tl_bytes post, struct tl_bytes close)
{
    struct tl_buf *const out = &flow->out;
    const size_t addresses = (front->force ? 1 : 0) + (target ? 1 : 0);
    const size_t n =
        front->lead.n + addresses * TL_STF_TARGET_BYTES + front->pre.n + post.n + close.n;
    uint8_t *p = more(out, n);
    if (!p)
        return TL_NOMEM;
    p = append(p, (struct tl_bytes){front->lead.p, front->lead.n});
    if (front->force)
        p = append_address(p, TL_STF_FORCE_PC, pc);
    if (target)
        p = append_address(p, TL_STF_INST_PC_TARGET, *target);
    p = append(p, (struct tl_bytes){front->pre.p, front->pre.n});
    p = append(p, post);
    append(p, close);
    tl_buf_reset(&front->lead);
    tl_buf_reset(&front->pre);
    front->force = front->any = false;
    flow->open = false;
    flow->points = TL_STF_POINTS_ALONE;
    flow->markers++;
    return TL_OK;
}

/*
 * Fill in the target of the exception at the end of the held-back group. Each EVENT gets a target,
 * since stf_lib cannot copy one without: if it is not `known`, the address at which readers would
 * continue anyway.
 */
static void close_event(struct tl_stf_held *held, uint64_t target, bool known)
{
    if (!held->awaits_target)
        return;
    held->awaits_target = false;
    tl_put_le64(held->post.p + held->post_target + 1, target);
    uint8_t *const flags = held->post.p + held->post_flags;
    if (!known)
        tl_put_le64(flags, tl_le64(flags) | TL_STF_X_NOWHERE);
}

/*
 * Write the held-back instruction's group, which has at most a target before its closing records.
 */
static int put_closing(struct tl_stf_flow *flow, bool write, uint64_t target)
{
    struct tl_buf *const out = &flow->out;
    flow->open = false;
    flow->points = TL_STF_POINTS_ALONE;
    flow->markers++;
    if (flow->dry)
        return TL_OK;
    if (out->cap - out->n < TL_STF_TARGET_BYTES + TL_STF_CLOSE_MAX) {
        const int result = tl_buf_reserve(out, TL_STF_TARGET_BYTES + TL_STF_CLOSE_MAX);
        if (result < 0)
            return result;
    }
    uint8_t *p = out->p + out->n;
    if (write) {
        *p = TL_STF_INST_PC_TARGET;
        tl_put_le64(p + 1, target);
        p += TL_STF_TARGET_BYTES;
    }
    memcpy(p, flow->held.close, TL_STF_CLOSE_MAX); /* fixed size: no function call */
    out->n = (size_t)(p - out->p) + flow->held.close_n;
    return TL_OK;
}

/* Say that the group's instruction changed the flow although it is no branch, such as a return from
 * a handler. Where it went is told by the FORCE_PC of the next one. */
static int put_leaving(struct tl_stf_front *front)
{
    static const uint8_t letter = TL_STF_LEAVES;
    front->any = true;
    return tl_stf_flow_put_comment(&front->lead, (struct tl_bytes){&letter, 1});
}

/* Move what follows the held-back instruction in front of the next one. */
static int postpone(struct tl_stf_flow *flow)
{
    struct tl_buf *const post = &flow->held.post, *const lead = &flow->front.lead;
    if (tl_buf_add(post, lead->p, lead->n) < 0)
        return TL_NOMEM;
    const struct tl_buf all = *post;
    *post = *lead;
    *lead = all;
    tl_buf_reset(post);
    flow->front.any = true;
    return TL_OK;
}

int tl_stf_flow_release(struct tl_stf_flow *flow, const uint64_t *next)
{
    struct tl_stf_held *const held = &flow->held;
    if (!held->valid)
        return TL_OK;
    if (held->accesses.n > 0 && tl_stf_flow_place_accesses(held) < 0)
        return TL_NOMEM;
    held->valid = false;
    const bool event = held->awaits_target, leaves = held->taken && !held->branches;
    bool write = held->has_target;
    uint64_t target = held->target;
    if (held->taken && !leaves && !event && next) {
        write = true;
        target = *next;
    }
    if (!write && held->odd_size) {
        write = true;
        target = held->next;
    }
    flow->track = event && next ? *next : write ? target : held->next;
    close_event(held, flow->track, next != NULL);
    if (next && flow->track != *next)
        flow->front.force = flow->front.any = true;
    if (leaves) {
        const int result = put_leaving(&held->front);
        if (result < 0)
            return result;
    }
    if (held->post.n && !write && !held->event && !leaves) {
        /* Comments can only be recognised as being after the instruction if another record of it
         * precedes them. */
        const int result = postpone(flow);
        if (result < 0)
            return result;
    }
    if (!held->front.any && held->post.n == 0)
        return put_closing(flow, write, target);
    const struct tl_bytes post = {held->post.p, held->post.n};
    const struct tl_bytes close = {held->close, held->close_n};
    const int result =
        tl_stf_flow_put_group(flow, &held->front, held->pc, write ? &target : NULL, post, close);
    tl_buf_reset(&held->post);
    return result;
}

/* ---- other items --------------------------------------------------------------------------- */

/* Write a comment after the held-back instruction if readers can recognise that, else before the
 * next one. */
static int put_line(struct tl_stf_flow *flow, struct tl_bytes text)
{
    struct tl_stf_held *const held = &flow->held;
    if (held->valid && !flow->front.lead.n && (held->taken || held->event))
        return tl_stf_flow_put_comment(&held->post, text);
    flow->front.any = true;
    return tl_stf_flow_put_comment(&flow->front.lead, text);
}

/* Write a frequent item as a comment of a letter and a number. */
static int add_number(struct tl_stf_flow *flow, char letter, uint64_t value)
{
    uint8_t text[24] = {(uint8_t)letter, ' '};
    if (!flow->options.comments)
        return TL_OK;
    return put_line(flow,
                    (struct tl_bytes){text, (size_t)(tl_put_decimal(text + 2, value) - text)});
}

/* Write an item without an STF record as a comment with its flow text, if enabled. */
static int add_comment(struct tl_stf_flow *flow, const struct tl_item *item)
{
    if (!flow->options.comments)
        return TL_OK;
    tl_buf_reset(&flow->scratch);
    const int result = tl_item_text(&flow->scratch, item, 1);
    if (result < 0)
        return result;
    size_t n = flow->scratch.n;
    while (n && flow->scratch.p[n - 1] == '\n')
        n--;
    return put_line(flow, (struct tl_bytes){flow->scratch.p, n});
}

static int add_mode(struct tl_stf_flow *flow, uint64_t mode)
{
    const bool begun = flow->header || flow->later;
    /* After the held-back instruction, unless something came in between. */
    const bool after = begun && flow->held.valid && !flow->front.any;
    const int result = begun && !after && flow->mode_flags == TL_STF_MODE_BEFORE
                           ? tl_stf_flow_tell_mode(flow, &flow->front.lead)
                           : TL_OK;
    flow->state.mode = mode;
    flow->state.has_mode = true;
    flow->mode_due = !after;
    flow->mode_flags = TL_STF_MODE_BEFORE;
    if (!after) {
        flow->front.any |= begun;
        return result;
    }
    if (tl_mode_isa(mode) != TL_ISA_NONE)
        flow->read_isa = tl_mode_isa(mode);
    flow->held.event = true;
    return tl_stf_flow_put_mode(&flow->held.post, mode, 0);
}

static void note_context(struct tl_stf_flow_state *s, const struct tl_item *item)
{
    s->has_context = item->flags & TL_ITEM_HAS_PC;
    s->has_vmid = item->flags & TL_ITEM_HAS_VALUE;
    s->context = s->has_context ? item->pc : 0;
    s->vmid = s->has_vmid ? item->value : 0;
}

static int add_context(struct tl_stf_flow *flow, const struct tl_item *item)
{
    struct tl_stf_flow_state *const s = &flow->state;
    note_context(s, item);
    if (!flow->header && !flow->later) {
        flow->reported = *s;
        return TL_OK;
    }
    const struct process now = process_of(s);
    uint8_t *const p = more(&flow->front.lead, TL_STF_PROCESS_BYTES);
    if (!p)
        return TL_NOMEM;
    p[0] = TL_STF_PROCESS_ID_EXT;
    tl_put_le32(p + 1, now.tgid);
    tl_put_le32(p + 5, now.tid);
    tl_put_le32(p + 9, now.asid);
    flow->front.any = true;
    return TL_OK;
}

static int add_exception(struct tl_stf_flow *flow, const struct tl_item *item)
{
    struct tl_stf_held *const held = &flow->held;
    const bool known = item->flags & TL_ITEM_HAS_PC;
    if (!held->valid)
        return tl_stf_flow_tell_exception(flow, item);
    if (held->awaits_target) {
        close_event(held, known ? item->pc : held->has_target ? held->target : held->next, known);
    } else if (held->taken && held->branches && known) {
        held->has_target = true;
        held->target = item->pc;
    }
    size_t n = item->text ? strlen(item->text) : 0;
    if (n > TL_STF_X_NAME)
        n = TL_STF_X_NAME;
    const size_t words = (n + 7) / 8;
    const uint64_t number = tl_stf_map_exception(tl_stf_arch((enum tl_isa)flow->state.isa),
                                                 tl_stf_map_level(flow->state.mode), item->sub);
    struct tl_buf *const out = &held->post;
    uint8_t *const fields = put_event(out, number, TL_STF_X_FIELDS + words);
    if (!fields)
        return TL_NOMEM;
    tl_put_le64(fields, known ? item->pc : 0);
    tl_put_le64(fields + 8, item->sub | (known ? 0 : TL_STF_X_NO_PC));
    if (n) {
        uint8_t *const name = fields + 8 * TL_STF_X_FIELDS;
        memset(name + 8 * (words - 1), 0, 8);
        memcpy(name, item->text, n);
    }
    held->awaits_target = held->event = true;
    held->post_target = out->n;
    held->post_flags = (size_t)(fields - out->p) + 8;
    return tl_stf_flow_put_address(out, TL_STF_EVENT_PC_TARGET, 0);
}

int tl_stf_flow_gap_line(struct tl_stf_flow *flow, enum tl_gap gap)
{
    struct tl_buf line = {flow->gap.line, 0, sizeof flow->gap.line};
    char text[sizeof flow->gap.line - TL_STF_COMMENT_HEAD];
    if (flow->gap.n > 0 && flow->gap.of == gap)
        return TL_OK;
    const int n = snprintf(text, sizeof text, "G %s", tl_gap_name(gap));
    const int result =
        tl_stf_flow_put_comment(&line, (struct tl_bytes){(const uint8_t *)text, (size_t)n});
    flow->gap.n = result < 0 ? 0 : (uint8_t)line.n;
    flow->gap.of = (uint8_t)gap;
    return result;
}

/* Write the held-back instruction before an item that is unrelated to it. */
static int release_before(struct tl_stf_flow *flow, const struct tl_item *item)
{
    switch (item->kind) {
    case TL_ITEM_UNKNOWN:
        return tl_stf_flow_release(flow, &item->pc);
    case TL_ITEM_BRANCH:
        return tl_stf_flow_release(flow, item->flags & TL_ITEM_HAS_PC ? &item->pc : NULL);
    case TL_ITEM_TARGET: /* of the held-back instruction, of any kind */
        flow->held.taken = true;
        return tl_stf_flow_release(flow, &item->value);
    case TL_ITEM_GAP: /* its successor is unknown, but for an exception's handler without image */
        return tl_stf_flow_release(
            flow, flow->held.awaits_target && item->flags & TL_ITEM_HAS_PC ? &item->pc : NULL);
    case TL_ITEM_TRACE_ON:
        return tl_stf_flow_release(flow, NULL);
    default:
        return TL_OK;
    }
}

static int add_gap(struct tl_stf_flow *flow, const struct tl_item *item)
{
    struct tl_item gap = *item;
    const int result = tl_item_is_branch(item) ? tl_stf_flow_add_point(flow, item) : TL_OK;
    gap.flags &= (uint8_t)~TL_ITEM_HAS_PC;
    flow->front.force = flow->front.any = true;
    return result < 0 ? result : add_comment(flow, &gap);
}

/* Whole groups already contain what the item reports: only update the state for the next header. */
static void note_item(struct tl_stf_flow *flow, const struct tl_item *item)
{
    struct tl_stf_flow_state *const s = &flow->state;
    if (item->kind == TL_ITEM_MODE) {
        s->mode = item->value;
        s->has_mode = true;
    } else if (item->kind == TL_ITEM_CONTEXT) {
        note_context(s, item);
    }
}

static int add_item(struct tl_stf_flow *flow, const struct tl_item *item)
{
    int result;
    if (flow->whole) {
        note_item(flow, item);
        return TL_OK;
    }
    switch (item->kind) {
    case TL_ITEM_UNKNOWN:
    case TL_ITEM_BRANCH:
        return tl_stf_flow_add_point(flow, item);
    case TL_ITEM_TARGET: /* done by release_before() */
        return TL_OK;
    case TL_ITEM_EXCEPTION:
        return add_exception(flow, item);
    case TL_ITEM_MODE:
        return add_mode(flow, item->value);
    case TL_ITEM_CONTEXT:
        return add_context(flow, item);
    case TL_ITEM_GAP:
    case TL_ITEM_TRACE_ON:
        return add_gap(flow, item);
    case TL_ITEM_NOTE:
        result = flow->held.valid ? tl_stf_flow_note_access(&flow->held, item->text) : TL_OK;
        return result < 0 ? result : add_comment(flow, item);
    case TL_ITEM_CYCLES:
        return add_number(flow, 'Y', item->value);
    case TL_ITEM_ERET:
        return put_line(flow, (struct tl_bytes){(const uint8_t *)"R", 1});
    default:
        return add_comment(flow, item);
    }
}

/* Kinds of items that may begin a run of copied blocks. */
#define DRY_RUNS (1u << TL_ITEM_BRANCH | 1u << TL_ITEM_GAP)
#define RUNS     (DRY_RUNS | 1u << TL_ITEM_BLOCK | 1u << TL_ITEM_PATH)

int tl_stf_flow_items(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                      uint64_t stop, struct tl_stf_flow_at *at)
{
    const uint32_t runs = flow->dry ? DRY_RUNS : RUNS;
    while (at->item < n) {
        const struct tl_item *const item = &items[at->item];
        int result;
        size_t used;
        if (runs >> item->kind & 1 && at->insn == 0) {
            const size_t whole = tl_stf_flow_run(flow, item, n - at->item, stop, &at->insn);
            at->item += whole;
            if (whole || at->insn)
                continue;
        }
        if (item->kind == TL_ITEM_BLOCK) {
            result = tl_stf_flow_block(flow, item, stop, &at->insn);
        } else if (item->kind == TL_ITEM_PATH && flow->dry && at->insn == 0 &&
                   (used = tl_stf_flow_pass(flow, item, n - at->item, stop, &result)) > 0) {
            at->item += used - 1;
        } else if (item->kind == TL_ITEM_PATH) {
            const int64_t followed = tl_stf_flow_path(flow, item, n - at->item, stop, &at->insn);
            if (followed < 0)
                return (int)followed;
            at->item += (size_t)followed;
            continue;
        } else {
            result = release_before(flow, item);
            if (result == TL_OK && flow->header && flow->markers >= stop)
                return TL_AGAIN;
            if (result == TL_OK)
                result = add_item(flow, item);
        }
        if (result < 0)
            return result;
        at->item++;
        at->insn = 0;
    }
    return TL_OK;
}

/* ---- output -------------------------------------------------------------------------------- */

struct tl_bytes tl_stf_flow_bytes(const struct tl_stf_flow *flow)
{
    tl_stf_repeats_fill(flow->repeats, flow->out.p);
    return (struct tl_bytes){flow->out.p, flow->out.n};
}

struct tl_stf_piece tl_stf_flow_piece(const struct tl_stf_flow *flow)
{
    struct tl_stf_piece piece = {.stf = flow->out};
    if (flow->repeats) {
        piece.repeats = flow->repeats->found;
        piece.n_repeats = flow->repeats->n_found;
        piece.cap_repeats = flow->repeats->cap_found;
    }
    return piece;
}

void tl_stf_flow_swap(struct tl_stf_flow *flow, struct tl_stf_piece *piece)
{
    const struct tl_stf_piece full = tl_stf_flow_piece(flow);
    flow->out = piece->stf;
    if (flow->repeats) {
        flow->repeats->found = piece->repeats;
        flow->repeats->cap_found = piece->cap_repeats;
    } else {
        free(piece->repeats);
    }
    tl_stf_flow_take(flow);
    *piece = full;
}

void tl_stf_flow_move(struct tl_stf_flow *flow, struct tl_buf *other)
{
    struct tl_buf before = flow->out;
    memcpy(other->p, before.p, before.n);
    other->n = before.n;
    flow->out = *other;
    tl_buf_reset(&before);
    *other = before;
}

void tl_stf_flow_take(struct tl_stf_flow *flow)
{
    tl_buf_reset(&flow->out);
    tl_stf_repeats_reset(flow->repeats);
    flow->chunk_pc = flow->track;
}

uint64_t tl_stf_flow_chunk_pc(const struct tl_stf_flow *flow)
{
    return flow->chunk_pc;
}

void tl_stf_flow_dry(struct tl_stf_flow *flow, bool dry)
{
    flow->dry = dry;
}

bool tl_stf_flow_is_open(const struct tl_stf_flow *flow)
{
    return flow->open || flow->trails;
}

uint64_t tl_stf_flow_markers(const struct tl_stf_flow *flow)
{
    return flow->markers;
}

void tl_stf_flow_state(const struct tl_stf_flow *flow, struct tl_stf_flow_state *out)
{
    *out = flow->state;
    if (!out->has_pc && flow->header && !flow->held.valid && !flow->front.force) {
        out->pc = flow->track;
        out->has_pc = true;
    }
}

int tl_stf_flow_finish(struct tl_stf_flow *flow)
{
    int result = tl_stf_flow_release(flow, NULL);
    if (result == TL_OK && !flow->header)
        result = tl_stf_flow_put_header(flow, flow->state.has_pc ? flow->state.pc : 0);
    if (result == TL_OK && !flow->whole)
        result = tl_stf_flow_tell_mode(flow, &flow->front.lead);
    if (result == TL_OK)
        result = tl_buf_add(&flow->out, flow->front.lead.p, flow->front.lead.n);
    flow->trails = flow->front.lead.n;
    tl_buf_reset(&flow->front.lead);
    flow->front.any = flow->front.force || flow->mode_due;
    return result;
}
