/* SPDX-License-Identifier: MIT */
/*
 * Keeps the state that an excerpt has to begin with. Only two kinds of records are decoded, all
 * others are skipped by their size: this runs over a whole trace to begin an excerpt at its end.
 */
#include "stf/known.h"

#include "stf/group.h"
#include "stf/stand.h"

#include <stdlib.h>

int tl_stf_known_new(struct tl_stf_known **out)
{
    struct tl_stf_known *const known = calloc(1, sizeof *known);
    if (!known || tl_stf_regstate_new(&known->regs) < 0 || tl_stf_walks_new(&known->walks) < 0) {
        tl_stf_known_free(known);
        return TL_NOMEM;
    }
    *out = known;
    return TL_OK;
}

void tl_stf_known_free(struct tl_stf_known *known)
{
    if (!known)
        return;
    tl_stf_regstate_free(known->regs);
    tl_stf_walks_free(known->walks);
    free(known);
}

int tl_stf_known_add(struct tl_stf_known *known, const struct tl_stf_record *record)
{
    if (record->type == TL_STF_INST_REG)
        return tl_stf_regstate_add(known->regs, record);
    if (tl_stf_is_marker(record->type))
        tl_stf_regstate_close(known->regs);
    return record->type == TL_STF_PAGE_TABLE_WALK ? tl_stf_walks_add(known->walks, record) : TL_OK;
}

int tl_stf_known_pass(struct tl_stf_known *known, const struct tl_stf_layout *layout,
                      struct tl_bytes stf)
{
    struct tl_stf_group group = {stf, *layout};
    struct tl_bytes bytes;
    int result = TL_OK;
    while (result >= 0 && tl_stf_group_skip(&group, &bytes) == TL_OK) {
        struct tl_stf_record record;
        if (tl_stf_is_marker(bytes.p[0]))
            tl_stf_regstate_close(known->regs);
        if (bytes.p[0] != TL_STF_INST_REG && bytes.p[0] != TL_STF_PAGE_TABLE_WALK)
            continue;
        result = tl_stf_record_decode(layout, bytes, &record);
        if (result >= 0)
            result = tl_stf_known_add(known, &record);
    }
    return result < 0 ? result : TL_OK;
}

int tl_stf_known_put(const struct tl_stf_known *known, const struct tl_stf_layout *layout,
                     struct tl_buf *out)
{
    struct tl_stf_record record;
    int result = TL_OK;
    for (size_t at = 0;
         result == TL_OK && tl_stf_regstate_next(known->regs, &at, &record) == TL_OK;)
        result = tl_stf_record_encode(layout, &record, out);
    for (size_t at = 0; result == TL_OK && tl_stf_walks_next(known->walks, &at, &record) == TL_OK;)
        result = tl_stf_record_encode(layout, &record, out);
    return result;
}

void tl_stf_known_state(struct tl_stf_known *known, struct tl_state *s)
{
    tl_stf_regstate_state(known->regs, s);
    tl_stf_walks_state(known->walks, s);
}
