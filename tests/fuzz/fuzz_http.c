/* SPDX-License-Identifier: MIT */
/*
 * The whole server at the other end of a socket: arbitrary bytes, as HTTP/1.1, as HTTP/2 frames,
 * and as messages of every gRPC method. The first byte chooses one of these, the second how they
 * are cut into pieces. After each input the server must still answer.
 */
#include "lake/lakeint.h"
#include "net/grpc.h"
#include "opening/open.h"
#include "rpc/rpc.h"
#include "sim/program_core.h"
#include "store/backend_memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUTS_PER_LAKE 4000 /* then a new one is created, so that memory does not fill up */
#define INSNS           20000
#define LONG_CALL_MS    30    /* some calls last until the client disconnects */
#define ALIVE_MS        60000 /* longer than a busy machine needs */

enum {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_GOAWAY = 7
};
enum { END_STREAM = 1, END_HEADERS = 4 };

static struct {
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct tl_rpc *rpc;
    struct tl_net *net;
    uint16_t port;
    unsigned inputs;
} server;

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_http: %s\n", what);
    abort();
}

/* ---- the server --------------------------------------------------------------------------- */

static void stop_server(void)
{
    if (!server.net)
        return;
    tl_net_free(server.net);
    tl_rpc_free(server.rpc);
    tl_lake_close(server.lake);
    tl_backend_free(server.backend);
    server.net = NULL;
}

/* The trace of a simulated core, with the program, and the setup that a decoder needs. */
static void make_trace(struct tl_buf *trace, struct tl_buf *setup_text)
{
    const struct tl_sim_etm4_options etm = {.minor = 2, .trace_id = 0x10, .timestamps = true};
    const struct tl_sim_program_options program_options = {.seed = 1};
    const struct tl_sim_core_options core_options = {.seed = 2, .etm = etm};
    struct tl_sim_program program;
    struct tl_sim_core *core = NULL;
    struct tl_setup setup;
    struct tl_buf elf = {0};
    struct tl_image_row row;
    struct tl_fail fail = {0};

    need(tl_sim_program_init(&program, &program_options) >= 0 &&
             tl_sim_core_new(&core, &program, &core_options, trace, NULL, NULL) >= 0 &&
             tl_sim_core_step(core, INSNS) >= 0 && tl_sim_core_flush(core) >= 0 &&
             tl_sim_program_elf(&program, &elf) >= 0,
         "no trace");
    tl_sim_core_free(core);
    need(tl_lake_put_image(server.lake, "program", (struct tl_bytes){elf.p, elf.n}, &row, &fail) >=
             0,
         fail.text);
    tl_setup_init(&setup);
    need(tl_setup_format(&setup, "etm4,id=0x10", &fail) >= 0, fail.text);
    struct tl_source *const source = setup.n_sources ? setup.sources : tl_setup_add_source(&setup);
    need(source && tl_sim_etm4_source(&etm, source) >= 0, "no source");
    source->id = 0x10;
    strcpy(source->name, "cs.10");
    need(tl_grow(&setup.images, &setup.cap_images, 1, sizeof *setup.images) >= 0, "no memory");
    setup.images[setup.n_images++] = (struct tl_setup_image){
        .file = strdup(row.hash), .length = UINT64_MAX, .space = TL_SPACE_ANY};
    need(tl_setup_write(&setup, setup_text) >= 0 && tl_buf_add(setup_text, "", 1) >= 0,
         "no memory");
    tl_setup_fini(&setup);
    tl_sim_program_fini(&program);
    tl_buf_fini(&elf);
}

/* Create trace "t", for requests. */
static void fill_lake(void)
{
    struct tl_buf trace = {0}, setup = {0};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t durable;

    make_trace(&trace, &setup);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)setup.p};
    need(tl_ingest_open(server.lake, &request, NULL, NULL, &ingest, id, &durable, &fail) >= 0 &&
             tl_ingest_append(ingest, 0, (struct tl_bytes){trace.p, trace.n}, &fail) >= 0 &&
             tl_ingest_finish(ingest, &durable, &fail) >= 0,
         fail.text);
    tl_ingest_close(ingest);
    tl_buf_fini(&trace);
    tl_buf_fini(&setup);
}

