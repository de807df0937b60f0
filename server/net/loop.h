/* SPDX-License-Identifier: MIT */
/* An event loop with its own thread, and a mailbox for other threads. */
#ifndef TL_NET_LOOP_H
#define TL_NET_LOOP_H

#include "base/err.h"

#include <pthread.h>
#include <uv.h>

struct tl_loop;

/* Work for the loop's thread; embed it. Must not be posted again before it has begun to run. */
struct tl_task {
    struct tl_task *next;
    void (*run)(struct tl_task *task);
};

struct tl_loop {
    uv_loop_t uv; /* loop thread only */
    uv_async_t wake;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the list */
    struct tl_task *head;
    struct tl_task **tail;
    void (*after)(struct tl_loop *loop); /* set before the start: called after each batch */
};

/* Start the thread. The loop must not be moved. */
TL_MUST_USE int tl_loop_start(struct tl_loop *loop, const char *name, struct tl_fail *fail);

/* Run the task on the loop's thread soon, after tasks posted earlier. Any thread. */
void tl_loop_post(struct tl_loop *loop, struct tl_task *task);

/*
 * Bracket code on the loop's thread that posts tasks to its own loop: tl_loop_leave() runs the
 * tasks posted so far, which avoids waking the thread.
 */
void tl_loop_enter(struct tl_loop *loop);
void tl_loop_leave(struct tl_loop *loop);

/* End the thread once all handles except the mailbox are closed. Not from the loop's thread. */
void tl_loop_stop(struct tl_loop *loop);

#endif
