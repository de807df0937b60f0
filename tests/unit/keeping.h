/* SPDX-License-Identifier: MIT */
/* A lake in memory with a simulated capture, for tests of stored traces: retention, deletion,
 * verification. */
#ifndef TL_TESTS_KEEPING_H
#define TL_TESTS_KEEPING_H

#include "lake_upkeep.h"
#include "sim_capture.h"

#define SHARD 2500

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static inline int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, SHARD);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    sim_lake_end(backend, lake, &capture);
    return 0;
}

static inline void reopen(void)
{
    tl_lake_close(lake);
    lake = open_lake_sized(backend, SHARD, 1);
}

static inline void push(const char *id)
{
    push_sealed(lake, id, &capture, 3000);
}

static inline int add_size(void *context, const char *key, uint64_t size)
{
    *(uint64_t *)context += size;
    return TL_OK;
}

static inline uint64_t stored(const char *prefix)
{
    uint64_t bytes = 0;
    assert_int_equal(backend->ops->list(backend, prefix, add_size, &bytes, NULL), TL_OK);
    return bytes;
}

static inline void check_text(const char *id)
{
    struct tl_buf got = {0};
    lake_text(lake, id, &got);
    assert_texts_equal(&capture.text, &got);
    tl_buf_fini(&got);
}

static inline int verify(const char *id, bool repair, struct tl_buf *report)
{
    struct tl_fail fail = {0};
    tl_buf_reset(report);
    const int r = tl_lake_verify(lake, id, repair, report, &fail);
    if (r < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_buf_add(report, "", 1), TL_OK);
    report->n--;
    return r;
}

static inline void set_rule(const char *scope, struct tl_retention rule)
{
    assert_int_equal(tl_lake_set_retention(lake, scope, &rule, NULL), TL_OK);
}

static inline int64_t in_days(int days)
{
    return tl_wall_ns() + (int64_t)days * 86400 * 1000000000;
}

#endif
