/* SPDX-License-Identifier: MIT */
/*
 * The kernel by vector level, and the address forms that all of them use. Each level is compiled in
 * a file of its own and chosen at run time, since one program serves processors with and without
 * it.
 */
#include "etm4/unrolled.h"

#include "etm4/unrolled_parts.h"

/* Entries by bit 7 of the first payload byte, which determines the length of a short address. */
#define EXACT(header, ...)                                                                         \
    [(header) << 1] = {0, __VA_ARGS__, 1}, [(header) << 1 | 1] = {0, __VA_ARGS__, 1}
#define SHORT(header, is0)                                                                         \
    [(header) << 1] = {0x7f, {~0xffull << (is0)}, is0},                                            \
                 [(header) << 1 | 1] = {0xff7f, {~0xffffull << (is0)}, is0}
#define LONG(header, said, kept, is0)                                                              \
    [(header) << 1] = {said, {kept}, is0}, [(header) << 1 | 1] = {said, {kept}, is0}

/* With IS0, two bits precede the first byte, and the second one has seven. */
#define SAID_IS0 0xffffffffffff7f7f
#define SAID_IS1 0xffffffffffffff7f
#define UPPER    0xffffffff00000000

/* clang-format off */
#define FORMS(kept_by_long32) {                                                                    \
    EXACT(0x10, {~0ull}), EXACT(0x11, {0, ~0ull}), EXACT(0x12, {0, 0, ~0ull}),                     \
    SHORT(0x15, 1), SHORT(0x16, 0),                                                                \
    LONG(0x1a, SAID_IS0 & ~UPPER, kept_by_long32, 1),                                              \
    LONG(0x1b, SAID_IS1 & ~UPPER, kept_by_long32, 0),                                              \
    LONG(0x1d, SAID_IS0, 0, 1), LONG(0x1e, SAID_IS1, 0, 0), /* and with a context: */              \
    LONG(0x02, SAID_IS0 & ~UPPER, kept_by_long32, 1),                                              \
    LONG(0x03, SAID_IS1 & ~UPPER, kept_by_long32, 0),                                              \
    LONG(0x05, SAID_IS0, 0, 1), LONG(0x06, SAID_IS1, 0, 0),                                        \
}
/* clang-format on */

const struct tl_etm4_address_form tl_etm4_address_forms[2][64] = {FORMS(0), FORMS(UPPER)};

#if defined(__x86_64__)

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    static const struct tl_etm4_kernel kernel = {TL_CPU_AVX2, 64, tl_etm4_avx2};
    return level >= TL_CPU_AVX2 ? &kernel : NULL;
}

#elif defined(__aarch64__) && !defined(__AARCH64EB__)

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    static const struct tl_etm4_kernel kernel = {TL_CPU_NEON, 64, tl_etm4_neon};
    return level >= TL_CPU_NEON ? &kernel : NULL;
}

#else

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    (void)level;
    return NULL;
}

#endif
