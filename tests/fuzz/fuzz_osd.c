/* SPDX-License-Identifier: MIT */
/*
 * The interpretation of Open SoC Debug packets, beyond fuzz_di: modules known from a setup, an
 * image with arbitrary instructions, arrival times, gaps in the input; and packets that no framing
 * has checked. Converted to flow items, call stacks and STF, in bounded memory.
 *
 * Input: one byte each for the modules' widths and for the piece size; the rest are datagrams.
 */
#include "decode/ops.h"
#include "flow/callstack.h"
#include "osd/osdsw.h"
#include "steps.h"
#include "stf/flow/flow_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sinks {
    struct tl_stf_flow *stf;
    struct tl_callstack calls;
    uint64_t time[64]; /* by stream */
    struct steps_streams steps;
};

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    if (depth >= TL_CALLSTACK_MAX)
        abort();
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct sinks *const s = context;
    steps_demand_of(&s->steps, stream->index, items, n);
    struct tl_stf_flow_at at = {0};
    struct tl_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        uint64_t *const last = &s->time[stream->index % 64];
        if (items[i].kind != TL_ITEM_TIME || stream->index >= 64)
            continue;
        if (items[i].value < *last)
            abort(); /* time does not go backwards */
        *last = items[i].value;
    }
    if (tl_item_text(&text, items, n) < 0 || tl_callstack_push(&s->calls, items, n) < 0 ||
        tl_stf_flow_items(s->stf, items, n, UINT64_MAX, &at) < 0)
        abort();
    tl_buf_fini(&text);
    tl_stf_flow_take(s->stf);
    return TL_OK;
}

static void make_setup(struct tl_setup *setup, uint8_t choice)
{
    static const unsigned widths[] = {16, 32, 64, 7};
    char ini[400];
    const int n = snprintf(ini, sizeof ini,
                           "[trace]\nformat=di\nclock=%u\n[source di.0.1]\nprotocol=osd-ctm\n"
                           "ADDR_WIDTH=%u\n[source di.0.2]\nprotocol=osd-stm\nVALWIDTH=%u\n"
                           "[source di.0.3]\nMOD_TYPE=%u\n",
                           choice & 16 ? 1000000000u : 0, widths[choice & 3],
                           widths[choice >> 2 & 3], choice >> 5);
    tl_setup_init(setup);
    if (tl_setup_parse(setup, ini, (size_t)n, NULL) < 0)
        abort();
}

/* The input itself is the program, at address 0 and where cores begin. */
static struct tl_image *make_image(const uint8_t *data, size_t size)
{
    struct tl_image *image;
    const struct tl_bytes code = {data, size};
    if (tl_image_new(&image) < 0 ||
        (size && (tl_image_add_bytes(image, 0, code, TL_SPACE_ANY, NULL, NULL) < 0 ||
                  tl_image_add_bytes(image, 0x80000000, code, TL_SPACE_ANY, NULL, NULL) < 0)) ||
        tl_image_freeze(image) < 0)
        abort();
    return image;
}

static void decode(const uint8_t *data, size_t size, size_t piece, uint8_t choice)
{
    struct tl_setup setup;
    struct sinks *const s = calloc(1, sizeof *s);
    struct tl_image *const image = make_image(data, size);
    const struct tl_stf_flow_options options = {.comments = choice & 1};
    if (!s || tl_stf_flow_new(&s->stf, &options, NULL) < 0)
        abort();
    make_setup(&setup, choice);
    tl_callstack_init(&s->calls, image, 0, on_frame, s);
    const struct tl_decode_sink sink = {.context = s, .items = on_items};
    struct tl_decode *d;
    if (tl_decode_new(&d, &setup, choice & 32 ? image : NULL, &sink, NULL) < 0)
        abort();
    for (size_t i = 0; i < size; i += piece) {
        tl_decode_set_arrival(d, 1 + (uint64_t)data[i] * data[i] * 10000000 * i);
        if (tl_decode_push(d, data + i, size - i < piece ? size - i : piece) < 0)
            abort();
        if (data[i] == 0xfe && tl_decode_skip(d, data[i / 2]) < 0)
            abort();
    }
    if (tl_decode_finish(d) < 0 || tl_callstack_finish(&s->calls) < 0 ||
        tl_stf_flow_finish(s->stf) < 0)
        abort();
    tl_decode_free(d);
    tl_stf_flow_free(s->stf);
    tl_image_free(image);
    tl_setup_fini(&setup);
    free(s);
}

/* Packets cut at any position, whole or not, as from a transport without framing. */
static void read_packets(const uint8_t *data, size_t size, uint8_t choice)
{
    struct tl_setup setup;
    struct tl_osd_reader reader;
    struct tl_buf log = {0};
    make_setup(&setup, choice);
    if (tl_osd_reader_init(&reader, &setup) < 0)
        abort();
    for (size_t i = 0; i + 8 <= size;) {
        size_t n = 3 + data[i] % 40;
        if (n > (size - i - 2) / 2)
            n = (size - i - 2) / 2;
        if (n < 3)
            break;
        uint16_t words[64] = {0};
        for (size_t k = 0; k < n; k++)
            words[k] = tl_be16(data + i + 2 + 2 * k);
        const struct tl_di_packet packet = {i, words, (unsigned)n};
        struct tl_osd_event event;
        char line[100];
        if (tl_osd_read(&reader, &packet, &event, NULL) < 0 ||
            tl_osdsw_event(&log, TL_OSDSW_CTM, &event) < 0)
            abort();
        tl_osd_line(line, sizeof line, &packet, &event);
        if (data[i] == 0xff)
            tl_osd_reader_lost(&reader);
        i += 2 + 2 * n;
    }
    tl_buf_fini(&log);
    tl_osd_reader_fini(&reader);
    tl_setup_fini(&setup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    decode(data + 2, size - 2, 1 + data[1], data[0]);
    read_packets(data + 2, size - 2, data[0]);
    return 0;
}
