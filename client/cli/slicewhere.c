/* SPDX-License-Identifier: MIT */
/*
 * Finds a range of an STF file by reading its instructions in order and counting executions. One
 * pass looks for begin and end together, as a file may be too large to be read twice or kept.
 */
#include "cli/slicewhere.h"

#include "cli/cli.h"
#include "image/names.h"
#include "out/codetext.h"
#include "stf/file.h"
#include "stf/insns.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses ------------------------------------------------------------------------------ */

static int address_of(const struct tl_slice_where *where, const char *symbol, uint64_t *pc)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_image *image;
    size_t n = 0, found = 0;
    if (!where->symbols)
        return tl_cli_usage("slice", "where is %.80s? Give the program's ELF, --symbols FILE",
                            symbol);
    if (tl_codetext_symbols(&where->symbols, 1, &image, &fail) < 0)
        return tl_cli_fail(where->symbols, &fail);
    const struct tl_symbol *const symbols = tl_image_symbols(image, &n);
    uint8_t *const wanted = calloc(n + 1, 1);
    if (wanted)
        found = tl_image_named(image, symbol, strlen(symbol), TL_NAMING_WHOLE, wanted);
    for (size_t i = 0; i < n && found == 1; i++)
        if (wanted[i])
            *pc = symbols[i].address;
    if (found == 0)
        tl_cli_warn(where->symbols, "has no symbol \"%.80s\"", symbol);
    else if (found > 1)
        tl_cli_warn(where->symbols, "has %zu functions \"%.80s\": give an address", found, symbol);
    free(wanted);
    tl_image_free(image);
    return found == 1 ? TL_ARGS_GO : TL_CLI_BAD;
}

/* The given address; `*given`: there is one. */
static int read_place(const struct tl_slice_where *where, const char *symbol, const char *pc,
                      uint64_t *address, bool *given)
{
    *given = symbol || pc;
    if (symbol && pc)
        return tl_cli_usage("slice", "a place is a symbol or an address, one of them");
    if (pc && tl_pc_parse(pc, strlen(pc), address) < 0)
        return tl_cli_usage("slice", "%.40s is no address: give it in hexadecimal", pc);
    return symbol ? address_of(where, symbol, address) : TL_ARGS_GO;
}

/* ---- searching ------------------------------------------------------------------------------ */

/* The search: first the n-th `from` at or after instruction `begin`, then the next `to`. */
struct sought {
    bool has_from, has_to;
    uint64_t from, to; /* addresses */
    uint64_t occurrence, begin, end;
    uint64_t n;           /* number of executions of `from` so far */
    uint64_t first, last; /* instructions where both were found; UINT64_MAX: not yet */
};

/* Has everything been found? */
static bool look(struct sought *s, uint64_t pc, uint64_t at)
{
    if (s->first != UINT64_MAX) {
        if (pc == s->to && at > s->first)
            s->last = at;
    } else if (at >= s->begin && pc == s->from && ++s->n == s->occurrence) {
        s->first = at;
    }
    return s->first != UINT64_MAX && (!s->has_to || s->last != UINT64_MAX);
}

static int look_through(const struct tl_stf_source *source, struct sought *s, struct tl_fail *fail)
{
    struct tl_stf_insn batch[256];
    struct tl_stf_insns *insns;
    if (tl_stf_insns_open(&insns, source) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    int r = TL_OK;
    bool found = false;
    for (uint64_t at = 0; !found && at < s->end && r >= 0;) {
        r = tl_stf_insns_read(insns, batch, sizeof batch / sizeof *batch, fail);
        for (int i = 0; i < r && !found && at < s->end; i++, at++)
            found = look(s, batch[i].pc, at);
    }
    tl_stf_insns_free(insns);
    return r < 0 && r != TL_EOF ? r : TL_OK;
}

static int find(const char *path, struct sought *s)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_stf_file *file;
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    const struct tl_stf_source source = tl_stf_file_source(file);
    tl_progress_wait(path);
    const int r = look_through(&source, s, &fail);
    tl_progress_end();
    tl_stf_file_close(file);
    if (r < 0)
        return tl_cli_fail(path, &fail);
    if (s->first == UINT64_MAX)
        tl_cli_warn(path,
                    "0x%" PRIx64 " is executed only %" PRIu64 " times from instruction %" PRIu64
                    " on",
                    s->from, s->n, s->begin);
    else if (s->has_to && s->last == UINT64_MAX)
        tl_cli_warn(path, "0x%" PRIx64 " is not executed after instruction %" PRIu64, s->to,
                    s->first);
    else
        return TL_ARGS_GO;
    return TL_CLI_BAD;
}

int tl_slice_where_find(const struct tl_slice_where *where, const char *path,
                        struct tl_arg_range *range)
{
    struct sought s = {.occurrence = where->occurrence,
                       .begin = range->from,
                       .end = range->to,
                       .first = UINT64_MAX,
                       .last = UINT64_MAX};
    int status = read_place(where, where->from_symbol, where->from_pc, &s.from, &s.has_from);
    if (status == TL_ARGS_GO)
        status = read_place(where, where->to_symbol, where->to_pc, &s.to, &s.has_to);
    if (status != TL_ARGS_GO)
        return status;
    if (where->occurrence == 0)
        return tl_cli_usage("slice", "--occurrence counts from 1");
    if (s.has_to && where->count)
        return tl_cli_usage("slice", "say either how many instructions or up to where");
    if (!s.has_from)
        s.first = range->from;
    if (s.has_from || s.has_to) {
        if (strcmp(path, "-") == 0)
            return tl_cli_usage("slice", "places are looked for in a file, which is read twice");
        status = find(path, &s);
    }
    if (status != TL_ARGS_GO)
        return status;
    if (s.has_to)
        range->to = s.last;
    if (where->count && where->count < range->to - s.first)
        range->to = s.first + where->count;
    range->from = s.first - (where->warm_up < s.first ? where->warm_up : s.first);
    return TL_ARGS_GO;
}
