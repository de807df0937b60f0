/* SPDX-License-Identifier: MIT */
/*
 * Virtual machines in perf.data: each has processes, files and a kernel of its own. Their numbers
 * go through the import in the upper half of a process's number, since they overlap the host's.
 */
#include "import/kernel_names.h"
#include "import/perf_parts.h"
#include "perf/map.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODULES_MAX 4096u /* lines of a list of modules */

/* "Linux version 6.1.0-13-amd64 (…": the release is the third word. */
static void read_release(const char *root, char out[static 64])
{
    char path[4200];
    snprintf(path, sizeof path, "%s/proc/version", root);
    FILE *const f = fopen(path, "r");
    if (!f || fscanf(f, "Linux version %63s", out) != 1)
        out[0] = 0;
    if (f)
        fclose(f);
}

void tl_perf_import_places(const struct tl_perf_import *im, int32_t machine,
                           struct tl_perf_places *out)
{
    out->places = im->places;
    snprintf(out->release, sizeof out->release, "%s", im->release);
    if (machine == 0)
        return;
    if (im->places.guestmount)
        snprintf(out->root, sizeof out->root, "%s/%" PRId32, im->places.guestmount, machine);
    else
        snprintf(out->root, sizeof out->root, "/dev/null"); /* nothing is below it */
    read_release(out->root, out->release);
    out->places.symfs = out->root;
    out->places.vmlinux = im->places.guestvmlinux;
    out->places.kcore = NULL;
}

uint64_t tl_perf_import_process(int32_t machine, int32_t pid)
{
    if (machine == 0 && pid == TL_PERF_KERNEL_PID)
        return TL_MAPS_KERNEL;
    return (uint64_t)(uint32_t)machine << 32 | (uint32_t)pid;
}

void tl_perf_import_bind(struct tl_setup *setup, size_t first)
{
    for (size_t i = first; i < setup->n_images; i++) {
        struct tl_image_context *const c = &setup->images[i].context;
        if (!c->has_context_id || c->context_id >> 32 == 0)
            continue;
        const uint32_t process = (uint32_t)c->context_id;
        c->vmid = (uint32_t)(c->context_id >> 32);
        c->has_vmid = true;
        c->has_context_id = process != (uint32_t)TL_PERF_KERNEL_PID;
        c->context_id = c->has_context_id ? process : 0;
    }
}

/* The last name of a process of the host, as its first thread had it; "": unknown. */
static const char *host_name(const struct tl_perf_import *im, int32_t pid)
{
    const char *name = "";
    for (size_t i = 0; i < im->n_events; i++) {
        const struct tl_perf_event *const e = &im->events[i];
        if (e->type == TL_PERF_COMM && e->machine == 0 && e->pid == pid && e->tid == pid)
            name = e->comm;
    }
    return name;
}

int tl_perf_import_name_guests(const struct tl_perf_import *im, struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < im->n_events; i++) {
        const int32_t machine = im->events[i].machine;
        char name[32];
        if (machine == 0 || tl_setup_context_name(setup, true, (uint32_t)machine))
            continue;
        const char *const process = host_name(im, machine);
        snprintf(name, sizeof name, "guest %" PRId32 "%s%s", machine, *process ? " " : "", process);
        rc = tl_setup_add_context(setup, true, (uint32_t)machine, name);
    }
    return rc;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Call `each` once for every virtual machine of which there are records. */
static int each_machine(struct tl_perf_import *im,
                        int (*each)(void *context, struct tl_perf_import *im, int32_t machine),
                        void *context)
{
    struct tl_perf_map known = {0};
    int rc = TL_OK;
    for (size_t i = 0, n = im->n_events; rc == TL_OK && i < n; i++) {
        const int32_t machine = im->events[i].machine;
        if (machine == 0 || tl_perf_map_get(&known, (uint32_t)machine) >= 0)
            continue;
        rc = tl_perf_map_set(&known, (uint32_t)machine, 0);
        if (rc == TL_OK)
            rc = each(context, im, machine);
    }
    tl_perf_map_fini(&known);
    return rc;
}

static bool is_recorded(const struct tl_perf_import *im, int32_t machine, uint64_t address)
{
    for (size_t i = 0; i < im->n_events; i++) {
        const struct tl_perf_event *const e = &im->events[i];
        const bool is_module = e->dso < im->n_dsos && im->dsos[e->dso]->kind == TL_CODE_MODULE;
        if (is_module && e->machine == machine && address - e->address < e->length)
            return true;
    }
    return false;
}

