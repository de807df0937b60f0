/* SPDX-License-Identifier: MIT */
/*
 * Intel PT flow from bytes over a program: for any bytes, decoding terminates and gives the same
 * result for any chunking; the decoder of single instructions terminates as well. The first two
 * bytes choose errata, chunk size and the program.
 */
#include "decode/ops.h"
#include "pt/insn.h"
#include "setup/setup.h"
#include "sim/x86_program.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PROGRAMS = 4, FUNCTIONS = 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The programs whose executions are in the corpus. */
static const struct tl_image *image_of(unsigned seed)
{
    static struct tl_image *images[PROGRAMS];
    if (images[seed])
        return images[seed];
    struct tl_sim_x86_program program;
    tl_sim_x86_program_init(&program, seed, FUNCTIONS);
    require(tl_image_new(&images[seed]) == TL_OK);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        const struct tl_buf *const code = &program.parts[zone].code;
        require(tl_image_add_bytes(images[seed], program.parts[zone].base,
                                   (struct tl_bytes){code->p, code->n}, TL_SPACE_ANY, NULL,
                                   NULL) == TL_OK);
    }
    require(tl_image_freeze(images[seed]) == TL_OK);
    tl_sim_x86_program_fini(&program);
    return images[seed];
}

/* ---- as a stream ----------------------------------------------------------------------------- */

static struct steps steps; /* of the trace that is being decoded */

static int add_text(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&steps, items, n);
    return tl_item_text(context, items, n);
}

static int add_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return tl_buf_printf(context, "%s %llu %llu\n", reason, (unsigned long long)offset,
                         (unsigned long long)bytes);
}

static void flow(struct tl_buf *text, const struct tl_source *source, const struct tl_image *image,
                 struct tl_bytes trace, size_t chunk)
{
    const struct tl_stream_sink sink = {text, add_text, NULL, add_loss, false};
    struct tl_stream_decoder *d;
    steps = (struct steps){0};
    require(tl_pt_ops.create(&d, source, image, &sink, NULL) == TL_OK);
    for (size_t at = 0; at < trace.n; at += chunk) {
        const size_t n = chunk < trace.n - at ? chunk : trace.n - at;
        const struct tl_run run = {trace.p + at, n, at, NULL};
        require(tl_pt_ops.push(d, &run) == TL_OK);
    }
    require(tl_pt_ops.finish(d, TL_LOSS_CUT_OFF) == TL_OK);
    tl_pt_ops.destroy(d);
}

/* ---- instruction by instruction ----------------------------------------------------------------
 */

static int events_of(struct tl_pt_insns *d, int status)
{
    while (status >= 0 && status & TL_PT_EVENT_PENDING) {
        struct tl_pt_event event;
        status = tl_pt_insns_event(d, &event);
        require(status < 0 || event.kind < TL_PT_EV_IGNORED);
    }
    return status;
}

static void by_insn(const struct tl_pt_config *config, const struct tl_image *image,
                    struct tl_bytes trace)
{
    static struct tl_pt_insns d;
    tl_pt_insns_init(&d, config, image, trace, &(struct tl_pt_insn_options){.ticks = true});
    for (size_t syncs = 0; syncs <= trace.n; syncs++) {
        int status = tl_pt_insns_sync(&d);
        while ((status = events_of(&d, status)) >= 0 && !(status & TL_PT_END))
            status = tl_pt_insns_next(&d);
        if (status >= 0 || status == -TL_PT_EOS)
            return;
    }
    abort(); /* more PSBs than there are bytes */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    static const char *const cores[] = {"", "6/0x3d", "6/0x4e", "6/0x5c"};
    const struct tl_image *const image = image_of(data[1] % PROGRAMS);
    const struct tl_bytes trace = {data + 2, size - 2};
    struct tl_source source = {.name = "pt.0"};
    struct tl_pt_config config;
    strcpy(source.core, cores[data[0] & 3]);
    require(tl_source_set_reg(&source, "MTC_FREQ", 3) == TL_OK);
    require(tl_source_set_reg(&source, "CPUID_15_EAX", 2) == TL_OK);
    require(tl_source_set_reg(&source, "CPUID_15_EBX", 100) == TL_OK);
    tl_pt_config_init(&config, &source);
    by_insn(&config, image, trace);
    struct tl_buf whole = {0}, pieces = {0};
    flow(&whole, &source, image, trace, trace.n + 1);
    flow(&pieces, &source, image, trace, 1 + data[0] / 4);
    require(whole.n == pieces.n && (whole.n == 0 || !memcmp(whole.p, pieces.p, whole.n)));
    tl_buf_fini(&whole);
    tl_buf_fini(&pieces);
    return 0;
}
