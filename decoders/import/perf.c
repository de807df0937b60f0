/* SPDX-License-Identifier: MIT */
#include "import/perf.h"

#include "import/jitdump.h"
#include "import/maps.h"
#include "perf/event.h"
#include "perf/info.h"
#include "perf/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JITTED_MOST ((size_t)1 << 30) /* bytes of a file of code that was made at run time */

/* What a file that is mapped is called, and whether it was found. */
struct dso {
    char *name;
    struct tl_build_id id;
    enum tl_code_kind kind;
    struct tl_code_file file;
    int found;     /* as tl_code_find(); 1: not looked for yet */
    uint64_t told; /* of what a compiler wrote: bytes that were read */
};

/* A record of memory or of a process. */
struct event {
    uint64_t time, number; /* ns; the order in the file */
    uint32_t type;
    bool exec;
    int32_t pid, tid, ppid;
    uint64_t address, length, offset;
    size_t dso; /* SIZE_MAX: nothing that is in a file */
};

/* A build ID that is told by name. */
struct named_id {
    char *name;
    struct tl_build_id id;
};

struct tl_perf_import {
    struct tl_code_places places;
    void (*warn)(void *context, const char *text);
    void *context;
    struct tl_perf_reader *reader;
    struct tl_perf_info info;
    char core[40];    /* of PT's errata */
    char release[64]; /* of the kernel */
    struct event *events;
    size_t n_events, cap_events;
    struct dso *dsos;
    size_t n_dsos, cap_dsos;
    struct named_id *ids;
    size_t n_ids, cap_ids;
    char **event_names; /* by attribute */
    size_t n_event_names, cap_event_names;
    int32_t *areas; /* CPUs of buffers */
    size_t n_areas, cap_areas;
    bool timed;
    bool begun;      /* there was a trace */
    uint64_t number; /* of changes to what is known */
};

void tl_perf_import_free(struct tl_perf_import *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_dsos; i++)
        free(im->dsos[i].name);
    for (size_t i = 0; i < im->n_ids; i++)
        free(im->ids[i].name);
    free(im->dsos);
    for (size_t i = 0; i < im->n_event_names; i++)
        free(im->event_names[i]);
    free(im->event_names);
    free(im->ids);
    free(im->events);
    free(im->areas);
    tl_perf_info_fini(&im->info);
    tl_perf_reader_free(im->reader);
    free(im);
}

__attribute__((format(printf, 2, 3))) static void tell_user(const struct tl_perf_import *im,
                                                            const char *format, ...)
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

/* ---- records --------------------------------------------------------------------------------- */

static enum tl_code_kind kind_of(int32_t pid, const char *name)
{
    if (pid != TL_PERF_KERNEL_PID)
        return TL_CODE_FILE;
    return !strncmp(name, "[kernel.kallsyms]", 17) || !strcmp(name, "[kernel.vmlinux]")
               ? TL_CODE_KERNEL
               : TL_CODE_MODULE;
}

static int dso_of(struct tl_perf_import *im, const struct tl_perf_mapping *m, size_t *out)
{
    struct tl_build_id id = {.n = m->n_build_id};
    memcpy(id.v, m->build_id, id.n);
    for (size_t i = im->n_dsos; i-- > 0;) {
        const struct dso *const d = &im->dsos[i];
        if (!strcmp(d->name, m->name) && d->kind == kind_of(m->pid, m->name) && d->id.n == id.n &&
            !memcmp(d->id.v, id.v, id.n)) {
            *out = i;
            return TL_OK;
        }
    }
    char *const name = strdup(m->name);
    if (!name || tl_grow(&im->dsos, &im->cap_dsos, im->n_dsos + 1, sizeof *im->dsos) < 0) {
        free(name);
        return TL_NOMEM;
    }
    *out = im->n_dsos;
    im->dsos[im->n_dsos++] =
        (struct dso){.name = name, .id = id, .kind = kind_of(m->pid, name), .found = 1};
    return TL_OK;
}

/* Is code mapped? MMAP records of data say so, MMAP2 by their protection, if they have one. */
static bool is_code(const struct tl_perf_record *r)
{
    if (r->type == TL_PERF_MMAP)
        return !(r->misc & TL_PERF_MISC_EXEC);
    return r->mapping.protection == 0 || r->mapping.protection & 4;
}

