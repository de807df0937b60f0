/* SPDX-License-Identifier: MIT */
/*
 * Instructions from pieces of STF. scan() processes complete records in place and only examines
 * what determines the address, the mode and the group boundary. Groups that span pieces are
 * assembled in `carry`.
 *
 * Workload assumption: INST_32, INST_16, INST_PC_TARGET and memory records make up nearly all
 * records of a trace, about two per instruction.
 */
#include "stf/insns.h"

#include <stdlib.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define MARGIN        80 /* bytes after a group's start within which the fast path needs no checks */

struct tl_stf_insns {
    struct tl_stf_insns_front front;
    struct tl_stf_source source;
    struct tl_bytes in;  /* borrowed; in.p[0] is after the last complete group */
    size_t scanned;      /* bytes of `in` (or of carry, if in use) already processed */
    struct tl_buf carry; /* a group's beginning, from earlier pieces */
    uint64_t offset;     /* of in.p[0] in the stream, TL_NO_OFFSET after a seek */
    struct tl_stf_header header;
    struct tl_stf_state state;
    uint64_t pc;     /* of the next instruction */
    uint64_t target; /* of the current group */
    uint64_t at;
    uint8_t flags; /* of the current group */
    uint8_t mode, next_mode;
    bool has_pc;
    bool first; /* no instruction yet: a mode applies to the first one too */
    bool finished;
    int result; /* < 0: final */
    struct tl_fail fail;
};

int tl_stf_insns_open(struct tl_stf_insns **out, const struct tl_stf_source *source)
{
    struct tl_stf_insns *const s = calloc(1, sizeof *s);
    if (!s)
        return TL_NOMEM;
    s->source = *source;
    s->mode = s->next_mode = TL_STF_MODE_UNKNOWN;
    s->first = true;
    *out = s;
    return TL_OK;
}

int tl_stf_insns_new(struct tl_stf_insns **out)
{
    const struct tl_stf_source none = {0};
    return tl_stf_insns_open(out, &none);
}

void tl_stf_insns_free(struct tl_stf_insns *insns)
{
    if (!insns)
        return;
    tl_buf_fini(&insns->carry);
    free(insns);
}

void tl_stf_insns_push(struct tl_stf_insns *insns, struct tl_bytes bytes)
{
    insns->in = bytes;
}

void tl_stf_insns_finish(struct tl_stf_insns *insns)
{
    insns->finished = true;
}

uint64_t tl_stf_insns_at(const struct tl_stf_insns *insns)
{
    return insns->at;
}

const struct tl_stf_state *tl_stf_insns_state(const struct tl_stf_insns *insns)
{
    return &insns->state;
}

const struct tl_stf_header *tl_stf_insns_header(const struct tl_stf_insns *insns)
{
    return &insns->header;
}

/* ---- failures ------------------------------------------------------------------------------ */

/* Stream offset of the byte `after` bytes after in.p[0], if known. */
static uint64_t offset_at(const struct tl_stf_insns *s, size_t after)
{
    return s->offset == TL_NO_OFFSET ? TL_NO_OFFSET : s->offset + after;
}

static int stop(struct tl_stf_insns *s, int code, size_t after, const char *what)
{
    return s->result = tl_fail_at(&s->fail, (enum tl_err)code, offset_at(s, after), "%s", what);
}

static int stop_bad(struct tl_stf_insns *s, int code, size_t after, uint8_t descriptor)
{
    return s->result =
               tl_stf_fail_record(&s->fail, code, offset_at(s, after), &s->header, descriptor);
}

/*
 * ---- single records ---------------------------------------------------------------------------
 */

enum step {
    STEP_ON,     /* processed */
    STEP_SPLIT,  /* not processed: it changes the state common to the batch */
    STEP_MARKER, /* not processed: it closes the group */
    STEP_END     /* RESERVE_END */
};

static void step_event(struct tl_stf_insns *s, const struct tl_stf_record *record)
{
    s->flags |= TL_STF_EVENTS;
    if (record->event.number != TL_STF_EVENT_MODE_CHANGE || record->event.fields.n < 8)
        return;
    const uint64_t mode = tl_stf_word(record->event.fields, 0);
    s->next_mode = mode > 3 ? TL_STF_MODE_UNKNOWN : (uint8_t)mode;
    if (s->first)
        s->mode = s->next_mode;
}

