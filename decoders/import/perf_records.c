/* SPDX-License-Identifier: MIT */
/*
 * Collects records and features of perf.data until a setup is requested. Build IDs, names and
 * mappings may come in any order, so that nothing is concluded before all have been seen.
 */
#include "import/jitdump.h"
#include "import/perf_parts.h"
#include "perf/sample.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- build IDs given by name ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tl_perf_named_id *)a)->name,
                  ((const struct tl_perf_named_id *)b)->name);
}

static void free_named(void *p)
{
    struct tl_perf_named_id *const named = p;
    if (named)
        free(named->name);
    free(named);
}

static int add_named(struct tl_perf_import *im, const char *name, size_t n,
                     const struct tl_build_id *id)
{
    struct tl_perf_named_id *const named = calloc(1, sizeof *named);
    if (named)
        *named = (struct tl_perf_named_id){strndup(name, n), *id};
    void *const *const kept = named && named->name ? tsearch(named, &im->ids, by_name) : NULL;
    if (im->kernel_id.n == 0 && named && named->name && !strncmp(named->name, "[kernel.", 8))
        im->kernel_id = *id;
    if (!kept || *kept != named)
        free_named(named);
    return kept ? TL_OK : TL_NOMEM;
}

const struct tl_build_id *tl_perf_import_id(const struct tl_perf_import *im, const char *name)
{
    const struct tl_perf_named_id wanted = {.name = (char *)name};
    struct tl_perf_named_id *const *const found = tfind(&wanted, &im->ids, by_name);
    return found ? &(*found)->id : NULL;
}

/* Find the length of an ID that is not given: linkers generate IDs of 8, 16 and 20 bytes, which
 * zeros follow. */
static void cut_id(struct tl_build_id *id)
{
    static const uint8_t zeros[TL_BUILD_ID_MAX];
    for (uint8_t n = 8; n < id->n; n += n == 8 ? 8 : 4)
        if (!memcmp(id->v + n, zeros, id->n - n)) {
            id->n = n;
            return;
        }
}

/* The body of a record: i32 pid, 20 bytes, length, 3 bytes, name. */
static int take_id(struct tl_perf_import *im, uint16_t misc, struct tl_bytes body)
{
    enum { ID = 4, LENGTH = 24, NAME = 28 };
    struct tl_build_id id = {.n = TL_BUILD_ID_MAX};
    if (body.n < NAME)
        return TL_OK;
    if (misc & TL_PERF_MISC_SIZED && body.p[LENGTH] <= TL_BUILD_ID_MAX)
        id.n = body.p[LENGTH];
    memcpy(id.v, body.p + ID, id.n);
    if (!(misc & TL_PERF_MISC_SIZED))
        cut_id(&id);
    const char *const name = (const char *)body.p + NAME;
    return add_named(im, name, strnlen(name, body.n - NAME), &id);
}

