/* SPDX-License-Identifier: MIT */
/*
 * perf.data from bytes: for any bytes, decoding terminates and gives each stream the same result
 * for any chunking, and the importer creates a setup from them. The first byte chooses the chunk
 * size, and whether threads have streams.
 */
#include "decode/decode.h"
#include "import/jitdump.h"
#include "import/perf.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAMS = 64 };

struct result {
    struct tl_buf text[STREAMS]; /* by the stream's number */
    struct tl_buf losses;
    struct steps_streams steps;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct result *const r = context;
    steps_demand_of(&r->steps, stream->index, items, n);
    return tl_item_text(&r->text[stream->index % STREAMS], items, n);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct result *const r = context;
    require(loss->reason && loss->reason[0]);
    return tl_buf_printf(&r->losses, "%s %llu %llu\n", loss->reason,
                         (unsigned long long)loss->offset, (unsigned long long)loss->bytes);
}

/* An image that changes over time, so that times matter. */
static struct tl_image *make_image(void)
{
    static const uint8_t code[64];
    static const struct tl_image_span spans[] = {{0, 1000}, {1000, 0}};
    struct tl_image *image;
    require(tl_image_new(&image) == TL_OK);
    for (size_t i = 0; i < 2; i++) {
        tl_image_set_period(image, spans[i]);
        require(tl_image_add_bytes(image, 0x1000, (struct tl_bytes){code, 32 << i}, TL_SPACE_ANY,
                                   NULL, NULL) == TL_OK);
    }
    require(tl_image_freeze(image) == TL_OK);
    return image;
}

static void decode(struct result *r, const uint8_t *p, size_t n, size_t chunk, const char *format)
{
    const struct tl_decode_sink sink = {.context = r, .items = on_items, .loss = on_loss};
    struct tl_setup setup;
    struct tl_decode *d;
    struct tl_image *const image = make_image();
    tl_setup_init(&setup);
    require(tl_setup_format(&setup, format, NULL) == TL_OK);
    require(tl_decode_new(&d, &setup, image, &sink, NULL) == TL_OK);
    for (size_t at = 0; at < n; at += chunk)
        require(tl_decode_push(d, p + at, n - at < chunk ? n - at : chunk) == TL_OK);
    require(tl_decode_finish(d) == TL_OK);
    tl_decode_free(d);
    tl_image_free(image);
    tl_setup_fini(&setup);
}

static void import(const uint8_t *p, size_t n)
{
    const struct tl_code_places places = {.symfs = "/dev/null", .buildid_dir = "/dev/null"};
    struct tl_perf_import *im;
    struct tl_setup setup;
    tl_setup_init(&setup);
    require(tl_perf_import_new(&im, &places, NULL, NULL) == TL_OK);
    require(tl_perf_import_push(im, (struct tl_bytes){p, n}) == TL_OK);
    require(tl_perf_import_finish(im) == TL_OK);
    require(tl_perf_import_setup(im, &setup) == TL_OK);
    tl_perf_import_free(im);
    tl_setup_fini(&setup);
}

static int on_jitted(void *context, const struct tl_jit_code *code)
{
    const struct tl_bytes *const in = context;
    require(code->offset <= in->n && code->length <= in->n - code->offset);
    require(strlen(code->name) < in->n);
    return TL_OK;
}

/* The same bytes as a dump of code generated at run time: everything reported lies inside them. */
static void jitted(const uint8_t *p, size_t n)
{
    struct tl_bytes in = {p, n};
    uint64_t at = 0;
    bool in_ticks = false;
    const int rc = tl_jitdump_read(in, &at, &in_ticks, on_jitted, &in);
    require((rc == TL_OK || rc == TL_BAD) && at <= n);
}

static bool same(const struct tl_buf *a, const struct tl_buf *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->p, b->p, a->n));
}

static void result_fini(struct result *r)
{
    for (size_t i = 0; i < STREAMS; i++)
        tl_buf_fini(&r->text[i]);
    tl_buf_fini(&r->losses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct result whole = {0}, parts = {0};
    const char *const format = data[0] & 64 ? "perf,threads=yes,events=yes" : "perf";
    decode(&whole, data + 1, size - 1, size, format);
    decode(&parts, data + 1, size - 1, 1 + data[0] % 64, format);
    for (size_t i = 0; i < STREAMS; i++)
        require(same(&whole.text[i], &parts.text[i]));
    require(same(&whole.losses, &parts.losses));
    import(data + 1, size - 1);
    jitted(data + 1, size - 1);
    result_fini(&whole);
    result_fini(&parts);
    return 0;
}
