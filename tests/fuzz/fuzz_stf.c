/* SPDX-License-Identifier: MIT */
/*
 * Any bytes through every STF reader: records, instructions, flow items, order checks, and back
 * through the writer. The first byte chooses how the rest is cut into pieces.
 */
#include "stf/file.h"
#include "stf/flow_reader.h"
#include "stf/flow_writer.h"
#include "stf/insns.h"
#include "stf/writer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Records; each of them encodes to the bytes that it came from. */
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

/* Instructions, from pieces of `step` bytes; never more than there are closing records. */
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

static int rewrite(void *context, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow *const flow = context;
    struct tl_stf_flow_at at = {0};
    uint64_t stop = tl_stf_flow_markers(flow) + 3;
    int result;
    while ((result = tl_stf_flow_items(flow, items, n, stop, &at)) == TL_AGAIN) {
        must(tl_stf_flow_markers(flow) == stop);
        tl_stf_flow_take(flow);
        stop += 3;
    }
    return result;
}

/* Flow items, and those written again. */
static void items(struct tl_bytes bytes)
{
    struct tl_stf_file *file;
    struct tl_stf_flow *flow;
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64, .comments = true};
    if (tl_stf_file_bytes(&file, bytes, NULL) < 0)
        return;
    const struct tl_stf_source source = tl_stf_file_source(file);
    must(tl_stf_flow_new(&flow, &options, NULL) == TL_OK);
    (void)!tl_stf_flow_read(&source, rewrite, flow, NULL);
    must(tl_stf_flow_finish(flow) == TL_OK);
    tl_stf_flow_free(flow);
    tl_stf_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct tl_bytes bytes = {data + 1, size - 1};
    const uint64_t insns = records(bytes);
    if (bytes.n && bytes.p[0] == TL_STF_IDENTIFIER)
        instructions(bytes, 1 + data[0], insns);
    items(bytes);
    return 0;
}
