/* SPDX-License-Identifier: MIT */
/*
 * Hashes of what rigs sent, by which a capture is known wherever it was copied to. A capture is
 * hashed when it is complete, some of it at a time, so that retention does not wait for it. A
 * server that ends begins the hash it was at anew.
 */
#include "lake/lakeint.h"
#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE (UINT64_C(512) << 20) /* bytes hashed in a round of the housekeeper */

struct tl_contents {
    char id[64];
    struct tl_spool_reader *reader;
    uint64_t at, end; /* raw offsets: what is hashed, what there is */
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

/* A complete capture without a hash that has not refused to be read, with a reference. */
static struct tl_trace *next_trace(struct tl_lake *lake)
{
    struct tl_trace *found = NULL;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (t->complete && !t->deleted && !t->raw_removed && !t->content[0] && !t->unhashed &&
            !t->unread && tl_trace_mine_locked(t))
            found = tl_trace_get(t);
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return found;
}

/* Those that the medium refused to read are tried again. Returns whether there are any. */
static bool retry_unread(struct tl_lake *lake)
{
    bool any = false;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t; t = t->next) {
        pthread_mutex_lock(&t->lock);
        any = any || t->unread;
        t->unread = false;
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return any;
}

static int begin(struct tl_lake *lake, struct tl_trace *trace)
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

/* Damaged bytes are not tried again until the server starts anew. */
static void finish(struct tl_trace *trace, struct tl_contents *c, bool whole)
{
    char text[TL_HASH_TEXT] = "";
    const bool known = whole && tl_hash_end(c->hash, text) >= 0;
    pthread_mutex_lock(&trace->lock);
    snprintf(trace->content, sizeof trace->content, "%s", text);
    trace->unhashed = !known;
    trace->revision++;
    pthread_mutex_unlock(&trace->lock);
    /* Not written: it is known until the server ends, and then found again. */
    if (known && tl_trace_save_quietly(trace, NULL) >= 0)
        tl_lake_notify(trace->lake);
}

/* The others come first. */
static void put_off(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->unread = true;
    pthread_mutex_unlock(&trace->lock);
}

/* Some more of the capture in hand. TL_OK: there is more of it; TL_EOF: it is done; TL_BAD: its
 * bytes are damaged or missing; else it may be tried again. */
static int hash_some(struct tl_lake *lake, struct tl_contents *c)
{
    struct tl_buf piece = {0};
    uint64_t done = 0;
    int r = c->at == c->end ? TL_EOF : TL_OK;
    while (r == TL_OK && done < AT_ONCE && !atomic_load(&lake->closing)) {
        tl_buf_reset(&piece);
        r = tl_spool_read(c->reader, c->at, c->end, &piece, NULL);
        if (r == TL_EOF || r == TL_NOTFOUND) /* before the end: there should be more */
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

bool tl_contents_hash(struct tl_lake *lake)
{
    struct tl_trace *const trace = next_trace(lake);
    if (!trace)
        return retry_unread(lake);
    int r = TL_OK;
    if (lake->contents && strcmp(lake->contents->id, trace->id) != 0)
        tl_contents_free(lake); /* another one is newer, or it is gone */
    if (!lake->contents)
        r = begin(lake, trace);
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
