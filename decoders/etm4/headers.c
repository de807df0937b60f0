/* SPDX-License-Identifier: MIT */
/*
 * Header bytes are listed as ranges per feature, since which of them are legal depends on the
 * version and configuration of the trace unit. A header of a feature that is off is told from one
 * that is reserved, because the first points at a wrong configuration.
 */
#include "etm4/headers.h"

#include <string.h>

/* Format 6: n - 1 E atoms, then E or N. */
#define F6(n, last)    ((uint32_t)(n) << 24 | ((1u << ((n)-1)) - 1) | (uint32_t)(last) << ((n)-1))
#define ATOMS(n, bits) ((uint32_t)(n) << 24 | (bits))
#define F6_ROW(last)                                                                               \
    F6(4, last), F6(5, last), F6(6, last), F6(7, last), F6(8, last), F6(9, last), F6(10, last),    \
        F6(11, last), F6(12, last), F6(13, last), F6(14, last), F6(15, last), F6(16, last),        \
        F6(17, last), F6(18, last), F6(19, last), F6(20, last), F6(21, last), F6(22, last),        \
        F6(23, last), F6(24, last)

/* clang-format off */
const uint32_t tl_etm4_atoms[64] = {
    F6_ROW(1),                                                          /* 0xc0 .. 0xd4: F6 */
    ATOMS(5, 0x00), ATOMS(5, 0x0a), ATOMS(5, 0x15),                     /* 0xd5 .. 0xd7: F5 */
    ATOMS(2, 0), ATOMS(2, 1), ATOMS(2, 2), ATOMS(2, 3),                 /* 0xd8 .. 0xdb: F2 */
    ATOMS(4, 0xe), ATOMS(4, 0x0), ATOMS(4, 0xa), ATOMS(4, 0x5),         /* 0xdc .. 0xdf: F4 */
    F6_ROW(0),                                                          /* 0xe0 .. 0xf4: F6 */
    ATOMS(5, 0x1e),                                                     /* 0xf5: F5 */
    ATOMS(1, 0), ATOMS(1, 1),                                           /* 0xf6, 0xf7: F1 */
    ATOMS(3, 0), ATOMS(3, 1), ATOMS(3, 2), ATOMS(3, 3),                 /* 0xf8 .. 0xff: F3 */
    ATOMS(3, 4), ATOMS(3, 5), ATOMS(3, 6), ATOMS(3, 7),
};

struct range {
    uint8_t first, last;
    uint8_t class;
};

/* Headers common to all versions and configurations. */
static const struct range always[] = {
    {0x00, 0x00, TL_CLASS_EXTENSION},   {0x01, 0x01, TL_CLASS_TRACE_INFO},
    {0x02, 0x03, TL_CLASS_TIMESTAMP},   {0x04, 0x04, TL_CLASS_TRACE_ON},
    {0x06, 0x06, TL_CLASS_EXCEPTION},   {0x0c, 0x0d, TL_CLASS_CYCLES_F2},
    {0x0e, 0x0f, TL_CLASS_CYCLES_F1},   {0x10, 0x1f, TL_CLASS_CYCLES_F3},
    {0x2d, 0x2d, TL_CLASS_COMMIT},      {0x2e, 0x2f, TL_CLASS_CANCEL_F1},
    {0x30, 0x33, TL_CLASS_MISPREDICT},  {0x34, 0x37, TL_CLASS_CANCEL_F2},
    {0x38, 0x3f, TL_CLASS_CANCEL_F3},   {0x71, 0x7f, TL_CLASS_EVENT},
    {0x80, 0x81, TL_CLASS_CONTEXT},     {0x82, 0x83, TL_CLASS_ADDR_CTX32},
    {0x85, 0x86, TL_CLASS_ADDR_CTX64},  {0x90, 0x92, TL_CLASS_ADDR_MATCH},
    {0x95, 0x96, TL_CLASS_ADDR_SHORT},  {0x9a, 0x9b, TL_CLASS_ADDR_LONG32},
    {0x9d, 0x9e, TL_CLASS_ADDR_LONG64}, {0xc0, 0xff, TL_CLASS_ATOM},
};
static const struct range data_markers[] = {{0x20, 0x2c, TL_CLASS_DATA_MARKER}};
static const struct range conditionals[] = {
    {0x40, 0x43, TL_CLASS_COND_SINGLE}, /* instruction F2, flush */
    {0x44, 0x46, TL_CLASS_COND_SINGLE}, /* result F4 */
    {0x48, 0x4a, TL_CLASS_COND_SINGLE}, /* result F2 */
    {0x4c, 0x4e, TL_CLASS_COND_SINGLE}, {0x50, 0x5f, TL_CLASS_COND_PAIR}, /* result F3 */
    {0x68, 0x6b, TL_CLASS_COND_RES_F1}, {0x6c, 0x6c, TL_CLASS_COND_I_F1},
    {0x6d, 0x6d, TL_CLASS_COND_PAIR}, /* instruction F3 */
    {0x6e, 0x6f, TL_CLASS_COND_RES_F1},
};
static const struct range q_packets[] = {
    {0xa0, 0xa2, TL_CLASS_Q}, {0xa5, 0xa6, TL_CLASS_Q}, {0xaa, 0xac, TL_CLASS_Q},
    {0xaf, 0xaf, TL_CLASS_Q},
};
static const struct range ete_packets[] = {
    {0x0a, 0x0a, TL_CLASS_TRANSACTION_START}, {0x0b, 0x0b, TL_CLASS_TRANSACTION_COMMIT},
    {0xb0, 0xb2, TL_CLASS_SOURCE_MATCH},      {0xb4, 0xb5, TL_CLASS_SOURCE_SHORT},
    {0xb6, 0xb7, TL_CLASS_SOURCE_LONG32},     {0xb8, 0xb9, TL_CLASS_SOURCE_LONG64},
};
/* clang-format on */

static void fill(uint8_t class_of[static 256], const struct range *ranges, size_t n, bool legal)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t class = legal ? ranges[i].class : TL_CLASS_RESERVED_CFG;
        memset(class_of + ranges[i].first, class, (size_t)(ranges[i].last - ranges[i].first + 1));
    }
}

#define FILL(ranges, legal) fill(class_of, ranges, sizeof(ranges) / sizeof(ranges)[0], legal)

void tl_etm4_classify(uint8_t class_of[static 256], const struct tl_etm4_config *config)
{
    const bool ete = config->version >= 0x50;

    memset(class_of, TL_CLASS_RESERVED, 256);
    FILL(always, true);
    FILL(data_markers, config->data_trace);
    FILL(conditionals, config->conditional);
    if (config->q_elements)
        FILL(q_packets, true);
    if (ete)
        FILL(ete_packets, true);

    class_of[0x07] = ete ? TL_CLASS_RESERVED_CFG : TL_CLASS_EXCEPTION_RETURN;
    if (config->m_profile && config->v8 && config->version >= 0x42)
        class_of[0x05] = TL_CLASS_FUNCTION_RETURN;
    if (config->version >= 0x53)
        class_of[0x09] = TL_CLASS_ITE;
    if (config->version >= 0x43)
        class_of[0x70] = TL_CLASS_IGNORE;
    if (config->version >= 0x46)
        class_of[0x88] = TL_CLASS_TS_MARKER;
}
