/* SPDX-License-Identifier: MIT */
/*
 * A simulated rig: something that makes trace bytes without end, and knows what they mean.
 * Deterministic by seed. Not thread-safe.
 */
#ifndef RIG_H
#define RIG_H

#include "base/buf.h"
#include "setup/setup.h"

#include <stdio.h>

struct rig;

struct rig_kind {
    const char *name;
    const char *about;
    /* TL_NOMEM. `truth`: what was traced is written down as flow text, in memory that grows. */
    int (*start)(struct rig **out, uint64_t seed, bool truth);
    void (*stop)(struct rig *rig);
    /* Describe the capture. `code` gets the program image, empty if there is none: an ELF file, or
     * one that the setup's images are parts of, whatever they call it. */
    int (*describe)(struct rig *rig, struct tl_setup *setup, struct tl_buf *code);
    /* The i-th source file of the program; TL_NOTFOUND behind the last. NULL: there is none. */
    int (*source)(struct rig *rig, unsigned i, const char **path, struct tl_buf *text);
    /* Append at least `n` more bytes, ending so that all that was traced is out. */
    int (*more)(struct rig *rig, size_t n, struct tl_buf *out);
    /* What a decoder must find in the bytes so far, each stream behind its "# stream" line. */
    int (*truth)(struct rig *rig, FILE *file);
};

extern const struct rig_kind rig_etm;
extern const struct rig_kind rig_di;
extern const struct rig_kind rig_plugins;
extern const struct rig_kind rig_pt;

#endif