/* Modules were loaded before the trace began. */
static int add_module(struct tl_perf_import *im, int32_t machine,
                      const struct tl_kernel_module *module)
{
    char name[sizeof module->name + 2];
    snprintf(name, sizeof name, "[%s]", module->name);
    const struct tl_perf_mapping mapping = {.pid = TL_PERF_KERNEL_PID, .name = name};
    struct tl_perf_event e = {.type = TL_PERF_MMAP,
                              .machine = machine,
                              .pid = TL_PERF_KERNEL_PID,
                              .address = module->address,
                              .length = module->size};
    const int rc = tl_perf_import_dso(im, machine, &mapping, &e.dso);
    return rc < 0 ? rc : tl_perf_import_event(im, e);
}

static int add_modules(void *context, struct tl_perf_import *im, int32_t machine)
{
    FILE *const f = context;
    struct tl_kernel_module module;
    char line[4096];
    int rc = TL_OK;
    rewind(f);
    for (unsigned n = 0; rc == TL_OK && n < MODULES_MAX && fgets(line, sizeof line, f); n++)
        if (tl_kernel_module_read(&module, line) && !is_recorded(im, machine, module.address))
            rc = add_module(im, machine, &module);
    return rc;
}

int tl_perf_import_modules(struct tl_perf_import *im)
{
    const char *const list = im->places.guestmodules;
    if (!list || !im->places.guestmount)
        return TL_OK;
    FILE *const f = fopen(list, "re");
    if (!f)
        tl_perf_import_report(im, "%s: %s", list, strerror(errno));
    const int rc = f ? each_machine(im, add_modules, f) : TL_OK;
    if (f)
        fclose(f);
    return rc;
}

struct naming {
    const struct tl_kernel_names *names;
    struct tl_setup *setup;
};

/* Do records say that the kernel was elsewhere, as after another start? */
static bool is_another(const struct tl_perf_import *im, int32_t machine,
                       const struct tl_kernel_names *names)
{
    for (size_t i = 0; i < im->n_events; i++) {
        const struct tl_perf_event *const e = &im->events[i];
        const struct tl_perf_dso *const d = e->dso < im->n_dsos ? im->dsos[e->dso] : NULL;
        const char *const symbol = e->machine == machine && d ? tl_perf_dso_symbol(d) : NULL;
        uint64_t address;
        if (symbol && tl_kernel_names_find(names, symbol, &address) && address != e->offset)
            return true;
    }
    return false;
}

static int add_names(void *context, struct tl_perf_import *im, int32_t machine)
{
    struct naming *const n = context;
    const char *const list = im->places.guestkallsyms;
    if (is_another(im, machine, n->names)) {
        tl_perf_import_report(im,
                              "%s: guest %" PRId32 " was recorded with its kernel elsewhere: that "
                              "is a list of another start, and names nothing",
                              list, machine);
        return TL_OK;
    }
    const int rc = tl_setup_add_image_at(n->setup, list, 0, 0, UINT64_MAX, TL_SPACE_ANY);
    if (rc < 0)
        return rc;
    struct tl_image_context *const c = &n->setup->images[n->setup->n_images - 1].context;
    c->vmid = (uint32_t)machine;
    c->has_vmid = true;
    return TL_OK;
}

static int make_file(const struct tl_perf_import *im, struct tl_kernel_names *names,
                     struct tl_setup *setup)
{
    struct tl_buf file = {0};
    if (tl_setup_made(setup, im->places.guestkallsyms))
        return TL_OK;
    const int rc = tl_kernel_names_file(names, EM_X86_64, &file);
    if (rc >= 0)
        return tl_setup_add_made(setup, im->places.guestkallsyms, &file);
    tl_buf_fini(&file);
    return rc;
}

int tl_perf_import_guest_names(struct tl_perf_import *im, struct tl_setup *setup)
{
    struct tl_kernel_names names = {0};
    const char *const list = im->places.guestkallsyms;
    if (!list || im->info.kind != TL_PERF_TRACE_PT)
        return TL_OK;
    int rc = tl_kernel_names_read(&names, list);
    if (rc == TL_IO)
        tl_perf_import_report(im, "%s: %s", list, strerror(errno));
    else if (rc == TL_OK && names.n == 0)
        tl_perf_import_report(im, "%s: tells no addresses; copy it as root", list);
    else if (rc == TL_OK)
        rc = each_machine(im, add_names, &(struct naming){.names = &names, .setup = setup});
    if (rc == TL_OK && names.n > 0)
        rc = make_file(im, &names, setup);
    tl_kernel_names_fini(&names);
    return rc == TL_IO ? TL_OK : rc;
}
