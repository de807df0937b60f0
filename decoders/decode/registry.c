/* SPDX-License-Identifier: MIT */
/* The only list of what can be decoded. */
#include "decode/registry.h"

#include "decode/ops.h"
#include "flow/batch.h"

static const struct tl_decode_ops *const containers[] = {
    [TL_CONTAINER_TPIU] = &tl_coresight_ops,
    [TL_CONTAINER_SINGLE] = &tl_coresight_ops,
    [TL_CONTAINER_PT] = &tl_coresight_ops,
    [TL_CONTAINER_DI] = &tl_osd_ops,
    [TL_CONTAINER_STF] = &tl_stf_ops,
};

static const struct tl_stream_ops *const protocols[] = {
    [TL_PROTO_ETM4] = &tl_etm4_ops,
    [TL_PROTO_ETE] = &tl_etm4_ops,
    [TL_PROTO_ITM] = &tl_itm_ops,
    [TL_PROTO_STM] = &tl_stm_ops,
    [TL_PROTO_PT] = &tl_pt_ops,
};

const struct tl_stream_ops *tl_stream_ops_of(enum tl_protocol protocol)
{
    const size_t i = (size_t)protocol;
    return i < sizeof protocols / sizeof protocols[0] ? protocols[i] : NULL;
}

int tl_decode_new(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    *out = NULL;
    const size_t i = setup->container;
    const struct tl_decode_ops *const ops =
        i < sizeof containers / sizeof containers[0] ? containers[i] : NULL;
    if (!ops)
        return tl_fail_set(fail, TL_UNSUPPORTED, "format '%.40s' cannot be decoded yet",
                           setup->format);
    return ops->create(out, setup, image, sink, fail);
}

int tl_decode_crew(struct tl_decode *decode, struct tl_crew *crew)
{
    decode->share.crew = crew;
    if (crew)
        return TL_OK;
    tl_item_rooms_free(decode->share.rooms);
    decode->share.rooms = NULL;
    return tl_decode_flush(decode);
}

int tl_decode_flush(struct tl_decode *decode)
{
    return decode->ops->flush ? decode->ops->flush(decode) : TL_OK;
}

void tl_decode_paths(struct tl_decode *decode)
{
    decode->paths = true;
}

void tl_decode_free(struct tl_decode *decode)
{
    if (!decode)
        return;
    tl_item_rooms_free(decode->share.rooms);
    decode->ops->destroy(decode);
}

void tl_decode_arrival(struct tl_decode *decode, uint64_t ns)
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

int tl_decode_lost(struct tl_decode *decode, uint64_t n)
{
    if (decode->ops == &tl_coresight_ops)
        return n ? tl_coresight_lost(decode, n) : TL_OK;
    if (decode->ops == &tl_osd_ops)
        return n ? tl_osd_lost(decode, n) : TL_OK;
    return TL_UNSUPPORTED;
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
