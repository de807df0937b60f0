/* SPDX-License-Identifier: MIT */
/*
 * The packet layer compared with the reference decoder's listings of real captures. The listings
 * contain every packet's bytes, so each source's stream can be rebuilt from them and packetized
 * again.
 */
#include "etm4/packet_text.h"
#include "etm4/packetizer.h"
#include "import/bundle.h"
#include "unit/etm4_collect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDS 128

/* A packet of a listing. */
struct listed {
    char name[32];
    uint64_t index;
    size_t bytes;
    char *text; /* after the name */
};

struct stream {
    struct listed *listed;
    size_t n, cap;
    struct tl_buf bytes;
};

static const char *data_folder(void)
{
    const char *data = getenv("TL_DATA");
    return data != NULL ? data : TL_SOURCE_DIR "/../shared/data";
}

/* "…Idx:21; ID:10; [0xf7 ];\tI_ATOM_F1 : Atom format 1.; E" */
static void take_line(struct stream streams[IDS], char *line)
{
    char *at = strstr(line, "Idx:");
    unsigned id;
    uint64_t index;
    int used = 0;

    if (at == NULL || sscanf(at, "Idx:%" SCNu64 "; ID:%x; [%n", &index, &id, &used) < 2 ||
        used == 0 || id >= IDS)
        return;
    struct stream *s = &streams[id];
    struct listed packet = {.index = index};
    for (at += used; strncmp(at, "0x", 2) == 0; at += 5, packet.bytes++) {
        const uint8_t byte = (uint8_t)strtoul(at, NULL, 16);
        assert_int_equal(tl_buf_add(&s->bytes, &byte, 1), 0);
    }
    if (sscanf(at, "];\t%31s :%n", packet.name, &used) < 1)
        fail_msg("listing line not understood: %s", line);
    packet.text = strdup(at + used);
    assert_int_equal(tl_grow(&s->listed, &s->cap, s->n + 1, sizeof *s->listed), 0);
    s->listed[s->n++] = packet;
}

static void read_listing(struct stream streams[IDS], const char *name)
{
    char command[512];
    snprintf(command, sizeof command, "zcat %s/coresight/golden/%s.packets.ppl.gz", data_folder(),
             name);
    FILE *pipe = popen(command, "r");
    char *line = NULL;
    size_t cap = 0;

    assert_non_null(pipe);
    while (getline(&line, &cap, pipe) > 0)
        take_line(streams, line);
    free(line);
    assert_int_equal(pclose(pipe), 0);
}

static void split(struct packets *out, const struct tl_etm4_config *config,
                  const struct tl_buf *bytes, size_t chunk)
{
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    tl_etm4_packetizer_init(p, config, collect, out);
    for (size_t i = 0; i < bytes->n; i += chunk) {
        const size_t n = bytes->n - i < chunk ? bytes->n - i : chunk;
        const struct tl_run run = {bytes->p + i, n, i, NULL};
        assert_int_equal(tl_etm4_packetizer_push(p, &run), 0);
    }
    assert_int_equal(tl_etm4_packetizer_finish(p), 0);
    free(p);
}

/* The number after `key` in a listing's text, 0 if absent. */
static bool number(const char *text, const char *key, int base, uint64_t *out)
{
    const char *at = strstr(text, key);
    if (at == NULL)
        return false;
    *out = strtoull(at + strlen(key), NULL, base);
    return true;
}

static void same_atoms(const struct tl_etm4_packet *packet, const char *text)
{
    const char *atoms = strrchr(text, ' ') + 1;
    assert_int_equal(strspn(atoms, "EN"), packet->n);
    for (unsigned k = 0; k < packet->n; k++)
        assert_int_equal(packet->value >> k & 1, atoms[k] == 'E');
}

