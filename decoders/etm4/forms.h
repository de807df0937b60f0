/* SPDX-License-Identifier: MIT */
/*
 * Tables for all header bytes under a configuration: packet length, and the fields that are known
 * without the payload. Shared by all packetizers and by the tape.
 *
 * A packet is plain if its length follows from its header, bit 7 of the next two bytes, and a
 * context's information byte, and if the only state it changes is the address registers. All others
 * are parsed individually.
 *
 * Read-only after initialisation. Source: Arm IHI0064H chapter 6.
 */
#ifndef TL_ETM4_FORMS_H
#define TL_ETM4_FORMS_H

#include "etm4/config.h"
#include "etm4/packet.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Shape of a header's packet: 0: not plain; else the minimum length in bits 3:0, plus these flags:
 */
enum tl_etm4_shape {
    TL_SHAPE_LENGTH = 0x0f,
    /* Plus VMID and context ID, according to the last byte of the minimum length */
    TL_SHAPE_IDS = 0x10,
    TL_SHAPE_BOTH = 0x20,  /* two fields of one byte each; not plain if either continues */
    TL_SHAPE_FIELD = 0x40, /* with BRIEF: not plain if the field continues after two bytes */
    TL_SHAPE_BRIEF = 0x80, /* plus 1 if bit 7 of the byte after the header is set */
};

/* How to build a plain packet from its header's template. */
enum tl_etm4_fill {
    TL_FILL_PARSE, /* not from the template: tl_etm4_parse() */
    TL_FILL_CYCLES2,
    TL_FILL_FIXED, /* from here on branch-free */
    TL_FILL_ADDRESS,
    TL_FILL_SHORT,  /* an address with eight more bits if bit 7 of its payload is set */
    TL_FILL_CYCLES, /* add the threshold to the value */
    TL_FILLS
};

struct tl_etm4_forms {
    struct tl_etm4_config config;
    uint8_t ids[4]; /* total size of VMID and context ID, by bits 7:6 of the information byte */
    uint8_t class_of[256]; /* enum tl_etm4_class */
    uint8_t shape[256];    /* enum tl_etm4_shape */
    uint8_t rows[16];  /* shape common to all headers with these upper four bits; 0: they differ */
    uint8_t fill[256]; /* enum tl_etm4_fill */
    struct tl_etm4_packet fixed[256]; /* templates, with offset 0 */
};

void tl_etm4_forms_init(struct tl_etm4_forms *forms, const struct tl_etm4_config *config);

/*
 * Headers of address packets, with and without context; no other plain packets are in this range.
 */
#define TL_ADDRESS_FIRST 0x82
#define TL_ADDRESS_LAST  0x9e

static inline bool tl_etm4_is_address(uint8_t header)
{
    return (uint8_t)(header - TL_ADDRESS_FIRST) <= TL_ADDRESS_LAST - TL_ADDRESS_FIRST;
}

/* Length of the plain packet at `b`, with `n` bytes available; 0: not plain, or incomplete. */
static inline size_t tl_etm4_plain_length(const struct tl_etm4_forms *forms, const uint8_t *b,
                                          size_t n)
{
    const unsigned shape = forms->shape[b[0]];
    size_t length = shape & TL_SHAPE_LENGTH;

    if (length > n)
        return 0;
    if (shape > TL_SHAPE_LENGTH) {
        if (shape & TL_SHAPE_IDS)
            length += forms->ids[b[length - 1] >> 6];
        if (shape & TL_SHAPE_BRIEF)
            length += b[1] >> 7;
        if (length > n || (shape & TL_SHAPE_BOTH && (b[1] | b[2]) & 0x80) ||
            (shape & TL_SHAPE_FIELD && length == 3 && b[2] & 0x80))
            return 0;
    }
    return length;
}

#endif