static int step_group(struct tl_stf_insns *s, const struct tl_stf_record *record, bool batch)
{
    switch (record->type) {
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        return STEP_MARKER;
    case TL_STF_RESERVE_END:
        return STEP_END;
    case TL_STF_INST_PC_TARGET:
        s->target = record->target;
        s->flags |= TL_STF_TAKEN;
        return STEP_ON;
    case TL_STF_EVENT_PC_TARGET:
        s->target = record->target;
        s->flags |= TL_STF_TAKEN | TL_STF_EVENTS;
        return STEP_ON;
    case TL_STF_FORCE_PC:
        s->pc = record->pc;
        s->has_pc = true;
        s->flags |= TL_STF_FORCED;
        s->mode = s->next_mode;
        return STEP_ON;
    case TL_STF_INST_MEM_ACCESS:
    case TL_STF_INST_MEM_CONTENT:
    case TL_STF_BUS_MASTER_ACCESS:
    case TL_STF_BUS_MASTER_CONTENT:
        s->flags |= TL_STF_MEMORY;
        return STEP_ON;
    case TL_STF_EVENT:
        step_event(s, record);
        return STEP_ON;
    case TL_STF_PROCESS_ID_EXT:
        if (batch)
            return STEP_SPLIT;
        s->state.tgid = record->process.tgid;
        s->state.tid = record->process.tid;
        s->state.asid = record->process.asid;
        s->state.has_process = true;
        break;
    case TL_STF_INST_IEM:
        if (batch)
            return STEP_SPLIT;
        s->state.iem = record->iem;
        break;
    default:
        tl_stf_layout_apply(&s->front.layout, record);
        break;
    }
    s->flags |= TL_STF_OTHERS;
    return STEP_ON;
}

static int step_header(struct tl_stf_insns *s, const struct tl_stf_record *record)
{
    struct tl_stf_header *const h = &s->header;
    if (tl_stf_header_add(h, record) < 0) {
        h->records = 0;
        return stop_bad(s, TL_BAD, (size_t)(record->offset - s->offset), record->type);
    }
    if (!h->complete)
        return STEP_ON;
    if (h->transactions)
        return stop(s, TL_UNSUPPORTED, 0, "a transaction trace has no instructions");
    s->state = (struct tl_stf_state){h->tgid, h->tid, h->asid, h->has_process, h->iem};
    s->pc = h->pc;
    s->has_pc = h->has_pc;
    s->flags = 0;
    /* A closing record or the end mark may end a header without END_HEADER. */
    return record->type == TL_STF_END_HEADER ? STEP_ON : step_group(s, record, false);
}

/* Process the record at `at` bytes in `in`. Sets *size. */
static int step(struct tl_stf_insns *s, struct tl_bytes in, size_t at, bool batch, size_t *size)
{
    struct tl_stf_record record;
    const struct tl_bytes rest = {in.p + at, in.n - at};
    const int n = tl_stf_record_decode(&s->front.layout, rest, &record);
    if (n == TL_AGAIN)
        return TL_AGAIN;
    if (n < 0)
        return stop_bad(s, n, at, rest.p[0]);
    *size = (size_t)n;
    if (s->header.complete)
        return step_group(s, &record, batch);
    record.offset = s->offset + at;
    const int result = step_header(s, &record);
    tl_stf_layout_apply(&s->front.layout, &record);
    return result;
}

/* ---- the scan -------------------------------------------------------------------------------- */

struct scan {
    const uint8_t *p;     /* the next record */
    const uint8_t *group; /* the current group's first record */
    const uint8_t *end;
    struct tl_stf_insn *out;
    size_t n, cap;
};

/* Shift of the first of two adjacent 32-bit numbers in a 64-bit word. */
#define FIRST_HALF (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 32)
_Static_assert(offsetof(struct tl_stf_insn, opcode) == offsetof(struct tl_stf_insn, group_size) + 4,
               "written at once");
_Static_assert(offsetof(struct tl_stf_insn, mode) == offsetof(struct tl_stf_insn, size) + 2 &&
                   sizeof(struct tl_stf_insn) >= offsetof(struct tl_stf_insn, size) + 4,
               "written at once");

