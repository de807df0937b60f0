/* SPDX-License-Identifier: MIT */
/*
 * Open SoC Debug: DI packets to what they mean.
 *
 * A packet does not say which kind of module sent it, nor how wide its fields are. The reader
 * knows from a setup, learns from the register reads of a host that enumerates the system
 * (exactly where requests are in the stream, by their usual order where only the answers are), or
 * else takes it from the payload's length and content (docs/osd-decode.md).
 *
 * Not thread-safe. Memory grows with the number of modules heard of (64 K at most).
 *
 * Source: Open SoC Debug documentation (2020-03-28); where osd-hw differs, osd-hw, e.g. for the
 * place of the CTM flags word.
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
    TL_OSD_PART,         /* of an event, not the last one */
    TL_OSD_CORE_EVENT,   /* CTM */
    TL_OSD_SYSTEM_EVENT, /* STM */
    TL_OSD_CHARACTER,    /* DEM-UART; value */
    TL_OSD_STALL,        /* CDM; value 1: the core has stopped */
    TL_OSD_MEMORY,       /* MAM: part of a transfer */
    TL_OSD_OVERFLOW,     /* value events were lost, 65535: at least */
    TL_OSD_FOREIGN,      /* event of a module that is known to be of a kind that is not known */
    TL_OSD_MISFIT,       /* an event that fits no known module, or whose beginning was lost */
    TL_OSD_RESERVED      /* reserved packet type, to be ignored */
};

#define TL_OSD_PAYLOAD_MAX 32 /* words of an event, all parts together */
#define TL_OSD_SLACK       3  /* words behind an event that may be read */
#define TL_OSD_EARLY_MAX   16 /* overflow packets kept until it is known of what they are */

struct tl_osd_event {
    uint8_t kind;  /* enum tl_osd_kind */
    uint8_t type;  /* enum tl_osd_type of the module */
    uint8_t width; /* bits of pc and npc, or of value */
    uint8_t mode;  /* CTM: privilege 0..3 */
    bool call;
    bool ret;
    bool modechange;
    bool inbound;  /* from the host to the module: UART, MAM */
    bool doubtful; /* MEMORY, or a SYSTEM_EVENT if the module's next event is one */
    uint16_t src;
    uint16_t id;   /* STM */
    uint32_t time; /* ticks, as sent: 32 bits */
    uint64_t pc;
    uint64_t npc;
    uint64_t value;
    uint64_t offset; /* of the last packet of the event */
};

/* What is known of one module. */
struct tl_osd_module {
    uint16_t address;
    uint8_t type;    /* enum tl_osd_type */
    uint8_t width;   /* 16, 32, 64; 0: not known */
    bool declared;   /* type by setup or enumeration, not by guess */
    bool exact;      /* … and it cannot be wrong */
    bool foreign;    /* declared, but of no type that is known */
    uint8_t misfits; /* events in a row that did not fit */
    bool doubtful;   /* STM or MAM: the next event will tell */
    uint32_t time;   /* … of this time if the former */
    uint8_t n_words; /* of the event under construction */
    bool too_long;   /* … which is longer than any */
    uint16_t dest;   /* … and where it goes */
    uint16_t words[TL_OSD_PAYLOAD_MAX + TL_OSD_SLACK];
    uint8_t n_replies; /* register values read, up to 2 */
    uint16_t reply;    /* the last one */
    uint8_t n_asked;
    uint16_t asked[8]; /* registers asked for and not yet answered, oldest first */
    uint8_t n_early;   /* overflow packets from before the type was known; whoever tells of them */
    uint32_t
        early[TL_OSD_EARLY_MAX]; /* … clears it. Events lost; the last has the rest's as well */
    uint64_t early_at;           /* offset of the first one */
    void *user;                  /* the owner's, NULL at first */
};

struct tl_osd_reader {
    struct tl_osd_module **subnets[64]; /* 1024 pointers each */
    unsigned max_pkt_len;               /* words, 0: not known */
    bool any_declared;
};

/* Zero the reader; take what the setup's sources say (may be NULL). TL_NOMEM. */
TL_MUST_USE int tl_osd_reader_init(struct tl_osd_reader *r, const struct tl_setup *setup);
void tl_osd_reader_fini(struct tl_osd_reader *r);

/* Make the module with this address, if it is not there. NULL: out of memory. */
struct tl_osd_module *tl_osd_make_module(struct tl_osd_reader *r, uint16_t address);

/* The module with this address, or NULL. */
static inline struct tl_osd_module *tl_osd_find_module(const struct tl_osd_reader *r,
                                                       uint16_t address)
{
    struct tl_osd_module **const subnet = r->subnets[address >> 10];
    return subnet ? subnet[address & 0x3ff] : NULL;
}

/* The module with this address, made on first use. NULL: out of memory. */
static inline struct tl_osd_module *tl_osd_module_at(struct tl_osd_reader *r, uint16_t address)
{
    struct tl_osd_module *const module = tl_osd_find_module(r, address);
    return module ? module : tl_osd_make_module(r, address);
}

/* Call `fn` for all modules in order of address, until it returns < 0. */
int tl_osd_each_module(struct tl_osd_reader *r, int (*fn)(void *, struct tl_osd_module *),
                       void *context);

/* Understand one packet. `module` (may be NULL) is the one that it is of: its sender, but for what
 * a host sends to a module. TL_NOMEM. */
TL_MUST_USE int tl_osd_read(struct tl_osd_reader *r, const struct tl_di_packet *packet,
                            struct tl_osd_event *event, struct tl_osd_module **module);

/* Payload words of an event. */
static inline unsigned tl_osd_ctm_words(unsigned width)
{
    return 3 + 2 * width / 16;
}

static inline unsigned tl_osd_stm_words(unsigned width)
{
    return 3 + width / 16;
}

/* Fields are little-endian in words, and words are in host order here. `width`: 16, 32, 64; up to
 * 3 words behind the field are read. */
static inline uint64_t tl_osd_field(const uint16_t *words, unsigned width)
{
    const uint64_t value = (uint64_t)words[0] | (uint64_t)words[1] << 16 |
                           (uint64_t)words[2] << 32 | (uint64_t)words[3] << 48;
    return value & UINT64_MAX >> (64 - width);
}

/* The fields of a whole event; 3 words behind it may be read. False: it has bits that none has. */
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

/* Packets were lost: events under construction cannot be completed. */
void tl_osd_reader_lost(struct tl_osd_reader *r);

/* Is `width` one that fields have, or 0? */
static inline bool tl_osd_is_width(unsigned width)
{
    return width == 0 || width == 16 || width == 32 || width == 64;
}

/*
 * What is known of the system and of a module, but for its address and `user`, into bytes or, of a
 * reader of the same setup that has read nothing, from them.
 */
void tl_osd_reader_state(struct tl_osd_reader *r, struct tl_state *state);
void tl_osd_module_state(struct tl_osd_module *m, struct tl_state *state);

#define TL_OSD_LINE_MAX 2048 /* of any packet that the framing accepts unless told more */

/*
 * One line per packet, without its end: offset, length, addresses, flags and what it means. The
 * text is cut at `size`.
 */
void tl_osd_line(char *out, size_t size, const struct tl_di_packet *packet,
                 const struct tl_osd_event *event);

#endif
