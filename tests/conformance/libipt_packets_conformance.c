/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets compared with Debian's libipt: for streams of all packets, intact and damaged,
 * both report the same packets, the same errors at the same offsets, and find the same PSBs after
 * them.
 *
 * Debian's libipt is 2.0.5: it does not know later additions (CFE, EVD, TRIG, the interrupt flag in
 * MODE.Exec), which are omitted here; the reference's own test set covers them.
 */
#include "pt/packet_text.h"
#include "sim/pt_encoder.h"
#include "unit/random.h"

#include <intel-pt.h>
#include <stdio.h>

static void address_of(struct tl_pt_packet *out, uint8_t kind, const struct pt_packet *p)
{
    static const uint8_t ipc[] = {
        [pt_ipc_suppressed] = TL_PT_IP_SUPPRESSED, [pt_ipc_update_16] = TL_PT_IP_UPDATE_16,
        [pt_ipc_update_32] = TL_PT_IP_UPDATE_32,   [pt_ipc_update_48] = TL_PT_IP_UPDATE_48,
        [pt_ipc_sext_48] = TL_PT_IP_SEXT_48,       [pt_ipc_full] = TL_PT_IP_FULL};
    out->kind = kind;
    out->address.ipc = ipc[p->payload.ip.ipc];
    out->address.payload = p->payload.ip.ip;
}

static void power_of(struct tl_pt_packet *out, const struct pt_packet *p)
{
    switch (p->type) {
    case ppt_mwait:
        out->kind = TL_PT_MWAIT;
        out->mwait.hints = p->payload.mwait.hints;
        out->mwait.ext = p->payload.mwait.ext;
        break;
    case ppt_pwre:
        out->kind = TL_PT_PWRE;
        out->pwre.state = p->payload.pwre.state;
        out->pwre.sub_state = p->payload.pwre.sub_state;
        out->pwre.hw = p->payload.pwre.hw;
        break;
    default:
        out->kind = TL_PT_PWRX;
        out->pwrx.last = p->payload.pwrx.last;
        out->pwrx.deepest = p->payload.pwrx.deepest;
        out->pwrx.interrupt = p->payload.pwrx.interrupt;
        out->pwrx.store = p->payload.pwrx.store;
        out->pwrx.autonomous = p->payload.pwrx.autonomous;
        break;
    }
}

static void time_of(struct tl_pt_packet *out, const struct pt_packet *p)
{
    switch (p->type) {
    case ppt_tsc:
        out->kind = TL_PT_TSC;
        out->tsc = p->payload.tsc.tsc;
        break;
    case ppt_tma:
        out->kind = TL_PT_TMA;
        out->tma.ctc = p->payload.tma.ctc;
        out->tma.fc = p->payload.tma.fc;
        break;
    case ppt_mtc:
        out->kind = TL_PT_MTC;
        out->mtc = p->payload.mtc.ctc;
        break;
    case ppt_cyc:
        out->kind = TL_PT_CYC;
        out->cyc = p->payload.cyc.value;
        break;
    default:
        out->kind = TL_PT_CBR;
        out->cbr = p->payload.cbr.ratio;
        break;
    }
}

static void mode_of(struct tl_pt_packet *out, const struct pt_packet *p)
{
    if (p->payload.mode.leaf == pt_mol_exec) {
        out->kind = TL_PT_MODE_EXEC;
        out->exec.csl = p->payload.mode.bits.exec.csl;
        out->exec.csd = p->payload.mode.bits.exec.csd;
        return;
    }
    out->kind = TL_PT_MODE_TSX;
    out->tsx.intx = p->payload.mode.bits.tsx.intx;
    out->tsx.abrt = p->payload.mode.bits.tsx.abrt;
}

