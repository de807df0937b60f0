/* SPDX-License-Identifier: MIT */
/*
 * The output of an Intel PT decoder in order: instructions, events, errors, in a form for comparing
 * decoders with each other and with the truth of a simulation.
 */
#ifndef TL_TEST_PT_SAID_H
#define TL_TEST_PT_SAID_H

#include "pt/insn.h"
#include "sim/pt_flow_encoder.h"
#include "unit/random.h"

#include <stdio.h>
#include <string.h>

struct said {
    struct tl_sim_pt_truth truth;
    bool sync;              /* synchronised at a PSB */
    enum tl_pt_error error; /* if not 0: decoding failed */
    uint64_t offset;        /* of these two in the trace; otherwise `truth` is set */
    uint64_t tsc;           /* of an event; 0: not known */
};

static inline void say(struct tl_buf *out, const struct said *said)
{
    assert_int_equal(tl_buf_add(out, said, sizeof *said), TL_OK);
}

static inline const struct said *said_at(const struct tl_buf *said, size_t i)
{
    return (const struct said *)(const void *)said->p + i;
}

static inline size_t n_said(const struct tl_buf *said)
{
    return said->n / sizeof(struct said);
}

/* Does an event of this kind have a location, if known? Some PTWRITE events always do. */
static inline bool has_place(unsigned what)
{
    return what != TL_SIM_PT_PAGING && what != TL_SIM_PT_VMCS && what != TL_SIM_PT_STOP &&
           what != TL_SIM_PT_PWRE && what != TL_SIM_PT_PWRX && what != TL_SIM_PT_CBR &&
           what != TL_SIM_PT_PTWRITE;
}

static const struct tl_pt_config sim_config = {.mtc_freq = TL_SIM_PT_MTC_FREQ,
                                               .nom_freq = TL_SIM_PT_NOM_FREQ,
                                               .crystal = TL_SIM_PT_CRYSTAL,
                                               .tsc_ratio = TL_SIM_PT_TSC_RATIO};

/* The program as an image. */
static inline struct tl_image *image_of(const struct tl_sim_x86_program *program)
{
    struct tl_image *image;
    struct tl_buf elf = {0};
    tl_sim_x86_program_elf(program, &elf);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, NULL, NULL),
        TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&elf);
    return image;
}

/* Some decoders report a repeated mode as an event, others do not. */
static inline void drop_repeated_modes(struct tl_buf *said)
{
    struct said *const all = (struct said *)(void *)said->p;
    uint8_t isa = TL_ISA_NONE;
    size_t kept = 0;
    for (size_t i = 0; i < n_said(said); i++) {
        const struct tl_sim_pt_truth *const t = &all[i].truth;
        const bool mode = !all[i].sync && !all[i].error && t->what == TL_SIM_PT_EXEC_MODE;
        if (mode && !t->status && t->isa == isa)
            continue;
        isa = all[i].sync ? TL_ISA_NONE : mode ? t->isa : isa;
        all[kept++] = all[i];
    }
    said->n = kept * sizeof *all;
}

/* ---- our decoder ----------------------------------------------------------------------------- */

static inline uint64_t power_of_ours(const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_MWAIT:
        return p->mwait.hints | (uint64_t)p->mwait.ext << 32;
    case TL_PT_PWRE:
        return p->pwre.state | (uint64_t)p->pwre.sub_state << 8 | (uint64_t)p->pwre.hw << 16;
    default:
        return p->pwrx.last | (uint64_t)p->pwrx.deepest << 8 | (uint64_t)p->pwrx.interrupt << 16 |
               (uint64_t)p->pwrx.store << 17 | (uint64_t)p->pwrx.autonomous << 18;
    }
}