/*
 * Output an instruction. Its closing record, with `size` bytes of opcode, is at `closing`. Uses
 * four stores, since store throughput is the bottleneck.
 */
static ALWAYS_INLINE void put_insn(struct tl_stf_insn *out, uint64_t pc, const uint8_t *group,
                                   const uint8_t *closing, uint32_t size, uint32_t tail)
{
    const uint64_t opcode = size == 4 ? tl_le32(closing + 1) : tl_le16(closing + 1);
    const uint64_t group_size = (uint32_t)(closing - group) + 1 + size;
    const uint64_t both = group_size << FIRST_HALF | opcode << (32 - FIRST_HALF);
    out->pc = pc;
    out->group = group;
    memcpy(&out->group_size, &both, sizeof both);
    tl_put_le32(&out->size, size | tail);
}

/* The bytes put_insn() stores after the size. */
static ALWAYS_INLINE uint32_t tail_of(uint32_t flags, uint32_t mode, uint32_t shape)
{
    return flags << 8 | mode << 16 | shape << 24;
}

static ALWAYS_INLINE bool closes(uint8_t type)
{
    return (type | 1) == TL_STF_INST_16; /* 240 and 241 */
}

static ALWAYS_INLINE uint32_t opcode_size(uint8_t type)
{
    return type == TL_STF_INST_32 ? 4 : 2;
}

/*
 * Process the rest of the group that began at c->group, up to and including its closing record;
 * s->flags and s->target hold its state. Returns false before any other record, or at the end of
 * what is certainly complete.
 */
static bool scan_group(struct tl_stf_insns *s, struct scan *c, const uint8_t *safe)
{
    const uint8_t *p = c->p;
    unsigned flags = s->flags;
    bool on = true;
    while ((on = p < safe) && !closes(*p)) {
        if (*p == TL_STF_INST_REG && (p[3] & 15) != TL_STF_REG_VECTOR) {
            flags |= TL_STF_OTHERS;
            p += TL_STF_SCALAR_BYTES;
        } else if (*p == TL_STF_INST_MEM_ACCESS) {
            flags |= TL_STF_MEMORY;
            p += TL_STF_ACCESS_BYTES;
            if (p[0] == TL_STF_INST_MEM_CONTENT)
                p += TL_STF_CONTENT_BYTES;
        } else if (*p == TL_STF_INST_PC_TARGET) {
            s->target = tl_le64(p + 1);
            flags |= TL_STF_TAKEN;
            p += TL_STF_TARGET_BYTES;
        } else {
            on = false;
            break;
        }
    }
    c->p = p;
    s->flags = (uint8_t)flags;
    if (!on)
        return false;
    const uint32_t size = opcode_size(*p);
    put_insn(&c->out[c->n++], s->pc, c->group, p, size, tail_of(flags, s->mode, 0));
    s->pc = flags & TL_STF_TAKEN ? s->target : s->pc + size;
    s->flags = 0;
    s->mode = s->next_mode;
    c->p = c->group = p + 1 + size;
    return true;
}

/* A group that consists of several usual records. */
struct mixed {
    const uint8_t *closing;
    uint64_t target;
    uint8_t flags, shape;
};

/* Scan the group that begins at `p`. Returns false at any other record, or at the end of what is
 * certainly complete. */
static ALWAYS_INLINE bool scan_mixed(struct mixed *m, const uint8_t *p, const uint8_t *safe)
{
    unsigned flags = 0;
    m->target = 0;
    for (; p < safe; p += p[0] == TL_STF_INST_REG ? TL_STF_SCALAR_BYTES : TL_STF_CONTENT_BYTES) {
        if (*p == TL_STF_INST_MEM_ACCESS) {
            flags |= TL_STF_MEMORY;
            p += TL_STF_ACCESS_BYTES;
            if (*p == TL_STF_INST_MEM_CONTENT)
                continue;
        }
        if (*p == TL_STF_INST_REG && (p[3] & 15) != TL_STF_REG_VECTOR) {
            flags |= TL_STF_OTHERS;
        } else if (*p == TL_STF_INST_PC_TARGET) {
            m->target = tl_le64(p + 1);
            flags |= TL_STF_TAKEN;
        } else {
            break;
        }
    }
    m->closing = p;
    m->flags = (uint8_t)flags;
    m->shape = 0;
    return p < safe && closes(*p);
}

