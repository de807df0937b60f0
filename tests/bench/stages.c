/* SPDX-License-Identifier: MIT */
/*
 * A single stage of the decoder on one input, for counting instructions: prints the number of bytes
 * that measured() processes, and of instructions that they trace. Everything that is created only
 * once (input, tables, decoded blocks) is created before. Usage: stages STAGE; without an argument,
 * lists the stages. Run by instructions.py.
 */
#include "bench/capture.h"
#include "bench/twin.h"
#include "decode/decode.h"
#include "decode/ops.h"
#include "etm4/packetizer.h"
#include "sim/program_core.h"
#include "sim/tpiu_encoder.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "unit/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define BYTES (256u << 10)

static struct tl_buf input;
static struct tl_source source;
static struct tl_image *image;
static struct tl_tpiu tpiu;
static struct tl_etm4_packetizer packetizer;
static struct tl_stream_decoder *decoder;
static struct tl_stf_flow *writer;
static struct tl_setup setup; /* of RISC-V trace, whose container is measured, too: */
static struct tl_decode *capture_decode;
static uint64_t traced;        /* instructions */
static bool is_counted = true; /* … are: not while the stage is measured */

static void require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "stages: %s\n", what);
    exit(1);
}

/* ---- frames -------------------------------------------------------------------------------- */

static void make_frames(unsigned sources, size_t turn)
{
    struct tl_tpiu_encoder e;
    uint8_t bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 >> 3);
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 1);
    e.repeat_percent = 0;
    for (unsigned k = 0; e.out.n < BYTES; k++)
        require(tl_tpiu_encoder_add(&e, (uint8_t)(1 + k % sources), bytes, turn) == 0, "frames");
    input = e.out;
}

static int drop_run(void *context, uint8_t id, const struct tl_run *run)
{
    return 0;
}

static void push_frames(void)
{
    require(tl_tpiu_push(&tpiu, input.p, input.n) == 0, "frames");
}

/* The bytes of each source together, as stream decoders receive them. */
static void begin_frames(void)
{
    const struct tl_tpiu_sink sink = {.run = drop_run, .apart = {UINT64_MAX, UINT64_MAX}};
    tl_tpiu_init(&tpiu, TL_TPIU_ALIGNED, 0, &sink);
}

static void one_source(void)
{
    make_frames(1, 4096);
}

static void four_sources(void)
{
    make_frames(4, 20);
}

/* ---- a simulated core, and a real one ------------------------------------------------------ */

static void simulate(const struct tl_sim_core_options *options)
{
    const struct tl_sim_program_options shape = {.seed = 1, .extra = 300};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    require(tl_sim_program_init(&program, &shape) == 0 && tl_image_new(&image) == 0 &&
                tl_sim_etm4_source(&options->etm, &source) == 0 &&
                tl_sim_core_new(&core, &program, options, &input, NULL, NULL) == 0,
            "no trace");
    while (input.n < BYTES)
        require(tl_sim_core_step(core, 50000) == 0, "no trace");
    require(tl_sim_core_flush(core) == 0, "no trace");
    for (unsigned i = 0; i < 2; i++) {
        struct tl_buf code = {0};
        require(tl_sim_program_code(&program, i, &code) == 0 &&
                    tl_image_add_bytes(image, program.sections[i].base,
                                       (struct tl_bytes){code.p, code.n}, TL_SPACE_ANY, NULL,
                                       NULL) == 0,
                "no image");
        tl_buf_fini(&code);
    }
    require(tl_image_freeze(image) == 0, "no image");
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
}

static void simulate_atoms(void)
{
    simulate(&(struct tl_sim_core_options){.seed = 2, .etm = {.minor = 2, .return_stack = true}});
}

static void simulate_indirect(void)
{
    simulate(&(struct tl_sim_core_options){.seed = 2, .etm = {.minor = 2}});
}

static void simulate_addresses(void)
{
    simulate(
        &(struct tl_sim_core_options){.seed = 2, .etm = {.minor = 2, .branch_broadcast = true}});
}

static void simulate_exceptions(void)
{
    simulate(&(struct tl_sim_core_options){
        .seed = 2,
        .irq_every = 400,
        .fault_every = 300,
        .etm = {.minor = 2, .return_stack = true, .context_id = true}});
}

static void read_juno(void)
{
    struct capture capture;
    if (!capture_read(&capture, "juno_r1_1")) {
        printf("skipped: the capture is not there\n");
        exit(77);
    }
    source = *capture.source;
    require(tl_image_new(&image) == 0 &&
                tl_setup_load_images(&capture.snapshot.captures[0].setup, image, NULL, NULL,
                                     NULL) == 0 &&
                tl_image_freeze(image) == 0,
            "no image");
    capture_cut(&capture.trace, TL_PROTO_ETM4);
    input = capture.trace;
}

