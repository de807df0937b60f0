/* SPDX-License-Identifier: MIT */
/*
 * STF records to flow items.
 *
 * Records in a group after an INST_PC_TARGET or an EVENT describe what happened at or after the
 * group's instruction, except if a FORCE_PC follows, or a flag of ours is set: then it happened
 * before. Such items are kept in `waiting`. Addresses without a closing record are instructions and
 * branches without an encoding, as a comment says (enum tl_stf_points); in older traces
 * INST_PC_TARGET records are the branches. Only our own traces are interpreted that way.
 */
#include "stf/flow/flow_reader.h"

#include "stf/flow/flow_batch.h"
#include "stf/flow/flow_comment.h"
#include "stf/flow/flow_gathered.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow/flow_transaction.h"
#include "stf/flow_map.h"
#include "stf/rehead.h"
#include "stf/stand.h"

#include <stdlib.h>

#define WAITING_MAX 64

struct waiting {
    struct tl_item item;
    size_t text;          /* offset in `texts` of its text or payload */
    uint8_t branch_flags; /* if kind is TL_ITEM_KINDS: flags of the next branch */
    bool before;          /* before the group's instruction, wherever the record is */
};

/* The current group. */
struct group {
    bool forced;     /* there was a FORCE_PC */
    bool has_target; /* there was an INST_PC_TARGET */
    bool event;      /* there was an EVENT */
    bool jumped;     /* there was an EVENT_PC_TARGET */
    bool leaves;     /* the instruction changed the flow, but is no branch */
    bool faulted;    /* there was an EVENT of an instruction that was not executed */
    bool leapt;      /* there was a pair of FORCE_PC: `pc` and `leap` */
    uint8_t points;  /* enum tl_stf_points */
    uint64_t pc;     /* from FORCE_PC */
    uint64_t leap;
    uint64_t target;
    uint64_t next; /* from EVENT_PC_TARGET */
    uint64_t offset;
    enum tl_isa isa_after; /* from a MODE_CHANGE after the instruction; NONE: as before */
    uint8_t code[16];      /* from micro-operations */
    uint32_t n_code;
};

struct tl_stf_flow_reader {
    struct tl_stf_batch batch;
    struct tl_stf_header header;
    bool in_trace; /* a complete header was read before */
    bool ours;
    bool first; /* no instruction since the header */
    enum tl_isa isa;
    uint64_t pc; /* of the next instruction */
    uint64_t mode;
    bool has_mode;
    struct tl_item context; /* kind 0: none */
    struct group group;
    struct waiting waiting[WAITING_MAX];
    size_t n_waiting;
    struct tl_buf texts;
    struct tl_buf scratch;
    bool whole;                      /* the trace is from another producer: its groups are kept */
    struct tl_stf_gathered gathered; /* the current group's records, if `whole` */
    struct tl_stf_pc track;          /* PC according to its records */
    struct tl_stf_transactions transactions;
    uint8_t branch_flags;
};

int tl_stf_flow_reader_new(struct tl_stf_flow_reader **out, tl_item_sink *sink, void *context)
{
    struct tl_stf_flow_reader *const r = calloc(1, sizeof *r);
    if (!r)
        return TL_NOMEM;
    r->batch.sink = sink;
    r->batch.context = context;
    *out = r;
    return TL_OK;
}

void tl_stf_flow_reader_free(struct tl_stf_flow_reader *reader)
{
    if (!reader)
        return;
    tl_stf_batch_fini(&reader->batch);
    tl_buf_fini(&reader->texts);
    tl_buf_fini(&reader->scratch);
    tl_stf_transactions_fini(&reader->transactions);
    tl_stf_gathered_fini(&reader->gathered);
    free(reader);
}

/* ---- delivering ------------------------------------------------------------------------------ */

