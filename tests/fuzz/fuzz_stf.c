/* SPDX-License-Identifier: MIT */
/*
 * Any bytes through every STF reader: records, instructions, flow items, order checks, and back
 * through the writer. The first byte chooses how the rest is cut into pieces.
 */
#include "stf/file.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"
#include "stf/insns.h"
#include "stf/writer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Read records; each must encode to the bytes it was decoded from. */
static uint64_t records(struct tl_bytes bytes)
{
    struct tl_stf_file *file;
    if (tl_stf_file_bytes(&file, bytes, NULL) < 0)
        return 0;
    const struct tl_stf_source source = tl_stf_file_source(file);
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    struct tl_stf_layout layout = {0};
    struct tl_stf_order order = {0};
    struct tl_buf out = {0};
    uint64_t insns = 0;
    const char *rule;
    must(tl_stf_reader_open(&reader, &source) == TL_OK);
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK) {
        tl_buf_reset(&out);
        must(tl_stf_record_encode(&layout, &record, &out) == TL_OK);
        must(out.n == record.size);
        tl_stf_layout_apply(&layout, &record);
        tl_buf_reset(&out);
        must(tl_stf_record_text(&record, &out) == TL_OK);
        (void)tl_stf_order_add(&order, &record, &rule);
        insns += record.type == TL_STF_INST_32 || record.type == TL_STF_INST_16;
    }
    tl_stf_reader_free(reader);
    tl_stf_file_close(file);
    tl_buf_fini(&out);
    return insns;
}

/* Read instructions, in pieces of `step` bytes; there are never more than closing records. */
static void instructions(struct tl_bytes plain, size_t step, uint64_t most)
{
    struct tl_stf_insns *insns;
    struct tl_stf_insn batch[32];
    uint64_t count = 0;
    must(tl_stf_insns_new(&insns) == TL_OK);
    for (size_t i = 0;;) {
        const int n = tl_stf_insns_read(insns, batch, 32, NULL);
        if (n == TL_AGAIN) {
            if (i == plain.n) {
                tl_stf_insns_finish(insns);
                continue;
            }
            const size_t left = plain.n - i;
            const size_t now = left < step ? left : step;
            tl_stf_insns_push(insns, (struct tl_bytes){plain.p + i, now});
            i += now;
            continue;
        }
        if (n < 0)
            break;
        for (int k = 0; k < n; k++) {
            uint8_t code[16];
            tl_stf_insn_next(insns, &batch[k]);
            tl_stf_insn_bytes(insns, &batch[k], code);
        }
        count += (uint64_t)n;
    }
    must(count <= most);
    tl_stf_insns_free(insns);
}

/* Read all instructions of plain bytes, at most `cap`. */
static size_t all_insns(struct tl_bytes plain, struct tl_stf_insn *out, size_t cap)
{
    struct tl_stf_insns *insns;
    struct tl_stf_insn batch[32];
    size_t n = 0;
    int got;
    must(tl_stf_insns_new(&insns) == TL_OK);
    tl_stf_insns_push(insns, plain);
    tl_stf_insns_finish(insns);
    while (n < cap && (got = tl_stf_insns_read(insns, batch, 32, NULL)) > 0) {
        for (int i = 0; i < got && n < cap; i++)
            out[n++] = batch[i];
    }
    tl_stf_insns_free(insns);
    return n;
}

/* Check that a trace cut at `at` gives exactly the instructions that end before the cut. The bytes
 * are copied, so that a sanitizer detects a read past the cut. */
static void cut(struct tl_bytes plain, size_t at)
{
    static struct tl_stf_insn whole[4096], part[4096];
    uint8_t *const copy = malloc(at ? at : 1);
    must(copy != NULL);
    memcpy(copy, plain.p, at);
    const size_t n = all_insns(plain, whole, 4096);
    const size_t m = all_insns((struct tl_bytes){copy, at}, part, 4096);
    size_t want = 0;
    while (want < n && (size_t)(whole[want].group - plain.p) + whole[want].group_size <= at)
        want++;
    must(m == want);
    for (size_t i = 0; i < m; i++)
        must(part[i].pc == whole[i].pc && part[i].opcode == whole[i].opcode &&
             part[i].size == whole[i].size && part[i].flags == whole[i].flags &&
             part[i].mode == whole[i].mode && part[i].group_size == whole[i].group_size);
    free(copy);
}

