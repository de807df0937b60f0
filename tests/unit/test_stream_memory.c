/* SPDX-License-Identifier: MIT */
/*
 * Decoding needs bounded memory for any length of the input: many megabytes (TL_MEMORY_MIB, default
 * 64) are sent through a pipe to a process whose peak resident size is checked after it has ended.
 */
#include "base/crew.h"
#include "decode/decode.h"
#include "sim/tpiu_encoder.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "unit/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB     ((size_t)1 << 20)
#define LIMIT   (64 * 1024) /* KiB */
#define TAKE_AT (256u << 10)

static void make(struct world *w, bool framed, bool broadcast)
{
    const struct tl_sim_program_options shape = {.seed = 3, .extra = 60};
    const struct tl_sim_core_options options = {.seed = 4,
                                                .etm = {.minor = 2,
                                                        .trace_id = 0x10,
                                                        .return_stack = !broadcast,
                                                        .branch_broadcast = broadcast,
                                                        .timestamps = true}};
    world_init(w, &shape, &options, MIB / 4, UINT_MAX);
    w->setup.container = framed ? TL_CONTAINER_TPIU : TL_CONTAINER_SINGLE;
    if (!framed)
        return;
    struct tl_tpiu_encoder e;
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 1);
    assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, w->trace.p, w->trace.n), TL_OK);
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    tl_buf_fini(&w->trace);
    w->trace = e.out;
}

/* ---- the decoding process -------------------------------------------------------------------- */

struct reader {
    struct tl_stf_flow *flow; /* NULL: without an image there are only branches */
    uint64_t items;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct reader *const r = context;
    struct tl_stf_flow_at at = {0};
    r->items += n;
    if (!r->flow)
        return TL_OK;
    const int rc = tl_stf_flow_items(r->flow, items, n, UINT64_MAX, &at);
    if (tl_stf_flow_bytes(r->flow).n >= TAKE_AT)
        tl_stf_flow_take(r->flow);
    return rc;
}

/* Decode from the pipe. Exit status 0: everything was read, and there was output. */
static int decode_pipe(const struct world *w, int fd, unsigned threads, bool image)
{
    struct reader r = {0};
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    const struct tl_decode_sink sink = {.context = &r, .items = on_items};
    struct tl_decode *d;
    struct tl_crew *crew;
    struct tl_fail fail;
    uint8_t *const piece = malloc(TL_DECODE_PUSH);
    if (!piece || (image && tl_stf_flow_new(&r.flow, &options, NULL) < 0) ||
        tl_decode_new(&d, &w->setup, image ? w->image : NULL, &sink, &fail) < 0 ||
        tl_crew_new(&crew, threads) < 0 || tl_decode_set_crew(d, crew) < 0)
        return 1;
    tl_decode_allow_paths(d);
    tl_decode_set_code(d, tl_stf_block_code);
    for (size_t n = 0;;) {
        const ssize_t got = read(fd, piece + n, TL_DECODE_PUSH - n);
        if (got < 0)
            return 2;
        n += (size_t)got;
        if (got > 0 && n < TL_DECODE_PUSH)
            continue;
        if (tl_decode_push(d, piece, n) < 0)
            return 3;
        if (got == 0)
            break;
        n = 0;
    }
    if (tl_decode_finish(d) < 0 || r.items == 0)
        return 4;
    tl_decode_free(d);
    tl_crew_free(crew);
    return 0;
}

/* The peak resident size in KiB of a process that decodes `bytes` bytes. */
static long decode_in_child(const struct world *w, size_t bytes, unsigned threads, bool image)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        _exit(decode_pipe(w, ends[0], threads, image));
    }
    close(ends[0]);
    for (size_t done = 0; done < bytes;) {
        const size_t at = done % w->trace.n;
        const ssize_t put = write(ends[1], w->trace.p + at, w->trace.n - at);
        assert_true(put > 0);
        done += (size_t)put;
    }
    close(ends[1]);
    int status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return usage.ru_maxrss;
}

static void check(bool framed, bool broadcast, bool image, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers' own memory is included */
#endif
    struct world w;
    make(&w, framed, broadcast);
    for (unsigned threads = 1; threads <= 2; threads++) {
        const long used = decode_in_child(&w, bytes, threads, image);
        print_message("%zu MiB, %u threads: %ld KiB\n", bytes / MIB, threads, used);
        assert_true(used < LIMIT);
    }
    world_fini(&w);
}

static size_t length(void)
{
    const char *const wish = getenv("TL_MEMORY_MIB");
    return (wish ? strtoul(wish, NULL, 10) : 64) * MIB;
}

static void branches_without_image(void **state)
{
    (void)state;
    check(true, true, false, length());
}

static void full_flow_to_records(void **state)
{
    (void)state;
    check(false, false, true, length() / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_without_image),
        cmocka_unit_test(full_flow_to_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
