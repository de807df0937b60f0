/* SPDX-License-Identifier: MIT */
/*
 * Servers that can be stopped before each operation on their store: spools (the real code) with
 * sessions that own a trace, whose threads are coroutines. For test_ingest_ownership.c; one world
 * at a time.
 */
#ifndef TL_TESTS_STEPPED_SERVERS_H
#define TL_TESTS_STEPPED_SERVERS_H

#include "base/hash.h"
#include "raw/spool.h"
#include "store/backend_memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum {
    SERVERS = 3, /* including a fresh one, to which the rig connects at the end */
    THREADS = 2, /* of a spool */
    BYTES = 2,   /* of the capture */
    STACK = 128 << 10
};

static const char trace[] = "t";

/* Rules that can be violated, to check that the search notices. */
enum rule {
    RULES_HOLD,
    WRITES_PAST_THE_FENCE,     /* through an object that holds no lease */
    OPENS_BEFORE_IT_OWNS,      /* acquires the lease after it has determined where the bytes end */
    RELEASES_BEFORE_IT_CLOSES, /* pending data is written without the lease */
    REMEMBERS_OF_FORMER_OWNING /* keeps the end of the bytes from an earlier time as owner */
};

/* ---- coroutines ----------------------------------------------------------------------------- */

enum where { READY, BLOCKED, AT_OPERATION, AT_RIG, OVER };

struct server;

struct routine {
    ucontext_t context; /* start of the coroutine; later `place` is used */
    jmp_buf place;      /* where it continues; swapcontext() would be slow: it sets signal masks */
    bool begun;
    enum where where;
    struct server *server;
    void *(*run)(void *);
    void *argument;
    char *stack;
};

struct server {
    struct tl_backend base; /* what its spool uses */
    int number;
    struct tl_backend *real;
    struct tl_spool *spool;
    struct routine threads[THREADS], session;
    /* Hash of all results it has received since its session began: together with what its spool
     * remembers of the previous session, this is its whole state. */
    uint64_t seen;
    int64_t distrusts; /* end of the bytes when a commit failed; -1: none is remembered */
    /* The session: */
    struct tl_capture *capture;
    bool connected;
    unsigned attempt;  /* the rig's */
    uint64_t next;     /* offset of the next byte of the rig */
    int piece;         /* that byte; -1: none has arrived */
    char sent[BYTES];  /* bytes it appended in this session */
    uint64_t reported; /* offset at which the session began, as reported to the rig */
    uint64_t durable;
};

static struct {
    struct tl_backend *memory;   /* shared by the views of all servers; holds no lease itself */
    struct tl_backend *unfenced; /* another one */
    struct server servers[SERVERS + 1];
    struct routine *current;
    struct server *creating;
    jmp_buf scheduler;
    enum rule rule;
    bool held; /* someone holds the lease and it has not expired */
    int owner; /* its holder */
    bool refuse, reads;
    uint64_t bytes;
    /* The rig: */
    int at; /* server it is connected to; -1: none */
    bool answered;
    unsigned attempt;
    uint64_t acked, sent;
    char acknowledged[BYTES]; /* values of these bytes */
    char given[8][BYTES];     /* what each attempt sent; 0: nothing */
    char appended[BYTES];     /* attempt whose append here some server called durable; 0: none */
    unsigned connects, expiries, fails;
    char wrong[256]; /* the violated invariant */
} world;

static void wrong(const char *text)
{
    if (!world.wrong[0])
        snprintf(world.wrong, sizeof world.wrong, "%s", text);
}

static void leave(enum where where)
{
    struct routine *const r = world.current;
    r->where = where;
    if (_setjmp(r->place) == 0)
        _longjmp(world.scheduler, 1);
}

static void enter(void)
{
    struct routine *const r = world.current;
    r->run(r->argument);
    leave(OVER);
}

static void resume(struct routine *r)
{
    world.current = r;
    if (_setjmp(world.scheduler) == 0) {
        if (r->begun)
            _longjmp(r->place, 1);
        r->begun = true;
        setcontext(&r->context);
    }
    world.current = NULL;
}

static void begin(struct routine *r, struct server *s, void *(*run)(void *), void *argument)
{
    if (!r->stack)
        r->stack = malloc(STACK);
    r->server = s;
    r->run = run;
    r->argument = argument;
    r->where = READY;
    r->begun = false;
    getcontext(&r->context);
    r->context.uc_stack.ss_sp = r->stack;
    r->context.uc_stack.ss_size = STACK;
    r->context.uc_link = NULL;
    makecontext(&r->context, enter, 0);
}

/* The i-th coroutine of a server, its session last. */
static struct routine *routine(struct server *s, size_t i)
{
    return i < THREADS ? &s->threads[i] : &s->session;
}

