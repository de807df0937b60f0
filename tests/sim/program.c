/* SPDX-License-Identifier: MIT */
#include "sim/program.h"

#include "base/bytes.h"
#include "sim/a64asm.h"
#include "sim/program_rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDLESS 0xffffu /* trips of a task's main loop */

#define VECTOR_TABLE    0x800 /* from the kernel's base, in bytes */
#define VECTOR_SIZE     0x80
#define VECTOR_IRQ_EL1  5 /* current level with SPx */
#define VECTOR_SYNC_EL0 8
#define VECTOR_IRQ_EL0  9

/*
 * The functions. `items`: the body, in order: functions called by their names; "*name" are called
 * through one table; "svc", "isb", "wfi", "trcit" are instructions, "eret" ends the function.
 */
struct spec {
    const char *name;
    uint16_t min, most; /* trips of the loop around its items; 0: no loop */
    const char *items;
};

static const struct spec task_specs[] = {
    {"sensor_main", ENDLESS, ENDLESS, "read_adc fir_filter svc fft_radix2 publish_frame"},
    {"vision_main", ENDLESS, ENDLESS, "matrix_multiply normalize svc detect_edges classify"},
    {"net_main", ENDLESS, ENDLESS, "poll_queue parse_packet route_lookup svc update_counters"},
    {"read_adc", 16, 64, "adc_sample"},
    {"adc_sample", 0, 0, ""},
    {"fir_filter", 24, 96, "mac_block"},
    {"mac_block", 4, 8, ""},
    {"fft_radix2", 4, 8, "fft_stage"},
    {"fft_stage", 8, 32, "butterfly"},
    {"butterfly", 0, 0, ""},
    {"publish_frame", 0, 0, "crc32_update trcit ring_push svc"},
    {"crc32_update", 16, 128, ""},
    {"ring_push", 0, 0, ""},
    {"matrix_multiply", 8, 16, "dot_product"},
    {"dot_product", 8, 32, ""},
    {"normalize", 4, 16, "vector_scale"},
    {"vector_scale", 4, 16, ""},
    {"detect_edges", 16, 64, "sobel_pixel"},
    {"sobel_pixel", 0, 0, ""},
    {"classify", 4, 12, "*layer_convolution *layer_pool *layer_relu softmax"},
    {"layer_convolution", 4, 12, "dot_product"},
    {"layer_pool", 4, 16, ""},
    {"layer_relu", 8, 24, ""},
    {"softmax", 4, 16, "exp_approx"},
    {"exp_approx", 0, 0, ""},
    {"poll_queue", 2, 24, ""},
    {"parse_packet", 2, 8, "parse_ethernet parse_ipv4 *handle_udp *handle_tcp *handle_icmp"},
    {"parse_ethernet", 0, 0, ""},
    {"parse_ipv4", 0, 0, "checksum"},
    {"checksum", 8, 40, ""},
    {"handle_udp", 0, 0, "hash_lookup ring_push"},
    {"handle_tcp", 0, 0, "checksum hash_lookup tcp_window"},
    {"handle_icmp", 0, 0, "checksum"},
    {"tcp_window", 0, 0, ""},
    {"hash_lookup", 1, 5, "compare_key"},
    {"compare_key", 2, 6, ""},
    {"route_lookup", 3, 12, "trie_step"},
    {"trie_step", 0, 0, ""},
    {"update_counters", 3, 9, ""},
};

