/* SPDX-License-Identifier: MIT */
/*
 * Tables of all formats (tl_formats, see setup/format.h) and container decoders, defined in
 * formats/registry.c, which contains no code so that a program can link other tables instead.
 * Read-only.
 */
#ifndef TL_DECODE_REGISTRY_H
#define TL_DECODE_REGISTRY_H

#include "decode/ops.h"

/* Indexed by enum tl_container; NULL: no decoder. */
extern const struct tl_decode_ops *const tl_containers[TL_CONTAINERS];

#endif
