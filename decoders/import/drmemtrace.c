/* SPDX-License-Identifier: MIT */
/*
 * An instruction's encoding stands in front of its first visit only, so encodings are kept by
 * address. Whether it branched is told by the address of the next one.
 */
#include "import/drmemtrace.h"

#include "base/bytes.h"
#include "stf/flow/flow_batch.h"
#include "stf/flow/flow_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD = 12, CODE = 16 };

enum type {
    INSTR = 10,
    INSTR_LAST = 17, /* of plain ones and the kinds of branches; a bundle */
    THREAD = 22,
    HEADER = 25,
    FOOTER = 26,
    MARKER = 28,
    SYSENTER = 31,
    ENCODING = 47,
    TAKEN_JUMP = 48,
    UNTAKEN_JUMP = 49
};

enum marker { KERNEL_EVENT = 0, KERNEL_XFER = 1, FILETYPE = 9, WINDOW = 17 };

/* Of the file's type. */
enum arch { AARCH64 = 0x08, ARM32 = 0x10, X86_32 = 0x20, X86_64 = 0x40 };

#define VERSION_MAX 1000 /* of the format: more is another file */

struct code {
    uint64_t pc;
    uint8_t size; /* bytes; 0: the slot is free */
    uint8_t bytes[CODE];
};

struct trace {
    struct tl_stf_batch batch;
    struct tl_stf_flow *flow;
    struct tl_fail *fail;
    enum tl_isa isa;
    uint64_t at; /* offset of the record */
    uint64_t thread, current;
    struct code *codes; /* a hash table by address, never more than half full */
    size_t n_codes, slots;
    struct code coming; /* the encoding of the next instruction */
    struct code last;   /* not delivered yet; size 0: none */
    uint64_t last_at;
    bool leaves; /* behind `last` the flow was interrupted */
    uint64_t insns;
    bool ended; /* by its mark */
};

/* ---- encodings ------------------------------------------------------------------------------- */

static struct code *slot_of(const struct trace *t, uint64_t pc)
{
    size_t i = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->slots - 1);
    while (t->codes[i].size && t->codes[i].pc != pc)
        i = (i + 1) & (t->slots - 1);
    return &t->codes[i];
}

static int grow(struct trace *t)
{
    const struct trace old = *t;
    t->slots = old.slots ? 2 * old.slots : 1024;
    t->codes = calloc(t->slots, sizeof *t->codes);
    if (!t->codes) {
        *t = old;
        return TL_NOMEM;
    }
    for (size_t i = 0; i < old.slots; i++)
        if (old.codes[i].size)
            *slot_of(t, old.codes[i].pc) = old.codes[i];
    free(old.codes);
    return TL_OK;
}

/* The instruction's encoding: the one in front of it, or that of an earlier visit. NULL: none, or
 * out of memory. */
