/* SPDX-License-Identifier: MIT */
/*
 * CoreSight captures from end to end: container, streams of every protocol, flow in an image. The
 * first byte chooses the container, the second the chunks; the rest is the capture. Whole and in
 * chunks it must say the same.
 */
#include "decode/decode.h"
#include "image/image.h"
#include "sim/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDS = 128 };

struct said {
    struct tl_buf text[IDS];
    uint64_t lost, losses;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    require(stream->source != NULL && stream->source->id < IDS);
    return tl_item_text(&s->text[stream->source->id], items, n);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const s = context;
    require(loss->reason != NULL && loss->reason[0] != '\0');
    s->lost += loss->bytes;
    s->losses++;
    return TL_OK;
}

static const struct tl_image *image(void)
{
    static struct tl_image *made;
    const struct tl_sim_program_options options = {.seed = 1, .extra = 20, .short_loops = true};
    struct tl_sim_program program;
    struct tl_buf elf = {0};
    if (made)
        return made;
    require(tl_sim_program_init(&program, &options) == 0 &&
            tl_sim_program_elf(&program, &elf) == 0 && tl_image_new(&made) == 0);
    require(tl_image_add_elf(made, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", NULL) ==
            0);
    require(tl_image_freeze(made) == 0);
    tl_buf_fini(&elf);
    tl_sim_program_fini(&program);
    return made;
}

static const char sources[] =
    "[source cs.10]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x18c1\nTRCIDR1=0x4100f443\n"
    "[source cs.11]\nprotocol=ete\ncore=ARM-AA64\nTRCCONFIGR=0xc1\nTRCIDR0=0x28018ea1\n"
    "TRCDEVARCH=0x47735a13\n"
    "[source cs.12]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x11\nTRCIDR8=20\n"
    "[source cs.13]\nprotocol=itm\n[source cs.14]\nprotocol=stm\n"
    "[source cs.15]\nprotocol=none\ntype=PTM1.1\n"
    "[source cs.16]\nprotocol=etm4\ncore=Cortex-M33\n"
    "[source cs.17]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x6\n";

static void decode(const struct tl_setup *setup, const uint8_t *p, size_t n, size_t chunk,
                   struct said *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = on_items, .loss = on_loss};
    struct tl_fail fail = {0};
    struct tl_decode *d;
    *out = (struct said){0};
    require(tl_decode_new(&d, setup, image(), &sink, &fail) == 0);
    for (size_t at = 0; at < n; at += chunk)
        require(tl_decode_push(d, p + at, n - at < chunk ? n - at : chunk) == 0);
    require(tl_decode_finish(d) == 0);
    tl_decode_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {
        "tpiu",         "tpiu,sync=fsync", "tpiu,sync=hsync", "tpiu,sync=dstream",
        "etm4,id=0x10", "ete,id=0x11"};
    struct tl_setup setup;
    struct said whole, parts;
    struct tl_fail fail = {0};
    if (size < 3 || size > 65536)
        return 0;
    tl_setup_init(&setup);
    require(tl_setup_format(&setup, formats[data[0] % 6], &fail) == 0);
    require(data[0] % 6 > 3 || tl_setup_parse(&setup, sources, sizeof sources - 1, &fail) == 0);
    decode(&setup, data + 2, size - 2, size, &whole);
    decode(&setup, data + 2, size - 2, 1 + data[1], &parts);
    require(whole.lost == parts.lost && whole.losses == parts.losses);
    for (unsigned id = 0; id < IDS; id++) {
        require(whole.text[id].n == parts.text[id].n);
        require(!whole.text[id].n || !memcmp(whole.text[id].p, parts.text[id].p, whole.text[id].n));
        tl_buf_fini(&whole.text[id]);
        tl_buf_fini(&parts.text[id]);
    }
    tl_setup_fini(&setup);
    return 0;
}