static const struct spec kernel_specs[] = {
    {"_start", 0, 0, "kernel_init eret"},
    {"el0_sync", 0, 0, "handle_syscall eret"},
    {"el0_irq", 0, 0, "handle_irq eret"},
    {"el1_irq", 0, 0, "handle_irq eret"},
    {"cpu_idle", ENDLESS, ENDLESS, "idle_enter"},
    {"idle_enter", 0, 0, "wfi"},
    {"kernel_init", 0, 0, "clear_bss mmu_enable gic_init"},
    {"clear_bss", 8, 32, ""},
    {"mmu_enable", 0, 0, "isb"},
    {"gic_init", 4, 8, ""},
    {"handle_irq", 0, 0, "gic_acknowledge timer_tick gic_end"},
    {"gic_acknowledge", 0, 0, ""},
    {"gic_end", 0, 0, ""},
    {"timer_tick", 0, 0, "update_wall_time run_timers schedule"},
    {"update_wall_time", 0, 0, ""},
    {"run_timers", 1, 4, "*timer_expire *timer_requeue"},
    {"timer_expire", 0, 0, ""},
    {"timer_requeue", 0, 0, "rb_insert"},
    {"rb_insert", 2, 6, ""},
    {"schedule", 0, 0, "pick_next_task context_switch"},
    {"pick_next_task", 2, 5, ""},
    {"context_switch", 0, 0, "isb"},
    {"handle_syscall", 0, 0, "*sys_read *sys_write *sys_yield *sys_clock_gettime"},
    {"sys_read", 0, 0, "copy_to_user"},
    {"sys_write", 0, 0, "copy_from_user uart_write"},
    {"sys_yield", 0, 0, "schedule"},
    {"sys_clock_gettime", 0, 0, "copy_to_user"},
    {"copy_to_user", 4, 32, ""},
    {"copy_from_user", 4, 32, ""},
    {"uart_write", 4, 24, "uart_putc"},
    {"uart_putc", 1, 3, ""},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- building ------------------------------------------------------------------------------ */

struct fixup {
    uint32_t insn;
    char callee[48];
};

struct table_fixup {
    uint32_t target; /* in program->targets */
    char callee[48];
};

struct builder {
    struct tl_sim_program *p;
    struct tl_sim_rng rng;
    bool short_loops;
    struct fixup *fixups;
    size_t n_fixups, cap_fixups;
    struct table_fixup *table_fixups;
    size_t n_table_fixups, cap_table_fixups;
    int result;
};

static uint32_t here(const struct builder *b)
{
    return (uint32_t)b->p->n_insns;
}

/*
 * Append an instruction. Always returns a place to write to; lack of memory is reported at the end.
 */
static struct tl_sim_insn *put(struct builder *b, enum tl_sim_kind kind, uint32_t encoding)
{
    static struct tl_sim_insn nowhere;
    struct tl_sim_program *p = b->p;
    if (b->result == 0)
        b->result = tl_grow(&p->insns, &p->cap_insns, p->n_insns + 1, sizeof *p->insns);
    if (b->result != 0)
        return &nowhere;
    p->insns[p->n_insns] = (struct tl_sim_insn){.kind = (uint8_t)kind, .encoding = encoding};
    return &p->insns[p->n_insns++];
}

static void put_plain(struct builder *b)
{
    static const uint32_t ops[] = {
        0x8b000000, /* add */ 0xcb000000,    /* sub */ 0xca000000,  /* eor */
        0x8a000000, /* and */ 0xaa000000,    /* orr */ 0x9b007c00,  /* mul */
        0x9a800000, /* csel */ 0x1e602800,   /* fadd */ 0x1e600800, /* fmul */
        0x4e20d400, /* fadd v */ 0x9ac02000,                        /* lslv */
    };
    const unsigned rd = tl_sim_below(&b->rng, 16);
    const unsigned rn = tl_sim_below(&b->rng, 16);
    const uint32_t value = (uint32_t)tl_sim_rand(&b->rng);
    uint32_t encoding;

    switch (tl_sim_below(&b->rng, 10)) {
    case 0:
    case 1:
        encoding = a64_ldr(rd, rn, value & 0x1ff);
        break;
    case 2:
        encoding = a64_str(rd, rn, value & 0x1ff);
        break;
    case 3:
        encoding = a64_movz(rd, value);
        break;
    case 4:
    case 5:
        encoding = a64_add_imm(rd, rn, value);
        break;
    default:
        encoding = a64_three(ops[value % COUNT(ops)], rd, rn, tl_sim_below(&b->rng, 16));
        break;
    }
    put(b, TL_SIM_PLAIN, encoding);
}

static void put_plains(struct builder *b, unsigned min, unsigned most)
{
    for (unsigned n = tl_sim_between(&b->rng, min, most); n > 0; n--)
        put_plain(b);
}

/* A direct branch; returns its index so that its target can be set. */
static uint32_t put_branch(struct builder *b, uint32_t encoding, bool conditional, bool link)
{
    const uint32_t at = here(b);
    struct tl_sim_insn *insn = put(b, TL_SIM_BRANCH, encoding);
    insn->conditional = conditional;
    insn->link = link;
    return at;
}

static uint32_t put_conditional(struct builder *b, unsigned percent)
{
    const unsigned rt = tl_sim_below(&b->rng, 16);
    uint32_t encoding;

    switch (tl_sim_below(&b->rng, 5)) {
    case 0:
        encoding = A64_CBZ(rt);
        break;
    case 1:
        encoding = A64_TBNZ(rt, tl_sim_below(&b->rng, 64));
        break;
    default:
        put(b, TL_SIM_PLAIN, a64_subs_imm(31, rt, tl_sim_below(&b->rng, 256)));
        encoding = A64_B_COND(tl_sim_below(&b->rng, 8));
        break;
    }
    const uint32_t at = put_branch(b, encoding, true, false);
    if (b->result == 0)
        b->p->insns[at].percent = (uint8_t)percent;
    return at;
}

static void set_target(struct builder *b, uint32_t branch, uint32_t target)
{
    if (b->result == 0)
        b->p->insns[branch].target = target;
}

static void call(struct builder *b, const char *callee)
{
    const uint32_t at = put_branch(b, A64_BL, false, true);
    if (b->result == 0)
        b->result = tl_grow(&b->fixups, &b->cap_fixups, b->n_fixups + 1, sizeof *b->fixups);
    if (b->result != 0)
        return;
    struct fixup *fixup = &b->fixups[b->n_fixups++];
    fixup->insn = at;
    snprintf(fixup->callee, sizeof fixup->callee, "%s", callee);
}

/* Add an entry to the table of indirect targets. */
static uint32_t add_target(struct builder *b, uint32_t insn)
{
    struct tl_sim_program *p = b->p;
    if (b->result == 0)
        b->result = tl_grow(&p->targets, &p->cap_targets, p->n_targets + 1, sizeof *p->targets);
    if (b->result != 0)
        return 0;
    p->targets[p->n_targets] = insn;
    return (uint32_t)p->n_targets++;
}

/* Call one of `callees` ("*a *b …", until an item without '*') through a table. */
static const char *call_table(struct builder *b, const char *callees)
{
    const uint32_t first = (uint32_t)b->p->n_targets;
    uint32_t n = 0;

    put(b, TL_SIM_PLAIN, a64_ldr(16, 17, tl_sim_below(&b->rng, 64)));
    while (*callees == '*') {
        const size_t length = strcspn(++callees, " ");
        const uint32_t target = add_target(b, 0);
        if (b->result == 0)
            b->result = tl_grow(&b->table_fixups, &b->cap_table_fixups, b->n_table_fixups + 1,
                                sizeof *b->table_fixups);
        if (b->result != 0)
            return "";
        struct table_fixup *fixup = &b->table_fixups[b->n_table_fixups++];
        fixup->target = target;
        snprintf(fixup->callee, sizeof fixup->callee, "%.*s", (int)length, callees);
        callees += length + strspn(callees + length, " ");
        n++;
    }
    struct tl_sim_insn *insn = put(b, TL_SIM_INDIRECT, a64_blr(16));
    insn->link = true;
    insn->target = first;
    insn->n_targets = n;
    return callees;
}

static void if_else(struct builder *b)
{
    const uint32_t over = put_conditional(b, tl_sim_between(&b->rng, 5, 95));
    put_plains(b, 1, 6);
    if (tl_sim_percent(&b->rng, 40)) {
        const uint32_t join = put_branch(b, A64_B, false, false);
        set_target(b, over, here(b));
        put_plains(b, 1, 6);
        set_target(b, join, here(b));
    } else {
        set_target(b, over, here(b));
    }
    put_plain(b);
}

/* A jump through a table with two to six cases. */
static void switch_case(struct builder *b)
{
    const uint32_t n = tl_sim_between(&b->rng, 2, 6);
    const uint32_t first = (uint32_t)b->p->n_targets;
    uint32_t ends[6];

    for (uint32_t k = 0; k < n; k++)
        (void)add_target(b, 0);
    put(b, TL_SIM_PLAIN, a64_ldr(16, 17, 0));
    struct tl_sim_insn *jump = put(b, TL_SIM_INDIRECT, a64_br(16));
    jump->target = first;
    jump->n_targets = n;
    for (uint32_t k = 0; k < n && b->result == 0; k++) {
        b->p->targets[first + k] = here(b);
        put_plains(b, 1, 5);
        ends[k] = put_branch(b, A64_B, false, false);
    }
    for (uint32_t k = 0; k < n; k++)
        set_target(b, ends[k], here(b));
    put_plain(b);
}

/* The branch back to `top`, for `min` to `most` trips. */
static void loop_end(struct builder *b, uint32_t top, uint32_t min, uint32_t most)
{
    struct tl_sim_program *p = b->p;
    uint32_t back;

    if (tl_sim_percent(&b->rng, 60)) {
        put(b, TL_SIM_PLAIN, a64_subs_imm(19, 19, 1));
        back = put_branch(b, A64_B_COND(A64_NE), true, false);
    } else {
        back = put_branch(b, A64_CBNZ(tl_sim_between(&b->rng, 0, 15)), true, false);
    }
    if (b->result == 0)
        b->result = tl_grow(&p->loops, &p->cap_loops, p->n_loops + 1, sizeof *p->loops);
    if (b->result != 0)
        return;
    if (b->short_loops) {
        min = 1;
        most = most < 3 ? most : 3;
    }
    p->loops[p->n_loops++] = (struct tl_sim_loop){min, most};
    p->insns[back].loop = (uint32_t)p->n_loops;
    p->insns[back].target = top;
}

static void filler(struct builder *b)
{
    switch (tl_sim_below(&b->rng, 8)) {
    case 0:
        switch_case(b);
        break;
    case 1: {
        const uint32_t top = here(b);
        put_plains(b, 1, 5);
        loop_end(b, top, 2, 12);
        break;
    }
    case 2:
    case 3:
    case 4:
        if_else(b);
        break;
    default:
        put_plains(b, 1, 8);
        break;
    }
}

static void leave(struct builder *b, bool framed, unsigned frame)
{
    if (framed)
        put(b, TL_SIM_PLAIN, a64_pop_frame(frame));
    put(b, TL_SIM_RET, A64_RET);
}

static bool put_item(struct builder *b, const char *item, size_t length)
{
    char name[48];
    snprintf(name, sizeof name, "%.*s", (int)length, item);
    if (strcmp(name, "svc") == 0)
        put(b, TL_SIM_SVC, a64_svc(0));
    else if (strcmp(name, "isb") == 0)
        put(b, TL_SIM_ISB, A64_ISB);
    else if (strcmp(name, "wfi") == 0)
        put(b, TL_SIM_WFI, A64_WFI);
    else if (strcmp(name, "trcit") == 0)
        put(b, TL_SIM_TRACE_ITE, a64_trcit(3));
    else if (strcmp(name, "eret") == 0)
        put(b, TL_SIM_ERET, A64_ERET);
    else
        call(b, name);
    return strcmp(name, "eret") == 0;
}

/* Write all items once, with different code around them. Returns true if one of them ended the
 * function. */
static bool put_items(struct builder *b, const char *items)
{
    bool ended = false;
    while (*items != '\0' && b->result == 0) {
        put_plains(b, 1, 4);
        if (tl_sim_percent(&b->rng, 35))
            filler(b);
        if (*items == '*') {
            items = call_table(b, items);
            continue;
        }
        const size_t length = strcspn(items, " ");
        uint32_t skip = 0;
        const bool optional = strncmp(items, "eret", length) != 0 && tl_sim_percent(&b->rng, 20);
        if (optional)
            skip = put_conditional(b, 15);
        ended = put_item(b, items, length);
        if (optional)
            set_target(b, skip, here(b));
        items += length + strspn(items + length, " ");
    }
    return ended;
}

static void put_function(struct builder *b, const struct spec *spec)
{
    struct tl_sim_program *p = b->p;
    const uint32_t first = here(b);
    const unsigned frame = 16 * tl_sim_between(&b->rng, 1, 12);
    const bool framed = spec->items[0] != '\0';
    const uint32_t loop_top_at = first + framed;
    uint32_t top = 0;
    bool ended = false;

    if (framed)
        put(b, TL_SIM_PLAIN, a64_push_frame(frame));
    if (spec->most != ENDLESS)
        put_plains(b, 1, 5);
    if (spec->most != 0 && spec->most != ENDLESS && tl_sim_percent(&b->rng, 30)) {
        const uint32_t stay = put_conditional(b, 90); /* an early exit */
        leave(b, framed, frame);
        set_target(b, stay, here(b));
    }
    top = spec->most == ENDLESS ? loop_top_at : here(b);
    if (framed)
        ended = put_items(b, spec->items);
    else
        filler(b);
    if (spec->most == ENDLESS) {
        put_plain(b);
        set_target(b, put_branch(b, A64_B, false, false), top);
        ended = true;
    } else if (spec->most != 0) {
        put_plain(b);
        loop_end(b, top, spec->min, spec->most);
    }
    if (!ended) {
        put_plains(b, 0, 4);
        leave(b, framed, frame);
    }

    if (b->result == 0)
        b->result =
            tl_grow(&p->functions, &p->cap_functions, p->n_functions + 1, sizeof *p->functions);
    if (b->result != 0)
        return;
    struct tl_sim_function *f = &p->functions[p->n_functions++];
    f->first = first;
    f->n = here(b) - first;
    snprintf(f->name, sizeof f->name, "%s", spec->name);
    for (unsigned n = here(b) % 4; n > 0 && n < 4; n++) /* functions are aligned to 16 bytes */
        put(b, TL_SIM_PLAIN, A64_NOP);
}

static int find(const struct tl_sim_program *p, const char *name, uint32_t *first)
{
    for (size_t i = 0; i < p->n_functions; i++)
        if (strcmp(p->functions[i].name, name) == 0) {
            *first = p->functions[i].first;
            return TL_OK;
        }
    return TL_NOTFOUND;
}

static void resolve(struct builder *b)
{
    struct tl_sim_program *p = b->p;
    for (size_t i = 0; i < b->n_fixups && b->result == 0; i++)
        b->result = find(p, b->fixups[i].callee, &p->insns[b->fixups[i].insn].target);
    for (size_t i = 0; i < b->n_table_fixups && b->result == 0; i++)
        b->result = find(p, b->table_fixups[i].callee, &p->targets[b->table_fixups[i].target]);
    for (uint32_t i = 0; i < p->n_insns && b->result == 0; i++)
        if (p->insns[i].kind == TL_SIM_BRANCH)
            p->insns[i].encoding =
                a64_set_distance(p->insns[i].encoding, (int32_t)(p->insns[i].target - i));
}

/* Random functions, each of which may call the ones after it, called by one of the tasks. */
static void put_extra(struct builder *b, unsigned n)
{
    for (unsigned k = 0; k < n && b->result == 0; k++) {
        char name[24], items[120] = "";
        size_t length = 0;
        snprintf(name, sizeof name, "helper_%u", k);
        for (unsigned c = tl_sim_below(&b->rng, 4); c > 0 && k + 1 < n; c--)
            length += (size_t)snprintf(items + length, sizeof items - length, "%s%shelper_%u",
                                       length > 0 ? " " : "", c % 3 == 0 ? "*" : "",
                                       tl_sim_between(&b->rng, k + 1, n - 1));
        const struct spec spec = {name, 0, 0, items};
        put_function(b, &spec);
    }
}

static void put_vectors(struct builder *b, uint32_t kernel)
{
    static const struct {
        unsigned slot;
        const char *handler;
    } used[] = {
        {VECTOR_IRQ_EL1, "el1_irq"}, {VECTOR_SYNC_EL0, "el0_sync"}, {VECTOR_IRQ_EL0, "el0_irq"}};

    while (here(b) < kernel + VECTOR_TABLE / 4 && b->result == 0)
        put(b, TL_SIM_PLAIN, A64_NOP);
    for (unsigned slot = 0; slot < 16 && b->result == 0; slot++) {
        const uint32_t entry = here(b);
        for (size_t k = 0; k < COUNT(used); k++)
            if (used[k].slot == slot) {
                call(b, used[k].handler);
                if (b->result == 0) { /* a jump, not a call */
                    b->p->insns[entry].encoding = A64_B;
                    b->p->insns[entry].link = false;
                    b->p->vectors[k] = entry;
                }
            }
        while (here(b) < entry + VECTOR_SIZE / 4 && b->result == 0)
            put(b, TL_SIM_PLAIN, A64_NOP);
    }
}

static void put_kernel(struct builder *b)
{
    struct tl_sim_program *p = b->p;
    const uint32_t kernel = here(b);

    put_function(b, &kernel_specs[0]);
    put_vectors(b, kernel);
    for (size_t i = 1; i < COUNT(kernel_specs); i++)
        put_function(b, &kernel_specs[i]);
    p->sections[1].first = kernel;
    p->sections[1].n = here(b) - kernel;
    p->reset = kernel;
}

int tl_sim_program_init(struct tl_sim_program *program,
                        const struct tl_sim_program_options *options)
{
    struct builder b = {.p = program, .rng = {options->seed}, .short_loops = options->short_loops};

    memset(program, 0, sizeof *program);
    program->sections[0].base = options->task_base ? options->task_base : 0x400000;
    program->sections[1].base = options->kernel_base ? options->kernel_base : 0xffffffc000080000u;
    for (size_t i = 0; i < COUNT(task_specs); i++) {
        struct spec spec = task_specs[i];
        char items[160];
        if (spec.most == ENDLESS && options->extra > 0) {
            snprintf(items, sizeof items, "%s helper_0", spec.items);
            spec.items = items;
        }
        put_function(&b, &spec);
    }
    put_extra(&b, options->extra);
    program->sections[0].n = here(&b);
    put_kernel(&b);
    resolve(&b);
    if (b.result == 0)
        b.result = find(program, "sensor_main", &program->tasks[0]);
    if (b.result == 0)
        b.result = find(program, "vision_main", &program->tasks[1]);
    if (b.result == 0)
        b.result = find(program, "net_main", &program->tasks[2]);
    if (b.result == 0)
        b.result = find(program, "cpu_idle", &program->tasks[3]);
    if (b.result == 0)
        b.result = find(program, "context_switch", &program->switcher);
    free(b.fixups);
    free(b.table_fixups);
    if (b.result != 0)
        tl_sim_program_fini(program);
    return b.result;
}

void tl_sim_program_fini(struct tl_sim_program *program)
{
    free(program->insns);
    free(program->functions);
    free(program->loops);
    free(program->targets);
    memset(program, 0, sizeof *program);
}

uint64_t tl_sim_program_address(const struct tl_sim_program *program, uint32_t index)
{
    const struct tl_sim_section *section = &program->sections[index >= program->sections[1].first];
    return section->base + (index - section->first) * 4ull;
}

int tl_sim_program_code(const struct tl_sim_program *program, unsigned section, struct tl_buf *out)
{
    const struct tl_sim_section *s = &program->sections[section];
    int result = tl_buf_reserve(out, s->n * 4ull);
    for (uint32_t i = 0; i < s->n && result == 0; i++) {
        uint8_t word[4];
        tl_put_le32(word, program->insns[s->first + i].encoding);
        result = tl_buf_add(out, word, sizeof word);
    }
    return result;
}
