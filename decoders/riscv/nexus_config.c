/* SPDX-License-Identifier: MIT */
/* Reads the encoder's registers from the setup. SiFive's dialect has defaults of its own,
 * since its trace does not say how many bits of an address and of a timestamp are real. */
#include "riscv/nexus_config.h"

#include "riscv/nexus_message.h"
#include "riscv/source.h"

#include <string.h>

#define SIFIVE_TIME_BITS    40
#define SIFIVE_ADDRESS_BITS 48 /* of RV64 cores without a name */

/* A register of at most `most`. */
static int take(const struct tl_source *source, const char *name, uint64_t otherwise, unsigned most,
                uint8_t *out, struct tl_fail *fail)
{
    const uint64_t value = tl_riscv_field(source, name, otherwise);
    if (value > most)
        return tl_fail_set(fail, TL_UNSUPPORTED, "%s=%llu: there are at most %u", name,
                           (unsigned long long)value, most);
    *out = (uint8_t)value;
    return TL_OK;
}

int tl_nexus_configure(struct tl_nexus_config *c, const struct tl_source *source, bool wide,
                       struct tl_fail *fail)
{
    const uint64_t mode = tl_riscv_field(source, "trTeInstMode", 0);
    const bool sifive = source->protocol == TL_PROTO_NEXUS_SIFIVE;
    const unsigned bits = sifive && wide ? SIFIVE_ADDRESS_BITS : 0;
    const unsigned src_bits = tl_riscv_src_bits(source);
    if (src_bits > TL_NEXUS_SRC_BITS_MAX)
        return tl_fail_set(fail, TL_UNSUPPORTED, "trTeSrcBits=%u: there are at most %u", src_bits,
                           TL_NEXUS_SRC_BITS_MAX);
    *c = (struct tl_nexus_config){
        .sifive = sifive,
        .mode = mode == TL_NEXUS_MODE_BTM || mode == TL_NEXUS_MODE_HTM ? (uint8_t)mode : 0,
        .wide = wide,
        .extends = tl_riscv_field(source, "trTeInstExtendAddrMSB", 0),
        .jumps = tl_riscv_field(source, "trTeInstEnAllJumps", 0),
        .sequences = tl_riscv_field(source, "trTeInstEnSequentialJump", 0),
        .returns = tl_riscv_field(source, "trTeInstImplicitReturnMode", 1) ||
                   tl_riscv_field(source, "trTeInstEnImplicitReturn", 0),
        .src_bits = (uint8_t)src_bits,
    };
    int rc = take(source, "trTsWidth", 0, 64, &c->time_bits, fail);
    if (rc == TL_OK)
        rc = take(source, "addrbits", bits, 64, &c->address_bits, fail);
    if (c->time_bits == 0)
        c->time_bits = sifive ? SIFIVE_TIME_BITS : 64;
    if (c->address_bits == 0)
        c->address_bits = 64;
    return rc;
}
