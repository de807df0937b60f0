/* SPDX-License-Identifier: MIT */
/*
 * Open SoC Debug live, from a socket to durable storage in a folder while the same bytes are
 * decoded: a device on GLIP over TCP, once passive and once started by us, and a gateway connected
 * to the ZeroMQ host controller. For comparison: osd-sw itself, logging one core trace to text,
 * handles 2 MB/s.
 */
#include "bench/report.h"
#include "osdhost/host.h"
#include "rpc/raw.h"
#include "sim/osd_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define TCP_BYTES (384u << 20)
#define MESSAGES  1500000
#define SETUP     "[trace]\nformat=di\n"

static void die(const char *what, const struct tl_fail *fail)
{
    fprintf(stderr, "bench_di_live: %s: %s\n", what, fail ? fail->text : "");
    exit(1);
}

static void quiet(const char *line)
{
}

/* Some megabytes of core trace as complete datagrams. */
static void make(struct tl_sim_osd_device *d, size_t bytes)
{
    tl_sim_osd_device_init(d, 0, 32, 12, 1);
    d->sent.keep_truth = false;
    d->modules[1].cs = 1;
    d->modules[1].event_dest = 0x0400;
    while (d->sent.out.n < bytes)
        if (tl_sim_osd_device_run(d, 1000) < 0)
            die("no memory", NULL);
    d->modules[1].cs = 0;
}

/* ---- the device's side -------------------------------------------------------------------- */

struct device {
    int listener;
    uint16_t port;
    struct tl_buf bulk;
    bool answers;   /* it enumerates and starts the device first */
    uint64_t total; /* bytes sent */
    double begin;
};

static void send_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        const ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            die("send", NULL);
        p += sent;
        n -= (size_t)sent;
    }
}

/* Answer register accesses until all modules are on. */
static void answer(struct device *device, int fd)
{
    struct tl_sim_osd_device d;
    uint8_t bytes[12];
    uint16_t words[5];
    tl_sim_osd_device_init(&d, 0, 32, 12, 1);
    while (d.active < 4) {
        if (recv(fd, bytes, 2, MSG_WAITALL) != 2)
            die("recv", NULL);
        const size_t n = tl_be16(bytes);
        if (n > 5 || recv(fd, bytes, 2 * n, MSG_WAITALL) != (ssize_t)(2 * n))
            die("recv", NULL);
        for (size_t i = 0; i < n; i++)
            words[i] = tl_be16(bytes + 2 * i);
        if (tl_sim_osd_device_take(&d, words, n) < 0)
            die("no memory", NULL);
        send_all(fd, d.sent.out.p, d.sent.out.n);
        device->total += d.sent.out.n;
        tl_buf_reset(&d.sent.out);
    }
    tl_sim_osd_device_fini(&d);
}

static void *run_device(void *argument)
{
    struct device *const device = argument;
    const int fd = accept(device->listener, NULL, NULL);
    if (fd < 0)
        die("accept", NULL);
    if (device->answers)
        answer(device, fd);
    device->begin = bench_now();
    while (device->total < TCP_BYTES) {
        send_all(fd, device->bulk.p, device->bulk.n);
        device->total += device->bulk.n;
    }
    close(fd);
    close(device->listener);
    return NULL;
}

static void listen_on_any(struct device *device)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    device->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(device->listener, (struct sockaddr *)&at, sizeof at) || listen(device->listener, 1))
        die("listen", NULL);
    getsockname(device->listener, (struct sockaddr *)&at, &n);
    device->port = ntohs(at.sin_port);
}

/* ---- the server's side -------------------------------------------------------------------- */

/* Wait until the trace of `rig` has this many durable bytes. */
static void wait_durable(struct tl_lake *lake, const char *rig, uint64_t bytes)
{
    for (uint64_t have = 0; have < bytes; usleep(500)) {
        struct tl_trace_list list;
        if (tl_lake_traces(lake, &list) < 0)
            die("traces", NULL);
        for (size_t i = 0; i < list.n; i++)
            if (!strcmp(list.rows[i].rig, rig))
                have = list.rows[i].raw_bytes;
        tl_trace_list_free(&list);
    }
}

/* Delete the trace, so that its space and decoding do not affect the next measurement. */
static void drop(struct tl_lake *lake)
{
    struct tl_trace_list list;
    struct tl_fail fail = {0};
    if (tl_lake_traces(lake, &list) < 0)
        die("traces", NULL);
    for (size_t i = 0; i < list.n; i++)
        while (tl_lake_delete(lake, list.rows[i].id, &fail) == TL_DENIED)
            usleep(1000);
    tl_trace_list_free(&list);
}

