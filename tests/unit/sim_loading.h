/* SPDX-License-Identifier: MIT */
/* The simulation of sim/loading.h as a world to decode: the records become the image. */
#ifndef TL_TESTS_SIM_LOADING_H
#define TL_TESTS_SIM_LOADING_H

#include "import/maps.h"
#include "sim/loading.h"
#include "unit/sim_world.h"

/* Trace units of different kinds with all the trace needed. */
static inline struct tl_sim_etm4_options loading_etm(unsigned kind)
{
    return (struct tl_sim_etm4_options){.ete = kind % 4 == 3,
                                        .minor = kind % 4 == 3 ? 1 : 4,
                                        .trace_id = 0x10,
                                        .return_stack = kind % 2,
                                        .timestamps = true,
                                        .timestamp_every = 4,
                                        .context_id = true,
                                        .sync_every = 700,
                                        .max_spec_depth = kind % 4 == 2 ? 20 : 0};
}

/* Append the images that follow from the records. `name` gives the names of the files. */
static inline void loading_images(const struct tl_sim_loading *l, struct tl_setup *setup,
                                  const char *(*name)(void *context, unsigned file), void *context)
{
    struct tl_maps *maps;
    assert_int_equal(tl_maps_new(&maps), TL_OK);
    for (size_t i = 0; i < l->n_records; i++) {
        const struct tl_sim_record *const r = &l->records[i];
        const struct tl_map map = {.process = r->process ? r->process : TL_MAPS_KERNEL,
                                   .time = r->time,
                                   .address = r->address,
                                   .length = l->files[r->file].n,
                                   .file = r->unloads ? NULL : name(context, r->file)};
        assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    }
    assert_int_equal(tl_maps_images(maps, setup), TL_OK);
    tl_maps_free(maps);
}

static inline const char *loading_name(void *context, unsigned file)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    assert_true(file < sizeof names / sizeof *names);
    (void)context;
    return names[file];
}

static inline int loading_content(void *context, const char *file, struct tl_bytes *bytes,
                                  struct tl_fail *fail)
{
    const struct tl_sim_loading *const l = context;
    const struct tl_buf *const content = &l->files[file[0] - '0'];
    (void)fail;
    *bytes = (struct tl_bytes){content->p, content->n};
    return TL_OK;
}

/* A trace of `calls` system calls, or as many as produce `bytes` of trace. The caller frees `l`,
 * but not its trace. */
static inline void loading_world(struct world *w, struct tl_sim_loading *l,
                                 const struct tl_sim_etm4_options *etm, uint64_t seed, size_t bytes,
                                 unsigned calls)
{
    memset(w, 0, sizeof *w);
    tl_setup_init(&w->setup);
    assert_int_equal(tl_setup_format(&w->setup, etm->ete ? "ete,id=0x10" : "etm4,id=0x10", NULL),
                     TL_OK);
    assert_int_equal(tl_sim_etm4_source(etm, &w->setup.sources[0]), TL_OK);
    assert_int_equal(tl_sim_loading_init(l, seed, etm), TL_OK);
    for (unsigned done = 0; done < calls && l->trace.n < bytes; done += 10)
        assert_int_equal(tl_sim_loading_run(l, 10), TL_OK);
    w->trace = l->trace;
    l->trace = (struct tl_buf){0};
    loading_images(l, &w->setup, loading_name, NULL);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_setup_load_images(&w->setup, w->image, loading_content, l, NULL), TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
}

#endif
