/* SPDX-License-Identifier: MIT */
/* A program of functions a to z, and instructions and other items of it for a call stack. */
#ifndef TL_TESTS_CALLSTACK_WORLD_H
#define TL_TESTS_CALLSTACK_WORLD_H

#include "flow/callstack.h"
#include "sim/small_elf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a program ------------------------------------------------------------------------------ */

/* Functions a, b, … of 64 KiB each. */
#define FUNCTIONS    26
#define AT(name, at) ((uint64_t)((name) - 'a' + 1) << 16 | (at))

static inline struct tl_image *image_of_functions(void)
{
    static char names[FUNCTIONS][2];
    struct tl_sim_elf_symbol symbols[FUNCTIONS];
    struct tl_buf code = {0}, elf = {0};
    struct tl_fail fail = {.text = ""};
    struct tl_image *image;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        names[i][0] = (char)('a' + i);
        symbols[i] = (struct tl_sim_elf_symbol){names[i], AT('a' + i, 0), 0x10000};
    }
    assert_int_equal(tl_buf_reserve(&code, FUNCTIONS << 16), TL_OK);
    memset(code.p, 0, FUNCTIONS << 16);
    const struct tl_sim_elf file = {.machine = EM_AARCH64,
                                    .wide = true,
                                    .address = AT('a', 0),
                                    .code = {code.p, FUNCTIONS << 16},
                                    .symbols = symbols,
                                    .n_symbols = FUNCTIONS};
    assert_int_equal(tl_sim_elf_make(&file, &elf), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", &fail),
        TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&code);
    tl_buf_fini(&elf);
    return image;
}

/* ---- driving a stack --------------------------------------------------------------------- */

struct world {
    struct tl_image *image;
    void (*record)(struct world *w, const struct tl_item *item); /* NULL: items are not kept */
    void *records;
    struct tl_callstack calls;
    uint32_t depth; /* by the changes reported */
    char text[TL_CALLSTACK_MAX + 1];
};

static inline int on_change(void *context, enum tl_frame_change change,
                            const struct tl_frame *frame, uint32_t depth, uint64_t insn)
{
    struct world *const w = context;
    assert_true(frame->insn <= insn);
    assert_int_equal(depth + (change == TL_FRAME_POP), w->depth);
    w->depth = depth + (change == TL_FRAME_PUSH);
    return TL_OK;
}

static inline void begin(struct world *w)
{
    tl_callstack_init(&w->calls, w->image, 0, on_change, w);
    w->depth = 0;
}

static inline void push(struct world *w, const struct tl_item *item)
{
    assert_int_equal(tl_callstack_push(&w->calls, item, 1), TL_OK);
    assert_int_equal(w->depth, w->calls.depth);
    if (w->record)
        w->record(w, item);
}

enum end { PLAIN, CALL, RETURN, JUMP, ERET };

/* Execute one instruction. */
static inline void step(struct world *w, uint64_t pc, enum end end)
{
    static const struct tl_insn lasts[] = {
        [PLAIN] = {.kind = TL_INSN_PLAIN},
        [CALL] = {.kind = TL_INSN_INDIRECT, .link = true},
        [RETURN] = {.kind = TL_INSN_INDIRECT, .is_return = true},
        [JUMP] = {.kind = TL_INSN_INDIRECT},
        [ERET] = {.kind = TL_INSN_RETURN_EX},
    };
    static const uint32_t codes[] = {[PLAIN] = 0xd503201f,
                                     [CALL] = 0xd63f0020,
                                     [RETURN] = 0xd65f03c0,
                                     [JUMP] = 0xd61f0020,
                                     [ERET] = 0xd69f03e0};
    uint8_t code[4];
    struct tl_block block;
    tl_put_le32(code, codes[end]);
    tl_block_init(&block, pc, TL_ISA_A64);
    block.code = code;
    tl_block_set_last(&block, &lasts[end]);
    block.n = 1;
    block.size = block.last_size = 4;
    const int64_t function = tl_image_symbol_index(w->image, pc);
    block.function = function < 0 ? TL_NO_FUNCTION : (uint32_t)function;
    push(w, &(struct tl_item){.kind = TL_ITEM_BLOCK,
                              .n = 1,
                              .flags = end == PLAIN ? 0 : TL_ITEM_TAKEN,
                              .block = &block});
}

static inline void note(struct world *w, enum tl_item_kind kind, uint16_t sub)
{
    push(w, &(struct tl_item){.kind = (uint8_t)kind, .sub = sub});
}

static inline void off(struct world *w)
{
    note(w, TL_ITEM_GAP, TL_GAP_OFF);
    note(w, TL_ITEM_TRACE_ON, 0);
}

/* An exception; pc 0: its return address is not told. */
static inline void exception(struct world *w, uint64_t pc)
{
    push(w, &(struct tl_item){
                .kind = TL_ITEM_EXCEPTION, .sub = 5, .flags = pc ? TL_ITEM_HAS_PC : 0, .pc = pc});
}

static inline void mode(struct world *w, bool user)
{
    push(w, &(struct tl_item){.kind = TL_ITEM_MODE,
                              .flags = TL_ITEM_HAS_VALUE,
                              .value = tl_mode(TL_ARCH_ARM, user ? 0 : 1, TL_SEC_NS, TL_ISA_A64)});
}

static inline void thread(struct world *w, unsigned tid)
{
    char text[40];
    snprintf(text, sizeof text, "switch 100 %u some thread", tid);
    push(w, &(struct tl_item){.kind = TL_ITEM_NOTE, .text = text});
}

/* The names of the frames, outermost first. */
static inline const char *stack(struct world *w)
{
    for (uint32_t i = 0; i < w->calls.depth; i++) {
        const uint32_t function = w->calls.frames[i].function;
        w->text[i] = function == TL_NO_FUNCTION ? '?' : (char)('a' + function);
    }
    w->text[w->calls.depth] = 0;
    return w->text;
}

#define STACK(text) assert_string_equal(stack(w), text)

#endif
