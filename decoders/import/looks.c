/* SPDX-License-Identifier: MIT */
/*
 * One answer for all that must know what a file is: whether its format need not be given, whether
 * it cannot be raw trace, and what `view` does with it.
 */
#include "import/looks.h"

#include "base/filekind.h"
#include "import/models.h"
#include "perf/reader.h"
#include "stf/file.h"

#define PERF_MIN 16 /* of its header */

static enum tl_looks_like like(struct tl_bytes head, enum tl_file_kind kind, int wrap)
{
    if (head.n >= PERF_MIN && tl_perf_is(head.p, head.n))
        return TL_LOOKS_PERF;
    if (kind == TL_FILE_ELF)
        return TL_LOOKS_PROGRAM;
    if (head.n > 0 && tl_model_like(head))
        return TL_LOOKS_LOG;
    if (wrap == TL_STF_ZSTF || wrap == TL_STF_PLAIN)
        return TL_LOOKS_STF;
    if (tl_file_kind_packed(kind))
        return TL_LOOKS_PACKED;
    return kind == TL_FILE_TEXT ? TL_LOOKS_TEXT : TL_LOOKS_RAW;
}

struct tl_looks tl_looks(struct tl_bytes head)
{
    const enum tl_file_kind kind = tl_file_kind(head);
    const int wrap = tl_stf_sniff(head);
    struct tl_looks looks = {.like = like(head, kind, wrap), .is_text = kind == TL_FILE_TEXT};
    if (looks.like == TL_LOOKS_PERF)
        looks.format = "perf";
    else if (looks.like == TL_LOOKS_LOG)
        looks.format = tl_model_name(tl_model_like(head));
    else if (looks.like == TL_LOOKS_STF)
        looks.format = "stf";
    looks.may_hold_stf = wrap >= 0 && looks.like != TL_LOOKS_STF;
    looks.no_trace = wrap == TL_STF_ZSTF ? "is STF: use --format stf" : tl_file_kind_no_trace(kind);
    return looks;
}
