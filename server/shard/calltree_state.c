/* SPDX-License-Identifier: MIT */
/*
 * Stores call trees as bytes. Times are left out where there are none, so that traces without
 * clocks pay nothing for them.
 */
#include "shard/calltree.h"

#include "shard/shard.h"
#include "shard/varint.h"
enum { UNTIMED = 1, TIMED = 2, PLAIN_MAX = 16 << 20 };

static bool has_times(const struct tl_calltree *t)
{
    for (size_t i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].time > 0)
            return true;
    return false;
}

static int put_all(const struct tl_calltree *t, struct tl_buf *out)
{
    const bool timed = has_times(t);
    const uint64_t head[] = {timed ? TIMED : UNTIMED, t->full, t->n_nodes};
    const uint64_t n_functions = t->n_functions;
    int r = tl_varint_add_all(out, head, 3);
    for (size_t i = 0; i < t->n_nodes && r >= 0; i++) {
        const struct tl_calltree_node *const node = &t->nodes[i];
        const uint64_t words[] = {i - node->parent, node->function, node->calls, node->self,
                                  node->time};
        r = tl_varint_add_all(out, words, timed ? 5 : 4);
    }
    if (r >= 0)
        r = tl_varint_add_all(out, &n_functions, 1);
    for (size_t i = 0; i < t->n_functions && r >= 0; i++) {
        const struct tl_calltree_function *const f = &t->functions[i];
        const uint64_t words[] = {f->function, f->calls, f->ended,  f->total,
                                  f->min,      f->max,   f->longest};
        r = tl_varint_add_all(out, words, f->ended > 0 ? 7 : 3);
    }
    return r;
}

int tl_calltree_encode(const struct tl_calltree *t, struct tl_packer *packer, struct tl_buf *out)
{
    struct tl_buf plain = {0};
    int r = put_all(t, &plain);
    if (r >= 0)
        r = tl_packer_checked(packer, (struct tl_bytes){plain.p, plain.n}, out);
    tl_buf_fini(&plain);
    return r;
}

static int get_nodes(struct tl_varint_reader *in, struct tl_calltree *t, bool timed)
{
    const uint64_t n = tl_varint_get(in);
    if (n > TL_CALLTREE_NODES || tl_grow(&t->nodes, &t->cap_nodes, n, sizeof *t->nodes) < 0)
        return n > TL_CALLTREE_NODES ? TL_NOTFOUND : TL_NOMEM;
    for (; t->n_nodes < n && !in->bad; t->n_nodes++) {
        const uint64_t back = tl_varint_get(in);
        if (t->n_nodes == 0 ? back != 0 : back == 0 || back > t->n_nodes)
            return TL_NOTFOUND;
        struct tl_calltree_node *const node = &t->nodes[t->n_nodes];
        node->parent = (uint32_t)(t->n_nodes - back);
        node->function = (uint32_t)tl_varint_get(in);
        node->calls = tl_varint_get(in);
        node->self = tl_varint_get(in);
        node->time = timed ? tl_varint_get(in) : 0;
    }
    return in->bad ? TL_NOTFOUND : TL_OK;
}

static int get_functions(struct tl_varint_reader *in, struct tl_calltree *t)
{
    const uint64_t n = tl_varint_get(in);
    int r = TL_OK;
    for (uint64_t i = 0; i < n && !in->bad && r >= 0; i++) {
        r = tl_grow(&t->functions, &t->cap_functions, t->n_functions + 1, sizeof *t->functions);
        if (r < 0)
            break;
        struct tl_calltree_function *const f = &t->functions[t->n_functions++];
        *f = (struct tl_calltree_function){.min = UINT64_MAX};
        f->function = (uint32_t)tl_varint_get(in);
        f->calls = tl_varint_get(in);
        f->ended = tl_varint_get(in);
        if (f->ended == 0)
            continue;
        f->total = tl_varint_get(in);
        f->min = tl_varint_get(in);
        f->max = tl_varint_get(in);
        f->longest = tl_varint_get(in);
    }
    return r >= 0 && in->bad ? TL_NOTFOUND : r;
}

int tl_calltree_decode(struct tl_calltree *t, struct tl_bytes part)
{
    struct tl_buf plain = {0};
    int r = tl_unpack_checked(part, PLAIN_MAX, &plain);
    struct tl_varint_reader in = {.p = plain.p, .end = plain.p + plain.n};
    const uint64_t version = r >= 0 ? tl_varint_get(&in) : 0;
    if (r >= 0 && version != UNTIMED && version != TIMED)
        r = TL_UNSUPPORTED;
    if (r >= 0) {
        t->full = tl_varint_get(&in) != 0;
        r = get_nodes(&in, t, version == TIMED);
    }
    if (r >= 0)
        r = get_functions(&in, t);
    tl_buf_fini(&plain);
    return r;
}
