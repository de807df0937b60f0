/* SPDX-License-Identifier: MIT */
/*
 * Accesses to memory that a trace reports of its instructions, as STF's records. Their items are
 * notes with the lines that listings of these records have, so that text is the same whether a
 * trace was decoded or came as STF.
 */
#include "stf/flow/flow_parts.h"

#include "stf/record.h"

#include <stdio.h>

int tl_stf_flow_place_accesses(struct tl_stf_held *held)
{
    struct tl_buf *const all = &held->accesses, *const pre = &held->front.pre;
    if (held->bare)
        all->n -= TL_STF_ACCESS_BYTES;
    held->bare = false;
    if (all->n == 0)
        return TL_OK;
    if (tl_buf_add(all, pre->p, pre->n) < 0)
        return TL_NOMEM;
    const struct tl_buf old = *pre;
    *pre = *all;
    *all = old;
    tl_buf_reset(all);
    held->front.any = true;
    return TL_OK;
}

static uint8_t *more(struct tl_buf *out, size_t n)
{
    if (tl_buf_reserve(out, n) < 0)
        return NULL;
    out->n += n;
    return out->p + out->n - n;
}

static int add_access(struct tl_stf_held *held, const struct tl_stf_record *access)
{
    if (held->bare) /* the one before has no content */
        held->accesses.n -= TL_STF_ACCESS_BYTES;
    uint8_t *const p = more(&held->accesses, TL_STF_ACCESS_BYTES);
    held->bare = p != NULL;
    if (!p)
        return TL_NOMEM;
    p[0] = TL_STF_INST_MEM_ACCESS;
    tl_put_le64(p + 1, access->access.address);
    tl_put_le16(p + 9, access->access.size);
    tl_put_le16(p + 11, access->access.attr);
    p[13] = access->access.type;
    return TL_OK;
}

int tl_stf_flow_note_access(struct tl_stf_held *held, const char *text)
{
    static const char prefix[] = "INST_MEM_";
    struct tl_stf_record access = {.type = TL_STF_INST_MEM_ACCESS};
    unsigned long long value;
    unsigned size, attr, type;
    if (!text || strncmp(text, prefix, sizeof prefix - 1) != 0)
        return TL_OK;
    if (sscanf(text, "INST_MEM_ACCESS addr=0x%llx size=%u attr=0x%x access=%u", &value, &size,
               &attr, &type) == 4) {
        access.access.address = value;
        access.access.size = (uint16_t)size;
        access.access.attr = (uint16_t)attr;
        access.access.type = (uint8_t)type;
        return add_access(held, &access);
    }
    if (!held->bare || sscanf(text, "INST_MEM_CONTENT data=0x%llx", &value) != 1)
        return TL_OK;
    held->bare = false;
    return tl_stf_flow_put_address(&held->accesses, TL_STF_INST_MEM_CONTENT, value);
}
