/* SPDX-License-Identifier: MIT */
/*
 * Runs the packetizer and the clock only, far ahead of the decoder. Following the program would
 * need the images, and which of them are in force is what the positions are to tell.
 */
#include "perf/pt_scout.h"

#include <stdlib.h>

enum where { UNKNOWN, OFF, KERNEL, USER };

static uint64_t now(const struct tl_perf_scout *s)
{
    return s->clock.time.have_tsc ? tl_clock_ns(&s->ns, s->clock.time.tsc) : 0;
}

static void close_point(struct tl_perf_scout *s)
{
    if (s->open)
        s->points[s->n - 1].time = now(s);
    s->open = false;
}

static void add_point(struct tl_perf_scout *s, uint64_t position)
{
    if (s->first == s->n)
        s->first = s->n = 0;
    if (tl_grow(&s->points, &s->cap, s->n + 1, sizeof *s->points) < 0) {
        s->failed = true;
        return;
    }
    s->points[s->n++] = (struct tl_perf_point){position, 0};
    s->open = true;
}

static void take_time(struct tl_perf_scout *s, uint64_t position)
{
    if (!s->clock.time.have_tsc || s->header)
        return;
    if (s->where == KERNEL && !s->open)
        add_point(s, position);
    close_point(s);
}

/* Execution continues at `ip`. */
static void move_to(struct tl_perf_scout *s, uint64_t ip, uint64_t position)
{
    const enum where to = ip >> 63 ? KERNEL : USER;
    if (to == USER && s->where != USER) {
        close_point(s);
        add_point(s, position);
    } else if (to == KERNEL && s->where == USER) {
        close_point(s);
    }
    s->where = (uint8_t)to;
}

static void leave(struct tl_perf_scout *s)
{
    close_point(s);
    s->where = OFF;
}

static void take_packet(struct tl_perf_scout *s, const struct tl_pt_tape *tape, size_t k,
                        uint64_t position)
{
    const uint8_t kind = tape->kind[k] & (uint8_t)~TL_PT_TAPE_SUPPRESSED;
    const bool has_ip = !(tape->kind[k] & TL_PT_TAPE_SUPPRESSED);
    struct tl_pt_packet packet = {.kind = kind};
    switch (kind) {
    case TL_PT_TIP:
    case TL_PT_TIP_PGE:
        if (has_ip)
            move_to(s, tape->value[k], position);
        return;
    case TL_PT_TIP_PGD:
        leave(s);
        return;
    case TL_PT_FUP:
        if (has_ip && (s->where == UNKNOWN || (s->header && s->where == OFF)))
            move_to(s, tape->value[k], position);
        return;
    case TL_PT_PSB:
        s->header = true;
        break;
    case TL_PT_PSBEND:
        s->header = false;
        return;
    case TL_PT_OVF:
        close_point(s);
        s->where = UNKNOWN;
        s->header = false;
        return;
    case TL_PT_TSC:
        packet.tsc = tape->value[k];
        break;
    case TL_PT_MTC:
        packet.mtc = (uint8_t)tape->value[k];
        break;
    case TL_PT_CYC:
        packet.cyc = tape->value[k];
        break;
    case TL_PT_CBR:
        packet.cbr = (uint8_t)tape->value[k];
        break;
    case TL_PT_TMA:
    case TL_PT_MNT:
        packet = tape->other[tape->value[k]];
        break;
    default:
        return;
    }
    tl_pt_clock_packet(&s->clock, &s->config, &packet, s->header);
    if (kind == TL_PT_TSC || kind == TL_PT_MTC || kind == TL_PT_CYC)
        take_time(s, position);
}

static int on_tape(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece)
{
    struct tl_perf_scout *const s = context;
    for (size_t k = 0; k < tape->n; k++)
        take_packet(s, tape, k, piece->base + tl_pt_tape_at(tape, k));
    return s->failed ? TL_NOMEM : TL_OK;
}

static int on_error(void *context, int why, uint64_t offset)
{
    struct tl_perf_scout *const s = context;
    (void)why;
    (void)offset;
    close_point(s);
    s->where = UNKNOWN;
    s->header = false;
    return TL_OK;
}

static int on_loss(void *context, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)offset;
    (void)bytes;
    return TL_OK;
}

void tl_perf_scout_begin(struct tl_perf_scout *s, const struct tl_pt_config *config,
                         const struct tl_clock *ns, uint64_t position)
{
    const struct tl_pt_packet_sink sink = {s, on_tape, on_error, on_loss};
    s->config = *config;
    s->ns = *ns;
    tl_pt_packetizer_init(&s->packetizer, config, &sink);
    tl_pt_packetizer_begin(&s->packetizer, position);
    tl_pt_clock_init(&s->clock);
    s->where = UNKNOWN;
    s->header = s->open = false;
}

void tl_perf_scout_fini(struct tl_perf_scout *s)
{
    free(s->points);
    s->points = NULL;
}

void tl_perf_scout_state(struct tl_perf_scout *s, struct tl_state *state)
{
    tl_pt_packetizer_state(&s->packetizer, state);
    tl_pt_clock_state(&s->clock, state);
    tl_perf_clock_state(&s->ns, state);
    tl_state_u8(state, &s->where, USER);
    tl_state_bool(state, &s->header);
    tl_state_bool(state, &s->open);
    tl_state_array(state, &s->points, &s->n, &s->cap, sizeof *s->points);
    tl_state_size(state, &s->first, s->n);
    tl_state_check(state, !s->open || s->n > 0);
    for (size_t i = 0; tl_state_loads(state) && i < s->n; i++)
        tl_state_check(state, s->points[i].position <= s->packetizer.end);
}

int tl_perf_scout_push(struct tl_perf_scout *s, struct tl_bytes in)
{
    return tl_pt_packetizer_push(&s->packetizer, in);
}

int tl_perf_scout_end(struct tl_perf_scout *s)
{
    const int rc = tl_pt_packetizer_finish(&s->packetizer);
    close_point(s);
    return rc;
}

const struct tl_perf_point *tl_perf_scout_first(const struct tl_perf_scout *s)
{
    const size_t known = s->n - (s->open ? 1 : 0);
    return s->first < known ? &s->points[s->first] : NULL;
}

void tl_perf_scout_take(struct tl_perf_scout *s)
{
    s->first++;
}

uint64_t tl_perf_scout_known(const struct tl_perf_scout *s)
{
    if (s->first < s->n)
        return s->points[s->first].position;
    return s->packetizer.end - s->packetizer.n_held;
}
