/* SPDX-License-Identifier: MIT */
/* The parts of the network layer, without a server. */
#include "base/utf8.h"
#include "net/address.h"
#include "net/fields.h"
#include "net/gzip.h"
#include "net/outq.h"
#include "net/pool.h"
#include "net/stream.h"
#include "net/tlsio.h"
#include "rpc/rpc.h"
#include "unit/seed.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void test_fields(void **state)
{
    struct tl_fields f = {0};
    assert_null(tl_fields_get(&f, "a"));
    assert_int_equal(tl_fields_add(&f, "Accept", "x"), TL_OK);
    assert_int_equal(tl_fields_addf(&f, "n", "%d", 7), TL_OK);
    assert_string_equal(tl_fields_get(&f, "accept"), "x");
    assert_string_equal(tl_fields_get(&f, "N"), "7");
    tl_fields_fini(&f);
}

static void test_lists(void **state)
{
    assert_true(tl_list_has("gzip", "gzip"));
    assert_true(tl_list_has("deflate, GZIP ;q=0.5", "gzip"));
    assert_true(tl_list_has("gzip;q=1.0,identity", "gzip"));
    assert_false(tl_list_has("gzip;q=0", "gzip"));
    assert_false(tl_list_has("gzip; q=0.000, br", "gzip"));
    assert_false(tl_list_has("x-gzip, gzipped", "gzip"));
    assert_false(tl_list_has("", "gzip"));
    assert_false(tl_list_has(NULL, "gzip"));
    assert_true(tl_list_has("text/html,application/json", "application/json"));
}

static int parse(struct tl_fields *out, const char *text)
{
    tl_fields_fini(out);
    return tl_query_parse(out, text, strlen(text));
}

static void test_queries(void **state)
{
    struct tl_fields q = {0};
    assert_int_equal(parse(&q, "a=1&b=x%20y+z&c&&=5&d="), TL_OK);
    assert_string_equal(tl_fields_get(&q, "a"), "1");
    assert_string_equal(tl_fields_get(&q, "b"), "x y z");
    assert_string_equal(tl_fields_get(&q, "c"), "");
    assert_string_equal(tl_fields_get(&q, "d"), "");
    assert_int_equal(parse(&q, "a=%"), TL_BAD);
    assert_int_equal(parse(&q, "a=%4"), TL_BAD);
    assert_int_equal(parse(&q, "a=%zz"), TL_BAD);
    assert_int_equal(parse(&q, "a=%00"), TL_BAD);
    char many[400] = "";
    for (int i = 0; i < 100; i++)
        strcat(many, "a=&");
    assert_int_equal(parse(&q, many), TL_LIMIT);
    tl_fields_fini(&q);
}

static void test_gzip(void **state)
{
    unsigned seed = (unsigned)test_seed();
    for (size_t n = 0; n < 300000; n = n * 3 + 1) {
        struct tl_buf plain = {0};
        struct tl_buf packed = {0};
        struct tl_buf back = {0};
        for (size_t i = 0; i < n; i++)
            assert_int_equal(tl_buf_add(&plain, &(uint8_t){(uint8_t)(rand_r(&seed) & 15)}, 1),
                             TL_OK);
        const struct tl_bytes in = {plain.p, plain.n};
        assert_int_equal(tl_gzip(in, 1, &packed), TL_OK);
        const struct tl_bytes zip = {packed.p, packed.n};
        assert_int_equal(tl_gunzip(zip, n, &back), TL_OK);
        assert_int_equal(back.n, n);
        if (n)
            assert_memory_equal(back.p, plain.p, n);
        if (n) {
            tl_buf_reset(&back);
            assert_int_equal(tl_gunzip(zip, n - 1, &back), TL_LIMIT);
            assert_int_equal(back.n, 0);
        }
        const struct tl_bytes cut = {packed.p, packed.n - 1};
        assert_int_equal(tl_gunzip(cut, n, &back), TL_BAD);
        tl_buf_fini(&plain);
        tl_buf_fini(&packed);
        tl_buf_fini(&back);
    }
    struct tl_buf out = {0};
    assert_int_equal(tl_gunzip((struct tl_bytes){(const uint8_t *)"nonsense", 8}, 100, &out),
                     TL_BAD);
    tl_buf_fini(&out);
}

