/* SPDX-License-Identifier: MIT */
/*
 * Intel PT flow compared with Debian's libipt. First on simulated traces: our two decoders, by
 * instruction and by block, agree with the simulation, and so does the reference in everything it
 * reports, including the time of each event. Then on damaged traces.
 */
#include "conformance/libipt_flow.h"

static void configure(struct pt_config *config, const struct tl_buf *trace)
{
    pt_config_init(config);
    config->begin = trace->p;
    config->end = trace->p + trace->n;
    config->cpuid_0x15_eax = TL_SIM_PT_CRYSTAL;
    config->cpuid_0x15_ebx = TL_SIM_PT_TSC_RATIO;
    config->mtc_freq = TL_SIM_PT_MTC_FREQ;
    config->nom_freq = TL_SIM_PT_NOM_FREQ;
}

static uint64_t compared; /* instructions and events */

struct world {
    struct tl_sim_x86_program program;
    struct tl_sim_pt_flow flow;
    struct tl_image *image;
};

static void make(struct world *w, struct tl_sim_rng *rng, unsigned most)
{
    struct tl_sim_pt_flow_options options;
    tl_sim_x86_program_init(&w->program, tl_sim_rand(rng), tl_sim_between(rng, 2, 60));
    tl_sim_pt_flow_random(&options, rng);
    options.events = false; /* Debian's libipt does not know event trace */
    tl_sim_pt_flow_init(&w->flow, &w->program, &options, tl_sim_rand(rng));
    tl_sim_pt_flow_run(&w->flow, tl_sim_between(rng, 1, most));
    w->image = image_of(&w->program);
}

static void unmake(struct world *w)
{
    tl_image_free(w->image);
    tl_sim_pt_flow_fini(&w->flow);
    tl_sim_x86_program_fini(&w->program);
}

/* Also compare the time of each event, from TSC, TMA, MTC and CYC. */
static void compare_times(const struct world *w, struct tl_buf *theirs)
{
    struct tl_buf ours = {0};
    ours_flow(&ours, &sim_config, w->image, (struct tl_bytes){w->flow.pt.out.p, w->flow.pt.out.n});
    drop_repeated_modes(&ours);
    for (size_t i = 0; i < n_said(theirs) && i < n_said(&ours); i++)
        if (said_at(theirs, i)->tsc) /* it has no times for power events and PTWRITE */
            assert_int_equal(said_at(theirs, i)->tsc, said_at(&ours, i)->tsc);
    tl_buf_fini(&ours);
}

static void truth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct world w;
        struct pt_config config;
        struct tl_buf said = {0};
        make(&w, &rng, 5000);
        configure(&config, &w.flow.pt.out);
        libipt_flow(&said, &config, &w.program);
        require_truth(&said, &w.flow.truth, (struct tl_bytes){w.flow.pt.out.p, w.flow.pt.out.n});
        compare_times(&w, &said);
        compared += n_said(&said);
        if (i % 3 == 0) {
            struct tl_buf by_block = {0};
            libipt_block_flow(&by_block, &config, &w.program);
            require_truth(&by_block, &w.flow.truth,
                          (struct tl_bytes){w.flow.pt.out.p, w.flow.pt.out.n});
            compared += n_said(&by_block);
            tl_buf_fini(&by_block);
        }
        tl_buf_fini(&said);
        unmake(&w);
    }
    printf("%llu instructions and events compared\n", (unsigned long long)compared);
}

/* ---- damaged traces -------------------------------------------------------------------------- */

static void damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    const uint32_t at = tl_sim_below(rng, (uint32_t)trace->n);
    switch (tl_sim_below(rng, 4)) {
    case 0:
        trace->p[at] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
        break;
    case 1:
        trace->p[at] = (uint8_t)tl_sim_rand(rng);
        break;
    case 2:
        memmove(trace->p + at, trace->p + at + 1, --trace->n - at);
        break;
    default:
        memmove(trace->p + at, trace->p + at / 2, trace->n - at);
        break;
    }
}

static unsigned errors, same_offsets, same_places, same_codes, unlike, differ;

