/* SPDX-License-Identifier: MIT */
/*
 * A ring of pieces, each of which is made by the crew or by the thread that takes it. It has few of
 * them, since what a piece becomes may need much memory, and who takes them may be slow.
 */
#include "base/inorder.h"

#include "base/cancel.h"
#include "base/crew.h"
#include "base/spelling.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum state { FREE, BEGUN, MADE, FAILED };

struct slot {
    enum state state;
    void *piece;
};

struct tl_inorder {
    struct tl_crew *crew; /* NULL: nobody helps */
    struct tl_crew_work work;
    size_t n;
    tl_inorder_make *make;
    void (*drop)(void *piece);
    void *context;
    bool mangled; /* spelling of names, for the threads of the crew too */
    atomic_bool given_up;
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t n_slots;
    /* Guarded by the lock: */
    size_t begun, taken;                /* pieces; taken <= begun <= taken + n_slots */
    struct slot slots[TL_INORDER_MOST]; /* piece i is in slots[i % n_slots] */
};

static bool is_given_up(void *context)
{
    const struct tl_inorder *const order = context;
    return atomic_load(&order->given_up);
}

/* Runs on the crew. */
static bool make_next(void *context)
{
    struct tl_inorder *const order = context;
    const struct tl_cancel cancel = {.asked = is_given_up, .context = order};
    struct tl_fail fail = {0};
    void *piece = NULL;
    pthread_mutex_lock(&order->lock);
    const size_t i = order->begun;
    const bool any = i < order->n && i < order->taken + order->n_slots && !is_given_up(order);
    if (any) {
        order->begun++;
        order->slots[i % order->n_slots].state = BEGUN;
    }
    pthread_mutex_unlock(&order->lock);
    if (!any)
        return false;
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    const bool spelled = tl_spelling_set_mangled(order->mangled);
    const int r = order->make(order->context, i, &piece, &fail);
    tl_spelling_set_mangled(spelled);
    tl_cancel_set(before);
    pthread_mutex_lock(&order->lock);
    order->slots[i % order->n_slots] = (struct slot){r < 0 ? FAILED : MADE, piece};
    pthread_cond_signal(&order->done);
    pthread_mutex_unlock(&order->lock);
    return true;
}

struct tl_inorder *tl_inorder_new(struct tl_crew *crew, size_t n, size_t most,
                                  tl_inorder_make *make, void (*drop)(void *piece), void *context)
{
    struct tl_inorder *const order = calloc(1, sizeof *order);
    if (!order)
        return NULL;
    const size_t threads = crew ? tl_crew_threads(crew) : 0;
    order->n = n;
    order->make = make;
    order->drop = drop;
    order->context = context;
    order->mangled = tl_spelling_is_mangled();
    order->n_slots = threads < most ? threads + 1 : most;
    order->work = (struct tl_crew_work){.piece = make_next, .context = order};
    pthread_mutex_init(&order->lock, NULL);
    pthread_cond_init(&order->done, NULL);
    if (threads > 0 && n > 1 && tl_crew_offer(crew, &order->work) >= 0)
        order->crew = crew;
    return order;
}

void tl_inorder_free(struct tl_inorder *order)
{
    if (!order)
        return;
    atomic_store(&order->given_up, true);
    if (order->crew)
        tl_crew_withdraw(order->crew, &order->work);
    for (size_t i = 0; i < order->n_slots; i++)
        order->drop(order->slots[i].piece);
    pthread_cond_destroy(&order->done);
    pthread_mutex_destroy(&order->lock);
    free(order);
}

int tl_inorder_take(struct tl_inorder *order, void **out, struct tl_fail *fail)
{
    const size_t i = order->taken;
    struct slot *const slot = &order->slots[i % order->n_slots];
    *out = NULL;
    if (i == order->n)
        return TL_EOF;
    pthread_mutex_lock(&order->lock);
    order->begun += order->begun == i;
    while (slot->state == BEGUN)
        pthread_cond_wait(&order->done, &order->lock);
    const bool made = slot->state == MADE;
    *out = slot->piece;
    *slot = (struct slot){FREE, NULL};
    pthread_mutex_unlock(&order->lock);
    const int r = made ? TL_OK : order->make(order->context, i, out, fail);
    pthread_mutex_lock(&order->lock);
    order->taken++;
    pthread_mutex_unlock(&order->lock);
    if (order->crew)
        tl_crew_call(order->crew);
    return r;
}
