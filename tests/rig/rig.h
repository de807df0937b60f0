/* SPDX-License-Identifier: MIT */
/*
 * A simulated rig: produces endless trace bytes and knows their meaning. Deterministic by seed. Not
 * thread-safe.
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
    /* TL_NOMEM. `truth`: record what was traced as flow text, in growing memory. */
    int (*start)(struct rig **out, uint64_t seed, bool truth);
    void (*stop)(struct rig *rig);
    /* Describe the capture. `code` gets the program image, empty if there is none: an ELF file, or
     * a file of which the setup's images are parts, regardless of their names. */
    int (*describe)(struct rig *rig, struct tl_setup *setup, struct tl_buf *code);
    /* The i-th source file of the program; TL_NOTFOUND after the last. NULL: no source files. */
    int (*source)(struct rig *rig, unsigned i, const char **path, struct tl_buf *text);
    /* Append at least `n` more bytes, so that everything traced so far is in the output. */
    int (*more)(struct rig *rig, size_t n, struct tl_buf *out);
    /* Write the expected decoding of all bytes so far, each stream after its "# stream" line. */
    int (*truth)(struct rig *rig, FILE *file);
};

extern const struct rig_kind rig_etm;
extern const struct rig_kind rig_di;
extern const struct rig_kind rig_plugins;
extern const struct rig_kind rig_pt,
    rig_pt_user; /* user: only programs are traced, not the kernel */
extern const struct rig_kind rig_cortex_m;

#endif
