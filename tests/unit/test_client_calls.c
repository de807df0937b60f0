/* SPDX-License-Identifier: MIT */
/* Lookups and ranges of the client library. */
#include "client_fake.h"
#include "stf/header.h"
#include "stf/record.h"
#include "stf/zstf.h"
#include "tracelake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect(int result, int wanted, const struct tracelake_error *error)
{
    if (result != wanted)
        fail_msg("result %d (%s), wanted %d", result, error->text, wanted);
}

/* A list far larger than a flow-control window. */
static void lists_traces(void **state)
{
    struct fake fake = {.n_traces = 200000};
    struct tracelake *lake;
    struct tracelake_list *list;
    struct tracelake_error error = {0};
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    expect(tracelake_list_traces(lake, &list, &error), 0, &error);
    assert_int_equal(list->n, 200000);
    assert_int_equal(list->revision, 77);
    const struct tracelake_trace *t = &list->traces[199999];
    assert_string_equal(t->id, "board-7");
    assert_string_equal(t->message, "");
    assert_int_equal(t->state, TRACELAKE_LIVE);
    assert_int_equal(t->raw_bytes, UINT64_C(5) << 40);
    assert_int_equal(t->n_labels, 1);
    assert_string_equal(t->labels[0].value, "me");
    assert_int_equal(t->n_streams, 1);
    assert_string_equal(t->streams[0].name, "cs.10");
    assert_int_equal(t->streams[0].insns, 12345);
    tracelake_list_free(list);
    tracelake_close(lake);
    fake_stop(&fake);
}

static void lists_pages(void **state)
{
    struct fake fake = {.n_traces = 1000, .page = 17};
    struct tracelake *lake;
    struct tracelake_list *list;
    struct tracelake_error error = {0};
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    expect(tracelake_list_traces(lake, &list, &error), 0, &error);
    assert_int_equal(list->n, 1000);
    for (size_t i = 0; i < list->n; i++)
        assert_string_equal(list->traces[i].streams[0].name, "cs.10");
    tracelake_list_free(list);
    tracelake_close(lake);
    fake_stop(&fake);
}

static void fill(struct tl_buf *buf, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)(i * 7 + i / 256);
        assert_int_equal(tl_buf_add(buf, &byte, 1), 0);
    }
}

static void fetches_pieces(void **state)
{
    struct fake fake = {.fetch_piece = 70000, .fetch_count = 9};
    struct tracelake *lake;
    struct tracelake_fetch *fetch;
    struct tracelake_error error = {0};
    struct tl_buf got = {0};
    const void *p;
    size_t n;
    uint64_t first, count;
    int result;
    fill(&fake.fetch, 20 << 20);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_range range = {"t", "cs.10", TRACELAKE_INSN, 0, TRACELAKE_END};
    expect(tracelake_fetch_open(&fetch, lake, &range, TRACELAKE_TEXT, &error), 0, &error);
    while ((result = tracelake_fetch_next(fetch, &p, &n, &error)) == TRACELAKE_OK)
        assert_int_equal(tl_buf_add(&got, p, n), 0);
    expect(result, TRACELAKE_EOF, &error);
    tracelake_fetch_extent(fetch, &first, &count);
    assert_int_equal(first, 1000);
    assert_int_equal(count, 9);
    assert_int_equal(got.n, fake.fetch.n);
    assert_memory_equal(got.p, fake.fetch.p, got.n);
    tracelake_fetch_close(fetch);

    /* A fetch that is not read does not block other calls, nor does cancelling it; data that it
     * returned stays valid. */
    expect(tracelake_fetch_open(&fetch, lake, &range, TRACELAKE_TEXT, &error), 0, &error);
    expect(tracelake_fetch_next(fetch, &p, &n, &error), 0, &error);
    uint64_t durable;
    for (int i = 0; i < 50; i++)
        expect(tracelake_offset(lake, "t", &durable, NULL, &error), 0, &error);
    assert_memory_equal(p, fake.fetch.p, n);
    expect(tracelake_fetch_next(fetch, &p, &n, &error), 0, &error);
    assert_memory_equal(p, fake.fetch.p + fake.fetch_piece, n);
    tracelake_fetch_close(fetch);
    expect(tracelake_offset(lake, "t", &durable, NULL, &error), 0, &error);
    assert_int_equal(fake.connections, 1);
    tl_buf_fini(&got);
    tracelake_close(lake);
    fake_stop(&fake);
}

