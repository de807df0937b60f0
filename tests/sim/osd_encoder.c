/* SPDX-License-Identifier: MIT */
#include "sim/osd_encoder.h"

#include "base/bytes.h"

#include <stdlib.h>

#define EVENT_LAST     0x8000
#define EVENT_CONT     0x8400
#define EVENT_OVERFLOW 0x9400
#define HEADER_WORDS   3

void tl_sim_osd_init(struct tl_sim_osd *e)
{
    *e = (struct tl_sim_osd){.dest = TL_SIM_OSD_HOST, .max_pkt_len = 12, .keep_truth = true};
}

void tl_sim_osd_fini(struct tl_sim_osd *e)
{
    tl_buf_fini(&e->out);
    free(e->truth);
    e->truth = NULL;
    e->n_truth = e->cap_truth = 0;
}

static void put_word(struct tl_sim_osd *e, uint16_t word)
{
    uint8_t *p = e->out.p + e->out.n;
    if (e->little_endian)
        tl_put_le16(p, word);
    else
        tl_put_be16(p, word);
    e->out.n += 2;
    e->written += 2;
}

int tl_sim_osd_packet(struct tl_sim_osd *e, uint16_t dest, uint16_t src, uint16_t flags,
                      const uint16_t *payload, size_t n)
{
    const int rc = tl_buf_reserve(&e->out, 2 * (1 + HEADER_WORDS + n));
    if (rc < 0)
        return rc;
    put_word(e, (uint16_t)(HEADER_WORDS + n));
    put_word(e, dest);
    put_word(e, src);
    put_word(e, flags);
    for (size_t i = 0; i < n; i++)
        put_word(e, payload[i]);
    e->packets++;
    return TL_OK;
}

int tl_sim_osd_event(struct tl_sim_osd *e, uint16_t src, const uint16_t *payload, size_t n)
{
    const size_t room = (size_t)(e->max_pkt_len - HEADER_WORDS);
    while (n > room) {
        const int rc = tl_sim_osd_packet(e, e->dest, src, EVENT_CONT, payload, room);
        if (rc < 0)
            return rc;
        payload += room;
        n -= room;
    }
    return tl_sim_osd_packet(e, e->dest, src, EVENT_LAST, payload, n);
}

/* Record the meaning of an event. Call after its packets were written. */
static int remember(struct tl_sim_osd *e, const struct tl_sim_osd_truth *event, size_t last_words)
{
    if (!e->keep_truth)
        return TL_OK;
    const int rc = tl_grow(&e->truth, &e->cap_truth, e->n_truth + 1, sizeof *e->truth);
    if (rc < 0)
        return rc;
    struct tl_sim_osd_truth *t = &e->truth[e->n_truth++];
    *t = *event;
    t->offset = e->written - 2 * (1 + HEADER_WORDS + last_words);
    t->packet = e->packets - 1;
    return TL_OK;
}

static size_t last_part(const struct tl_sim_osd *e, size_t words)
{
    const size_t room = (size_t)(e->max_pkt_len - HEADER_WORDS);
    return words <= room ? words : (words - 1) % room + 1;
}

static size_t put_value(uint16_t *words, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width / 16; i++)
        words[i] = (uint16_t)(value >> (16 * i));
    return width / 16;
}

int tl_sim_osd_ctm(struct tl_sim_osd *e, uint16_t src, unsigned width,
                   const struct tl_sim_osd_truth *event)
{
    uint16_t words[11];
    size_t n = put_value(words, event->time, 32);
    n += put_value(words + n, event->npc, width);
    n += put_value(words + n, event->pc, width);
    words[n++] =
        (uint16_t)((event->mode & 3) | event->ret << 2 | event->call << 3 | event->modechange << 4);
    const int rc = tl_sim_osd_event(e, src, words, n);
    if (rc < 0)
        return rc;
    struct tl_sim_osd_truth truth = *event;
    truth.src = src;
    truth.type = TL_SIM_OSD_CTM;
    truth.overflow = false;
    return remember(e, &truth, last_part(e, n));
}

int tl_sim_osd_stm(struct tl_sim_osd *e, uint16_t src, unsigned width, uint32_t time, uint16_t id,
                   uint64_t value)
{
    uint16_t words[7];
    size_t n = put_value(words, time, 32);
    words[n++] = id;
    n += put_value(words + n, value, width);
    const int rc = tl_sim_osd_event(e, src, words, n);
    if (rc < 0)
        return rc;
    const struct tl_sim_osd_truth truth = {
        .src = src, .type = TL_SIM_OSD_STM, .time = time, .id = id, .value = value};
    return remember(e, &truth, last_part(e, n));
}

int tl_sim_osd_stm_print(struct tl_sim_osd *e, uint16_t src, unsigned width, uint32_t time,
                         uint32_t step, const char *text)
{
    for (; *text; text++, time += step) {
        const int rc = tl_sim_osd_stm(e, src, width, time, 4, (uint8_t)*text);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_sim_osd_uart(struct tl_sim_osd *e, uint16_t src, uint8_t character)
{
    const int rc = tl_sim_osd_packet(e, e->dest, src, EVENT_LAST, &(uint16_t){character}, 1);
    if (rc < 0)
        return rc;
    const struct tl_sim_osd_truth truth = {.src = src, .type = TL_SIM_OSD_UART, .value = character};
    return remember(e, &truth, 1);
}

int tl_sim_osd_overflow(struct tl_sim_osd *e, uint16_t src, uint16_t count,
                        enum tl_sim_osd_module_type type)
{
    const int rc = tl_sim_osd_packet(e, e->dest, src, EVENT_OVERFLOW, &count, 1);
    if (rc < 0)
        return rc;
    const struct tl_sim_osd_truth truth = {
        .src = src, .type = (uint8_t)type, .overflow = true, .value = count};
    return remember(e, &truth, 1);
}

int tl_sim_osd_read_reply(struct tl_sim_osd *e, uint16_t src, uint16_t value)
{
    return tl_sim_osd_packet(e, e->dest, src, 0x2000, &value, 1);
}

static int reply_all(struct tl_sim_osd *e, uint16_t src, const uint16_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int rc = tl_sim_osd_read_reply(e, src, values[i]);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static int reply_widths(struct tl_sim_osd *e, const struct tl_sim_osd_module *m)
{
    if (m->type == TL_SIM_OSD_CTM)
        return reply_all(e, m->address, (uint16_t[]){m->width, m->width}, 2);
    if (m->type == TL_SIM_OSD_STM)
        return tl_sim_osd_read_reply(e, m->address, m->width);
    return TL_OK;
}

/*
 * The order used by a host that enumerates: base registers of all modules, then the special ones.
 */
int tl_sim_osd_enumerate(struct tl_sim_osd *e, const struct tl_sim_osd_module *modules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t base[5] = {1, modules[i].type, 0, 0, 0};
        const int rc = reply_all(e, modules[i].address, base, 5);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < n; i++) {
        const uint16_t scm[4] = {2, 0x77, (uint16_t)n, e->max_pkt_len};
        const int rc = modules[i].type == TL_SIM_OSD_SCM ? reply_all(e, modules[i].address, scm, 4)
                                                         : reply_widths(e, &modules[i]);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}
