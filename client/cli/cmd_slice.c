/* SPDX-License-Identifier: MIT */
/*
 * `tracelake slice`: extracts a range of an STF file's instructions into an STF file. What can be
 * read of a damaged trace is kept, and the damage reported.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/slice.h"
#include "cli/slicewhere.h"
#include "out/jsonwrite.h"
#include "out/outfile.h"
#include "stf/file.h"
#include "stf/tools/slice.h"
#include "terminal/args.h"
#include "terminal/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Destination of the slice, and the error that ended it. */
struct output {
    struct tl_outfile to;
    int error;
    uint64_t insns; /* of the file, once it is complete */
};

static int write_out(void *context, const uint8_t *p, size_t n)
{
    struct output *const out = context;
    if (tl_write_all(out->to.file, p, n))
        return TL_OK;
    out->error = errno;
    return TL_IO;
}

static int rewrite_out(void *context, const uint8_t *p, size_t n)
{
    struct output *const out = context;
    return fseek(out->to.file, 0, SEEK_SET) == 0 ? write_out(out, p, n) : TL_IO;
}

/* Feed records of `file` until the slice is complete. */
static int feed(struct tl_stf_file *file, struct tl_stf_slicer *slicer, struct tl_fail *fail)
{
    const struct tl_stf_source source = tl_stf_file_source(file);
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    if (tl_stf_reader_open(&reader, &source) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    int result;
    while ((result = tl_stf_reader_next(reader, &record, fail)) == TL_OK) {
        result = tl_stf_slicer_add(slicer, &record, fail);
        if (result < 0)
            break;
    }
    tl_stf_reader_free(reader);
    return result == TL_EOF ? TL_OK : result;
}

static int cannot_write(const struct output *to, struct tl_fail *fail)
{
    tl_fail_set(fail, TL_IO, "%.150s: cannot write: %s", to->to.path, strerror(to->error));
    return tl_cli_fail(NULL, fail);
}

/* Keep what is available of a damaged trace, and report it. */
static int finish(const char *path, struct tl_stf_slicer *slicer, struct tl_stf_out *out,
                  struct output *to, const struct tl_arg_range *range, int result,
                  struct tl_fail *fail)
{
    if (to->error)
        return cannot_write(to, fail);
    if (tl_stf_slicer_written(slicer) == 0 && result == TL_OK)
        result = tl_fail_set(fail, TL_NOTFOUND, "the trace has only %" PRIu64 " instructions",
                             tl_stf_slicer_seen(slicer));
    if (tl_stf_slicer_written(slicer) == 0)
        return tl_cli_fail(path, fail);
    int status = result < 0 ? tl_cli_fail(path, fail) : TL_CLI_DONE;
    if (result == TL_OK && range->to != UINT64_MAX && tl_stf_slicer_seen(slicer) < range->to)
        tl_cli_warn(path, "the trace ends at instruction %" PRIu64, tl_stf_slicer_seen(slicer));
    const int ended = tl_stf_out_finish(out, fail);
    if (to->error)
        return cannot_write(to, fail);
    if (ended < 0 || tl_outfile_commit(&to->to, fail) < 0)
        status = tl_cli_fail(NULL, fail);
    else
        to->insns = tl_stf_slicer_written(slicer);
    return status;
}

int tl_cli_slice(const char *path, const char *out_path, const struct tl_arg_range *range,
                 const struct tl_stf_out_options *options, uint64_t *written)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_stf_file *file = NULL;
    struct tl_stf_out *out = NULL;
    struct output to = {0};
    struct tl_stf_slicer *slicer = NULL;
    char comment[160];
    if (range->to == UINT64_MAX)
        snprintf(comment, sizeof comment, "instructions %" PRIu64 " to the end", range->from);
    else
        snprintf(comment, sizeof comment, "instructions %" PRIu64 " to %" PRIu64, range->from,
                 range->to - 1);
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    int status = TL_CLI_BAD;
    int result = tl_outfile_begin(&to.to, out_path, path, &fail);
    const struct tl_stf_sink sink = {&to, write_out, rewrite_out};
    if (result == TL_OK && (tl_stf_out_new(&out, options, &sink) < 0 ||
                            tl_stf_slicer_new(&slicer, range->from, range->to, comment, out) < 0))
        result = tl_fail_set(&fail, TL_NOMEM, "out of memory");
    if (result == TL_OK) {
        tl_progress_wait(path);
        result = feed(file, slicer, &fail);
        tl_progress_end();
        status = finish(path, slicer, out, &to, range, result, &fail);
    } else {
        status = tl_cli_fail(NULL, &fail);
    }
    tl_stf_slicer_free(slicer);
    tl_stf_out_free(out);
    tl_outfile_drop(&to.to);
    tl_stf_file_close(file);
    if (written)
        *written = to.insns;
    return status;
}