static void read_stepped(const char *name, const char *elf)
{
    char trace[512], program[512], file[64];
    struct tl_buf once = {0}, code = {0};
    snprintf(file, sizeof file, "pt/stepped/%s.pt", name);
    const bool there = test_data(trace, sizeof trace, file);
    snprintf(file, sizeof file, "pt/stepped/%s", elf);
    if (!there || !test_data(program, sizeof program, file)) {
        printf("skipped: the capture is not there\n");
        exit(77);
    }
    source = (struct tl_source){.protocol = TL_PROTO_PT};
    require(tl_buf_read_file(&once, trace, 1 << 24, NULL) == 0 &&
                tl_buf_read_file(&code, program, 1 << 24, NULL) == 0 && tl_image_new(&image) == 0 &&
                tl_image_add_elf(image, (struct tl_bytes){code.p, code.n}, 0, TL_SPACE_ANY, elf,
                                 NULL) == 0 &&
                tl_image_freeze(image) == 0,
            name);
    while (input.n < BYTES)
        require(tl_buf_add(&input, once.p, once.n) == 0, name);
    tl_buf_fini(&once);
    tl_buf_fini(&code);
}

static void read_one_cpu(void)
{
    read_stepped("one-cpu", "stroll.elf");
}

static void read_noretcomp(void)
{
    read_stepped("noretcomp", "ramble.elf");
}

static void read_cyc(void)
{
    read_stepped("cyc-long-tnt", "walk.elf");
}

/* A capture of RISC-V trace, repeated. Its setup names the program. */
static void read_riscv(const char *name, const char *suffix)
{
    char path[512], file[64];
    struct tl_buf once = {0};
    snprintf(file, sizeof file, "riscv/%s.ini", name);
    const bool there = test_data(path, sizeof path, file);
    tl_setup_init(&setup);
    if (!there || tl_setup_read(&setup, path, NULL) < 0) {
        printf("skipped: the capture is not there\n");
        exit(77);
    }
    snprintf(file, sizeof file, "riscv/%s.%s", name, suffix);
    require(test_data(path, sizeof path, file) &&
                tl_buf_read_file(&once, path, 1 << 24, NULL) == 0 && tl_image_new(&image) == 0 &&
                tl_setup_load_images(&setup, image, NULL, NULL, NULL) == 0 &&
                tl_image_freeze(image) == 0,
            name);
    while (input.n < BYTES)
        require(tl_buf_add(&input, once.p, once.n) == 0, name);
    tl_buf_fini(&once);
}

/* The same program as an ETMv4 would trace it. */
static void read_twin(const char *name, const char *suffix, bool return_stack)
{
    const struct tl_sim_etm4_options options = {.minor = 2, .return_stack = return_stack};
    struct twin twin;
    read_riscv(name, suffix);
    require(twin_of(&twin, &setup, image, (struct tl_bytes){input.p, input.n}, &options) == 0,
            "no twin");
    tl_buf_fini(&input);
    image = twin.image;
    source = twin.source;
    input = twin.trace;
}

static void twin_plain(void)
{
    read_twin("nt-sorts-ref-htm", "nex", false);
}

static void twin_returns(void)
{
    read_twin("nt-sorts-ref-htm", "nex", true);
}

static void read_ntrace(void)
{
    read_riscv("nt-sorts-ref-htm", "nex");
}

static void read_etrace(void)
{
    read_riscv("et-sorts-ref", "etr");
}

/* ---- packets ------------------------------------------------------------------------------- */

static int drop_tape(void *context, const struct tl_etm4_tape *tape)
{
    return 0;
}

static void begin_packets(void)
{
    struct tl_etm4_config config;
    tl_etm4_config_init(&config, &source);
    tl_etm4_packetizer_init_tape(&packetizer, &config, drop_tape, NULL);
}

static void push_packets(void)
{
    const struct tl_run run = {.p = input.p, .n = input.n};
    require(tl_etm4_packetizer_push(&packetizer, &run) == 0, "packets");
}

/* ---- flow and records ---------------------------------------------------------------------- */

static int take_items(void *context, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    for (size_t i = 0; i < n && is_counted; i++)
        traced += items[i].kind == TL_ITEM_PATH    ? items[i].value
                  : items[i].kind == TL_ITEM_BLOCK ? items[i].n
                                                   : 0;
    if (writer == NULL)
        return 0;
    const int rc = tl_stf_flow_items(writer, items, n, UINT64_MAX, &at);
    if (tl_stf_flow_bytes(writer).n >= BYTES)
        tl_stf_flow_take(writer);
    return rc < 0 ? rc : 0;
}

static int drop_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return 0;
}

static void begin_flow(void)
{
    const struct tl_stream_sink sink = {
        .items = take_items, .loss = drop_loss, .paths = true, .code = tl_stf_block_code};
    const struct tl_stream_ops *const ops =
        source.protocol == TL_PROTO_PT ? &tl_pt_ops : &tl_etm4_ops;
    require(ops->create(&decoder, &source, image, &sink, NULL) == 0, "no decoder");
}

