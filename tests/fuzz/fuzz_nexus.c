/* SPDX-License-Identifier: MIT */
/*
 * N-Trace of a program: any bytes give the same result for any chunking, and a changed state is
 * refused or gives some result. First two bytes: options, chunk size.
 */
#include "decode/decode.h"
#include "flow/item.h"
#include "sim/riscv_run.h"
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS_MAX = 1 << 16 }; /* a few bytes can repeat a loop very often */

struct heard {
    uint64_t hash, items, lost;
};

static struct steps steps; /* of the trace that is being decoded */

static void mix(struct heard *h, uint64_t value)
{
    h->hash = (h->hash ^ value) * 0x9e3779b97f4a7c15u;
    h->hash ^= h->hash >> 29;
}

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct heard *const h = context;
    steps_demand(&steps, items, n);
    for (size_t i = 0; i < n; i++) {
        if (h->items++ == ITEMS_MAX)
            return TL_LIMIT;
        mix(h, tl_item_head(&items[i]) | (uint64_t)stream->index << 32);
        mix(h, items[i].pc ^ items[i].n);
        mix(h, items[i].value ^ items[i].offset << 20);
    }
    return TL_OK;
}

static int hear_loss(void *context, const struct tl_decode_loss *loss)
{
    ((struct heard *)context)->lost += loss->bytes;
    return TL_OK;
}

static int hear_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    mix(context, strlen(line));
    return TL_OK;
}

static const struct tl_image *program(unsigned xlen)
{
    static struct tl_image *images[2];
    struct tl_image **const image = &images[xlen == 64];
    const struct tl_sim_riscv_options options = {
        .seed = 7, .xlen = xlen, .base = 0x80000000, .compressed = true, .events = 1};
    struct tl_sim_riscv_run run;
    if (*image)
        return *image;
    if (tl_sim_riscv_run(&run, &options) < 0 || tl_image_new(image) < 0 ||
        tl_image_add_bytes(*image, options.base, (struct tl_bytes){run.code.p, run.code.n},
                           TL_SPACE_ANY, NULL, NULL) < 0 ||
        tl_image_freeze(*image) < 0)
        abort();
    tl_sim_riscv_run_fini(&run);
    return *image;
}

/* Returns TL_LIMIT: there were too many items to compare. */
static int decode(const struct tl_setup *setup, const struct tl_image *image, bool packets,
                  const uint8_t *p, size_t n, size_t chunk, struct heard *heard)
{
    const struct tl_decode_sink sink = {
        .context = heard, .items = hear, .loss = hear_loss, .packet = packets ? hear_packet : NULL};
    struct tl_decode *d;
    struct tl_fail fail;
    int rc = TL_OK;
    *heard = (struct heard){0};
    steps = (struct steps){0};
    if (tl_decode_new(&d, setup, image, &sink, &fail) < 0)
        abort();
    for (size_t at = 0; at < n && rc == TL_OK; at += chunk)
        rc = tl_decode_push(d, p + at, chunk < n - at ? chunk : n - at);
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    tl_decode_free(d);
    if ((rc < 0 && rc != TL_LIMIT) || heard->lost > n)
        abort();
    return rc;
}

static struct tl_decode *begin(const struct tl_setup *setup, const struct tl_image *image,
                               struct heard *heard)
{
    const struct tl_decode_sink sink = {.context = heard, .items = hear, .loss = hear_loss};
    struct tl_decode *d;
    struct tl_fail fail;
    *heard = (struct heard){0};
    steps = (struct steps){0};
    if (tl_decode_new(&d, setup, image, &sink, &fail) < 0)
        abort();
    return d;
}

/* The state in the middle, of which one byte is changed: it is refused or gives some result. */
static void change_state(const struct tl_setup *setup, const struct tl_image *image,
                         const uint8_t *p, size_t n)
{
    struct heard heard;
    struct tl_buf saved = {0};
    struct tl_decode *d = begin(setup, image, &heard);
    const int rc = tl_decode_push(d, p, n / 2);
    if (rc == TL_OK && tl_decode_save(d, &saved) < 0)
        abort();
    tl_decode_free(d);
    if (rc == TL_OK) {
        saved.p[(p[0] | (size_t)p[n - 1] << 8) % saved.n] ^= (uint8_t)(1u << p[n / 2] % 8);
        d = begin(setup, image, &heard);
        const int loaded = tl_decode_load(d, (struct tl_bytes){saved.p, saved.n});
        if (loaded != TL_OK && loaded != TL_BAD)
            abort();
        if (loaded == TL_OK && tl_decode_push(d, p + n / 2, n - n / 2) == TL_OK)
            (void)!tl_decode_finish(d);
        tl_decode_free(d);
    }
    tl_buf_fini(&saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard whole, parts;
    struct tl_setup setup;
    struct tl_fail fail;
    char text[320];
    if (size < 3)
        return 0;
    const unsigned o = data[0], xlen = o & 1 ? 64 : 32;
    snprintf(text, sizeof text,
             "[trace]\nformat=%s,src_bits=%u\n[source nt.0]\ncore=rv%u\ntrTeInstMode=%u\n"
             "trTeInstEnSequentialJump=%u\ntrTeInstEnAllJumps=%u\ntrTeInstExtendAddrMSB=%u\n",
             o & 2 ? "nexus-sifive" : "ntrace", o & 4 ? 3u : 0u, xlen, o & 8 ? 6u : 3u, o >> 4 & 1,
             o >> 5 & 1, o >> 6 & 1);
    tl_setup_init(&setup);
    if (tl_setup_parse(&setup, text, strlen(text), &fail) < 0)
        abort();
    const struct tl_image *const image = o & 0x80 ? NULL : program(xlen);
    const int rc = decode(&setup, image, false, data + 2, size - 2, size, &whole);
    if (rc == TL_OK &&
        (decode(&setup, image, false, data + 2, size - 2, 1 + data[1] % 64, &parts) < 0 ||
         memcmp(&whole, &parts, sizeof whole) != 0))
        abort();
    (void)decode(&setup, image, true, data + 2, size - 2, size, &whole);
    change_state(&setup, image, data + 2, size - 2);
    tl_setup_fini(&setup);
    return 0;
}
