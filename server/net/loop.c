/* SPDX-License-Identifier: MIT */
/*
 * Runs an event loop in a thread, and the tasks that other threads post to it. Tasks that the loop
 * posts to itself run at the end of its turn, without the system call that wakes a thread.
 */
#include "net/loop.h"

#include <stddef.h>

/* The loop of this thread, between tl_loop_enter() and tl_loop_leave(). */
static _Thread_local const struct tl_loop *entered;

static void run_tasks(struct tl_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct tl_task *task = loop->head;
    loop->head = NULL;
    loop->tail = &loop->head;
    pthread_mutex_unlock(&loop->lock);
    while (task) {
        struct tl_task *const next = task->next; /* run() may free or repost it */
        task->run(task);
        task = next;
    }
    if (loop->after)
        loop->after(loop);
}

static void on_wake(uv_async_t *wake)
{
    run_tasks(wake->data);
}

void tl_loop_enter(struct tl_loop *loop)
{
    entered = loop;
}

void tl_loop_leave(struct tl_loop *loop)
{
    entered = NULL;
    run_tasks(loop);
}

static void *loop_main(void *argument)
{
    struct tl_loop *const loop = argument;
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

int tl_loop_start(struct tl_loop *loop, const char *name, struct tl_fail *fail)
{
    int rc = uv_loop_init(&loop->uv);
    if (rc)
        return tl_fail_set(fail, TL_IO, "event loop: %s", uv_strerror(rc));
    rc = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (rc) {
        uv_loop_close(&loop->uv);
        return tl_fail_set(fail, TL_IO, "event loop: %s", uv_strerror(rc));
    }
    loop->wake.data = loop;
    pthread_mutex_init(&loop->lock, NULL);
    loop->head = NULL;
    loop->tail = &loop->head;
    if (pthread_create(&loop->thread, NULL, loop_main, loop)) {
        uv_close((uv_handle_t *)&loop->wake, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
        uv_loop_close(&loop->uv);
        pthread_mutex_destroy(&loop->lock);
        return tl_fail_set(fail, TL_IO, "event loop: cannot start a thread");
    }
    pthread_setname_np(loop->thread, name);
    return TL_OK;
}

void tl_loop_post(struct tl_loop *loop, struct tl_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&loop->lock);
    *loop->tail = task;
    loop->tail = &task->next;
    /* Lock held: the loop cannot end before the task is in its list. */
    if (entered != loop)
        uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

struct stop_task {
    struct tl_task task;
    struct tl_loop *loop;
};

static void stop(struct tl_task *task)
{
    struct stop_task *const s = (struct stop_task *)task;
    uv_close((uv_handle_t *)&s->loop->wake, NULL);
}

void tl_loop_stop(struct tl_loop *loop)
{
    struct stop_task s = {.task.run = stop, .loop = loop};
    tl_loop_post(loop, &s.task);
    pthread_join(loop->thread, NULL);
    uv_loop_close(&loop->uv);
    pthread_mutex_destroy(&loop->lock);
}
