/* SPDX-License-Identifier: MIT */
/*
 * E-Trace from bytes over a program: for any bytes, decoding terminates and gives the same result
 * for any chunking; saved in the middle and loaded, it continues the same. The first two bytes
 * choose envelope, parameters and chunk size.
 */
#include "decode/decode.h"
#include "sim/riscv_run.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXECUTED_MAX 200000u /* instructions: damaged numbers of branches are large */

/* All with [source et.0]; see the corpus, which has a trace of each. */
static const char *const setups[] = {
    "[trace]\nformat=etrace-encap,src_bits=3,ts_bytes=2,type_bits=2\n[source et.0]\n"
    "protocol=e-trace\ncore=rv64\niaddress_width_p=64\nbpred_size_p=4\ncache_size_p=3\n"
    "return_stack_size_p=2\nsijump_p=1\ncontext_width_p=10\n",
    "[trace]\nformat=etrace-smi\n[source et.0]\nprotocol=e-trace\ncore=rv64\n"
    "iaddress_width_p=48\ncall_counter_size_p=3\ntime_width_p=20\n",
    "[trace]\nformat=etrace-esp32\n[source et.0]\nprotocol=e-trace\ncore=rv32\nunit=esp32\n",
    "[trace]\nformat=etrace-encap,ts_bytes=8\n[source et.0]\nprotocol=e-trace\ncore=rv32\n"
    "unit=pulp\ncache_size_p=3\nbpred_size_p=4\niaddress_lsb_p=1\n",
    "[trace]\nformat=etrace-encap\n[source et.0]\nprotocol=e-trace\ncore=rv32\n"
    "unit=reference-2.1\n",
};
#define SETUPS (sizeof setups / sizeof *setups)

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const struct tl_image *the_image(void)
{
    static struct tl_image *image;
    const struct tl_sim_riscv_options options = {
        .seed = 1, .xlen = 32, .base = 0x80000000, .compressed = true, .events = 1};
    struct tl_sim_riscv_run run;
    if (image)
        return image;
    require(tl_sim_riscv_run(&run, &options) == TL_OK);
    require(tl_image_new(&image) == TL_OK);
    require(tl_image_add_bytes(image, options.base, (struct tl_bytes){run.code.p, run.code.n},
                               TL_SPACE_ANY, NULL, NULL) == TL_OK);
    require(tl_image_freeze(image) == TL_OK);
    tl_sim_riscv_run_fini(&run);
    return image;
}

struct result {
    struct tl_buf text;
    uint64_t executed;
    struct steps steps;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct result *const r = context;
    steps_demand(&r->steps, items, n);
    for (size_t i = 0; i < n; i++)
        r->executed += items[i].kind == TL_ITEM_BLOCK ? items[i].n : 0;
    return r->executed > EXECUTED_MAX ? TL_LIMIT : tl_item_text(&r->text, items, n);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    require(loss->reason != NULL);
    return TL_OK;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    require(strchr(line, ' ') != NULL);
    return TL_OK;
}

static struct tl_decode *begin(const struct tl_setup *setup, bool packets, struct result *r)
{
    const struct tl_decode_sink sink = {
        .context = r, .items = on_items, .loss = on_loss, .packet = packets ? on_packet : NULL};
    struct tl_decode *d;
    struct tl_fail fail;
    require(tl_decode_new(&d, setup, the_image(), &sink, &fail) == TL_OK);
    return d;
}

/* Save the state and go on with another decode. */
static struct tl_decode *hand_on(const struct tl_setup *setup, struct tl_decode *d,
                                 struct result *r)
{
    struct tl_buf saved = {0};
    struct tl_decode *const next = begin(setup, false, r);
    require(tl_decode_save(d, &saved) == TL_OK);
    require(tl_decode_load(next, (struct tl_bytes){saved.p, saved.n}) == TL_OK);
    tl_buf_fini(&saved);
    tl_decode_free(d);
    return next;
}

/* Returns false if the program was executed too long. */
static bool decode(const struct tl_setup *setup, struct tl_bytes in, size_t chunk, bool saves,
                   struct result *r)
{
    *r = (struct result){0};
    struct tl_decode *d = begin(setup, !saves && chunk > 8, r);
    int rc = TL_OK;
    for (size_t at = 0, i = 0; rc == TL_OK && at < in.n; at += chunk, i++) {
        rc = tl_decode_push(d, in.p + at, in.n - at < chunk ? in.n - at : chunk);
        if (rc == TL_OK && saves && i % 5 == 4)
            d = hand_on(setup, d, r);
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    require(rc == TL_OK || rc == TL_LIMIT);
    tl_decode_free(d);
    return rc == TL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    struct tl_setup setup;
    struct tl_fail fail;
    struct result whole, parts;
    const char *const ini = setups[data[0] % SETUPS];
    const struct tl_bytes in = {data + 2, size - 2};
    tl_setup_init(&setup);
    require(tl_setup_parse(&setup, ini, strlen(ini), &fail) == TL_OK);
    const bool ended = decode(&setup, in, in.n, false, &whole);
    if (ended) {
        require(decode(&setup, in, 1 + data[1] % 64, data[1] % 2, &parts));
        require(whole.text.n == parts.text.n);
        require(!whole.text.n || memcmp(whole.text.p, parts.text.p, whole.text.n) == 0);
        tl_buf_fini(&parts.text);
    }
    tl_buf_fini(&whole.text);
    tl_setup_fini(&setup);
    return 0;
}