static void same_context(const struct tl_etm4_packet *packet, const char *text)
{
    const uint32_t flags = packet->flags;
    const char *context = strstr(text, "Ctxt: AArch");
    uint64_t value;

    assert_int_equal((flags & TL_ETM4_HAS_CONTEXT) != 0, context != NULL);
    if (context == NULL)
        return;
    assert_int_equal((flags & TL_ETM4_SF) != 0, strncmp(context + 11, "64", 2) == 0);
    assert_true(number(context, "EL", 10, &value));
    assert_int_equal(flags >> TL_ETM4_EL_SHIFT & 3, value);
    assert_int_equal((flags & TL_ETM4_NS) != 0, strstr(context, " NS;") != NULL);
    assert_int_equal((flags & TL_ETM4_HAS_CTXID) != 0, number(context, "CID=", 16, &value));
    if (flags & TL_ETM4_HAS_CTXID)
        assert_int_equal(packet->context_id, value);
    assert_int_equal((flags & TL_ETM4_HAS_VMID) != 0, number(context, "VMID=", 16, &value));
    if (flags & TL_ETM4_HAS_VMID)
        assert_int_equal(packet->vmid, value);
}

static void same_values(const struct tl_etm4_packet *packet, const char *text)
{
    uint64_t value;

    switch (packet->type) {
    case TL_ETM4_ATOM:
        same_atoms(packet, text);
        break;
    case TL_ETM4_ADDRESS:
    case TL_ETM4_SOURCE_ADDRESS:
        assert_true(number(text, "Addr=", 16, &value));
        assert_int_equal(packet->value, value);
        same_context(packet, text);
        break;
    case TL_ETM4_CONTEXT:
        same_context(packet, text);
        break;
    case TL_ETM4_Q:
        assert_true(number(text, "Count(", 10, &value));
        assert_int_equal(packet->value2, value);
        if (number(text, "Addr=", 16, &value))
            assert_int_equal(packet->value, value);
        break;
    case TL_ETM4_TIMESTAMP:
        assert_true(number(text, "Updated val = ", 16, &value));
        assert_int_equal(packet->value, value);
        assert_int_equal((packet->flags & TL_ETM4_HAS_COUNT) != 0, number(text, "CC=", 16, &value));
        if (packet->flags & TL_ETM4_HAS_COUNT)
            assert_int_equal(packet->value2, value);
        break;
    case TL_ETM4_CYCLE_COUNT:
        assert_true(number(text, "Count=", 16, &value));
        assert_int_equal(packet->value, value);
        break;
    case TL_ETM4_COMMIT:
        assert_true(number(text, "Commit(", 10, &value));
        assert_int_equal(packet->value, value);
        break;
    case TL_ETM4_CANCEL:
        assert_true(number(text, "Cancel(", 10, &value));
        assert_int_equal(packet->value, value);
        break;
    case TL_ETM4_TRACE_INFO:
        assert_true(number(text, "INFO=", 16, &value));
        assert_int_equal(packet->n, value);
        if (number(text, "CC_THRESHOLD=", 16, &value))
            assert_int_equal(packet->value2, value);
        break;
    case TL_ETM4_ITE:
        assert_true(number(text, "EL", 10, &value));
        assert_int_equal(packet->n, value);
        assert_true(number(text, "Payload=", 16, &value));
        assert_int_equal(packet->value, value);
        break;
    default:
        break;
    }
}

/* The listing shows unsynchronised bytes in groups of eight; our packetizer gives one packet. */
static size_t same_not_sync(const struct stream *s, size_t k, const struct tl_etm4_packet *packet)
{
    uint64_t bytes = 0;
    while (k < s->n && strcmp(s->listed[k].name, "I_NOT_SYNC") == 0)
        bytes += s->listed[k++].bytes;
    assert_int_equal(bytes, packet->value);
    return k;
}

