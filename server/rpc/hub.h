/* SPDX-License-Identifier: MIT */
/* Notifies waiters that something in the lake changed. Internally locked. */
#ifndef TL_RPC_HUB_H
#define TL_RPC_HUB_H

#include "net/waiter.h"

struct tl_lake;

struct tl_hub_seat {
    struct tl_hub_seat *next;
    struct tl_hub_seat **link;
    struct tl_waiter *waiter;
};

struct tl_hub {
    struct tl_lake *lake;
    int handle;
    pthread_mutex_t lock; /* acquired before a waiter's lock */
    struct tl_hub_seat *seats;
};

TL_MUST_USE int tl_hub_init(struct tl_hub *hub, struct tl_lake *lake);
void tl_hub_fini(struct tl_hub *hub);

/* Poke `waiter` at every change, until tl_hub_leave(). */
void tl_hub_join(struct tl_hub *hub, struct tl_hub_seat *seat, struct tl_waiter *waiter);
void tl_hub_leave(struct tl_hub *hub, struct tl_hub_seat *seat);

/* Minimum interval between notifications of one listener. */
#define TL_HUB_PERIOD_MS 100

#endif