#define MIN_INSN     TL_STF_CLOSING_16_BYTES /* minimum bytes of an instruction */
#define MEMORY_BYTES (TL_STF_ACCESS_BYTES + TL_STF_CONTENT_BYTES)

/* Scan the group that begins at `p` if it has registers and a known shape. */
static ALWAYS_INLINE bool scan_shape(struct mixed *m, const uint8_t *p)
{
    unsigned flags = TL_STF_OTHERS, shape = TL_STF_SHAPE_KNOWN + 1;
    if (*p == TL_STF_INST_PC_TARGET) {
        m->target = tl_le64(p + 1);
        flags |= TL_STF_TAKEN;
        p += TL_STF_TARGET_BYTES;
    }
    if (*p != TL_STF_INST_REG)
        return false;
    p += TL_STF_SCALAR_BYTES;
    if (*p == TL_STF_INST_REG) {
        p += TL_STF_SCALAR_BYTES;
        shape++;
        if (*p == TL_STF_INST_REG) {
            p += TL_STF_SCALAR_BYTES;
            shape++;
        }
    }
    if (*p == TL_STF_INST_MEM_ACCESS && p[TL_STF_ACCESS_BYTES] == TL_STF_INST_MEM_CONTENT) {
        p += MEMORY_BYTES;
        shape |= TL_STF_SHAPE_ACCESS;
        flags |= TL_STF_MEMORY;
    }
    m->closing = p;
    m->shape = (uint8_t)shape;
    m->flags = (uint8_t)flags;
    return closes(*p);
}

/*
 * Process the records that most groups consist of, as long as they are certainly complete. Stops
 * before any other one.
 *
 * Three shapes make up nearly all groups of a trace without registers: a closing record alone,
 * after a memory access, or after a branch target. Each has its own path here, which only updates
 * position, address and output. The fourth path handles groups with registers and mixtures.
 */
static void scan_fast(struct tl_stf_insns *s, struct scan *c)
{
    if ((size_t)(c->end - c->p) <= MARGIN)
        return;
    const uint8_t *const safe = c->end - MARGIN;
    if (c->p != c->group || s->flags || s->mode != s->next_mode) {
        if (!scan_group(s, c, safe))
            return;
    }
    const bool scalar = s->front.layout.vlen <= 64; /* all registers have 12 bytes */
    const uint32_t plain = tail_of(0, s->mode, TL_STF_SHAPE_KNOWN),
                   memory =
                       tail_of(TL_STF_MEMORY, s->mode, TL_STF_SHAPE_KNOWN | TL_STF_SHAPE_ACCESS),
                   taken = tail_of(TL_STF_TAKEN, s->mode, TL_STF_SHAPE_KNOWN);
    bool on = true;
    while (on && c->n < c->cap && c->p < safe) {
        const uint8_t *p = c->p;
        struct tl_stf_insn *out = c->out + c->n;
        uint64_t pc = s->pc;
        /* Stop where the output could be full. */
        const size_t room = MIN_INSN * (c->cap - c->n);
        const uint8_t *const stop = (size_t)(safe - p) < room ? safe : p + room;
        do {
            uint8_t type = *p;
            if (type == TL_STF_INST_16) {
                put_insn(out++, pc, p, p, 2, plain);
                pc += 2;
                p += TL_STF_CLOSING_16_BYTES;
            } else if (type == TL_STF_INST_32) {
                put_insn(out++, pc, p, p, 4, plain);
                pc += 4;
                p += TL_STF_CLOSING_BYTES;
            } else if (type == TL_STF_INST_MEM_ACCESS &&
                       p[TL_STF_ACCESS_BYTES] == TL_STF_INST_MEM_CONTENT &&
                       p[MEMORY_BYTES] == TL_STF_INST_32) {
                put_insn(out++, pc, p, p + MEMORY_BYTES, 4, memory);
                pc += 4;
                p += MEMORY_BYTES + TL_STF_CLOSING_BYTES;
            } else if (type == TL_STF_INST_MEM_ACCESS &&
                       p[TL_STF_ACCESS_BYTES] == TL_STF_INST_MEM_CONTENT &&
                       p[MEMORY_BYTES] == TL_STF_INST_16) {
                put_insn(out++, pc, p, p + MEMORY_BYTES, 2, memory);
                pc += 2;
                p += MEMORY_BYTES + TL_STF_CLOSING_16_BYTES;
            } else if (type == TL_STF_INST_PC_TARGET && p[TL_STF_TARGET_BYTES] == TL_STF_INST_32) {
                put_insn(out++, pc, p, p + TL_STF_TARGET_BYTES, 4, taken);
                pc = tl_le64(p + 1);
                p += TL_STF_TARGET_BYTES + TL_STF_CLOSING_BYTES;
            } else if (type == TL_STF_INST_PC_TARGET && p[TL_STF_TARGET_BYTES] == TL_STF_INST_16) {
                put_insn(out++, pc, p, p + TL_STF_TARGET_BYTES, 2, taken);
                pc = tl_le64(p + 1);
                p += TL_STF_TARGET_BYTES + TL_STF_CLOSING_16_BYTES;
            } else {
                struct mixed mixed;
                mixed.target = 0; /* undefined without TL_STF_TAKEN */
                if (!(scalar && scan_shape(&mixed, p)) && !scan_mixed(&mixed, p, safe))
                    break;
                const uint32_t size = opcode_size(*mixed.closing);
                put_insn(out++, pc, p, mixed.closing, size,
                         tail_of(mixed.flags, s->mode, mixed.shape));
                pc = mixed.flags & TL_STF_TAKEN ? mixed.target : pc + size;
                p = mixed.closing + 1 + size;
            }
        } while (p < stop);
        c->n = (size_t)(out - c->out);
        c->p = c->group = p;
        s->pc = pc;
        if (p < stop)
            on = scan_group(s, c, safe);
    }
}

