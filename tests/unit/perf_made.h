/* SPDX-License-Identifier: MIT */
/* The smallest perf.data with a trace: its metadata and its bytes. */
#ifndef TL_TESTS_PERF_MADE_H
#define TL_TESTS_PERF_MADE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PERF_PMU = 9 };

static inline void perf_put(struct tl_buf *b, uint64_t value, unsigned size)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, value);
    assert_int_equal(tl_buf_add(b, bytes, size), TL_OK);
}

static inline void perf_put_zeros(struct tl_buf *b, size_t up_to)
{
    while (b->n < up_to)
        perf_put(b, 0, 1);
}

/* A file with metadata of a kind: header, one attribute of the PMU, AUXTRACE_INFO of these words,
 * AUXTRACE of these bytes. */
static inline void perf_make_kind(struct tl_buf *b, uint64_t kind, const uint64_t *words, size_t n,
                                  struct tl_bytes trace)
{
    enum { ATTR = 0x68, ATTR_SIZE = 0x88, DATA = 0x100 };
    *b = (struct tl_buf){0};
    assert_int_equal(tl_buf_add(b, "PERFILE2", 8), TL_OK);
    const uint64_t header[] = {
        0x68, ATTR_SIZE + 16, ATTR, ATTR_SIZE + 16, DATA, 16 + 8 * n + 48 + trace.n, 0, 0};
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        perf_put(b, header[i], 8);
    perf_put_zeros(b, ATTR);
    perf_put(b, PERF_PMU, 4);
    perf_put(b, ATTR_SIZE, 4);
    perf_put_zeros(b, DATA);
    perf_put(b, 70, 4); /* AUXTRACE_INFO */
    perf_put(b, 0, 2);
    perf_put(b, 16 + 8 * n, 2);
    perf_put(b, kind, 8);
    for (size_t i = 0; i < n; i++)
        perf_put(b, words[i], 8);
    perf_put(b, 71, 4); /* AUXTRACE */
    perf_put(b, 0, 2);
    perf_put(b, 48, 2);
    perf_put(b, trace.n, 8);
    perf_put_zeros(b, b->n + 32);
    assert_int_equal(tl_buf_add(b, trace.p, trace.n), TL_OK);
}

/* The same for RISC-V. */
static inline void perf_make(struct tl_buf *b, const uint64_t *words, size_t n,
                             struct tl_bytes trace)
{
    enum { RISCV = 8 };
    perf_make_kind(b, RISCV, words, n, trace);
}

#endif
