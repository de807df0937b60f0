/* SPDX-License-Identifier: MIT */
/*
 * Prints what the instruction flow (pt/insn.h) delivers, without interpreting it, so that a listing
 * shows the decoder's own order of instructions and events. An error is printed with the IP that
 * the reference prints, which may be that of an instruction not reached.
 */
#include "pt/ptxed.h"

#include "image/elf_places.h"
#include "pt/event_text.h"
#include "pt/tool_options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xed {
    struct tl_buf *out;
    const struct tl_pt_xed_options *options;
    struct tl_pt_insns insns;
    uint64_t time, offset;
    uint64_t n_insns, n_blocks;
    bool in_block;
    uint64_t ip; /* printed with errors: of the last instruction, or of the one that failed */
    int rc;
};

/* ---- options --------------------------------------------------------------------------------- */

/* Parse FILE[:FROM[-TO]]:ADDRESS; parts outside the file are ignored. */
static int add_raw(struct tl_image *image, struct tl_pt_option_file *file, struct tl_fail *fail)
{
    struct tl_buf content = {0};
    uint64_t address;
    if (!tl_pt_option_address(file, &address) || !tl_pt_option_range(file))
        return TL_USAGE;
    int rc = tl_buf_read_file(&content, file->name, SIZE_MAX / 2, fail);
    if (rc >= 0 && file->offset >= content.n)
        rc = tl_fail_set(fail, TL_BAD, "%.120s: has %zu bytes only", file->name, content.n);
    if (rc >= 0) {
        const uint64_t rest = content.n - file->offset;
        const struct tl_bytes part = {content.p + file->offset,
                                      (size_t)(file->length < rest ? file->length : rest)};
        rc = tl_image_add_bytes(image, address, part, TL_SPACE_ANY, file->name, fail);
    }
    tl_buf_fini(&content);
    return rc;
}

/* Parse FILE[:ADDRESS]: an ELF file with its lowest segment at that address. */
static int add_elf(struct tl_image *image, struct tl_pt_option_file *file, struct tl_fail *fail)
{
    struct tl_buf content = {0};
    uint64_t address = 0, lowest = 0;
    const bool moved = tl_pt_option_address(file, &address) && address != 0;
    int rc = tl_buf_read_file(&content, file->name, SIZE_MAX / 2, fail);
    const struct tl_bytes bytes = {content.p, content.n};
    if (rc >= 0 && moved)
        rc = tl_elf_bytes_lowest(bytes, &lowest);
    if (rc >= 0)
        rc = tl_image_add_elf(image, bytes, moved ? address - lowest : 0, TL_SPACE_ANY, file->name,
                              fail);
    tl_buf_fini(&content);
    return rc;
}

static int add_code(struct tl_image *image, const char *option, const char *text,
                    struct tl_fail *fail)
{
    struct tl_pt_option_file file;
    if (!text || !tl_pt_option_file(&file, text))
        return TL_USAGE;
    return !strcmp(option, "--elf") ? add_elf(image, &file, fail) : add_raw(image, &file, fail);
}

static int filter_option(struct tl_pt_config *config, const char *name, const char *value)
{
    unsigned i;
    char what[8];
    uint64_t n;
    if (sscanf(name, "--filter:addr%1u_%7s", &i, what) != 2 || i >= TL_PT_FILTERS ||
        !tl_pt_option_number(value, UINT64_MAX, &n))
        return TL_USAGE;
    if (!strcmp(what, "cfg") && n <= 15)
        config->filters[i].kind = (uint8_t)n;
    else if (!strcmp(what, "a"))
        config->filters[i].a = n;
    else if (!strcmp(what, "b"))
        config->filters[i].b = n;
    else
        return TL_USAGE;
    return TL_OK;
}