static int on_record(void *context, const struct tl_perf_raw *raw)
{
    struct tl_perf_import *const im = context;
    const bool swap = tl_perf_reader_swaps(im->reader);
    struct tl_perf_record r;
    struct tl_fail fail;
    if (raw->type == TL_PERF_AUXTRACE_INFO && im->info.kind == TL_PERF_TRACE_NONE) {
        const int rc = tl_perf_info_read(&im->info, swap, raw->body, &fail);
        return rc == TL_NOMEM ? rc : TL_OK; /* the decoder tells */
    }
    if (raw->type == TL_PERF_TIME_CONV)
        tl_perf_info_clock(&im->info, swap, raw->body);
    if (tl_perf_record_read(&r, raw, swap, tl_perf_reader_attrs(im->reader)) < 0)
        return TL_OK;
    struct event e = {.time = r.time, .number = im->n_events, .type = r.type, .dso = SIZE_MAX};
    int rc = TL_OK;
    switch (r.type) {
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
        e.pid = r.mapping.pid;
        e.tid = r.mapping.tid;
        e.address = r.mapping.address;
        e.length = r.mapping.length;
        e.offset = r.mapping.offset;
        if (is_code(&r) && !tl_code_is_anonymous(r.mapping.name))
            rc = dso_of(im, &r.mapping, &e.dso);
        break;
    case TL_PERF_COMM:
        e.pid = r.comm.pid;
        e.tid = r.comm.tid;
        e.exec = r.misc & TL_PERF_MISC_EXEC;
        break;
    case TL_PERF_FORK: /* EXIT: memory ends with the last thread; whoever has the number next clears
                          it */
        e.pid = r.task.pid;
        e.tid = r.task.tid;
        e.ppid = r.task.ppid;
        break;
    case TL_PERF_ITRACE_START:
        e.pid = r.who.pid;
        e.tid = r.who.tid;
        break;
    default:
        return TL_OK;
    }
    if (rc < 0 || tl_grow(&im->events, &im->cap_events, im->n_events + 1, sizeof e) < 0)
        return TL_NOMEM;
    im->events[im->n_events++] = e;
    im->number += e.dso != SIZE_MAX;
    return TL_OK;
}

/* ---- features -------------------------------------------------------------------------------- */

static int add_named(struct tl_perf_import *im, const char *name, size_t n,
                     const struct tl_build_id *id)
{
    char *const copy = strndup(name, n);
    if (!copy || tl_grow(&im->ids, &im->cap_ids, im->n_ids + 1, sizeof *im->ids) < 0) {
        free(copy);
        return TL_NOMEM;
    }
    im->ids[im->n_ids++] = (struct named_id){copy, *id};
    return TL_OK;
}

/* Linkers make IDs of 8, 16 and 20 bytes; where the length is not told, zeros are behind them. */
static void cut_id(struct tl_build_id *id)
{
    static const uint8_t zeros[TL_BUILD_ID_MAX];
    for (uint8_t n = 8; n < id->n; n += n == 8 ? 8 : 4)
        if (!memcmp(id->v + n, zeros, id->n - n)) {
            id->n = n;
            return;
        }
}

/* Records of their own: {u32 0, u16 misc, u16 size}, i32 pid, 20 bytes, length, 3 bytes, name. */
static int take_ids(struct tl_perf_import *im, struct tl_bytes body)
{
    enum { HEADER = 8, NAME = 36 };
    const bool swap = tl_perf_reader_swaps(im->reader);
    int rc = TL_OK;
    while (rc == TL_OK && body.n >= NAME) {
        const uint16_t misc = tl_perf_u16(swap, body.p + 4);
        const size_t size = tl_perf_u16(swap, body.p + 6);
        if (size < NAME || size > body.n)
            break;
        struct tl_build_id id = {.n = TL_BUILD_ID_MAX};
        if (misc & TL_PERF_MISC_SIZED && body.p[HEADER + 24] <= TL_BUILD_ID_MAX)
            id.n = body.p[HEADER + 24];
        memcpy(id.v, body.p + HEADER + 4, id.n);
        if (!(misc & TL_PERF_MISC_SIZED))
            cut_id(&id);
        const char *const name = (const char *)body.p + NAME;
        rc = add_named(im, name, strnlen(name, size - NAME), &id);
        body.p += size;
        body.n -= size;
    }
    return rc;
}

/* A string of a feature. */
static void take_text(const struct tl_perf_import *im, struct tl_bytes body, char *out, size_t size)
{
    if (body.n < 4)
        return;
    const uint32_t n = tl_perf_u32(tl_perf_reader_swaps(im->reader), body.p);
    const size_t room = n < body.n - 4 ? n : body.n - 4;
    const char *const text = (const char *)body.p + 4;
    snprintf(out, size, "%.*s", (int)strnlen(text, room), text);
}

