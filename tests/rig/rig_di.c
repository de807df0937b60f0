/* SPDX-License-Identifier: MIT */
/* An Open SoC Debug system: a core trace module and a software trace module that prints. */
#include "rig.h"

#include "sim/osd_encoder.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SCM = 0x0000, CTM = 0x0001, STM = 0x0002, DEPTH = 24, FUNCTIONS = 40 };

static const struct tl_sim_osd_module modules[] = {
    {SCM, TL_SIM_OSD_SCM, 0},
    {CTM, TL_SIM_OSD_CTM, 32},
    {STM, TL_SIM_OSD_STM, 32},
};

struct rig {
    struct tl_sim_osd osd;
    uint64_t random;
    uint32_t time;
    uint32_t pc;
    uint32_t stack[DEPTH]; /* return addresses */
    unsigned depth;
    unsigned function; /* current function */
    unsigned lines;
    bool begun;
};

static uint32_t draw(struct rig *rig, uint32_t n)
{
    rig->random = rig->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((rig->random >> 33) % n);
}

/* The functions of an artificial program are 1 KiB apart. */
static uint32_t entry_of(unsigned function)
{
    return 0x80001000u + function * 0x400u;
}

static int start(struct rig **out, uint64_t seed, bool truth)
{
    struct rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        return TL_NOMEM;
    tl_sim_osd_init(&rig->osd);
    rig->osd.keep_truth = truth;
    rig->random = seed * 2 + 1;
    rig->pc = entry_of(0);
    *out = rig;
    return TL_OK;
}

static void stop(struct rig *rig)
{
    tl_sim_osd_fini(&rig->osd);
    free(rig);
}

static int describe(struct rig *rig, struct tl_setup *setup, struct tl_buf *elf)
{
    return tl_setup_format(setup, "di", NULL);
}

static int branch(struct rig *rig, uint32_t to, bool call, bool ret)
{
    const struct tl_sim_osd_truth event = {
        .time = rig->time, .pc = rig->pc, .npc = to, .mode = 3, .call = call, .ret = ret};
    rig->pc = to;
    return tl_sim_osd_ctm(&rig->osd, CTM, 32, &event);
}

/* Print a line of the program's log from time to time. */
static int print_line(struct rig *rig)
{
    char text[64];
    snprintf(text, sizeof text, "worker %u: item %u done in %u us\n", draw(rig, 4), rig->lines++,
             20 + draw(rig, 900));
    rig->time += 200;
    return tl_sim_osd_stm_print(&rig->osd, STM, 32, rig->time, 3, text);
}

/* Execute one step: a call, a return, or a jump in a loop. */
static int step(struct rig *rig)
{
    const uint32_t what = draw(rig, 100);
    rig->time += 2 + draw(rig, 60);
    rig->pc += 4 * (1 + draw(rig, 12));
    if (what < 2)
        return print_line(rig);
    if (what < 3 && draw(rig, 40) == 0)
        return tl_sim_osd_overflow(&rig->osd, CTM, (uint16_t)(1 + draw(rig, 200)), TL_SIM_OSD_CTM);
    if (what < 40 && rig->depth < DEPTH) {
        rig->stack[rig->depth++] = rig->pc + 4;
        rig->function = draw(rig, FUNCTIONS);
        return branch(rig, entry_of(rig->function), true, false);
    }
    if (what < 78 && rig->depth > 0) {
        const uint32_t to = rig->stack[--rig->depth];
        rig->function = (to - entry_of(0)) / 0x400u;
        return branch(rig, to, false, true);
    }
    return branch(rig, entry_of(rig->function) + 4 * draw(rig, 16), false, false);
}

static int more(struct rig *rig, size_t n, struct tl_buf *out)
{
    int result = TL_OK;
    if (!rig->begun)
        result = tl_sim_osd_enumerate(&rig->osd, modules, sizeof modules / sizeof modules[0]);
    rig->begun = true;
    while (result == TL_OK && rig->osd.out.n < n)
        result = step(rig);
    if (result == TL_OK)
        result = tl_buf_add(out, rig->osd.out.p, rig->osd.out.n);
    tl_buf_reset(&rig->osd.out);
    return result;
}

/* Write the branches of the core with their times, in order; the decoder's own tests cover software
 * trace. */
static int truth(struct rig *rig, FILE *file)
{
    fprintf(file, "# stream di.0.1\n");
    for (size_t i = 0; i < rig->osd.n_truth; i++) {
        const struct tl_sim_osd_truth *t = &rig->osd.truth[i];
        if (t->src != CTM)
            continue;
        if (t->overflow)
            fprintf(file, "G overflow %" PRIu64 "\n", t->value);
        else
            fprintf(file, "T %" PRIu32 "\nB %016" PRIx64 " %016" PRIx64 "\n", t->time, t->pc,
                    t->npc);
    }
    return ferror(file) ? TL_IO : TL_OK;
}

const struct rig_kind rig_di = {
    .name = "di",
    .about = "an Open SoC Debug system, core and software trace",
    .start = start,
    .stop = stop,
    .describe = describe,
    .more = more,
    .truth = truth,
};
