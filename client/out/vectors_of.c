/* SPDX-License-Identifier: MIT */
/*
 * Feeds instructions of STF to basic-block vectors, with their memory accesses. The instruction set
 * is derived from modes and sizes, because only 2-byte encodings tell T32 from A32 in STF.
 */
#include "out/vectors_of.h"

#include "stf/flow_map.h"
#include "stf/operands.h"

enum tl_isa tl_insns_isa(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn)
{
    const enum tl_isa isa =
        tl_stf_unmap_isa(tl_stf_insns_header(insns)->isa, tl_stf_insns_state(insns)->iem);
    return isa == TL_ISA_A32 && insn->size == 2 ? TL_ISA_T32 : isa;
}

int tl_vectors_of_source(const struct tl_stf_source *source, uint64_t from, uint64_t to,
                         struct tl_vectors *vectors, struct tl_fail *fail)
{
    struct tl_stf_insn batch[256];
    struct tl_stf_insns *insns;
    int r = tl_stf_insns_open(&insns, source);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    if (from > 0)
        r = tl_stf_insns_seek(insns, from, fail);
    while (r >= 0 && from < to) {
        r = tl_stf_insns_read(insns, batch, sizeof batch / sizeof *batch, fail);
        for (int i = 0, n = r; i < n && r >= 0 && from < to; i++, from++)
            if ((r = tl_vectors_of_insn(vectors, insns, &batch[i])) < 0)
                tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    }
    tl_stf_insns_free(insns);
    if ((r >= 0 || r == TL_EOF) && (r = tl_vectors_finish(vectors)) < 0)
        tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    return r;
}

int tl_vectors_of_insn(struct tl_vectors *vectors, const struct tl_stf_insns *insns,
                       const struct tl_stf_insn *insn)
{
    struct tl_stf_access access;
    uint8_t code[16];
    const struct tl_bytes bytes = {code, tl_stf_insn_bytes(insns, insn, code)};
    int r = tl_vectors_insn(vectors, tl_insns_isa(insns, insn), insn->pc, bytes);
    if (r < 0 || !(insn->flags & TL_STF_MEMORY))
        return r;
    struct tl_stf_group group = tl_stf_insn_group(insns, insn);
    while (r >= 0 && tl_stf_group_access(&group, &access) == TL_OK)
        if (!access.bus)
            r = tl_vectors_access(vectors, access.address);
    return r;
}