/* A server runs until its threads and its session wait for something. */
static void run_on(struct server *s)
{
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i <= THREADS; i++)
            if (routine(s, i)->where == READY) {
                resume(routine(s, i));
                any = true;
            }
    }
}

/* The linker's --wrap redirects the creation of the spool's threads to this. */
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
                          void *p);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *p)
{
    struct routine *r = world.creating->threads;
    while (r->run)
        r++;
    begin(r, world.creating, run, p);
    *out = (pthread_t)(uintptr_t)r;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct routine *const r = (struct routine *)(uintptr_t)thread;
    while (r->where != OVER) {
        r->where = READY;
        resume(r);
    }
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    leave(BLOCKED);
    return pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    struct server *const s = world.current ? world.current->server : world.creating;
    for (size_t i = 0; i <= THREADS; i++)
        if (routine(s, i)->where == BLOCKED)
            routine(s, i)->where = READY;
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    return __wrap_pthread_cond_broadcast(cond);
}

/* Equal states must give equal bytes. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    *out = (struct timespec){1, 0};
    return 0;
}

/* ---- the backend as a server sees it ---- */

static uint64_t mix(uint64_t hash, const void *p, size_t n)
{
    hash = tl_fnv(hash, p, n);
    return hash ^ hash >> 29;
}

static void see(struct server *s, uint64_t what)
{
    s->seen = mix(s->seen, &what, sizeof what);
}

static int add_key(void *context, const char *key, uint64_t size)
{
    return tl_buf_add(context, key, strlen(key) + 1);
}

/* Hash of all bytes in the store. */
static uint64_t store_hash(void)
{
    static struct tl_buf keys, bytes;
    uint64_t hash = TL_FNV;
    tl_buf_reset(&keys);
    if (world.memory->ops->list(world.memory, "", add_key, &keys, NULL) < 0)
        abort();
    for (size_t at = 0; at < keys.n;) {
        const char *const key = (const char *)keys.p + at;
        tl_buf_reset(&bytes);
        if (world.memory->ops->get(world.memory, key, 0, SIZE_MAX, &bytes, NULL) < 0)
            abort();
        hash = mix(mix(hash, key, strlen(key)), bytes.p, bytes.n);
        at += strlen(key) + 1;
    }
    return hash;
}

struct seen_log {
    struct tl_log base;
    struct server *server;
    struct tl_log *real;
};

static struct server *server_of(struct tl_backend *backend)
{
    return (struct server *)backend;
}

static struct seen_log *log_of(struct tl_log *log)
{
    return (struct seen_log *)log;
}

/* Stop here until the search continues. */
static void operation(bool reads)
{
    if (reads && !world.reads)
        return;
    leave(AT_OPERATION);
    if (world.refuse)
        tl_backend_memory_refuse(world.memory, 0, 1, TL_IO);
}

static int done(struct server *s, int result)
{
    if (result < 0 && world.current != &s->session)
        s->distrusts = (int64_t)s->durable;
    tl_backend_memory_refuse(world.memory, 0, 0, TL_IO);
    see(s, (uint64_t)result);
    return result;
}

static struct tl_backend *inner(const struct server *s)
{
    return world.rule == WRITES_PAST_THE_FENCE ? world.unfenced : s->real;
}

static int seen_list(struct tl_backend *backend, const char *prefix,
                     int (*each)(void *context, const char *key, uint64_t size), void *context,
                     struct tl_fail *fail)
{
    struct server *const s = server_of(backend);
    operation(true);
    see(s, store_hash());
    return done(s, inner(s)->ops->list(inner(s), prefix, each, context, fail));
}

static int seen_open(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                     uint64_t *size, struct tl_fail *fail)
{
    struct server *const s = server_of(backend);
    struct seen_log *const log = calloc(1, sizeof *log);
    operation(false);
    const int r = done(s, inner(s)->ops->log_open(inner(s), key, create, &log->real, size, fail));
    if (r < 0) {
        free(log);
        return r;
    }
    see(s, *size);
    log->base.ops = backend->ops;
    log->server = s;
    *out = &log->base;
    return r;
}

static int seen_write(struct tl_log *base, uint64_t offset, const struct tl_bytes *parts,
                      size_t n_parts, struct tl_fail *fail)
{
    struct seen_log *const log = log_of(base);
    operation(false);
    return done(log->server, log->real->ops->log_write(log->real, offset, parts, n_parts, fail));
}

static int seen_read(struct tl_log *base, uint64_t offset, size_t n, struct tl_buf *out,
                     struct tl_fail *fail)
{
    struct seen_log *const log = log_of(base);
    const size_t before = out->n;
    const int r = log->real->ops->log_read(log->real, offset, n, out, fail);
    log->server->seen = mix(log->server->seen, out->p + before, out->n - before);
    return r;
}

