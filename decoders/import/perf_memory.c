/* SPDX-License-Identifier: MIT */
/*
 * Converts mappings of perf.data to the memory of processes over time, with the code found in
 * files. A file that is not found is reported once, with its build ID, so that it can be supplied
 * later.
 */
#include "import/debug_file.h"
#include "import/jitdump.h"
#include "import/kernel_core.h"
#include "import/perf_parts.h"

#include <elf.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
    const struct tl_perf_event *const x = a, *const y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Convert to trace ticks; 0 for Intel PT without time. */
static uint64_t ticks(const struct tl_perf_import *im, uint64_t ns)
{
    const bool none = im->info.kind == TL_PERF_TRACE_PT && !im->timed;
    return ns > 0 && !none ? tl_clock_ticks(&im->axis, ns) : 0;
}

static const struct tl_build_id *id_of(const struct tl_perf_import *im, const struct tl_perf_dso *d)
{
    if (d->id.n > 0)
        return &d->id;
    const struct tl_build_id *const named =
        d->kind == TL_CODE_KERNEL && !d->machine ? &im->kernel_id : tl_perf_import_id(im, d->name);
    return named ? named : &d->id;
}

/* Report a missing file, once, with all available information. */
static void report_missing(const struct tl_perf_import *im, const struct tl_perf_dso *d)
{
    char id[2 * TL_BUILD_ID_MAX + 1];
    tl_build_id_text(id_of(im, d), id);
    tl_perf_import_report(
        im, "no code of %s%s%s%s; %s", d->name, id[0] ? " (build ID " : "", id, id[0] ? ")" : "",
        d->machine ? "give --guestmount DIR, --guestvmlinux FILE or --buildid-dir DIR"
        : d->kind == TL_CODE_KERNEL ? "give --vmlinux FILE, --kcore FILE or --buildid-dir DIR"
                                    : "give --symfs DIR or --buildid-dir DIR");
}

/* Name a missing file by its build ID, with which a server may receive it later, or by a number. */
static void set_later(const struct tl_perf_import *im, struct tl_perf_dso *d)
{
    char id[2 * TL_BUILD_ID_MAX + 1];
    if (id_of(im, d)->n > 0)
        snprintf(d->later, sizeof d->later, "build-id:%s", tl_build_id_text(id_of(im, d), id));
    else
        snprintf(d->later, sizeof d->later, "missing:%zu", d->index);
}

const char *tl_perf_dso_symbol(const struct tl_perf_dso *d)
{
    const char *const bracket = d->kind == TL_CODE_KERNEL ? strchr(d->name, ']') : NULL;
    return bracket && bracket[1] ? bracket + 1 : NULL;
}

/* Keep what was found of a file, and the file with its symbols if that is another one. */
static int keep_found(const struct tl_perf_import *im, struct tl_perf_dso *d,
                      const struct tl_code_file *file)
{
    char debug[4096] = "";
    struct tl_perf_places where;
    tl_perf_import_places(im, d->machine, &where);
    d->file = malloc(sizeof *d->file);
    if (!d->file)
        return TL_NOMEM;
    *d->file = *file;
    if (d->kind == TL_CODE_FILE)
        (void)tl_debug_file_find(debug, file, &where.places, id_of(im, d));
    else if (file->is_core && !tl_kernel_symbols_beside(file->path, debug))
        snprintf(debug, sizeof debug, "%s",
                 d->machine && where.places.guestkallsyms ? where.places.guestkallsyms : "");
    d->debug = debug[0] ? strdup(debug) : NULL;
    return debug[0] && !d->debug ? TL_NOMEM : TL_OK;
}

int tl_perf_import_find(struct tl_perf_import *im, struct tl_perf_dso *d)
{
    struct tl_code_file file;
    struct tl_perf_places where;
    tl_perf_import_places(im, d->machine, &where);
    d->found = tl_code_find(&file, &where.places, d->kind, d->name, id_of(im, d),
                            tl_perf_dso_symbol(d), where.release);
    if (d->found == TL_OK)
        return d->found = keep_found(im, d, &file);
    report_missing(im, d);
    set_later(im, d);
    return TL_OK;
}

/* Bind the last image to the kernel of the machine. */
static void bind_last(const struct tl_perf_event *e, struct tl_setup *setup)
{
    struct tl_image_context *const c = &setup->images[setup->n_images - 1].context;
    c->vmid = (uint32_t)e->machine;
    c->has_vmid = e->machine != 0;
}