/* Finish a group: c->p is its closing record. */
static int close_group(struct tl_stf_insns *s, struct scan *c, const uint8_t *begin)
{
    if (!s->has_pc)
        return stop(s, TL_BAD, (size_t)(c->p - begin),
                    "an instruction before any FORCE_PC: its address is not known");
    if (c->p - c->group > TL_STF_GROUP_MAX) {
        c->group = c->p;
        s->flags |= TL_STF_HEADLESS;
    }
    const uint32_t size = *c->p == TL_STF_INST_32 ? 4 : 2;
    c->out[c->n++] = (struct tl_stf_insn){
        .pc = s->pc,
        .group = c->group,
        .group_size = (uint32_t)(c->p - c->group) + 1 + size,
        .opcode = size == 4 ? tl_le32(c->p + 1) : tl_le16(c->p + 1),
        .size = (uint8_t)size,
        .flags = s->flags,
        .mode = s->mode,
    };
    s->pc = s->flags & TL_STF_TAKEN ? s->target : s->pc + size;
    s->flags = 0;
    s->mode = s->next_mode;
    c->p += 1 + size;
    c->group = c->p;
    return STEP_ON;
}

/* Process one record of any kind. */
static int scan_one(struct tl_stf_insns *s, struct scan *c, const uint8_t *begin)
{
    if (c->p == c->end)
        return TL_AGAIN;
    if (c->n)
        s->first = false;
    const bool in_header = !s->header.complete;
    size_t size = 0;
    const struct tl_bytes in = {begin, (size_t)(c->end - begin)};
    const int result = step(s, in, (size_t)(c->p - begin), c->n > 0, &size);
    if (in_header && result >= 0)
        c->group = result == STEP_ON ? c->p + size : c->p;
    if (result == STEP_MARKER)
        return close_group(s, c, begin);
    if (result == STEP_ON)
        c->p += size;
    if (result == STEP_END)
        s->result = TL_EOF;
    return result;
}

/*
 * Output instructions of `in` to c->out[c->n…cap]. The current group begins at in.p and was
 * processed up to s->scanned. Returns the bytes of complete groups and updates s->scanned. If
 * something cannot be decoded, s->result is set.
 */