/* `n` instructions, every tenth of them a branch by 0x100, as a .zstf. */
static void make_zstf(struct tl_buf *file, unsigned n)
{
    struct tl_zstf_writer *writer;
    struct tl_buf stf = {0};
    struct tl_stf_layout layout = {0};
    uint8_t head[TL_ZSTF_HEAD];
    const struct tl_stf_record begin[] = {
        {.type = TL_STF_IDENTIFIER, .magic = {'S', 'T', 'F'}},
        {.type = TL_STF_VERSION, .version = {1, 3}},
        {.type = TL_STF_ISA, .isa = TL_STF_ISA_ARM},
        {.type = TL_STF_INST_IEM, .iem = TL_STF_IEM_64},
        {.type = TL_STF_TRACE_INFO},
        {.type = TL_STF_TRACE_INFO_FEATURE},
        {.type = TL_STF_FORCE_PC, .pc = 0x8000},
        {.type = TL_STF_END_HEADER},
    };
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        assert_int_equal(tl_stf_record_encode(&layout, &begin[i], &stf), 0);
    assert_int_equal(tl_zstf_writer_new(&writer, 1000, 0), 0);
    assert_int_equal(tl_zstf_writer_begin(writer, file), 0);
    uint64_t pc = 0x8000, chunk_pc = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct tl_stf_record jump = {.type = TL_STF_INST_PC_TARGET, .target = pc + 0x100};
        const struct tl_stf_record insn = {.type = TL_STF_INST_32, .opcode = 0xd5000000u + i};
        if (i % 10 == 9)
            assert_int_equal(tl_stf_record_encode(&layout, &jump, &stf), 0);
        assert_int_equal(tl_stf_record_encode(&layout, &insn, &stf), 0);
        pc = i % 10 == 9 ? pc + 0x100 : pc + 4;
        if (i % 1000 == 999 || i == n - 1) {
            const struct tl_bytes bytes = {stf.p, stf.n};
            assert_int_equal(tl_zstf_writer_chunk(writer, bytes, i % 1000 + 1, chunk_pc, file), 0);
            tl_buf_reset(&stf);
            chunk_pc = pc;
        }
    }
    assert_int_equal(tl_zstf_writer_finish(writer, (struct tl_bytes){0}, file, head), 0);
    memcpy(file->p, head, sizeof head);
    tl_zstf_writer_free(writer);
    tl_buf_fini(&stf);
}

static void iterates_instructions(void **state)
{
    struct fake fake = {.fetch_piece = 777, .fetch_count = 5432};
    struct tracelake *lake;
    struct tracelake_insns *insns;
    struct tracelake_insn insn;
    struct tracelake_error error = {0};
    uint64_t first, count, pc = 0x8000;
    make_zstf(&fake.fetch, 5432);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_range range = {"t", "cs.10", TRACELAKE_INSN, 1000, 6432};
    expect(tracelake_insns_open(&insns, lake, &range, &error), 0, &error);
    tracelake_insns_extent(insns, &first, &count);
    assert_int_equal(first, 1000);
    assert_int_equal(count, 5432);
    for (unsigned i = 0; i < 5432; i++) {
        expect(tracelake_insns_next(insns, &insn, &error), 0, &error);
        assert_int_equal(insn.index, 1000 + i);
        assert_int_equal(insn.pc, pc);
        assert_int_equal(insn.opcode, 0xd5000000u + i);
        assert_int_equal(insn.size, 4);
        assert_int_equal(insn.bytes[0], (uint8_t)i);
        assert_int_equal(insn.bytes[3], 0xd5);
        pc = i % 10 == 9 ? pc + 0x100 : pc + 4;
    }
    expect(tracelake_insns_next(insns, &insn, &error), TRACELAKE_EOF, &error);
    expect(tracelake_insns_next(insns, &insn, &error), TRACELAKE_EOF, &error);
    tracelake_insns_close(insns);
    tracelake_close(lake);
    fake_stop(&fake);
}

