/* SPDX-License-Identifier: MIT */
/*
 * Open SoC Debug: interprets DI packets.
 *
 * A packet does not identify the kind of module that sent it, nor the width of its fields. The
 * reader takes them from a setup, or learns them from the register reads of a host that enumerates
 * the system (exactly if the stream contains the requests, by their usual order if it contains only
 * the replies), or else infers them from payload length and content (docs/osd-decode.md).
 *
 * Not thread-safe. Memory grows with the number of modules seen (at most 64 K).
 *
 * Source: Open SoC Debug documentation (2020-03-28); where osd-hw differs, osd-hw, e.g. for the
 * position of the CTM flags word.
 */
#ifndef TL_OSD_READER_H
#define TL_OSD_READER_H

#include "frame/di.h"
#include "setup/setup.h"

/* MOD_TYPE of vendor 1 (OSD). */
enum tl_osd_type {
    TL_OSD_UNKNOWN = 0,
    TL_OSD_SCM = 1,
    TL_OSD_UART = 2,
    TL_OSD_MAM = 3,
    TL_OSD_STM = 4,
    TL_OSD_CTM = 5,
    TL_OSD_CDM = 6
};

enum tl_osd_kind {
    TL_OSD_REGISTER,     /* register access: see the packet */
    TL_OSD_PART,         /* part of an event, not the last */
    TL_OSD_CORE_EVENT,   /* CTM */
    TL_OSD_SYSTEM_EVENT, /* STM */
    TL_OSD_CHARACTER,    /* DEM-UART; value */
    TL_OSD_STALL,        /* CDM; value 1: the core has stopped */
    TL_OSD_MEMORY,       /* MAM: part of a transfer */
    TL_OSD_OVERFLOW,     /* value = events lost; 65535: at least that many */
    TL_OSD_FOREIGN,      /* event of a module known to be of an unsupported type */
    TL_OSD_MISFIT,       /* event that fits no known module, or whose beginning was lost */
    TL_OSD_RESERVED      /* reserved packet type, ignored */
};

#define TL_OSD_PAYLOAD_MAX 32 /* maximum words of an event, all parts together */
#define TL_OSD_SLACK       3  /* words after an event that may be read */
#define TL_OSD_EARLY_MAX   16 /* overflow packets kept until the module's type is known */

struct tl_osd_event {
    uint8_t kind;  /* enum tl_osd_kind */
    uint8_t type;  /* enum tl_osd_type of the module */
    uint8_t width; /* bits of pc and npc, or of value */
    uint8_t mode;  /* CTM: privilege 0..3 */
    bool call;
    bool ret;
    bool modechange;
    bool inbound;  /* from the host to the module: UART, MAM */
    bool doubtful; /* MEMORY, or SYSTEM_EVENT if the module's next event is one */
    uint16_t src;
    uint16_t id;   /* STM */
    uint32_t time; /* ticks, as sent: 32 bits */
    uint64_t pc;
    uint64_t npc;
    uint64_t value;
    uint64_t offset; /* of the last packet of the event */
};

/* What is known about one module. */
struct tl_osd_module {
    uint16_t address;
    uint8_t type;    /* enum tl_osd_type */
    uint8_t width;   /* 16, 32, 64; 0: unknown */
    bool declared;   /* type from setup or enumeration, not inferred */
    bool exact;      /* declared, and certain */
    bool foreign;    /* declared, but of an unsupported type */
    uint8_t misfits; /* consecutive events that did not fit */
    bool doubtful;   /* STM or MAM: the next event will decide */
    uint32_t time;   /* time of the doubtful event if it is STM */
    uint8_t n_words; /* words so far of an event in several parts */
    bool too_long;   /* that event is longer than any valid one */
    uint16_t dest;   /* its destination */
    uint16_t words[TL_OSD_PAYLOAD_MAX + TL_OSD_SLACK];
    uint8_t n_replies; /* register values read so far, up to 2 */
    uint16_t reply;    /* the last one */
    uint8_t n_asked;
    uint16_t asked[8]; /* registers requested and not yet answered, oldest first */
    /* Overflow packets before the type was known; cleared by the code that reports them */
    uint8_t n_early;
    /* Events lost, per overflow packet; the last entry also includes all further ones. */
    uint32_t early[TL_OSD_EARLY_MAX];
    uint64_t early_at; /* offset of the first one */
    void *user;        /* for the owner; NULL at first */
};

struct tl_osd_reader {
    struct tl_osd_module **subnets[64]; /* 1024 pointers each */
    unsigned max_pkt_len;               /* words, 0: unknown */
    bool any_declared;
};

