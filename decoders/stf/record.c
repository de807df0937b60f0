/* SPDX-License-Identifier: MIT */
/*
 * Decodes records. The size is determined first, so that only complete records are decoded and
 * truncated ones are told from bad ones.
 */
#include "stf/record.h"

#define VARIABLE 255

/* Size of each record of fixed size, including the descriptor; 0: undefined descriptor. */
static const uint8_t fixed_size[256] = {
    [TL_STF_IDENTIFIER] = 4,
    [TL_STF_VERSION] = 9,
    [TL_STF_COMMENT] = VARIABLE,
    [TL_STF_ISA] = 3,
    [TL_STF_INST_IEM] = 3,
    [TL_STF_TRACE_INFO] = VARIABLE,
    [TL_STF_TRACE_INFO_FEATURE] = 9,
    [TL_STF_PROCESS_ID_EXT] = 13,
    [TL_STF_FORCE_PC] = 9,
    [TL_STF_VLEN_CONFIG] = 5,
    [TL_STF_PROTOCOL_ID] = 2,
    [TL_STF_CLOCK_ID] = VARIABLE,
    [TL_STF_ISA_EXTENDED] = VARIABLE,
    [TL_STF_END_HEADER] = 1,
    [TL_STF_INST_PC_TARGET] = 9,
    [TL_STF_INST_REG] = VARIABLE,
    [TL_STF_INST_READY_REG] = 3,
    [TL_STF_PAGE_TABLE_WALK] = VARIABLE,
    [TL_STF_INST_MEM_ACCESS] = 14,
    [TL_STF_INST_MEM_CONTENT] = 9,
    [TL_STF_BUS_MASTER_ACCESS] = 18,
    [TL_STF_BUS_MASTER_CONTENT] = 9,
    [TL_STF_EVENT] = VARIABLE,
    [TL_STF_EVENT_PC_TARGET] = 9,
    [TL_STF_INST_MICROOP] = 6,
    [TL_STF_INST_32] = 5,
    [TL_STF_INST_16] = 3,
    [TL_STF_TRANSACTION] = VARIABLE,
    [TL_STF_TRANSACTION_DEPENDENCY] = 18,
    [TL_STF_RESERVE_END] = 1,
};

bool tl_stf_type_known(uint8_t type)
{
    return fixed_size[type] != 0;
}

/* Words of a vector register of `vlen` bits; always one in 1.3. */
static uint32_t vector_words(uint32_t vlen)
{
    return vlen ? vlen / 64 + (vlen % 64 != 0) : 1;
}

static int limited(uint64_t size)
{
    return size > TL_STF_RECORD_MAX ? TL_LIMIT : (int)size;
}

/*
 * Size of TileLink protocol data at `in`: the channel determines which of the two arrays are
 * present. Source: STF specification 1.5, transaction traces.
 */
static int tilelink_size(struct tl_bytes in)
{
    if (in.n < 1)
        return TL_AGAIN;
    if (in.p[0] == 5)
        return 1 + 8;
    if (in.p[0] < 1 || in.p[0] > 5)
        return TL_BAD;
    size_t size = 1 + 3 + 8; /* channel; code, param, size; source */
    if (in.n < size + 2)
        return TL_AGAIN;
    size += 2 + tl_le16(in.p + size) + 8; /* data; address or sink */
    if (in.p[0] > 2)
        return (int)size;
    if (in.n < size + 2)
        return TL_AGAIN;
    return (int)(size + 2 + (tl_le16(in.p + size) + 7u) / 8);
}

static int metadata_size(struct tl_bytes in, uint32_t n)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (size >= in.n)
            return TL_AGAIN;
        const uint8_t log2 = in.p[size];
        if (log2 > 24)
            return TL_LIMIT;
        size += 1 + (UINT64_C(1) << log2);
        if (size > TL_STF_RECORD_MAX)
            return TL_LIMIT;
    }
    return (int)size;
}

#define TRANSACTION_HEAD 20 /* descriptor, id, delta, clock, number of metadata */

