/* SPDX-License-Identifier: MIT */
/*
 * A core dump of an Espressif chip with the trace of its cores, in buffers that may be written
 * round and round: as the chip's driver and hardware make it. Header only.
 */
#ifndef TL_SIM_ESP_DUMP_H
#define TL_SIM_ESP_DUMP_H

#include "base/buf.h"
#include "base/bytes.h"

#include <elf.h>
#include <string.h>

struct tl_sim_esp_core {
    struct tl_bytes packets; /* all that the encoder sent */
    uint32_t address, capacity;
    bool loops;
    uint8_t state;      /* 3: stopped */
    uint8_t format;     /* 100: Processor Trace 1.0, 200: E-Trace 2.0 */
    uint32_t threshold; /* of synchronisation; 0: off */
    bool missing;       /* its buffer is not in the dump */
};

struct tl_sim_esp_dump {
    const struct tl_sim_esp_core *cores;
    unsigned n_cores;
    uint32_t sequence; /* odd: torn */
    uint8_t privilege_width, ecause_width;
};

/* Write the packets to the buffer; returns its head. Packets do not go over its end, and leave what
 * was there of it. */
static inline uint32_t tl_sim_esp_fill(const struct tl_sim_esp_core *c, uint8_t *buffer)
{
    uint32_t head = 0;
    memset(buffer, 0, c->capacity);
    for (size_t at = 0; at < c->packets.n;) {
        const uint32_t n = c->packets.p[at] ? c->packets.p[at] : 1;
        if (n > c->capacity - head && !c->loops)
            break;
        if (n > c->capacity - head)
            head = 0;
        memcpy(buffer + head, c->packets.p + at, n);
        head += n;
        at += n;
    }
    return head;
}

static inline void tl_sim_esp_note(uint8_t *note, const struct tl_sim_esp_dump *d,
                                   const uint32_t *heads)
{
    static const uint8_t parameters[28] = {1, 28, 1,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                           0, 1,  32, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0};
    memcpy(note, "RVTS", 4);
    tl_put_le32(note + 4, d->sequence);
    tl_put_le16(note + 8, 0x0d);
    tl_put_le16(note + 10, 100);
    const uint8_t sizes[] = {1, 0, 80, 44, (uint8_t)d->n_cores, 2, 32, 28};
    memcpy(note + 12, sizes, sizeof sizes);
    memset(note + 20, 0xab, 32);
    memcpy(note + 52, parameters, sizeof parameters);
    note[52 + 8] = d->ecause_width;
    note[52 + 22] = d->privilege_width;
    for (unsigned i = 0; i < d->n_cores; i++) {
        const struct tl_sim_esp_core *const c = &d->cores[i];
        uint8_t *const r = note + 80 + 44 * i;
        const uint8_t bytes[] = {
            (uint8_t)i, c->state, c->loops ? 2 : 1, c->format, 1, c->threshold ? 2 : 1, 0, 1, 1, 0,
            0,          0};
        memcpy(r, bytes, sizeof bytes);
        tl_put_le32(r + 12, c->missing ? UINT32_MAX : i + 1);
        tl_put_le32(r + 16, c->missing ? 0 : c->address);
        tl_put_le32(r + 20, c->missing ? 0 : c->capacity);
        tl_put_le32(r + 24, c->missing ? 0 : c->capacity);
        tl_put_le32(r + 28, heads[i]);
        tl_put_le32(r + 32, c->threshold);
    }
}

static inline void tl_sim_esp_segment(uint8_t *p, uint32_t type, uint32_t offset, uint32_t address,
                                      uint32_t n)
{
    tl_put_le32(p, type);
    tl_put_le32(p + 4, offset);
    tl_put_le32(p + 8, address);
    tl_put_le32(p + 16, n);
    tl_put_le32(p + 20, n);
}

/* Append the ELF file to `out`; at most 2 cores. TL_NOMEM. */
static inline int tl_sim_esp_make(const struct tl_sim_esp_dump *d, struct tl_buf *out)
{
    const uint32_t n_note = 80 + 44 * d->n_cores, note = 12 + 16 + n_note;
    uint32_t size = 52 + 32 * (1 + d->n_cores) + note, at = size, heads[2] = {0};
    for (unsigned i = 0; i < d->n_cores; i++)
        size += d->cores[i].missing ? 0 : d->cores[i].capacity;
    if (tl_buf_reserve(out, size) < 0)
        return TL_NOMEM;
    uint8_t *const p = out->p + out->n;
    memset(p, 0, size);
    out->n += size;
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT};
    memcpy(p, ident, sizeof ident);
    tl_put_le16(p + 16, ET_CORE);
    tl_put_le16(p + 18, EM_RISCV);
    tl_put_le32(p + 20, EV_CURRENT);
    tl_put_le32(p + 28, 52);
    tl_put_le16(p + 40, 52);
    tl_put_le16(p + 42, 32);
    tl_put_le16(p + 44, (uint16_t)(1 + d->n_cores));
    tl_sim_esp_segment(p + 52, PT_NOTE, at - note, 0, note);
    for (unsigned i = 0; i < d->n_cores; i++) {
        const struct tl_sim_esp_core *const c = &d->cores[i];
        if (c->missing)
            continue;
        tl_sim_esp_segment(p + 84 + 32 * i, PT_LOAD, at, c->address, c->capacity);
        heads[i] = tl_sim_esp_fill(c, p + at);
        at += c->capacity;
    }
    uint8_t *const n = p + 52 + 32 * (1 + d->n_cores);
    tl_put_le32(n, 16);
    tl_put_le32(n + 4, n_note);
    tl_put_le32(n + 8, 680);
    memcpy(n + 12, "ESP_RISCV_TRACE", 16);
    tl_sim_esp_note(n + 28, d, heads);
    return TL_OK;
}

#endif
