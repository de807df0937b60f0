/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 flow compared with Debian's libopencsd (1.3.3), in this process, on the streams of a
 * simulated core.
 *
 * Intact streams under random configurations: instructions, exceptions, timestamps and cycle counts
 * are the same from the first to the last.
 *
 * Damaged streams (flipped bits, overwritten bytes): our flow is unaffected up to the damage, and
 * again from the next synchronisation point on; for both decoders, the share of instructions found
 * again is printed. OpenCSD runs in a process of its own for this, since damage can make it crash.
 *
 *   opencsd_conformance [ROUNDS [SEED]]
 */
#include "decode/ops.h"
#include "etm4/packetizer.h"
#include "opencsd.h"
#include "sim/program_core.h"
#include "steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSNS   60000u
#define DAMAGED 3u /* damaged copies of each stream */
#define EVENTS  (1u << 20)

struct event {
    char class; /* I, X, T, Y as in flow text */
    uint64_t a, b;
    uint64_t offset; /* of the packet that reported it */
};

/* Kept in memory shared with child processes. */
struct events {
    size_t n;
    struct event v[EVENTS];
};

struct bench {
    struct tl_sim_program program;
    struct tl_buf code[2];
    struct tl_image *image;
    struct tl_source source;
    struct tl_sim_etm4_options etm;
    struct tl_buf trace;
    uint64_t *syncs; /* offsets of Trace Info packets in the intact stream */
    size_t n_syncs, cap_syncs;
    struct events *ours, *theirs, *intact;
    struct steps steps;                    /* of ours */
    uint64_t wanted, found, found_by_them; /* instructions of damaged streams */
    size_t crashes;
};

static void die(const char *why)
{
    fprintf(stderr, "opencsd_conformance: %s\n", why);
    exit(1);
}

static void add(struct events *e, char class, uint64_t a, uint64_t b, uint64_t offset)
{
    if (e->n == EVENTS)
        die("more events than there is room for");
    e->v[e->n++] = (struct event){class, a, b, offset};
}

/* ---- ours -------------------------------------------------------------------------------- */

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct bench *b = context;
    steps_demand(&b->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        const struct tl_item *item = &items[i];
        if (item->kind == TL_ITEM_BLOCK)
            for (uint32_t k = 0; k < item->n; k++)
                add(b->ours, 'I', item->block->pc + 4ULL * k, 0, item->offset);
        else if (item->kind == TL_ITEM_EXCEPTION)
            add(b->ours, 'X', item->sub, item->pc, item->offset);
        else if (item->kind == TL_ITEM_TIME)
            add(b->ours, 'T', item->value, 0, item->offset);
        else if (item->kind == TL_ITEM_CYCLES)
            add(b->ours, 'Y', item->value, 0, item->offset);
    }
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

static void decode_ours(struct bench *b)
{
    const struct tl_stream_sink sink = {.context = b, .items = on_items, .loss = on_loss};
    const struct tl_run run = {b->trace.p, b->trace.n, 0, NULL};
    struct tl_stream_decoder *d;
    b->ours->n = 0;
    b->steps = (struct steps){0};
    if (tl_etm4_ops.create(&d, &b->source, b->image, &sink, NULL) < 0 ||
        d->ops->push(d, &run) < 0 || d->ops->finish(d, TL_LOSS_CUT_OFF) < 0)
        die("decoding failed");
    d->ops->destroy(d);
}

static int on_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct bench *b = context;
    for (size_t i = 0; i < n; i++) {
        if (packets[i].type != TL_ETM4_TRACE_INFO)
            continue;
        if (tl_grow(&b->syncs, &b->cap_syncs, b->n_syncs + 1, sizeof *b->syncs) < 0)
            return TL_NOMEM;
        b->syncs[b->n_syncs++] = packets[i].offset;
    }
    return TL_OK;
}

static void find_syncs(struct bench *b)
{
    static struct tl_etm4_packetizer p;
    const struct tl_run run = {b->trace.p, b->trace.n, 0, NULL};
    struct tl_etm4_config config;
    b->n_syncs = 0;
    tl_etm4_config_init(&config, &b->source);
    tl_etm4_packetizer_init(&p, &config, on_packets, b);
    if (tl_etm4_packetizer_push(&p, &run) < 0)
        die("splitting failed");
}

/* ---- OpenCSD ----------------------------------------------------------------------------- */

static ocsd_datapath_resp_t on_element(const void *context, const ocsd_trc_index_t at,
                                       const uint8_t id, const ocsd_generic_trace_elem *e)
{
    struct bench *b = (struct bench *)(uintptr_t)context;
    switch (e->elem_type) {
    case OCSD_GEN_TRC_ELEM_INSTR_RANGE:
        for (uint64_t pc = e->st_addr; pc < e->en_addr; pc += 4)
            add(b->theirs, 'I', pc, 0, at);
        break;
    case OCSD_GEN_TRC_ELEM_EXCEPTION:
        add(b->theirs, 'X', e->exception_number, e->en_addr, at);
        break;
    case OCSD_GEN_TRC_ELEM_TIMESTAMP:
        add(b->theirs, 'T', e->timestamp, 0, at);
        break;
    case OCSD_GEN_TRC_ELEM_CYCLE_COUNT:
        add(b->theirs, 'Y', e->cycle_count, 0, at);
        break;
    default:
        break;
    }
    return OCSD_RESP_CONT;
}

