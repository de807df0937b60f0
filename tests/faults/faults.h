/* SPDX-License-Identifier: MIT */
/* Shared by the fault tests: a capture, and the invariants of a trace at the end. */
#ifndef TL_TESTS_FAULTS_H
#define TL_TESTS_FAULTS_H

#include "lake.h"
#include "lake_images.h"
#include "lake_ingest.h"
#include "lake_rows.h"
#include "lake_traces.h"
#include "lake_upkeep.h"
#include "sim_capture.h"

#include "raw/spool.h"
#include "unit/seed.h"

#define FAULT_SHARD 2500 /* instructions */

static inline uint64_t fault_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Number of rounds: the first argument, or `usual`. */
static inline unsigned fault_rounds(unsigned usual)
{
    const char *rounds = getenv("TL_FAULT_ROUNDS");
    return rounds ? (unsigned)strtoul(rounds, NULL, 10) : usual;
}

static inline uint64_t fault_seed(void)
{
    const uint64_t seed = test_seed();
    return seed;
}

/* Virtual shards that can be regenerated from many positions, and most raw bytes packed. */
static inline struct tl_lake_options fault_options(const char *dir, bool is_virtual)
{
    return (struct tl_lake_options){.dir = dir,
                                    .shard_insns = FAULT_SHARD,
                                    .decode_threads = 2,
                                    .min_free_bytes = 1,
                                    .checkpoint_bytes = 8192,
                                    .virtual_shards = is_virtual,
                                    .segment_bytes = is_virtual ? 4096 : 0,
                                    .mark_bytes = 1024};
}

static inline void fault_capture(struct capture *c, uint64_t insns)
{
    struct tl_backend *backend;
    const struct sim_options options = {
        .seed = 3, .insns = insns, .cores = 2, .image = true, .events = true};
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *lake = open_lake_sized(backend, FAULT_SHARD, 1);
    sim_capture(lake, &options, c);
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static inline int fault_find_shard(void *context, const char *key, uint64_t size)
{
    if (strstr(key, ".zstf"))
        snprintf(context, 192, "%s", key);
    return TL_OK;
}

static inline int fault_count_virtual(void *context, const char *key, uint64_t size)
{
    *(unsigned *)context += strstr(key, ".idx") != NULL;
    return TL_OK;
}

/* Number of virtual shards of a trace. */
static inline unsigned fault_virtual(struct tl_lake *lake, const char *id)
{
    char prefix[80];
    unsigned n = 0;
    snprintf(prefix, sizeof(prefix), "t/%s", id);
    assert_int_equal(lake->backend->ops->list(lake->backend, prefix, fault_count_virtual, &n, NULL),
                     TL_OK);
    return n;
}

/* Change a byte of a shard's index on the medium; a later check repairs it. */
static inline int fault_damage(struct tl_lake *lake, uint64_t *random)
{
    struct tl_backend *backend = lake->backend;
    struct tl_buf shard = {0}, report = {0};
    char key[192] = "";
    int r = backend->ops->list(backend, "t/t", fault_find_shard, key, NULL);
    if (r >= 0 && *key)
        r = tl_backend_get_all(backend, key, &shard, NULL);
    if (r >= 0 && shard.n > TL_SHARD_FOOTER) {
        const uint64_t body = tl_le64(shard.p + shard.n - TL_SHARD_FOOTER + 24);
        if (body < shard.n) {
            shard.p[body + fault_random(random) % (shard.n - body)] ^= 4;
            r = tl_backend_put(backend, key, (struct tl_bytes){shard.p, shard.n}, NULL);
        }
    }
    if (r >= 0)
        r = tl_lake_verify(lake, "t", true, &report, NULL);
    tl_buf_fini(&shard);
    tl_buf_fini(&report);
    return r;
}

/* Check that the whole capture is stored and decoded as if nothing had happened, except for damage
 * not yet repaired. */
static inline void fault_check(struct tl_lake *lake, const char *id, const struct capture *c)
{
    struct tl_buf got = {0};
    struct tl_fail fail = {0};
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
    assert_true(tl_lake_verify(lake, id, true, &got, &fail) >= 0);
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
    tl_buf_reset(&got);
    lake_text(lake, id, &got);
    assert_texts_equal(&c->text, &got);
    tl_buf_reset(&got);
    if (tl_lake_verify(lake, id, false, &got, &fail) != 0)
        fail_msg("%.*s%s", (int)got.n, (const char *)got.p, fail.text);
    struct tl_spool_reader *reader;
    assert_int_equal(tl_spool_reader_new(&reader, lake->backend, id), TL_OK);
    tl_buf_reset(&got);
    int r;
    while ((r = tl_spool_read(reader, got.n, c->bytes.n, &got, &fail)) >= 0)
        ;
    assert_int_equal(r, TL_EOF);
    assert_int_equal(got.n, c->bytes.n);
    assert_memory_equal(got.p, c->bytes.p, got.n);
    tl_spool_reader_free(reader);
    tl_buf_fini(&got);
}

/* Push like a rig that resumes where the server says. Returns false once something was refused. */
static inline bool fault_push(struct tl_lake *lake, const char *id, const struct capture *c,
                              uint64_t *random, void (*on_durable)(void *, uint64_t), void *context)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    struct tl_image_row row;
    char trace[64];
    uint64_t at;
    /* Sometimes the image arrives after the capture, so that everything is decoded again. */
    const bool image_first = fault_random(random) % 4 != 0;
    const struct tl_bytes elf = {c->elf.p, c->elf.n};
    if (image_first && tl_lake_put_image(lake, "program", elf, &row, &fail) < 0)
        return false;
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = (const char *)c->setup.p, .resume = true};
    int r = tl_ingest_open(lake, &request, on_durable, context, &ingest, trace, &at, &fail);
    if (r < 0)
        return false;
    while (r >= 0 && at < c->bytes.n) {
        size_t n = 1 + (size_t)(fault_random(random) % 3000);
        if (n > c->bytes.n - at)
            n = (size_t)(c->bytes.n - at);
        r = tl_ingest_append(ingest, at, (struct tl_bytes){c->bytes.p + at, n}, &fail);
        at += n;
    }
    if (r >= 0)
        r = tl_ingest_finish(ingest, &at, &fail);
    tl_ingest_close(ingest);
    if (r >= 0 && !image_first)
        r = tl_lake_put_image(lake, "program", elf, &row, &fail);
    return r >= 0;
}

