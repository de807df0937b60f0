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
#include <stdlib.h>
#include <string.h>

static int keep_losses(struct tl_decode **decode, const struct tl_setup *setup,
                       struct tl_fail *fail)
{
    const size_t n = setup->n_losses;
    struct tl_setup_loss *const losses = n ? malloc(n * sizeof *losses) : NULL;
    if (n && !losses) {
        tl_decode_free(*decode);
        *decode = NULL;
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    if (n)
        memcpy(losses, setup->losses, n * sizeof *losses);
    (*decode)->losses = losses;
    (*decode)->n_losses = n;
    return TL_OK;
}

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
    if (setup->n_losses > 0 && !ops->lost)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "format '%.40s' cannot be taken up again behind lost= of the setup",
                           setup->format);
    const int rc = ops->create(out, setup, image, sink, fail);
    return rc < 0 ? rc : keep_losses(out, setup, fail);
}

static void free_rooms(struct tl_decode *decode)
{
    tl_kept_rooms_free(decode->share.rooms);
    decode->share.rooms = NULL;
    decode->share.room_bytes = 0;
}

int tl_decode_set_crew(struct tl_decode *decode, struct tl_crew *crew)
{
    decode->share.crew = crew;
    if (crew)
        return TL_OK;
    free_rooms(decode);
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
    free_rooms(decode);
    free(decode->losses);
    decode->ops->destroy(decode);
}

void tl_decode_set_arrival(struct tl_decode *decode, uint64_t ns)
{
    if (ns > decode->arrival)
        decode->arrival = ns;
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
    decode->at += n;
    return n ? decode->ops->lost(decode, &hole) : TL_OK;
}

static int lose_connection(struct tl_decode *decode, const char *when)
{
    char note[sizeof TL_NOTE_CONNECTION_LOST + TL_LOSS_WHEN];
    if (!decode->ops->lost)
        return TL_UNSUPPORTED;
    snprintf(note, sizeof note, TL_NOTE_CONNECTION_LOST "%s", when);
    const struct tl_decode_hole hole = {0, TL_LOSS_CONNECTION, note};
    return decode->ops->lost(decode, &hole);
}

int tl_decode_reconnect(struct tl_decode *decode, uint64_t back)
{
    char when[TL_LOSS_WHEN];
    tl_loss_when(when, decode->arrival, back);
    return lose_connection(decode, when);
}

/* The first place at or behind the next byte where the setup says that the connection was lost. */
static const struct tl_setup_loss *next_loss(const struct tl_decode *decode)
{
    for (size_t i = 0; i < decode->n_losses; i++)
        if (decode->losses[i].offset >= decode->at)
            return &decode->losses[i];
    return NULL;
}

int tl_decode_push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    int rc = TL_OK;
    while (rc >= 0 && n > 0) {
        const struct tl_setup_loss *loss = next_loss(decode);
        if (loss && loss->offset == decode->at) {
            rc = lose_connection(decode, loss->when);
            loss = loss + 1 < decode->losses + decode->n_losses ? loss + 1 : NULL;
        }
        const size_t some =
            loss && loss->offset - decode->at < n ? (size_t)(loss->offset - decode->at) : n;
        if (rc >= 0)
            rc = decode->ops->push(decode, p, some);
        decode->at += some;
        p += some;
        n -= some;
    }
    return rc;
}

int tl_decode_save(struct tl_decode *decode, struct tl_buf *out)
{
    struct tl_state state = {.out = out};
    if (!decode->ops->state)
        return TL_UNSUPPORTED;
    tl_state_u64(&state, &decode->arrival);
    tl_state_u64(&state, &decode->at);
    decode->ops->state(decode, &state);
    return state.rc;
}

int tl_decode_load(struct tl_decode *decode, struct tl_bytes bytes)
{
    struct tl_state state = {.in = bytes};
    if (!decode->ops->state)
        return TL_UNSUPPORTED;
    tl_state_u64(&state, &decode->arrival);
    tl_state_u64(&state, &decode->at);
    decode->ops->state(decode, &state);
    tl_state_check(&state, state.in.n == 0);
    return state.rc;
}

size_t tl_decode_bytes(struct tl_decode *decode)
{
    return decode->share.room_bytes + (decode->ops->bytes ? decode->ops->bytes(decode) : 0);
}