struct rewriting {
    struct tl_stf_flow *flow;
    struct tl_buf out;   /* its output */
    struct tl_buf text;  /* of the items */
    struct tl_buf insns; /* of their instructions: addresses and bytes */
};

static void take(struct rewriting *r)
{
    const struct tl_bytes bytes = tl_stf_flow_bytes(r->flow);
    must(tl_buf_add(&r->out, bytes.p, bytes.n) == TL_OK);
    tl_stf_flow_take(r->flow);
}

static void note_insns(struct rewriting *r, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_block *const block = items[i].block;
        for (uint32_t at = 0, k = 0; items[i].kind == TL_ITEM_BLOCK && k < items[i].n; k++) {
            struct tl_insn insn;
            tl_block_insn(block, at, &insn);
            const uint64_t pc = block->pc + at;
            must(insn.size > 0 && at + insn.size <= block->size);
            must(tl_buf_add(&r->insns, &pc, sizeof pc) == TL_OK);
            must(tl_buf_add(&r->insns, block->code + at, insn.size) == TL_OK);
            at += insn.size;
        }
    }
}

static int rewrite(void *context, const struct tl_item *items, size_t n)
{
    struct rewriting *const r = context;
    struct tl_stf_flow_at at = {0};
    uint64_t stop = tl_stf_flow_markers(r->flow) + 3;
    int result;
    tl_buf_reset(&r->text);
    must(tl_item_text(&r->text, items, n) == TL_OK);
    note_insns(r, items, n);
    while ((result = tl_stf_flow_items(r->flow, items, n, stop, &at)) == TL_AGAIN) {
        must(tl_stf_flow_markers(r->flow) == stop);
        take(r);
        stop += 3;
    }
    return result;
}

static void rewriting_fini(struct rewriting *r)
{
    tl_buf_fini(&r->out);
    tl_buf_fini(&r->text);
    tl_buf_fini(&r->insns);
}

/* Read flow items and write them again. */
static void items(struct tl_bytes bytes, struct rewriting *r)
{
    struct tl_stf_file *file;
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64, .comments = true};
    *r = (struct rewriting){0};
    if (tl_stf_file_bytes(&file, bytes, NULL) < 0)
        return;
    const struct tl_stf_source source = tl_stf_file_source(file);
    must(tl_stf_flow_new(&r->flow, &options, NULL) == TL_OK);
    (void)!tl_stf_flow_read(&source, rewrite, r, NULL);
    must(tl_stf_flow_finish(r->flow) == TL_OK);
    take(r);
    tl_stf_flow_free(r->flow);
    tl_stf_file_close(file);
}

/* Check that the rewritten trace has the same instructions. */
static void again(struct tl_bytes bytes)
{
    struct rewriting once, twice;
    items(bytes, &once);
    if (once.out.n) {
        items((struct tl_bytes){once.out.p, once.out.n}, &twice);
        must(once.insns.n == twice.insns.n &&
             (once.insns.n == 0 || memcmp(once.insns.p, twice.insns.p, once.insns.n) == 0));
        rewriting_fini(&twice);
    }
    rewriting_fini(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct tl_bytes bytes = {data + 1, size - 1};
    const uint64_t insns = records(bytes);
    if (bytes.n && bytes.p[0] == TL_STF_IDENTIFIER) {
        instructions(bytes, 1 + data[0], insns);
        cut(bytes, bytes.n - data[0] % (bytes.n < 256 ? bytes.n : 256));
        cut(bytes, bytes.n * data[0] / 256);
    }
    again(bytes);
    return 0;
}
