/* SPDX-License-Identifier: MIT */
/*
 * Hashes of raw bytes, by which a capture is identified wherever it was copied to. A capture is
 * hashed once it is complete, in steps, so that retention is not delayed. An interrupted hash is
 * started again at the next server start.
 */
#include "lake/lakeint.h"
#include "store/hash.h"
#include "upkeep/housekeeper.h"

#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE (UINT64_C(512) << 20) /* bytes hashed per round of the housekeeper */

struct tl_contents {
    char id[64];
    struct tl_spool_reader *reader;
    uint64_t at, end; /* raw offsets: how much is hashed, and the end */
    struct tl_hash *hash;
};

void tl_contents_free(struct tl_lake *lake)
{
    if (!lake->contents)
        return;
    tl_spool_reader_free(lake->contents->reader);
    tl_hash_free(lake->contents->hash);
    free(lake->contents);
    lake->contents = NULL;
}

/* Is it a complete capture without a hash, whose bytes could be read so far? */
static bool is_due_locked(const struct tl_trace *trace)
{
    return (tl_trace_owed_locked(trace) & TL_OWED_HASH) && !trace->deleted &&
           trace->content_state != TL_CONTENT_UNREAD && tl_trace_mine_locked(trace);
}

/* Retry captures that the medium failed to read. Returns whether there are any. */
static bool retry_unread(struct tl_lake *lake)
{
    bool any = false;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (t->content_state == TL_CONTENT_UNREAD) {
            t->content_state = TL_CONTENT_UNKNOWN;
            any = true;
        }
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return any;
}

static int begin_contents(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_contents *const c = calloc(1, sizeof *c);
    if (!c)
        return TL_NOMEM;
    lake->contents = c;
    snprintf(c->id, sizeof c->id, "%s", trace->id);
    pthread_mutex_lock(&trace->lock);
    c->end = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_hash_new(&c->hash);
    return r < 0 ? r : tl_spool_reader_new(&c->reader, lake->backend, trace->id);
}

/* Damaged bytes are not retried until the next server start. */
static void finish(struct tl_trace *trace, struct tl_contents *c, bool whole)
{
    char text[TL_HASH_TEXT] = "";
    const bool known = whole && tl_hash_end(c->hash, text) >= 0;
    pthread_mutex_lock(&trace->lock);
    tl_trace_set_content_locked(trace, text);
    if (!known)
        trace->content_state = TL_CONTENT_DAMAGED;
    trace->revision++;
    pthread_mutex_unlock(&trace->lock);
    /* If it cannot be written: known until the server ends, and then computed again. */
    if (known && tl_trace_save_quietly(trace, NULL) >= 0)
        tl_lake_notify(trace->lake);
}

/* Postpone it: others are hashed first. */
static void put_off(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    if (trace->content_state == TL_CONTENT_UNKNOWN)
        trace->content_state = TL_CONTENT_UNREAD;
    pthread_mutex_unlock(&trace->lock);
}

/* Hash some more of the current capture. TL_OK: not finished; TL_EOF: finished; TL_BAD: its bytes
 * are damaged or missing; other errors may be retried. */
static int hash_some(struct tl_lake *lake, struct tl_contents *c)
{
    struct tl_buf piece = {0};
    uint64_t done = 0;
    int r = c->at == c->end ? TL_EOF : TL_OK;
    while (r == TL_OK && done < AT_ONCE && !atomic_load(&lake->closing)) {
        tl_buf_reset(&piece);
        r = tl_spool_read(c->reader, c->at, c->end, &piece, NULL);
        if (r == TL_EOF || r == TL_NOTFOUND) /* before the end: bytes are missing */
            r = TL_BAD;
        if (r == TL_OK)
            r = tl_hash_add(c->hash, (struct tl_bytes){piece.p, piece.n});
        c->at += piece.n;
        done += piece.n;
        if (r == TL_OK && c->at == c->end)
            r = TL_EOF;
    }
    tl_buf_fini(&piece);
    return r;
}

bool tl_contents_hash(struct tl_lake *lake, bool *soon)
{
    struct tl_trace *const trace = tl_lake_find_due(lake, is_due_locked, soon);
    if (!trace)
        return retry_unread(lake);
    int r = TL_OK;
    if (lake->contents && strcmp(lake->contents->id, trace->id) != 0)
        tl_contents_free(lake); /* replaced by a newer one, or deleted */
    if (!lake->contents)
        r = begin_contents(lake, trace);
    if (r >= 0)
        r = hash_some(lake, lake->contents);
    if (r == TL_EOF || r == TL_BAD)
        finish(trace, lake->contents, r == TL_EOF);
    else if (r < 0)
        put_off(trace);
    if (r < 0)
        tl_contents_free(lake);
    tl_trace_put(trace);
    return true;
}