static void begin_records(void)
{
    const struct tl_stf_flow_options options = {.isa = source.protocol == TL_PROTO_PT ? TL_ISA_X64
                                                                                      : TL_ISA_A64};
    require(tl_stf_flow_new(&writer, &options, NULL) == 0, "no writer");
    begin_flow();
}

static int take_stream_items(void *context, const struct tl_decode_stream *stream,
                             const struct tl_item *items, size_t n)
{
    return take_items(context, items, n);
}

static void begin_capture(void)
{
    const struct tl_decode_sink sink = {.items = take_stream_items};
    require(tl_decode_new(&capture_decode, &setup, image, &sink, NULL) == 0, "no decoder");
    tl_decode_allow_paths(capture_decode);
    tl_decode_set_code(capture_decode, tl_stf_block_code);
}

static void begin_capture_records(void)
{
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64};
    require(tl_stf_flow_new(&writer, &options, NULL) == 0, "no writer");
    begin_capture();
}

static void push_capture(void)
{
    require(tl_decode_push(capture_decode, input.p, input.n) == 0, "flow");
}

static void push_flow(void)
{
    const struct tl_run run = {.p = input.p, .n = input.n};
    require(decoder->ops->push(decoder, &run) == 0, "flow");
}

/* -------------------------------------------------------------------------------------------- */

static const struct stage {
    const char *name;
    void (*make)(void);
    void (*begin)(void);
    void (*push)(void);
} stages[] = {
    {"frames, one source", one_source, begin_frames, push_frames},
    {"frames, four sources, turns of 20 bytes", four_sources, begin_frames, push_frames},
    {"packets, branch broadcast", simulate_addresses, begin_packets, push_packets},
    {"packets, juno_r1_1", read_juno, begin_packets, push_packets},
    {"flow, atoms and return stack", simulate_atoms, begin_flow, push_flow},
    {"flow, no return stack", simulate_indirect, begin_flow, push_flow},
    {"flow, branch broadcast", simulate_addresses, begin_flow, push_flow},
    {"flow, exceptions", simulate_exceptions, begin_flow, push_flow},
    {"flow, juno_r1_1", read_juno, begin_flow, push_flow},
    {"flow and STF records, atoms and return stack", simulate_atoms, begin_records, push_flow},
    {"flow and STF records, no return stack", simulate_indirect, begin_records, push_flow},
    {"flow and STF records, branch broadcast", simulate_addresses, begin_records, push_flow},
    {"flow and STF records, exceptions", simulate_exceptions, begin_records, push_flow},
    {"flow and STF records, juno_r1_1", read_juno, begin_records, push_flow},
    {"PT flow, one-cpu", read_one_cpu, begin_flow, push_flow},
    {"PT flow, noretcomp", read_noretcomp, begin_flow, push_flow},
    {"PT flow, cyc-long-tnt", read_cyc, begin_flow, push_flow},
    {"PT flow and STF records, one-cpu", read_one_cpu, begin_records, push_flow},
    {"PT flow and STF records, noretcomp", read_noretcomp, begin_records, push_flow},
    {"PT flow and STF records, cyc-long-tnt", read_cyc, begin_records, push_flow},
    {"N-Trace flow, nt-sorts-ref-htm", read_ntrace, begin_capture, push_capture},
    {"N-Trace flow and STF records, nt-sorts-ref-htm", read_ntrace, begin_capture_records,
     push_capture},
    {"ETMv4 flow and STF records, twin of nt-sorts-ref-htm", twin_plain, begin_records, push_flow},
    {"ETMv4 flow and STF records, twin with return stack", twin_returns, begin_records, push_flow},
    {"E-Trace flow, et-sorts-ref", read_etrace, begin_capture, push_capture},
    {"E-Trace flow and STF records, et-sorts-ref", read_etrace, begin_capture_records,
     push_capture},
};

/* The function whose instructions are counted. */
void measured(const struct stage *stage);

__attribute__((noinline)) void measured(const struct stage *stage)
{
    stage->push();
}

/* Print the nanoseconds of processor time that one of `n` pushes took. */
static void time_pushes(const struct stage *stage, unsigned long n)
{
    const clock_t begin = clock();
    for (unsigned long i = 0; i < n; i++)
        stage->push();
    printf("%.0f\n", (double)(clock() - begin) * 1e9 / CLOCKS_PER_SEC / (double)n);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (argc < 2) {
            puts(stages[i].name);
        } else if (strcmp(stages[i].name, argv[1]) == 0) {
            stages[i].make();
            stages[i].begin();
            stages[i].push(); /* decodes the blocks and allocates the memory */
            is_counted = false;
            measured(&stages[i]);
            printf("%zu %" PRIu64 "\n", input.n, traced);
            if (argc > 2)
                time_pushes(&stages[i], strtoul(argv[2], NULL, 10));
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
