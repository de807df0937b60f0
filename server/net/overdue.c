/* SPDX-License-Identifier: MIT */
/*
 * Ends requests that do not arrive and answers that their clients do not take. Both hold memory,
 * so that a client which only waits would otherwise keep it from all others.
 */
#include "net/h2.h"

/* A request that does not arrive. Returns false if the connection cannot go on. */
static bool end_late(struct tl_h2 *h2, struct tl_stream *stream, uint64_t now)
{
    if (!stream->due || now < stream->due)
        return true;
    if (stream->owed) { /* we ourselves do not let it send */
        tl_stream_await(stream);
        return true;
    }
    stream->due = 0;
    if (!stream->dispatched) { /* in the middle of its head, and nothing else can be sent */
        nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
        return false;
    }
    stream->late = true;
    if (stream->is_grpc)
        tl_stream_give_up(stream);
    else
        tl_h2_begin_http(stream);
    return true;
}

/* Is there something for the client that it does not take? */
static bool waits_for_client(struct tl_stream *stream)
{
    return stream->submitted && !stream->deferred && tl_stream_pending(stream);
}

/*
 * An answer of which the client takes nothing, because it gives no window or does not read from the
 * socket. One that is produced while it is sent may pause for any time, if its client holds little.
 */
static void end_stalled(struct tl_h2 *h2, struct tl_stream *stream, uint64_t now)
{
    struct tl_net *const net = h2->conn->loop->net;
    if (!waits_for_client(stream))
        stream->moved_at = now;
    if (now - stream->moved_at < net->options.answer_ms ||
        (atomic_load(&stream->lasting) && tl_account_little(stream->account, TL_USE_ANSWERS)))
        return;
    stream->stalls = true;
    atomic_fetch_add(&net->stats.stalled, 1);
    nghttp2_submit_rst_stream(h2->session, 0, stream->id, NGHTTP2_ENHANCE_YOUR_CALM);
}

bool tl_h2_end_overdue(struct tl_h2 *h2, uint64_t now)
{
    const bool full = h2->out.count && now - h2->moved_at >= h2->conn->loop->net->options.answer_ms;
    bool goes_on = true;
    for (struct tl_stream *s = h2->streams, *next; s && goes_on; s = next) {
        next = s->next;
        if (s->stalls && full)
            return false;
        goes_on = end_late(h2, s, now);
        if (goes_on && !s->stalls)
            end_stalled(h2, s, now);
    }
    return true;
}
