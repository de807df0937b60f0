/* SPDX-License-Identifier: MIT */
#include "sim/osd_device.h"

#include <string.h>

/* Registers, and FLAGS of register packets. */
enum { MOD_VENDOR, MOD_TYPE, MOD_VERSION, MOD_CS, MOD_EVENT_DEST, SPECIAL = 0x200, SYSRST = 0x204 };
enum {
    READ = 0x0000,
    WRITE = 0x1000,
    READ_OK = 0x2000,
    READ_ERROR = 0x3000,
    WRITE_OK = 0x3800,
    WRITE_ERROR = 0x3c00,
    KIND = 0xfc00,
    IS_WRITE = 0x1000,
    IS_REPLY = 0x2000
};

void tl_sim_osd_device_init(struct tl_sim_osd_device *d, unsigned subnet, unsigned width,
                            unsigned max_pkt_len, uint64_t seed)
{
    static const uint8_t types[] = {TL_SIM_OSD_SCM,  TL_SIM_OSD_CTM, TL_SIM_OSD_STM,
                                    TL_SIM_OSD_UART, TL_SIM_OSD_MAM, TL_SIM_OSD_CDM};
    *d = (struct tl_sim_osd_device){
        .subnet = subnet, .width = width, .n_modules = sizeof types, .random = seed, .pc = 0x1000};
    for (size_t i = 0; i < d->n_modules; i++)
        d->modules[i].type = types[i];
    tl_sim_osd_init(&d->sent);
    d->sent.max_pkt_len = (uint16_t)max_pkt_len;
}

void tl_sim_osd_device_fini(struct tl_sim_osd_device *d)
{
    tl_sim_osd_fini(&d->sent);
}

static uint16_t draw(struct tl_sim_osd_device *d)
{
    d->random = d->random * 6364136223846793005u + 1442695040888963407u;
    return (uint16_t)(d->random >> 40);
}

/* ---- registers ---------------------------------------------------------------------------- */

static bool read_special(const struct tl_sim_osd_device *d, unsigned type, unsigned i,
                         uint16_t *value)
{
    const uint16_t width = (uint16_t)d->width;
    const uint16_t scm[4] = {2, 0x77, (uint16_t)d->n_modules, d->sent.max_pkt_len};
    const uint16_t ctm[2] = {width, width}, mam[2] = {32, width}, cdm[3] = {0, 0, 32};
    const struct {
        const uint16_t *values;
        unsigned n;
    } all[] = {
        [TL_SIM_OSD_SCM] = {scm, 4}, [TL_SIM_OSD_UART] = {NULL, 0}, [TL_SIM_OSD_MAM] = {mam, 2},
        [TL_SIM_OSD_STM] = {ctm, 1}, [TL_SIM_OSD_CTM] = {ctm, 2},   [TL_SIM_OSD_CDM] = {cdm, 3}};
    if (i >= all[type].n)
        return false;
    *value = all[type].values[i];
    return true;
}

static bool read_register(const struct tl_sim_osd_device *d, size_t module, unsigned reg,
                          uint16_t *value)
{
    const uint16_t base[] = {1, d->modules[module].type, 0, d->modules[module].cs,
                             d->modules[module].event_dest};
    if (reg <= MOD_EVENT_DEST) {
        *value = base[reg];
        return true;
    }
    return reg >= SPECIAL && read_special(d, d->modules[module].type, reg - SPECIAL, value);
}

static void switch_module(struct tl_sim_osd_device *d, size_t module, uint16_t cs)
{
    const bool was = d->modules[module].cs & 1, is = cs & 1;
    d->modules[module].cs = cs;
    if (is && !was) {
        d->modules[module].starts++;
        atomic_fetch_add(&d->active, 1);
    } else if (was && !is) {
        d->modules[module].stops++;
        atomic_fetch_sub(&d->active, 1);
    }
}

static bool write_register(struct tl_sim_osd_device *d, size_t module, unsigned reg, uint16_t value)
{
    if (reg == MOD_CS && module)
        switch_module(d, module, value);
    else if (reg == MOD_EVENT_DEST)
        d->modules[module].event_dest = value;
    else if (reg == SYSRST && module == 0)
        d->sysrst = value;
    else
        return false;
    return true;
}

int tl_sim_osd_device_take(struct tl_sim_osd_device *d, const uint16_t *words, size_t n)
{
    const size_t module = n ? words[0] & 0x3ffu : 0;
    if (n < 4 || words[0] >> 10 != d->subnet || module >= d->n_modules || words[2] & IS_REPLY ||
        words[2] >> 14)
        return TL_OK;
    d->requests++;
    if (atomic_load(&d->deaf))
        return TL_OK;
    const uint16_t kind = words[2] & KIND;
    uint16_t value = 0;
    if (kind == READ && n == 4 && read_register(d, module, words[3], &value))
        return tl_sim_osd_packet(&d->sent, words[1], words[0], READ_OK, &value, 1);
    if (kind == WRITE && n == 5 && write_register(d, module, words[3], words[4]))
        return tl_sim_osd_packet(&d->sent, words[1], words[0], WRITE_OK, NULL, 0);
    return tl_sim_osd_packet(&d->sent, words[1], words[0],
                             kind & IS_WRITE ? WRITE_ERROR : READ_ERROR, NULL, 0);
}

/* ---- events ------------------------------------------------------------------------------- */

static int core_event(struct tl_sim_osd_device *d, uint16_t src)
{
    const uint64_t mask = d->width == 64 ? UINT64_MAX : ((uint64_t)1 << d->width) - 1;
    const uint16_t r = draw(d);
    const struct tl_sim_osd_truth event = {
        .time = d->time,
        .pc = d->pc & mask,
        .npc = (d->pc + 2u * draw(d)) & mask,
        .call = r & 1,
        .ret = !(r & 1),
    };
    d->pc = event.npc + 4;
    return r % 61 == 0 ? tl_sim_osd_overflow(&d->sent, src, 1 + r % 9, TL_SIM_OSD_CTM)
                       : tl_sim_osd_ctm(&d->sent, src, d->width, &event);
}

static int one_event(struct tl_sim_osd_device *d, size_t module)
{
    const uint16_t src = (uint16_t)(d->subnet << 10 | module);
    d->sent.dest = d->modules[module].event_dest;
    switch (d->modules[module].type) {
    case TL_SIM_OSD_CTM:
        return core_event(d, src);
    case TL_SIM_OSD_STM:
        return tl_sim_osd_stm(&d->sent, src, d->width, d->time, 4, 'a' + draw(d) % 26u);
    case TL_SIM_OSD_UART:
        return tl_sim_osd_uart(&d->sent, src, (uint8_t)('A' + draw(d) % 26u));
    default: /* the core stops and resumes */
        return tl_sim_osd_event(&d->sent, src, &(uint16_t){d->events & 1}, 1);
    }
}

int tl_sim_osd_device_run(struct tl_sim_osd_device *d, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        static const uint8_t often[] = {1, 1, 1, 1, 2, 2, 3, 5}; /* mostly core trace */
        const size_t module = often[draw(d) % sizeof often];
        if (!(d->modules[module].cs & 1))
            continue;
        d->time += 1 + draw(d) % 100;
        d->events++;
        const int rc = one_event(d, module);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}