/* Ours are in the same order; those that a simulation does not produce are TL_SIM_PT_WHATS. */
static inline struct tl_sim_pt_truth event_of_ours(const struct tl_pt_event *e)
{
    static const uint8_t whats[TL_PT_EV_IGNORED + 1] = {
        [TL_PT_EV_ENABLED] = TL_SIM_PT_ENABLED,
        [TL_PT_EV_DISABLED] = TL_SIM_PT_DISABLED,
        [TL_PT_EV_ASYNC_DISABLED] = TL_SIM_PT_ASYNC_DISABLED,
        [TL_PT_EV_ASYNC_BRANCH] = TL_SIM_PT_ASYNC_BRANCH,
        [TL_PT_EV_PAGING] = TL_SIM_PT_PAGING,
        [TL_PT_EV_ASYNC_PAGING] = TL_SIM_PT_ASYNC_PAGING,
        [TL_PT_EV_OVERFLOW] = TL_SIM_PT_OVERFLOW,
        [TL_PT_EV_EXEC_MODE] = TL_SIM_PT_EXEC_MODE,
        [TL_PT_EV_TSX] = TL_SIM_PT_TSX,
        [TL_PT_EV_STOP] = TL_SIM_PT_STOP,
        [TL_PT_EV_VMCS] = TL_SIM_PT_VMCS,
        [TL_PT_EV_ASYNC_VMCS] = TL_SIM_PT_ASYNC_VMCS,
        [TL_PT_EV_EXSTOP] = TL_SIM_PT_EXSTOP,
        [TL_PT_EV_MWAIT] = TL_SIM_PT_MWAIT,
        [TL_PT_EV_PWRE] = TL_SIM_PT_PWRE,
        [TL_PT_EV_PWRX] = TL_SIM_PT_PWRX,
        [TL_PT_EV_PTWRITE] = TL_SIM_PT_PTWRITE,
        [TL_PT_EV_CBR] = TL_SIM_PT_CBR,
        [TL_PT_EV_INTERRUPT] = TL_SIM_PT_INTERRUPT,
        [TL_PT_EV_IRET] = TL_SIM_PT_IRET,
        [TL_PT_EV_TRIG] = TL_SIM_PT_TRIG,
    };
    struct tl_sim_pt_truth out = {.what = whats[e->kind], .ip = e->ip};
    const struct tl_pt_packet *const p = &e->packet;
    if (out.what == TL_SIM_PT_INSN)
        out.what = TL_SIM_PT_WHATS;
    switch (e->kind) {
    case TL_PT_EV_DISABLED:
        out.value = e->ip_suppressed ? 0 : e->ip;
        out.ip = 0;
        break;
    case TL_PT_EV_ASYNC_DISABLED:
    case TL_PT_EV_ASYNC_BRANCH:
        out.ip = e->from;
        out.value = e->ip_suppressed ? 0 : e->ip;
        break;
    case TL_PT_EV_PAGING:
    case TL_PT_EV_ASYNC_PAGING:
        out.value = p->pip.cr3 | p->pip.nr;
        break;
    case TL_PT_EV_EXEC_MODE:
        out.isa = p->exec.csl ? (p->exec.csd ? TL_ISA_NONE : TL_ISA_X64)
                              : (p->exec.csd ? TL_ISA_X32 : TL_ISA_X16);
        break;
    case TL_PT_EV_TSX:
        out.value = p->tsx.intx | (uint64_t)p->tsx.abrt << 1;
        break;
    case TL_PT_EV_VMCS:
    case TL_PT_EV_ASYNC_VMCS:
        out.value = p->vmcs;
        break;
    case TL_PT_EV_MWAIT:
    case TL_PT_EV_PWRE:
    case TL_PT_EV_PWRX:
        out.value = power_of_ours(p);
        break;
    case TL_PT_EV_PTWRITE:
        out.value = p->ptw.payload;
        break;
    case TL_PT_EV_CBR:
        out.value = p->cbr;
        break;
    case TL_PT_EV_INTERRUPT:
        out.value = p->cfe.vector | (e->has_cr2 ? e->cr2 << 8 : 0);
        break;
    case TL_PT_EV_TRIG:
        out.value = p->trig.trbv | (uint64_t)p->trig.mult << 8;
        break;
    default:
        break;
    }
    return out;
}

static inline void insn_of_ours(void *context, const struct tl_pt_insn *insn)
{
    say(context, &(struct said){.truth = {.what = TL_SIM_PT_INSN,
                                          .ip = insn->ip,
                                          .size = insn->x86.size,
                                          .isa = insn->isa,
                                          .speculative = insn->speculative}});
}

