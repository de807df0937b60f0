/* SPDX-License-Identifier: MIT */
/*
 * Metrics of the network layer as Prometheus text. Counters are atomic, so that a scrape delays no
 * call.
 */
#include "net/grpc.h"
#include "net/http.h"
#include "net/netint.h"

static int add_counters(const struct tl_net *net, struct tl_buf *out)
{
    const struct tl_net_stats *const s = &net->stats;
    uint64_t inbound = 0;
    for (size_t i = 0; i < TL_ROLE_CLASSES; i++)
        inbound += atomic_load(&net->shares.of[TL_USE_INBOUND + i].used);
    const struct tl_metric rows[] = {
        {"connections_total", "Connections accepted.", atomic_load(&s->connections)},
        {"connections_open", "HTTP/2 and unidentified connections.",
         atomic_load(&s->connections_open)},
        {"connections_refused_total", "Connections closed for want of room.",
         atomic_load(&s->refused)},
        {"requests_denied_total", "Requests without a token that allows them.",
         atomic_load(&s->denied)},
        {"network_received_bytes_total", "Bytes read, HTTP/2 and TLS.", atomic_load(&s->bytes_in)},
        {"network_sent_bytes_total", "Bytes written, HTTP/2 and TLS.", atomic_load(&s->bytes_out)},
        {"http2_streams_total", "HTTP/2 requests begun.", atomic_load(&s->streams)},
        {"http2_floods_total", "Connections closed for a flood of empty frames.",
         atomic_load(&s->floods)},
        {"answers_stalled_total", "Answers ended since their clients took nothing of them.",
         atomic_load(&s->stalled)},
        {"grpc_inbound_bytes", "Received messages that wait for a handler.", inbound},
    };
    return tl_metrics_add(out, rows, sizeof rows / sizeof *rows);
}

static int add_results(const struct tl_net_stats *s, struct tl_buf *out)
{
    int rc = tl_metric_begin(out, "grpc_calls_total", "Calls ended, by status code.");
    for (int i = 0; i < 17 && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "grpc_calls_total", atomic_load(&s->grpc_status[i]),
                              "code=\"%d\"", i);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "http_responses_total", "Responses, by class.");
    for (int i = 1; i < 6 && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "http_responses_total", atomic_load(&s->http_class[i]),
                              "class=\"%dxx\"", i);
    return rc;
}

/* Only for routes and methods that were used: the others would be many lines of zeros. */
static int add_times(const struct tl_net *net, struct tl_buf *out)
{
    static const char http[] = "http_request_seconds";
    static const char grpc[] = "grpc_call_seconds";
    int rc = tl_histogram_begin(out, http, "Until a response is made, its stream not counted.");
    for (size_t i = 0; i < net->app.n_routes && rc == TL_OK; i++)
        if (tl_histogram_used(&net->route_times[i]))
            rc = tl_histogram_series(out, http, &net->route_times[i], "route",
                                     net->app.routes[i].pattern);
    if (rc == TL_OK)
        rc = tl_histogram_begin(out, grpc, "Of calls with one reply.");
    for (size_t i = 0; i < net->app.n_methods && rc == TL_OK; i++)
        if (tl_histogram_used(&net->method_times[i]))
            rc = tl_histogram_series(out, grpc, &net->method_times[i], "method",
                                     net->app.methods[i].path);
    return rc;
}

int tl_net_metrics(const struct tl_net *net, struct tl_buf *out)
{
    int rc = add_counters(net, out);
    if (rc == TL_OK)
        rc = add_results(&net->stats, out);
    if (rc == TL_OK)
        rc = add_times(net, out);
    if (rc == TL_OK)
        rc = tl_shares_metrics(&net->shares, out);
    return rc == TL_OK ? tl_workers_metrics(net->workers, out) : rc;
}