static const struct code *find_code(struct trace *t, uint64_t pc)
{
    if (2 * (t->n_codes + 1) > t->slots && grow(t) < 0)
        return NULL;
    struct code *const slot = slot_of(t, pc);
    if (t->coming.size) {
        t->n_codes += slot->size == 0;
        *slot = t->coming;
        slot->pc = pc;
        t->coming.size = 0;
    }
    return slot->size ? slot : NULL;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static int write_items(void *context, const struct tl_item *items, size_t n)
{
    struct trace *const t = context;
    struct tl_stf_flow_at at = {0};
    return tl_stf_flow_items(t->flow, items, n, UINT64_MAX, &at);
}

/* Deliver the instruction that waits; `*next`: address of the one behind it, NULL: none is. */
static int deliver(struct trace *t, const uint64_t *next)
{
    const struct code last = t->last;
    if (last.size == 0)
        return TL_OK;
    const bool goes = next && !t->leaves && *next != last.pc + last.size;
    t->last.size = 0;
    t->insns++;
    int rc =
        tl_stf_batch_insn(&t->batch, t->isa, last.pc, last.bytes, last.size, (struct tl_bytes){0},
                          goes ? TL_STF_TAKEN : TL_STF_STRAIGHT, t->last_at);
    const struct tl_item gap = {
        .kind = TL_ITEM_NOTE, .text = "interrupted by the kernel", .offset = t->at};
    if (rc == TL_OK && t->leaves)
        rc = tl_stf_batch_add(&t->batch, &gap);
    t->leaves = false;
    return rc;
}

static int take_insn(struct trace *t, uint64_t pc, unsigned size)
{
    if (t->isa == TL_ISA_NONE)
        return tl_fail_set(t->fail, TL_BAD,
                           "byte %" PRIu64 ": an instruction before the marker that names the kind "
                           "of processor",
                           t->at);
    if (!t->thread)
        t->thread = t->current;
    const struct code *const code = find_code(t, pc);
    if (t->current != t->thread)
        return TL_OK;
    if (!code || code->size != size)
        return tl_fail_set(
            t->fail, TL_BAD,
            "byte %" PRIu64 ": the instruction at 0x%" PRIx64
            " has no encoding of %u bytes: convert the trace with a newer version of "
            "DynamoRIO",
            t->at, pc, size);
    const int rc = deliver(t, &pc);
    t->last = *code;
    t->last_at = t->at;
    return rc;
}

static int take_file_type(struct trace *t, uint64_t type)
{
    t->isa = type & AARCH64  ? TL_ISA_A64
             : type & X86_64 ? TL_ISA_X64
             : type & X86_32 ? TL_ISA_X32
                             : TL_ISA_NONE;
    if (t->isa == TL_ISA_NONE)
        return tl_fail_set(t->fail, TL_UNSUPPORTED,
                           "byte %" PRIu64 ": file type 0x%" PRIx64
                           " is of no processor that can be read: AArch64 and x86 can",
                           t->at, type);
    static const char *const comments[] = {"drmemtrace, read by tracelake " TL_VERSION};
    const struct tl_stf_flow_options options = {
        .isa = t->isa, .comments = true, .header_comments = comments, .n_header_comments = 1};
    if (t->flow)
        return TL_OK;
    const int rc = tl_stf_flow_new(&t->flow, &options, NULL);
    const bool is_arm = t->isa == TL_ISA_A64;
    const struct tl_item mode = {.kind = TL_ITEM_MODE, /* only programs are traced */
                                 .flags = TL_ITEM_HAS_VALUE,
                                 .value =
                                     tl_mode(is_arm ? TL_ARCH_ARM : TL_ARCH_X86, is_arm ? 0 : 3,
                                             is_arm ? TL_SEC_NS : TL_SEC_NONE, t->isa)};
    return rc == TL_OK ? tl_stf_batch_add(&t->batch, &mode) : rc;
}

static int take_marker(struct trace *t, unsigned kind, uint64_t value)
{
    if (kind == FILETYPE)
        return take_file_type(t, value);
    if (t->current == t->thread && (kind == KERNEL_EVENT || kind == KERNEL_XFER || kind == WINDOW))
        t->leaves = t->last.size > 0;
    return TL_OK;
}

/* A piece of up to 8 bytes of the next instruction's encoding. */
static int take_encoding(struct trace *t, const uint8_t *bytes, unsigned n)
{
    if (n > 8 || t->coming.size + n > CODE)
        return tl_fail_set(t->fail, TL_BAD, "byte %" PRIu64 ": an encoding of more than %d bytes",
                           t->at, CODE);
    memcpy(t->coming.bytes + t->coming.size, bytes, n);
    t->coming.size = (uint8_t)(t->coming.size + n);
    return TL_OK;
}

static int take_record(struct trace *t, const uint8_t *p)
{
    const unsigned type = tl_le16(p), size = tl_le16(p + 2);
    const uint64_t value = tl_le64(p + 4);
    if (type == ENCODING)
        return take_encoding(t, p + 4, size);
    t->ended = type == FOOTER;
    if (type == THREAD)
        t->current = value;
    if (type == MARKER)
        return take_marker(t, size, value);
    const bool is_insn = (type >= INSTR && type <= INSTR_LAST) || type == SYSENTER ||
                         type == TAKEN_JUMP || type == UNTAKEN_JUMP;
    return is_insn ? take_insn(t, value, size) : TL_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

bool tl_drmemtrace_is(const char *first, size_t n)
{
    const uint8_t *const p = (const uint8_t *)first;
    return n >= RECORD && tl_le16(p) == HEADER && tl_le16(p + 2) == 0 && tl_le64(p + 4) > 0 &&
           tl_le64(p + 4) < VERSION_MAX;
}

/* What stands before a bad record, or before the place where the file was cut, is kept. */
static int keep_begin(struct trace *t, struct tl_model_input *in, int rc)
{
    if (t->insns == 0 && t->last.size == 0)
        return rc;
    if (rc == TL_BAD || rc == TL_UNSUPPORTED)
        tl_model_leave_out(in, "%s; what stands before is kept", t->fail->text);
    else if (rc == TL_OK && !t->ended)
        tl_model_leave_out(in,
                           "byte %" PRIu64 ": the trace has no mark at its end: it was cut, or is "
                           "still written",
                           t->at);
    return rc == TL_BAD || rc == TL_UNSUPPORTED ? TL_OK : rc;
}

static int read_all(struct trace *t, struct tl_model_input *in)
{
    uint8_t record[RECORD];
    int rc = TL_OK;
    while (rc == TL_OK && fread(record, 1, RECORD, in->from) == RECORD) {
        if (t->at == 0 && !tl_drmemtrace_is((char *)record, RECORD))
            return tl_fail_set(t->fail, TL_BAD,
                               "byte 0: no drmemtrace of 64 bits; unpack it first (unzip -p), and "
                               "convert raw files by drraw2trace");
        rc = take_record(t, record);
        t->at += RECORD;
    }
    rc = keep_begin(t, in, rc);
    if (rc == TL_OK)
        rc = deliver(t, NULL);
    if (rc == TL_OK && t->insns == 0)
        rc = tl_fail_set(t->fail, TL_BAD, "no instruction of thread %" PRIu64, t->thread);
    if (rc == TL_OK)
        rc = tl_stf_batch_flush(&t->batch);
    return rc == TL_OK ? tl_stf_flow_finish(t->flow) : rc;
}

int tl_drmemtrace_read(struct tl_buf *out, struct tl_model_input *in, struct tl_fail *fail)
{
    struct trace *const t = calloc(1, sizeof *t);
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    t->fail = fail;
    t->thread = in->number;
    t->batch.sink = write_items;
    t->batch.context = t;
    int rc = read_all(t, in);
    if (rc == TL_OK) {
        const struct tl_bytes stf = tl_stf_flow_bytes(t->flow);
        rc = tl_buf_add(out, stf.p, stf.n);
    }
    if (rc == TL_NOMEM)
        tl_fail_set(fail, TL_NOMEM, "out of memory");
    tl_stf_flow_free(t->flow);
    tl_stf_batch_fini(&t->batch);
    free(t->codes);
    free(t);
    return rc;
}