/* Deliver an item now. */
static int happen(struct tl_stf_flow_reader *r, const struct tl_item *item)
{
    if (item->kind == TL_ITEM_MODE) {
        r->mode = item->value;
        r->has_mode = true;
    } else if (item->kind == TL_ITEM_CONTEXT) {
        r->context = *item;
    }
    return tl_stf_batch_add(&r->batch, item);
}

/* Deliver the branch or the instruction without encoding that the group contains so far, if any. */
static int take_point(struct tl_stf_flow_reader *r)
{
    struct group *const g = &r->group;
    if (!r->ours || (!g->has_target && !g->forced))
        return TL_OK;
    const bool alone = g->points == TL_STF_POINTS_TARGETS && !g->has_target;
    const bool branch = g->has_target || g->leapt || alone;
    const bool from = g->forced && !alone;
    struct tl_item item = {.kind = branch ? TL_ITEM_BRANCH : TL_ITEM_UNKNOWN,
                           .flags = from ? TL_ITEM_HAS_PC : 0,
                           .pc = from ? g->pc : 0,
                           .value = g->has_target ? g->target
                                    : g->leapt    ? g->leap
                                    : alone       ? g->pc
                                                  : 0,
                           .offset = g->offset};
    if (branch) {
        item.flags |= TL_ITEM_HAS_VALUE | r->branch_flags;
        r->branch_flags = 0;
    }
    g->forced = g->has_target = g->leapt = false;
    struct tl_item *const after = &r->waiting[0].item;
    if (r->n_waiting == 0 || item.flags != TL_ITEM_HAS_VALUE || after->kind != TL_ITEM_GAP ||
        after->sub != TL_GAP_NO_IMAGE || after->flags != 0)
        return happen(r, &item);
    after->flags = TL_ITEM_HAS_PC; /* the branch went to unmapped code */
    after->pc = item.value;
    after->offset = item.offset;
    return TL_OK;
}

static int deliver_one(struct tl_stf_flow_reader *r, struct waiting *w)
{
    if (w->item.kind == TL_ITEM_KINDS) {
        r->branch_flags = w->branch_flags;
        return TL_OK;
    }
    if (tl_item_has_text(w->item.kind) || w->item.kind == TL_ITEM_SOFTWARE)
        w->item.data = r->texts.p + w->text;
    if (w->item.kind == TL_ITEM_EXCEPTION && w->item.text[0] == 0)
        w->item.text = NULL;
    return happen(r, &w->item);
}

static int deliver_waiting(struct tl_stf_flow_reader *r)
{
    int result = TL_OK;
    for (size_t i = 0; i < r->n_waiting && result == TL_OK; i++)
        result = deliver_one(r, &r->waiting[i]);
    r->n_waiting = 0;
    tl_buf_reset(&r->texts);
    return result;
}

/* Deliver a point in the group, if there is one, and the pending items after it. */
static int deliver_point(struct tl_stf_flow_reader *r)
{
    const int result = take_point(r);
    return result < 0 ? result : deliver_waiting(r);
}

/* Deliver pending items that happened before the instruction; keep the others. */
static int deliver_before(struct tl_stf_flow_reader *r)
{
    int result = TL_OK;
    size_t kept = 0;
    for (size_t i = 0; i < r->n_waiting && result == TL_OK; i++) {
        if (r->waiting[i].before)
            result = deliver_one(r, &r->waiting[i]);
        else
            r->waiting[kept++] = r->waiting[i];
    }
    r->n_waiting = kept;
    return result;
}

/*
 * Add an item that happened before the group's instruction, or after it if the group already has
 * records of the instruction. `n` bytes of text or payload belong to it.
 */
static int add_item(struct tl_stf_flow_reader *r, const struct tl_item *item, const void *text,
                    size_t n, uint8_t branch_flags)
{
    if (r->n_waiting == WAITING_MAX) {
        /* An instruction's own FORCE_PC is followed by other records of it. */
        const struct group *const g = &r->group;
        const bool own = g->has_target || g->event || g->leaves;
        const int result = own ? deliver_waiting(r) : deliver_point(r);
        if (result < 0)
            return result;
    }
    const size_t at = r->texts.n;
    if (tl_buf_add(&r->texts, text, n) < 0)
        return TL_NOMEM;
    r->waiting[r->n_waiting++] =
        (struct waiting){.item = *item, .text = at, .branch_flags = branch_flags};
    return TL_OK;
}