static void decode_theirs(struct bench *b)
{
    struct tl_opencsd_memory memory[2];
    for (unsigned i = 0; i < 2; i++)
        memory[i] =
            (struct tl_opencsd_memory){b->program.sections[i].base, {b->code[i].p, b->code[i].n}};
    b->theirs->n = 0;
    const dcd_tree_handle_t tree = tl_opencsd_new(&b->source, memory, 2, on_element, b);
    if (tree == C_API_INVALID_TREE_HANDLE)
        die("OpenCSD refuses");
    /* The output before an error in a damaged stream counts. */
    (void)!tl_opencsd_push(tree, 0, b->trace.p, b->trace.n);
    tl_opencsd_free(tree);
}

/* As decode_theirs(); returns false if it crashed. */
static bool try_theirs(struct bench *b)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0)
        die("no process");
    if (child == 0) {
        decode_theirs(b);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child)
        die("no process");
    return status == 0;
}

/* ---- comparison -------------------------------------------------------------------------- */

/*
 * The index of the next event of a class at an offset of at least `from`, beginning at index `i`.
 */
static size_t next_of(const struct events *e, size_t i, char class, uint64_t from)
{
    while (i < e->n && (e->v[i].class != class || e->v[i].offset < from))
        i++;
    return i;
}

/*
 * Compare `a` and `b` from offset `from` on, to the end or up to the last event of `a` before `to`.
 * Returns the number of differing classes. Offsets may differ: joined atoms have the first one's.
 */
static size_t compare(const char *what, const char *other, const struct events *a,
                      const struct events *b, uint64_t from, uint64_t to)
{
    size_t differing = 0;
    for (const char *class = "IXTY"; *class; class ++) {
        size_t i = 0, k = 0;
        for (;; i++, k++) {
            i = next_of(a, i, *class, from);
            k = next_of(b, k, *class, from);
            const bool more = i < a->n, other_more = k < b->n;
            if ((!more && !other_more) || (to != UINT64_MAX && (!more || a->v[i].offset >= to)))
                break;
            const struct event none = {0};
            const struct event *x = more ? &a->v[i] : &none;
            const struct event *y = other_more ? &b->v[k] : &none;
            if (more == other_more && x->a == y->a && x->b == y->b)
                continue;
            printf("%s: %c differs: ours %" PRIx64 " %" PRIx64 " @%" PRIu64 ", %s %" PRIx64
                   " %" PRIx64 " @%" PRIu64 "\n",
                   what, *class, x->a, x->b, x->offset, other, y->a, y->b, y->offset);
            differing++;
            break;
        }
    }
    return differing;
}

/* The number of instructions of `e` that are also in `intact`, at about the same offset. */
static uint64_t count_found(const struct events *intact, const struct events *e)
{
    enum { BLUR = 64 }; /* bytes */
    uint64_t found = 0;
    size_t k = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (e->v[i].class != 'I')
            continue;
        while (k < intact->n && intact->v[k].offset + BLUR < e->v[i].offset)
            k++;                                    /* instructions in between were lost */
        const uint64_t end = e->v[i].offset + BLUR; /* joined atoms blur offsets */
        size_t at = k;
        while (at < intact->n && intact->v[at].offset <= end &&
               (intact->v[at].class != 'I' || intact->v[at].a != e->v[i].a))
            at++;
        if (at < intact->n && intact->v[at].offset <= end) {
            found++;
            k = at + 1;
        }
    }
    return found;
}

/* ---- streams ----------------------------------------------------------------------------- */

static void make_program(struct bench *b, unsigned seed)
{
    const struct tl_sim_program_options options = {.seed = seed, .extra = 40, .short_loops = true};
    if (tl_sim_program_init(&b->program, &options) < 0 || tl_image_new(&b->image) < 0)
        die("out of memory");
    for (unsigned i = 0; i < 2; i++)
        if (tl_sim_program_code(&b->program, i, &b->code[i]) < 0 ||
            tl_image_add_bytes(b->image, b->program.sections[i].base,
                               (struct tl_bytes){b->code[i].p, b->code[i].n}, TL_SPACE_ANY, NULL,
                               NULL) < 0)
            die("out of memory");
    if (tl_image_freeze(b->image) < 0)
        die("out of memory");
}