static int seen_sync(struct tl_log *base, struct tl_fail *fail)
{
    struct seen_log *const log = log_of(base);
    operation(false);
    return done(log->server, log->real->ops->log_sync(log->real, fail));
}

static int seen_truncate(struct tl_log *base, uint64_t size, struct tl_fail *fail)
{
    struct seen_log *const log = log_of(base);
    operation(false);
    return done(log->server, log->real->ops->log_truncate(log->real, size, fail));
}

static void seen_close(struct tl_log *base)
{
    if (!base)
        return;
    log_of(base)->real->ops->log_close(log_of(base)->real);
    free(base);
}

static uint64_t seen_free_bytes(struct tl_backend *backend)
{
    return UINT64_MAX;
}

static const struct tl_backend_ops seen_ops = {
    .name = "seen",
    .list = seen_list,
    .log_open = seen_open,
    .log_write = seen_write,
    .log_read = seen_read,
    .log_sync = seen_sync,
    .log_truncate = seen_truncate,
    .log_close = seen_close,
    .free_bytes = seen_free_bytes,
};

/* ---- a server's session ---- */

static bool is_connected(const struct server *s)
{
    return s->connected && world.at == s->number;
}

static void on_durable(void *context, uint64_t offset)
{
    struct server *const s = context;
    for (uint64_t at = s->durable; at < offset; at++) {
        const char byte = s->sent[at];
        if (world.appended[at] && world.appended[at] != byte)
            wrong("two servers had an append at one offset succeed, with different bytes");
        world.appended[at] = byte;
        if (is_connected(s))
            world.acknowledged[at] = byte;
    }
    s->durable = offset;
    s->distrusts = -1;
    if (is_connected(s) && offset > world.acked)
        world.acked = offset;
}

static int take_lease(struct server *s, struct tl_lease **out)
{
    operation(false);
    const int r = done(s, s->real->ops->lease(s->real, trace, out, NULL));
    if (r >= 0) {
        world.held = true;
        world.owner = s->number;
    }
    return r;
}

static void give_lease(struct server *s, struct tl_lease *lease)
{
    operation(false);
    s->real->ops->lease_release(lease);
    if (world.held && world.owner == s->number)
        world.held = false;
    (void)done(s, TL_OK);
}

static void disconnect(struct server *s)
{
    if (is_connected(s))
        world.at = -1;
    s->connected = false;
}

/* Reply to a rig that has connected: where to continue. */
static void answer(struct server *s)
{
    s->durable = s->reported = s->next = tl_capture_durable(s->capture);
    if (!is_connected(s))
        return;
    if (s->reported < world.acked)
        wrong("a server takes over in front of what was acknowledged");
    world.answered = true;
    world.sent = s->reported;
    /* It may have reached this point before an acknowledgement was lost; the value is in
     * the store. */
    for (uint64_t at = world.acked; at < s->reported; at++)
        world.acknowledged[at] = 0;
    world.acked = s->reported > world.acked ? s->reported : world.acked;
}

static void serve(struct server *s)
{
    while (s->connected) {
        leave(AT_RIG);
        if (s->piece < 0)
            continue;
        const uint8_t byte = (uint8_t)s->piece;
        s->piece = -1;
        s->sent[s->next] = (char)byte;
        if (tl_capture_append(s->capture, s->next, (struct tl_bytes){&byte, 1}, NULL) < 0)
            return;
        s->next++;
    }
}

static int open_capture(struct server *s)
{
    return tl_capture_open(s->spool, trace, on_durable, s, &s->capture, NULL);
}

static void *session(void *context)
{
    struct server *const s = context;
    struct tl_lease *lease = NULL;
    int r = TL_OK;
    s->capture = NULL;
    if (world.rule == OPENS_BEFORE_IT_OWNS)
        r = open_capture(s);
    if (r >= 0)
        r = take_lease(s, &lease);
    if (r >= 0 && world.rule != REMEMBERS_OF_FORMER_OWNING) {
        tl_spool_forget(s->spool, trace);
        s->distrusts = -1;
    }
    if (r >= 0 && !s->capture)
        r = open_capture(s);
    if (r >= 0) {
        answer(s);
        serve(s);
    }
    disconnect(s);
    if (lease && world.rule == RELEASES_BEFORE_IT_CLOSES)
        give_lease(s, lease);
    tl_capture_close(s->capture);
    if (lease && world.rule != RELEASES_BEFORE_IT_CLOSES)
        give_lease(s, lease);
    s->capture = NULL;
    s->seen = 0;
    return NULL;
}

#endif
