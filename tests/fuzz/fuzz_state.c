/* SPDX-License-Identifier: MIT */
/*
 * States of a decode: the first byte chooses the container (from 128 on DI, from 192 on STF), the
 * second the number of state bytes to be changed, then for each its position (two bytes) and the
 * change; the rest is a capture. Its first half is decoded and the state saved. If it is unchanged,
 * another decode continues from it without any difference; otherwise it is refused or gives some
 * result.
 */
#include "fuzz/coresight.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void choose(struct tl_setup *setup, uint8_t choice)
{
    static const char modules[] = "[source di.0.1]\nprotocol=osd-ctm\n";
    struct tl_fail fail = {0};
    if (choice < 128) {
        setup_of(setup, choice);
        return;
    }
    tl_setup_init(setup);
    if (choice >= 192) {
        require(tl_setup_format(setup, "stf", &fail) == 0);
        return;
    }
    require(tl_setup_format(setup, "di", &fail) == 0);
    require(choice % 2 || tl_setup_parse(setup, modules, sizeof modules - 1, &fail) == 0);
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

/* Read the capture again. */
static int read_again(void *context, uint64_t offset, uint8_t *out, size_t n)
{
    const struct tl_bytes *const capture = context;
    if (offset > capture->n || n > capture->n - offset)
        return TL_BAD;
    memcpy(out, capture->p + offset, n);
    return TL_OK;
}

static struct tl_decode *begin(const struct tl_setup *setup, struct tl_buf *text)
{
    const struct tl_decode_sink sink = {.context = text, .items = on_items};
    struct tl_fail fail = {0};
    struct tl_decode *d;
    require(tl_decode_new(&d, setup, image(), &sink, &fail) == 0);
    tl_decode_allow_paths(d);
    return d;
}

/* Decode half of the capture; `saved` is the state after it. Returns the result of
 * tl_decode_save. */
static int save_half(const struct tl_setup *setup, const uint8_t *p, size_t n, struct tl_buf *text,
                     struct tl_buf *saved)
{
    struct tl_decode *d = begin(setup, text);
    require(tl_decode_push(d, p, n / 2) == 0);
    const int r = tl_decode_save(d, saved);
    require(r == TL_OK || r == TL_AGAIN);
    tl_buf_reset(text); /* only what follows is compared */
    require(tl_decode_push(d, p + n / 2, n - n / 2) == 0);
    require(tl_decode_finish(d) == 0);
    tl_decode_free(d);
    return r;
}

/* `changed`: some bytes of the state were changed. */
static void go_on(const struct tl_setup *setup, const uint8_t *p, size_t n, struct tl_bytes saved,
                  bool changed, const struct tl_buf *expected)
{
    struct tl_buf text = {0};
    struct tl_bytes capture = {p, n};
    struct tl_decode *d = begin(setup, &text);
    tl_decode_set_reader(d, read_again, &capture);
    const int r = tl_decode_load(d, saved);
    require(r == TL_OK || (changed && (r == TL_BAD || r == TL_UNSUPPORTED)));
    if (r == TL_OK) {
        require(tl_decode_push(d, p + n / 2, n - n / 2) == 0);
        require(tl_decode_finish(d) == 0);
    }
    if (!changed) {
        require(text.n == expected->n);
        require(text.n == 0 || !memcmp(text.p, expected->p, text.n));
    }
    tl_decode_free(d);
    tl_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_setup setup;
    struct tl_buf text = {0}, saved = {0};
    if (size < 4 || size > 65536)
        return 0;
    const uint8_t *const changes = data + 2;
    const size_t n_changes = data[1] % 16;
    if (size < 2 + 3 * n_changes + 2)
        return 0;
    const uint8_t *const p = changes + 3 * n_changes;
    const size_t n = size - 2 - 3 * n_changes;
    choose(&setup, data[0]);
    if (save_half(&setup, p, n, &text, &saved) == TL_OK) {
        for (size_t i = 0; i < n_changes; i++)
            saved.p[tl_le16(changes + 3 * i) % saved.n] ^= changes[3 * i + 2];
        go_on(&setup, p, n, (struct tl_bytes){saved.p, saved.n}, n_changes > 0, &text);
    }
    tl_buf_fini(&saved);
    tl_buf_fini(&text);
    tl_setup_fini(&setup);
    return 0;
}
