/* SPDX-License-Identifier: MIT */
/*
 * Two processes that load and unload code at the same address, traced by an ETMv4 unit through a
 * TPIU. All loading happens at the start, so that the setup can contain the images with their
 * times; after that the processes keep what they have loaded.
 */
#include "rig.h"

#include "import/maps.h"
#include "sim/loading.h"
#include "sim/tpiu_encoder.h"

#include <stdlib.h>

enum { ID = 0x10, CALLS = 3000, STEP = 10 };

struct rig {
    struct tl_sim_loading loading;
    struct tl_sim_etm4_options etm;
    struct tl_tpiu_encoder tpiu;
};

static void stop(struct rig *rig)
{
    tl_sim_loading_fini(&rig->loading);
    tl_tpiu_encoder_fini(&rig->tpiu);
    free(rig);
}

static int start(struct rig **out, uint64_t seed, bool truth)
{
    struct rig *const rig = calloc(1, sizeof *rig);
    (void)truth; /* it is always recorded */
    if (!rig)
        return TL_NOMEM;
    rig->etm = (struct tl_sim_etm4_options){.minor = 2,
                                            .trace_id = ID,
                                            .return_stack = true,
                                            .timestamps = true,
                                            .timestamp_every = 4,
                                            .context_id = true};
    tl_tpiu_encoder_init(&rig->tpiu, TL_TPIU_FSYNC, seed);
    int result = tl_sim_loading_init(&rig->loading, seed, &rig->etm);
    if (result == TL_OK)
        result = tl_sim_loading_run(&rig->loading, CALLS);
    rig->loading.settled = true;
    if (result < 0)
        stop(rig);
    else
        *out = rig;
    return result;
}

/* Put all code into one file, of which each image is a part. */
static int add_images(const struct tl_sim_loading *l, struct tl_setup *setup, struct tl_buf *code)
{
    uint64_t offsets[TL_SIM_LOADING_FILES];
    struct tl_maps *maps;
    int result = tl_maps_new(&maps);
    for (size_t i = 0; result == TL_OK && i < TL_SIM_LOADING_FILES; i++) {
        offsets[i] = code->n;
        result = tl_buf_add(code, l->files[i].p, l->files[i].n);
    }
    for (size_t i = 0; result == TL_OK && i < l->n_records; i++) {
        const struct tl_sim_record *const r = &l->records[i];
        const struct tl_map map = {.process = r->process ? r->process : TL_MAPS_KERNEL,
                                   .time = r->time,
                                   .address = r->address,
                                   .length = l->files[r->file].n,
                                   .offset = offsets[r->file],
                                   .file = r->unloads ? NULL : "code"};
        result = tl_maps_add(maps, &map);
    }
    if (result == TL_OK)
        result = tl_maps_images(maps, setup);
    tl_maps_free(maps);
    return result;
}

static int describe(struct rig *rig, struct tl_setup *setup, struct tl_buf *code)
{
    int result = tl_setup_format(setup, "tpiu,sync=fsync", NULL);
    setup->clock_hz = 100000000;
    struct tl_source *const source = result == TL_OK ? tl_setup_add_source(setup) : NULL;
    result = source ? tl_sim_etm4_source(&rig->etm, source) : TL_NOMEM;
    if (result < 0)
        return result;
    snprintf(source->name, sizeof source->name, "cs.%02x", ID);
    source->id = ID;
    return add_images(&rig->loading, setup, code);
}

static int more(struct rig *rig, size_t n, struct tl_buf *out)
{
    struct tl_buf *const trace = &rig->loading.trace;
    int result = TL_OK;
    while (result == TL_OK && trace->n < n)
        result = tl_sim_loading_run(&rig->loading, STEP);
    if (result == TL_OK)
        result = tl_tpiu_encoder_add(&rig->tpiu, ID, trace->p, trace->n);
    if (result == TL_OK)
        result = tl_tpiu_encoder_flush(&rig->tpiu);
    if (result == TL_OK)
        result = tl_buf_add(out, rig->tpiu.out.p, rig->tpiu.out.n);
    tl_buf_reset(&rig->tpiu.out);
    tl_buf_reset(trace);
    return result;
}

static int truth(struct rig *rig, FILE *file)
{
    const struct tl_buf *const text = &rig->loading.truth;
    fprintf(file, "# stream cs.%02x\n", ID);
    return fwrite(text->p, 1, text->n, file) == text->n ? TL_OK : TL_IO;
}

const struct rig_kind rig_plugins = {
    .name = "plugins",
    .about = "two processes that load and unload code at one address, ETMv4 through a TPIU",
    .start = start,
    .stop = stop,
    .describe = describe,
    .more = more,
    .truth = truth,
};
