/* SPDX-License-Identifier: MIT */
/*
 * Processor properties needed to decode its trace: clocks, address filters, model. Read from the
 * registers of a [source] (docs/setup.md). Thread-safe.
 *
 * Source: Intel SDM volume 3, IA32_RTIT_CTL; volume 2, CPUID leaf 15h.
 */
#ifndef TL_PT_CONFIG_H
#define TL_PT_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_source;

/* Errata that the decoder works around, named as in Intel's specification updates. */
struct tl_pt_errata {
    bool bdm64;  /* a branch before a TSX abort may be wrong */
    bool bdm70;  /* a FUP in PSB+ although tracing is disabled; a TIP.PGE follows */
    bool skd007; /* an OVF may look like a CYC */
    bool skd010; /* the FUP after OVF may be missing */
    bool skd022; /* a failing VM entry looks like an asynchronous disable */
    bool skl014; /* TIP.PGD of a direct branch out of the filter may have no IP */
    bool skl168; /* the CYC before a PSB may be missing */
    bool skz84;  /* the first TMA may be damaged */
    bool apl11;  /* an extra TIP.PGD after OVF */
    bool apl12;  /* an extra FUP after OVF */
};

enum { TL_PT_FILTERS = 4 };

enum tl_pt_filter_kind { TL_PT_FILTER_NONE, TL_PT_FILTER_TRACE, TL_PT_FILTER_STOP };

struct tl_pt_config {
    bool has_cpu; /* the processor was given: family, model, stepping */
    uint16_t family;
    uint8_t model, stepping;
    struct tl_pt_errata errata;
    uint8_t mtc_freq;            /* IA32_RTIT_CTL.MTCFreq */
    uint8_t nom_freq;            /* MSR_PLATFORM_INFO[15:8]: TSC in 100 MHz; 0: unknown */
    uint32_t crystal, tsc_ratio; /* CPUID.15H: EAX, EBX; TSC / crystal = EBX / EAX */
    struct {
        uint8_t kind; /* enum tl_pt_filter_kind */
        uint64_t a, b;
    } filters[TL_PT_FILTERS];
};

/* Set `cpu` ("family/model[/stepping]") and its errata. Returns TL_BAD: malformed; TL_UNSUPPORTED:
 * unknown processor, no errata are set. */
int tl_pt_config_cpu(struct tl_pt_config *config, const char *cpu);

/* Returns false if a processor is set but unknown to this decoder. */
bool tl_pt_config_cpu_known(const struct tl_pt_config *config);

/* Initialise from a source's registers; absent ones count as zero. */
void tl_pt_config_init(struct tl_pt_config *config, const struct tl_source *source);

/* Are any address filters configured? */
bool tl_pt_config_filters(const struct tl_pt_config *config);

/* Do the address filters permit tracing of code at `ip`? */
bool tl_pt_config_traces(const struct tl_pt_config *config, uint64_t ip);

#endif