static int transaction_size(const struct tl_stf_layout *layout, struct tl_bytes in)
{
    if (layout->protocol > 1)
        return TL_BAD;
    if (in.n < TRANSACTION_HEAD)
        return TL_AGAIN;
    const struct tl_bytes metadata = {in.p + TRANSACTION_HEAD, in.n - TRANSACTION_HEAD};
    const int m = metadata_size(metadata, tl_le16(in.p + 18));
    if (m < 0)
        return m;
    if ((size_t)m > metadata.n)
        return TL_AGAIN;
    const int d = tilelink_size((struct tl_bytes){metadata.p + m, metadata.n - (size_t)m});
    return d < 0 ? d : limited((uint64_t)TRANSACTION_HEAD + (uint32_t)m + (uint32_t)d);
}

static int variable_size(const struct tl_stf_layout *layout, struct tl_bytes in)
{
    const uint8_t *p = in.p;
    switch (p[0]) {
    case TL_STF_COMMENT:
    case TL_STF_ISA_EXTENDED:
        return in.n < 5 ? TL_AGAIN : limited(UINT64_C(5) + tl_le32(p + 1));
    case TL_STF_TRACE_INFO:
        return in.n < 7 ? TL_AGAIN : 7 + tl_le16(p + 5);
    case TL_STF_CLOCK_ID:
        return in.n < 4 ? TL_AGAIN : 4 + tl_le16(p + 2);
    case TL_STF_INST_REG:
        if (in.n < 4)
            return TL_AGAIN;
        if ((p[3] & 15) != TL_STF_REG_VECTOR)
            return 12;
        return limited(4 + UINT64_C(8) * vector_words(layout->vlen));
    case TL_STF_PAGE_TABLE_WALK:
        return in.n < 22 ? TL_AGAIN : 22 + 16 * p[21];
    case TL_STF_EVENT:
        if (layout->event64)
            return in.n < 10 ? TL_AGAIN : 10 + 8 * p[9];
        return in.n < 6 ? TL_AGAIN : 6 + 8 * p[5];
    default:
        return transaction_size(layout, in);
    }
}

int tl_stf_record_size(const struct tl_stf_layout *layout, struct tl_bytes in)
{
    if (in.n == 0)
        return TL_AGAIN;
    const uint8_t size = fixed_size[in.p[0]];
    if (size == 0)
        return TL_BAD;
    return size == VARIABLE ? variable_size(layout, in) : size;
}

static void decode_transaction(const uint8_t *p, size_t size, struct tl_stf_record *out)
{
    out->transaction.id = tl_le64(p + 1);
    out->transaction.delta = tl_le64(p + 9);
    out->transaction.clock = p[17];
    out->transaction.n_metadata = 0;
    out->transaction.metadata = (struct tl_bytes){0};
    out->transaction.data = (struct tl_bytes){0};
    if (p[0] != TL_STF_TRANSACTION)
        return;
    out->transaction.n_metadata = tl_le16(p + 18);
    p += TRANSACTION_HEAD;
    size -= TRANSACTION_HEAD;
    const int m = metadata_size((struct tl_bytes){p, size}, out->transaction.n_metadata);
    const size_t n = m < 0 ? 0 : (size_t)m;
    out->transaction.metadata = (struct tl_bytes){p, n};
    out->transaction.data = (struct tl_bytes){p + n, size - n};
}

static void decode_event(const struct tl_stf_layout *layout, const uint8_t *p,
                         struct tl_stf_record *out)
{
    if (layout->event64) {
        out->event.number = tl_le64(p + 1);
        p += 9;
    } else {
        const uint64_t number = tl_le32(p + 1);
        out->event.number = (number & 0x3fffffff) | (number & 0xc0000000) << 32;
        p += 5;
    }
    out->event.fields = (struct tl_bytes){p + 1, 8u * p[0]};
}