/* Less data than announced, damaged data, or no data: reported, and nothing is invented. */
static void notices_bad_ranges(void **state)
{
    struct tracelake *lake;
    struct tracelake_insns *insns;
    struct tracelake_insn insn;
    struct tracelake_error error = {0};
    const struct tracelake_range range = {"t", "cs.10", TRACELAKE_INSN, 0, TRACELAKE_END};
    for (int what = 0; what < 3; what++) {
        struct fake fake = {.fetch_piece = 1000, .fetch_count = 100};
        make_zstf(&fake.fetch, 90);
        if (what == 1)
            memset(fake.fetch.p + 60, 0x55, fake.fetch.n - 60);
        if (what == 2)
            fake.fetch.n = fake.fetch_count = 0;
        fake_start(&fake);
        expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
        int result = tracelake_insns_open(&insns, lake, &range, &error);
        if (result == TRACELAKE_OK) {
            while ((result = tracelake_insns_next(insns, &insn, &error)) == TRACELAKE_OK)
                continue;
            tracelake_insns_close(insns);
        }
        expect(result, what == 2 ? TRACELAKE_EOF : TRACELAKE_BAD, &error);
        tracelake_close(lake);
        fake_stop(&fake);
    }
}

static void maps_statuses(void **state)
{
    static const int wanted[17] = {
        [1] = TRACELAKE_UNREACHABLE, [2] = TRACELAKE_IO,           [3] = TRACELAKE_BAD,
        [4] = TRACELAKE_TIMEOUT,     [5] = TRACELAKE_NOTFOUND,     [6] = TRACELAKE_EXISTS,
        [7] = TRACELAKE_DENIED,      [8] = TRACELAKE_NOSPACE,      [9] = TRACELAKE_DENIED,
        [10] = TRACELAKE_EXISTS,     [11] = TRACELAKE_BAD,         [12] = TRACELAKE_UNSUPPORTED,
        [13] = TRACELAKE_IO,         [14] = TRACELAKE_UNREACHABLE, [15] = TRACELAKE_IO,
        [16] = TRACELAKE_DENIED,
    };
    for (int status = 1; status <= 16; status++) {
        struct fake fake = {.refuse_status = status};
        struct tracelake *lake;
        struct tracelake_trace *trace;
        struct tracelake_error error = {0};
        fake_start(&fake);
        expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
        expect(tracelake_get_trace(lake, "x", &trace, &error), wanted[status], &error);
        assert_int_equal(error.grpc_status, status);
        assert_true(strlen(error.text) > 10);
        tracelake_close(lake);
        fake_stop(&fake);
    }
}

/* A connection that breaks between two calls does not matter. */
static void reconnects_between_calls(void **state)
{
    struct fake fake = {.budget = 1, .seed = 4};
    struct tracelake *lake;
    struct tracelake_error error = {0};
    uint64_t durable;
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    expect(tracelake_offset(lake, "t", &durable, NULL, &error), 0, &error);
    fake.kick = true;
    while (fake.kick)
        poll(NULL, 0, 1);
    poll(NULL, 0, 20);
    expect(tracelake_offset(lake, "t", &durable, NULL, &error), 0, &error);
    assert_int_equal(fake.connections, 2);
    tracelake_close(lake);
    fake_stop(&fake);
}

static void refuses_urls(void **state)
{
    static const char *const bad[] = {
        "",
        "127.0.0.1:7070",
        "ftp://x",
        "http://",
        "http://:7070",
        "http://h:",
        "http://h:0",
        "http://h:65536",
        "http://h:7x",
        "http://h/path",
        "http://[::1",
        "http://u@h",
        "https://h?q",
        "http://h:123456",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tracelake *lake;
        struct tracelake_error error = {0};
        expect(tracelake_connect(&lake, bad[i], NULL, &error), TRACELAKE_USAGE, &error);
    }
    const struct tracelake_options pins[] = {
        {.fingerprint = "12"},
        {.fingerprint = "sha256:zz"},
        {.token = "a b"},
        {.token = "a\r\nb: c"},
    };
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        struct tracelake *lake;
        struct tracelake_error error = {0};
        expect(tracelake_connect(&lake, "https://127.0.0.1:1", &pins[i], &error), TRACELAKE_USAGE,
               &error);
    }
}

