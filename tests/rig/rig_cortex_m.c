/* SPDX-License-Identifier: MIT */
/*
 * A microcontroller: a Cortex-M4 that runs tasks under an RTOS. Its ETMv3 traces the program; ITM
 * and DWT tell, with time, what tasks print and measure, which handlers run, where the processor
 * is and what is written to the variable `ticks`; all through a TPIU, with times of one clock. The
 * same handlers occur in both, but not in step: the program is a random one, with one handler for
 * all exceptions, while those that the DWT tells follow the clock.
 */
#include "rig.h"

#include "sim/etm3_encoder.h"
#include "sim/small_elf.h"
#include "sim/tpiu_encoder.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    ITM = 0x01,
    ETM = 0x10,
    CLOCK = 100000000, /* Hz */
    EPOCH = 5 * CLOCK, /* what its counter stands at when the trace begins */
    TICK = CLOCK / 1000,
    FLASH = 0x08000000,
    VECTORS = 128,
    CODE = FLASH + 4 * VECTORS,
    TICKS = 0x20000100, /* where the variable is */
    PENDSV = 14,
    SYSTICK = 15,
    UART1 = 53,
    PIECE = 3000, /* instructions of the ETM's program for each tick, on the average */
    PERIOD = 4,   /* ticks from one piece of it to the next */
    STEP = 9000   /* of its timestamps at most, so that a piece ends before the next begins */
};

struct rig {
    struct tl_arm32_program program;
    struct tl_buf elf;
    struct tl_tpiu_encoder tpiu;
    struct tl_sim_rng rng;
    struct tl_buf itm, etm;       /* not in frames yet */
    struct tl_buf packets, lines; /* ITM's, which wait for their timestamp */
    struct tl_buf said, ran;      /* truth: of ITM and ETM */
    uint64_t now, stamped;        /* in ticks of the clock; the last timestamp */
    uint64_t global;              /* upper bits of the last global timestamp; 0: none yet */
    uint32_t ticks, rounds;
    bool keep_truth;
};

/* ---- the program ----------------------------------------------------------------------------- */

static uint32_t function_at(const struct rig *rig, unsigned i)
{
    return rig->program.insns[rig->program.functions[i]].address;
}

/* Handlers that only return, behind the program: SysTick, PendSV, UART1. */
static uint32_t handler_at(const struct rig *rig, unsigned i)
{
    return (uint32_t)(CODE + ((rig->program.code.n + 3) & ~(size_t)3) + 4 * i);
}

static int add_code(const struct rig *rig, struct tl_buf *code)
{
    static const unsigned numbers[] = {SYSTICK, PENDSV, UART1};
    static const uint8_t returns[] = {0x70, 0x47, 0x00, 0xbf}; /* bx lr; nop */
    static const uint8_t nothing[4] = {0};
    const uint32_t other = rig->program.insns[rig->program.handler].address | 1;
    int r = TL_OK;
    for (unsigned i = 0; i < VECTORS && r >= 0; i++) {
        uint8_t word[4];
        uint32_t vector = i == 0 ? 0x20001000 : i == 1 ? function_at(rig, 0) | 1 : other;
        for (unsigned k = 0; k < 3; k++)
            vector = i == numbers[k] ? handler_at(rig, k) | 1 : vector;
        tl_put_le32(word, vector);
        r = tl_buf_add(code, word, sizeof word);
    }
    if (r >= 0)
        r = tl_buf_add(code, rig->program.code.p, rig->program.code.n);
    if (r >= 0)
        r = tl_buf_add(code, nothing, (4 - rig->program.code.n % 4) % 4);
    for (unsigned k = 0; k < 3 && r >= 0; k++)
        r = tl_buf_add(code, returns, sizeof returns);
    return r;
}

