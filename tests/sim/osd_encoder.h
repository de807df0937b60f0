/* SPDX-License-Identifier: MIT */
/*
 * Produces the DI datagrams that an Open SoC Debug system sends to its host: enumeration, CTM, STM
 * and UART events, split events, overflow. For tests and simulated rigs; it records the meaning, so
 * that a decoder's result can be compared.
 *
 * Not thread-safe. Every function appends to `out` and returns TL_OK or TL_NOMEM.
 *
 * Source: Open SoC Debug documentation (2020-03-28) and osd-hw; where they differ, osd-hw.
 */
#ifndef TL_SIM_OSD_ENCODER_H
#define TL_SIM_OSD_ENCODER_H

#include "base/buf.h"

#include <stdbool.h>

#define TL_SIM_OSD_HOST 0x0401 /* the usual address of the first module of the host */

enum tl_sim_osd_module_type {
    TL_SIM_OSD_SCM = 1,
    TL_SIM_OSD_UART = 2,
    TL_SIM_OSD_MAM = 3,
    TL_SIM_OSD_STM = 4,
    TL_SIM_OSD_CTM = 5,
    TL_SIM_OSD_CDM = 6
};

struct tl_sim_osd_module {
    uint16_t address; /* subnet << 10 | local; the SCM has local 0 */
    uint8_t type;     /* enum tl_sim_osd_module_type */
    uint8_t width;    /* CTM: ADDR_WIDTH, STM: VALWIDTH; 16, 32, 64 */
};

/* The meaning of what was sent: one entry per CTM, STM or UART event and per overflow packet. */
struct tl_sim_osd_truth {
    uint64_t offset; /* of the length word of the (last) packet of the event */
    uint64_t packet; /* index of that packet */
    uint16_t src;
    uint8_t type;    /* enum tl_sim_osd_module_type */
    bool overflow;   /* `value` events were lost here; the other members are undefined */
    uint32_t time;   /* ticks */
    uint64_t pc;     /* CTM */
    uint64_t npc;    /* CTM */
    uint64_t value;  /* STM value, UART character, overflow count */
    uint16_t id;     /* STM */
    uint8_t mode;    /* CTM, 0..3 */
    bool call;       /* CTM */
    bool ret;        /* CTM */
    bool modechange; /* CTM */
};

struct tl_sim_osd {
    struct tl_buf out;    /* capture bytes; the user may drop bytes from it */
    uint64_t written;     /* capture bytes produced so far, including dropped ones */
    uint64_t packets;     /* datagrams produced so far */
    uint16_t dest;        /* of all packets */
    uint16_t max_pkt_len; /* words, including the header; longer events are split */
    bool little_endian;   /* host order, as in *.pkgdump; otherwise as on GLIP */
    bool keep_truth;      /* record the meaning (grows without bound) */
    struct tl_sim_osd_truth *truth;
    size_t n_truth;
    size_t cap_truth;
};

/* Initialize: host 0x0401, 12 words per packet, GLIP order, truth recorded. */
void tl_sim_osd_init(struct tl_sim_osd *e);
void tl_sim_osd_fini(struct tl_sim_osd *e);

/* One packet, unchanged; usually at most max_pkt_len - 3 words of payload, which is not checked. */
TL_MUST_USE int tl_sim_osd_packet(struct tl_sim_osd *e, uint16_t dest, uint16_t src, uint16_t flags,
                                  const uint16_t *payload, size_t n);

/* An event of any length, split where necessary. */
TL_MUST_USE int tl_sim_osd_event(struct tl_sim_osd *e, uint16_t src, const uint16_t *payload,
                                 size_t n);

/* The answers to the register reads with which a host enumerates the system. */
TL_MUST_USE int tl_sim_osd_enumerate(struct tl_sim_osd *e, const struct tl_sim_osd_module *modules,
                                     size_t n);

/* The answer to a 16-bit register read. */
TL_MUST_USE int tl_sim_osd_read_reply(struct tl_sim_osd *e, uint16_t src, uint16_t value);

/* Members used: time, npc, pc, mode, call, ret, modechange. `width`: 16, 32 or 64. */
TL_MUST_USE int tl_sim_osd_ctm(struct tl_sim_osd *e, uint16_t src, unsigned width,
                               const struct tl_sim_osd_truth *event);

TL_MUST_USE int tl_sim_osd_stm(struct tl_sim_osd *e, uint16_t src, unsigned width, uint32_t time,
                               uint16_t id, uint64_t value);

/* The characters of a text as STM events with id 4, `step` ticks apart. */
TL_MUST_USE int tl_sim_osd_stm_print(struct tl_sim_osd *e, uint16_t src, unsigned width,
                                     uint32_t time, uint32_t step, const char *text);

TL_MUST_USE int tl_sim_osd_uart(struct tl_sim_osd *e, uint16_t src, uint8_t character);

/* `count` events were lost; 65535: at least that many. */
TL_MUST_USE int tl_sim_osd_overflow(struct tl_sim_osd *e, uint16_t src, uint16_t count,
                                    enum tl_sim_osd_module_type type);

#endif
