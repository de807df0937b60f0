/* SPDX-License-Identifier: MIT */
/*
 * `tracelake dump`: prints the records of an STF file, or writes it in another form. What precedes
 * damage is printed before the damage is reported, since it is often what was looked for.
 */
#include "base/spelling.h"
#include "base/whole.h"
#include "cli/cli.h"
#include "out/codetext.h"
#include "out/export.h"
#include "out/itemjson.h"
#include "out/outfile.h"
#include "stf/file.h"
#include "terminal/args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FLUSH (256u << 10)

struct dump {
    struct tl_stf_reader *reader;
    uint64_t from, to; /* record numbers, `to` exclusive */
    uint64_t index;    /* of the next record */
    uint64_t insn;     /* instructions so far */
    struct tl_stf_pc pc;
    bool json;
    struct tl_buf out;
    FILE *file;
};

static int cannot_write(struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_IO, "cannot write: %s", strerror(errno));
}

static int flush(struct dump *d, struct tl_fail *fail)
{
    if (!tl_write_all(d->file, d->out.p, d->out.n))
        return cannot_write(fail);
    tl_buf_reset(&d->out);
    return TL_OK;
}

static int put(struct dump *d, const struct tl_stf_record *record, uint64_t pc)
{
    return d->json ? tl_itemjson_record(d->index, record, pc, d->insn - 1, &d->out)
                   : tl_stf_listing_line(d->index, record, pc, d->insn, &d->out);
}

static int dump(struct dump *d, struct tl_fail *fail)
{
    struct tl_stf_record record;
    int result;
    while ((result = tl_stf_reader_next(d->reader, &record, fail)) == TL_OK) {
        const uint64_t pc = tl_stf_pc_add(&d->pc, &record);
        if (record.type == TL_STF_INST_32 || record.type == TL_STF_INST_16)
            d->insn++;
        if (d->index >= d->to)
            return TL_EOF;
        if (d->index >= d->from && put(d, &record, pc) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        d->index++;
        if (d->out.n >= FLUSH && flush(d, fail) < 0)
            return TL_IO;
    }
    return result;
}

static int report(const char *path, struct tl_stf_file *file, const struct tl_stf_header *header,
                  int result, const struct tl_fail *fail)
{
    int status = TL_CLI_DONE;
    const unsigned hard = header->faults & TL_STF_FAULTS_HARD;
    for (unsigned bit = 1; bit && bit <= hard; bit <<= 1) {
        if (!(hard & bit))
            continue;
        struct tl_fail fault;
        tl_fail_at(&fault, TL_BAD, header->fault_offset, "%s", tl_stf_header_fault_text(bit));
        status = tl_cli_fail(path, &fault);
    }
    const struct tl_fail *const warning = tl_stf_file_warning(file);
    if (warning)
        status = tl_cli_fail(path, warning);
    return result == TL_EOF ? status : tl_cli_fail(path, fail);
}

static int dump_file(const char *path, uint64_t from, uint64_t to, bool json, FILE *out)
{
    struct tl_fail fail = {0};
    struct tl_stf_file *file;
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    struct dump d = {.from = from, .to = to, .json = json, .file = out};
    const struct tl_stf_source source = tl_stf_file_source(file);
    int status = TL_CLI_BAD;
    if (tl_stf_reader_open(&d.reader, &source) == TL_OK) {
        const int result = dump(&d, &fail);
        struct tl_fail written = {0};
        if (flush(&d, &written) < 0 || (fflush(out) != 0 && cannot_write(&written) < 0))
            status = tl_cli_fail(NULL, &written);
        else
            status = report(path, file, tl_stf_reader_header(d.reader), result, &fail);
        if (status == TL_CLI_DONE && d.from > 0 && d.index <= d.from && d.to > d.from) {
            tl_cli_warn(path,
                        "nothing is there from record %" PRIu64 " on; it has %" PRIu64 " records",
                        d.from, d.index);
            status = TL_CLI_BAD;
        }
    }
    tl_stf_reader_free(d.reader);
    tl_stf_file_close(file);
    tl_buf_fini(&d.out);
    return status;
}

static int export_file(const char *path, const struct tl_export_options *options, FILE *out)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_stf_file *file;
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    const struct tl_stf_source source = tl_stf_file_source(file);
    int status = TL_CLI_DONE;
    if (tl_export_source(&source, options, out, &fail) < 0)
        status = tl_cli_fail(path, &fail);
    else if (fflush(out) != 0 && cannot_write(&fail) < 0)
        status = tl_cli_fail(NULL, &fail);
    tl_stf_file_close(file);
    return status;
}

