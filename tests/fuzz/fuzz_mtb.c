/* SPDX-License-Identifier: MIT */
/* Dumps of an MTB's RAM over a program: any bytes and registers give the same result for any
 * chunking. First 8 bytes: options, chunk size, POSITION, MASTER. */
#include "decode/decode.h"
#include "sim/arm32_program.h"
#include "steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x8000, HEAD = 8 };

struct heard {
    struct tl_buf text;
    struct steps steps;
};

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct heard *const h = context;
    (void)stream;
    steps_take(&h->steps, items, n);
    return tl_item_text(&h->text, items, n);
}

static const struct tl_image *program(void)
{
    static struct tl_image *image;
    struct tl_arm32_program p;
    if (image)
        return image;
    if (tl_arm32_program_init(&p, 3, BASE, true) < 0 || tl_image_new(&image) < 0 ||
        tl_image_add_bytes(image, BASE, (struct tl_bytes){p.code.p, p.code.n}, TL_SPACE_ANY, NULL,
                           NULL) < 0 ||
        tl_image_freeze(image) < 0)
        abort();
    tl_arm32_program_fini(&p);
    return image;
}

static void decode(const struct tl_setup *setup, const uint8_t *p, size_t n, size_t chunk,
                   struct heard *h)
{
    const struct tl_decode_sink sink = {.context = h, .items = hear};
    struct tl_decode *d;
    *h = (struct heard){0};
    if (tl_decode_new(&d, setup, program(), &sink, NULL) < 0)
        abort();
    for (size_t at = 0; at < n; at += chunk)
        if (tl_decode_push(d, p + at, chunk < n - at ? chunk : n - at) < 0)
            abort();
    if (tl_decode_finish(d) < 0 || h->steps.impossible > 0)
        abort();
    tl_decode_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= HEAD || size > 1 << 14)
        return 0;
    char text[256];
    struct tl_setup setup;
    struct heard whole, chunks;
    int n = snprintf(text, sizeof text, "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\n");
    if (data[0] & 1)
        n += snprintf(text + n, sizeof text - (size_t)n, "POSITION=0x%x\nMASTER=0x%x\n",
                      tl_le16(data + 2), tl_le16(data + 4));
    if (data[0] & 2)
        n += snprintf(text + n, sizeof text - (size_t)n, "PC=0x%x\nVTOR=0x%x\nRAM=0x%x\n",
                      BASE + data[6], BASE + data[7] * 4u, data[6] * 4u);
    tl_setup_init(&setup);
    if (tl_setup_parse(&setup, text, (size_t)n, NULL) < 0)
        abort();
    decode(&setup, data + HEAD, size - HEAD, size, &whole);
    decode(&setup, data + HEAD, size - HEAD, 1 + data[1] % 37u, &chunks);
    if (whole.text.n != chunks.text.n ||
        (whole.text.n && memcmp(whole.text.p, chunks.text.p, whole.text.n) != 0))
        abort();
    tl_buf_fini(&whole.text);
    tl_buf_fini(&chunks.text);
    tl_setup_fini(&setup);
    return 0;
}