static int make_elf(struct rig *rig)
{
    static const char *const names[TL_ARM32_FUNCTIONS] = {
        "main",         "task_sensor", "task_motor", "task_radio", "queue_send",  "queue_receive",
        "filter_value", "pid_step",    "crc16",      "uart_write", "timer_start", "wait_for_event"};
    struct tl_sim_elf_symbol symbols[TL_ARM32_FUNCTIONS + 6];
    struct tl_buf code = {0};
    size_t n = 0;
    int r = add_code(rig, &code);
    for (unsigned i = 0; i < TL_ARM32_FUNCTIONS; i++) {
        const uint32_t end = i + 1 < TL_ARM32_FUNCTIONS
                                 ? function_at(rig, i + 1)
                                 : rig->program.insns[rig->program.handler].address;
        const uint32_t at = function_at(rig, i);
        symbols[n++] = (struct tl_sim_elf_symbol){names[i], at | 1, end - at, 0};
    }
    const struct tl_sim_elf_symbol more[] = {
        {"Default_Handler", rig->program.insns[rig->program.handler].address | 1,
         (uint32_t)(handler_at(rig, 0) - rig->program.insns[rig->program.handler].address), 0},
        {"SysTick_Handler", handler_at(rig, 0) | 1, 4, 0},
        {"PendSV_Handler", handler_at(rig, 1) | 1, 4, 0},
        {"UART1_IRQHandler", handler_at(rig, 2) | 1, 4, 0},
        {"__Vectors", FLASH, 4 * VECTORS, STT_OBJECT},
        {"ticks", TICKS, 4, STT_OBJECT},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        symbols[n++] = more[i];
    const struct tl_sim_elf elf = {.machine = EM_ARM,
                                   .address = FLASH,
                                   .code = {code.p, code.n},
                                   .symbols = symbols,
                                   .n_symbols = n};
    if (r >= 0)
        r = tl_sim_elf_make(&elf, &rig->elf);
    tl_buf_fini(&code);
    return r;
}

/* ---- ITM and DWT ----------------------------------------------------------------------------- */

static int put_packet(struct rig *rig, unsigned id, bool hardware, unsigned size, uint32_t value)
{
    const unsigned ss = size == 4 ? 3 : size;
    uint8_t bytes[5] = {(uint8_t)(id << 3 | (unsigned)hardware << 2 | ss)};
    tl_put_le32(bytes + 1, value);
    return tl_buf_add(&rig->packets, bytes, 1 + size);
}

/* Everything since the last timestamp has the present time. */
static int put_time(struct rig *rig)
{
    uint8_t bytes[6] = {0xc0};
    unsigned n = 1;
    uint64_t delta = rig->now - rig->stamped;
    do {
        bytes[n] = (uint8_t)((delta & 0x7f) | (delta > 0x7f ? 0x80 : 0));
        delta >>= 7;
    } while (bytes[n++] & 0x80);
    rig->stamped = rig->now;
    int r = tl_buf_add(&rig->itm, rig->packets.p, rig->packets.n);
    if (r >= 0)
        r = tl_buf_add(&rig->itm, bytes, n);
    if (r >= 0 && rig->keep_truth)
        r = tl_buf_printf(&rig->said, "T %" PRIu64 "\n%.*s", EPOCH + rig->now, (int)rig->lines.n,
                          (const char *)rig->lines.p);
    tl_buf_reset(&rig->packets);
    tl_buf_reset(&rig->lines);
    return r;
}

/* Where the counter stood at the last timestamp, in front of which nothing waits: the clock of the
 * ETM's timestamps, too. */
static int put_global_time(struct rig *rig)
{
    enum { LOW = 26 };
    const uint64_t time = EPOCH + rig->stamped, high = time >> LOW;
    const uint32_t low = (uint32_t)(time & ((1u << LOW) - 1));
    const bool first = rig->global == 0, whole = rig->global != high;
    const uint8_t bytes[] = {0x94,
                             (uint8_t)(low | 0x80),
                             (uint8_t)(low >> 7 | 0x80),
                             (uint8_t)(low >> 14 | 0x80),
                             (uint8_t)(low >> 21 | (whole ? 0x40 : 0)),
                             0xb4,
                             (uint8_t)(high | 0x80),
                             (uint8_t)(high >> 7 | 0x80),
                             (uint8_t)(high >> 14 | 0x80),
                             (uint8_t)(high >> 21 & 1)};
    rig->global = high;
    int r = tl_buf_add(&rig->itm, bytes, whole ? sizeof bytes : 5);
    if (r >= 0 && rig->keep_truth)
        r = tl_buf_printf(&rig->said, "T %" PRIu64 "\n", time);
    if (r >= 0 && rig->keep_truth && first)
        r = tl_buf_printf(&rig->said, "A global-time-low %" PRIu32 "\n", low);
    return r;
}

/* `action`: 1 enter, 2 exit, 3 return. */
static int put_exception(struct rig *rig, unsigned number, unsigned action)
{
    static const char *const actions[] = {"", "enter", "exit", "return"};
    const char *const name = number == 0         ? "thread"
                             : number == PENDSV  ? "PendSV"
                             : number == SYSTICK ? "SysTick"
                                                 : "UART1";
    const int r =
        tl_buf_printf(&rig->lines, "H exception %s %u %s\n", actions[action], number, name);
    return r < 0 ? r : put_packet(rig, 1, true, 2, number | action << 12);
}

static int put_tick(struct rig *rig)
{
    const uint32_t pc = handler_at(rig, 0);
    int r = put_packet(rig, 8, true, 4, pc);
    if (r >= 0)
        r = put_packet(rig, 17, true, 4, ++rig->ticks);
    return r < 0 ? r
                 : tl_buf_printf(&rig->lines,
                                 "H data write 0 %08x %08" PRIx32 " %016" PRIx32 " ticks\n", TICKS,
                                 rig->ticks, pc);
}

static int put_sample(struct rig *rig)
{
    const bool asleep = tl_sim_below(&rig->rng, 3) == 0;
    const uint32_t pc =
        function_at(rig, 1 + tl_sim_below(&rig->rng, 3 + tl_sim_below(&rig->rng, 8)));
    const int r = asleep ? tl_buf_printf(&rig->lines, "H sleep\n")
                         : tl_buf_printf(&rig->lines, "H pc %016" PRIx32 "\n", pc);
    return r < 0 ? r : put_packet(rig, 2, true, asleep ? 1 : 4, asleep ? 0 : pc);
}

static int print_text(struct rig *rig, unsigned port, const char *text)
{
    int r = TL_OK;
    for (; *text && r >= 0; text++) {
        r = tl_buf_printf(&rig->lines, "S itm %u %02x text\n", port, (unsigned char)*text);
        if (r >= 0)
            r = put_packet(rig, port, false, 1, (unsigned char)*text);
    }
    return r;
}

static int put_value(struct rig *rig, int32_t value)
{
    const uint32_t bits = (uint32_t)value;
    const int r =
        tl_buf_printf(&rig->lines, "S itm 4 %08" PRIx32 " i32 %" PRId32 "\n", bits, value);
    return r < 0 ? r : put_packet(rig, 4, false, 4, bits);
}

/* A handler of about `cycles`, which leaves to `next`: another handler (tail chaining), or 0. */
static int run_handler(struct rig *rig, unsigned number, uint32_t cycles, unsigned next)
{
    int r = put_exception(rig, number, 1);
    if (r >= 0)
        r = put_time(rig);
    rig->now += cycles + tl_sim_below(&rig->rng, cycles);
    if (r >= 0 && number == SYSTICK)
        r = put_tick(rig);
    if (r >= 0)
        r = put_exception(rig, number, 2);
    if (r >= 0)
        r = put_time(rig);
    rig->now += 12;
    if (next)
        return r < 0 ? r : run_handler(rig, next, 300, 0);
    if (r >= 0)
        r = put_exception(rig, 0, 3);
    return r < 0 ? r : put_time(rig);
}

/* The application prints on port 0; its driver tells on port 3 what it sees, each second tick. */
static int run_task(struct rig *rig)
{
    char text[64];
    const bool good = tl_sim_below(&rig->rng, 8) > 0, prints = rig->ticks % 10 == 3;
    const unsigned value = tl_sim_below(&rig->rng, 1000);
    int r = TL_OK;
    if (prints || rig->ticks % 2 == 0) {
        snprintf(text, sizeof text, "bus %" PRIu32 ": %s\n", rig->ticks,
                 prints && !good ? "no answer" : "ok");
        r = print_text(rig, 3, text);
    }
    if (prints && r >= 0) {
        snprintf(text, sizeof text, "%s %" PRIu32 ": %u\n",
                 good ? "sensor" : "fault: no answer, turn", rig->ticks, value);
        r = print_text(rig, 0, text);
    }
    if (r >= 0)
        r = put_value(rig, (int32_t)tl_sim_below(&rig->rng, 2000) - 1000);
    return r < 0 ? r : put_time(rig);
}

/* A millisecond: the tick, which is up to 2 us late, perhaps a switch; tasks, samples, interrupts.
 */
static int run_tick(struct rig *rig)
{
    const uint64_t begin = (uint64_t)(rig->ticks + 1) * TICK;
    rig->now = begin + tl_sim_below(&rig->rng, TICK / 500);
    int r = rig->ticks % PERIOD == 0 ? put_global_time(rig) : TL_OK;
    if (r >= 0)
        r = run_handler(rig, SYSTICK, 400, rig->ticks % 4 == 1 ? PENDSV : 0);
    rig->now += 500;
    if (r >= 0)
        r = run_task(rig);
    for (unsigned i = 1; i < 10 && r >= 0; i++) {
        rig->now = begin + i * (TICK / 10) + tl_sim_below(&rig->rng, 100);
        r = put_sample(rig);
        if (r >= 0)
            r = put_time(rig);
        if (r >= 0 && tl_sim_below(&rig->rng, 12) == 0)
            r = run_handler(rig, UART1, 200, 0);
    }
    return r;
}

/* ---- the rig --------------------------------------------------------------------------------- */

static struct tl_sim_etm3_options etm_options(uint64_t seed)
{
    return (struct tl_sim_etm3_options){.seed = seed,
                                        .timestamps = true,
                                        .time_step = STEP,
                                        .insns = PIECE,
                                        .m_profile = true,
                                        .exceptions = {SYSTICK, PENDSV, UART1},
                                        .alternative_branch = true,
                                        .exit_packets = true,
                                        .sync_every = 1024};
}

/* The program of some ticks, beginning anew. */
static int run_program(struct rig *rig)
{
    struct tl_sim_etm3_options options = etm_options(rig->rng.state + rig->rounds++);
    options.time = EPOCH + rig->now - (PERIOD - 1) * TICK;
    struct tl_buf none = {0};
    struct tl_buf *const ran = rig->keep_truth ? &rig->ran : &none;
    int r = tl_buf_add(ran, "O\n", 2); /* tracing was off since the piece before */
    if (r >= 0)
        r = tl_sim_etm3_encode(&rig->program, &options, &rig->etm, ran);
    tl_buf_fini(&none);
    return r;
}

static void stop(struct rig *rig)
{
    tl_arm32_program_fini(&rig->program);
    tl_tpiu_encoder_fini(&rig->tpiu);
    tl_buf_fini(&rig->elf);
    tl_buf_fini(&rig->itm);
    tl_buf_fini(&rig->etm);
    tl_buf_fini(&rig->packets);
    tl_buf_fini(&rig->lines);
    tl_buf_fini(&rig->said);
    tl_buf_fini(&rig->ran);
    free(rig);
}

static int start(struct rig **out, uint64_t seed, bool truth)
{
    struct rig *const rig = calloc(1, sizeof *rig);
    if (!rig)
        return TL_NOMEM;
    rig->keep_truth = truth;
    rig->rng = (struct tl_sim_rng){seed};
    tl_tpiu_encoder_init(&rig->tpiu, TL_TPIU_FSYNC, seed);
    int r = tl_arm32_program_init(&rig->program, seed, CODE, true);
    if (r >= 0)
        r = make_elf(rig);
    if (r < 0)
        stop(rig);
    else
        *out = rig;
    return r;
}

static int describe(struct rig *rig, struct tl_setup *setup, struct tl_buf *elf)
{
    static const char text[] =
        "[trace]\nformat=tpiu,sync=fsync\nclock=100000000\n"
        "[source cs.01]\nprotocol=itm\nid=1\ncore=Cortex-M4\nITMTCR=0x00010803\n"
        "DWT_COMP0=0x20000100\nport0=text\nport3=text\nport4=i32\n"
        "[source cs.10]\nprotocol=etm3\nid=0x10\ncore=Cortex-M4\nETMCR=0x10000000\n"
        "ETMCCER=0x10400000\nETMIDR=0x4114f250\n";
    struct tl_fail fail;
    const int r = tl_setup_parse(setup, text, sizeof text - 1, &fail);
    return r < 0 ? r : tl_buf_add(elf, rig->elf.p, rig->elf.n);
}

static int frame(struct rig *rig, uint8_t id, struct tl_buf *trace)
{
    const int r = tl_tpiu_encoder_add(&rig->tpiu, id, trace->p, trace->n);
    tl_buf_reset(trace);
    return r;
}

static int more(struct rig *rig, size_t n, struct tl_buf *out)
{
    int r = TL_OK;
    while (r >= 0 && rig->tpiu.out.n < n) {
        r = run_tick(rig);
        if (r >= 0)
            r = frame(rig, ITM, &rig->itm);
        if (r >= 0 && rig->ticks % PERIOD == 0)
            r = run_program(rig);
        if (r >= 0)
            r = frame(rig, ETM, &rig->etm);
    }
    if (r >= 0)
        r = tl_tpiu_encoder_flush(&rig->tpiu);
    if (r >= 0)
        r = tl_buf_add(out, rig->tpiu.out.p, rig->tpiu.out.n);
    tl_buf_reset(&rig->tpiu.out);
    return r;
}

static int truth(struct rig *rig, FILE *file)
{
    fprintf(file, "# stream cs.01\n%.*s# stream cs.10\n%.*s", (int)rig->said.n,
            (const char *)rig->said.p, (int)rig->ran.n, (const char *)rig->ran.p);
    return ferror(file) ? TL_IO : TL_OK;
}

const struct rig_kind rig_cortex_m = {
    .name = "cortex-m",
    .about = "a Cortex-M4 under an RTOS: ETMv3, ITM and DWT through a TPIU, with its program",
    .start = start,
    .stop = stop,
    .describe = describe,
    .more = more,
    .truth = truth,
};
