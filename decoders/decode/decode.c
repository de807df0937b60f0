/* SPDX-License-Identifier: MIT */
/*
 * Passes each call on to the container's decoder, and does itself what is the same for all: arrival
 * times, limits on reading again, the check that a saved state was read to its end. So containers
 * cannot differ in these.
 */
#include "decode/decode.h"

#include "decode/kept.h"
#include "decode/registry.h"

#include <stdio.h>
#include <time.h>

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
    const struct tl_decode_hole hole = {n, TL_LOSS_STORED, NULL};
    return n ? decode->ops->lost(decode, &hole) : TL_OK;
}

/* "connection-lost 2026-11-30T13:05:01.123Z 1.204 s": when the last byte before it had arrived, and
 * how long after that the next one. Returns NULL if that is unknown. */
static const char *tell_when(char out[static 80], uint64_t last, uint64_t back)
{
    const time_t seconds = (time_t)(last / 1000000000);
    const uint64_t ms = back / 1000000 - last / 1000000;
    struct tm utc;
    char when[32];
    if (last == 0 || back < last || !gmtime_r(&seconds, &utc) ||
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        return NULL;
    snprintf(out, 80, TL_NOTE_CONNECTION_LOST "%s.%03uZ %llu.%03u s", when,
             (unsigned)(last / 1000000 % 1000), (unsigned long long)(ms / 1000),
             (unsigned)(ms % 1000));
    return out;
}

int tl_decode_reconnect(struct tl_decode *decode, uint64_t back)
{
    char note[80];
    if (!decode->ops->lost)
        return TL_UNSUPPORTED;
    const char *const when = tell_when(note, decode->arrival, back);
    const struct tl_decode_hole hole = {0, TL_LOSS_CONNECTION,
                                        when ? when : TL_NOTE_CONNECTION_LOST "-"};
    return decode->ops->lost(decode, &hole);
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