static void same_packets(const struct stream *s, const struct packets *ours, const char *what,
                         bool linear)
{
    size_t k = 0;
    uint64_t offset = 0;
    for (size_t i = 0; i < ours->n; i++) {
        const struct tl_etm4_packet *packet = &ours->p[i];
        if (k >= s->n)
            fail_msg("%s: %zu packets listed, we found more", what, s->n);
        if (strcmp(s->listed[k].name, tl_etm4_packet_name(packet)) != 0)
            fail_msg("%s: packet %zu at %" PRIu64 " is %s, we say %s", what, k, s->listed[k].index,
                     s->listed[k].name, tl_etm4_packet_name(packet));
        assert_int_equal(packet->offset, offset);
        if (linear)
            assert_int_equal(packet->offset, s->listed[k].index);
        same_values(packet, s->listed[k].text);
        const size_t from = k;
        k = packet->type == TL_ETM4_NOT_SYNC ? same_not_sync(s, k, packet) : k + 1;
        for (size_t j = from; j < k; j++)
            offset += s->listed[j].bytes;
    }
    assert_int_equal(k, s->n);
}

static void check_stream(const struct stream *s, const struct tl_source *source, const char *what,
                         bool linear)
{
    static const size_t chunks[] = {SIZE_MAX, 1, 7, 64};
    struct tl_etm4_config config;
    struct packets whole = {0};

    tl_etm4_config_init(&config, source);
    split(&whole, &config, &s->bytes, chunks[0]);
    same_packets(s, &whole, what, linear);
    for (size_t k = 1; k < sizeof chunks / sizeof chunks[0]; k++) {
        struct packets ours = {0};
        split(&ours, &config, &s->bytes, chunks[k]);
        assert_int_equal(ours.n, whole.n);
        assert_memory_equal(ours.p, whole.p, whole.n * sizeof *whole.p);
        free(ours.p);
    }
    free(whole.p);
}

static size_t check_listing(const struct tl_setup *setup, const char *name)
{
    static struct stream streams[IDS];
    const bool linear = setup->container == TL_CONTAINER_SINGLE;
    size_t packets = 0;

    memset(streams, 0, sizeof streams);
    read_listing(streams, name);
    for (unsigned id = 0; id < IDS; id++) {
        struct stream *s = &streams[id];
        const struct tl_source *source = s->n ? tl_setup_source(setup, id) : NULL;
        char what[192];
        snprintf(what, sizeof what, "%s ID %02x", name, id);
        if (source != NULL &&
            (source->protocol == TL_PROTO_ETM4 || source->protocol == TL_PROTO_ETE)) {
            check_stream(s, source, what, linear);
            packets += s->n;
        }
        for (size_t k = 0; k < s->n; k++)
            free(s->listed[k].text);
        free(s->listed);
        tl_buf_fini(&s->bytes);
    }
    return packets;
}

static void test_goldens(void **state)
{
    (void)state;
    static const char *const names[] = {
        "001-ack_test",      "a55-test-tpiu",  "a57_single_step",
        "armv8_1m_branches", "ete-ite-instr",  "ete_ip",
        "ete_mem",           "ete_spec_1",     "event_test",
        "feat_cmpbr",        "infrastructure", "init-short-addr",
        "juno-uname-002",    "juno_r1_1",      "q_elem",
        "src_addr",          "tme_simple",     "trace_file_cid_vmid",
        "ts_marker",
    };
    size_t packets = 0;

    if (access(data_folder(), R_OK) != 0) {
        print_message("skipped: %s is not there\n", data_folder());
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        struct tl_bundle snapshot;
        struct tl_fail fail = {0};
        snprintf(path, sizeof path, "%s/coresight/snapshots/%s", data_folder(), names[i]);
        if (tl_snapshot_read(&snapshot, path, NULL, NULL, &fail) < 0)
            fail_msg("%s: %s", path, fail.text);
        for (size_t b = 0; b < snapshot.n_captures; b++) {
            char name[160];
            snprintf(name, sizeof name, "%s.%s", names[i], snapshot.captures[b].name);
            packets += check_listing(&snapshot.captures[b].setup,
                                     snapshot.n_captures > 1 ? name : names[i]);
        }
        tl_bundle_fini(&snapshot);
    }
    print_message("%zu packets as the reference lists them\n", packets);
    assert_true(packets > 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goldens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