int tl_pt_xed_option(struct tl_pt_xed_options *o, struct tl_pt_config *config,
                     struct tl_image *image, int argc, char **argv, int *i, struct tl_fail *fail)
{
    bool ignored;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--att", &ignored},
        {"--no-inst", &o->no_inst},
        {"--verbose", &ignored},
        {"-v", &ignored},
        {"--check", &ignored},
        {"--quiet", &o->quiet},
        {"-q", &o->quiet},
        {"--offset", &o->offset},
        {"--time", &o->time},
        {"--raw-insn", &o->raw_insn},
        {"--event:time", &o->event_time},
        {"--event:ip", &o->event_ip},
        {"--event:tick", &o->insns.ticks},
        {"--event:iflags", &o->insns.events.iflags},
        {"--insn:keep-tcal-on-ovf", &o->insn_keep_tcal},
        {"--block:keep-tcal-on-ovf", &o->block_keep_tcal},
        {"--block:show-blocks", &o->show_blocks},
        {"--block:end-on-call", &o->insns.end_on_call},
        {"--block:end-on-jump", &o->insns.end_on_jump},
        {"--stat", &o->stat},
        {"--stat:insn", &o->stat_insn},
        {"--stat:blocks", &o->stat_blocks},
        {"--resync-on-error", &o->resync_on_error},
    };
    const char *const name = argv[*i], *const value = *i + 1 < argc ? argv[*i + 1] : NULL;
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        if (!strcmp(name, flags[k].name)) {
            *flags[k].flag = true;
            ++*i;
            return TL_OK;
        }
    int rc = TL_USAGE;
    uint64_t limit;
    if (!strcmp(name, "--insn-decoder") || !strcmp(name, "--block-decoder")) {
        o->by_insn = name[2] == 'i';
        ++*i;
        return TL_OK;
    }
    if (!strcmp(name, "--iscache-limit"))
        rc = tl_pt_option_number(value, UINT64_MAX, &limit) ? TL_OK : TL_USAGE;
    else if (!strcmp(name, "--raw") || !strcmp(name, "--elf"))
        rc = add_code(image, name, value, fail);
    else if (value && !strncmp(name, "--filter:", 9))
        rc = filter_option(config, name, value);
    else
        return tl_pt_config_option(config, argc, argv, i);
    *i += 2;
    return rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(struct xed *x, const char *format, ...)
{
    va_list args;
    char text[256];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (x->rc >= 0)
        x->rc = tl_buf_add(x->out, text, strlen(text));
}

static void print_event(struct xed *x, const struct tl_pt_event *event)
{
    put(x, "[");
    if (x->options->offset)
        put(x, "%016" PRIx64 "  ", x->offset);
    if (x->options->event_time && event->has_tsc)
        put(x, "%016" PRIx64 "  ", event->tsc);
    char text[TL_PT_EVENT_TEXT];
    put(x, "%s]\n", tl_pt_event_text(event, x->options->event_ip, text));
}

static void print_block(struct xed *x)
{
    const struct tl_pt_xed_options *const o = x->options;
    x->in_block = true;
    if (o->by_insn)
        return;
    x->n_blocks++;
    if (!o->show_blocks || o->quiet)
        return;
    if (o->stat || o->stat_insn || o->stat_blocks)
        put(x, "[block %" PRIx64 "]\n", x->n_blocks);
    else
        put(x, "[block]\n");
}

static void on_insn(void *context, const struct tl_pt_insn *insn)
{
    struct xed *const x = context;
    if (!x->in_block)
        print_block(x);
    x->n_insns++;
    if (x->options->quiet)
        return;
    if (x->options->offset)
        put(x, "%016" PRIx64 "  ", x->offset);
    if (x->options->time)
        put(x, "%016" PRIx64 "  ", x->time);
    put(x, "%s%016" PRIx64, insn->speculative ? "? " : "", insn->ip);
    if (x->options->raw_insn && !x->options->no_inst)
        for (unsigned i = 0; i < TL_X86_MAX; i++)
            put(x, i < insn->x86.size ? " %02x" : "   ", insn->raw[i]);
    put(x, "\n");
}

