/* SPDX-License-Identifier: MIT */
/* HTTP requests to a server with a fake lake, over HTTP/1.1 and HTTP/2, with and without TLS. */
#ifndef TL_TESTS_ASKING_H
#define TL_TESTS_ASKING_H

#include "lake_ingest.h"
#include "net/tls.h"
#include "unit/serving.h"
#include "unit/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way { WAY_H1, WAY_H2, WAY_H1_TLS, WAY_H2_TLS, WAYS };

struct fixture {
    struct serving s;
    char dir[32], cert[64], key[64];
};

struct answer {
    int status;
    struct tl_fields head;
    struct tl_buf body;
};

static inline void answer_fini(struct answer *a)
{
    tl_fields_fini(&a->head);
    tl_buf_fini(&a->body);
}

/* ---- HTTP/1.1 by hand --------------------------------------------------------------------- */

/* Decode the chunked coding in place. */
static inline void dechunk(struct tl_buf *b)
{
    size_t in = 0;
    size_t out = 0;
    assert_int_equal(tl_buf_add(b, "", 1), TL_OK);
    for (;;) {
        char *end;
        const size_t n = strtoul((char *)b->p + in, &end, 16);
        in = (size_t)((uint8_t *)end - b->p) + 2;
        if (!n)
            break;
        assert_true(in + n <= b->n);
        memmove(b->p + out, b->p + in, n);
        in += n + 2;
        out += n;
    }
    b->n = out;
}

static inline void split_head(struct tl_buf *raw, struct answer *a)
{
    assert_int_equal(tl_buf_add(raw, "", 1), TL_OK);
    raw->n--;
    char *const text = (char *)raw->p;
    char *const end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    *end = 0;
    a->status = atoi(text + 9);
    char *save = NULL;
    strtok_r(text, "\r\n", &save);
    for (char *line; (line = strtok_r(NULL, "\r\n", &save));) {
        char *const colon = strchr(line, ':');
        assert_non_null(colon);
        *colon = 0;
        assert_int_equal(tl_fields_add(&a->head, line, colon + 2), TL_OK);
    }
    const size_t skip = (size_t)(end + 4 - text);
    assert_int_equal(tl_buf_add(&a->body, raw->p + skip, raw->n - skip), TL_OK);
    if (tl_fields_get(&a->head, "transfer-encoding"))
        dechunk(&a->body);
}

static inline void ask_h1(const char *url, const char *method, const char *path, const char *extra,
                          struct tl_bytes body, struct answer *a)
{
    struct wire w = wire_open(url);
    struct tl_buf out = {0};
    struct tl_buf in = {0};
    uint8_t buf[65536];
    ssize_t n;
    assert_int_equal(tl_buf_printf(&out,
                                   "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                   "%s%s",
                                   method, path, extra ? extra : "", extra ? "\r\n" : ""),
                     TL_OK);
    if (body.p)
        assert_int_equal(tl_buf_printf(&out, "Content-Length: %zu\r\n", body.n), TL_OK);
    assert_int_equal(tl_buf_printf(&out, "\r\n"), TL_OK);
    assert_int_equal(tl_buf_add(&out, body.p, body.n), TL_OK);
    wire_send_n(&w, (char *)out.p, out.n);
    while ((n = wire_read(&w, buf, sizeof buf)) > 0)
        assert_int_equal(tl_buf_add(&in, buf, (size_t)n), TL_OK);
    split_head(&in, a);
    tl_buf_fini(&in);
    tl_buf_fini(&out);
    wire_close(&w);
}

static inline void ask_h2(const char *url, const char *method, const char *path, const char *extra,
                          struct tl_bytes body, struct answer *a)
{
    struct h2_client *const c = h2_connect(url);
    char name[64] = "";
    const char *value = extra ? strchr(extra, ':') : NULL;
    if (value)
        for (size_t i = 0; extra + i < value; i++)
            name[i] = (char)(extra[i] | 0x20);
    struct h2_exchange *const x = h2_request(c, method, path, !body.p, value ? name : (char *)NULL,
                                             value ? value + 2 : NULL, (char *)NULL);
    if (body.p)
        h2_send(c, x, body.p, body.n, true);
    h2_finish(c, x);
    a->status = h2_status(x);
    for (size_t i = 0; i < x->head.n; i++)
        assert_int_equal(
            tl_fields_add(&a->head, tl_fields_name(&x->head, i), tl_fields_value(&x->head, i)),
            TL_OK);
    assert_int_equal(tl_buf_add(&a->body, x->body.p, x->body.n), TL_OK);
    h2_free(c);
}

/* One request; `extra` is "Name: value" or NULL; `body.p` NULL: none. */
static inline struct answer ask_with(struct fixture *f, enum way way, const char *method,
                                     const char *path, const char *extra, struct tl_bytes body)
{
    struct answer a = {0};
    const char *const url = way == WAY_H1 || way == WAY_H2 ? f->s.url : f->s.tls_url;
    if (way == WAY_H1 || way == WAY_H1_TLS)
        ask_h1(url, method, path, extra, body, &a);
    else
        ask_h2(url, method, path, extra, body, &a);
    assert_int_equal(tl_buf_add(&a.body, "", 1), TL_OK); /* NUL-terminated */
    a.body.n--;
    return a;
}

static inline struct answer ask_as(struct fixture *f, enum way way, const char *method,
                                   const char *path, const char *extra)
{
    return ask_with(f, way, method, path, extra, (struct tl_bytes){0});
}

static inline struct answer ask(struct fixture *f, enum way way, const char *path,
                                const char *extra)
{
    return ask_as(f, way, "GET", path, extra);
}

static inline void expect_head(const struct answer *a, const char *name, const char *value)
{
    const char *const got = tl_fields_get(&a->head, name);
    if (!got || strcmp(got, value))
        fail_msg("%s is \"%s\", not \"%s\"", name, got ? got : "(none)", value);
}

/* ---- fixture ------------------------------------------------------------------------------ */

static inline void add_trace(struct tl_lake *lake, const char *name, uint32_t insns)
{
    const struct tl_ingest_request request = {.rig = "rig", .trace = name, .setup = ""};
    struct tl_ingest *ingest = NULL;
    char id[64];
    uint64_t durable = 0;
    struct tl_fail fail = {0};
    atomic_store(&fake.stall, true); /* nobody is notified: there is nobody */
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &durable, &fail),
                     TL_OK);
    uint8_t *const bytes = calloc(insns + 1, 4);
    for (uint32_t i = 0; i < insns; i++)
        tl_put_le32(bytes + 4 * i, i);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){bytes, 4 * insns}, &fail),
                     TL_OK);
    free(bytes);
    tl_ingest_close(ingest);
    atomic_store(&fake.stall, false);
}

static inline int setup(void **state)
{
    struct fixture *const f = calloc(1, sizeof *f);
    struct tl_fail fail = {0};
    strcpy(f->dir, "/tmp/tl-http-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->cert, sizeof f->cert, "%s/c.pem", f->dir);
    snprintf(f->key, sizeof f->key, "%s/k.pem", f->dir);
    assert_int_equal(tl_tls_make_certificate(f->cert, f->key, &fail), 1);
    const struct tl_net_options options = {.tls_cert = f->cert, .tls_key = f->key};
    serve(&f->s, &options);
    add_trace(f->s.lake, "t", 10000);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *const f = *state;
    stop_serving(&f->s);
    unlink(f->cert);
    unlink(f->key);
    rmdir(f->dir);
    free(f);
    return 0;
}

#endif