static void make_trace(struct bench *b, unsigned seed)
{
    struct tl_sim_core_options options = {.seed = seed, .irq_every = 3000, .fault_every = 5000};
    struct tl_sim_core *core;
    options.overflow_every = random() % 3 ? 0 : 20000;
    options.event_every = random() % 3 ? 0 : 3000;
    options.etm = (struct tl_sim_etm4_options){
        .trace_id = 0x10,
        .return_stack = random() % 2,
        .branch_broadcast = random() % 3 == 0,
        .cycle_count = random() % 2,
        .threshold = 8,
        .commit_opt = random() % 2,
        .timestamps = random() % 2,
        .timestamp_every = 2000,
        .context_id = random() % 2,
        .sync_every = 600,
        .max_spec_depth = random() % 3 ? 0 : (uint8_t)(random() % 20),
    };
    if (options.etm.max_spec_depth) /* 1.3.3 does not know commits in cycle counts */
        options.etm.cycle_count = false;
    b->etm = options.etm;
    b->source = (struct tl_source){.protocol = TL_PROTO_ETM4};
    tl_buf_reset(&b->trace);
    if (tl_sim_etm4_source(&b->etm, &b->source) < 0 ||
        tl_sim_core_new(&core, &b->program, &options, &b->trace, NULL, NULL) < 0 ||
        tl_sim_core_step(core, INSNS) < 0 || tl_sim_core_flush(core) < 0)
        die("the trace cannot be made");
    tl_sim_core_free(core);
}

static struct events *shared_events(void)
{
    void *p = mmap(NULL, sizeof(struct events), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        die("out of memory");
    return p;
}

static size_t check_damaged(struct bench *b, const char *what)
{
    enum { SPREAD = 8, ASYNC = 12, LONGEST = 64 };
    const size_t at = 500 + (size_t)random() % (b->trace.n - 600);
    uint8_t saved[SPREAD];
    memcpy(saved, b->trace.p + at, SPREAD);
    for (int i = random() % 3; i >= 0; i--) {
        uint8_t *byte = b->trace.p + at + random() % SPREAD;
        *byte = (uint8_t)(random() % 2 ? *byte ^ 1u << random() % 8 : (unsigned)random());
    }
    decode_ours(b);
    const bool answered = try_theirs(b);
    memcpy(b->trace.p + at, saved, SPREAD);

    /* a packet may begin before the damage, which also affects uncommitted elements */
    const size_t margin = LONGEST + 20u * b->etm.max_spec_depth;
    size_t differing = compare(what, "intact", b->ours, b->intact, 0, at - margin);
    size_t next = 0;
    while (next < b->n_syncs && b->syncs[next] < at + SPREAD + ASYNC)
        next++;
    if (next < b->n_syncs)
        differing += compare(what, "intact", b->ours, b->intact, b->syncs[next], UINT64_MAX);
    if (differing)
        printf("%s: damage at %zu of %zu, return stack %d, speculation %d\n", what, at, b->trace.n,
               b->etm.return_stack, b->etm.max_spec_depth);
    if (answered) {
        b->found += count_found(b->intact, b->ours);
        b->found_by_them += count_found(b->intact, b->theirs);
        b->wanted += count_found(b->intact, b->intact);
    }
    b->crashes += !answered;
    return differing;
}

/* The reference's C interface does not free the objects of its callbacks; our leaks are still
 * detected. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libopencsd_c_api\n";
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 40;
    const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    static struct bench b;
    size_t differing = 0, events = 0;
    printf("seed %u\n", seed);
    make_program(&b, seed);
    b.ours = shared_events();
    b.theirs = shared_events();
    b.intact = shared_events();
    for (unsigned round = 0; round < rounds; round++) {
        char what[64];
        srandom(seed * 1000 + round);
        make_trace(&b, seed + round);
        find_syncs(&b);
        decode_ours(&b);
        decode_theirs(&b);
        events += b.ours->n;
        snprintf(what, sizeof what, "round %u", round);
        differing += compare(what, "OpenCSD", b.ours, b.theirs, 0, UINT64_MAX);
        memcpy(b.intact, b.ours, sizeof b.intact->n + sizeof b.ours->v[0] * b.ours->n);
        for (unsigned i = 0; i < DAMAGED; i++) {
            snprintf(what, sizeof what, "round %u, damage %u", round, i);
            differing += check_damaged(&b, what);
        }
    }
    printf("%u streams, %zu events, %zu differences\n", rounds, events, differing);
    printf("%u damaged: found again %.4f %% of the instructions, OpenCSD %.4f %%; it crashed %zu "
           "times\n",
           rounds * DAMAGED, 100.0 * (double)b.found / (double)b.wanted,
           100.0 * (double)b.found_by_them / (double)b.wanted, b.crashes);
    tl_image_free(b.image);
    for (unsigned i = 0; i < 2; i++)
        tl_buf_fini(&b.code[i]);
    tl_buf_fini(&b.trace);
    tl_sim_program_fini(&b.program);
    free(b.syncs);
    return differing || events == 0;
}
