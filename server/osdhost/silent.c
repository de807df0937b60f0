/* SPDX-License-Identifier: MIT */
/*
 * Counts connections and remembers which of them have spoken, as a bit for each of the latest and
 * of those to come: a message may be read before its connection is counted. An id that nobody has
 * costs a failed send, so ids are tried rather than known.
 */
#include "osdhost/silent.h"

#define HALF (TL_OSD_SILENT_KEPT / 2)

static uint32_t get_be32(const uint8_t *p)
{
    return (uint32_t)tl_be16(p) << 16 | tl_be16(p + 2);
}

void tl_osd_silent_init(struct tl_osd_silent *s, struct tl_bytes id)
{
    *s = (struct tl_osd_silent){.due = -1};
    s->counts = id.n == sizeof s->id && id.p[0] == 0;
    if (s->counts)
        s->first = get_be32(id.p + 1);
}

static uint8_t *byte_of(struct tl_osd_silent *s, uint32_t connection)
{
    return &s->spoken[connection % TL_OSD_SILENT_KEPT / 8];
}

void tl_osd_silent_joined(struct tl_osd_silent *s, int64_t now)
{
    if (!s->counts)
        return;
    s->joined++;
    const uint32_t last = s->joined + HALF;
    *byte_of(s, last) &= (uint8_t) ~(1u << last % 8);
    s->at = s->joined > HALF ? s->joined - HALF + 1 : 1;
    s->due = now + TL_OSD_SILENT_MS;
}

void tl_osd_silent_spoke(struct tl_osd_silent *s, struct tl_bytes id)
{
    if (!s->counts || id.n != sizeof s->id || id.p[0] != 0)
        return;
    const uint32_t connection = get_be32(id.p + 1) - s->first;
    if (connection + HALF - 1 - s->joined < 2 * HALF)
        *byte_of(s, connection) |= (uint8_t)(1u << connection % 8);
}

int64_t tl_osd_silent_due(const struct tl_osd_silent *s)
{
    return s->due;
}

bool tl_osd_silent_next(struct tl_osd_silent *s, int64_t now, struct tl_bytes *id)
{
    if (s->due < 0 || now < s->due)
        return false;
    while (s->at <= s->joined) {
        const uint32_t connection = s->at++;
        if (*byte_of(s, connection) >> connection % 8 & 1)
            continue;
        s->id[0] = 0;
        tl_put_be16(s->id + 1, (uint16_t)((s->first + connection) >> 16));
        tl_put_be16(s->id + 3, (uint16_t)(s->first + connection));
        *id = (struct tl_bytes){s->id, sizeof s->id};
        return true;
    }
    s->due = -1;
    return false;
}