/* Convert their packet to ours. */
static void packet_of(struct tl_pt_packet *out, const struct pt_packet *p)
{
    switch (p->type) {
    case ppt_pad:
        out->kind = TL_PT_PAD;
        break;
    case ppt_psb:
        out->kind = TL_PT_PSB;
        break;
    case ppt_psbend:
        out->kind = TL_PT_PSBEND;
        break;
    case ppt_invalid:
        out->kind = TL_PT_INVALID;
        break;
    case ppt_stop:
        out->kind = TL_PT_STOP;
        break;
    case ppt_ovf:
        out->kind = TL_PT_OVF;
        break;
    case ppt_fup:
        address_of(out, TL_PT_FUP, p);
        break;
    case ppt_tip:
        address_of(out, TL_PT_TIP, p);
        break;
    case ppt_tip_pge:
        address_of(out, TL_PT_TIP_PGE, p);
        break;
    case ppt_tip_pgd:
        address_of(out, TL_PT_TIP_PGD, p);
        break;
    case ppt_tnt_8:
    case ppt_tnt_64:
        out->kind = p->type == ppt_tnt_8 ? TL_PT_TNT_8 : TL_PT_TNT_64;
        out->tnt.n = p->payload.tnt.bit_size;
        out->tnt.bits = p->payload.tnt.payload;
        break;
    case ppt_mode:
        mode_of(out, p);
        break;
    case ppt_pip:
        out->kind = TL_PT_PIP;
        out->pip.cr3 = p->payload.pip.cr3;
        out->pip.nr = p->payload.pip.nr;
        break;
    case ppt_vmcs:
        out->kind = TL_PT_VMCS;
        out->vmcs = p->payload.vmcs.base;
        break;
    case ppt_exstop:
        out->kind = TL_PT_EXSTOP;
        out->ip = p->payload.exstop.ip;
        break;
    case ppt_mwait:
    case ppt_pwre:
    case ppt_pwrx:
        power_of(out, p);
        break;
    case ppt_ptw:
        out->kind = TL_PT_PTW;
        out->ip = p->payload.ptw.ip;
        out->ptw.plc = p->payload.ptw.plc;
        out->ptw.payload = p->payload.ptw.payload;
        break;
    case ppt_mnt:
        out->kind = TL_PT_MNT;
        out->mnt = p->payload.mnt.payload;
        break;
    default:
        time_of(out, p);
        break;
    }
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Is this a CFE, EVD or TRIG, which their version does not know? */
static bool later_than_theirs(struct tl_bytes at)
{
    return at.p[0] == 0xd9 || (at.n > 1 && at.p[0] == 0x02 && (at.p[1] == 0x13 || at.p[1] == 0x53));
}

/* With erratum SKZ84 an invalid TMA has eight bytes: they accept one that extends beyond the
 * stream. */
static bool is_cut_tma(const struct tl_pt_config *config, struct tl_bytes at)
{
    return config->errata.skz84 && at.n == 7 && at.p[0] == 0x02 && at.p[1] == 0x73;
}

static int error_of(int theirs)
{
    return theirs == -pte_eos          ? TL_AGAIN
           : theirs == -pte_bad_opc    ? TL_UNSUPPORTED
           : theirs == -pte_bad_packet ? TL_BAD
                                       : theirs;
}

static uint64_t compared; /* packets */

/* Compare packets from `at` on. Returns where comparing ended. */
static size_t compare_packets(struct pt_packet_decoder *decoder, const struct tl_pt_config *ours_is,
                              struct tl_bytes in, size_t at)
{
    for (;;) {
        struct pt_packet theirs;
        struct tl_pt_packet ours = {.offset = at}, want = {.offset = at};
        char got_text[TL_PT_TEXT_MAX], want_text[TL_PT_TEXT_MAX];
        const int rc = pt_pkt_next(decoder, &theirs, sizeof theirs);
        const int size = tl_pt_parse(ours_is, (struct tl_bytes){in.p + at, in.n - at}, &ours);
        if (rc == -pte_bad_opc && later_than_theirs((struct tl_bytes){in.p + at, in.n - at}))
            return at;
        if (rc > size && size == TL_AGAIN &&
            is_cut_tma(ours_is, (struct tl_bytes){in.p + at, in.n - at}))
            return in.n;
        if (rc < 0 || size < 0) {
            if (error_of(rc) != size)
                print_error("%02x %02x …, %zu bytes: theirs %d, ours %d\n", in.p[at],
                            at + 1 < in.n ? in.p[at + 1] : 0, in.n - at, rc, size);
            assert_int_equal(size, error_of(rc));
            return at;
        }
        packet_of(&want, &theirs);
        if (ours.kind == TL_PT_MODE_EXEC)
            ours.exec.iflag = false;
        tl_pt_packet_text(want_text, &want, 0);
        tl_pt_packet_text(got_text, &ours, 0);
        assert_string_equal(got_text, want_text);
        uint64_t after;
        assert_int_equal(pt_pkt_get_offset(decoder, &after), 0);
        at += (size_t)size;
        assert_int_equal(at, after);
        compared++;
    }
}

static void compare_with(struct tl_bytes in, bool skz84)
{
    const struct tl_pt_config ours = {.errata = {.skz84 = skz84}};
    struct pt_config config;
    pt_config_init(&config);
    config.errata.skz84 = skz84;
    config.begin = (uint8_t *)(uintptr_t)in.p;
    config.end = config.begin + in.n;
    struct pt_packet_decoder *const decoder = pt_pkt_alloc_decoder(&config);
    assert_non_null(decoder);
    size_t at = 0;
    while (at < in.n) {
        const int rc = pt_pkt_sync_forward(decoder);
        const size_t sync = at ? tl_pt_resync(in, at) : tl_pt_find_psb(in);
        uint64_t theirs;
        if (rc < 0) {
            assert_int_equal(rc, -pte_eos);
            assert_int_equal(sync, in.n);
            break;
        }
        assert_int_equal(pt_pkt_get_sync_offset(decoder, &theirs), 0);
        assert_int_equal(sync, theirs);
        at = compare_packets(decoder, &ours, in, sync);
    }
    pt_pkt_free_decoder(decoder);
}

static void compare(struct tl_bytes in)
{
    compare_with(in, false);
    compare_with(in, true);
}

static void encode(struct tl_sim_pt *pt, struct tl_sim_rng *rng, unsigned packets)
{
    tl_sim_pt_bare(pt, TL_PT_PSB);
    while (packets-- > 0) {
        struct tl_pt_packet p;
        do
            tl_sim_pt_random(&p, rng);
        while (p.kind == TL_PT_CFE || p.kind == TL_PT_EVD || p.kind == TL_PT_TRIG);
        tl_sim_pt_packet(pt, &p);
    }
}

static void good_streams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 400; i++) {
        struct tl_sim_pt pt = {0};
        encode(&pt, &rng, tl_sim_below(&rng, 1000));
        compare((struct tl_bytes){pt.out.p, pt.out.n});
        compare((struct tl_bytes){pt.out.p, tl_sim_between(&rng, 1, (uint32_t)pt.out.n)});
        tl_sim_pt_fini(&pt);
    }
}