/* Map the kernel at the position given by one of its symbols. */
static int add_kernel(const struct tl_perf_event *e, const struct tl_perf_dso *d,
                      struct tl_setup *setup)
{
    const uint64_t bias =
        d->file->is_core || !d->file->has_reference ? 0 : e->offset - d->file->reference;
    const int rc = tl_setup_add_image_at(setup, d->file->path, bias, 0, UINT64_MAX, TL_SPACE_ANY);
    if (rc == TL_OK)
        bind_last(e, setup);
    return rc;
}

/* The same for a kernel file that is not available yet. */
static int add_later_kernel(const struct tl_perf_event *e, const struct tl_perf_dso *d,
                            struct tl_setup *setup)
{
    const char *const symbol = tl_perf_dso_symbol(d);
    const int rc = tl_setup_add_image_at(setup, d->later, symbol ? e->offset : 0, 0,
                                         symbol ? e->length : UINT64_MAX, TL_SPACE_ANY);
    if (rc == TL_OK)
        bind_last(e, setup);
    return rc == TL_OK && symbol
               ? tl_setup_image_anchor(&setup->images[setup->n_images - 1], symbol)
               : rc;
}

static int add_mapping(struct tl_perf_import *im, struct tl_maps *maps,
                       const struct tl_perf_event *e, struct tl_setup *setup)
{
    struct tl_map map = {
        .process = tl_perf_import_process(e->machine, e->pid),
        .time = ticks(im, e->time),
        .address = e->address,
        .length = e->length,
        .offset = e->offset,
    };
    if (e->dso == TL_PERF_MADE) {
        map.file = TL_PERF_MADE_NAME;
        return tl_maps_add(maps, &map);
    }
    struct tl_perf_dso *const d = e->dso == TL_PERF_NO_FILE ? NULL : im->dsos[e->dso];
    if (d && tl_jitdump_is(d->name)) /* only announces a jitdump file; not code */
        return tl_maps_add(maps, &map);
    /* Code that was not traced is not needed. */
    if (d && d->kind != TL_CODE_FILE && !e->machine && !tl_perf_import_has_kernel(im))
        return TL_OK;
    if (d && d->found == 1 && tl_perf_import_find(im, d) < 0)
        return TL_NOMEM;
    if (d && d->found < 0 && d->kind == TL_CODE_KERNEL)
        return add_later_kernel(e, d, setup);
    if (d && d->found < 0)
        map.file = d->later;
    if (!d || d->found < 0)
        return tl_maps_add(maps, &map);
    if (d->kind == TL_CODE_KERNEL)
        return add_kernel(e, d, setup);
    const bool is_module = d->kind == TL_CODE_MODULE;
    const uint64_t from = is_module ? d->file->text_offset : 0;
    const uint64_t end = is_module ? from + d->file->text_size : d->file->size;
    const uint64_t limit = end < d->file->size ? end : d->file->size;
    map.offset += from;
    map.file = d->file->path;
    /* Mappings consist of pages, a file may end anywhere. */
    if (map.offset < from || map.offset >= limit) {
        tl_perf_import_report(im, "%s: has no bytes at offset 0x%" PRIx64 ", which is mapped",
                              d->file->path, map.offset);
        map.file = NULL;
        return tl_maps_add(maps, &map);
    }
    const uint64_t there = limit - map.offset;
    if (map.length > there) {
        struct tl_map rest = map;
        rest.file = NULL;
        if (tl_maps_add(maps, &rest) < 0)
            return TL_NOMEM;
        map.length = there;
    }
    return tl_maps_add(maps, &map);
}

/* Process a KSYMBOL: BPF code is added or removed. */
static int take_ksymbol(struct tl_perf_import *im, struct tl_maps *maps,
                        const struct tl_perf_event *e)
{
    struct tl_map map = {.process = TL_MAPS_KERNEL,
                         .time = ticks(im, e->time),
                         .address = e->address,
                         .length = e->length};
    struct tl_perf_bpf *const code =
        e->exec || !im->ksymbols[e->symbol].is_bpf ? NULL : tl_perf_import_bpf_of(im, e);
    if (code) {
        map.length = code->length;
        map.offset = code->offset;
        map.file = TL_PERF_MADE_NAME;
        code->used = true;
    }
    return code || e->exec ? tl_maps_add(maps, &map) : TL_OK;
}