/* Names of the events: {u32 events, u32 size of an attribute}, of each its attribute, u32 IDs, its
 * name, and the IDs. They stand in the order of the file's attributes. */
static int take_events(struct tl_perf_import *im, struct tl_bytes body)
{
    enum { MOST = 256 };
    const bool swap = tl_perf_reader_swaps(im->reader);
    const uint32_t n = body.n < 8 ? 0 : tl_perf_u32(swap, body.p);
    const size_t size = body.n < 8 ? 0 : tl_perf_u32(swap, body.p + 4);
    for (size_t at = 8; im->n_event_names < n && im->n_event_names < MOST;) {
        if (size > body.n - at || body.n - at - size < 8)
            return TL_OK;
        const uint64_t ids = tl_perf_u32(swap, body.p + at + size);
        const size_t length = tl_perf_u32(swap, body.p + at + size + 4);
        at += size + 8;
        if (length > body.n - at || ids > (body.n - at - length) / 8)
            return TL_OK;
        const char *const name = (const char *)body.p + at;
        char *const copy = strndup(name, length);
        if (!copy || tl_grow(&im->event_names, &im->cap_event_names, im->n_event_names + 1,
                             sizeof *im->event_names) < 0) {
            free(copy);
            return TL_NOMEM;
        }
        im->event_names[im->n_event_names++] = copy;
        at += length + 8 * (size_t)ids;
    }
    return TL_OK;
}

static int on_feature(void *context, unsigned feature, struct tl_bytes body)
{
    struct tl_perf_import *const im = context;
    char text[64] = "";
    switch (feature) {
    case TL_PERF_FEATURE_BUILD_ID:
        return take_ids(im, body);
    case TL_PERF_FEATURE_EVENT_DESC:
        return im->n_event_names > 0 ? TL_OK : take_events(im, body);
    case TL_PERF_FEATURE_CPUID:
        take_text(im, body, text, sizeof text);
        tl_perf_cpuid(text, im->core, sizeof im->core);
        return TL_OK;
    case TL_PERF_FEATURE_OSRELEASE:
        take_text(im, body, im->release, sizeof im->release);
        return TL_OK;
    default:
        return TL_OK;
    }
}