/* Other operations on a lake, at any time: failures must be reported, and leave everything either
 * unchanged or as intended. Trace "u" is created and deleted; nothing of "t" may be lost. */
static inline void fault_house(struct tl_lake *lake, const struct capture *c, uint64_t *random)
{
    const struct tl_retention rule = {.raw_age_s = 3600};
    const int64_t later = tl_wall_ns() + (int64_t)86400 * 1000000000;
    const uint64_t other = fault_random(random);
    const struct tl_bytes content = {(const uint8_t *)&other, sizeof(other)};
    struct tl_buf report = {0};
    struct tl_image_row row;
    char label[32];
    int r = TL_OK;
    for (unsigned n = 1 + fault_random(random) % 4; n > 0; n--)
        switch (fault_random(random) % 8) {
        case 0:
            r = tl_lake_redecode(lake, "t", NULL, NULL);
            break;
        case 1:
            r = tl_lake_verify(lake, "t", true, &report, NULL);
            break;
        case 2:
            snprintf(label, sizeof(label), "n=%u\n", (unsigned)(fault_random(random) % 100));
            r = tl_lake_set_labels(lake, "t", label, NULL);
            break;
        case 3:
            r = tl_lake_put_image(lake, "other", content, &row, NULL);
            break;
        case 4:
            r = fault_push(lake, "u", c, random, NULL, NULL) ? TL_OK : TL_IO;
            break;
        case 5:
            r = tl_lake_set_retention(lake, "trace u", &rule, NULL);
            if (r >= 0)
                r = tl_lake_retain(lake, later, NULL);
            break;
        case 6:
            r = fault_damage(lake, random);
            break;
        default:
            r = tl_lake_delete(lake, "u", NULL);
            break;
        }
    (void)r;
    tl_buf_fini(&report);
}

#endif
