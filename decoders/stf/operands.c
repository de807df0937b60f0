/* SPDX-License-Identifier: MIT */
/*
 * Records of the usual shapes have fixed sizes and are passed over without being decoded, since
 * accesses and registers are most of a trace that has them. At the first record of another shape
 * the general reader takes over.
 */
#include "stf/operands.h"

/* Size of the record at `p` if it is a usual one and ends before `end`, else 0. */
static size_t usual_size(const uint8_t *p, const uint8_t *end)
{
    if (end - p < TL_STF_ACCESS_BYTES)
        return 0;
    if (*p == TL_STF_INST_MEM_ACCESS)
        return TL_STF_ACCESS_BYTES;
    if (*p == TL_STF_INST_REG)
        return (p[3] & 15) == TL_STF_REG_VECTOR ? 0 : (size_t)TL_STF_SCALAR_BYTES;
    return *p == TL_STF_INST_MEM_CONTENT || *p == TL_STF_INST_PC_TARGET ? TL_STF_CONTENT_BYTES : 0;
}

/* Is only the closing record of an instruction left? */
static bool only_closing(const uint8_t *p, const uint8_t *end)
{
    return end - p == TL_STF_CLOSING_BYTES      ? *p == TL_STF_INST_32
           : end - p == TL_STF_CLOSING_16_BYTES ? *p == TL_STF_INST_16
                                                : p == end;
}

/* Consume the contents that directly follow the access. */
static void take_contents(struct tl_stf_group *group, uint8_t type, struct tl_stf_access *access)
{
    access->data = group->rest.p;
    while (group->rest.n && group->rest.p[0] == type) {
        struct tl_stf_record content;
        if (tl_stf_group_next(group, &content) != TL_OK)
            return;
        access->n_data++;
    }
}

/* Find the core's next access if only usual records precede it. */
static bool usual_access(struct tl_stf_group *group, struct tl_stf_access *access)
{
    const uint8_t *p = group->rest.p;
    const uint8_t *const end = p + group->rest.n;
    size_t size = usual_size(p, end);
    while (size && *p != TL_STF_INST_MEM_ACCESS) {
        p += size;
        size = usual_size(p, end);
    }
    if (size) {
        tl_stf_set_access(access, p);
        p += TL_STF_ACCESS_BYTES;
        while (end - p >= TL_STF_CONTENT_BYTES && *p == TL_STF_INST_MEM_CONTENT) {
            p += TL_STF_CONTENT_BYTES;
            access->n_data++;
        }
    }
    const bool last = only_closing(p, end);
    group->rest.p = p;
    group->rest.n = last ? 0 : (size_t)(end - p);
    return size > 0;
}

int tl_stf_group_access_any(struct tl_stf_group *group, struct tl_stf_access *access)
{
    if (usual_access(group, access))
        return TL_OK;
    struct tl_stf_record r;
    int result;
    while ((result = tl_stf_group_next(group, &r)) == TL_OK) {
        if (r.type == TL_STF_INST_MEM_ACCESS) {
            *access = (struct tl_stf_access){.address = r.access.address,
                                             .size = r.access.size,
                                             .type = r.access.type,
                                             .attr = r.access.attr};
            take_contents(group, TL_STF_INST_MEM_CONTENT, access);
            return TL_OK;
        }
        if (r.type == TL_STF_BUS_MASTER_ACCESS) {
            *access = (struct tl_stf_access){.address = r.bus.address,
                                             .size = r.bus.size,
                                             .type = r.bus.type,
                                             .bus = true,
                                             .master = r.bus.master,
                                             .index = r.bus.index,
                                             .attr = r.bus.attr};
            take_contents(group, TL_STF_BUS_MASTER_CONTENT, access);
            return TL_OK;
        }
    }
    return result;
}

int tl_stf_group_operand_any(struct tl_stf_group *group, struct tl_stf_operand *operand)
{
    struct tl_stf_record r;
    int result;
    while ((result = tl_stf_group_next(group, &r)) == TL_OK) {
        if (r.type != TL_STF_INST_REG)
            continue;
        *operand = (struct tl_stf_operand){
            .number = r.reg.number,
            .type = r.reg.meta & 15,
            .operand = r.reg.meta >> 4 & 3,
            .value = r.reg.value,
        };
        return TL_OK;
    }
    return result;
}
