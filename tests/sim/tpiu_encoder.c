/* SPDX-License-Identifier: MIT */
#include "sim/tpiu_encoder.h"

#include <string.h>

#define AUX       15 /* the byte that holds the even bytes' lowest bits */
#define BLOCK     512
#define BLOCK_USE 504
#define NO_OWNER  0xff

static uint64_t next_random(struct tl_tpiu_encoder *e)
{
    uint64_t x = e->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return e->random = x;
}

static bool chance(struct tl_tpiu_encoder *e, unsigned percent)
{
    return percent && next_random(e) % 100 < percent;
}

void tl_tpiu_encoder_init(struct tl_tpiu_encoder *e, enum tl_tpiu_sync sync, uint64_t seed)
{
    *e = (struct tl_tpiu_encoder){
        .sync = (uint8_t)sync,
        .fsync_every = sync == TL_TPIU_DSTREAM ? 1 : 64,
        .repeat_percent = 1,
        .random = seed * 0x9e3779b97f4a7c15u | 1,
        .id = TL_TPIU_NO_ID,
    };
}

void tl_tpiu_encoder_fini(struct tl_tpiu_encoder *e)
{
    tl_buf_fini(&e->out);
}

static int put(struct tl_tpiu_encoder *e, uint8_t byte)
{
    int rc = tl_buf_add(&e->out, &byte, 1);
    if (rc < 0)
        return rc;
    e->written++;
    if (e->sync != TL_TPIU_DSTREAM || e->written % BLOCK != BLOCK_USE)
        return TL_OK;
    const uint64_t footer = next_random(e);
    rc = tl_buf_add(&e->out, &footer, sizeof footer);
    if (rc == TL_OK)
        e->written += sizeof footer;
    return rc;
}

static int put_all(struct tl_tpiu_encoder *e, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int rc = put(e, (uint8_t)p[i]);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_tpiu_encoder_fsync(struct tl_tpiu_encoder *e)
{
    return put_all(e, "\xff\xff\xff\x7f", 4);
}

static int put_slot(struct tl_tpiu_encoder *e, unsigned slot)
{
    uint8_t byte = e->frame[slot];
    if (slot != AUX && e->owner[slot] != NO_OWNER && e->placed) {
        const uint8_t low = slot % 2 ? 0 : e->frame[AUX] >> slot / 2 & 1;
        e->placed(e->context, e->owner[slot], byte | low, e->written);
    }
    return put(e, byte);
}

static int put_frame(struct tl_tpiu_encoder *e)
{
    int rc = TL_OK;
    if (e->sync != TL_TPIU_ALIGNED &&
        (e->frames == 0 || (e->fsync_every && e->frames % e->fsync_every == 0)))
        rc = tl_tpiu_encoder_fsync(e);
    for (unsigned slot = 0; slot < 16 && rc == TL_OK; slot++) {
        if (slot % 2 == 0 && e->sync == TL_TPIU_HSYNC && chance(e, e->hsync_percent))
            rc = put_all(e, "\xff\x7f", 2);
        if (rc == TL_OK)
            rc = put_slot(e, slot);
    }
    e->frames++;
    e->fill = 0;
    memset(e->frame, 0, sizeof e->frame);
    return rc;
}

static int put_byte(struct tl_tpiu_encoder *e, uint8_t byte, uint8_t owner)
{
    const unsigned slot = e->fill++;
    e->owner[slot] = owner;
    e->frame[slot] = byte;
    if (slot % 2 == 0 && owner != NO_OWNER) {
        e->frame[slot] &= 0xfe;
        e->frame[AUX] |= (uint8_t)((byte & 1) << slot / 2);
    }
    return e->fill == AUX ? put_frame(e) : TL_OK;
}

/* Move the byte before an odd slot into that slot, and put the delayed ID in its place. */
static int put_delayed_id(struct tl_tpiu_encoder *e, uint8_t id)
{
    const unsigned slot = e->fill - 1u;
    const uint8_t bit = (uint8_t)(1 << slot / 2);
    const uint8_t byte = e->frame[slot] | ((e->frame[AUX] & bit) != 0);
    const uint8_t owner = e->owner[slot];
    e->frame[slot] = (uint8_t)(id << 1 | 1);
    e->owner[slot] = NO_OWNER;
    e->frame[AUX] |= bit;
    return put_byte(e, byte, owner);
}

static int change(struct tl_tpiu_encoder *e, uint8_t id)
{
    e->id = id;
    return e->fill % 2 ? put_delayed_id(e, id) : put_byte(e, (uint8_t)(id << 1 | 1), NO_OWNER);
}

int tl_tpiu_encoder_add(struct tl_tpiu_encoder *e, uint8_t id, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int rc = TL_OK;
        if (e->id != id || (e->fill % 2 == 0 && chance(e, e->repeat_percent)))
            rc = change(e, id);
        if (rc == TL_OK)
            rc = put_byte(e, p[i], id);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_tpiu_encoder_flush(struct tl_tpiu_encoder *e)
{
    int rc = TL_OK;
    while (e->fill && rc == TL_OK)
        rc = tl_tpiu_encoder_add(e, TL_TPIU_NULL_ID, (const uint8_t[]){0}, 1);
    return rc;
}