static size_t scan(struct tl_stf_insns *s, struct tl_bytes in, struct scan *c)
{
    c->group = in.p;
    c->p = in.p + s->scanned;
    c->end = in.p + in.n;
    int result = STEP_ON;
    while (c->n < c->cap && result == STEP_ON) {
        if (s->header.complete && s->has_pc)
            scan_fast(s, c);
        if (c->n < c->cap)
            result = scan_one(s, c, in.p);
    }
    if (c->n)
        s->first = false;
    s->scanned = (size_t)(c->p - c->group);
    return (size_t)(c->group - in.p);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void advance(struct tl_stf_insns *s, size_t n)
{
    s->in.p += n;
    s->in.n -= n;
}

static void moved(struct tl_stf_insns *s, size_t n)
{
    if (s->offset != TL_NO_OFFSET)
        s->offset += n;
}

/* Limit a group that does not end: drop the records already processed. */
static void shorten(struct tl_stf_insns *s)
{
    if (s->carry.n <= TL_STF_GROUP_MAX)
        return;
    tl_buf_drop(&s->carry, s->scanned);
    moved(s, s->scanned);
    s->scanned = 0;
    s->flags |= TL_STF_HEADLESS;
}

/* Continue the group in `carry` with bytes of `in`. */
static int read_carry(struct tl_stf_insns *s, struct scan *c)
{
    const size_t cap = c->cap;
    c->cap = c->n + 1;
    while (s->in.n && s->carry.n && c->n < c->cap && s->result == 0) {
        const size_t before = s->carry.n;
        const size_t n = s->in.n < 4096 ? s->in.n : 4096;
        if (tl_buf_add(&s->carry, s->in.p, n) < 0)
            return stop(s, TL_NOMEM, 0, "out of memory");
        const size_t used = scan(s, (struct tl_bytes){s->carry.p, s->carry.n}, c);
        moved(s, used);
        if (used >= before) { /* the rest can be processed in place */
            advance(s, used - before);
            s->carry.n = 0;
            break;
        }
        tl_buf_drop(&s->carry, used);
        advance(s, n);
        shorten(s);
    }
    c->cap = cap;
    return TL_OK;
}

/* Get the next piece. The rest of the last one is the beginning of a group. */
static int more(struct tl_stf_insns *s)
{
    if (s->in.n && tl_buf_add(&s->carry, s->in.p, s->in.n) < 0)
        return stop(s, TL_NOMEM, 0, "out of memory");
    s->in.n = 0;
    if (s->finished)
        return TL_EOF;
    if (!s->source.next)
        return TL_AGAIN;
    const int result = s->source.next(s->source.context, &s->in, &s->fail);
    if (result == TL_EOF)
        s->finished = true;
    else if (result < 0)
        s->result = result;
    return result;
}

static int at_end(struct tl_stf_insns *s)
{
    struct tl_bytes left = {0};
    if (s->carry.n > s->scanned)
        left = (struct tl_bytes){s->carry.p + s->scanned, s->carry.n - s->scanned};
    const uint64_t offset = offset_at(s, left.n ? s->scanned : 0);
    return s->result = tl_stf_fail_end(&s->fail, offset, &s->header, left);
}

static int read_insns(struct tl_stf_insns *s, struct tl_stf_insn *out, size_t cap)
{
    struct scan c = {.out = out, .cap = cap};
    while (s->result == 0) {
        if (s->carry.n && s->in.n) {
            const int result = read_carry(s, &c);
            if (result < 0)
                break;
        }
        if (!s->carry.n && s->in.n && c.n < cap && s->result == 0) {
            const size_t used = scan(s, s->in, &c);
            advance(s, used);
            moved(s, used);
        }
        if (c.n || s->result < 0)
            break; /* pieces are only valid until the next one is requested */
        const int result = more(s);
        if (result == TL_EOF)
            return at_end(s);
        if (result < 0)
            return result;
    }
    if (c.n == 0)
        return s->result;
    s->at += c.n;
    return (int)c.n;
}

int tl_stf_insns_read(struct tl_stf_insns *insns, struct tl_stf_insn *out, size_t cap,
                      struct tl_fail *fail)
{
    if (cap == 0)
        return tl_fail_set(fail, TL_USAGE, "no room for instructions");
    if (cap > INT32_MAX)
        cap = INT32_MAX;
    const int result = insns->result < 0 ? insns->result : read_insns(insns, out, cap);
    if (result < 0 && fail)
        *fail = insns->fail;
    return result;
}

/* ---- seeking --------------------------------------------------------------------------------- */

/* Read on until the next instruction is number `at`. */
static int skip_to(struct tl_stf_insns *s, uint64_t at, struct tl_fail *fail)
{
    struct tl_stf_insn batch[256];
    while (s->at < at) {
        const uint64_t left = at - s->at;
        const int n = tl_stf_insns_read(s, batch, left < 256 ? (size_t)left : 256, fail);
        if (n == TL_EOF)
            return tl_fail_set(fail, TL_NOTFOUND, "the trace has only %llu instructions",
                               (unsigned long long)s->at);
        if (n < 0)
            return n;
    }
    return TL_OK;
}

/* Read the header before seeking past it: it determines how later chunks are read. */
static int need_header(struct tl_stf_insns *s, struct tl_fail *fail)
{
    if (s->header.complete)
        return TL_OK;
    struct tl_stf_insn one;
    const int n = tl_stf_insns_read(s, &one, 1, fail);
    return n < 0 && n != TL_EOF ? n : TL_OK;
}

static void restart(struct tl_stf_insns *s, uint64_t first, uint64_t pc)
{
    s->in.n = 0;
    s->carry.n = 0;
    s->scanned = 0;
    s->flags = 0;
    s->finished = false;
    s->result = 0;
    s->mode = s->next_mode = TL_STF_MODE_UNKNOWN;
    s->at = first;
    s->first = first == 0;
    s->offset = first ? TL_NO_OFFSET : 0;
    if (first == 0) { /* will read the header again */
        s->header = (struct tl_stf_header){0};
        s->front.layout = (struct tl_stf_layout){0};
        s->has_pc = false;
        return;
    }
    s->pc = pc;
    s->has_pc = true;
    s->state = (struct tl_stf_state){s->header.tgid, s->header.tid, s->header.asid,
                                     s->header.has_process, s->header.iem};
}

int tl_stf_insns_seek(struct tl_stf_insns *insns, uint64_t at, struct tl_fail *fail)
{
    if (!insns->source.seek) {
        if (at < insns->at)
            return tl_fail_set(fail, TL_UNSUPPORTED,
                               "cannot go back in a trace that has no chunk index");
        return skip_to(insns, at, fail);
    }
    int result = need_header(insns, fail);
    if (result < 0)
        return result;
    uint64_t first, pc;
    result = insns->source.seek(insns->source.context, at, &first, &pc, fail);
    if (result < 0)
        return result;
    restart(insns, first, pc);
    return skip_to(insns, at, fail);
}

/* ---- groups ---------------------------------------------------------------------------------- */

uint64_t tl_stf_insn_next_any(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn)
{
    uint64_t next = insn->pc + insn->size;
    struct tl_stf_group group = tl_stf_insn_group(insns, insn);
    struct tl_stf_record record;
    while (tl_stf_group_next(&group, &record) == TL_OK) {
        if (record.type == TL_STF_INST_PC_TARGET || record.type == TL_STF_EVENT_PC_TARGET)
            next = record.target;
    }
    return next;
}

uint32_t tl_stf_insn_bytes(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                           uint8_t out[static 16])
{
    tl_put_le32(out, insn->opcode);
    if (!(insn->flags & TL_STF_OTHERS) || insns->header.isa == TL_STF_ISA_ARM)
        return insn->size;
    const bool x86 = insns->header.isa == TL_STF_ISA_X86;
    /* RISC-V: instructions of 48 bits and more end in 11111. */
    if (!x86 && (insn->opcode & 31) != 31)
        return insn->size;
    uint32_t n = 0;
    struct tl_stf_group group = tl_stf_insn_group(insns, insn);
    struct tl_stf_record record;
    while (tl_stf_group_next(&group, &record) == TL_OK) {
        if (record.type != TL_STF_INST_MICROOP)
            continue;
        for (uint32_t i = 0; i < record.microop.size && i < 4 && n < 16; i++)
            out[n++] = (uint8_t)(record.microop.op >> 8 * i);
    }
    return n ? n : insn->size;
}