/* Write the same bytes from a socket to a plain file, synced at the end. Returns MB/s. */
static double to_plain_file(const struct tl_buf *bulk, const char *dir)
{
    struct device device = {.bulk = *bulk};
    static uint8_t piece[256 << 10];
    char path[64];
    pthread_t thread;
    listen_on_any(&device);
    pthread_create(&thread, NULL, run_device, &device);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(device.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(path, sizeof path, "%s/plain", dir);
    const int from = socket(AF_INET, SOCK_STREAM, 0), to = open(path, O_CREAT | O_WRONLY, 0666);
    if (connect(from, (struct sockaddr *)&at, sizeof at) || to < 0)
        die(path, NULL);
    for (ssize_t n; (n = recv(from, piece, sizeof piece, 0)) > 0;)
        if (write(to, piece, (size_t)n) != n)
            die(path, NULL);
    fdatasync(to);
    const double took = bench_now() - device.begin;
    pthread_join(thread, NULL);
    close(from);
    close(to);
    unlink(path);
    return (double)device.total / took / 1e6;
}

static void over_tcp(struct tl_lake *lake, const char *dir, const char *name, bool start)
{
    struct device device = {.answers = start};
    struct tl_sim_osd_device d;
    struct tl_raw_spec spec;
    struct tl_raw *raw;
    struct tl_fail fail = {0};
    pthread_t thread;
    char text[128];
    make(&d, 8 << 20);
    device.bulk = d.sent.out;
    listen_on_any(&device);
    pthread_create(&thread, NULL, run_device, &device);
    snprintf(text, sizeof text, "tcp://127.0.0.1:%u,format=di,rig=%s,control=no%s", device.port,
             start ? "started" : "passive", start ? ",start=yes" : "");
    if (tl_raw_new(&raw, lake, quiet) < 0 || tl_raw_parse(&spec, lake, text, &fail) < 0 ||
        tl_raw_dial(raw, &spec, &fail) < 0)
        die(text, &fail);
    pthread_join(thread, NULL);
    wait_durable(lake, spec.rig, device.total);
    const double took = bench_now() - device.begin;
    const double plain = to_plain_file(&device.bulk, dir);
    bench_report("di live", name, (double)device.total / took / 1e6, "MB/s", "recv, write, sync",
                 plain);
    tl_raw_spec_fini(&spec);
    tl_raw_free(raw);
    tl_sim_osd_device_fini(&d);
    drop(lake);
}

static void by_gateway(struct tl_lake *lake)
{
    const struct tl_osd_host_options options = {
        .address = "127.0.0.1:0", .rig = "gateway", .setup = SETUP};
    struct tl_osd_host *host;
    struct tl_sim_osd_device d;
    struct tl_fail fail = {0};
    uint16_t words[16];
    char type, answer[8];
    if (tl_osd_host_new(&host, lake, &options, quiet, &fail) < 0 ||
        tl_osd_host_start(host, &fail) < 0)
        die("host", &fail);
    make(&d, 1 << 20);
    void *const zmq = zmq_ctx_new(), *const socket = zmq_socket(zmq, ZMQ_DEALER);
    if (zmq_connect(socket, tl_osd_host_url(host)))
        die("connect", NULL);
    zmq_send(socket, "M", 1, ZMQ_SNDMORE);
    zmq_send(socket, "GW_REGISTER 0", 13, 0);
    zmq_recv(socket, &type, 1, 0);
    zmq_recv(socket, answer, sizeof answer, 0);
    const double begin = bench_now();
    uint64_t total = 0;
    const uint8_t *p = d.sent.out.p;
    for (unsigned i = 0; i < MESSAGES; i++) {
        const size_t n = tl_be16(p);
        for (size_t k = 0; k < n; k++)
            words[k] = tl_be16(p + 2 * (k + 1));
        zmq_send(socket, "D", 1, ZMQ_SNDMORE);
        zmq_send(socket, words, 2 * n, 0);
        total += 2 * (n + 1);
        p += 2 * (n + 1);
        if (p == d.sent.out.p + d.sent.out.n)
            p = d.sent.out.p;
    }
    wait_durable(lake, "gateway", total);
    const double took = bench_now() - begin;
    bench_report("di live", "gateway at the ZeroMQ host controller to durable storage",
                 (double)total / took / 1e6, "MB/s", NULL, 0);
    bench_report("di live", "… in packets, a message each", MESSAGES / took / 1e6, "M/s", NULL, 0);
    zmq_close(socket);
    zmq_ctx_term(zmq);
    tl_osd_host_free(host);
    tl_sim_osd_device_fini(&d);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

int main(void)
{
    char dir[] = "/tmp/bench_di_live_XXXXXX";
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    if (!mkdtemp(dir))
        return 1;
    const struct tl_lake_options options = {.dir = dir};
    if (tl_lake_open(&lake, &options, &fail) < 0)
        die("lake", &fail);
    over_tcp(lake, dir, "GLIP over TCP to durable storage", false);
    over_tcp(lake, dir, "GLIP over TCP, modules started by us, to durable storage", true);
    by_gateway(lake);
    tl_lake_close(lake);
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