/* Add programs without a record of their lifetime, as always present. */
static int add_unreported(const struct tl_perf_import *im, struct tl_maps *maps)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < im->n_bpf; i++) {
        const struct tl_perf_bpf *const f = &im->bpf[i];
        const struct tl_map map = {.process = TL_MAPS_KERNEL,
                                   .address = f->address,
                                   .length = f->length,
                                   .offset = f->offset,
                                   .file = TL_PERF_MADE_NAME};
        rc = f->used ? TL_OK : tl_maps_add(maps, &map);
    }
    return rc;
}

static int take_event(struct tl_perf_import *im, struct tl_maps *maps,
                      const struct tl_perf_event *e, struct tl_setup *setup)
{
    const uint64_t process = tl_perf_import_process(e->machine, e->pid), time = ticks(im, e->time);
    /* With Intel PT the context is the process, from records; with CoreSight it is the thread, from
     * the trace. */
    const bool names_threads = tl_perf_info_has_threads(&im->info);
    int rc = TL_OK;
    switch (e->type) {
    case TL_PERF_KSYMBOL:
        rc = take_ksymbol(im, maps, e);
        break;
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
    case TL_PERF_TEXT_POKE:
        rc = add_mapping(im, maps, e, setup);
        break;
    case TL_PERF_COMM:
        if (e->exec)
            rc = tl_maps_clear(maps, process, time);
        break;
    case TL_PERF_FORK:
        if (e->pid != e->ppid)
            rc = tl_maps_fork(maps, process, tl_perf_import_process(e->machine, e->ppid), time);
        break;
    default:
        break;
    }
    if (rc == TL_OK && names_threads && !e->machine && e->pid >= 0 && e->tid >= 0 &&
        e->tid != e->pid)
        rc = tl_maps_thread(maps, process, (uint32_t)e->tid, time);
    return rc;
}

/* Move process IDs to the identifier that the trace has; if it has none, all processes share one
 * memory. If the kernel runs at EL2, its code is not mapped at EL1, where the kernels of virtual
 * machines run. */
static void name_contexts(const struct tl_perf_import *im, struct tl_setup *setup, size_t first)
{
    const enum tl_perf_context reported = tl_perf_info_context(&im->info);
    for (size_t i = first; i < setup->n_images && reported != TL_PERF_CONTEXT_ID; i++) {
        struct tl_image_context *const c = &setup->images[i].context;
        if (!c->has_context_id && reported == TL_PERF_CONTEXT_VMID)
            setup->images[i].space = TL_SPACE_EL2;
        c->has_vmid = c->has_context_id && reported == TL_PERF_CONTEXT_VMID;
        c->vmid = c->has_vmid ? c->context_id : 0;
        c->has_context_id = false;
        c->context_id = 0;
    }
}

static int by_later(const void *a, const void *b)
{
    return strcmp(((const struct tl_perf_dso *)a)->later, ((const struct tl_perf_dso *)b)->later);
}

/* The missing files by their names in setups; of several with one name, the first. */
static int index_missing(const struct tl_perf_import *im, void **tree)
{
    for (size_t i = 0; i < im->n_dsos; i++)
        if (im->dsos[i]->later[0] && !tsearch(im->dsos[i], tree, by_later))
            return TL_NOMEM;
    return TL_OK;
}

/* For modules their .text is mapped, wherever it is in the file. */
static int name_one(struct tl_setup_image *image, const struct tl_perf_dso *d)
{
    const int rc = tl_setup_image_path(image, d->name);
    return rc == TL_OK && d->kind == TL_CODE_MODULE ? tl_setup_image_anchor(image, ".text") : rc;
}

static void leave(void *unused)
{
    (void)unused; /* the import owns it */
}

/* Record the paths of missing files on the traced machine, so that they can be supplied later. */
static int name_missing(const struct tl_perf_import *im, struct tl_setup *setup, size_t first)
{
    void *tree = NULL;
    int rc = index_missing(im, &tree);
    for (size_t i = first; rc == TL_OK && i < setup->n_images; i++) {
        struct tl_perf_dso wanted;
        snprintf(wanted.later, sizeof wanted.later, "%s", setup->images[i].file);
        struct tl_perf_dso *const *const d =
            tl_setup_is_stored(setup->images[i].file) ? tfind(&wanted, &tree, by_later) : NULL;
        if (d && !setup->images[i].path)
            rc = name_one(&setup->images[i], *d);
    }
    tdestroy(tree, leave);
    return rc;
}

