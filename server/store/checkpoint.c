/* SPDX-License-Identifier: MIT */
/*
 * Encodes and decodes the state of decoding with a checksum and whom it is for. State of another
 * program, setup or image would be accepted silently and give a wrong flow.
 */
#include "store/checkpoint.h"

#include "base/crc32c.h"
#include "base/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC     "TLCHEC12"
#define HEAD      12
#define ORDER     0x01020304u
#define LANES_MAX 4096

void tl_checkpoint_fini(struct tl_checkpoint *c)
{
    for (size_t i = 0; i < c->n_lanes; i++)
        tl_buf_fini(&c->lanes[i].build);
    free(c->lanes);
    tl_buf_fini(&c->decode);
    *c = (struct tl_checkpoint){0};
}

static void text_state(struct tl_state *s, char *text, size_t size)
{
    tl_state_bytes(s, text, size);
    text[size - 1] = '\0';
}

static void lane_state(struct tl_checkpoint_lane *lane, struct tl_state *s)
{
    text_state(s, lane->name, sizeof(lane->name));
    tl_state_u64(s, &lane->lost_bytes);
    tl_state_buf(s, &lane->build, SIZE_MAX);
}

static void state_of(struct tl_checkpoint *c, const char *whose, struct tl_state *s)
{
    struct tl_buf name = {0};
    uint32_t order = ORDER;
    size_t n = c->n_lanes;
    tl_state_u32(s, &order);
    tl_state_check(s, order == ORDER);
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_buf_add(&name, whose, strlen(whose)));
    tl_state_buf(s, &name, SIZE_MAX);
    tl_state_check(s, name.n == strlen(whose) && !memcmp(name.p, whose, name.n));
    tl_buf_fini(&name);
    tl_state_u64(s, &c->offset);
    tl_state_u64(s, &c->lost_bytes);
    text_state(s, c->message, sizeof(c->message));
    tl_state_size(s, &n, LANES_MAX);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        if (tl_state_loads(s)) {
            tl_state_fail(s, tl_grow(&c->lanes, &c->cap_lanes, i + 1, sizeof(*c->lanes)));
            if (s->rc < 0)
                return;
            c->lanes[i] = (struct tl_checkpoint_lane){0};
            c->n_lanes = i + 1;
        }
        lane_state(&c->lanes[i], s);
    }
    tl_state_buf(s, &c->decode, SIZE_MAX);
}

int tl_checkpoint_encode(struct tl_checkpoint *c, const char *whose, struct tl_buf *out)
{
    struct tl_state s = {.out = out};
    const size_t begin = out->n;
    uint8_t head[HEAD] = {0};
    tl_state_bytes(&s, head, sizeof(head));
    state_of(c, whose, &s);
    if (s.rc < 0)
        return s.rc;
    memcpy(out->p + begin, MAGIC, 8);
    tl_put_le32(out->p + begin + 8, tl_crc32c(0, out->p + begin + HEAD, out->n - begin - HEAD));
    return TL_OK;
}

bool tl_checkpoint_sound(struct tl_bytes bytes)
{
    return bytes.n >= HEAD && memcmp(bytes.p, "TLCHEC", 6) == 0 &&
           tl_le32(bytes.p + 8) == tl_crc32c(0, bytes.p + HEAD, bytes.n - HEAD);
}

uint64_t tl_checkpoint_offset(struct tl_bytes bytes)
{
    const size_t name = HEAD + sizeof(uint32_t);
    if (bytes.n < name + 8)
        return UINT64_MAX;
    const uint64_t n = tl_le64(bytes.p + name), left = bytes.n - name - 8;
    uint64_t offset = UINT64_MAX;
    if (left >= 8 && n <= left - 8)
        memcpy(&offset, bytes.p + name + 8 + n, sizeof(offset));
    return offset;
}

int tl_checkpoint_decode(struct tl_checkpoint *out, const char *whose, struct tl_bytes bytes)
{
    *out = (struct tl_checkpoint){0};
    if (!tl_checkpoint_sound(bytes) || memcmp(bytes.p, MAGIC, 8) != 0)
        return TL_BAD;
    struct tl_state s = {.in = {bytes.p + HEAD, bytes.n - HEAD}};
    state_of(out, whose, &s);
    tl_state_check(&s, s.in.n == 0);
    return s.rc;
}

char *tl_checkpoint_key(char out[static 192], const char *trace, uint64_t generation,
                        const uint64_t *offset)
{
    const int n = snprintf(out, 192, "c/%s/%" PRIu64, trace, generation);
    if (offset)
        snprintf(out + n, 192 - (size_t)n, "/%016" PRIx64, *offset);
    return out;
}
