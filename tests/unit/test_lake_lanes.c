/* SPDX-License-Identifier: MIT */
/* Lane data other than tiles compared with the truth of simulations: lines printed by programs,
 * states of a core, its cycles. */
#include "lake_analysis.h"
#include "lake_find.h"
#include "lake_lanes.h"
#include "sim/osd_encoder.h"
#include "sim_capture.h"

static struct tl_backend *backend;
static struct tl_lake *lake;

static int set_up(void **state)
{
    (void)state;
    lake = open_memory_lake(&backend, 2500, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

enum { STM = 2, UART = 3, LINES = 300 };

static void begin_osd(struct tl_sim_osd *osd)
{
    const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 16},
                                                {1, TL_SIM_OSD_CTM, 32},
                                                {STM, TL_SIM_OSD_STM, 32},
                                                {UART, TL_SIM_OSD_UART, 16}};
    tl_sim_osd_init(osd);
    assert_int_equal(tl_sim_osd_enumerate(osd, modules, 4), TL_OK);
}

static void end_osd(struct tl_sim_osd *osd, struct capture *c)
{
    struct tl_setup setup;
    *c = (struct capture){0};
    assert_int_equal(tl_buf_add(&c->bytes, osd->out.p, osd->out.n), TL_OK);
    tl_sim_osd_fini(osd);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "di", NULL), TL_OK);
    assert_int_equal(tl_setup_write(&setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
}

static void osd_capture(struct capture *c)
{
    struct tl_sim_osd osd;
    begin_osd(&osd);
    for (unsigned i = 0; i < LINES; i++) {
        char text[32];
        snprintf(text, sizeof text, "line %u of it\n", i);
        assert_int_equal(tl_sim_osd_stm_print(&osd, STM, 32, 1000 + 100 * i, 2, text), TL_OK);
        assert_int_equal(tl_sim_osd_stm(&osd, STM, 32, 1000 + 100 * i + 90, 7, 0x1200 + i), TL_OK);
        if (i % 10 == 0)
            for (const char *p = "boot\r\n"; *p; p++)
                assert_int_equal(tl_sim_osd_uart(&osd, UART, (uint8_t)*p), TL_OK);
    }
    end_osd(&osd, c);
}

static void ask(const struct tl_soft_request *request, struct tl_soft_log *log)
{
    struct tl_fail fail = {0};
    if (tl_lake_log(lake, request, log, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Check entry `k`: 2 i is line i, 2 i + 1 is the number after it. */
static void check_entry(const struct tl_soft_entry *e, unsigned k)
{
    char text[32];
    const unsigned i = k / 2;
    if (k % 2)
        snprintf(text, sizeof text, "0x%08x", 0x1200 + i);
    else
        snprintf(text, sizeof text, "line %u of it", i);
    assert_string_equal(e->text, text);
    assert_int_equal(e->is_text, k % 2 == 0);
    assert_true(e->has_time && e->has_channel && e->channel == (k % 2 ? 7 : 4));
    assert_int_equal(e->time, 1000 + 100 * i + (k % 2 ? 90 : 0));
    assert_string_equal(e->source, "osd-stm");
    assert_int_equal(e->records, k % 2 ? 1 : strlen(text) + 1);
}

static void prints_are_lines(void **state)
{
    struct capture c;
    struct tl_soft_log log;
    struct tl_fail fail = {0};
    (void)state;
    osd_capture(&c);
    push_sealed(lake, "t", &c, 1000);
    struct tl_soft_request request = {
        .trace = "t", .stream = "di.0.2", .to = UINT64_MAX, .limit = 10000};
    ask(&request, &log);
    assert_int_equal(log.n, 2 * LINES);
    assert_false(log.more);
    for (unsigned k = 0; k < log.n; k++)
        check_entry(&log.entries[k], k);
    /* Any range contains the lines that begin in it, complete. */
    for (unsigned from = 0; from < log.n; from += 37) {
        struct tl_soft_log part;
        request.from = log.entries[from].at;
        request.to = from + 20 < log.n ? log.entries[from + 20].at : UINT64_MAX;
        ask(&request, &part);
        assert_int_equal(part.n, from + 20 < log.n ? 20 : log.n - from);
        for (unsigned k = 0; k < part.n; k++)
            check_entry(&part.entries[k], from + k);
        tl_soft_log_fini(&part);
    }
    tl_soft_log_fini(&log);
    /* The first lines, the last lines, and lines by time. */
    request =
        (struct tl_soft_request){.trace = "t", .stream = "di.0.2", .to = UINT64_MAX, .limit = 5};
    ask(&request, &log);
    assert_true(log.n == 5 && log.more);
    check_entry(&log.entries[0], 0);
    tl_soft_log_fini(&log);
    request.last = true;
    ask(&request, &log);
    assert_true(log.n == 5 && log.more);
    check_entry(&log.entries[4], 2 * LINES - 1);
    tl_soft_log_fini(&log);
    request = (struct tl_soft_request){.trace = "t",
                                       .stream = "di.0.2",
                                       .unit = TL_UNIT_TIME,
                                       .from = 1000 + 100 * 20,
                                       .to = 1000 + 100 * 22};
    ask(&request, &log);
    assert_true(log.n == 4 && !log.more);
    check_entry(&log.entries[0], 40);
    tl_soft_log_fini(&log);
    request = (struct tl_soft_request){.trace = "t", .stream = "di.0.3", .to = UINT64_MAX};
    ask(&request, &log);
    assert_int_equal(log.n, LINES / 10);
    for (size_t k = 0; k < log.n; k++)
        assert_string_equal(log.entries[k].text, "boot");
    tl_soft_log_fini(&log);
    request.limit = 100000;
    assert_int_equal(tl_lake_log(lake, &request, &log, &fail), TL_USAGE);
    tl_soft_log_fini(&log);
    capture_free(&c);
}

/* Payload that could be characters is only text if its whole line is. */
static void values_are_no_text(void **state)
{
    static const struct {
        uint16_t id;
        uint32_t value;
        unsigned size;    /* of the entry that begins here; 0 if it is text */
        const char *text; /* NULL: none begins here */
    } records[] = {
        {9, 0xffeeddcc, 4, "0xffeeddcc"},
        {9, 0x000080c1, 4, "0x000080c1"},
        {8, 0x44434241, 4, "0x44434241"},
        {8, 0x00000102, 4, "0x00000102"},
        {7, 0xbcc37247, 0,
         "Gr\xc3\xbc\xc3\x9f"
         "e"},
        {7, 0x0a659fc3, 0, NULL},
        {6, 0x73657941, 0, "Ayes"},
        {6, 0x42ff410a, 4, "0x42ff410a"},
    };
    const size_t count = sizeof records / sizeof *records;
    struct tl_sim_osd osd;
    struct capture c;
    struct tl_soft_log log;
    (void)state;
    begin_osd(&osd);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(
            tl_sim_osd_stm(&osd, STM, 32, 1000 + 10 * i, records[i].id, records[i].value), TL_OK);
    end_osd(&osd, &c);
    push_sealed(lake, "values", &c, 1000);
    const struct tl_soft_request request = {
        .trace = "values", .stream = "di.0.2", .to = UINT64_MAX};
    ask(&request, &log);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!records[i].text)
            continue;
        assert_true(n < log.n);
        assert_string_equal(log.entries[n].text, records[i].text);
        assert_int_equal(log.entries[n].is_text, records[i].size == 0);
        assert_int_equal(log.entries[n].size, records[i].size);
        n++;
    }
    assert_int_equal(log.n, n);
    tl_soft_log_fini(&log);
    capture_free(&c);
}

/* ---- ports by rule, and searches in what is printed ----------------------------------------- */

static void put_letters(struct tl_buf *out, unsigned port, const char *text)
{
    for (; *text; text++)
        assert_int_equal(tl_buf_add(out, (uint8_t[]){(uint8_t)(port << 3 | 1), (uint8_t)*text}, 2),
                         TL_OK);
}

static void put_word(struct tl_buf *out, unsigned port, uint32_t value)
{
    uint8_t packet[5] = {(uint8_t)(port << 3 | 3)};
    tl_put_le32(packet + 1, value);
    assert_int_equal(tl_buf_add(out, packet, sizeof packet), TL_OK);
}

enum { ROUNDS = 4000 };

/* Port 3 has lines torn apart by port 4's numbers, and by samples of the program counter. */
static void itm_capture(struct capture *c)
{
    static const uint8_t sample[] = {0x17, 0, 1, 0, 8};
    static const char setup[] = "[trace]\nformat=itm\nclock=1000000\n[source cs.00]\nprotocol=itm\n"
                                "port3=text\nport4=i32\n";
    *c = (struct capture){0};
    for (unsigned i = 0; i < ROUNDS; i++) {
        char text[40];
        snprintf(text, sizeof text, "round %u: %s\n", i, i % 1000 == 999 ? "Fault \x1b" : "good");
        for (size_t k = 0; text[k]; k++) {
            put_letters(&c->bytes, 3, (char[]){text[k], 0});
            if (k % 8 == 3)
                put_word(&c->bytes, 4, -i);
        }
        assert_int_equal(tl_buf_add(&c->bytes, sample, sizeof sample), TL_OK);
        assert_int_equal(tl_buf_add(&c->bytes, (uint8_t[]){0x60}, 1), TL_OK);
    }
    assert_int_equal(tl_buf_add(&c->setup, setup, sizeof setup), TL_OK);
}

static void check_ports(void)
{
    struct tl_soft_log log;
    struct tl_soft_request request = {.trace = "itm",
                                      .stream = "cs.00",
                                      .to = UINT64_MAX,
                                      .limit = 10000,
                                      .one_channel = true,
                                      .channel = 3};
    ask(&request, &log);
    assert_int_equal(log.n, ROUNDS);
    assert_true(log.time_is_ns);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char text[40];
        snprintf(text, sizeof text, "round %u: %s", i, i % 1000 == 999 ? "Fault \\x1b" : "good");
        assert_string_equal(log.entries[i].text, text);
        assert_int_equal(log.entries[i].form, TL_PORT_TEXT);
        /* Between timestamps time is estimated. */
        assert_in_range(log.entries[i].time + 6000, UINT64_C(6000) * i, UINT64_C(6000) * (i + 3));
    }
    tl_soft_log_fini(&log);
    request.channel = 4;
    request.limit = 10;
    request.last = true;
    ask(&request, &log);
    assert_int_equal(log.n, 10);
    for (unsigned i = 5; i < 10; i++) {
        assert_string_equal(log.entries[i].text, i < 7 ? "-3998" : "-3999");
        assert_false(log.entries[i].is_text);
    }
    tl_soft_log_fini(&log);
}

/* Positions of lines: of each round's first letter. */
static void check_found(const char *stream, const char *text, bool backward, unsigned step,
                        unsigned n)
{
    struct tl_found found;
    struct tl_fail fail = {0};
    uint64_t last = backward ? UINT64_MAX : 0;
    const struct tl_find_request request = {.trace = "itm",
                                            .stream = stream,
                                            .kind = TL_FIND_TEXT,
                                            .text = text,
                                            .to = UINT64_MAX,
                                            .limit = 10000,
                                            .backward = backward,
                                            .count = true};
    if (tl_lake_find(lake, &request, &found, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(found.n, n);
    assert_int_equal(found.total, n);
    for (unsigned i = 0; i < n; i++) {
        char line[64];
        const unsigned round = step * (backward ? n - i : i + 1) - 1;
        snprintf(line, sizeof line, "itm 3 round %u: %s", round,
                 round % 1000 == 999 ? "Fault \\x1b" : "good");
        assert_string_equal(found.hits[i].text, line);
        assert_true(i == 0 ||
                    (backward ? found.hits[i].at.insn < last : found.hits[i].at.insn > last));
        last = found.hits[i].at.insn;
    }
    tl_found_fini(&found);
}

static void ports_by_rule(void **state)
{
    struct capture c;
    (void)state;
    itm_capture(&c);
    push_sealed(lake, "itm", &c, 1000);
    check_ports();
    for (int backward = 0; backward < 2; backward++) {
        check_found("cs.00", "text:fault", backward, 1000, ROUNDS / 1000);
        check_found("", "text:fault", backward, 1000, ROUNDS / 1000);
        check_found("cs.00", "text:ROUND*: ", backward, 1, ROUNDS);
        check_found("cs.00", "text:round 399?:*f*", backward, 4000, 1);
        check_found("cs.00", "text:no such", backward, 1, 0);
    }
    capture_free(&c);
}

/* ---- states and counters --------------------------------------------------------------------- */

/* Goes through the text of a stream. */
struct truth {
    const char *at;
    uint64_t position; /* of the next instruction */
    char mode[32];     /* "" and "-": unknown */
    char context[32];
};

static const char *stream_text(struct capture *c, const char *name)
{
    char head[64];
    snprintf(head, sizeof head, "# stream %s\n", name);
    if (c->text.n == 0 || c->text.p[c->text.n - 1] != '\0')
        assert_int_equal(tl_buf_add(&c->text, "", 1), TL_OK);
    const char *const at = strstr((const char *)c->text.p, head);
    assert_non_null(at);
    return at + strlen(head);
}

/* Apply and return the next line. Returns NULL at the end. */
static const char *next_line(struct truth *t)
{
    const char *const line = t->at;
    if (*line == '\0' || *line == '#')
        return NULL;
    t->at += strcspn(line, "\n") + 1;
    if (*line == 'I' || *line == 'N')
        t->position++;
    else if (*line == 'M')
        sscanf(line, "M %31s", t->mode);
    else if (*line == 'C')
        sscanf(line, "C %31s", t->context);
    return line;
}

static const struct tl_state_run *run_at(const struct tl_states *states, uint64_t at)
{
    for (size_t i = 0; i < states->n; i++)
        if (states->runs[i].from <= at && at < states->runs[i].to)
            return &states->runs[i];
    fail_msg("nothing is told of %llu", (unsigned long long)at);
    return NULL;
}

/* Check that every instruction of a range has the state given in the trace. */
static void check_states(struct capture *c, const char *stream, uint64_t from, uint64_t to)
{
    struct tl_states states;
    struct tl_fail fail = {0};
    struct truth t = {.at = stream_text(c, stream)};
    const struct tl_lane_request request = {
        .trace = "t", .stream = stream, .from = from, .to = to, .columns = 2048};
    if (tl_lake_states(lake, &request, &states, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_false(states.sampled);
    assert_true(states.runs[0].from == from);
    for (size_t i = 1; i < states.n; i++)
        assert_true(states.runs[i].from == states.runs[i - 1].to);
    for (const char *line; t.position < to && (line = next_line(&t));) {
        if ((*line != 'I' && *line != 'N') || t.position <= from)
            continue;
        const struct tl_state_run *const run = run_at(&states, t.position - 1);
        assert_false(run->mixed);
        assert_string_equal(run->mode_text, t.mode);
        assert_int_equal(run->has_context, t.context[0] && t.context[0] != '-');
        if (run->has_context)
            assert_int_equal(run->context, strtoull(t.context, NULL, 16));
    }
    tl_states_fini(&states);
}

static void states_are_the_core_s(void **state)
{
    struct capture c;
    struct tl_states states;
    struct tl_fail fail = {0};
    const struct sim_options options = {
        .seed = 9, .insns = 12000, .cores = 2, .image = true, .events = true};
    (void)state;
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 3000);
    check_states(&c, "cs.10", 0, 2000);
    check_states(&c, "cs.10", 6123, 8000);
    check_states(&c, "cs.11", 9000, 11000);
    /* By time: states begin and end at times of instructions. */
    const struct tl_lane_request request = {
        .trace = "t", .stream = "cs.10", .axis = TL_UNIT_TIME, .to = UINT64_MAX, .columns = 2048};
    assert_int_equal(tl_lake_states(lake, &request, &states, &fail), TL_OK);
    assert_true(states.n > 10);
    for (size_t i = 0; i + 1 < states.n; i++)
        assert_true(states.runs[i].from <= states.runs[i].to &&
                    states.runs[i].to == states.runs[i + 1].from);
    tl_states_fini(&states);
    const struct tl_lane_request wrong = {
        .trace = "t", .stream = "cs.10", .axis = TL_UNIT_BYTE, .to = UINT64_MAX};
    assert_int_equal(tl_lake_states(lake, &wrong, &states, &fail), TL_USAGE);
    tl_states_fini(&states);
    capture_free(&c);
}

/* The cycles of instructions [from, to), where the trace has them for all of these. */
static uint64_t true_cycles(struct capture *c, uint64_t from, uint64_t to, uint64_t *insns)
{
    struct truth t = {.at = stream_text(c, "cs.10")};
    uint64_t cycles = 0, last = UINT64_MAX;
    *insns = 0;
    for (const char *line; (line = next_line(&t));) {
        if (*line == 'G')
            last = UINT64_MAX;
        if (*line != 'Y')
            continue;
        const bool known = line[2] != '-';
        if (known && last != UINT64_MAX && last >= from && t.position <= to) {
            cycles += strtoull(line + 2, NULL, 10);
            *insns += t.position - last;
        }
        last = known ? t.position : UINT64_MAX;
    }
    return cycles;
}

static void cycles_are_counted(void **state)
{
    struct capture c;
    struct tl_counters counters;
    struct tl_fail fail = {0};
    const struct sim_options options = {
        .seed = 11, .insns = 12000, .cores = 1, .image = true, .events = true, .cycles = true};
    (void)state;
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 3000);
    struct tl_lane_request request = {
        .trace = "t", .stream = "cs.10", .to = UINT64_MAX, .columns = 64};
    if (tl_lake_counters(lake, &request, &counters, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t insns = 0, cycles = 0, counted = 0, time = 0, truly;
    for (size_t i = 0; i < counters.n; i++) {
        insns += counters.p[i].insns;
        cycles += counters.p[i].cycles;
        counted += counters.p[i].cycle_insns;
        time += counters.p[i].time;
    }
    assert_int_equal(counters.n, 64);
    assert_true(counters.has_cycles && counters.has_time && !counters.sampled);
    assert_int_equal(insns, counters.to);
    assert_true(time > 0);
    assert_int_equal(cycles, true_cycles(&c, 0, UINT64_MAX, &truly));
    assert_int_equal(counted, truly);
    assert_true(truly > insns / 2);
    print_message("%llu cycles for %llu of %llu instructions\n", (unsigned long long)cycles,
                  (unsigned long long)truly, (unsigned long long)insns);
    tl_counters_fini(&counters);
    request = (struct tl_lane_request){
        .trace = "t", .stream = "cs.10", .axis = TL_UNIT_TIME, .to = UINT64_MAX, .columns = 100};
    assert_int_equal(tl_lake_counters(lake, &request, &counters, &fail), TL_OK);
    uint64_t again = 0, width = 0;
    for (size_t i = 0; i < counters.n; i++) {
        again += counters.p[i].insns;
        width += counters.p[i].time;
    }
    assert_true(again <= insns && again > insns * 9 / 10);
    assert_int_equal(width, counters.to - counters.from);
    tl_counters_fini(&counters);
    capture_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prints_are_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_no_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ports_by_rule, set_up, tear_down),
        cmocka_unit_test_setup_teardown(states_are_the_core_s, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cycles_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("lake_lanes", tests, NULL, NULL);
}
