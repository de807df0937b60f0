/* SPDX-License-Identifier: MIT */
/*
 * Slices of any STF bytes: the result reads as exactly the requested instructions, with the state
 * in force before them. The first two bytes are the range.
 */
#include "stf/insns.h"
#include "stf/tools/slice.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 512 };

struct insn {
    uint64_t pc;
    uint32_t opcode;
    uint32_t tid;
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t read_all(struct tl_bytes bytes, struct insn *out, int *end)
{
    struct tl_stf_insns *insns;
    struct tl_stf_insn one;
    size_t n = 0;
    must(tl_stf_insns_new(&insns) == TL_OK);
    tl_stf_insns_push(insns, bytes);
    tl_stf_insns_finish(insns);
    while (n < MAX && (*end = tl_stf_insns_read(insns, &one, 1, NULL)) == 1)
        out[n++] = (struct insn){one.pc, one.opcode, tl_stf_insns_state(insns)->tid};
    tl_stf_insns_free(insns);
    return n;
}

static int append(void *context, const uint8_t *p, size_t n)
{
    return tl_buf_add(context, p, n);
}

static int patch(void *context, const uint8_t *p, size_t n)
{
    struct tl_buf *const b = context;
    memcpy(b->p, p, n);
    return TL_OK;
}

/* Does the record change the layout, or begin another trace, where that is not allowed? */
static bool is_foreign(const struct tl_stf_record *r, bool in_header)
{
    return !in_header && (r->type == TL_STF_TRACE_INFO_FEATURE || r->type == TL_STF_VLEN_CONFIG ||
                          r->type == TL_STF_PROTOCOL_ID || r->type == TL_STF_IDENTIFIER);
}

/* Slice. Returns TL_OK or TL_EOF if successful. *odd: such a file cannot be cut exactly. */
static int slice(struct tl_bytes bytes, uint64_t from, uint64_t to, uint8_t format,
                 struct tl_buf *file, uint64_t *written, bool *odd)
{
    const struct tl_stf_out_options options = {.format = format, .markers = 3, .unchecked = true};
    const struct tl_stf_sink sink = {file, append, patch};
    struct tl_stf_out *out;
    struct tl_stf_slicer *slicer;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    must(tl_stf_out_new(&out, &options, &sink) == TL_OK);
    must(tl_stf_slicer_new(&slicer, from, to, "cut", out) == TL_OK);
    must(tl_stf_reader_new(&reader) == TL_OK);
    tl_stf_reader_push(reader, bytes);
    tl_stf_reader_finish(reader);
    int result = TL_OK;
    *odd = false;
    for (bool in_header = true; result == TL_OK;) {
        if (tl_stf_reader_next(reader, &record, NULL) < 0)
            break;
        *odd |= is_foreign(&record, in_header);
        in_header = !tl_stf_reader_header(reader)->complete;
        result = tl_stf_slicer_add(slicer, &record, NULL);
    }
    *odd |= tl_stf_reader_header(reader)->faults & TL_STF_FAULTS_HARD;
    *written = tl_stf_slicer_written(slicer);
    if (*written)
        must(tl_stf_out_finish(out, NULL) == TL_OK);
    tl_stf_slicer_free(slicer);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct insn whole[MAX], part[MAX];
    if (size < 3)
        return 0;
    const struct tl_bytes bytes = {data + 2, size - 2};
    const uint64_t from = data[0] % 64, to = from + 1 + data[1] % 64;
    struct tl_buf plain = {0}, zstf = {0};
    uint64_t written, again;
    bool odd;
    int end = 0;
    const int result = slice(bytes, from, to, TL_STF_FILE_PLAIN, &plain, &written, &odd);
    must(slice(bytes, from, to, TL_STF_FILE_ZSTF, &zstf, &again, &odd) == result);
    must(written == again);
    if (written && (result == TL_OK || result == TL_EOF) && !odd) {
        const size_t n = read_all(bytes, whole, &end);
        const size_t m = read_all((struct tl_bytes){plain.p, plain.n}, part, &end);
        must(end == TL_EOF && m == written && m <= to - from);
        must(from + m <= n);
        for (size_t i = 0; i < m; i++)
            must(part[i].pc == whole[from + i].pc && part[i].opcode == whole[from + i].opcode &&
                 part[i].tid == whole[from + i].tid);
    }
    tl_buf_fini(&plain);
    tl_buf_fini(&zstf);
    return 0;
}