/* Decode header records and other rare ones; `p` is complete. Returns TL_BAD: inconsistent. */
static int decode_rare(const struct tl_stf_layout *layout, const uint8_t *p, size_t size,
                       struct tl_stf_record *out)
{
    switch (p[0]) {
    case TL_STF_IDENTIFIER:
        memcpy(out->magic, p + 1, 3);
        return memcmp(p + 1, "STF", 3) == 0 ? TL_OK : TL_BAD;
    case TL_STF_VERSION:
        out->version.major = tl_le32(p + 1);
        out->version.minor = tl_le32(p + 5);
        break;
    case TL_STF_COMMENT:
    case TL_STF_ISA_EXTENDED:
        out->text = (struct tl_bytes){p + 5, size - 5};
        break;
    case TL_STF_ISA:
        out->isa = tl_le16(p + 1);
        break;
    case TL_STF_INST_IEM:
        out->iem = tl_le16(p + 1);
        break;
    case TL_STF_TRACE_INFO:
        out->info.generator = p[1];
        out->info.major = p[2];
        out->info.minor = p[3];
        out->info.patch = p[4];
        out->info.text = (struct tl_bytes){p + 7, size - 7};
        break;
    case TL_STF_TRACE_INFO_FEATURE:
        out->features = tl_le64(p + 1);
        break;
    case TL_STF_PROCESS_ID_EXT:
        out->process.tgid = tl_le32(p + 1);
        out->process.tid = tl_le32(p + 5);
        out->process.asid = tl_le32(p + 9);
        break;
    case TL_STF_VLEN_CONFIG:
        out->vlen = tl_le32(p + 1);
        return out->vlen >= TL_STF_VLEN_MIN ? TL_OK : TL_BAD;
    case TL_STF_PROTOCOL_ID:
        out->protocol = p[1];
        break;
    case TL_STF_CLOCK_ID:
        out->clock.id = p[1];
        out->clock.name = (struct tl_bytes){p + 4, size - 4};
        break;
    case TL_STF_INST_READY_REG:
        out->ready_reg = tl_le16(p + 1);
        break;
    case TL_STF_PAGE_TABLE_WALK:
        out->walk.va = tl_le64(p + 1);
        out->walk.first_access = tl_le64(p + 9);
        out->walk.page_size = tl_le32(p + 17);
        out->walk.entries = (struct tl_bytes){p + 22, size - 22};
        break;
    case TL_STF_BUS_MASTER_ACCESS:
        out->bus.address = tl_le64(p + 1);
        out->bus.size = tl_le16(p + 9);
        out->bus.master = p[11];
        out->bus.index = p[12];
        out->bus.attr = tl_le32(p + 13);
        out->bus.type = p[17];
        break;
    case TL_STF_EVENT:
        decode_event(layout, p, out);
        break;
    case TL_STF_INST_MICROOP:
        out->microop.size = p[1];
        out->microop.op = tl_le32(p + 2);
        break;
    case TL_STF_TRANSACTION:
    case TL_STF_TRANSACTION_DEPENDENCY:
        decode_transaction(p, size, out);
        break;
    default: /* END_HEADER, RESERVE_END */
        break;
    }
    return TL_OK;
}

int tl_stf_record_decode(const struct tl_stf_layout *layout, struct tl_bytes in,
                         struct tl_stf_record *out)
{
    const int size = tl_stf_record_size(layout, in);
    if (size < 0)
        return size;
    if (in.n < (size_t)size)
        return TL_AGAIN;
    const uint8_t *p = in.p;
    out->type = p[0];
    out->size = (uint32_t)size;
    switch (p[0]) {
    case TL_STF_INST_32:
        out->opcode = tl_le32(p + 1);
        return size;
    case TL_STF_INST_16:
        out->opcode = tl_le16(p + 1);
        return size;
    case TL_STF_INST_MEM_ACCESS:
        out->access.address = tl_le64(p + 1);
        out->access.size = tl_le16(p + 9);
        out->access.attr = tl_le16(p + 11);
        out->access.type = p[13];
        return size;
    case TL_STF_INST_MEM_CONTENT:
    case TL_STF_BUS_MASTER_CONTENT:
        out->data = tl_le64(p + 1);
        return size;
    case TL_STF_FORCE_PC:
        out->pc = tl_le64(p + 1);
        return size;
    case TL_STF_INST_PC_TARGET:
    case TL_STF_EVENT_PC_TARGET:
        out->target = tl_le64(p + 1);
        return size;
    case TL_STF_INST_REG:
        out->reg.number = tl_le16(p + 1);
        out->reg.meta = p[3];
        out->reg.value = (struct tl_bytes){p + 4, (size_t)size - 4};
        return size;
    default: {
        const int result = decode_rare(layout, p, (size_t)size, out);
        return result < 0 ? result : size;
    }
    }
}

void tl_stf_layout_apply(struct tl_stf_layout *layout, const struct tl_stf_record *record)
{
    if (record->type == TL_STF_TRACE_INFO_FEATURE)
        layout->event64 = (record->features & TL_STF_FEATURE_EVENT64) != 0;
    else if (record->type == TL_STF_VLEN_CONFIG)
        layout->vlen = record->vlen;
    else if (record->type == TL_STF_PROTOCOL_ID)
        layout->protocol = record->protocol;
}