/* The feature contains records of its own: {u32 0, u16 misc, u16 size} and the body. */
static int take_ids(struct tl_perf_import *im, struct tl_bytes body)
{
    enum { HEADER = 8 };
    const bool swap = tl_perf_reader_swaps(im->reader);
    int rc = TL_OK;
    while (rc == TL_OK && body.n >= HEADER) {
        const size_t size = tl_perf_u16(swap, body.p + 6);
        if (size < HEADER || size > body.n)
            break;
        rc = take_id(im, tl_perf_u16(swap, body.p + 4),
                     (struct tl_bytes){body.p + HEADER, size - HEADER});
        body.p += size;
        body.n -= size;
    }
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

static enum tl_code_kind kind_of(int32_t pid, const char *name)
{
    if (pid != TL_PERF_KERNEL_PID)
        return TL_CODE_FILE;
    return !strncmp(name, "[kernel.kallsyms]", 17) || !strcmp(name, "[kernel.vmlinux]") ||
                   !strncmp(name, "[guest.kernel.kallsyms", 22)
               ? TL_CODE_KERNEL
               : TL_CODE_MODULE;
}

/* Files are the same if name, kind and ID are. */
static int by_file(const void *a, const void *b)
{
    const struct tl_perf_dso *const x = a, *const y = b;
    if (x->machine != y->machine)
        return x->machine < y->machine ? -1 : 1;
    if (x->kind != y->kind || x->id.n != y->id.n)
        return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->id.n - y->id.n;
    const int order = memcmp(x->id.v, y->id.v, x->id.n);
    return order ? order : strcmp(x->name, y->name);
}

static void free_dso(struct tl_perf_dso *d)
{
    if (!d)
        return;
    free(d->name);
    free(d->file);
    free(d->debug);
    free(d);
}

static void leave(void *unused)
{
    (void)unused; /* the list owns it */
}

void tl_perf_import_forget(struct tl_perf_import *im)
{
    tdestroy(im->dso_tree, leave);
    tdestroy(im->ids, free_named);
    for (size_t i = 0; i < im->n_dsos; i++)
        free_dso(im->dsos[i]);
    free(im->dsos);
}

static int add_dso(struct tl_perf_import *im, const struct tl_perf_dso *like)
{
    struct tl_perf_dso *const d = calloc(1, sizeof *d);
    if (d) {
        *d = *like;
        d->name = strdup(like->name);
    }
    if (!d || !d->name || tl_grow(&im->dsos, &im->cap_dsos, im->n_dsos + 1, sizeof *im->dsos) < 0 ||
        !tsearch(d, &im->dso_tree, by_file)) {
        free_dso(d);
        return TL_NOMEM;
    }
    im->dsos[im->n_dsos++] = d;
    return TL_OK;
}

int tl_perf_import_dso(struct tl_perf_import *im, int32_t machine, const struct tl_perf_mapping *m,
                       size_t *out)
{
    struct tl_perf_dso wanted = {.name = (char *)m->name,
                                 .id = {.n = m->n_build_id},
                                 .kind = kind_of(m->pid, m->name),
                                 .machine = machine,
                                 .index = im->n_dsos,
                                 .found = 1};
    memcpy(wanted.id.v, m->build_id, wanted.id.n);
    struct tl_perf_dso *const *const known = tfind(&wanted, &im->dso_tree, by_file);
    *out = known ? (*known)->index : im->n_dsos;
    return known ? TL_OK : add_dso(im, &wanted);
}

/* Is code mapped? MMAP records have a flag for data, MMAP2 records a protection, if present. */
static bool is_code(const struct tl_perf_record *r)
{
    if (r->type == TL_PERF_MMAP)
        return !(r->misc & TL_PERF_MISC_DATA);
    return r->mapping.protection == 0 || r->mapping.protection & PROT_EXEC;
}

int tl_perf_import_area(void *context, const struct tl_perf_area *area, uint64_t at,
                        struct tl_bytes bytes, uint64_t offset)
{
    struct tl_perf_import *const im = context;
    (void)offset;
    if (at > 0 || bytes.n > 0)
        return TL_OK;
    im->begun = true;
    const int32_t who = area->cpu >= 0 ? area->cpu : -1 - area->tid;
    if (tl_perf_map_get(&im->area_of, (uint32_t)who) >= 0)
        return TL_OK;
    if (tl_grow(&im->areas, &im->cap_areas, im->n_areas + 1, sizeof *im->areas) < 0 ||
        tl_perf_map_set(&im->area_of, (uint32_t)who, im->n_areas) < 0)
        return TL_NOMEM;
    im->areas[im->n_areas++] = who;
    return TL_OK;
}

/* Samples may contain trace. */
static int take_sample(struct tl_perf_import *im, const struct tl_perf_raw *raw)
{
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(im->reader);
    struct tl_perf_sample s;
    if (!attrs->aux_samples ||
        tl_perf_sample_read(&s, raw, tl_perf_reader_swaps(im->reader), attrs) < 0 || s.aux.n == 0)
        return TL_OK;
    const struct tl_perf_area area = tl_perf_sample_area(&s);
    return tl_perf_import_area(im, &area, 0, (struct tl_bytes){0}, raw->offset);
}

/* Memory of a virtual machine of which nothing tells which one it is. */
static void report_guests(struct tl_perf_import *im, const struct tl_perf_raw *raw)
{
    const bool is_map = raw->type == TL_PERF_MMAP || raw->type == TL_PERF_MMAP2;
    if (!is_map || !tl_perf_is_guest(raw->misc) || im->reported_guests)
        return;
    tl_perf_import_report(im,
                          "virtual machines were recorded without telling which; what runs in them "
                          "is not followed");
    im->reported_guests = true;
}

int tl_perf_import_record(void *context, const struct tl_perf_raw *raw)
{
    struct tl_perf_import *const im = context;
    const bool swap = tl_perf_reader_swaps(im->reader);
    struct tl_perf_record r;
    struct tl_fail fail;
    if (raw->type == TL_PERF_AUXTRACE_INFO && im->info.kind == TL_PERF_TRACE_NONE) {
        const int rc = tl_perf_info_read(&im->info, swap, raw->body, &fail);
        return rc == TL_NOMEM ? rc : TL_OK; /* the decoder reports it */
    }
    if (raw->type == TL_PERF_SAMPLE)
        return take_sample(im, raw);
    if (raw->type == TL_PERF_BUILD_ID)
        return take_id(im, raw->misc, raw->body);
    if (raw->type == TL_PERF_TIME_CONV)
        tl_perf_info_clock(&im->info, swap, raw->body);
    if (tl_perf_record_read(&r, raw, swap, tl_perf_reader_attrs(im->reader)) < 0) {
        report_guests(im, raw);
        return TL_OK;
    }
    struct tl_perf_event e = {
        .time = r.time, .type = r.type, .dso = TL_PERF_NO_FILE, .machine = r.machine};
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
            rc = tl_perf_import_dso(im, r.machine, &r.mapping, &e.dso);
        break;
    case TL_PERF_COMM:
        e.pid = r.comm.pid;
        e.tid = r.comm.tid;
        e.exec = r.misc & TL_PERF_MISC_EXEC;
        snprintf(e.comm, sizeof e.comm, "%s", r.comm.name);
        break;
    case TL_PERF_FORK: /* EXIT is not needed: the next process with the same ID clears the memory */
        e.pid = r.task.pid;
        e.tid = r.task.tid;
        e.ppid = r.task.ppid;
        e.ptid = r.task.ptid;
        break;
    case TL_PERF_ITRACE_START:
        e.pid = r.who.pid;
        e.tid = r.who.tid;
        break;
    case TL_PERF_KSYMBOL:
        return r.machine ? TL_OK : tl_perf_import_ksymbol(im, &r);
    case TL_PERF_TEXT_POKE:
        return r.machine ? TL_OK : tl_perf_import_poke(im, &r);
    default:
        return TL_OK;
    }
    if (rc == TL_OK)
        rc = tl_perf_import_event(im, e);
    im->number += e.dso != TL_PERF_NO_FILE;
    return rc;
}

