/* SPDX-License-Identifier: MIT */
/* Checkpoints: arbitrary bytes after a header with a correct checksum, and the builder states in
 * them. Any bytes are refused, or give builders that accept items and finish. */
#include "base/crc32c.h"
#include "builder/build.h"
#include "store/checkpoint.h"
#include "unit/made_items.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char IDENTITY[] = "fuzz";

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* A software trace, and a core. */
static const struct lane {
    const char *name;
    struct tl_build_options options;
} lanes[] = {
    {"itm", {.protocol = TL_PROTO_ITM, .shard_insns = 40, .chunk_markers = 16}},
    {"core", {.protocol = TL_PROTO_ETM4, .shard_insns = 900, .chunk_markers = 300}},
};

enum { LANES = sizeof lanes / sizeof *lanes };

struct sealed {
    uint64_t shards, position;
};

static int count_sealed(void *context, struct tl_view *view)
{
    struct sealed *s = context;
    s->shards++;
    s->position = view->index.row.first + view->index.row.n;
    tl_view_put(view);
    return TL_OK;
}

static struct tl_build *builder(const struct lane *lane, const struct sealed *there,
                                struct sealed *more)
{
    struct tl_build_options options = lane->options;
    options.seal = count_sealed;
    options.context = more;
    options.sealed = there->shards;
    options.sealed_position = there->position;
    struct tl_build *b;
    require(tl_build_new(&b, &options) == TL_OK);
    return b;
}

/* Feed `n` items of software trace, gaps, modes and exceptions. */
static int feed_software(struct tl_build *b, size_t n)
{
    static const uint8_t kinds[] = {TL_ITEM_SOFTWARE,  TL_ITEM_MODE,     TL_ITEM_TIME,
                                    TL_ITEM_EXCEPTION, TL_ITEM_SOFTWARE, TL_ITEM_GAP,
                                    TL_ITEM_UNKNOWN};
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++) {
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

/* Feed items [from, to) of the lane. */
static int feed(struct tl_build *b, const struct lane *lane, size_t from, size_t to)
{
    static struct made made;
    if (lane->options.protocol == TL_PROTO_ITM)
        return feed_software(b, to - from);
    if (made.n == 0)
        made_stream(&made, 7, 400, 4);
    return tl_build_items(b, made.items + from, to - from);
}

/* Create a checkpoint, and what is sealed by then and a while later, with unmodified states of the
 * builders. */
static void made_checkpoint(struct tl_buf *out, struct sealed sealed[static LANES][2])
{
    struct tl_checkpoint c = {.offset = 4096};
    static const struct sealed nothing;
    require(tl_grow(&c.lanes, &c.cap_lanes, LANES, sizeof(*c.lanes)) == TL_OK);
    for (size_t i = 0; i < LANES; i++) {
        struct tl_build *b = builder(&lanes[i], &nothing, &sealed[i][0]);
        struct tl_checkpoint_lane *const saved = &c.lanes[c.n_lanes++];
        *saved = (struct tl_checkpoint_lane){.lost_bytes = i};
        snprintf(saved->name, sizeof saved->name, "%s", lanes[i].name);
        struct tl_state state = {.out = &saved->build};
        require(feed(b, &lanes[i], 0, 150) == TL_OK);
        tl_build_state(b, &state);
        require(state.rc == TL_OK);
        tl_build_free(b);
        b = builder(&lanes[i], &nothing, &sealed[i][1]);
        require(feed(b, &lanes[i], 0, 300) == TL_OK);
        tl_build_free(b);
    }
    require(tl_checkpoint_encode(&c, IDENTITY, out) == TL_OK);
    tl_checkpoint_fini(&c);
}

static void load(const struct lane *lane, const struct tl_buf *build, const struct sealed *there)
{
    struct sealed more = {0};
    struct tl_build *b = builder(lane, there, &more);
    struct tl_view *view = NULL;
    struct tl_state state = {.in = {build->p, build->n}};
    tl_build_state(b, &state);
    if (state.rc >= 0 && tl_build_view(b, &view) >= 0 && feed(b, lane, 150, 400) >= 0)
        (void)!tl_build_finish(b);
    tl_view_put(view);
    tl_build_free(b);
}

/* The first byte is the number of triples that follow (position, two bytes; change) and modify a
 * checkpoint created here; 255: the rest is itself a checkpoint, without its head. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tl_buf whole;
    static struct sealed sealed[LANES][2];
    struct tl_buf bytes = {0};
    struct tl_checkpoint c;
    if (size < 4 || size > 65536)
        return 0;
    if (whole.n == 0)
        made_checkpoint(&whole, sealed);
    require(tl_buf_add(&bytes, whole.p, data[0] == 255 ? 12 : whole.n) == TL_OK);
    if (data[0] == 255)
        require(tl_buf_add(&bytes, data + 1, size - 1) == TL_OK);
    for (size_t i = 1; data[0] < 255 && i + 3 <= size && i < 1 + 3u * data[0]; i += 3)
        bytes.p[12 + tl_le16(data + i) % (bytes.n - 12)] ^= data[i + 2];
    tl_put_le32(bytes.p + 8, tl_crc32c(0, bytes.p + 12, bytes.n - 12));
    if (tl_checkpoint_decode(&c, IDENTITY, (struct tl_bytes){bytes.p, bytes.n}) >= 0)
        for (size_t i = 0; i < c.n_lanes; i++)
            load(&lanes[i % LANES], &c.lanes[i].build, &sealed[i % LANES][size % 2]);
    tl_checkpoint_fini(&c);
    tl_buf_fini(&bytes);
    return 0;
}
