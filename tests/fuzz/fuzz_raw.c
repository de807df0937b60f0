/* SPDX-License-Identifier: MIT */
/*
 * The TCP ports for raw trace (`serve --raw`): any bytes, cut anywhere, sent to a listener of any
 * format. The first byte chooses the listener, the second how the bytes are cut. The bytes stored
 * are those sent, and the server finishes with any of them. The last choice uses the rest as an
 * argument of --raw.
 */
#include "lake/lakeint.h"
#include "lake_raw.h"
#include "opening/open.h"
#include "rpc/raw.h"
#include "store/backend_memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUTS_PER_LAKE 2000  /* then a new one is created, so that memory does not fill up */
#define ALIVE_MS        60000 /* longer than a busy machine needs */

static const char *const formats[] = {"tpiu,sync=fsync",
                                      "tpiu,sync=none",
                                      "etm4,id=0x10",
                                      "ete,id=0x10",
                                      "itm,id=1",
                                      "stm,id=1",
                                      "di",
                                      "pt",
                                      "perf",
                                      "stf"};
enum { FORMATS = sizeof formats / sizeof *formats };

static struct {
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct tl_raw *raw;
    uint16_t ports[FORMATS];
    unsigned inputs;
} server;

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_raw: %s\n", what);
    abort();
}

/* ---- the server --------------------------------------------------------------------------- */

static void quiet(const char *line)
{
}

static void stop_server(void)
{
    tl_raw_free(server.raw);
    tl_lake_close(server.lake);
    tl_backend_free(server.backend);
    server.raw = NULL;
    server.lake = NULL;
    server.backend = NULL;
}

static void start_server(void)
{
    const struct tl_lake_options lake = {.min_free_bytes = 1, .decode_threads = 1};
    struct tl_fail fail = {0};
    need(tl_backend_memory(&server.backend) >= 0, "no memory");
    need(tl_lake_open_on(&server.lake, server.backend, &lake, &fail) >= 0, fail.text);
    need(tl_raw_new(&server.raw, server.lake, quiet) >= 0, "no memory");
    for (size_t i = 0; i < FORMATS; i++) {
        struct tl_raw_spec spec;
        char text[128], url[96];
        snprintf(text, sizeof text, "127.0.0.1:0,format=%s,rig=probe", formats[i]);
        need(tl_raw_parse(&spec, server.lake, text, &fail) >= 0 &&
                 tl_raw_listen(server.raw, &spec, url, &fail) >= 0,
             fail.text);
        tl_raw_spec_fini(&spec);
        server.ports[i] = (uint16_t)atoi(strrchr(url, ':') + 1);
    }
    if (!server.inputs)
        atexit(stop_server);
}

/* ---- sending ------------------------------------------------------------------------------- */

/* libFuzzer's alarm interrupts system calls from time to time. */
#define RETRY(result, call)                                                                        \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

static int dial(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(fd >= 0, "no socket");
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        struct pollfd made = {.fd = fd, .events = POLLOUT};
        int error = 0, rc;
        socklen_t n = sizeof error;
        need(errno == EINTR, "cannot connect");
        RETRY(rc, poll(&made, 1, ALIVE_MS));
        need(rc == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0,
             "cannot connect");
    }
    return fd;
}

static void send_all(int fd, const uint8_t *p, size_t n, size_t piece)
{
    while (n > 0) {
        ssize_t put;
        RETRY(put, send(fd, p, n < piece ? n : piece, MSG_NOSIGNAL));
        need(put > 0, "the connection is refused");
        p += put;
        n -= (size_t)put;
    }
}

/* The server ends the connection when it has finished the capture. */
static void await_end(int fd)
{
    for (;;) {
        struct pollfd more = {.fd = fd, .events = POLLIN};
        uint8_t bytes[4096];
        ssize_t got;
        RETRY(got, poll(&more, 1, ALIVE_MS));
        need(got == 1, "the server does not end the connection");
        RETRY(got, recv(fd, bytes, sizeof bytes, 0));
        if (got <= 0)
            return;
    }
}

/* ---- what is stored ------------------------------------------------------------------------ */

/* Wait until the only trace is decoded. Returns false if there is none. */
static bool await_trace(char name[static 64])
{
    for (int i = 0; i < ALIVE_MS; i++) {
        struct tl_trace_list list = {0};
        need(tl_lake_traces(server.lake, &list) == TL_OK && list.n <= 1, "more than one trace");
        const bool any = list.n == 1;
        const enum tl_trace_state state = any ? list.rows[0].state : TL_TRACE_SEALED;
        if (any)
            snprintf(name, 64, "%s", list.rows[0].id);
        tl_trace_list_free(&list);
        need(state != TL_TRACE_LIVE, "the trace is not complete");
        if (state != TL_TRACE_DECODING)
            return any;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    need(false, "the decode does not end");
    return false;
}

static void check_stored(const uint8_t *p, size_t n)
{
    struct tl_raw_range *range;
    struct tl_buf raw = {0};
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t offset;
    int rc;
    const bool any = await_trace(trace);
    need(any == (n > 0), any ? "a trace of nothing" : "no trace");
    if (!any)
        return;
    need(tl_raw_open(server.lake, trace, 0, UINT64_MAX, &range, &fail) == TL_OK, fail.text);
    while ((rc = tl_raw_next(range, &offset, &raw, &fail)) == TL_OK)
        ;
    need(rc == TL_EOF && raw.n == n && memcmp(raw.p, p, n) == 0, "what is stored is not what came");
    tl_raw_close(range);
    tl_buf_fini(&raw);
    need(tl_lake_delete(server.lake, trace, &fail) == TL_OK, fail.text);
}

/* Parse an argument of --raw without opening any file, since it may name any file. */
static void try_spec(const uint8_t *p, size_t n)
{
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    char *const text = strndup((const char *)p, n);
    need(text != NULL, "no memory");
    if (!strstr(text, "config")) {
        const int rc = tl_raw_parse(&spec, server.lake, text, &fail);
        need(rc == TL_OK || fail.text[0], "refused without a word");
        need(rc != TL_OK || (spec.address[0] && spec.rig[0] && spec.setup), "half a specification");
        tl_raw_spec_fini(&spec);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (server.inputs % INPUTS_PER_LAKE == 0) {
        stop_server();
        start_server();
    }
    server.inputs++;
    const size_t which = data[0] % (FORMATS + 1);
    if (which == FORMATS) {
        try_spec(data + 2, size - 2);
        return 0;
    }
    const int fd = dial(server.ports[which]);
    send_all(fd, data + 2, size - 2, data[1] ? data[1] : SIZE_MAX);
    shutdown(fd, SHUT_WR);
    await_end(fd);
    close(fd);
    check_stored(data + 2, size - 2);
    return 0;
}