static void tells_of_no_server(void **state)
{
    struct fake fake = {0};
    struct tracelake *lake;
    struct tracelake_error error = {0};
    fake_start(&fake);
    fake_stop(&fake); /* its port is free now */
    expect(tracelake_connect(&lake, fake.url, NULL, &error), TRACELAKE_UNREACHABLE, &error);
    assert_non_null(strstr(error.text, "is the server running?"));
}

/* A peer that says some words to whoever connects, and ends the connection. */
struct peer {
    int listener;
    char url[64];
    pthread_t thread;
    const char *words;
    bool reads; /* what the client says, before it answers; else the system sends a reset */
};

static void *say_words(void *context)
{
    const struct peer *const peer = context;
    const size_t n = strlen(peer->words);
    char in[4096];
    const int fd = accept(peer->listener, NULL, NULL);
    poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
    if (peer->reads && recv(fd, in, sizeof in, 0) > 0 &&
        send(fd, peer->words, n, MSG_NOSIGNAL) == (ssize_t)n)
        shutdown(fd, SHUT_WR);
    close(fd);
    return NULL;
}

static void begin_peer(struct peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t n = sizeof address;
    peer->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(peer->listener, 1), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &n), 0);
    snprintf(peer->url, sizeof peer->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, say_words, peer), 0);
}

static void end_peer(struct peer *peer)
{
    pthread_join(peer->thread, NULL);
    close(peer->listener);
}

static void tells_of_another_server(void **state)
{
    static const char *const words[] = {
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "220 mail\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct peer peer = {.words = words[i], .reads = true};
        struct tracelake *lake;
        struct tracelake_error error = {0};
        begin_peer(&peer);
        expect(tracelake_connect(&lake, peer.url, NULL, &error), TRACELAKE_UNREACHABLE, &error);
        assert_non_null(strstr(error.text, "is it a tracelake server?"));
        assert_int_equal(error.grpc_status, 0);
        end_peer(&peer);
    }
}

/* A server that ends has accepted connections of which it knows nothing yet. */
static void tells_of_a_server_that_ends(void **state)
{
    for (int reads = 0; reads < 2; reads++) {
        struct peer peer = {.words = "", .reads = reads};
        struct tracelake *lake;
        struct tracelake_error error = {0};
        begin_peer(&peer);
        expect(tracelake_connect(&lake, peer.url, NULL, &error), TRACELAKE_UNREACHABLE, &error);
        assert_null(strstr(error.text, "HTTP/2"));
        assert_non_null(strstr(error.text, "connection"));
        assert_int_equal(error.grpc_status, 14);
        end_peer(&peer);
    }
}

/* The header and the library are of one version, told in every form. */
static void tells_versions(void **state)
{
    char text[32];
    (void)state;
    assert_string_equal(tracelake_version(), TRACELAKE_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", TRACELAKE_VERSION_MAJOR, TRACELAKE_VERSION_MINOR,
             TRACELAKE_VERSION_PATCH);
    assert_string_equal(text, TRACELAKE_VERSION);
#if TRACELAKE_VERSION_NUMBER < TRACELAKE_VERSION_OF(0, 1, 0) ||                                    \
    TRACELAKE_VERSION_NUMBER >= TRACELAKE_VERSION_OF(TRACELAKE_VERSION_MAJOR + 1, 0, 0)
    fail_msg("%d is out of order", TRACELAKE_VERSION_NUMBER);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_versions),
        cmocka_unit_test(lists_traces),
        cmocka_unit_test(lists_pages),
        cmocka_unit_test(fetches_pieces),
        cmocka_unit_test(iterates_instructions),
        cmocka_unit_test(notices_bad_ranges),
        cmocka_unit_test(maps_statuses),
        cmocka_unit_test(reconnects_between_calls),
        cmocka_unit_test(refuses_urls),
        cmocka_unit_test(tells_of_no_server),
        cmocka_unit_test(tells_of_another_server),
        cmocka_unit_test(tells_of_a_server_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
