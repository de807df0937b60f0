/* SPDX-License-Identifier: MIT */
/*
 * Records are encoded anew in the first header's layout, since all of a trace's groups are written
 * under that one. What a reader of instructions fails on is left out, because a single such record
 * would make the rest of the file unreadable.
 */
#include "stf/flow/flow_gathered.h"

#include "stf/flow/flow_parts.h"

#include <string.h>

#define GROUP_MAX (4u << 20) /* maximum bytes kept of a group */

void tl_stf_gathered_fini(struct tl_stf_gathered *g)
{
    tl_buf_fini(&g->records);
    tl_stf_groups_fini(&g->groups);
}

void tl_stf_gathered_begin(struct tl_stf_gathered *g)
{
    tl_buf_reset(&g->records);
    g->last = 0;
    g->bare = 0;
    g->overfull = false;
}

/* Remove an access that has no content. */
static void drop_bare_access(struct tl_stf_gathered *g, uint8_t next)
{
    size_t size;
    if (g->last == TL_STF_INST_MEM_ACCESS && next != TL_STF_INST_MEM_CONTENT)
        size = 14;
    else if (g->last == TL_STF_BUS_MASTER_ACCESS && next != TL_STF_BUS_MASTER_CONTENT)
        size = 18;
    else
        return;
    uint8_t *const p = g->records.p + g->bare;
    g->records.n -= size;
    memmove(p, p + size, g->records.n - g->bare);
}

int tl_stf_gathered_add(struct tl_stf_gathered *g, const struct tl_stf_record *record, bool event)
{
    if (g->overfull || !tl_stf_groups_has(record->type))
        return TL_OK;
    const bool good = tl_stf_groups_readable(record, g->last);
    if (record->type >= TL_STF_INST_PC_TARGET) {
        drop_bare_access(g, record->type);
        g->last = good ? record->type : 0;
        g->bare = g->records.n;
    }
    g->overfull = g->records.n > GROUP_MAX;
    if (!good || g->overfull)
        return TL_OK;
    struct tl_stf_record copy = *record;
    int result = TL_OK;
    if (record->type == TL_STF_EVENT_PC_TARGET && !event) {
        copy.type = TL_STF_INST_PC_TARGET;
        result = tl_stf_flow_put_parting(&g->records);
    }
    if (result == TL_OK)
        result = tl_stf_record_encode(&g->groups.layout, &copy, &g->records);
    return result == TL_USAGE ? TL_OK : result;
}

int tl_stf_gathered_add_header(struct tl_stf_gathered *g, const struct tl_stf_header *h)
{
    const struct tl_stf_record iem = {.type = TL_STF_INST_IEM, .iem = h->iem};
    const struct tl_stf_record process = {.type = TL_STF_PROCESS_ID_EXT,
                                          .process = {h->tgid, h->tid, h->asid}};
    const struct tl_stf_record from = {.type = TL_STF_FORCE_PC, .pc = h->pc};
    int result = h->has_iem ? tl_stf_gathered_add(g, &iem, false) : TL_OK;
    if (result == TL_OK && h->has_process)
        result = tl_stf_gathered_add(g, &process, false);
    return result < 0 ? result : tl_stf_gathered_add(g, &from, false);
}

int tl_stf_gathered_shorten(struct tl_stf_gathered *g, uint64_t pc, const uint64_t *target,
                            const struct tl_stf_record *closing)
{
    const struct tl_stf_layout *const layout = &g->groups.layout;
    const struct tl_stf_record from = {.type = TL_STF_FORCE_PC, .pc = pc};
    tl_buf_reset(&g->records);
    int result = tl_stf_record_encode(layout, &from, &g->records);
    if (result == TL_OK && target) {
        const struct tl_stf_record to = {.type = TL_STF_INST_PC_TARGET, .target = *target};
        result = tl_stf_record_encode(layout, &to, &g->records);
    }
    return result < 0 ? result : tl_stf_record_encode(layout, closing, &g->records);
}

/* Are these records of one group, with an access without content only at the end? */
static bool is_sound(const struct tl_stf_gathered *g)
{
    struct tl_stf_shape shape;
    if (!tl_stf_groups_look(&g->groups, (struct tl_bytes){g->records.p, g->records.n}, &shape) ||
        shape.markers > 0)
        return false;
    return (g->last != TL_STF_INST_MEM_ACCESS && g->last != TL_STF_BUS_MASTER_ACCESS) ||
           (shape.type == g->last && shape.record == g->bare);
}

void tl_stf_gathered_state(struct tl_stf_gathered *g, struct tl_state *s)
{
    tl_state_buf(s, &g->records, SIZE_MAX);
    tl_state_u8(s, &g->last, UINT8_MAX);
    tl_state_size(s, &g->bare, g->records.n);
    tl_state_bool(s, &g->overfull);
    tl_state_check(s, is_sound(g));
}