static int on_area(void *context, const struct tl_perf_area *area, uint64_t at,
                   struct tl_bytes bytes, uint64_t offset)
{
    struct tl_perf_import *const im = context;
    (void)offset;
    if (at > 0 || bytes.n > 0)
        return TL_OK;
    im->begun = true;
    const int32_t who = area->cpu >= 0 ? area->cpu : -1 - area->tid;
    for (size_t i = 0; i < im->n_areas; i++)
        if (im->areas[i] == who)
            return TL_OK;
    if (tl_grow(&im->areas, &im->cap_areas, im->n_areas + 1, sizeof *im->areas) < 0)
        return TL_NOMEM;
    im->areas[im->n_areas++] = who;
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return TL_OK; /* the decoder tells */
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct event *const x = a, *const y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* In ticks of the trace. */
static uint64_t ticks(const struct tl_perf_import *im, uint64_t ns)
{
    return im->timed && ns > 0 ? tl_clock_ticks(&im->info.clock, ns) : 0;
}

static const struct tl_build_id *id_of(const struct tl_perf_import *im, const struct dso *d)
{
    const bool is_kernel = d->kind == TL_CODE_KERNEL;
    for (size_t i = 0; d->id.n == 0 && i < im->n_ids; i++)
        if (is_kernel ? !strncmp(im->ids[i].name, "[kernel.", 8)
                      : !strcmp(im->ids[i].name, d->name))
            return &im->ids[i].id;
    return &d->id;
}

/* What is missing is told once, with all that is known of it. */
static void tell_missing(const struct tl_perf_import *im, const struct dso *d)
{
    char id[2 * TL_BUILD_ID_MAX + 1];
    tl_build_id_text(id_of(im, d), id);
    tell_user(im, "no code of %s%s%s%s; %s", d->name, id[0] ? " (build ID " : "", id,
              id[0] ? ")" : "",
              d->found == TL_UNSUPPORTED  ? "unpack the compressed module"
              : d->kind == TL_CODE_KERNEL ? "give --vmlinux FILE, --kcore FILE or --buildid-dir DIR"
                                          : "give --symfs DIR or --buildid-dir DIR");
}

static void find_dso(struct tl_perf_import *im, struct dso *d)
{
    const char *const bracket = d->kind == TL_CODE_KERNEL ? strchr(d->name, ']') : NULL;
    const char *const symbol = bracket && bracket[1] ? bracket + 1 : NULL;
    d->found =
        tl_code_find(&d->file, &im->places, d->kind, d->name, id_of(im, d), symbol, im->release);
    if (d->found < 0)
        tell_missing(im, d);
}

/* The kernel lies where one of its symbols says. */
static int add_kernel(const struct tl_perf_import *im, const struct event *e, const struct dso *d,
                      struct tl_setup *setup)
{
    const uint64_t bias =
        d->file.is_core || !d->file.has_reference ? 0 : e->offset - d->file.reference;
    (void)im;
    return tl_setup_add_image_at(setup, d->file.path, bias, 0, UINT64_MAX, TL_SPACE_ANY);
}

static int add_mapping(struct tl_perf_import *im, struct tl_maps *maps, const struct event *e,
                       struct tl_setup *setup)
{
    struct tl_map map = {
        .process = e->pid == TL_PERF_KERNEL_PID ? TL_MAPS_KERNEL : (uint32_t)e->pid,
        .time = ticks(im, e->time),
        .address = e->address,
        .length = e->length,
        .offset = e->offset,
    };
    struct dso *const d = e->dso == SIZE_MAX ? NULL : &im->dsos[e->dso];
    if (d && d->found == 1)
        find_dso(im, d);
    if (!d || d->found < 0)
        return d && d->kind == TL_CODE_KERNEL ? TL_OK : tl_maps_add(maps, &map);
    if (d->kind == TL_CODE_KERNEL)
        return add_kernel(im, e, d, setup);
    const bool is_module = d->kind == TL_CODE_MODULE;
    const uint64_t from = is_module ? d->file.text_offset : 0;
    const uint64_t end = is_module ? from + d->file.text_size : d->file.size;
    const uint64_t limit = end < d->file.size ? end : d->file.size;
    map.offset += from;
    map.file = d->file.path;
    /* A mapping is made of pages, a file ends anywhere. */
    if (map.offset < from || map.offset >= limit) {
        tell_user(im, "%s: has no bytes at offset 0x%" PRIx64 ", which is mapped", d->file.path,
                  map.offset);
        map.file = NULL;
        return tl_maps_add(maps, &map);
    }
    const uint64_t there = limit - map.offset;
    if (map.length > there) {
        struct tl_map rest = map;
        rest.file = NULL;
        const int rc = tl_maps_add(maps, &rest);
        if (rc < 0)
            return rc;
        map.length = there;
    }
    return tl_maps_add(maps, &map);
}

static int take_event(struct tl_perf_import *im, struct tl_maps *maps, const struct event *e,
                      struct tl_setup *setup)
{
    const uint64_t process = (uint32_t)e->pid, time = ticks(im, e->time);
    /* Intel PT is told its processes; of CoreSight the trace itself tells threads. */
    const bool names_threads = im->info.kind == TL_PERF_TRACE_CORESIGHT;
    int rc = TL_OK;
    switch (e->type) {
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
        rc = add_mapping(im, maps, e, setup);
        break;
    case TL_PERF_COMM:
        if (e->exec)
            rc = tl_maps_clear(maps, process, time);
        break;
    case TL_PERF_FORK:
        if (e->pid != e->ppid)
            rc = tl_maps_fork(maps, process, (uint32_t)e->ppid, time);
        break;
    default:
        break;
    }
    if (rc == TL_OK && names_threads && e->pid >= 0 && e->tid >= 0 && e->tid != e->pid)
        rc = tl_maps_thread(maps, process, (uint32_t)e->tid, time);
    return rc;
}

/* Threads are what the trace units were told to trace of them: the context ID, the VMID where Linux
 * runs at EL2, or nothing: then all processes are one. */
static void name_contexts(const struct tl_perf_import *im, struct tl_setup_image *images, size_t n)
{
    enum { CID = 1 << 6, VMID = 1 << 7, VMIDOPT = 1 << 15 };
    uint64_t config = 0;
    for (size_t i = 0; i < im->info.n_units; i++)
        config |= im->info.units[i].n_regs ? im->info.units[i].regs[0] : 0;
    for (size_t i = 0; i < n && !(config & CID); i++) {
        struct tl_image_context *const c = &images[i].context;
        c->has_vmid = c->has_context_id && config & VMID && config & VMIDOPT;
        c->vmid = c->has_vmid ? c->context_id : 0;
        c->has_context_id = false;
        c->context_id = 0;
    }
}

struct jitted {
    struct tl_perf_import *im;
    size_t dso;
    bool in_ticks;
};

static int on_jitted(void *context, const struct tl_jit_code *code)
{
    const struct jitted *const j = context;
    struct tl_perf_import *const im = j->im;
    const uint64_t ns = j->in_ticks ? tl_clock_ns(&im->info.clock, code->time) : code->time;
    if (tl_grow(&im->events, &im->cap_events, im->n_events + 1, sizeof *im->events) < 0)
        return TL_NOMEM;
    im->events[im->n_events] = (struct event){
        .time = ns,
        .number = im->n_events,
        .type = TL_PERF_MMAP2,
        .pid = code->pid,
        .tid = code->tid,
        .address = code->address,
        .length = code->length,
        .offset = code->offset,
        .dso = j->dso,
    };
    im->n_events++;
    return TL_OK;
}

/* Code that was made at run time lies in the file that its compiler mapped as a sign. */
static int take_jitted(struct tl_perf_import *im)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < im->n_dsos; i++) {
        struct dso *const d = &im->dsos[i];
        struct jitted j = {im, i, false};
        struct tl_buf bytes = {0};
        if (!tl_jitdump_is(d->name))
            continue;
        if (d->found == 1)
            find_dso(im, d);
        if (d->found == TL_OK && tl_buf_read_file(&bytes, d->file.path, JITTED_MOST, NULL) == TL_OK)
            rc = tl_jitdump_read((struct tl_bytes){bytes.p, bytes.n}, &d->told, &j.in_ticks,
                                 on_jitted, &j);
        d->file.size = bytes.n > d->file.size ? bytes.n : d->file.size; /* it grows */
        if (rc == TL_BAD) {
            tell_user(im, "%s: makes no sense as code of a compiler at offset 0x%" PRIx64,
                      d->file.path, d->told);
            rc = TL_OK;
        }
        tl_buf_fini(&bytes);
    }
    return rc;
}

