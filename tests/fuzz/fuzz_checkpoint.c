/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: the bytes behind a head with their right checksum, and the states of builders in
 * them. Any bytes are refused, or give builders that take items and end.
 */
#include "base/crc32c.h"
#include "store/build.h"
#include "store/checkpoint.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char WHOSE[] = "fuzz";

static void require(bool condition)
{
    if (!condition)
        abort();
}

static int on_seal(void *context, struct tl_view *view)
{
    tl_view_put(view);
    return TL_OK;
}

static struct tl_build *builder(uint64_t sealed)
{
    const struct tl_build_options options = {.protocol = TL_PROTO_ITM,
                                             .shard_insns = 40,
                                             .chunk_markers = 16,
                                             .seal = on_seal,
                                             .sealed = sealed,
                                             .sealed_position = sealed * 40};
    struct tl_build *b;
    require(tl_build_new(&b, &options) == TL_OK);
    return b;
}

/* Software trace, gaps, modes and exceptions; so many. */
static int feed(struct tl_build *b, unsigned n)
{
    static const uint8_t kinds[] = {TL_ITEM_SOFTWARE,  TL_ITEM_MODE,     TL_ITEM_TIME,
                                    TL_ITEM_EXCEPTION, TL_ITEM_SOFTWARE, TL_ITEM_GAP,
                                    TL_ITEM_UNKNOWN};
    int r = TL_OK;
    for (unsigned i = 0; i < n && r >= 0; i++) {
        struct tl_item item = {.kind = kinds[i % sizeof kinds],
                               .flags = TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE,
                               .pc = i * 4,
                               .value = i,
                               .offset = i};
        if (item.kind == TL_ITEM_SOFTWARE) {
            item.name = "itm";
            item.data = kinds;
            item.n = 2;
        }
        r = tl_build_items(b, &item, 1);
    }
    return r;
}

/* What a checkpoint of one lane looks like. */
static void made(struct tl_buf *out)
{
    struct tl_checkpoint c = {.offset = 4096};
    struct tl_build *b = builder(0);
    require(feed(b, 100) == TL_OK);
    require(tl_grow(&c.lanes, &c.cap_lanes, 1, sizeof(*c.lanes)) == TL_OK);
    c.lanes[c.n_lanes++] = (struct tl_checkpoint_lane){.name = "itm", .shard = tl_build_shard(b)};
    struct tl_state state = {.out = &c.lanes[0].build};
    tl_build_state(b, &state);
    require(state.rc == TL_OK && tl_checkpoint_encode(&c, WHOSE, out) == TL_OK);
    tl_build_free(b);
    tl_checkpoint_fini(&c);
}

static void load(const struct tl_checkpoint_lane *lane)
{
    struct tl_build *b = builder(lane->shard < 1000 ? lane->shard + !lane->whole : 1);
    struct tl_state state = {.in = {lane->build.p, lane->build.n}};
    tl_build_state(b, &state);
    if (state.rc >= 0 && feed(b, 300) >= 0)
        (void)!tl_build_finish(b);
    tl_build_free(b);
}

/*
 * The first byte: how many of the following triples (where, two bytes; how) change a checkpoint
 * that is made here; 255: the rest is one itself, behind its head.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tl_buf whole;
    struct tl_buf bytes = {0};
    struct tl_checkpoint c;
    if (size < 4 || size > 65536)
        return 0;
    if (whole.n == 0)
        made(&whole);
    require(tl_buf_add(&bytes, whole.p, data[0] == 255 ? 12 : whole.n) == TL_OK);
    if (data[0] == 255)
        require(tl_buf_add(&bytes, data + 1, size - 1) == TL_OK);
    for (size_t i = 1; data[0] < 255 && i + 3 <= size && i < 1 + 3u * data[0]; i += 3)
        bytes.p[12 + tl_le16(data + i) % (bytes.n - 12)] ^= data[i + 2];
    tl_put_le32(bytes.p + 8, tl_crc32c(0, bytes.p + 12, bytes.n - 12));
    if (tl_checkpoint_decode(&c, WHOSE, (struct tl_bytes){bytes.p, bytes.n}) >= 0)
        for (size_t i = 0; i < c.n_lanes; i++)
            load(&c.lanes[i]);
    tl_checkpoint_fini(&c);
    tl_buf_fini(&bytes);
    return 0;
}