static void damaged_streams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 400; i++) {
        struct tl_sim_pt pt = {0};
        encode(&pt, &rng, tl_sim_below(&rng, 1000));
        for (unsigned k = 0; k < 10; k++) {
            pt.out.p[tl_sim_below(&rng, (uint32_t)pt.out.n)] = (uint8_t)next();
            compare((struct tl_bytes){pt.out.p, pt.out.n});
        }
        tl_sim_pt_fini(&pt);
    }
}

/* All values of the first two bytes, followed by arbitrary ones. */
static void any_bytes(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second++) {
            struct tl_sim_pt pt = {0};
            tl_sim_pt_bare(&pt, TL_PT_PSB);
            uint8_t bytes[24] = {(uint8_t)first, (uint8_t)second};
            for (size_t k = 2; k < sizeof bytes; k++)
                bytes[k] = (uint8_t)(tl_sim_rand(&rng) & (tl_sim_rand(&rng) & 1 ? 0xff : 1));
            assert_int_equal(tl_buf_add(&pt.out, bytes, sizeof bytes), TL_OK);
            compare((struct tl_bytes){pt.out.p, pt.out.n});
            tl_sim_pt_fini(&pt);
        }
    printf("%llu packets compared\n", (unsigned long long)compared);
}

static void backward(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 200; i++) {
        struct tl_sim_pt pt = {0};
        for (unsigned k = tl_sim_below(&rng, 4) + 1; k > 0; k--)
            encode(&pt, &rng, tl_sim_below(&rng, 100));
        struct pt_config config;
        pt_config_init(&config);
        config.begin = pt.out.p;
        config.end = pt.out.p + pt.out.n;
        struct pt_packet_decoder *const decoder = pt_pkt_alloc_decoder(&config);
        struct tl_bytes rest = {pt.out.p, pt.out.n};
        for (;;) {
            const int rc = pt_pkt_sync_backward(decoder);
            const size_t at = tl_pt_find_psb_backward(rest);
            uint64_t theirs;
            if (rc < 0) {
                assert_int_equal(at, rest.n);
                break;
            }
            assert_int_equal(pt_pkt_get_sync_offset(decoder, &theirs), 0);
            if (theirs == rest.n) /* of two adjacent PSBs it finds the second one again */
                break;
            assert_int_equal(at, theirs);
            rest.n = at;
        }
        pt_pkt_free_decoder(decoder);
        tl_sim_pt_fini(&pt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_streams),
        cmocka_unit_test(damaged_streams),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(backward),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