/* The index of the next synchronisation after `i`, or of the end. */
static size_t next_sync(const struct tl_buf *said, size_t i)
{
    do
        i++;
    while (i < n_said(said) && !said_at(said, i)->sync);
    return i;
}

static bool fails(const struct tl_buf *said, size_t i)
{
    return i < n_said(said) && said_at(said, i)->error != TL_PT_OK;
}

/* The opcode of an instruction, after its legacy prefixes and REX. */
static uint8_t opcode_of(const struct tl_sim_x86_program *program, const struct tl_sim_pt_truth *t)
{
    uint8_t code[TL_SIM_X86_MAX] = {0};
    size_t at = 0;
    tl_sim_x86_read(program, t->ip, code, sizeof code);
    while (at < sizeof code - 1 &&
           (memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", code[at], 11) ||
            (t->isa == TL_ISA_X64 && (code[at] & 0xf0) == 0x40)))
        at++;
    return code[at];
}

/*
 * Is this a difference after damage where Debian's libipt differs from the current reference
 * (docs/pt-differences.md)? Other packets bind to a FUP; bytes that are not an instruction, or a
 * newer one, have another length or class; a compressed return cannot return to a call that leaves
 * the traced code.
 */
static bool is_known(const struct tl_sim_x86_program *program, const struct said *before,
                     const struct said *theirs, const struct said *ours)
{
    const uint8_t last = opcode_of(program, &before->truth);
    const bool insns = theirs->truth.what == TL_SIM_PT_INSN && ours->truth.what == TL_SIM_PT_INSN;
    return !insns || theirs->truth.ip == ours->truth.ip || last == 0x9a || last == 0xce ||
           last == 0xea || last == 0xc2 || last == 0xc3;
}

/*
 * Both decoders fail after the same output. Are the errors equivalent? Debian's libipt reads ahead
 * and may fail for that packet, if it is invalid, lacks an IP, or is out of place
 * (docs/pt-differences.md), or with an internal error. Our decoder first fails for pending packets
 * where the trace contradicts the program. Otherwise the reason must be the same.
 */
static bool fails_alike(const struct said *theirs, const struct said *ours)
{
    switch (theirs->error) {
    case TL_PT_BAD_OPCODE:
    case TL_PT_BAD_PACKET:
    case TL_PT_BAD_CONTEXT:
    case TL_PT_NO_IP:
    case TL_PT_IP_SUPPRESSED_ERROR:
    case TL_PT_NO_ENABLE:
    case TL_PT_INTERNAL:
        return true;
    default:
        return theirs->error == ours->error || ours->error == TL_PT_BAD_QUERY;
    }
}

/*
 * Are these offsets equivalent? One of the decoders may have read ahead to the next packet that
 * affects the flow: past timing packets, a FUP and one TNT, or through a whole PSB+; for an error
 * inside a PSB+, Debian's libipt reports the PSB.
 */
static bool same_place(struct tl_bytes trace, uint64_t theirs, uint64_t ours)
{
    const uint32_t passed = 1u << TL_PT_PAD | 1u << TL_PT_CYC | 1u << TL_PT_MTC | 1u << TL_PT_TSC |
                            1u << TL_PT_TMA | 1u << TL_PT_CBR | 1u << TL_PT_FUP;
    const uint64_t end = theirs < ours ? ours : theirs;
    bool header = false, outcomes = false;
    for (uint64_t at = theirs < ours ? theirs : ours, begin = at; at < end;) {
        struct tl_pt_packet packet;
        const int size =
            tl_pt_parse(&sim_config, (struct tl_bytes){trace.p + at, trace.n - at}, &packet);
        const bool tnt = packet.kind == TL_PT_TNT_8 || packet.kind == TL_PT_TNT_64;
        header = packet.kind == TL_PT_PSB || (header && packet.kind != TL_PT_PSBEND);
        if (size <= 0 || (at > begin && !header && packet.kind != TL_PT_PSBEND &&
                          !(passed >> packet.kind & 1) && (!tnt || outcomes)))
            return false;
        outcomes |= at > begin && tnt;
        at += (unsigned)size;
    }
    return true;
}