/* Up to an error, which may be the end of the trace. */
static inline int ours_from(struct tl_pt_insns *d, struct tl_buf *out, int status)
{
    while (status >= 0) {
        struct tl_pt_event event;
        while (status >= 0 && status & TL_PT_EVENT_PENDING) {
            status = tl_pt_insns_event(d, &event);
            if (status < 0)
                return status;
            /* Whether tracing is on is a status that Debian's libipt does not report. */
            if (event.status && (event.kind == TL_PT_EV_ENABLED || event.kind == TL_PT_EV_DISABLED))
                continue;
            struct said said = {.truth = event_of_ours(&event),
                                .tsc = event.has_tsc ? event.tsc : 0};
            said.truth.status = event.status;
            said.truth.no_ip = event.ip_suppressed || !has_place(said.truth.what);
            say(out, &said);
        }
        if (status & TL_PT_END)
            return -TL_PT_EOS;
        status = tl_pt_insns_next(d);
    }
    return status;
}

/* Result: struct said, one after another. After an error it continues at the next PSB. */
static inline void ours_flow(struct tl_buf *out, const struct tl_pt_config *config,
                             const struct tl_image *image, struct tl_bytes trace)
{
    struct tl_pt_insns *const d = malloc(sizeof *d);
    assert_non_null(d);
    tl_pt_insns_init(d, config, image, trace, &(struct tl_pt_insn_options){0});
    d->insn = insn_of_ours;
    d->context = out;
    for (;;) {
        const size_t psb =
            d->events.synced ? tl_pt_resync(trace, d->events.next) : tl_pt_find_psb(trace);
        if (psb < trace.n)
            say(out, &(struct said){.sync = true, .offset = psb});
        int status = tl_pt_insns_sync(d);
        if (status >= 0)
            status = ours_from(d, out, status);
        if (status == -TL_PT_EOS)
            break;
        say(out, &(struct said){.error = (enum tl_pt_error) - status,
                                .offset = tl_pt_events_offset(&d->events)});
    }
    free(d);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static inline void said_text(char out[160], const struct tl_buf *said, size_t i)
{
    const struct said *const s = said_at(said, i);
    if (i >= n_said(said))
        strcpy(out, "the end");
    else if (s->sync)
        snprintf(out, 160, "[sync at %llu]", (unsigned long long)s->offset);
    else if (s->error)
        snprintf(out, 160, "[%llu: %s]", (unsigned long long)s->offset, tl_pt_error_text(s->error));
    else
        tl_sim_pt_truth_text(out, &s->truth);
}

static inline bool said_alike(const struct tl_buf *a, size_t i, const struct tl_buf *b, size_t k)
{
    char a_text[160], b_text[160];
    said_text(a_text, a, i);
    said_text(b_text, b, k);
    return !strcmp(a_text, b_text);
}

/*
 * Print both around `i`, where they differ; the trace is written to the file named by TL_PT_DUMP.
 */
static inline void print_said(const struct tl_buf *a, size_t i, const struct tl_buf *b, size_t k,
                              struct tl_bytes trace)
{
    for (size_t n = i < k ? i : k, line = n > 12 ? n - 12 : 0; line < n + 6; line++) {
        char a_text[160], b_text[160];
        said_text(a_text, a, line + i - n);
        said_text(b_text, b, line + k - n);
        print_error("%c %-50s | %s\n", line == n ? '>' : ' ', a_text, b_text);
    }
    const char *const path = getenv("TL_PT_DUMP");
    FILE *const f = path ? fopen(path, "wb") : NULL;
    if (f)
        fwrite(trace.p, 1, trace.n, f);
    if (f)
        fclose(f);
}

static inline void said_of_truth(struct tl_buf *out, const struct tl_buf *truth)
{
    for (size_t at = 0; at < truth->n; at += sizeof(struct tl_sim_pt_truth)) {
        struct said said = {.truth =
                                *(const struct tl_sim_pt_truth *)(const void *)(truth->p + at)};
        said.truth.no_ip |= said.truth.what != TL_SIM_PT_INSN && !has_place(said.truth.what);
        say(out, &said);
    }
}

/* Check that they are equal. */
static inline void require_truth(struct tl_buf *said, const struct tl_buf *truths,
                                 struct tl_bytes trace)
{
    struct tl_buf truth = {0};
    say(&truth, &(struct said){.sync = true});
    said_of_truth(&truth, truths);
    drop_repeated_modes(&truth);
    drop_repeated_modes(said);
    for (size_t i = 0; i < n_said(said) || i < n_said(&truth); i++)
        if (!said_alike(said, i, &truth, i)) {
            print_said(said, i, &truth, i, trace);
            fail();
        }
    tl_buf_fini(&truth);
}

#endif