static void start_server(void)
{
    static const struct tl_listen listen = {"127.0.0.1:0", false};
    struct tl_net_options net = {.listen = &listen, .n_listen = 1, .loops = 1, .drain_ms = 100};
    const struct tl_lake_options lake = {
        .shard_insns = INSNS / 4, .min_free_bytes = 1, .decode_threads = 1};
    struct tl_fail fail = {0};

    need(tl_backend_memory(&server.backend) >= 0, "no memory");
    need(tl_lake_open_on(&server.lake, server.backend, &lake, &fail) >= 0, fail.text);
    fill_lake();
    need(tl_rpc_new(&server.rpc, server.lake, NULL, 0, &fail) >= 0, fail.text);
    net.app = tl_rpc_app(server.rpc);
    need(tl_net_new(&server.net, &net, &fail) >= 0, fail.text);
    server.port = (uint16_t)atoi(strrchr(tl_net_url(server.net, 0), ':') + 1);
    if (!server.inputs)
        atexit(stop_server); /* registered late, so that it runs before the libraries' handlers */
}

/* libFuzzer's alarm interrupts system calls from time to time. */
#define RETRY(result, call)                                                                        \
    do                                                                                             \
        (result) = (call);                                                                         \
    while ((result) < 0 && errno == EINTR)

/* Wait for a connection whose connect() was interrupted: it continues in the background. */
static bool connected(int fd, const struct sockaddr_in *to)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int error = 0, rc = connect(fd, (const struct sockaddr *)to, sizeof *to);
    if (rc < 0 && errno == EINTR) {
        RETRY(rc, poll(&poll_fd, 1, ALIVE_MS));
        socklen_t n = sizeof error;
        rc = rc == 1 ? getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) : -1;
    }
    return rc == 0 && !error;
}