/* One of the decoders fails at theirs[i] or ours[k]: compare the first error of each from there on.
 * If both fail after the same output, the errors must be equivalent. */
static void compare_errors(struct tl_bytes trace, const struct tl_buf *theirs, size_t i,
                           const struct tl_buf *ours, size_t k)
{
    const size_t i_end = next_sync(theirs, i), k_end = next_sync(ours, k);
    const bool together = fails(theirs, i) && fails(ours, k);
    while (i < i_end && !fails(theirs, i))
        i++;
    while (k < k_end && !fails(ours, k))
        k++;
    if (i == i_end || k == k_end)
        return;
    const struct said *const a = said_at(theirs, i), *const b = said_at(ours, k);
    const bool place = same_place(trace, a->offset, b->offset);
    same_codes += a->error == b->error;
    same_offsets += a->offset == b->offset;
    same_places += place;
    unlike += together && !(fails_alike(a, b) && place);
}

/* Compare from one PSB on: up to the first error of either decoder, the output must be the same. */
static void compare_from(const struct world *w, const struct tl_buf *theirs, size_t i,
                         const struct tl_buf *ours, size_t k)
{
    const size_t i_end = next_sync(theirs, i), k_end = next_sync(ours, k);
    while (i < i_end && k < k_end && said_alike(theirs, i, ours, k)) {
        const bool failed = fails(theirs, i);
        errors += failed;
        same_offsets += failed;
        same_places += failed;
        same_codes += failed;
        i++;
        k++;
        compared++;
    }
    if (i == i_end && k == k_end)
        return;
    errors++;
    if (i == n_said(theirs) || k == n_said(ours)) /* the end need not be reported */
        return;
    const struct said *const a = said_at(theirs, i), *const b = said_at(ours, k);
    /* only one failed: libipt has read ahead, or pending packets failed here */
    if (a->error || b->error) {
        compare_errors((struct tl_bytes){w->flow.pt.out.p, w->flow.pt.out.n}, theirs, i, ours, k);
        return;
    }
    size_t last = i - 1;
    while (!said_at(theirs, last)->sync && said_at(theirs, last)->truth.what != TL_SIM_PT_INSN)
        last--;
    const bool known = is_known(&w->program, said_at(theirs, last), a, b);
    if (!known && differ++ < 20)
        print_said(theirs, i, ours, k, (struct tl_bytes){w->flow.pt.out.p, w->flow.pt.out.n});
}

static void compare(const struct world *w)
{
    struct pt_config config;
    struct tl_buf theirs = {0}, ours = {0};
    const struct tl_bytes trace = {w->flow.pt.out.p, w->flow.pt.out.n};
    configure(&config, &w->flow.pt.out);
    libipt_flow(&theirs, &config, &w->program);
    ours_flow(&ours, &sim_config, w->image, trace);
    drop_repeated_modes(&theirs);
    drop_repeated_modes(&ours);
    for (size_t i = 0, k = 0; i < n_said(&theirs) && k < n_said(&ours);) {
        const uint64_t a = said_at(&theirs, i)->offset, b = said_at(&ours, k)->offset;
        if (a == b)
            compare_from(w, &theirs, i, &ours, k);
        if (a <= b)
            i = next_sync(&theirs, i);
        if (b <= a)
            k = next_sync(&ours, k);
    }
    tl_buf_fini(&theirs);
    tl_buf_fini(&ours);
}

static void damaged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct world w;
        make(&w, &rng, 3000);
        for (unsigned k = 0; k < 5 && w.flow.pt.out.n > 32; k++) {
            damage(&w.flow.pt.out, &rng);
            compare(&w);
        }
        unmake(&w);
    }
    printf("%llu instructions and events compared; of %u errors %u for the same reason, %u at the "
           "same place, %u of them at the same offset; %u not explained\n",
           (unsigned long long)compared, errors, same_codes, same_places, same_offsets, unlike);
    assert_int_equal(differ, 0);
    assert_in_range(unlike, 0, errors / 50); /* damage can look like anything, but seldom does */
    assert_in_range(same_places, errors / 5 * 4, errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth),
        cmocka_unit_test(damaged),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