/* Join a program with its symbols; if they do not match, use the program alone. */
static int join(const struct tl_perf_import *im, const struct tl_perf_dso *d, struct tl_buf *out)
{
    const int rc = d->file->is_core ? tl_kernel_core_file(d->file->path, d->debug, out)
                                    : tl_debug_file_join(d->file->path, d->debug, out);
    if (rc < 0 && rc != TL_NOMEM) {
        tl_perf_import_report(im, "%s: has no symbols of %s", d->debug, d->file->path);
        tl_buf_fini(out);
    }
    return rc == TL_NOMEM ? rc : TL_OK;
}

/* Add the decompressed contents of compressed files, and programs joined with their symbols. */
static int add_unpacked(const struct tl_perf_import *im, struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < im->n_dsos; i++) {
        const struct tl_perf_dso *const d = im->dsos[i];
        struct tl_buf bytes = {0};
        if (d->found != TL_OK || !(d->file->is_packed || d->debug) ||
            tl_setup_made(setup, d->file->path))
            continue;
        rc = d->file->is_packed ? tl_code_unpack(d->file, &bytes) : join(im, d, &bytes);
        if (rc == TL_OK && bytes.n > 0)
            rc = tl_setup_add_made(setup, d->file->path, &bytes);
        tl_buf_fini(&bytes);
    }
    return rc;
}

/* Add the file of run-time code, if images refer to it. */
static int add_made(const struct tl_perf_import *im, struct tl_setup *setup)
{
    struct tl_buf bytes = {0};
    if (im->made.code.n == 0)
        return TL_OK;
    const int rc = tl_made_code_file(
        &im->made, tl_perf_info_has_threads(&im->info) ? EM_AARCH64 : EM_X86_64, &bytes);
    if (rc < 0) {
        tl_buf_fini(&bytes);
        return rc;
    }
    return tl_setup_add_made(setup, TL_PERF_MADE_NAME, &bytes);
}

/* What is left out beyond the limit of the maps is only code that is not followed. */
static int report_limit(struct tl_perf_import *im, int rc)
{
    if (rc != TL_LIMIT)
        return rc;
    im->limits |= TL_PERF_LIMIT_MAPS;
    tl_perf_import_report(im,
                          "its records map more than %zu pieces of code, counted again for each "
                          "process and thread; the rest is left out",
                          TL_MAPS_MOST);
    return TL_OK;
}

int tl_perf_import_images(struct tl_perf_import *im, struct tl_setup *setup)
{
    const size_t before = setup->n_images;
    struct tl_maps *maps;
    int rc = tl_perf_import_jitted(im);
    if (rc == TL_OK)
        rc = tl_perf_import_modules(im);
    if (rc == TL_OK)
        rc = tl_perf_import_guest_names(im, setup);
    if (rc == TL_OK)
        rc = tl_maps_new(&maps);
    if (rc < 0)
        return rc;
    if (im->n_events > 0)
        qsort(im->events, im->n_events, sizeof *im->events, by_time);
    for (size_t i = 0; i < im->n_bpf; i++)
        im->bpf[i].used = false;
    for (size_t i = 0; rc == TL_OK && i < im->n_events; i++)
        rc = take_event(im, maps, &im->events[i], setup);
    if (rc == TL_OK)
        rc = add_unreported(im, maps);
    rc = report_limit(im, rc);
    if (rc == TL_OK)
        rc = add_made(im, setup);
    if (rc == TL_OK)
        rc = add_unpacked(im, setup);
    if (rc == TL_OK)
        rc = report_limit(im, tl_maps_images(maps, setup));
    if (rc == TL_OK)
        name_contexts(im, setup, before);
    if (rc == TL_OK)
        tl_perf_import_bind(setup, before);
    if (rc == TL_OK)
        rc = name_missing(im, setup, before);
    if (rc == TL_OK)
        rc = tl_perf_import_names(im, setup);
    if (rc == TL_OK)
        rc = tl_perf_import_name_guests(im, setup);
    tl_maps_free(maps);
    return rc;
}
