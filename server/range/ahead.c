/* SPDX-License-Identifier: MIT */
/*
 * Lets the crew regenerate the next virtual shard while the reader uses the current one. Work that
 * the crew has not begun is done by the reader, as waiting for a busy crew could last longer than
 * the work.
 */
#include "range/ahead.h"
#include "base/cancel.h"

#include "base/crew.h"

#include <stdlib.h>

enum state { NOTHING, WANTED, BEGUN, DONE };

struct tl_ahead {
    struct tl_crew *crew;
    struct tl_crew_work work;
    atomic_bool given_up;
    pthread_mutex_t lock;
    pthread_cond_t done;
    /* Protected by the lock: */
    enum state state;
    struct tl_view *view, *made; /* referenced; `made` is NULL after an error */
    size_t to;
};

static bool is_given_up(void *context)
{
    const struct tl_ahead *const ahead = context;
    return atomic_load(&ahead->given_up);
}

/* Runs on the crew. */
static bool make(void *context)
{
    struct tl_ahead *const ahead = context;
    pthread_mutex_lock(&ahead->lock);
    const bool mine = ahead->state == WANTED;
    if (mine)
        ahead->state = BEGUN;
    pthread_mutex_unlock(&ahead->lock);
    if (!mine)
        return false;
    const struct tl_cancel cancel = {.asked = is_given_up, .context = ahead};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    struct tl_fail fail = {0};
    struct tl_view *made = NULL;
    if (tl_view_part(ahead->view, 0, ahead->to, false, &made, &fail) < 0)
        made = NULL; /* the reader tries again, and reports the error */
    tl_cancel_set(before);
    pthread_mutex_lock(&ahead->lock);
    ahead->made = made;
    ahead->state = DONE;
    pthread_cond_signal(&ahead->done);
    pthread_mutex_unlock(&ahead->lock);
    return true;
}

struct tl_ahead *tl_ahead_new(struct tl_crew *crew)
{
    if (!crew || tl_crew_threads(crew) == 0)
        return NULL;
    struct tl_ahead *const ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return NULL;
    ahead->crew = crew;
    ahead->work = (struct tl_crew_work){.piece = make, .context = ahead};
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->done, NULL);
    if (tl_crew_offer(crew, &ahead->work) >= 0)
        return ahead;
    pthread_cond_destroy(&ahead->done);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
    return NULL;
}

/* The result, if it has been begun; afterwards there is none. */
static struct tl_view *take(struct tl_ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    while (ahead->state == BEGUN)
        pthread_cond_wait(&ahead->done, &ahead->lock);
    struct tl_view *const made = ahead->made;
    tl_view_put(ahead->view);
    ahead->view = ahead->made = NULL;
    ahead->state = NOTHING;
    pthread_mutex_unlock(&ahead->lock);
    return made;
}

void tl_ahead_free(struct tl_ahead *ahead)
{
    if (!ahead)
        return;
    atomic_store(&ahead->given_up, true);
    tl_view_put(take(ahead));
    tl_crew_withdraw(ahead->crew, &ahead->work);
    pthread_cond_destroy(&ahead->done);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

void tl_ahead_want(struct tl_ahead *ahead, struct tl_view *view, size_t to)
{
    tl_view_put(take(ahead));
    pthread_mutex_lock(&ahead->lock);
    ahead->view = tl_view_get(view);
    ahead->to = to;
    ahead->state = WANTED;
    pthread_mutex_unlock(&ahead->lock);
    tl_crew_call(ahead->crew);
}

struct tl_view *tl_ahead_take(struct tl_ahead *ahead, const struct tl_view *view)
{
    /* Only the calling thread changes `view`. */
    return ahead->view == view ? take(ahead) : NULL;
}
