/* SPDX-License-Identifier: MIT */
/*
 * How long small calls of one client take while others attack the server in each of the ways that
 * it should withstand. Written in C, and with attackers that have a lower priority, so that what is
 * measured is the server and not its clients, which are on other machines in reality.
 *
 * usage: attack URL SECONDS     prints rows as bench/report.h; the server has a trace "t"
 */
#include "bench/report.h"
#include "unit/h2_client.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK  "/grpc.health.v1.Health/Check"
#define LIST   "/tracelake.v1.Catalog/ListTraces"
#define VERIFY "/tracelake.v1.Catalog/Verify"
#define FETCH  "/tracelake.v1.Ranges/Fetch"

#define STREAMS   100 /* of a connection */
#define SETTLE_US 500000

static const uint8_t empty[5];
static const char *url;

/* ---- attackers, each in a process of its own ------------------------------------------------- */

/* Take part in HTTP/2, but for ever. */
static void stay(struct h2_client **clients, size_t n)
{
    for (;;) {
        for (size_t i = 0; i < n; i++)
            if (!clients[i]->eof)
                h2_step(clients[i], 0);
        usleep(20000);
    }
}

/* Connections with part of a head. */
static void unfinished_heads(void)
{
    enum { CONNECTIONS = 400 };
    static const char head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                               "\0\0\0\x04\0\0\0\0\0"
                               "\0\0\x01\x01\0\0\0\0\x01\x82";
    for (;;) {
        int fds[CONNECTIONS];
        for (int i = 0; i < CONNECTIONS; i++) {
            fds[i] = tcp_connect(url);
            (void)!send(fds[i], head, sizeof head - 1, MSG_NOSIGNAL);
        }
        sleep(1);
        for (int i = 0; i < CONNECTIONS; i++)
            close(fds[i]);
    }
}

/* Large heads of requests that never end. */
static void large_heads(void)
{
    enum { CONNECTIONS = 20, BYTES = 60000 };
    struct h2_client *clients[CONNECTIONS];
    char *const value = malloc(BYTES + 1);
    memset(value, 'x', BYTES);
    value[BYTES] = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = h2_connect(url);
        for (int k = 0; k < STREAMS; k++)
            h2_request(clients[i], "POST", LIST, false, "content-type", "application/grpc", "x",
                       value, NULL);
        h2_step(clients[i], 0);
    }
    stay(clients, CONNECTIONS);
}

static void ask(struct h2_client *c, const char *path, const ProtobufCMessage *message)
{
    h2_send_message(c, h2_call(c, path), message, true);
}

static void many(size_t n, uint32_t window, const char *path, const ProtobufCMessage *message)
{
    struct h2_client *clients[16];
    for (size_t i = 0; i < n; i++) {
        clients[i] = h2_connect_from(url, NULL, window);
        for (int k = 0; k < STREAMS; k++)
            ask(clients[i], path, message);
    }
    stay(clients, n);
}

/* Answers that are not taken. */
static void no_window(void)
{
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    many(9, 0, FETCH, &request.base);
}

/* Long work. */
static void verify(void)
{
    Tracelake__V1__VerifyRequest request = TRACELAKE__V1__VERIFY_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    many(8, 1 << 20, VERIFY, &request.base);
}

/* Connections full of streams whose message does not end. */
static void full_of_streams(void)
{
    enum { CONNECTIONS = 9 };
    static const uint8_t half[] = {0, 0, 0, 0, 9, 1};
    struct h2_client *clients[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = h2_connect(url);
        for (int k = 0; k < STREAMS; k++)
            h2_send(clients[i], h2_call(clients[i], i & 1 ? CHECK : LIST), half, sizeof half,
                    false);
    }
    stay(clients, CONNECTIONS);
}

/* The same frame as fast as it is taken, on a new connection whenever one is closed. */
static void flood_with(const uint8_t *frame, size_t n)
{
    enum { AT_ONCE = 1000 };
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    uint8_t *const frames = malloc(AT_ONCE * n);
    for (size_t i = 0; i < AT_ONCE; i++)
        memcpy(frames + i * n, frame, n);
    for (;;) {
        const int fd = tcp_connect(url);
        ssize_t put = send(fd, preface, sizeof preface - 1, MSG_NOSIGNAL);
        while (put > 0)
            put = send(fd, frames, AT_ONCE * n, MSG_NOSIGNAL);
        close(fd);
    }
}

