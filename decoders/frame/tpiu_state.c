/* SPDX-License-Identifier: MIT */
/* Where the de-framer stands, as bytes. */
#include "frame/tpiu_parts.h"

void tl_tpiu_state(struct tl_tpiu *t, struct tl_state *s)
{
    static const char *const reasons[] = {tl_tpiu_not_yet, tl_tpiu_no_sync, tl_tpiu_no_id,
                                          tl_tpiu_cut_frame, tl_tpiu_unfinished};
    if (!tl_state_loads(s) && (t->state == HOLD || t->watched_from))
        tl_state_fail(s, TL_AGAIN);
    tl_state_u64(s, &t->start);
    tl_state_u64(s, &t->raw);
    tl_state_check(s, t->start < TL_NO_OFFSET / 4 && t->raw < TL_NO_OFFSET / 4);
    tl_state_u8(s, &t->state, FRAMES);
    tl_state_bool(s, &t->synchronised);
    tl_state_u8(s, &t->id, TL_TPIU_NO_ID);
    tl_state_check(s, t->id < 128 || t->id == TL_TPIU_NO_ID);
    tl_state_bool(s, &t->half_fsync);
    tl_state_u64(s, &t->window);
    tl_state_size(s, &t->fill, sizeof t->frame - 1);
    tl_state_bytes(s, t->frame, t->fill);
    tl_state_bytes(s, t->at, t->fill * sizeof *t->at);
    tl_state_u64(s, &t->lost);
    if (t->lost) {
        tl_state_text(s, &t->lost_reason, reasons, sizeof reasons / sizeof *reasons);
        tl_state_check(s, t->lost_reason);
        tl_state_u64(s, &t->lost_at);
    }
    tl_state_u64(s, &t->quiet_until);
    tl_state_u64(s, &t->patience);
    /* How bytes are taken changes how long runs are, and so which atoms are taken together. */
    tl_state_u64(s, &t->turns_until);
    tl_state_bool(s, &t->mixed);
    tl_state_u8(s, &t->luck, TL_TPIU_LUCK);
    tl_state_bytes(s, t->ids_sure, sizeof t->ids_sure);
    tl_state_bytes(s, t->ids_new, sizeof t->ids_new);
    if (t->sync == TL_TPIU_DSTREAM)
        tl_state_bytes(s, t->recent, sizeof t->recent);
}
