/* SPDX-License-Identifier: MIT */
/*
 * Keeps in one object what different questions read, each without the rest. A table of calls need
 * not be unpacked for a flame graph, nor the other way round.
 */
#include "shard/shardcalls.h"

#include "shard/shard.h"

#include <string.h>

#define MAGIC TL_CALLS_FORM
#define FIVE  "TLCALLS5" /* older ones, of three and two parts */
#define FOUR  "TLCALLS4"
#define THREE "TLCALLS3"
#define TWO   "TLCALLS2"
enum { NAME = 8, HEAD = NAME + 4 * TL_CALLS_PARTS, PLAIN_MAX = 64 << 20 };

void tl_shard_calls_fini(struct tl_shard_calls *c)
{
    tl_calltree_fini(&c->tree);
    tl_call_index_fini(&c->index);
    tl_timed_rows_fini(&c->rows);
    tl_buf_fini(&c->index_bytes);
}

static int add_part(const struct tl_shard_calls *c, enum tl_calls_part part,
                    struct tl_packer *packer, struct tl_buf *out)
{
    struct tl_buf plain = {0};
    if (part == TL_CALLS_TREE)
        return tl_calltree_encode(&c->tree, packer, out);
    if (!(part == TL_CALLS_INDEX ? c->has_index : c->has_rows))
        return TL_OK;
    int r = part == TL_CALLS_INDEX ? tl_call_index_encode(&c->index, &plain)
                                   : tl_timed_rows_encode(&c->rows, &plain);
    if (r >= 0)
        r = tl_packer_checked(packer, (struct tl_bytes){plain.p, plain.n}, out);
    tl_buf_fini(&plain);
    return r;
}

int tl_shard_calls_encode(const struct tl_shard_calls *c, struct tl_packer *packer,
                          struct tl_buf *out)
{
    const size_t begin = out->n;
    static const uint8_t head[HEAD] = MAGIC;
    int r = tl_buf_add(out, head, HEAD);
    for (unsigned part = 0; part < TL_CALLS_PARTS && r >= 0; part++) {
        const size_t before = out->n;
        r = add_part(c, (enum tl_calls_part)part, packer, out);
        if (r >= 0)
            tl_put_le32(out->p + begin + NAME + 4 * part, (uint32_t)(out->n - before));
    }
    return r;
}

static bool is_a(struct tl_bytes object, const char *name, size_t head)
{
    return object.n >= head && memcmp(object.p, name, NAME) == 0;
}

/* Number of parts that an object's head tells of; 0: it has no head. */
static unsigned parts_of(struct tl_bytes object)
{
    if (is_a(object, MAGIC, HEAD) || is_a(object, FIVE, HEAD) || is_a(object, FOUR, HEAD) ||
        is_a(object, THREE, HEAD))
        return TL_CALLS_PARTS;
    return is_a(object, TWO, NAME + 2 * 4) ? 2 : 0;
}

bool tl_shard_calls_is_whole(struct tl_bytes head)
{
    _Static_assert(TL_CALLS_HEAD == HEAD, "the head of an object");
    return is_a(head, MAGIC, HEAD) && tl_le32(head.p + NAME + 4 * TL_CALLS_INDEX) > 0;
}

/* A part of an object, borrowed; n == 0: it is not there. TL_NOTFOUND: the object is damaged. */
static int calls_part(struct tl_bytes object, enum tl_calls_part part, struct tl_bytes *out)
{
    const unsigned parts = parts_of(object);
    *out = (struct tl_bytes){0};
    if (parts == 0 && part == TL_CALLS_TREE)
        *out = object;
    if (parts == 0 || (part != TL_CALLS_TREE && !is_a(object, MAGIC, HEAD)))
        return TL_OK;
    uint64_t at = NAME + 4 * (uint64_t)parts;
    for (unsigned i = 0; i < (unsigned)part; i++)
        at += tl_le32(object.p + NAME + 4 * i);
    const uint32_t n = tl_le32(object.p + NAME + 4 * (unsigned)part);
    if (at > object.n || n > object.n - at)
        return TL_NOTFOUND;
    *out = (struct tl_bytes){object.p + at, n};
    return TL_OK;
}

/* Unpack a part that may be missing: then 0, else 1. */
static int unpack(struct tl_bytes object, enum tl_calls_part part, struct tl_buf *plain)
{
    struct tl_bytes packed;
    int r = calls_part(object, part, &packed);
    if (r >= 0 && packed.n > 0)
        r = tl_unpack_checked(packed, PLAIN_MAX, plain);
    return r < 0 ? r : packed.n > 0;
}

int tl_shard_calls_rows(struct tl_timed_rows *rows, struct tl_bytes object)
{
    struct tl_buf plain = {0};
    int r = unpack(object, TL_CALLS_ROWS, &plain);
    if (r > 0) {
        const int decoded = tl_timed_rows_decode(rows, (struct tl_bytes){plain.p, plain.n});
        r = decoded < 0 ? decoded : r;
    }
    tl_buf_fini(&plain);
    return r;
}

static int decode_index(struct tl_call_index *index, struct tl_bytes object)
{
    struct tl_buf plain = {0};
    int r = unpack(object, TL_CALLS_INDEX, &plain);
    if (r > 0) {
        const int decoded = tl_call_index_decode(index, (struct tl_bytes){plain.p, plain.n});
        r = decoded < 0 ? decoded : r;
    }
    tl_buf_fini(&plain);
    return r;
}

int tl_shard_calls_decode(struct tl_calltree *tree, struct tl_call_index *index,
                          struct tl_bytes object)
{
    struct tl_bytes part;
    int r = tree ? calls_part(object, TL_CALLS_TREE, &part) : TL_OK;
    if (r >= 0 && tree)
        r = tl_calltree_decode(tree, part);
    if (r >= 0)
        r = calls_part(object, TL_CALLS_INDEX, &part);
    if (r >= 0 && index)
        return decode_index(index, object);
    return r < 0 ? r : part.n > 0;
}

int tl_shard_calls_unpack(struct tl_shard_calls *calls, struct tl_bytes object)
{
    struct tl_buf *const plain = &calls->index_bytes;
    int r = tl_shard_calls_decode(&calls->tree, NULL, object);
    if (r > 0)
        r = unpack(object, TL_CALLS_INDEX, plain);
    if (r > 0)
        tl_call_index_extent((struct tl_bytes){plain->p, plain->n}, &calls->index.extent);
    return r;
}