/*
 * Initialise; declare the modules of the setup's sources (`setup` may be NULL). Returns TL_NOMEM.
 */
TL_MUST_USE int tl_osd_reader_init(struct tl_osd_reader *r, const struct tl_setup *setup);
void tl_osd_reader_fini(struct tl_osd_reader *r);

/* Create the module with this address if there is none. NULL: out of memory. */
struct tl_osd_module *tl_osd_make_module(struct tl_osd_reader *r, uint16_t address);

/* The module with this address, or NULL. */
static inline struct tl_osd_module *tl_osd_find_module(const struct tl_osd_reader *r,
                                                       uint16_t address)
{
    struct tl_osd_module **const subnet = r->subnets[address >> 10];
    return subnet ? subnet[address & 0x3ff] : NULL;
}

/* The module with this address, created on first use. NULL: out of memory. */
static inline struct tl_osd_module *tl_osd_module_at(struct tl_osd_reader *r, uint16_t address)
{
    struct tl_osd_module *const module = tl_osd_find_module(r, address);
    return module ? module : tl_osd_make_module(r, address);
}

/* Call `fn` for all modules in order of address, until it returns < 0. */
int tl_osd_each_module(struct tl_osd_reader *r, int (*fn)(void *, struct tl_osd_module *),
                       void *context);

/* Interpret one packet. `module` (may be NULL) is set to the module it concerns: its sender, or the
 * receiver of packets from a host. Returns TL_NOMEM. */
TL_MUST_USE int tl_osd_read(struct tl_osd_reader *r, const struct tl_di_packet *packet,
                            struct tl_osd_event *event, struct tl_osd_module **module);

/* Payload words of an event of a CTM, and of an STM. */
static inline unsigned tl_osd_ctm_words(unsigned width)
{
    return 3 + 2 * width / 16;
}

static inline unsigned tl_osd_stm_words(unsigned width)
{
    return 3 + width / 16;
}

/* Read a field: little-endian in words, words in host order. `width`: 16, 32, 64; reads up to 3
 * words past the field. */
static inline uint64_t tl_osd_field(const uint16_t *words, unsigned width)
{
    const uint64_t value = (uint64_t)words[0] | (uint64_t)words[1] << 16 |
                           (uint64_t)words[2] << 32 | (uint64_t)words[3] << 48;
    return value & UINT64_MAX >> (64 - width);
}

/* Read the fields of a complete event; 3 words after it may be read. Returns false if reserved flag
 * bits are set. */
static inline bool tl_osd_read_ctm(struct tl_osd_event *e, const uint16_t *words, unsigned width)
{
    const uint16_t flags = words[2 + 2 * width / 16];
    e->kind = TL_OSD_CORE_EVENT;
    e->width = (uint8_t)width;
    e->time = (uint32_t)tl_osd_field(words, 32);
    e->npc = tl_osd_field(words + 2, width);
    e->pc = tl_osd_field(words + 2 + width / 16, width);
    e->mode = flags & 3;
    e->ret = flags >> 2 & 1;
    e->call = flags >> 3 & 1;
    e->modechange = flags >> 4 & 1;
    return !(flags >> 5);
}

static inline void tl_osd_read_stm(struct tl_osd_event *e, const uint16_t *words, unsigned width)
{
    e->kind = TL_OSD_SYSTEM_EVENT;
    e->width = (uint8_t)width;
    e->time = (uint32_t)tl_osd_field(words, 32);
    e->id = words[2];
    e->value = tl_osd_field(words + 3, width);
}

/* Packets were lost: discard events in several parts that are incomplete. */
void tl_osd_reader_lost(struct tl_osd_reader *r);

/* Is `width` a valid field width, or 0? */
static inline bool tl_osd_is_width(unsigned width)
{
    return width == 0 || width == 16 || width == 32 || width == 64;
}

/*
 * Save or restore what is known about the system and about a module, except its address and `user`.
 * Restore only into a reader of the same setup that has read nothing.
 */
void tl_osd_reader_state(struct tl_osd_reader *r, struct tl_state *state);
void tl_osd_module_state(struct tl_osd_module *m, struct tl_state *state);

#define TL_OSD_LINE_MAX 2048 /* for any packet the framing accepts by default */

/*
 * Format a packet as one line, without line end: offset, length, addresses, flags and
 * interpretation. Truncated to `size`.
 */
void tl_osd_line(char *out, size_t size, const struct tl_di_packet *packet,
                 const struct tl_osd_event *event);

#endif
