/* SPDX-License-Identifier: MIT */
/*
 * A ring, since elements are committed at its old end and cancelled at its new one. Cancelling
 * moves the elements that stay only once, so that no input can make it quadratic.
 */
#include "etm4/element.h"

#include <stdlib.h>
#include <string.h>

void tl_etm4_queue_fini(struct tl_etm4_queue *queue)
{
    free(queue->ring);
    *queue = (struct tl_etm4_queue){0};
}

static int grow(struct tl_etm4_queue *queue)
{
    if (queue->n >= TL_ETM4_QUEUE_MAX)
        return TL_LIMIT;
    const size_t cap = queue->cap ? queue->cap * 2 : 64;
    struct tl_etm4_element *ring = malloc(cap * sizeof *ring);
    if (!ring)
        return TL_NOMEM;
    for (size_t i = 0; i < queue->n; i++)
        ring[i] = *tl_etm4_queue_at(queue, i);
    free(queue->ring);
    queue->ring = ring;
    queue->cap = cap;
    queue->head = 0;
    return TL_OK;
}

int tl_etm4_queue_push(struct tl_etm4_queue *queue, const struct tl_etm4_packet *packet,
                       uint32_t p0, struct tl_etm4_element **out)
{
    if (queue->n == queue->cap) {
        const int rc = grow(queue);
        if (rc < 0)
            return rc;
    }
    struct tl_etm4_element *e = tl_etm4_queue_at(queue, queue->n++);
    e->packet = *packet;
    e->address = (struct tl_etm4_packet){0};
    e->p0 = p0;
    *out = e;
    return TL_OK;
}

void tl_etm4_packet_state(struct tl_etm4_packet *p, struct tl_state *s)
{
    tl_state_u8(s, &p->type, TL_ETM4_UNSEEN);
    tl_state_u8(s, &p->header, UINT8_MAX);
    tl_state_u8(s, &p->n, UINT8_MAX);
    tl_state_u8(s, &p->bits, UINT8_MAX);
    tl_state_u32(s, &p->flags);
    tl_state_u64(s, &p->offset);
    tl_state_u64(s, &p->value);
    tl_state_u64(s, &p->value2);
    tl_state_check(s, p->type != TL_ETM4_ATOM || (p->n > 0 && p->n <= 64));
}

void tl_etm4_element_state(struct tl_etm4_element *e, struct tl_state *s)
{
    tl_etm4_packet_state(&e->packet, s);
    tl_etm4_packet_state(&e->address, s);
    tl_state_u32(s, &e->p0);
    tl_state_check(s, e->packet.type == TL_ETM4_UNSEEN || e->p0 <= 1 ||
                          (e->packet.type == TL_ETM4_ATOM && e->p0 == e->packet.n));
    tl_state_check(s, e->packet.type != TL_ETM4_ATOM || e->p0 == e->packet.n || e->p0 == 0);
}

void tl_etm4_queue_state(struct tl_etm4_queue *queue, struct tl_state *s, uint64_t *p0)
{
    size_t n = queue->n;
    *p0 = 0;
    tl_state_size(s, &n, TL_ETM4_QUEUE_MAX);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_etm4_element none = {0}, *e = &none;
        if (!tl_state_loads(s))
            e = tl_etm4_queue_at(queue, i);
        else
            tl_state_fail(s, tl_etm4_queue_push(queue, &none.packet, 0, &e));
        if (s->rc < 0)
            return;
        tl_etm4_element_state(e, s);
        *p0 += e->p0;
    }
}

int tl_etm4_queue_push_oldest(struct tl_etm4_queue *queue, const struct tl_etm4_packet *packet,
                              uint32_t p0)
{
    if (queue->n == queue->cap) {
        const int rc = grow(queue);
        if (rc < 0)
            return rc;
    }
    queue->head = (queue->head + queue->cap - 1) & (queue->cap - 1);
    queue->n++;
    *tl_etm4_queue_at(queue, 0) = (struct tl_etm4_element){.packet = *packet, .p0 = p0};
    return TL_OK;
}

/* Is an element of this type kept when the P0 elements around it are cancelled? */
static bool stays(uint8_t type)
{
    switch (type) {
    case TL_ETM4_EVENT:
    case TL_ETM4_TIMESTAMP:
    case TL_ETM4_CYCLE_COUNT:
    case TL_ETM4_TS_MARKER:
    case TL_ETM4_ITE:
        return true;
    default:
        return false;
    }
}

/* Remove element `i`. */
static void remove_at(struct tl_etm4_queue *queue, size_t i)
{
    for (; i + 1 < queue->n; i++)
        *tl_etm4_queue_at(queue, i) = *tl_etm4_queue_at(queue, i + 1);
    queue->n--;
}

/*
 * Elements that are kept are collected at the end and moved down once, so that cancelling k
 * elements costs k steps.
 */
uint64_t tl_etm4_queue_cancel(struct tl_etm4_queue *queue, uint64_t count)
{
    uint64_t left = count;
    size_t i = queue->n;    /* elements 0..i-1 have not been examined */
    size_t kept = queue->n; /* elements kept..n-1 are kept */
    while (left > 0 && i > 0) {
        struct tl_etm4_element *e = tl_etm4_queue_at(queue, i - 1);
        if (e->p0 > left) { /* the newest of several atoms, or of unseen elements */
            e->p0 -= (uint32_t)left;
            if (e->packet.type == TL_ETM4_ATOM)
                e->packet.n = (uint8_t)e->p0;
            left = 0;
            break;
        }
        left -= e->p0;
        i--;
        if (stays(e->packet.type))
            *tl_etm4_queue_at(queue, --kept) = *e;
    }
    for (size_t from = kept; from < queue->n; from++)
        *tl_etm4_queue_at(queue, i + (from - kept)) = *tl_etm4_queue_at(queue, from);
    queue->n = i + (queue->n - kept);
    return count - left;
}

bool tl_etm4_queue_mispredict(struct tl_etm4_queue *queue)
{
    for (size_t i = queue->n; i-- > 0;) {
        struct tl_etm4_element *e = tl_etm4_queue_at(queue, i);
        switch (e->packet.type) {
        case TL_ETM4_ATOM:
            e->packet.value ^= 1ULL << (e->packet.n - 1);
            return true;
        case TL_ETM4_UNSEEN:
            return true;
        case TL_ETM4_ADDRESS: /* of the path that was not taken */
            remove_at(queue, i);
            break;
        default:
            break;
        }
    }
    return false;
}
