/* SPDX-License-Identifier: MIT */
/*
 * Pokes all waiting calls when the lake changes. The lake has one listener instead of one for each
 * call, so that a change costs its thread little.
 */
#include "rpc/hub.h"

#include "lake.h"

static void on_change(void *context)
{
    struct tl_hub *const hub = context;
    pthread_mutex_lock(&hub->lock);
    for (struct tl_hub_seat *seat = hub->seats; seat; seat = seat->next)
        tl_waiter_poke(seat->waiter);
    pthread_mutex_unlock(&hub->lock);
}

int tl_hub_init(struct tl_hub *hub, struct tl_lake *lake)
{
    *hub = (struct tl_hub){.lake = lake};
    pthread_mutex_init(&hub->lock, NULL);
    hub->handle = tl_lake_watch(lake, on_change, hub);
    if (hub->handle >= 0)
        return TL_OK;
    pthread_mutex_destroy(&hub->lock);
    return hub->handle;
}

void tl_hub_fini(struct tl_hub *hub)
{
    tl_lake_unwatch(hub->lake, hub->handle);
    pthread_mutex_destroy(&hub->lock);
}

void tl_hub_join(struct tl_hub *hub, struct tl_hub_seat *seat, struct tl_waiter *waiter)
{
    seat->waiter = waiter;
    pthread_mutex_lock(&hub->lock);
    seat->next = hub->seats;
    seat->link = &hub->seats;
    if (seat->next)
        seat->next->link = &seat->next;
    hub->seats = seat;
    pthread_mutex_unlock(&hub->lock);
}

void tl_hub_leave(struct tl_hub *hub, struct tl_hub_seat *seat)
{
    pthread_mutex_lock(&hub->lock);
    *seat->link = seat->next;
    if (seat->next)
        seat->next->link = seat->link;
    pthread_mutex_unlock(&hub->lock);
}
