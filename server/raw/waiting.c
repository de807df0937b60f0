/* SPDX-License-Identifier: MIT */
/*
 * Queues received bytes by reference, or copied together if they are few. A rig may send some bytes
 * at a time, and each would otherwise hold the whole block that it arrived in.
 */
#include "raw/waiting.h"

#include "base/crc32c.h"

#include <stdlib.h>

#define ROOM  (16u << 10) /* of a copy, for more bytes: rigs may send a few at a time */
#define SMALL (4u << 10)  /* fewer bytes are copied: their block takes much more memory */

struct tl_waiting_piece {
    struct tl_waiting_piece *next;
    struct tl_bytes bytes;
    uint32_t crc;
    void *block; /* where the bytes are, NULL: in `copy` */
    size_t room; /* of `copy` */
    uint8_t copy[];
};

static void add_piece(struct tl_waiting *waiting, struct tl_waiting_piece *piece)
{
    if (waiting->last)
        waiting->last->next = piece;
    else
        waiting->first = piece;
    waiting->last = piece;
    waiting->n += piece->bytes.n;
}

static int add_copy(struct tl_waiting *waiting, struct tl_bytes bytes)
{
    struct tl_waiting_piece *last = waiting->last;
    if (!last || last->room - last->bytes.n < bytes.n) {
        const size_t room = bytes.n > ROOM ? bytes.n : ROOM;
        struct tl_waiting_piece *const piece = malloc(sizeof *piece + room);
        if (!piece)
            return TL_NOMEM;
        *piece = (struct tl_waiting_piece){.bytes.p = piece->copy, .room = room};
        add_piece(waiting, piece);
        last = piece;
    }
    memcpy(last->copy + last->bytes.n, bytes.p, bytes.n);
    last->crc = tl_crc32c(last->crc, bytes.p, bytes.n);
    last->bytes.n += bytes.n;
    waiting->n += bytes.n;
    return TL_OK;
}

int tl_waiting_add(struct tl_waiting *waiting, struct tl_given *given, size_t skip)
{
    const struct tl_bytes bytes = {given->bytes.p + skip, given->bytes.n - skip};
    if (!given->block || bytes.n < SMALL)
        return add_copy(waiting, bytes);
    struct tl_waiting_piece *const piece = malloc(sizeof *piece);
    if (!piece)
        return TL_NOMEM;
    *piece = (struct tl_waiting_piece){
        .bytes = bytes,
        .crc = skip ? tl_crc32c(0, bytes.p, bytes.n) : given->crc32c,
        .block = given->block,
        .room = bytes.n,
    };
    given->block = NULL;
    add_piece(waiting, piece);
    return TL_OK;
}

void tl_waiting_free(struct tl_waiting *waiting)
{
    for (struct tl_waiting_piece *p = waiting->first, *next; p; p = next) {
        next = p->next;
        free(p->block);
        free(p);
    }
    *waiting = (struct tl_waiting){0};
}

size_t tl_waiting_next(struct tl_waiting_walk *walk, size_t most,
                       struct tl_bytes parts[static TL_WAITING_PARTS], size_t *n_parts,
                       uint32_t *crc)
{
    size_t taken = 0;
    *n_parts = 0;
    *crc = 0;
    while (walk->piece && taken < most && *n_parts < TL_WAITING_PARTS) {
        const struct tl_waiting_piece *const piece = walk->piece;
        const size_t left = piece->bytes.n - walk->at;
        const bool whole = left == piece->bytes.n && left <= most - taken;
        if (taken > 0 && !whole)
            break; /* of whole pieces the checksums are known */
        const size_t n = left < most ? left : most;
        const uint8_t *const p = piece->bytes.p + walk->at;
        parts[(*n_parts)++] = (struct tl_bytes){p, n};
        *crc = tl_crc32c_join(*crc, whole ? piece->crc : tl_crc32c(0, p, n), n);
        taken += n;
        walk->at += n;
        if (walk->at == piece->bytes.n)
            *walk = (struct tl_waiting_walk){piece->next, 0};
    }
    return taken;
}