static int dial(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(server.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* close with a reset, or thousands of sockets would be in TIME_WAIT */
    const struct linger at_once = {.l_onoff = 1};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(fd >= 0 && connected(fd, &to), "cannot connect");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return fd;
}

static bool send_all(int fd, const void *p, size_t n)
{
    for (const char *at = p; n;) {
        ssize_t put;
        RETRY(put, send(fd, at, n, MSG_NOSIGNAL));
        if (put <= 0)
            return false; /* the server has closed the connection */
        at += put;
        n -= (size_t)put;
    }
    return true;
}

/* Read at most `n` bytes. Returns > 0, 0 at the end, or < 0; with ETIMEDOUT, nothing arrived for
 * `ms`. */
static ssize_t receive(int fd, void *p, size_t n, int ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ssize_t got;
    RETRY(got, poll(&poll_fd, 1, ms));
    if (got > 0)
        RETRY(got, recv(fd, p, n, 0));
    else if (got == 0) {
        errno = ETIMEDOUT;
        got = -1;
    }
    return got;
}

static void still_alive(void)
{
    static const char ask[] =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[16] = "";
    const int fd = dial();
    need(send_all(fd, ask, sizeof ask - 1), "the server does not listen");
    for (size_t n = 0; n < 12;) {
        const ssize_t got = receive(fd, answer + n, 12 - n, ALIVE_MS);
        need(got != 0, "the server ends the connection without an answer");
        need(got > 0, errno == ETIMEDOUT ? "the server does not answer" : strerror(errno));
        n += (size_t)got;
    }
    need(!memcmp(answer, "HTTP/1.1 200", 12), answer);
    close(fd);
}

/* ---- the input ---------------------------------------------------------------------------- */

static void send_cut(int fd, const uint8_t *p, size_t n, uint8_t cut)
{
    const size_t piece = cut ? cut : n;
    for (size_t i = 0; i < n; i += piece) {
        if (!send_all(fd, p + i, n - i < piece ? n - i : piece))
            return;
    }
}

static void add_frame(struct tl_buf *out, uint8_t type, uint8_t flags, const void *p, size_t n)
{
    const uint8_t head[9] = {(uint8_t)(n >> 16),
                             (uint8_t)(n >> 8),
                             (uint8_t)n,
                             type,
                             flags,
                             0,
                             0,
                             0,
                             type == FRAME_SETTINGS ? 0 : 1};
    need(tl_buf_add(out, head, sizeof head) >= 0 && tl_buf_add(out, p, n) >= 0, "no memory");
}

/* A header field, literal without indexing. Source: RFC 7541, 6.2.2. */
static void add_field(struct tl_buf *out, const char *name, const char *value)
{
    const uint8_t n = (uint8_t)strlen(name), v = (uint8_t)strlen(value);
    need(tl_buf_add(out, "", 1) >= 0 && tl_buf_add(out, &n, 1) >= 0 &&
             tl_buf_add(out, name, n) >= 0 && tl_buf_add(out, &v, 1) >= 0 &&
             tl_buf_add(out, value, v) >= 0,
         "no memory");
}

static void add_preface(struct tl_buf *out)
{
    need(tl_buf_add(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) >= 0, "no memory");
    add_frame(out, FRAME_SETTINGS, 0, NULL, 0);
}

/* Append messages taken from the input: each begins with its length, and gets a correct prefix. */
static void add_messages(struct tl_buf *out, const uint8_t *p, size_t n)
{
    struct tl_buf body = {0};
    while (n >= 2) {
        const size_t said = tl_le16(p) % 2048;
        const size_t length = said < n - 2 ? said : n - 2;
        const uint8_t prefix[5] = {0, 0, 0, (uint8_t)(length >> 8), (uint8_t)length};
        need(tl_buf_add(&body, prefix, 5) >= 0 && tl_buf_add(&body, p + 2, length) >= 0,
             "no memory");
        p += 2 + length;
        n -= 2 + length;
    }
    for (size_t at = 0; at < body.n; at += 16384)
        add_frame(out, FRAME_DATA, 0, body.p + at, body.n - at < 16384 ? body.n - at : 16384);
    add_frame(out, FRAME_DATA, END_STREAM, NULL, 0);
    tl_buf_fini(&body);
}

static void add_call(struct tl_buf *out, const char *path, const uint8_t *p, size_t n)
{
    struct tl_buf fields = {0};
    add_field(&fields, ":method", "POST");
    add_field(&fields, ":scheme", "http");
    add_field(&fields, ":authority", "localhost");
    add_field(&fields, ":path", path);
    add_field(&fields, "content-type", "application/grpc");
    add_field(&fields, "te", "trailers");
    add_frame(out, FRAME_HEADERS, END_HEADERS, fields.p, fields.n);
    tl_buf_fini(&fields);
    add_messages(out, p, n);
}

/* Read frames until the stream or the connection ends, or, in a long call, nothing comes for `ms`.
 */
static void read_frames(int fd, int ms)
{
    static uint8_t in[1 << 16];
    size_t n = 0;
    ssize_t got;
    while ((got = receive(fd, in + n, sizeof in - n, ms)) > 0) {
        size_t at = 0;
        n += (size_t)got;
        for (;;) {
            if (n - at < 9)
                break;
            const size_t length = 9 + ((size_t)in[at] << 16 | (size_t)in[at + 1] << 8 | in[at + 2]);
            need(length <= 9 + 16384, "a frame larger than we allow");
            if (n - at < length)
                break;
            const uint8_t type = in[at + 3], flags = in[at + 4];
            if (type == FRAME_GOAWAY || type == FRAME_RST_STREAM ||
                (type == FRAME_HEADERS && flags & END_STREAM))
                return;
            at += length;
        }
        memmove(in, in + at, n - at);
        n -= at;
    }
}

static void read_all(int fd, int ms)
{
    uint8_t in[4096];
    while (receive(fd, in, sizeof in, ms) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    if (server.inputs % INPUTS_PER_LAKE == 0) {
        stop_server();
        start_server();
    }
    server.inputs++;

    const struct tl_app *const app = tl_rpc_app(server.rpc);
    const unsigned kind = data[0] % (app->n_methods + 2);
    struct tl_buf out = {0};
    const int fd = dial();
    if (kind >= 1)
        add_preface(&out);
    if (kind < 2)
        need(tl_buf_add(&out, data + 2, size - 2) >= 0, "no memory");
    else
        add_call(&out, app->methods[kind - 2].path, data + 2, size - 2);
    send_cut(fd, out.p, out.n, data[1]);
    if (kind < 2)
        shutdown(fd, SHUT_WR);
    if (kind == 0)
        read_all(fd, LONG_CALL_MS);
    else
        read_frames(fd, LONG_CALL_MS);
    close(fd);
    tl_buf_fini(&out);
    still_alive();
    return 0;
}
