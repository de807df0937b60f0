/* SPDX-License-Identifier: MIT */
/*
 * What header bytes mean under a configuration, as tables made once: how long a packet is, and
 * what it says before its payload is looked at. Shared by all packetizers and by the tape.
 *
 * A packet is plain if its length follows from its header, from bit 7 of the two bytes behind it,
 * and from a context's information byte, and if it changes no other state than the address
 * registers. All others are parsed one by one.
 *
 * Read-only once made. Source: Arm IHI0064H chapter 6.
 */
#ifndef TL_ETM4_FORMS_H
#define TL_ETM4_FORMS_H

#include "etm4/config.h"
#include "etm4/packet.h"

#include <stddef.h>
#include <stdint.h>

/* A header's shape: 0 begins no plain packet, else the least length in bits 3:0, and: */
enum tl_etm4_shape {
    TL_SHAPE_LENGTH = 0x0f,
    TL_SHAPE_IDS = 0x10,   /* longer by a VMID, a context ID, as the last byte of these tells */
    TL_SHAPE_BOTH = 0x20,  /* two fields of one byte each; not plain if one goes on */
    TL_SHAPE_FIELD = 0x40, /* with BRIEF: not plain if the field goes on behind two bytes */
    TL_SHAPE_BRIEF = 0x80, /* longer by 1 if bit 7 of the byte behind the header is set */
};

/* How a plain packet is made of its header's template. */
enum tl_etm4_fill {
    TL_FILL_PARSE, /* not: by tl_etm4_parse */
    TL_FILL_CYCLES2,
    TL_FILL_FIXED, /* this and those below without a branch */
    TL_FILL_ADDRESS,
    TL_FILL_SHORT,  /* an address, of eight bits more if bit 7 of its payload is set */
    TL_FILL_CYCLES, /* the threshold comes to the value */
    TL_FILLS
};

/* About 9 KiB. */
struct tl_etm4_forms {
    struct tl_etm4_config config;
    uint8_t ids[4];        /* bytes of VMID and context ID, by bits 7:6 of the information byte */
    uint8_t class_of[256]; /* enum tl_etm4_class */
    uint8_t shape[256];    /* enum tl_etm4_shape */
    uint8_t rows[16];      /* shape of the headers with these upper four bits; 0: not all alike */
    uint8_t fill[256];     /* enum tl_etm4_fill */
    struct tl_etm4_packet fixed[256]; /* templates, their offset 0 */
};

void tl_etm4_forms_init(struct tl_etm4_forms *forms, const struct tl_etm4_config *config);

/* Headers of address packets, with and without a context; no other plain packets are between. */
#define TL_ADDRESS_FIRST 0x82
#define TL_ADDRESS_LAST  0x9e

static inline bool tl_etm4_is_address(uint8_t header)
{
    return (uint8_t)(header - TL_ADDRESS_FIRST) <= TL_ADDRESS_LAST - TL_ADDRESS_FIRST;
}

/* Length of the plain packet at `b`, of which `n` bytes are there; 0: not plain, or not all. */
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
