/* SPDX-License-Identifier: MIT */
/*
 * Parse a single packet; shared by the scalar and the unrolled packetizer. Handles everything
 * except the extension header 0x00, whose packets (A-Sync) have no maximum length.
 */
#ifndef TL_ETM4_PARSE_H
#define TL_ETM4_PARSE_H

#include "etm4/config.h"
#include "etm4/packet.h"
#include "etm4/packetizer.h"

#include <stddef.h>

/* Flags of a context's information byte; does not read the identifiers after it. */
static inline uint32_t tl_etm4_context_flags(const struct tl_etm4_config *config, uint8_t info)
{
    return TL_ETM4_HAS_CONTEXT | (uint32_t)(info & 3) << TL_ETM4_EL_SHIFT |
           (info & 0x10 ? TL_ETM4_SF : 0u) | (info & 0x20 ? TL_ETM4_NS : 0u) |
           (config->ete && info & 0x08 ? TL_ETM4_NSE : 0u) |
           (info & 0x40 && config->vmid_bytes ? TL_ETM4_HAS_VMID : 0u) |
           (info & 0x80 && config->context_bytes ? TL_ETM4_HAS_CTXID : 0u);
}

/* Maximum packet length: trace info with its six sections of at most five bytes. */
#define TL_ETM4_PACKET_MAX 32

/*
 * Parse the packet at `b` (n >= 1, b[0] != 0) and update `regs`. Fills all of `out` except its
 * offset. Returns the packet's length, or 0 if it is incomplete in `n` bytes (never with n >=
 * TL_ETM4_PACKET_MAX); then nothing is changed.
 */
size_t tl_etm4_parse(const uint8_t class_of[static 256], const struct tl_etm4_config *config,
                     struct tl_etm4_registers *regs, const uint8_t *b, size_t n,
                     struct tl_etm4_packet *out);

#endif