static void diagnose(struct xed *x, const char *what, int error)
{
    put(x, "[%" PRIx64 ", %" PRIx64 ": %s: %s]\n", tl_pt_events_offset(&x->insns.events), x->ip,
        what, tl_pt_error_text((enum tl_pt_error) - error));
}

/* ---- the trace ------------------------------------------------------------------------------- */

static int drain(struct xed *x, int status)
{
    while (status >= 0 && (status & TL_PT_EVENT_PENDING)) {
        struct tl_pt_event event;
        x->offset = tl_pt_events_offset(&x->insns.events);
        status = tl_pt_insns_event(&x->insns, &event);
        if (status < 0)
            break;
        x->time = event.tsc;
        if (!x->options->quiet && !event.status)
            print_event(x, &event);
    }
    return status;
}

/* Decode from a synchronisation point until an error, which is returned. */
static int follow(struct xed *x, int status)
{
    for (;;) {
        status = drain(x, status);
        if (status < 0)
            return status;
        if (status & TL_PT_END) {
            if (!(status & TL_PT_DISABLED) && !x->options->quiet)
                put(x, "[end of trace]\n");
            return -TL_PT_EOS;
        }
        x->offset = tl_pt_events_offset(&x->insns.events);
        x->in_block = false;
        status = tl_pt_insns_next(&x->insns);
        /* If the trace cannot be read on, the error belongs to the instruction after the run. */
        const bool failed = x->insns.status != TL_PT_OK && x->insns.status != TL_PT_EOS;
        if (status < 0 || failed)
            x->ip = x->insns.ip;
        else if (x->insns.n > 0)
            x->ip = x->insns.last.ip;
        if (status < 0)
            return status;
        if (!x->in_block)
            print_block(x);
    }
}

static void print_stat(struct xed *x)
{
    const struct tl_pt_xed_options *const o = x->options;
    const bool all = !o->stat_insn && !o->stat_blocks;
    if (!o->stat && all)
        return;
    if (o->stat_insn || all)
        put(x, "insn: %" PRIu64 ".\n", x->n_insns);
    if (o->stat_blocks || (all && !o->by_insn))
        put(x, "blocks:\t%" PRIu64 ".\n", x->n_blocks);
}

int tl_pt_xed(struct tl_buf *out, const struct tl_pt_xed_options *options,
              const struct tl_pt_config *config, const struct tl_image *image,
              struct tl_bytes trace)
{
    struct xed *const x = calloc(1, sizeof *x);
    if (!x)
        return TL_NOMEM;
    x->out = out;
    x->options = options;
    struct tl_pt_insn_options insns = options->insns;
    insns.unknown_as_16bit = true;
    insns.events.keep_tcal_on_overflow =
        options->by_insn ? options->insn_keep_tcal : options->block_keep_tcal;
    tl_pt_insns_init(&x->insns, config, image, trace, &insns);
    x->insns.insn = on_insn;
    x->insns.context = x;
    if (!tl_pt_config_cpu_known(config))
        put(x, "[0, 0: config error: %s]\n", tl_pt_error_text(TL_PT_BAD_CPU));
    while (x->rc >= 0) {
        int status = tl_pt_insns_sync(&x->insns);
        x->ip = 0;
        if (status == -TL_PT_EOS)
            break;
        if (status < 0) {
            diagnose(x, "sync error", status);
            continue;
        }
        while ((status = follow(x, status)) != -TL_PT_EOS) {
            diagnose(x, "error", status);
            if (!options->resync_on_error)
                break;
            status = tl_pt_insns_resync(&x->insns);
            if (status == -TL_PT_EOS)
                break;
            if (status < 0) {
                diagnose(x, "resync error", status);
                break;
            }
        }
        if (status == -TL_PT_EOS)
            break;
    }
    print_stat(x);
    const int rc = x->rc;
    free(x);
    return rc < 0 ? rc : TL_OK;
}