static int make_images(struct tl_perf_import *im, struct tl_setup *setup)
{
    const size_t before = setup->n_images;
    struct tl_maps *maps;
    int rc = take_jitted(im);
    if (rc == TL_OK)
        rc = tl_maps_new(&maps);
    if (rc < 0)
        return rc;
    if (im->n_events > 0)
        qsort(im->events, im->n_events, sizeof *im->events, by_time);
    for (size_t i = 0; rc == TL_OK && i < im->n_events; i++)
        rc = take_event(im, maps, &im->events[i], setup);
    if (rc == TL_OK)
        rc = tl_maps_images(maps, setup);
    if (rc == TL_OK && im->info.kind == TL_PERF_TRACE_CORESIGHT)
        name_contexts(im, setup->images + before, setup->n_images - before);
    tl_maps_free(maps);
    return rc;
}

/* What stands behind the records, and so comes too late for who takes the file as it comes. */
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

/* Events are called as perf calls them. */
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

static int make_sources(struct tl_perf_import *im, struct tl_setup *setup)
{
    for (size_t i = 0; i < im->n_areas && im->info.kind == TL_PERF_TRACE_PT && im->core[0]; i++) {
        char name[32];
        const int32_t who = im->areas[i];
        if (who >= 0)
            snprintf(name, sizeof name, "pt.%" PRId32, who);
        else
            snprintf(name, sizeof name, "pt.t%" PRId32, -1 - who);
        bool known;
        struct tl_source *const source = make_source(setup, name, &known);
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

/* ---- as a whole ------------------------------------------------------------------------------ */

int tl_perf_import_new(struct tl_perf_import **out, const struct tl_code_places *places,
                       void (*warn)(void *context, const char *text), void *context)
{
    struct tl_perf_import *const im = calloc(1, sizeof *im);
    const struct tl_perf_reader_sink sink = {.context = im,
                                             .record = on_record,
                                             .area = on_area,
                                             .feature = on_feature,
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

uint64_t tl_perf_import_number(const struct tl_perf_import *im)
{
    return im->number;
}

int tl_perf_import_setup(struct tl_perf_import *im, struct tl_setup *setup)
{
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(im->reader);
    im->timed = tl_perf_info_is_timed(&im->info, tl_perf_attrs_by_type(attrs, im->info.pmu));
    if (!setup->clock_hz && !setup->clock.known && im->timed)
        setup->clock = im->info.clock;
    int rc = make_images(im, setup);
    if (rc == TL_OK)
        rc = make_sources(im, setup);
    return rc == TL_OK ? name_events(im, setup) : rc;
}