/* The contents of the file, which is also written if the status reports an error in the input. */
static int print_json(const char *out, uint64_t from, uint64_t written)
{
    struct tl_json o = tl_json_begin();
    tl_json_put_text(&o, "file", out);
    tl_json_put_u64(&o, "first", from);
    tl_json_put_u64(&o, "count", written);
    if (tl_json_print(&o) == TL_OK)
        return TL_CLI_DONE;
    tl_cli_warn("slice", "cannot write: %s", strerror(errno));
    return TL_CLI_BAD;
}

int tl_cmd_slice(int argc, char **argv)
{
    struct tl_arg_range range = {0, UINT64_MAX, false};
    uint64_t from = 0, to = UINT64_MAX, markers = 0, level = 0, written = 0;
    const char *out = NULL;
    bool reserve_end = false, json = false;
    struct tl_slice_where where = {.occurrence = 1};
    const struct tl_option args[] = {
        {"insn", 0, TL_ARG_RANGE, &range, "A:B",
         "instructions A to B-1, from 0 (A: to the end, :B from the start)"},
        {"from", 0, TL_ARG_COUNT, &from, "A", NULL}, /* as --insn */
        {"to", 0, TL_ARG_COUNT, &to, "B", NULL},
        TL_OUTPUT_ARGS(out, "FILE",
                       "compressed in chunks if the name ends in .zstf, otherwise plain"),
        {"chunk", 0, TL_ARG_COUNT, &markers, "N", "instructions per chunk (default 100000)"},
        {"level", 0, TL_ARG_U64, &level, "N", "zstd level, 1 to 19 (default 1)"},
        {"reserve-end", 0, TL_ARG_FLAG, &reserve_end, NULL,
         "end a plain file with record 255, as STF 1.3 requires"},
        {"json", 0, TL_ARG_FLAG, &json, NULL, "print what was written as JSON"},
        {.help = "a range by its contents, within --insn:"},
        TL_SLICE_WHERE_ARGS(where),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (!range.given) {
        range.from = from;
        range.to = to;
    }
    if (argc - first != 1)
        return tl_cli_usage("slice", "one file is wanted");
    if (!out)
        return tl_cli_usage("slice", "where to? -o OUT.zstf or -o OUT.stf");
    if (json && strcmp(out, "-") == 0)
        return tl_cli_usage("slice", "--json tells of a file, -o - writes it to standard output");
    if (level > 19)
        return tl_cli_usage("slice", "--level is 1 to 19");
    if (range.from > range.to)
        return tl_cli_usage("slice", "the range ends before it begins");
    if (range.from < range.to)
        status = tl_slice_where_find(&where, argv[first], &range);
    if (status != TL_ARGS_GO)
        return status;
    if (range.from == range.to)
        return tl_cli_empty_range("slice", range.from);
    const struct tl_stf_out_options options = {.format = tl_stf_format_of(out),
                                               .markers = markers,
                                               .level = (int)level,
                                               .reserve_end = reserve_end,
                                               .unchecked = true};
    status = tl_cli_slice(argv[first], out, &range, &options, &written);
    const int reported = json && written > 0 ? print_json(out, range.from, written) : TL_CLI_DONE;
    return reported > status ? reported : status;
}