/* Deliver pending items unless they belong after the next instruction. */
static int settle(struct tl_stf_flow_reader *r)
{
    const struct group *const g = &r->group;
    return g->has_target || g->event || g->forced || g->leaves ? TL_OK : deliver_waiting(r);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int add_mode(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    const struct tl_bytes fields = record->event.fields;
    const unsigned level =
        fields.n >= 8 && tl_stf_word(fields, 0) < 4 ? (unsigned)tl_stf_word(fields, 0) : 15;
    uint64_t mode = tl_stf_unmap_level(level, r->isa);
    bool before = false;
    if (r->ours && fields.n >= 16) {
        const uint64_t word = tl_stf_word(fields, 1);
        mode = word & ~TL_STF_MODE_FLAGS;
        before = word & TL_STF_MODE_BEFORE;
        if (tl_mode_isa(mode) != TL_ISA_NONE && tl_mode_isa(mode) < TL_ISA_COUNT)
            *(before ? &r->isa : &r->group.isa_after) = tl_mode_isa(mode);
        if (word & TL_STF_MODE_ISA_ONLY)
            return TL_OK;
        if ((word & TL_STF_MODE_STATE) && r->has_mode && r->mode == mode)
            return TL_OK; /* continues from the previous shard */
    }
    const struct tl_item item = {
        .kind = TL_ITEM_MODE, .flags = TL_ITEM_HAS_VALUE, .value = mode, .offset = record->offset};
    const int result = add_item(r, &item, NULL, 0, 0);
    if (result >= 0)
        r->waiting[r->n_waiting - 1].before = before;
    return result;
}

/* Our own form: return address, number, name. */
static int add_our_exception(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    const struct tl_bytes fields = record->event.fields;
    const uint64_t number = tl_stf_word(fields, 1);
    struct tl_item item = {
        .kind = TL_ITEM_EXCEPTION, .sub = (uint16_t)number, .offset = record->offset};
    if (!(number & TL_STF_X_NO_PC)) {
        item.flags = TL_ITEM_HAS_PC;
        item.pc = tl_stf_word(fields, 0);
    }
    char name[TL_STF_X_NAME + 1] = {0};
    size_t n = fields.n - 8 * TL_STF_X_FIELDS;
    if (n > TL_STF_X_NAME)
        n = TL_STF_X_NAME;
    if (n)
        memcpy(name, fields.p + 8 * TL_STF_X_FIELDS, n);
    for (size_t i = 0; i < n && name[i]; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            name[i] = '_';
    }
    const int result = add_item(r, &item, name, strlen(name) + 1, 0);
    if (result >= 0)
        r->waiting[r->n_waiting - 1].before = number & TL_STF_X_BEFORE;
    return result;
}

/* Other producers' form: the number is RISC-V's cause, the address is the instruction's. */
static int add_exception(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    if (r->ours && record->event.fields.n >= 8 * TL_STF_X_FIELDS)
        return add_our_exception(r, record);
    const uint64_t number = record->event.number;
    const char *const known = tl_stf_event_name(number);
    char name[32] = "event";
    for (size_t i = 0; known && i < sizeof name - 1; i++) {
        name[i] = known[i] >= 'A' && known[i] <= 'Z' ? (char)(known[i] + 32) : known[i];
        if (name[i] == '_')
            name[i] = '-';
        if (!name[i])
            break;
    }
    name[sizeof name - 1] = 0;
    const struct tl_item item = {
        .kind = TL_ITEM_EXCEPTION,
        .flags = TL_ITEM_HAS_PC,
        .sub = (uint16_t)((number & 0x7fff) | (number & TL_STF_EVENT_INTERRUPT ? 0x8000 : 0)),
        .pc = r->group.forced ? r->group.pc : r->pc,
        .offset = record->offset};
    return add_item(r, &item, name, strlen(name) + 1, 0);
}

static int add_event(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    int result = settle(r);
    if (result < 0)
        return result;
    result = record->event.number == TL_STF_EVENT_MODE_CHANGE ? add_mode(r, record)
                                                              : add_exception(r, record);
    r->group.event = true;
    r->group.faulted |= record->event.number != TL_STF_EVENT_MODE_CHANGE &&
                        !(record->event.number & TL_STF_EVENT_INTERRUPT);
    return result;
}

static int add_context(struct tl_stf_flow_reader *r, uint32_t tgid, uint32_t tid, uint32_t asid,
                       uint64_t offset)
{
    struct tl_item item = {.kind = TL_ITEM_CONTEXT, .offset = offset};
    if (!r->ours || tgid != TL_STF_ABSENT || tid != TL_STF_ABSENT) {
        item.flags |= TL_ITEM_HAS_PC;
        item.pc = tgid | (uint64_t)tid << 32;
    }
    if (!r->ours || asid != TL_STF_ABSENT) {
        item.flags |= TL_ITEM_HAS_VALUE;
        item.value = asid;
    }
    return add_item(r, &item, NULL, 0, 0);
}

static int begin_points(struct tl_stf_flow_reader *r, uint8_t how)
{
    const int result = deliver_point(r);
    r->group.points = how;
    return result;
}

/* What follows is after the group's instruction, which is no branch. */
static int begin_leaving(struct tl_stf_flow_reader *r)
{
    const int result = settle(r);
    r->group.leaves = true;
    return result;
}

static int add_comment(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    struct tl_item item = {0};
    struct tl_stf_told told = {0};
    if (r->ours) {
        if (!tl_stf_comment_parse(record->text, &r->scratch, &item, &told)) {
            if (told.points)
                return begin_points(r, told.how);
            if (told.leaves)
                return begin_leaving(r);
            if (!told.branch_flags)
                return TL_OK;
            item.kind = TL_ITEM_KINDS;
        } else if (told.again && r->has_mode && r->mode == item.value) {
            return TL_OK; /* continues from the previous shard */
        }
    } else if (!tl_stf_comment_note(record->text, &r->scratch, &item)) {
        return TL_NOMEM;
    }
    item.offset = record->offset;
    const bool data = tl_item_has_text(item.kind) || item.kind == TL_ITEM_SOFTWARE;
    return add_item(r, &item, r->scratch.p, data ? r->scratch.n : 0, told.branch_flags);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/*
 * Bytes in memory of an instruction, from its closing record. Of an instruction set that is not
 * decoded (OpenRISC is one) they are those of its value, low byte first.
 */
static void code_of(enum tl_isa isa, uint32_t opcode, uint32_t size, uint8_t out[static 4])
{
    if (isa == TL_ISA_T32 && size == 4)
        opcode = opcode >> 16 | opcode << 16;
    tl_put_le32(out, opcode);
}

/*
 * Do the micro-operations give the instruction's bytes (stf/close.h)? Then the closing record has
 * the first of them; those of other writers are micro-operations.
 */
static bool odd_sized(const struct tl_stf_flow_reader *r, const struct tl_stf_record *closing)
{
    const struct group *const g = &r->group;
    const enum tl_arch arch = tl_stf_arch(r->isa);
    if (g->n_code == 0 || (arch != TL_ARCH_X86 && !(r->ours && arch == TL_ARCH_RISCV)))
        return false;
    return closing->type == TL_STF_INST_32
               ? g->n_code > 4 && tl_le32(g->code) == closing->opcode
               : g->n_code < 4 && tl_le16(g->code) == (uint16_t)closing->opcode;
}

/* `at` is the instruction's address according to the records. */
static int add_insn(struct tl_stf_flow_reader *r, const struct tl_stf_record *record, uint64_t at)
{
    struct group *const g = &r->group;
    const uint64_t pc = r->whole ? at : g->forced ? g->pc : r->pc;
    const bool odd = odd_sized(r, record);
    const uint32_t size = odd ? g->n_code : record->type == TL_STF_INST_32 ? 4 : 2;
    const bool taken = g->leaves || (g->has_target && !(odd && g->target == pc + size));
    r->pc = r->whole ? r->track.next : g->jumped ? g->next : g->has_target ? g->target : pc + size;
    /* Other writers do not need to say that an exception return went somewhere. */
    const bool returns = !r->ours && !g->faulted;
    int result = TL_OK;
    if (!odd)
        code_of(r->isa, record->opcode, size, g->code);
    if (r->whole && r->gathered.overfull)
        result = tl_stf_gathered_shorten(
            &r->gathered, pc, g->has_target || g->jumped ? &r->track.next : NULL, record);
    if (result == TL_OK)
        result = tl_stf_batch_insn(&r->batch, r->isa, pc, g->code, size,
                                   (struct tl_bytes){r->gathered.records.p, r->gathered.records.n},
                                   taken     ? TL_STF_TAKEN
                                   : returns ? TL_STF_RETURNS
                                             : TL_STF_STRAIGHT,
                                   g->offset);
    if (result < 0)
        return result;
    const struct tl_insn *const last = &r->batch.last;
    if (r->ours || last->kind != TL_INSN_RETURN_EX || !(taken || (returns && !last->conditional)))
        return TL_OK;
    return tl_stf_batch_add(&r->batch,
                            &(struct tl_item){.kind = TL_ITEM_ERET, .offset = record->offset});
}

static int close_group(struct tl_stf_flow_reader *r, const struct tl_stf_record *record,
                       uint64_t at)
{
    struct group *const g = &r->group;
    int result = TL_OK;
    if (g->leapt) { /* the instruction is where the branch went */
        result = deliver_point(r);
        g->forced = true;
        g->pc = g->leap;
    }
    if (result < 0)
        return result;
    if (r->first && !g->forced && !r->ours) /* the mode at the beginning of the trace */
        result = deliver_waiting(r);
    else
        result = settle(r);
    r->first = false;
    if (result == TL_OK)
        result = deliver_before(r);
    if (result == TL_OK)
        result = add_insn(r, record, at);
    if (result == TL_OK)
        result = deliver_waiting(r);
    if (r->group.isa_after != TL_ISA_NONE)
        r->isa = r->group.isa_after;
    r->group = (struct group){0};
    tl_stf_gathered_begin(&r->gathered);
    return result;
}

/* ---- records --------------------------------------------------------------------------------- */

static int begin_trace(struct tl_stf_flow_reader *r, uint64_t offset)
{
    const struct tl_stf_header *const h = &r->header;
    /* Whole groups are all under the first header, which has the ISA. */
    if (!r->in_trace || !r->whole)
        r->isa = tl_stf_unmap_isa(h->isa, h->iem);
    else if (h->has_iem)
        r->isa = tl_stf_unmap_isa(r->gathered.groups.header.isa, h->iem);
    r->first = true;
    r->group = (struct group){0};
    tl_stf_gathered_begin(&r->gathered);
    if (!r->in_trace) {
        r->whole = !r->ours;
        r->batch.groups = r->whole ? &r->gathered.groups : NULL;
    } else if (r->whole && tl_stf_gathered_add_header(&r->gathered, h) < 0) {
        return TL_NOMEM;
    }
    r->pc = h->pc;
    r->track = (struct tl_stf_pc){.next = h->pc};
    const bool reported = r->ours ? (h->features & TL_STF_FEATURE_PROCESS_ID) != 0
                                  : h->has_process && (h->tgid || h->tid || h->asid);
    if (reported) {
        const struct tl_item before = r->context;
        int result = add_context(r, h->tgid, h->tid, h->asid, offset);
        const struct tl_item *const item = &r->waiting[r->n_waiting - 1].item;
        if (result == TL_OK && r->in_trace && before.kind == TL_ITEM_CONTEXT &&
            before.pc == item->pc && before.value == item->value && before.flags == item->flags)
            r->n_waiting--; /* unchanged from the previous shard */
        if (result == TL_OK)
            result = deliver_waiting(r);
        if (result < 0)
            return result;
    }
    r->in_trace = true;
    return TL_OK;
}

static int in_header(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    int result = tl_stf_header_add(&r->header, record);
    if (result == TL_OK && !r->in_trace)
        result = tl_stf_groups_add(&r->gathered.groups, record);
    if (result < 0)
        return result;
    if (record->type == TL_STF_TRACE_INFO)
        r->ours = tl_stf_info_is_ours(record);
    return r->header.complete ? begin_trace(r, record->offset) : TL_OK;
}

/* Start a new trace after the previous one: shards of one stream. */
static int restart(struct tl_stf_flow_reader *r)
{
    const int result = deliver_point(r);
    r->header = (struct tl_stf_header){0};
    r->group = (struct group){0};
    return result;
}

static int add_force(struct tl_stf_flow_reader *r, uint64_t pc)
{
    struct group *const g = &r->group;
    if (r->ours && g->points == TL_STF_POINTS_PAIRS && g->forced && !g->leapt) {
        g->leapt = true;
        g->leap = pc;
        return TL_OK;
    }
    const int result = deliver_point(r);
    if (!r->whole)
        g->has_target = g->event = g->jumped = false;
    g->forced = true;
    g->pc = pc;
    return result;
}

static int add_target(struct tl_stf_flow_reader *r, uint64_t target)
{
    struct group *const g = &r->group;
    const int result = g->has_target && r->ours ? deliver_point(r) : settle(r);
    g->has_target = true;
    g->target = target;
    return result;
}

static void add_microop(struct group *g, const struct tl_stf_record *record)
{
    for (unsigned i = 0; i < record->microop.size && i < 4 && g->n_code < sizeof g->code; i++)
        g->code[g->n_code++] = (uint8_t)(record->microop.op >> 8 * i);
}

static int add_process(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    const int result = add_context(r, record->process.tgid, record->process.tid,
                                   record->process.asid, record->offset);
    /* Applies to this instruction, at any position in its group. */
    return result < 0 || r->ours ? result : deliver_waiting(r);
}

static int in_group(struct tl_stf_flow_reader *r, const struct tl_stf_record *record)
{
    struct group *const g = &r->group;
    if (r->header.transactions)
        return tl_stf_transactions_add(&r->transactions, record, &r->batch);
    if (!g->offset)
        g->offset = record->offset;
    const uint64_t at = tl_stf_pc_add(&r->track, record);
    const int kept = r->whole ? tl_stf_gathered_add(&r->gathered, record, g->event) : TL_OK;
    if (kept < 0)
        return kept;
    switch (record->type) {
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        return close_group(r, record, at);
    case TL_STF_INST_PC_TARGET:
        return add_target(r, record->target);
    case TL_STF_FORCE_PC:
        return add_force(r, record->pc);
    case TL_STF_EVENT:
        return add_event(r, record);
    case TL_STF_EVENT_PC_TARGET:
        g->jumped = true;
        g->next = record->target;
        return TL_OK;
    case TL_STF_PROCESS_ID_EXT:
        return add_process(r, record);
    case TL_STF_COMMENT:
        return add_comment(r, record);
    case TL_STF_INST_IEM:
        r->isa = tl_stf_isa_by_iem(r->isa, record->iem);
        return TL_OK;
    case TL_STF_INST_MICROOP:
        add_microop(g, record);
        return TL_OK;
    default:
        return TL_OK;
    }
}

int tl_stf_flow_reader_add(struct tl_stf_flow_reader *reader, const struct tl_stf_record *record)
{
    if (reader->header.complete) {
        if (record->type != TL_STF_IDENTIFIER)
            return in_group(reader, record);
        const int result = restart(reader);
        if (result < 0)
            return result;
    }
    const int result = in_header(reader, record);
    if (result < 0 || !reader->header.complete || record->type == TL_STF_END_HEADER)
        return result;
    return in_group(reader, record); /* it also ended the header */
}

int tl_stf_flow_reader_deliver(struct tl_stf_flow_reader *reader)
{
    return tl_stf_batch_deliver(&reader->batch);
}

int tl_stf_flow_reader_finish(struct tl_stf_flow_reader *reader)
{
    int result = reader->header.complete ? restart(reader) : TL_OK;
    if (result == TL_OK)
        result = tl_stf_batch_flush(&reader->batch);
    return result;
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static void group_state(struct group *g, struct tl_state *s)
{
    tl_state_bool(s, &g->forced);
    tl_state_bool(s, &g->has_target);
    tl_state_bool(s, &g->event);
    tl_state_bool(s, &g->jumped);
    tl_state_bool(s, &g->leaves);
    tl_state_bool(s, &g->faulted);
    tl_state_bool(s, &g->leapt);
    tl_state_u8(s, &g->points, TL_STF_POINTS_PAIRS);
    tl_state_u64(s, &g->leap);
    tl_state_u64(s, &g->pc);
    tl_state_u64(s, &g->target);
    tl_state_u64(s, &g->next);
    tl_state_u64(s, &g->offset);
    tl_state_u32(s, &g->n_code);
    tl_state_check(s, g->n_code <= sizeof g->code);
    tl_state_bytes(s, g->code, sizeof g->code);
}

/* Save or restore the current context, if there is one. */
static void context_state(struct tl_item *context, struct tl_state *s)
{
    bool is = context->kind == TL_ITEM_CONTEXT;
    tl_state_bool(s, &is);
    context->kind = is ? TL_ITEM_CONTEXT : 0;
    tl_state_u8(s, &context->flags, TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE);
    tl_state_u64(s, &context->pc);
    tl_state_u64(s, &context->value);
    tl_state_u64(s, &context->offset);
}

void tl_stf_flow_reader_state(struct tl_stf_flow_reader *r, struct tl_state *s)
{
    uint8_t isa = (uint8_t)r->isa;
    if (!tl_state_loads(s) && (!r->header.complete || r->n_waiting > 0 || r->batch.n > 0 ||
                               r->group.isa_after != TL_ISA_NONE))
        tl_state_fail(s, TL_AGAIN);
    tl_stf_header_state(&r->header, s);
    tl_state_check(s, r->header.complete);
    tl_state_bool(s, &r->in_trace);
    tl_state_bool(s, &r->ours);
    tl_state_bool(s, &r->first);
    tl_state_bool(s, &r->whole);
    tl_state_u8(s, &isa, TL_ISA_COUNT - 1);
    r->isa = (enum tl_isa)isa;
    tl_state_u64(s, &r->pc);
    tl_state_u64(s, &r->mode);
    tl_state_bool(s, &r->has_mode);
    context_state(&r->context, s);
    group_state(&r->group, s);
    tl_stf_groups_state(&r->gathered.groups, s);
    tl_stf_pc_state(&r->track, s);
    tl_stf_gathered_state(&r->gathered, s);
    tl_state_u8(s, &r->branch_flags, TL_ITEM_CALL | TL_ITEM_RETURN);
    tl_state_bool(s, &r->transactions.begun);
    tl_state_u8(s, &r->transactions.clock, UINT8_MAX);
    tl_state_u64(s, &r->transactions.time);
    r->batch.groups = r->whole ? &r->gathered.groups : NULL;
    tl_stf_batch_state(&r->batch, s);
}
