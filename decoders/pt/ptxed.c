/* SPDX-License-Identifier: MIT */
#include "pt/ptxed.h"

#include "pt/event_text.h"
#include "pt/ptdump.h"

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
    bool begun; /* a run was asked for since the synchronisation */
    int rc;
};

/* ---- options --------------------------------------------------------------------------------- */

/* FILE[:from[-to]]:ADDRESS, the offsets in the file. */
static int add_raw(struct tl_image *image, const char *text, struct tl_fail *fail)
{
    char name[4096];
    uint64_t address, from = 0, to = UINT64_MAX;
    if (snprintf(name, sizeof name, "%s", text) >= (int)sizeof name)
        return TL_USAGE;
    char *colon = strrchr(name, ':');
    if (!colon || !tl_pt_option_number(colon + 1, UINT64_MAX, &address))
        return TL_USAGE;
    *colon = 0;
    colon = strrchr(name, ':');
    if (colon) {
        char *const dash = strchr(colon + 1, '-');
        if (dash)
            *dash = 0;
        if (tl_pt_option_number(colon + 1, UINT64_MAX, &from) &&
            (!dash || tl_pt_option_number(dash + 1, UINT64_MAX, &to)))
            *colon = 0;
        else
            return TL_USAGE;
    }
    return tl_image_add_file(image, name, address, from, to == UINT64_MAX ? to : to - from,
                             TL_SPACE_ANY, fail);
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
        {"--insn-decoder", &ignored},
        {"--quiet", &o->quiet},
        {"-q", &o->quiet},
        {"--offset", &o->offset},
        {"--time", &o->time},
        {"--raw-insn", &o->raw_insn},
        {"--event:time", &o->event_time},
        {"--event:ip", &o->event_ip},
        {"--event:tick", &o->insns.ticks},
        {"--event:iflags", &o->insns.events.iflags},
        {"--insn:keep-tcal-on-ovf", &o->insns.events.keep_tcal_on_overflow},
        {"--block:keep-tcal-on-ovf", &o->insns.events.keep_tcal_on_overflow},
        {"--block-decoder", &o->blocks},
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
    if (!strcmp(name, "--iscache-limit"))
        rc = tl_pt_option_number(value, UINT64_MAX, &limit) ? TL_OK : TL_USAGE;
    else if (value && !strcmp(name, "--raw"))
        rc = add_raw(image, value, fail);
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
    x->n_blocks++;
    x->in_block = true;
    const struct tl_pt_xed_options *const o = x->options;
    if (!o->blocks || !o->show_blocks || o->quiet)
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
    put(x, "[%" PRIx64 ", %" PRIx64 ": %s: %s]\n", tl_pt_events_offset(&x->insns.events),
        x->begun ? x->insns.ip : 0, what, tl_pt_error_text((enum tl_pt_error) - error));
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

/* From a synchronisation point on. The error that ends it. */
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
        x->begun = true;
        status = tl_pt_insns_next(&x->insns);
        if (status >= 0 && !x->in_block)
            print_block(x);
        if (status < 0)
            return status;
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
    if (o->stat_blocks || (all && o->blocks))
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
    tl_pt_insns_init(&x->insns, config, image, trace, &options->insns);
    x->insns.insn = on_insn;
    x->insns.context = x;
    if (!tl_pt_config_cpu_known(config))
        put(x, "[0, 0: config error: %s]\n", tl_pt_error_text(TL_PT_BAD_CPU));
    while (x->rc >= 0) {
        int status = tl_pt_insns_sync(&x->insns);
        x->begun = false;
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
