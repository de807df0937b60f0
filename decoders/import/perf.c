/* SPDX-License-Identifier: MIT */
/*
 * Ties the parts of the import to a reader of the file and makes sources of what it learns. A
 * source that the user configured is left as it is: what a file says of itself must not override
 * what its user knows.
 */
#include "import/perf.h"

#include "import/perf_parts.h"
#include "perf/event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tl_perf_import_free(struct tl_perf_import *im)
{
    if (!im)
        return;
    tl_perf_import_forget(im);
    for (size_t i = 0; i < im->n_event_names; i++)
        free(im->event_names[i]);
    for (size_t i = 0; i < im->n_ksymbols; i++)
        free(im->ksymbols[i].name);
    free(im->event_names);
    free(im->ksymbols);
    free(im->bpf);
    free(im->events);
    free(im->areas);
    tl_made_code_fini(&im->made);
    tl_perf_map_fini(&im->area_of);
    tl_perf_map_fini(&im->poked);
    tl_perf_info_fini(&im->info);
    tl_perf_reader_free(im->reader);
    free(im);
}

void tl_perf_import_report(const struct tl_perf_import *im, const char *format, ...)
{
    char text[4600];
    va_list args;
    if (!im->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    im->warn(im->context, text);
}

int tl_perf_import_event(struct tl_perf_import *im, struct tl_perf_event event)
{
    event.number = im->n_events;
    if (tl_grow(&im->events, &im->cap_events, im->n_events + 1, sizeof event) < 0)
        return TL_NOMEM;
    im->events[im->n_events++] = event;
    return TL_OK;
}

/* Create a source for information after the records, which would be too late in a live decode.
 * Returns NULL if it exists, see `known`. */
static struct tl_source *make_source(struct tl_setup *setup, const char *name, bool *known)
{
    *known = false;
    for (size_t i = 0; i < setup->n_sources; i++)
        *known |= !strcmp(setup->sources[i].name, name);
    struct tl_source *const source = *known ? NULL : tl_setup_add_source(setup);
    if (source)
        snprintf(source->name, sizeof source->name, "%s", name);
    return source;
}

/* Name events as perf does. */
static int name_events(const struct tl_perf_import *im, struct tl_setup *setup)
{
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(im->reader);
    for (size_t i = 0; i < im->n_event_names && i < attrs->n; i++) {
        char name[32];
        bool known;
        if (im->info.kind != TL_PERF_TRACE_NONE && attrs->v[i].type == im->info.pmu)
            continue;
        tl_perf_event_stream(name, sizeof name, im->event_names[i], NULL);
        struct tl_source *const source = make_source(setup, name, &known);
        if (!source && !known)
            return TL_NOMEM;
        if (source) {
            source->protocol = TL_PROTO_PERF_EVENTS;
            source->id = (uint16_t)i;
        }
    }
    return TL_OK;
}

/* Name of a buffer's stream, as used by the container. */
static char *name_area(int32_t who, char *out, size_t size)
{
    if (who >= 0)
        snprintf(out, size, "pt.%" PRId32, who);
    else
        snprintf(out, size, "pt.t%" PRId32, -1 - who);
    return out;
}

static int make_sources(struct tl_perf_import *im, struct tl_setup *setup)
{
    for (size_t i = 0; i < im->n_areas && im->info.kind == TL_PERF_TRACE_PT && im->core[0]; i++) {
        char name[32];
        const int32_t who = im->areas[i];
        bool known;
        struct tl_source *const source =
            make_source(setup, name_area(who, name, sizeof name), &known);
        if (!known && !source)
            return TL_NOMEM;
        if (known)
            continue;
        source->protocol = TL_PROTO_PT;
        source->id = (uint16_t)(who >= 0 ? who : 0);
        snprintf(source->core, sizeof source->core, "%s", im->core);
    }
    return TL_OK;
}

void tl_perf_import_first(const struct tl_perf_import *im, char *out, size_t size)
{
    char name[32];
    out[0] = 0;
    for (size_t i = 0; i < im->n_areas && im->info.kind == TL_PERF_TRACE_PT; i++)
        if (strcmp(name_area(im->areas[i], name, sizeof name), out) < 0 || !out[0])
            snprintf(out, size, "%s", name);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return TL_OK; /* reported by the decoder */
}

/* ---- overall --------------------------------------------------------------------------------- */

int tl_perf_import_new(struct tl_perf_import **out, const struct tl_code_places *places,
                       void (*warn)(void *context, const char *text), void *context)
{
    struct tl_perf_import *const im = calloc(1, sizeof *im);
    const struct tl_perf_reader_sink sink = {.context = im,
                                             .record = tl_perf_import_record,
                                             .area = tl_perf_import_area,
                                             .feature = tl_perf_import_feature,
                                             .loss = on_loss};
    if (!im || tl_perf_reader_new(&im->reader, &sink) < 0) {
        free(im);
        return TL_NOMEM;
    }
    im->places = *places;
    im->warn = warn;
    im->context = context;
    *out = im;
    return TL_OK;
}

void tl_perf_import_stored(struct tl_perf_import *im, const char *file, const char *stored)
{
    for (size_t i = 0; i < im->n_dsos; i++) {
        struct tl_perf_dso *const d = im->dsos[i];
        if (d->found != TL_OK || strcmp(d->file->path, file) != 0)
            continue;
        snprintf(d->file->path, sizeof d->file->path, "%s", stored);
        d->file->is_packed = false;
        free(d->debug);
        d->debug = NULL;
    }
}

int tl_perf_import_push(struct tl_perf_import *im, struct tl_bytes bytes)
{
    return tl_perf_reader_push(im->reader, bytes);
}

int tl_perf_import_finish(struct tl_perf_import *im)
{
    return tl_perf_reader_finish(im->reader);
}

bool tl_perf_import_begun(const struct tl_perf_import *im)
{
    return im->begun;
}

bool tl_perf_import_is_limited(const struct tl_perf_import *im)
{
    return im->limits != 0;
}

uint64_t tl_perf_import_number(const struct tl_perf_import *im)
{
    return im->number;
}

/*
 * Is the clock of a stream's timestamps known? Not if they are of another clock than the records'.
 */
static bool has_axis(const struct tl_perf_import *im)
{
    return im->timed || !tl_perf_info_has_stamps(&im->info);
}

int tl_perf_import_setup(struct tl_perf_import *im, struct tl_setup *setup)
{
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(im->reader);
    im->timed = tl_perf_info_is_timed(&im->info, tl_perf_attrs_by_type(attrs, im->info.pmu));
    im->axis = tl_perf_info_axis(&im->info, tl_perf_attrs_by_type(attrs, im->info.pmu));
    if (!setup->clock_hz && !setup->clock.known && has_axis(im))
        setup->clock = im->axis;
    int rc = tl_perf_import_images(im, setup);
    if (rc == TL_OK)
        rc = make_sources(im, setup);
    return rc == TL_OK ? name_events(im, setup) : rc;
}