/* ---- features -------------------------------------------------------------------------------- */

/* Read a string of a feature. */
static void take_text(const struct tl_perf_import *im, struct tl_bytes body, char *out, size_t size)
{
    if (body.n < 4)
        return;
    const uint32_t n = tl_perf_u32(tl_perf_reader_swaps(im->reader), body.p);
    const size_t room = n < body.n - 4 ? n : body.n - 4;
    const char *const text = (const char *)body.p + 4;
    snprintf(out, size, "%.*s", (int)strnlen(text, room), text);
}

/* Event names: {u32 events, u32 size of an attribute}, then for each event its attribute, u32
 * number of IDs, name, and IDs, in the order of the file's attributes. */
static int take_events(struct tl_perf_import *im, struct tl_bytes body)
{
    enum { MAX = 256 };
    const bool swap = tl_perf_reader_swaps(im->reader);
    const uint32_t n = body.n < 8 ? 0 : tl_perf_u32(swap, body.p);
    const size_t size = body.n < 8 ? 0 : tl_perf_u32(swap, body.p + 4);
    for (size_t at = 8; im->n_event_names < n && im->n_event_names < MAX;) {
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

int tl_perf_import_feature(void *context, unsigned feature, struct tl_bytes body)
{
    struct tl_perf_import *const im = context;
    char text[64] = "";
    switch (feature) {
    case TL_PERF_FEATURE_BUILD_ID:
        return take_ids(im, body);
    case TL_PERF_FEATURE_EVENT_DESC:
        return im->n_event_names > 0 ? TL_OK : take_events(im, body);
    case TL_PERF_FEATURE_BPF_PROG_INFO:
        return tl_perf_import_bpf(im, body);
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
