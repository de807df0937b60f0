/* SPDX-License-Identifier: MIT */
/*
 * Passes each call on to the container's decoder, and does itself what is the same for all: arrival
 * times, limits on reading again, the check that a saved state was read to its end. So containers
 * cannot differ in these.
 */
#include "decode/decode.h"

#include "decode/kept.h"
#include "decode/registry.h"

int tl_decode_new(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    *out = NULL;
    const size_t i = setup->container;
    const struct tl_decode_ops *const ops = i < TL_CONTAINERS ? tl_containers[i] : NULL;
    if (!ops)
        return tl_fail_set(fail, TL_UNSUPPORTED, "format '%.40s' cannot be decoded yet",
                           setup->format);
    return ops->create(out, setup, image, sink, fail);
}

int tl_decode_set_crew(struct tl_decode *decode, struct tl_crew *crew)
{
    decode->share.crew = crew;
    if (crew)
        return TL_OK;
    tl_kept_rooms_free(decode->share.rooms);
    decode->share.rooms = NULL;
    return tl_decode_flush(decode);
}

int tl_decode_flush(struct tl_decode *decode)
{
    return decode->ops->flush ? decode->ops->flush(decode) : TL_OK;
}

void tl_decode_allow_paths(struct tl_decode *decode)
{
    decode->paths = true;
}

void tl_decode_set_code(struct tl_decode *decode, tl_block_code *code)
{
    decode->code = code;
}

void tl_decode_set_reader(struct tl_decode *decode, tl_decode_read *read, void *context)
{
    decode->read = read;
    decode->read_context = context;
}

int tl_decode_reread(const struct tl_decode *decode, uint64_t offset, uint64_t n,
                     struct tl_buf *out)
{
    /* Read in pieces: a forged length must not cause a large allocation. */
    enum { PIECE = 1 << 20 };
    int rc = decode->read ? TL_OK : TL_UNSUPPORTED;
    while (rc >= 0 && n > 0) {
        const size_t some = n < PIECE ? (size_t)n : PIECE;
        rc = tl_buf_reserve(out, some);
        if (rc >= 0)
            rc = decode->read(decode->read_context, offset, out->p + out->n, some);
        out->n += rc >= 0 ? some : 0;
        offset += some;
        n -= some;
    }
    return rc == TL_EOF ? TL_BAD : rc; /* the capture has no such bytes */
}

void tl_decode_free(struct tl_decode *decode)
{
    if (!decode)
        return;
    tl_kept_rooms_free(decode->share.rooms);
    decode->ops->destroy(decode);
}

void tl_decode_set_arrival(struct tl_decode *decode, uint64_t ns)
{
    if (ns > decode->arrival)
        decode->arrival = ns;
}

int tl_decode_push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    return n ? decode->ops->push(decode, p, n) : TL_OK;
}

int tl_decode_finish(struct tl_decode *decode)
{
    return decode->ops->finish(decode);
}

int tl_decode_skip(struct tl_decode *decode, uint64_t n)
{
    if (!decode->ops->lost)
        return TL_UNSUPPORTED;
    return n ? decode->ops->lost(decode, n) : TL_OK;
}

int tl_decode_save(struct tl_decode *decode, struct tl_buf *out)
{
    struct tl_state state = {.out = out};
    if (!decode->ops->state)
        return TL_UNSUPPORTED;
    tl_state_u64(&state, &decode->arrival);
    decode->ops->state(decode, &state);
    return state.rc;
}

int tl_decode_load(struct tl_decode *decode, struct tl_bytes bytes)
{
    struct tl_state state = {.in = bytes};
    if (!decode->ops->state)
        return TL_UNSUPPORTED;
    tl_state_u64(&state, &decode->arrival);
    decode->ops->state(decode, &state);
    tl_state_check(&state, state.in.n == 0);
    return state.rc;
}

size_t tl_decode_bytes(struct tl_decode *decode)
{
    size_t n = decode->ops->bytes ? decode->ops->bytes(decode) : 0;
    for (const struct tl_kept_room *room = decode->share.rooms; room; room = room->next)
        n += 2 * room->half;
    return n;
}
