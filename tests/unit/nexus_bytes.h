/* SPDX-License-Identifier: MIT */
/* Nexus messages written by hand, and what a decode says of them. */
#ifndef TL_TESTS_NEXUS_BYTES_H
#define TL_TESTS_NEXUS_BYTES_H

#include "decode/decode.h"
#include "steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ------------------------------------------------------------------------------ */

struct trace {
    uint8_t p[8192];
    size_t n;
    unsigned byte, bits;
};

static inline void put_byte(struct trace *t, unsigned mseo)
{
    t->p[t->n++] = (uint8_t)(t->byte << 2 | mseo);
    t->byte = t->bits = 0;
}

/* Fields as pairs of value and width; width 0: variable; the last is variable. */
static inline void message(struct trace *t, unsigned n, ...)
{
    va_list args;
    va_start(args, n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t value = va_arg(args, uint64_t);
        unsigned width = va_arg(args, unsigned);
        const bool fixed = width > 0;
        for (width = fixed   ? width
                     : value ? 64 - (unsigned)__builtin_clzll(value)
                             : !t->bits;
             width > 0; width--, value >>= 1) {
            if (t->bits == 6)
                put_byte(t, 0);
            t->byte |= (unsigned)(value & 1) << t->bits++;
        }
        if (!fixed)
            put_byte(t, i + 1 == n ? 3 : 1);
    }
    va_end(args);
}

#define F(value, width) (uint64_t)(value), (unsigned)(width)
#define V(value)        F(value, 0)

static inline void sync_at(struct trace *t, uint64_t icnt, uint64_t pc)
{
    message(t, 4, F(9, 6), F(5, 4), V(icnt), V(pc >> 1));
}

/* ---- decoding ------------------------------------------------------------------------------ */

struct said {
    struct tl_buf text, losses;
    struct steps steps;
};

static inline int hear(void *context, const struct tl_decode_stream *stream,
                       const struct tl_item *items, size_t n)
{
    steps_demand(&((struct said *)context)->steps, items, n);
    return tl_item_text(&((struct said *)context)->text, items, n);
}

static inline int list(void *context, const struct tl_decode_stream *stream, const char *line)
{
    return tl_buf_printf(&((struct said *)context)->text, "%s\n", line);
}

static inline int lose(void *context, const struct tl_decode_loss *loss)
{
    return tl_buf_printf(&((struct said *)context)->losses, "%u+%u %s\n", (unsigned)loss->offset,
                         (unsigned)loss->bytes, loss->reason);
}

/* Decode `p` of a program of `code` at `at`. */
static inline void decode_to(const char *ini, struct tl_bytes code, uint64_t at,
                             const struct tl_decode_sink *sink, const uint8_t *p, size_t n)
{
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_decode *d;
    struct tl_fail fail = {.text = ""};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, ini, strlen(ini), &fail), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, at, code, TL_SPACE_ANY, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    if (tl_decode_new(&d, &setup, image, sink, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_decode_push(d, p, n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_image_free(image);
    tl_setup_fini(&setup);
}

static inline void check_with(const char *ini, struct tl_bytes code, uint64_t at, bool packets,
                              const struct trace *t, const char *text, const char *losses)
{
    struct said said = {0};
    const struct tl_decode_sink sink = {.context = &said,
                                        .items = packets ? NULL : hear,
                                        .packet = packets ? list : NULL,
                                        .loss = lose};
    decode_to(ini, code, at, &sink, t->p, t->n);
    assert_int_equal(tl_buf_add(&said.text, "", 1) | tl_buf_add(&said.losses, "", 1), TL_OK);
    assert_string_equal((char *)said.text.p, text);
    assert_string_equal((char *)said.losses.p, losses);
    tl_buf_fini(&said.text);
    tl_buf_fini(&said.losses);
}

#endif
