/* SPDX-License-Identifier: MIT */
/*
 * The sources of a RISC-V capture, as its containers add them (decode/feeds.h): configured in the
 * setup, or by default. Not thread-safe.
 */
#ifndef TL_RISCV_SOURCE_H
#define TL_RISCV_SOURCE_H

#include "decode/feeds.h"

/*
 * The source with the number `src` in the setup, from which it is borrowed; NULL: the setup has
 * none. A capture without numbers (`src_bits` is 0) has one source, whatever number that has there.
 */
const struct tl_source *tl_riscv_source(const struct tl_setup *setup, unsigned src_bits,
                                        unsigned src);

/*
 * Add the source with the number `otherwise->id`, as tl_feeds_add() does. What its configuration
 * leaves out (name, protocol, type, core) is taken from `otherwise`, as are all registers that are
 * there; the default of `core` is that of the first image. If the setup configures other sources
 * but not this one, it is no stream.
 */
TL_MUST_USE int tl_riscv_add_source(struct tl_feeds *feeds, const struct tl_setup *setup,
                                    unsigned src_bits, const struct tl_source *otherwise,
                                    uint64_t offset, struct tl_feed **out);

/*
 * Value of a field of the Trace Control Interface's registers: given by its own name, else as a
 * part of its register, else as the named core has it. `name` is one of those that decoders use.
 */
uint64_t tl_riscv_field(const struct tl_source *source, const char *name, uint64_t otherwise);

/* Width of SRC in the source's messages: trTeSrcBits, or 0 with trTeInhibitSrc. */
unsigned tl_riscv_src_bits(const struct tl_source *source);

/* Width of SRC in a capture of messages: as the format says, else the sources' registers, else as
 * the named cores have it. */
unsigned tl_riscv_capture_src_bits(const struct tl_setup *setup);

/* The core's instruction set options: Zcm by its name or as the image says, the jump table as
 * the key jvt or else the image says. `image` may be NULL. */
struct tl_isa_options tl_riscv_options(const struct tl_source *source,
                                       const struct tl_image *image);

#endif
