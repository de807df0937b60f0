/* SPDX-License-Identifier: MIT */
/*
 * Virtual machines in perf.data: each has processes, files and a kernel of its own. Their numbers
 * go through the import in the upper half of a process's number, since they overlap the host's.
 */
#include "import/perf_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