static void pings(void)
{
    static const uint8_t frame[17] = {0, 0, 8, 6};
    flood_with(frame, sizeof frame);
}

static void settings(void)
{
    static const uint8_t frame[9] = {0, 0, 0, 4};
    flood_with(frame, sizeof frame);
}

/* Requests that are cancelled at once. */
static void resets(void)
{
    for (;;) {
        struct h2_client *const c = h2_connect(url);
        for (int i = 0; i < 2 * STREAMS && !c->eof; i++) {
            struct h2_exchange *const x = h2_request(c, "GET", "/readyz", true, NULL);
            nghttp2_submit_rst_stream(c->session, 0, x->id, NGHTTP2_CANCEL);
            if (i % 10 == 9)
                h2_step(c, 0);
        }
        h2_free(c);
    }
}

static const struct attack {
    const char *name;
    void (*run)(void);
} attacks[] = {
    {"400 unfinished heads", unfinished_heads},
    {"heads of 60 KB", large_heads},
    {"no window", no_window},
    {"9 connections full of streams", full_of_streams},
    {"verify", verify},
    {"PING flood", pings},
    {"SETTINGS flood", settings},
    {"rapid reset", resets},
};
#define ATTACKS (sizeof attacks / sizeof *attacks)

static pid_t start(const struct attack *attack)
{
    const pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, 19);
    attack->run();
    _exit(0);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- the client that is measured ------------------------------------------------------------- */

enum { MOST = 50000, CALLS = 10 /* of each kind on a connection */ };

static const char *const paths[] = {CHECK, LIST};
static const char *const kinds[] = {"Health.Check, 99 %", "ListTraces, 99 %"};
#define KINDS (sizeof paths / sizeof *paths)

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void call(struct h2_client *c, const char *path)
{
    struct h2_exchange *const x = h2_call(c, path);
    h2_send(c, x, empty, sizeof empty, true);
    h2_finish(c, x);
    if (h2_grpc_status(x) != 0) {
        fprintf(stderr, "attack: %s: status %d: %s\n", path, h2_grpc_status(x), h2_grpc_text(x));
        exit(1);
    }
}

/* The 99th percentile, in ms, of each kind of call; every tenth one includes a new connection. */
static void measure(double seconds, double out[KINDS])
{
    static double took[KINDS][MOST];
    const double until = bench_now() + seconds;
    size_t n = 0;
    for (; bench_now() < until && (n + 1) * CALLS <= MOST; n++) {
        struct h2_client *c = NULL;
        for (size_t i = 0; i < KINDS * CALLS; i++) {
            const size_t kind = i / CALLS ^ (n & 1);
            const double begin = bench_now();
            if (!c)
                c = h2_connect_from(url, "127.0.0.2", 1 << 20);
            call(c, paths[kind]);
            took[kind][n * CALLS + i % CALLS] = bench_now() - begin;
            usleep(1000);
        }
        h2_free(c);
    }
    for (size_t k = 0; k < KINDS; k++) {
        qsort(took[k], n * CALLS, sizeof **took, ascending);
        out[k] = took[k][n * CALLS * 99 / 100] * 1e3;
    }
}

static void report(const char *attack, double seconds, const double idle[KINDS])
{
    double now[KINDS];
    usleep(SETTLE_US);
    measure(seconds, now);
    for (size_t k = 0; k < KINDS; k++)
        bench_report(kinds[k], attack, now[k], "ms", "idle", idle[k]);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: attack URL SECONDS\n");
        return 2;
    }
    url = argv[1];
    const double seconds = atof(argv[2]);
    double idle[KINDS];
    measure(seconds, idle);
    pid_t pids[ATTACKS];
    for (size_t i = 0; i < ATTACKS; i++) {
        pids[i] = start(&attacks[i]);
        report(attacks[i].name, seconds, idle);
        end(pids[i]);
    }
    for (size_t i = 0; i < ATTACKS; i++)
        pids[i] = start(&attacks[i]);
    report("all of it at once", seconds, idle);
    for (size_t i = 0; i < ATTACKS; i++)
        end(pids[i]);
    return 0;
}
