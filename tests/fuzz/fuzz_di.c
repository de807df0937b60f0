/* SPDX-License-Identifier: MIT */
/* DI datagrams, from bytes to packets, to events, to flow items and osd-sw's logs: any bytes, in
 * bounded memory, with the same result for any chunking. The first byte is the chunk size. */
#include "decode/ops.h"
#include "osd/osdsw.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    uint64_t lines;
    uint64_t items; /* sum over the streams, independent of their relative order */
    uint64_t n_items;
    uint64_t losses;
    uint64_t streams;
};

static uint64_t mix(uint64_t hash, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)p)[i]) * 1099511628211u;
    return hash;
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct digest *const d = context;
    if (stream->index != d->streams++)
        abort();
    return TL_OK;
}

static struct steps_streams steps; /* of the capture that is being decoded */

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    steps_demand_of(&steps, stream->index, items, n);
    struct digest *const d = context;
    struct tl_buf text = {0};
    if (stream->index >= d->streams || tl_item_text(&text, items, n) < 0)
        abort();
    tl_buf_fini(&text);
    for (size_t i = 0; i < n; i++) {
        const uint64_t words[] = {stream->index, items[i].kind,   items[i].flags, items[i].pc,
                                  items[i].sub,  items[i].offset, items[i].value};
        d->items += mix(0, words, sizeof words);
    }
    d->n_items += n;
    return TL_OK;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct digest *const d = context;
    d->lines = mix(d->lines, line, strlen(line) + 1);
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct digest *const d = context;
    d->losses = mix(d->losses, &loss->offset, sizeof loss->offset);
    d->losses = mix(d->losses, &loss->bytes, sizeof loss->bytes);
    return TL_OK;
}

static void decode(struct digest *d, const uint8_t *p, size_t n, size_t chunk)
{
    struct tl_setup setup;
    tl_setup_init(&setup);
    setup.container = TL_CONTAINER_DI;
    const struct tl_decode_sink sink = {
        .context = d, .stream = on_stream, .items = on_items, .packet = on_packet, .loss = on_loss};
    struct tl_decode *decode;
    *d = (struct digest){0};
    memset(&steps, 0, sizeof steps);
    if (tl_osd_ops.create(&decode, &setup, NULL, &sink, NULL) < 0)
        abort();
    for (size_t i = 0; i < n; i += chunk)
        if (tl_osd_ops.push(decode, p + i, n - i < chunk ? n - i : chunk) < 0)
            abort();
    if (tl_osd_ops.finish(decode) < 0)
        abort();
    tl_osd_ops.destroy(decode);
}

static void log_all(const uint8_t *p, size_t n)
{
    for (enum tl_osdsw_log log = TL_OSDSW_CTM; log <= TL_OSDSW_PRINT; log++) {
        struct tl_osdsw s;
        if (tl_osdsw_init(&s, log, NULL) < 0 || tl_osdsw_push(&s, p, n) < 0 ||
            tl_osdsw_finish(&s) < 0)
            abort();
        tl_osdsw_fini(&s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct digest whole, parts;
    if (size < 1)
        return 0;
    decode(&whole, data + 1, size - 1, size);
    decode(&parts, data + 1, size - 1, 1 + data[0] % 64);
    if (memcmp(&whole, &parts, sizeof whole))
        abort();
    log_all(data + 1, size - 1);
    return 0;
}
