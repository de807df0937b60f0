/* SPDX-License-Identifier: MIT */
/*
 * Distributes pieces of work to the calling thread and idle threads of the crew. The caller takes
 * part, so that a query proceeds when decoding uses all other threads.
 */
#include "query/sweep.h"

#include "base/cancel.h"
#include "base/crew.h"
#include "base/spelling.h"

struct sweep {
    size_t n;
    tl_sweep_piece *piece;
    void *context;
    bool mangled; /* spelling of names, for the threads of the crew too */
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    size_t next;
    uint64_t workers; /* bit set of workers that are processing a piece */
    int result;
    struct tl_fail fail;
};

unsigned tl_sweep_workers(const struct tl_lake *lake)
{
    const unsigned most = 63;
    const unsigned crew = lake->crew ? tl_crew_threads(lake->crew) : 0;
    return 1 + (crew < most ? crew : most);
}

static bool do_piece(void *context)
{
    struct sweep *const s = context;
    struct tl_fail fail = {0};
    pthread_mutex_lock(&s->lock);
    if (s->next == s->n || s->result < 0) {
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    const size_t i = s->next++;
    const unsigned worker = (unsigned)__builtin_ctzll(~s->workers);
    s->workers |= UINT64_C(1) << worker;
    pthread_mutex_unlock(&s->lock);
    const bool spelled = tl_spelling_set_mangled(s->mangled);
    const int r = s->piece(s->context, worker, i, &fail);
    tl_spelling_set_mangled(spelled);
    pthread_mutex_lock(&s->lock);
    s->workers &= ~(UINT64_C(1) << worker);
    if (r < 0 && s->result >= 0) {
        s->result = r;
        s->fail = fail;
    }
    pthread_mutex_unlock(&s->lock);
    return true;
}

int tl_sweep(struct tl_lake *lake, size_t n, tl_sweep_piece *piece, void *context,
             struct tl_fail *fail)
{
    struct sweep s = {.n = n,
                      .piece = piece,
                      .context = context,
                      .mangled = tl_spelling_is_mangled(),
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    struct tl_crew_work work = {.piece = do_piece, .context = &s};
    const bool offered = n > 1 && lake->crew && tl_crew_offer(lake->crew, &work) >= 0;
    int cancelled = TL_OK;
    tl_crew_enter(lake->crew);
    while ((cancelled = tl_cancel_rest()) >= 0 && do_piece(&s))
        ;
    tl_crew_exit(lake->crew);
    if (cancelled < 0) {
        pthread_mutex_lock(&s.lock);
        s.result = s.result < 0 ? s.result : cancelled;
        pthread_mutex_unlock(&s.lock);
    }
    if (offered)
        tl_crew_withdraw(lake->crew, &work);
    pthread_mutex_destroy(&s.lock);
    if (s.result < 0 && fail && s.fail.text[0])
        *fail = s.fail;
    return s.result;
}
