/* SPDX-License-Identifier: MIT */
/*
 * Reads STF by push and writes it in the form of another tool, instruction by instruction. Output
 * is written as input arrives, so that a trace larger than memory can be exported.
 */
#include "out/export.h"

#include "base/whole.h"
#include "out/champsim.h"
#include "out/codetext.h"
#include "out/vectors_of.h"
#include "regions/vectors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256
#define FLUSH (256u << 10)

struct tl_exporter {
    struct tl_stf_insns *insns;
    struct tl_export_options options;
    struct tl_vectors *vectors; /* bb */
    struct tl_codetext code;
    uint64_t number; /* of the next instruction */
    struct tl_buf out;
    FILE *file;
};

int tl_export_parse(const char *name, enum tl_export *out)
{
    static const char *const names[] = {[TL_EXPORT_CHAMPSIM] = "champsim",
                                        [TL_EXPORT_BB] = "bb",
                                        [TL_EXPORT_PC] = "pc",
                                        [TL_EXPORT_DISASM] = "disasm"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum tl_export)i;
            return TL_OK;
        }
    return TL_USAGE;
}

static int add_vector(void *context, const struct tl_vector *vector)
{
    struct tl_exporter *const e = context;
    return tl_vector_text(&e->out, vector);
}

static int begin_export(struct tl_exporter **out, const struct tl_export_options *options,
                        FILE *file)
{
    struct tl_exporter *const e = calloc(1, sizeof *e);
    if (!e)
        return TL_NOMEM;
    e->options = *options;
    e->file = file;
    const int r = options->format == TL_EXPORT_BB
                      ? tl_vectors_new(&e->vectors, options->interval, add_vector, e)
                      : TL_OK;
    if (r < 0)
        tl_exporter_free(e);
    else
        *out = e;
    return r;
}

int tl_exporter_new(struct tl_exporter **out, const struct tl_export_options *options, FILE *file)
{
    int r = begin_export(out, options, file);
    if (r >= 0 && (r = tl_stf_insns_new(&(*out)->insns)) < 0)
        tl_exporter_free(*out);
    return r;
}

void tl_exporter_free(struct tl_exporter *exporter)
{
    if (!exporter)
        return;
    tl_stf_insns_free(exporter->insns);
    tl_vectors_free(exporter->vectors);
    tl_codetext_fini(&exporter->code);
    tl_buf_fini(&exporter->out);
    free(exporter);
}

static int flush(struct tl_exporter *e, struct tl_fail *fail)
{
    if (!tl_write_all(e->file, e->out.p, e->out.n))
        return tl_fail_set(fail, TL_IO, "cannot write: %s", strerror(errno));
    tl_buf_reset(&e->out);
    return TL_OK;
}

static int add_text(struct tl_exporter *e, const struct tl_stf_insn *insn)
{
    uint8_t code[16];
    const struct tl_bytes bytes = {code, tl_stf_insn_bytes(e->insns, insn, code)};
    int r = tl_codetext_row(&e->code, e->number++, tl_insns_isa(e->insns, insn), insn->pc, bytes,
                            &e->out);
    if (r >= 0)
        r = tl_codetext_place(e->options.image, insn->pc, &e->out);
    if (r >= 0)
        r = tl_sources_place(e->options.sources, insn->pc, &e->out);
    return r < 0 ? r : tl_buf_add(&e->out, "\n", 1);
}

static int add(struct tl_exporter *e, const struct tl_stf_insn *insn)
{
    uint8_t record[TL_CHAMPSIM_BYTES];
    switch (e->options.format) {
    case TL_EXPORT_CHAMPSIM:
        tl_champsim_insn(e->insns, insn, tl_insns_isa(e->insns, insn), record);
        return tl_buf_add(&e->out, record, sizeof record);
    case TL_EXPORT_DISASM:
        return add_text(e, insn);
    case TL_EXPORT_BB:
        return tl_vectors_of_insn(e->vectors, e->insns, insn);
    default:
        return tl_buf_printf(&e->out, "%016llx\n", (unsigned long long)insn->pc);
    }
}

/* Process what can be read now: TL_AGAIN or TL_EOF, or an error. */
static int take(struct tl_exporter *e, struct tl_fail *fail)
{
    struct tl_stf_insn batch[BATCH];
    int n;
    while ((n = tl_stf_insns_read(e->insns, batch, BATCH, fail)) > 0) {
        for (int i = 0; i < n; i++)
            if (add(e, &batch[i]) < 0)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
        if (e->out.n >= FLUSH && flush(e, fail) < 0)
            return TL_IO;
    }
    return n;
}

int tl_exporter_push(struct tl_exporter *exporter, struct tl_bytes stf, struct tl_fail *fail)
{
    tl_stf_insns_push(exporter->insns, stf);
    const int r = take(exporter, fail);
    return r == TL_AGAIN || r == TL_EOF ? TL_OK : r;
}

static int end(struct tl_exporter *e, int r, struct tl_fail *fail)
{
    if (e->vectors && (r == TL_EOF || r == TL_BAD) && tl_vectors_finish(e->vectors) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct tl_fail written = {.offset = TL_NO_OFFSET};
    if (flush(e, &written) < 0) {
        *fail = written;
        return TL_IO;
    }
    return r == TL_EOF ? TL_OK : r;
}

int tl_exporter_finish(struct tl_exporter *exporter, struct tl_fail *fail)
{
    tl_stf_insns_finish(exporter->insns);
    return end(exporter, take(exporter, fail), fail);
}

int tl_export_source(const struct tl_stf_source *source, const struct tl_export_options *options,
                     FILE *file, struct tl_fail *fail)
{
    struct tl_exporter *e;
    int r = begin_export(&e, options, file);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    r = tl_stf_insns_open(&e->insns, source);
    r = r < 0 ? tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r))
              : end(e, take(e, fail), fail);
    tl_exporter_free(e);
    return r;
}