static void test_addresses(void **state)
{
    struct tl_address a;
    char text[80];
    struct tl_fail fail = {0};
    assert_int_equal(tl_address_parse(&a, "127.0.0.1:80", true, &fail), TL_OK);
    assert_true(tl_address_loopback(&a));
    assert_string_equal(tl_address_text(&a, text, sizeof text), "127.0.0.1:80");
    assert_int_equal(tl_address_parse(&a, "[::1]:443", true, &fail), TL_OK);
    assert_true(tl_address_loopback(&a));
    assert_string_equal(tl_address_text(&a, text, sizeof text), "[::1]:443");
    assert_int_equal(tl_address_parse(&a, "localhost:1", true, &fail), TL_OK);
    assert_true(tl_address_loopback(&a));
    assert_int_equal(tl_address_parse(&a, "*:1", true, &fail), TL_OK);
    assert_false(tl_address_loopback(&a));
    static const char *const bad[] = {
        "", "1", ":", "a:", ":80", "127.0.0.1:http", "[]:1", "1.2.3.4:99999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_address_parse(&a, bad[i], true, &fail), TL_USAGE);
}

static void test_certificate(void **state)
{
    char dir[] = "/tmp/tl-cert-XXXXXX";
    char cert[64];
    char key[64];
    struct tl_fail fail = {0};
    struct tl_tls *tls = NULL;
    struct stat st;
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/c.pem", dir);
    snprintf(key, sizeof key, "%s/k.pem", dir);
    assert_int_equal(tl_tls_make_certificate(cert, key, &fail), 1);
    assert_int_equal(tl_tls_make_certificate(cert, key, &fail), 0); /* kept */
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(tl_tls_new(&tls, cert, key, NULL, &fail), TL_OK);
    assert_int_equal(strlen(tl_tls_fingerprint(tls)), 32 * 3 - 1);
    tl_tls_free(tls);
    assert_int_equal(tl_tls_new(&tls, key, cert, NULL, &fail), TL_BAD);
    assert_int_equal(tl_tls_make_certificate("/nowhere/c", "/nowhere/k", &fail), TL_IO);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

/* ---- output queue ------------------------------------------------------------------------- */

/* A client whose records are sent in pieces. */
struct tls_client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};

/* Send this many bytes of the client's output. */
static void pass_on(const struct tls_client *client, size_t n)
{
    uint8_t bytes[4096];
    assert_true(n <= sizeof bytes);
    assert_int_equal(BIO_read(SSL_get_wbio(client->ssl), bytes, (int)n), (int)n);
    assert_int_equal(send(client->fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void shake_hands(const struct tls_client *client, struct tl_tlsio *io)
{
    uint8_t bytes[16384];
    int rc;
    do {
        SSL_do_handshake(client->ssl);
        pass_on(client, BIO_ctrl_pending(SSL_get_wbio(client->ssl)));
        rc = tl_tlsio_handshake(io);
        const ssize_t n = recv(client->fd, bytes, sizeof bytes, 0);
        if (n > 0)
            assert_int_equal(BIO_write(SSL_get_rbio(client->ssl), bytes, (int)n), (int)n);
    } while (rc == TL_AGAIN);
    assert_int_equal(rc, TL_OK);
    assert_int_equal(SSL_do_handshake(client->ssl), 1);
}

/* Half a record is not readable data: a reader that was notified of it would never sleep. */
static void half_a_record(const struct tls_client *client, struct tl_tlsio *io)
{
    static const char text[] = "one record, two records";
    char got[64];
    for (int i = 0; i < 2; i++)
        assert_int_equal(SSL_write(client->ssl, text, sizeof text), sizeof text);
    const size_t all = BIO_ctrl_pending(SSL_get_wbio(client->ssl));
    pass_on(client, all - 9);
    assert_int_equal(tl_tlsio_read(io, got, 4), 4);
    assert_true(tl_tlsio_pending(io));
    assert_int_equal(tl_tlsio_read(io, got + 4, sizeof got - 4), sizeof text - 4);
    assert_string_equal(got, text);
    assert_false(tl_tlsio_pending(io));
    assert_int_equal(tl_tlsio_read(io, got, sizeof got), TL_AGAIN);
    assert_false(tl_tlsio_pending(io));
    pass_on(client, 9);
    assert_int_equal(tl_tlsio_read(io, got, sizeof got), sizeof text);
    assert_false(tl_tlsio_pending(io));
}

static void test_half_records(void **state)
{
    char dir[] = "/tmp/tl-half-XXXXXX";
    char cert[64], key[64];
    struct tl_fail fail = {0};
    struct tl_buf gather = {0};
    struct tl_tls *tls = NULL;
    int pair[2];
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/c.pem", dir);
    snprintf(key, sizeof key, "%s/k.pem", dir);
    assert_int_equal(tl_tls_make_certificate(cert, key, &fail), 1);
    assert_int_equal(tl_tls_new(&tls, cert, key, NULL, &fail), TL_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    struct tl_tlsio *const io = tl_tlsio_new(tls, pair[0], &gather);
    struct tls_client client = {.ctx = SSL_CTX_new(TLS_client_method()), .fd = pair[1]};
    assert_non_null(io);
    client.ssl = SSL_new(client.ctx);
    assert_non_null(client.ssl);
    SSL_set_bio(client.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(client.ssl);
    shake_hands(&client, io);
    half_a_record(&client, io);
    SSL_free(client.ssl);
    SSL_CTX_free(client.ctx);
    tl_tlsio_free(io);
    tl_tls_free(tls);
    tl_buf_fini(&gather);
    close(pair[0]);
    close(pair[1]);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

static void test_outq(void **state)
{
    unsigned seed = (unsigned)test_seed();
    struct tl_outq q = {0};
    uint8_t next_in = 0;
    uint8_t next_out = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t n = 1 + (size_t)rand_r(&seed) % 300;
        struct tl_chunk *const chunk = tl_chunk_new(n);
        for (size_t i = 0; i < n; i++)
            chunk->p[i] = next_in++;
        if (rand_r(&seed) & 1) {
            assert_int_equal(tl_outq_copy(&q, chunk->p, n), TL_OK);
        } else {
            const size_t cut = (size_t)rand_r(&seed) % (n + 1);
            assert_int_equal(tl_outq_slice(&q, chunk, 0, cut), TL_OK);
            assert_int_equal(tl_outq_slice(&q, chunk, cut, n - cut), TL_OK);
        }
        tl_chunk_put(chunk);
        if (rand_r(&seed) % 3)
            continue;
        struct iovec v[16];
        const int count = tl_outq_peek(&q, v, 16);
        size_t take = (size_t)rand_r(&seed) % 2000;
        size_t took = 0;
        for (int i = 0; i < count && took < take; i++)
            for (size_t k = 0; k < v[i].iov_len && took < take; k++, took++)
                assert_int_equal(((uint8_t *)v[i].iov_base)[k], next_out++);
        tl_outq_drop(&q, took);
    }
    tl_outq_fini(&q);
}

/* ---- worker pool -------------------------------------------------------------------------- */

struct gate {
    struct tl_waiter waiter;
    atomic_uint done;
};

static void wait_at_gate(void *argument)
{
    struct gate *const gate = argument;
    while (tl_waiter_wait(&gate->waiter, -1) != TL_CANCELLED)
        ;
    atomic_fetch_add(&gate->done, 1);
}

/* Accounts of different addresses. */
static void open_accounts(struct tl_shares *shares, struct tl_account **accounts, size_t n)
{
    tl_shares_init(shares);
    for (size_t i = 0; i < n; i++) {
        struct sockaddr_storage at = {.ss_family = AF_INET};
        ((struct sockaddr_in *)&at)->sin_addr.s_addr = (uint32_t)i + 1;
        accounts[i] = tl_account_new(shares, &at);
        assert_non_null(accounts[i]);
    }
}

static void close_accounts(struct tl_shares *shares, struct tl_account **accounts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tl_account_put(accounts[i]);
    tl_shares_fini(shares);
}

static void test_pool(void **state)
{
    struct tl_shares shares;
    struct tl_account *accounts[3];
    const struct tl_pool_options options = {"test", 3, 2, .shares = &shares};
    struct tl_pool *pool = NULL;
    struct gate gate;
    open_accounts(&shares, accounts, 3);
    tl_waiter_init(&gate.waiter);
    atomic_init(&gate.done, 0);
    assert_int_equal(tl_pool_new(&pool, &options), TL_OK);
    unsigned taken = 0;
    static const unsigned of[] = {3, 1, 1}; /* as much as is left free */
    for (int k = 0; k < 3; k++) {
        const unsigned before = taken;
        for (int i = 0; i < 10; i++)
            taken += tl_pool_run(pool, accounts[k], true, wait_at_gate, &gate) == TL_OK;
        assert_int_equal(taken - before, of[k]);
    }
    assert_int_equal(taken, 5); /* three run, two wait */
    assert_true(tl_pool_busy(pool));
    tl_waiter_close(&gate.waiter);
    tl_pool_free(pool);
    assert_int_equal(atomic_load(&gate.done), taken);
    tl_waiter_fini(&gate.waiter);
    close_accounts(&shares, accounts, 3);
}

/* One thread; which job ran when. */
struct turns {
    struct tl_waiter gate;
    atomic_uint n;
    char order[64];
};

struct turn {
    struct turns *turns;
    char name;
};

static void take_turn(void *argument)
{
    struct turn *const turn = argument;
    if (turn->name == '.')
        while (tl_waiter_wait(&turn->turns->gate, -1) != TL_CANCELLED)
            ;
    turn->turns->order[atomic_fetch_add(&turn->turns->n, 1)] = turn->name;
}

/* However many calls a client has waiting, those of the others come in between. */
static void test_pool_takes_turns(void **state)
{
    struct tl_shares shares;
    struct tl_account *accounts[4];
    const struct tl_pool_options options = {"test", 1, 1000, .shares = &shares};
    struct tl_pool *pool = NULL;
    struct turns turns = {.order = ""};
    struct turn turn[4] = {{&turns, '.'}, {&turns, 'a'}, {&turns, 'b'}, {&turns, 'c'}};
    open_accounts(&shares, accounts, 4);
    tl_waiter_init(&turns.gate);
    assert_int_equal(tl_pool_new(&pool, &options), TL_OK);
    assert_int_equal(tl_pool_run(pool, accounts[0], true, take_turn, &turn[0]), TL_OK);
    struct tl_pool_use use;
    do
        tl_pool_use(pool, &use);
    while (use.queued);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tl_pool_run(pool, accounts[1], true, take_turn, &turn[1]), TL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_pool_run(pool, accounts[2], true, take_turn, &turn[2]), TL_OK);
    assert_int_equal(tl_pool_run(pool, accounts[3], true, take_turn, &turn[3]), TL_OK);
    tl_waiter_close(&turns.gate);
    tl_pool_free(pool);
    assert_string_equal(turns.order, ".abcababaa");
    tl_waiter_fini(&turns.gate);
    close_accounts(&shares, accounts, 4);
}

/* A job that takes long, but rests now and then, until another one has run. */
static void work_until_other(void *argument)
{
    struct turn *const turn = argument;
    while (!atomic_load(&turn->turns->n)) {
        usleep(1000);
        tl_pool_rest();
    }
    turn->turns->order[atomic_fetch_add(&turn->turns->n, 1)] = turn->name;
}

/* There is one thread, and the job that has it lets that of another client run first. */
static void test_pool_rests(void **state)
{
    struct tl_shares shares;
    struct tl_account *accounts[2];
    const struct tl_pool_options options = {"test", 1, 100, .shares = &shares};
    struct tl_pool *pool = NULL;
    struct turns turns = {.order = ""};
    struct turn turn[2] = {{&turns, 'a'}, {&turns, 'b'}};
    open_accounts(&shares, accounts, 2);
    tl_waiter_init(&turns.gate);
    assert_int_equal(tl_pool_new(&pool, &options), TL_OK);
    assert_int_equal(tl_pool_run(pool, accounts[0], true, work_until_other, &turn[0]), TL_OK);
    struct tl_pool_use use;
    do
        tl_pool_use(pool, &use);
    while (use.queued);
    assert_int_equal(tl_pool_run(pool, accounts[1], true, take_turn, &turn[1]), TL_OK);
    while (atomic_load(&turns.n) < 2)
        usleep(1000);
    tl_pool_free(pool);
    assert_string_equal(turns.order, "ba");
    assert_int_equal(atomic_load(&shares.of[TL_USE_THREADS].used), 0);
    tl_waiter_fini(&turns.gate);
    close_accounts(&shares, accounts, 2);
}

/* A client that does not take its answers gets no more of them, until it does. */
static void test_pool_waits_for_answers(void **state)
{
    struct tl_shares shares;
    struct tl_account *accounts[2];
    const struct tl_pool_options options = {"test", 4, 100, .shares = &shares};
    struct tl_pool *pool = NULL;
    struct turns turns = {.order = ""};
    struct turn turn[2] = {{&turns, 'a'}, {&turns, 'b'}};
    open_accounts(&shares, accounts, 2);
    tl_shares_limit(&shares, TL_USE_ANSWERS, 100, 0);
    tl_waiter_init(&turns.gate);
    assert_int_equal(tl_pool_new(&pool, &options), TL_OK);
    shares.on_room = (void (*)(void *))tl_pool_wake;
    shares.context = pool;
    tl_account_charge(accounts[0], TL_USE_ANSWERS, 60);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_pool_run(pool, accounts[0], true, take_turn, &turn[0]), TL_OK);
    assert_int_equal(tl_pool_run(pool, accounts[1], true, take_turn, &turn[1]), TL_OK);
    while (!atomic_load(&turns.n))
        ;
    tl_account_release(accounts[0], TL_USE_ANSWERS, 30);
    while (atomic_load(&turns.n) < 4)
        ;
    tl_account_release(accounts[0], TL_USE_ANSWERS, 30);
    tl_pool_free(pool);
    assert_string_equal(turns.order, "baaa");
    tl_waiter_fini(&turns.gate);
    close_accounts(&shares, accounts, 2);
}

/* One alone gets half, each further one what is left of the rest, and nobody nothing. */
static void test_shares(void **state)
{
    static const unsigned of[] = {512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1};
    enum { N = sizeof of / sizeof *of };
    struct tl_shares shares;
    struct tl_account *accounts[N];
    open_accounts(&shares, accounts, N);
    tl_shares_limit(&shares, TL_USE_HTTP1, 1024, 0);
    for (size_t i = 0; i < N; i++) {
        unsigned n = 0;
        while (tl_account_take(accounts[i], TL_USE_HTTP1, 1))
            n++;
        assert_int_equal(n, of[i]);
    }
    /* A token has its share from all addresses together, and an address with all tokens. */
    static const uint8_t digests[2][16] = {"first", "second"};
    struct tl_account *const here = tl_account_with_token(accounts[0], digests[0]);
    struct tl_account *const there = tl_account_with_token(accounts[1], digests[0]);
    struct tl_account *const other = tl_account_with_token(accounts[1], digests[1]);
    tl_shares_limit(&shares, TL_USE_GUESTS, 100, 10);
    for (int i = 0; i < 5; i++) {
        assert_true(tl_account_take(here, TL_USE_GUESTS, 1));
        assert_true(tl_account_take(there, TL_USE_GUESTS, 1));
        assert_true(tl_account_take(other, TL_USE_GUESTS, 1));
    }
    assert_false(tl_account_take(here, TL_USE_GUESTS, 1));
    assert_false(tl_account_take(there, TL_USE_GUESTS, 1));
    assert_false(tl_account_take(other, TL_USE_GUESTS, 1));
    tl_account_release(there, TL_USE_GUESTS, 5);
    assert_true(tl_account_take(here, TL_USE_GUESTS, 1));
    assert_true(tl_account_take(other, TL_USE_GUESTS, 1));
    tl_account_put(here);
    tl_account_put(there);
    tl_account_put(other);
    close_accounts(&shares, accounts, N);
}

/* ---- texts -------------------------------------------------------------------------------- */

static void test_timeouts(void **state)
{
    assert_int_equal(tl_grpc_timeout_ns("2S"), 2000000000);
    assert_int_equal(tl_grpc_timeout_ns("1H"), INT64_C(3600000000000));
    assert_int_equal(tl_grpc_timeout_ns("1M"), INT64_C(60000000000));
    assert_int_equal(tl_grpc_timeout_ns("250m"), 250000000);
    assert_int_equal(tl_grpc_timeout_ns("1u"), 1000);
    assert_int_equal(tl_grpc_timeout_ns("2000001n"), 2000001);
    assert_int_equal(tl_grpc_timeout_ns("0n"), 0);
    assert_int_equal(tl_grpc_timeout_ns("99999999H"), INT64_MAX);
    static const char *const bad[] = {"", "S", "1", "1x", "-1S", "1 S", "123456789S", "1SS"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_grpc_timeout_ns(bad[i]), TL_BAD);
}

static void test_content_types(void **state)
{
    assert_true(tl_grpc_is("application/grpc"));
    assert_true(tl_grpc_is("application/grpc+proto"));
    assert_true(tl_grpc_is("application/grpc;charset=utf-8"));
    assert_false(tl_grpc_is("application/grpc-web"));
    assert_false(tl_grpc_is("application/grpc+json"));
    assert_false(tl_grpc_is("application/json"));
    assert_false(tl_grpc_is(NULL));
}

static void test_names(void **state)
{
    assert_true(tl_name_ok("rig-1_A.b"));
    assert_false(tl_name_ok(""));
    assert_false(tl_name_ok(".."));
    assert_false(tl_name_ok("a/b"));
    assert_false(tl_name_ok("a b"));
    assert_false(tl_name_ok("\xc3\xa4"));
    assert_false(tl_name_ok("0123456789012345678901234567890123456789012345678901234567890123"));
}

static void test_utf8(void **state)
{
    static const char *const pairs[][2] = {
        {"plain", "plain"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"},
        {"a\xff"
         "b",
         "a?b"},
        {"\xc0\x80", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xe2\x82", "??"},
        {"\xc3", "?"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char text[16];
        strcpy(text, pairs[i][0]);
        tl_utf8_clean(text);
        assert_string_equal(text, pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_certificate),
        cmocka_unit_test(test_outq),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_takes_turns),
        cmocka_unit_test(test_pool_rests),
        cmocka_unit_test(test_pool_waits_for_answers),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_content_types),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_half_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