static int dump_to(const char *path, const char *form, const struct tl_export_options *options,
                   uint64_t from, uint64_t to, bool json, FILE *out)
{
    return form ? export_file(path, options, out) : dump_file(path, from, to, json, out);
}

static int run(const char *path, const char *out, const char *form,
               const struct tl_export_options *options, uint64_t from, uint64_t to, bool json)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_outfile file;
    if (!out || strcmp(out, "-") == 0)
        return dump_to(path, form, options, from, to, json, stdout);
    if (tl_outfile_begin(&file, out, path, &fail) < 0)
        return tl_cli_fail(NULL, &fail);
    const int status = dump_to(path, form, options, from, to, json, file.file);
    /* Records before an error are still a result. */
    return status == TL_CLI_BAD && tl_outfile_close(&file, TL_CLI_DONE) == TL_CLI_DONE
               ? TL_CLI_BAD
               : tl_outfile_close(&file, status);
}

int tl_cmd_dump(int argc, char **argv)
{
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;
    const char *out = NULL, *form = NULL, *symbols = NULL;
    bool disasm = false, json = false, mangled = false;
    struct tl_export_options options = {.interval = 10000000};
    struct tl_image *image = NULL;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const struct tl_option args[] = {
        {"from", 0, TL_ARG_COUNT, &from, "N", "records from N on (default: 0)"},
        {"to", 0, TL_ARG_COUNT, &to, "M", "records up to M-1 (default: all)"},
        {"format", 0, TL_ARG_TEXT, &form, "champsim|bb|pc|disasm",
         "instructions instead: champsim (64 bytes each), bb (basic-block vectors), pc (one "
         "address per line) or disasm (number, address, encoding, assembly)"},
        {"interval", 0, TL_ARG_COUNT, &options.interval, "N",
         "with --format bb: instructions of a vector"},
        {"disasm", 0, TL_ARG_FLAG, &disasm, NULL, "the same as --format disasm"},
        {"symbols", 0, TL_ARG_TEXT, &symbols, "ELF[@BIAS]",
         "… and the function, by this file's symbols"},
        {"image", 0, TL_ARG_TEXT, &symbols, "ELF[@BIAS]", "the same as --symbols"},
        {"mangled", 0, TL_ARG_FLAG, &mangled, NULL,
         "name C++ and Rust functions as in their files, not demangled"},
        TL_OUTPUT_ARGS(out, "FILE", "write to this file instead of standard output"),
        {"json", 0, TL_ARG_FLAG, &json, NULL, "records as JSON, one object per line"},
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (argc - first != 1)
        return tl_cli_usage("dump", "one file is wanted");
    tl_spelling_set_mangled(mangled);
    if (from > to)
        return tl_cli_usage("dump", "--from is after --to");
    if (disasm && !form)
        form = "disasm";
    if (form && tl_export_parse(form, &options.format) < 0)
        return tl_cli_usage("dump", "--format %s: it is champsim, bb, pc or disasm", form);
    if (form && json)
        return tl_cli_usage("dump", "--json is of records, --format of instructions");
    if (form && (from || to != UINT64_MAX))
        return tl_cli_usage("dump", "--from and --to are of records; cut with 'slice' first");
    if (form && (options.interval == 0 || options.interval > UINT32_MAX))
        return tl_cli_usage("dump", "--interval is 1 to %u instructions", UINT32_MAX);
    if (symbols && tl_codetext_symbols(&symbols, 1, &image, &fail) < 0)
        return tl_cli_fail(symbols, &fail);
    options.image = image;
    status = run(argv[first], out, form, &options, from, to, json);
    tl_image_free(image);
    return status;
}
