/* SPDX-License-Identifier: MIT */
/*
 * The queue of trace elements that are not yet committed.
 *
 * P0 elements (atoms, exceptions, Q, source addresses, …) are speculative until the trace unit
 * commits or cancels them; all other elements keep their position among them. Not thread-safe.
 *
 * Source: Arm IHI0064H chapter 5, "Speculation resolution elements".
 */
#ifndef TL_ETM4_ELEMENT_H
#define TL_ETM4_ELEMENT_H

#include "base/state.h"
#include "etm4/packet.h"

#include <stdbool.h>
#include <stddef.h>

#define TL_ETM4_QUEUE_MAX 65536 /* elements; far above the speculation depth of any trace unit */
/* More uncommitted P0 elements than this at the end of a trace are reported as a loss: no trace
 * unit lets so many wait. */
#define TL_ETM4_WAITING_MAX 1024

/* Additional element type: `value` P0 elements that preceded synchronisation. */
#define TL_ETM4_UNSEEN TL_ETM4_TYPES

/* An element is its packet and, for exceptions and Q, the address packet that completes it. */
struct tl_etm4_element {
    struct tl_etm4_packet packet;
    struct tl_etm4_packet address; /* ADDRESS or CONTEXT, merged; type 0 (NOT_SYNC): none yet */
    uint32_t p0;                   /* P0 elements in it that are not yet committed */
};

struct tl_etm4_queue {
    struct tl_etm4_element *ring;
    size_t cap; /* a power of two, or 0 */
    size_t head;
    size_t n;
};

void tl_etm4_queue_fini(struct tl_etm4_queue *queue);

static inline void tl_etm4_queue_clear(struct tl_etm4_queue *queue)
{
    queue->n = 0;
}

/* Element `i`, counted from the oldest; i < n. */
static inline struct tl_etm4_element *tl_etm4_queue_at(const struct tl_etm4_queue *queue, size_t i)
{
    return &queue->ring[(queue->head + i) & (queue->cap - 1)];
}

static inline void tl_etm4_queue_pop(struct tl_etm4_queue *queue)
{
    queue->head = (queue->head + 1) & (queue->cap - 1);
    queue->n--;
}

/* Append an element; `out` is valid until the next call. Returns TL_NOMEM, TL_LIMIT
 * (TL_ETM4_QUEUE_MAX reached). */
TL_MUST_USE int tl_etm4_queue_push(struct tl_etm4_queue *queue, const struct tl_etm4_packet *packet,
                                   uint32_t p0, struct tl_etm4_element **out);

/* Save or restore the contents. After restoring, `p0` is the sum of the elements' p0. */
void tl_etm4_queue_state(struct tl_etm4_queue *queue, struct tl_state *state, uint64_t *p0);
/* Save or restore a packet or an element. */
void tl_etm4_packet_state(struct tl_etm4_packet *packet, struct tl_state *state);
void tl_etm4_element_state(struct tl_etm4_element *element, struct tl_state *state);
/* Insert an element with `p0` P0 elements before all others. Returns TL_NOMEM, TL_LIMIT. */
TL_MUST_USE int tl_etm4_queue_push_oldest(struct tl_etm4_queue *queue,
                                          const struct tl_etm4_packet *packet, uint32_t p0);

/*
 * Cancel the `count` newest P0 elements and what depends on them; events, cycle counts and
 * timestamps are kept. Returns how many were found.
 */
uint64_t tl_etm4_queue_cancel(struct tl_etm4_queue *queue, uint64_t count);

/*
 * Invert the newest atom and drop addresses after it. Returns false if there is none (a
 * mispredicted atom from before synchronisation counts as found).
 */
bool tl_etm4_queue_mispredict(struct tl_etm4_queue *queue);

#endif
