/* SPDX-License-Identifier: MIT */
/*
 * Fixed fields come from the parser itself, called for each header once, so that the fast paths
 * that use the tables cannot disagree with it. Only lengths are stated here.
 */
#include "etm4/forms.h"

#include "etm4/headers.h"
#include "etm4/parse.h"

#include <string.h>

static unsigned cycles1_shape(const struct tl_etm4_config *config, uint8_t header)
{
    const bool counts = (header & 1) == 0;
    if (config->commit_opt1)
        return counts ? 2 | TL_SHAPE_BRIEF | TL_SHAPE_FIELD : 1;
    return counts ? 3 | TL_SHAPE_BOTH : 2 | TL_SHAPE_BRIEF | TL_SHAPE_FIELD;
}

static unsigned shape_of(const struct tl_etm4_config *config, uint8_t header, unsigned class)
{
    switch (class) {
    case TL_CLASS_ATOM:
    case TL_CLASS_ADDR_MATCH:
    case TL_CLASS_CYCLES_F3:
    case TL_CLASS_CANCEL_F2:
    case TL_CLASS_CANCEL_F3:
    case TL_CLASS_MISPREDICT:
    case TL_CLASS_EVENT:
    case TL_CLASS_COND_SINGLE:
    case TL_CLASS_DATA_MARKER:
    case TL_CLASS_TRACE_ON:
    case TL_CLASS_FUNCTION_RETURN:
    case TL_CLASS_EXCEPTION_RETURN:
    case TL_CLASS_TRANSACTION_START:
    case TL_CLASS_TRANSACTION_COMMIT:
    case TL_CLASS_IGNORE:
        return 1;
    case TL_CLASS_CYCLES_F2:
    case TL_CLASS_COND_PAIR:
        return 2;
    case TL_CLASS_CYCLES_F1:
        return cycles1_shape(config, header);
    case TL_CLASS_COMMIT:
    case TL_CLASS_CANCEL_F1:
        return 2 | TL_SHAPE_BRIEF | TL_SHAPE_FIELD;
    case TL_CLASS_ADDR_SHORT:
        return 2 | TL_SHAPE_BRIEF;
    case TL_CLASS_EXCEPTION: /* in ETE, some reset the address registers */
        return config->ete ? 0 : 2 | TL_SHAPE_BRIEF;
    case TL_CLASS_ADDR_LONG32:
        return 1 + 4;
    case TL_CLASS_ADDR_LONG64:
        return 1 + 8;
    case TL_CLASS_CONTEXT:
        return header & 1 ? 2 | TL_SHAPE_IDS : 1;
    case TL_CLASS_ADDR_CTX32:
        return (1 + 4 + 1) | TL_SHAPE_IDS;
    case TL_CLASS_ADDR_CTX64:
        return (1 + 8 + 1) | TL_SHAPE_IDS;
    default:
        return 0;
    }
}

static unsigned fill_of(unsigned shape, unsigned class)
{
    switch (class) {
    case TL_CLASS_ADDR_MATCH:
    case TL_CLASS_ADDR_LONG32:
    case TL_CLASS_ADDR_LONG64:
        return TL_FILL_ADDRESS;
    case TL_CLASS_ADDR_SHORT:
        return TL_FILL_SHORT;
    case TL_CLASS_CYCLES_F2:
        return TL_FILL_CYCLES2;
    case TL_CLASS_CYCLES_F3:
        return TL_FILL_CYCLES;
    default:
        return shape == 1 ? TL_FILL_FIXED : TL_FILL_PARSE;
    }
}

/* The shape of `n` headers if they all have the same, else 0. */
static uint8_t shape_of_all(const uint8_t *shape, unsigned n)
{
    for (unsigned k = 1; k < n; k++)
        if (shape[k] != shape[0])
            return 0;
    return shape[0];
}

void tl_etm4_forms_init(struct tl_etm4_forms *forms, const struct tl_etm4_config *config)
{
    memset(forms, 0, sizeof *forms);
    forms->config = *config;
    forms->ids[1] = config->vmid_bytes;
    forms->ids[2] = config->context_bytes;
    forms->ids[3] = (uint8_t)(config->vmid_bytes + config->context_bytes);
    tl_etm4_classify(forms->class_of, config);
    for (unsigned h = 1; h < 256; h++) {
        const uint8_t bytes[TL_ETM4_PACKET_MAX] = {(uint8_t)h}; /* the payload does not matter */
        struct tl_etm4_registers nothing = {0};
        const unsigned shape = shape_of(config, (uint8_t)h, forms->class_of[h]);
        if (shape == 0)
            continue;
        forms->shape[h] = (uint8_t)shape;
        forms->fill[h] = (uint8_t)fill_of(shape, forms->class_of[h]);
        (void)tl_etm4_parse(forms->class_of, config, &nothing, bytes, sizeof bytes,
                            &forms->fixed[h]);
    }
    for (unsigned row = 0; row < 16; row++)
        forms->rows[row] = shape_of_all(forms->shape + 16 * (size_t)row, 16);
}
