/* SPDX-License-Identifier: MIT */
/* Debian's libopencsd (1.3.3) as a decoder of ETMv4, ETMv3 or PTM, one unformatted stream or
 * several in frames, for comparing and measuring. Header only; needs libopencsd_c_api. */
#ifndef TL_TESTS_OPENCSD_H
#define TL_TESTS_OPENCSD_H

#include "base/bytes.h"
#include "setup/setup.h"

#include <opencsd/c_api/opencsd_c_api.h>
#include <string.h>

/* The contents of a memory region; borrowed for the decoder's lifetime. */
struct tl_opencsd_memory {
    uint64_t base;
    struct tl_bytes bytes;
};

static inline void tl_opencsd_free(dcd_tree_handle_t tree)
{
    if (tree == C_API_INVALID_TREE_HANDLE)
        return;
    ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, NULL, NULL);
    ocsd_destroy_dcd_tree(tree);
}

static inline ocsd_etmv4_cfg tl_opencsd_config(const struct tl_source *source)
{
    return (ocsd_etmv4_cfg){
        .reg_idr0 = (uint32_t)tl_source_reg(source, "TRCIDR0", 0),
        .reg_idr1 = (uint32_t)tl_source_reg(source, "TRCIDR1", 0),
        .reg_idr2 = (uint32_t)tl_source_reg(source, "TRCIDR2", 0),
        .reg_idr8 = (uint32_t)tl_source_reg(source, "TRCIDR8", 0),
        .reg_configr = (uint32_t)tl_source_reg(source, "TRCCONFIGR", 0),
        .reg_traceidr = source->id,
        .arch_ver = ARCH_V8,
        .core_prof = profile_CortexA,
    };
}

static inline ocsd_core_profile_t tl_opencsd_profile(const struct tl_source *source)
{
    const char *const dash = strchr(source->core, '-');
    return dash && dash[1] == 'M'   ? profile_CortexM
           : dash && dash[1] == 'R' ? profile_CortexR
                                    : profile_CortexA;
}

static inline ocsd_err_t tl_opencsd_attach(dcd_tree_handle_t tree, const struct tl_source *source,
                                           unsigned char *id)
{
    const uint32_t traceidr = source->id, idr = (uint32_t)tl_source_reg(source, "ETMIDR", 0),
                   cr = (uint32_t)tl_source_reg(source, "ETMCR", 0),
                   ccer = (uint32_t)tl_source_reg(source, "ETMCCER", 0);
    if (source->protocol == TL_PROTO_ETM3) {
        ocsd_etmv3_cfg config = {idr, cr, ccer, traceidr, ARCH_V7, tl_opencsd_profile(source)};
        return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV3, OCSD_CREATE_FLG_FULL_DECODER,
                                      &config, id);
    }
    if (source->protocol == TL_PROTO_PTM) {
        ocsd_ptm_cfg config = {idr, cr, ccer, traceidr, ARCH_V7, tl_opencsd_profile(source)};
        return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, OCSD_CREATE_FLG_FULL_DECODER,
                                      &config, id);
    }
    ocsd_etmv4_cfg config = tl_opencsd_config(source);
    return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_FULL_DECODER,
                                  &config, id);
}

/* Create full decoders with the registers of `n_sources` sources, of frames (`OCSD_DFRMTR_…`) or,
 * 0, of the only source's bytes. Returns C_API_INVALID_TREE_HANDLE if the library refuses them. */
static inline dcd_tree_handle_t tl_opencsd_new_of(const struct tl_source *sources, size_t n_sources,
                                                  uint32_t frames,
                                                  const struct tl_opencsd_memory *memory, size_t n,
                                                  FnTraceElemIn on_element, const void *context)
{
    unsigned char id;
    const dcd_tree_handle_t tree =
        ocsd_create_dcd_tree(frames ? OCSD_TRC_SRC_FRAME_FORMATTED : OCSD_TRC_SRC_SINGLE, frames);
    if (tree == C_API_INVALID_TREE_HANDLE)
        return tree;
    bool ok = true;
    for (size_t i = 0; ok && i < n_sources; i++)
        ok = tl_opencsd_attach(tree, &sources[i], &id) == OCSD_OK;
    ok = ok && ocsd_dt_set_gen_elem_outfn(tree, on_element, context) == OCSD_OK; /* of all these */
    for (size_t i = 0; ok && i < n; i++)
        ok = ocsd_dt_add_buffer_mem_acc(tree, memory[i].base, OCSD_MEM_SPACE_ANY, memory[i].bytes.p,
                                        (uint32_t)memory[i].bytes.n) == OCSD_OK;
    if (ok)
        return tree;
    ocsd_destroy_dcd_tree(tree);
    return C_API_INVALID_TREE_HANDLE;
}

/* The same of one source's bytes. */
static inline dcd_tree_handle_t tl_opencsd_new(const struct tl_source *source,
                                               const struct tl_opencsd_memory *memory, size_t n,
                                               FnTraceElemIn on_element, const void *context)
{
    return tl_opencsd_new_of(source, 1, 0, memory, n, on_element, context);
}

/* Push the next bytes, which are at `offset` of the stream. Returns false if the decoder fails. */
static inline bool tl_opencsd_push(dcd_tree_handle_t tree, uint64_t offset, const uint8_t *p,
                                   size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t used = 0;
        const ocsd_datapath_resp_t rc = ocsd_dt_process_data(
            tree, OCSD_OP_DATA, (ocsd_trc_index_t)(offset + at), (uint32_t)(n - at), p + at, &used);
        at += used;
        if (OCSD_DATA_RESP_IS_FATAL(rc) || used == 0)
            return false;
    }
    return true;
}

static inline ocsd_datapath_resp_t tl_opencsd_count(const void *context, ocsd_trc_index_t at,
                                                    uint8_t id, const ocsd_generic_trace_elem *e)
{
    if (e->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE)
        *(uint64_t *)(uintptr_t)context += e->num_instr_range;
    return OCSD_RESP_CONT;
}

/*
 * Decode `n` bytes in pieces, for measuring. Returns the number of instructions, or 0 if it fails.
 */
static inline uint64_t tl_opencsd_decode(const struct tl_source *source,
                                         const struct tl_opencsd_memory *memory, size_t n_memory,
                                         const uint8_t *p, size_t n, size_t piece)
{
    uint64_t insns = 0;
    const dcd_tree_handle_t tree =
        tl_opencsd_new(source, memory, n_memory, tl_opencsd_count, &insns);
    bool ok = tree != C_API_INVALID_TREE_HANDLE;
    for (size_t at = 0; ok && at < n; at += piece)
        ok = tl_opencsd_push(tree, at, p + at, n - at < piece ? n - at : piece);
    tl_opencsd_free(tree);
    return ok ? insns : 0;
}

#endif
