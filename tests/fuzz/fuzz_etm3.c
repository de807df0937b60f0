/* SPDX-License-Identifier: MIT */
/* ETMv3 and PTM of a program: any bytes give the same result for any chunking. First two bytes:
 * options, chunk size and data trace. */
#include "decode/decode.h"
#include "sim/arm32_program.h"
#include "steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x8000 };

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

static const struct tl_image *program(bool m_profile)
{
    static struct tl_image *images[2];
    struct tl_image **const image = &images[m_profile];
    struct tl_arm32_program p;
    if (*image)
        return *image;
    if (tl_arm32_program_init(&p, 3, BASE, m_profile) < 0 || tl_image_new(image) < 0 ||
        tl_image_add_bytes(*image, BASE, (struct tl_bytes){p.code.p, p.code.n}, TL_SPACE_ANY, NULL,
                           NULL) < 0 ||
        tl_image_freeze(*image) < 0)
        abort();
    tl_arm32_program_fini(&p);
    return *image;
}

static void decode(const struct tl_setup *setup, bool m_profile, const uint8_t *p, size_t n,
                   size_t chunk, struct heard *h)
{
    const struct tl_decode_sink sink = {.context = h, .items = hear};
    struct tl_decode *d;
    *h = (struct heard){0};
    if (tl_decode_new(&d, setup, program(m_profile), &sink, NULL) < 0)
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
    if (size < 3 || size > 1 << 14)
        return 0;
    const unsigned o = data[0];
    const bool ptm = o & 1, m_profile = !ptm && o & 2;
    char text[256];
    struct tl_setup setup;
    struct heard whole, chunks;
    const char *const format = ptm ? "ptm" : "etm3";
    const int n = snprintf(
        text, sizeof text,
        "[trace]\nformat=%s\n[source cs.00]\nprotocol=%s\ncore=%s\nETMCR=0x%x\nETMIDR=0x%x\n"
        "ETMCCER=0x%x\n",
        format, format, m_profile ? "Cortex-M4" : "Cortex-A7",
        (o >> 2 & 1) << 12 | (o >> 3 & 3) << 14 | 1u << 29 | (ptm ? 0u : (data[1] >> 6 & 3u) << 2),
        ptm ? 0x411cf312u : 0x4104f250u | (o >> 5 & 1) << 20, 1u << 23 | (o >> 6 & 3) << 28);
    tl_setup_init(&setup);
    if (tl_setup_parse(&setup, text, (size_t)n, NULL) < 0)
        abort();
    decode(&setup, m_profile, data + 2, size - 2, size, &whole);
    decode(&setup, m_profile, data + 2, size - 2, 1 + data[1] % 37u, &chunks);
    if (whole.text.n != chunks.text.n ||
        (whole.text.n && memcmp(whole.text.p, chunks.text.p, whole.text.n) != 0))
        abort();
    tl_buf_fini(&whole.text);
    tl_buf_fini(&chunks.text);
    tl_setup_fini(&setup);
    return 0;
}
