/* SPDX-License-Identifier: MIT */
/*
 * What decode/registry.c lists: formats (tl_formats, see setup/format.h), and the decoders of
 * containers. It holds these two tables and no code, so that a program can link others in place of
 * it. Read-only.
 */
#ifndef TL_DECODE_REGISTRY_H
#define TL_DECODE_REGISTRY_H

#include "decode/ops.h"

/* By enum tl_container; NULL: cannot be decoded. */
extern const struct tl_decode_ops *const tl_containers[TL_CONTAINERS];

#endif
