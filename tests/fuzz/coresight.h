/* SPDX-License-Identifier: MIT */
/*
 * The setup with which arbitrary bytes are decoded as a CoreSight capture: sources of every
 * protocol, and an image.
 */
#ifndef TL_FUZZ_CORESIGHT_H
#define TL_FUZZ_CORESIGHT_H

#include "decode/decode.h"
#include "image/image.h"
#include "sim/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 128 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const struct tl_image *image(void)
{
    static struct tl_image *made;
    const struct tl_sim_program_options options = {.seed = 1, .extra = 20, .short_loops = true};
    struct tl_sim_program program;
    struct tl_buf elf = {0};
    if (made)
        return made;
    require(tl_sim_program_init(&program, &options) == 0 &&
            tl_sim_program_elf(&program, &elf) == 0 && tl_image_new(&made) == 0);
    require(tl_image_add_elf(made, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", NULL) ==
            0);
    require(tl_image_freeze(made) == 0);
    tl_buf_fini(&elf);
    tl_sim_program_fini(&program);
    return made;
}

static const char sources[] =
    "[source cs.10]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x18c1\nTRCIDR1=0x4100f443\n"
    "[source cs.11]\nprotocol=ete\ncore=ARM-AA64\nTRCCONFIGR=0xc1\nTRCIDR0=0x28018ea1\n"
    "TRCDEVARCH=0x47735a13\n"
    "[source cs.12]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x11\nTRCIDR8=20\n"
    "[source cs.13]\nprotocol=itm\n[source cs.14]\nprotocol=stm\n"
    "[source cs.15]\nprotocol=none\ntype=PTM1.1\n"
    "[source cs.16]\nprotocol=etm4\ncore=Cortex-M33\n"
    "[source cs.17]\nprotocol=etm4\ncore=ARMv8-A\nTRCCONFIGR=0x6\n";

static void setup_of(struct tl_setup *setup, uint8_t choice)
{
    enum { SINGLE = 4, SINGLE_END = 6, FORMATS = 7 };
    static const char *const formats[FORMATS] = {
        "tpiu",         "tpiu,sync=fsync", "tpiu,sync=hsync", "tpiu,sync=dstream",
        "etm4,id=0x10", "ete,id=0x11",     "orbflow"};
    const unsigned format = choice % FORMATS;
    const bool single = format >= SINGLE && format < SINGLE_END;
    struct tl_fail fail = {0};
    tl_setup_init(setup);
    require(tl_setup_format(setup, formats[format], &fail) == 0);
    require(single || tl_setup_parse(setup, sources, sizeof sources - 1, &fail) == 0);
}

#endif
