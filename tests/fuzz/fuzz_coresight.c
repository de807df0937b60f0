/* SPDX-License-Identifier: MIT */
/*
 * CoreSight captures from end to end: container, streams of every protocol, flow in an image. The
 * first byte chooses the container, and whether the connection was lost in the middle; the second
 * the chunk size; the rest is the capture. The result must be the same whole and in chunks.
 */
#include "fuzz/coresight.h"
#include "steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said {
    struct tl_buf text[IDS];
    uint64_t lost, losses;
    struct steps_streams steps;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    require(stream->source != NULL && stream->source->id < IDS);
    steps_demand_of(&s->steps, stream->index, items, n);
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

enum { JOINED = 0x80 };

/* `joint`: the connection was lost before this byte. */
static void decode(const struct tl_setup *setup, const uint8_t *p, size_t n, size_t joint,
                   size_t chunk, struct said *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = on_items, .loss = on_loss};
    struct tl_fail fail = {0};
    struct tl_decode *d;
    *out = (struct said){0};
    require(tl_decode_new(&d, setup, image(), &sink, &fail) == 0);
    for (size_t at = 0, some; at < n; at += some) {
        const size_t left = (at < joint ? joint : n) - at;
        some = left < chunk ? left : chunk;
        require(at != joint || tl_decode_reconnect(d, 0) == 0);
        require(tl_decode_push(d, p + at, some) == 0);
    }
    require(tl_decode_finish(d) == 0);
    tl_decode_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_setup setup;
    struct said whole, parts;
    if (size < 3 || size > 65536)
        return 0;
    const size_t n = size - 2, joint = data[0] & JOINED ? n / 2 : n;
    setup_of(&setup, data[0] & (JOINED - 1));
    decode(&setup, data + 2, n, joint, size, &whole);
    decode(&setup, data + 2, n, joint, 1 + data[1], &parts);
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
