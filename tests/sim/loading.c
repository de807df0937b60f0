/* SPDX-License-Identifier: MIT */
#include "sim/loading.h"

#include "base/bytes.h"
#include "sim/a64asm.h"

#include <inttypes.h>
#include <stdlib.h>

#define KERNEL        0xffffffc000080000ULL
#define MAIN          0x400000ULL
#define PLUGIN        0x500000ULL
#define CYCLES_A_TICK 10
#define TRIPS         60 /* of the kernel's loop, longer than the interval of timestamps */
#define CALL          10 /* exception type */

static int put(struct tl_buf *code, uint32_t encoding)
{
    uint8_t bytes[4];
    tl_put_le32(bytes, encoding);
    return tl_buf_add(code, bytes, sizeof bytes);
}

static int make_kernel(struct tl_buf *code)
{
    int rc = put(code, a64_movz(0, TRIPS));
    if (rc == TL_OK)
        rc = put(code, a64_subs_imm(0, 0, 1));
    if (rc == TL_OK)
        rc = put(code, a64_set_distance(A64_B_COND(A64_NE), -1));
    return rc == TL_OK ? put(code, A64_ERET) : rc;
}

/* A loop that calls the plug-in, if there is one, and then the kernel. Process 1 executes a little
 * more. */
static int make_main(struct tl_buf *code, unsigned process)
{
    int rc = TL_OK;
    for (unsigned i = 0; rc == TL_OK && i < 3 + 4 * process; i++)
        rc = put(code, a64_add_imm(1, 1, i));
    if (rc == TL_OK)
        rc = put(code, a64_set_distance(A64_CBZ(8), 2));
    if (rc == TL_OK)
        rc = put(code, a64_blr(8));
    if (rc == TL_OK)
        rc = put(code, a64_svc(0));
    return rc == TL_OK ? put(code, a64_set_distance(A64_B, -(int32_t)(code->n / 4))) : rc;
}

/* Straight code with branches over parts of it, and a return. */
static int make_plugin(struct tl_buf *code, struct tl_sim_rng *rng)
{
    const unsigned n = tl_sim_between(rng, 8, 40);
    int rc = TL_OK;
    for (unsigned i = 0; rc == TL_OK && i < n; i++) {
        const bool branches = i + 5 < n && tl_sim_percent(rng, 30);
        const uint32_t over = tl_sim_between(rng, 2, 4);
        rc = put(code, branches ? a64_set_distance(A64_B_COND(A64_EQ), (int32_t)over)
                                : a64_add_imm(2, 2, tl_sim_below(rng, 4096)));
    }
    return rc == TL_OK ? put(code, A64_RET) : rc;
}

static int note(void *context, const struct tl_sim_truth *t)
{
    struct tl_sim_loading *const l = context;
    return t->kind != TL_SIM_TRUTH_INSN
               ? TL_OK
               : tl_buf_printf(&l->truth, "I %016" PRIx64 " %08x\n", t->pc, t->encoding);
}

static int record(struct tl_sim_loading *l, const struct tl_sim_record *r)
{
    if (tl_grow(&l->records, &l->cap_records, l->n_records + 1, sizeof *l->records) < 0)
        return TL_NOMEM;
    l->records[l->n_records++] = *r;
    return TL_OK;
}

static struct tl_sim_context context_of(const struct tl_sim_loading *l, uint8_t el)
{
    return (struct tl_sim_context){
        .el = el, .ns = true, .context_id = TL_SIM_LOADING_FIRST + l->process, .vmid = 1};
}

int tl_sim_loading_init(struct tl_sim_loading *l, uint64_t seed,
                        const struct tl_sim_etm4_options *options)
{
    *l = (struct tl_sim_loading){.rng = {seed}, .plugin = {-1, -1}};
    int rc = make_kernel(&l->files[TL_SIM_FILE_KERNEL]);
    if (rc == TL_OK)
        rc = record(l, &(struct tl_sim_record){.file = TL_SIM_FILE_KERNEL, .address = KERNEL});
    for (unsigned i = 0; rc == TL_OK && i < 2; i++) {
        rc = make_main(&l->files[TL_SIM_FILE_MAIN + i], i);
        if (rc == TL_OK)
            rc = record(l, &(struct tl_sim_record){.process = TL_SIM_LOADING_FIRST + i,
                                                   .file = TL_SIM_FILE_MAIN + i,
                                                   .address = MAIN});
    }
    for (unsigned i = 0; rc == TL_OK && i < TL_SIM_PLUGINS; i++)
        rc = make_plugin(&l->files[TL_SIM_FILE_PLUGIN + i], &l->rng);
    if (rc == TL_OK)
        rc = tl_sim_etm4_new(&l->etm, options, &l->trace, note, l);
    const struct tl_sim_context user = context_of(l, 0);
    return rc == TL_OK ? tl_sim_etm4_on(l->etm, MAIN, &user) : rc;
}

void tl_sim_loading_fini(struct tl_sim_loading *l)
{
    tl_sim_etm4_free(l->etm);
    for (size_t i = 0; i < TL_SIM_LOADING_FILES; i++)
        tl_buf_fini(&l->files[i]);
    tl_buf_fini(&l->trace);
    tl_buf_fini(&l->truth);
    free(l->records);
}

/* ---- running ------------------------------------------------------------------------------- */

static uint64_t now(const struct tl_sim_loading *l)
{
    return l->cycles / CYCLES_A_TICK;
}

static uint32_t fetch(const struct tl_sim_loading *l, unsigned file, uint32_t at)
{
    return tl_le32(l->files[file].p + 4 * (size_t)at);
}

static int insn(struct tl_sim_loading *l, uint64_t base, unsigned file, uint32_t at)
{
    tl_sim_etm4_time(l->etm, now(l));
    l->cycles++;
    return tl_sim_etm4_insn(l->etm, base + 4 * (uint64_t)at, fetch(l, file, at), 1);
}

static int branch(struct tl_sim_loading *l, struct tl_sim_branch *b, uint64_t base, unsigned file,
                  uint32_t at, uint8_t el)
{
    tl_sim_etm4_time(l->etm, now(l));
    l->cycles++;
    b->pc = base + 4 * (uint64_t)at;
    b->encoding = fetch(l, file, at);
    b->after = context_of(l, el);
    return tl_sim_etm4_branch(l->etm, b, 1);
}

/* Run the plug-in up to its return to `back`. */
static int run_plugin(struct tl_sim_loading *l, unsigned file, uint64_t back)
{
    const uint32_t end = (uint32_t)(l->files[file].n / 4) - 1;
    int rc = TL_OK;
    for (uint32_t at = 0; rc == TL_OK && at < end;) {
        const uint32_t encoding = fetch(l, file, at);
        if (encoding >> 24 != 0x54) {
            rc = insn(l, PLUGIN, file, at++);
            continue;
        }
        const bool taken = tl_sim_percent(&l->rng, 50);
        const uint32_t over = encoding >> 5 & 0x7ffff;
        struct tl_sim_branch b = {.taken = taken, .target = PLUGIN + 4 * (uint64_t)(at + over)};
        rc = branch(l, &b, PLUGIN, file, at, 0);
        at += taken ? over : 1;
    }
    struct tl_sim_branch b = {.indirect = true, .is_return = true, .taken = true, .target = back};
    return rc == TL_OK ? branch(l, &b, PLUGIN, file, end, 0) : rc;
}

/* Run the process from its beginning to its system call. */
static int run_main(struct tl_sim_loading *l)
{
    const unsigned file = TL_SIM_FILE_MAIN + l->process;
    const uint32_t call = (uint32_t)(l->files[file].n / 4) - 2;
    const int plugin = l->plugin[l->process];
    int rc = TL_OK;
    for (uint32_t at = 0; rc == TL_OK && at < call - 2; at++)
        rc = insn(l, MAIN, file, at);
    const uint64_t return_to = MAIN + 4 * (uint64_t)call;
    struct tl_sim_branch over = {.taken = plugin < 0, .target = return_to};
    if (rc == TL_OK)
        rc = branch(l, &over, MAIN, file, call - 2, 0);
    struct tl_sim_branch blr = {.indirect = true, .link = true, .taken = true, .target = PLUGIN};
    if (rc == TL_OK && plugin >= 0)
        rc = branch(l, &blr, MAIN, file, call - 1, 0);
    if (rc == TL_OK && plugin >= 0)
        rc = run_plugin(l, (unsigned)plugin, return_to);
    return rc == TL_OK ? insn(l, MAIN, file, call) : rc;
}

/* The effect of the system call: none, loading another plug-in, or unloading the current one. */
static int serve(struct tl_sim_loading *l)
{
    int *const plugin = &l->plugin[l->process];
    const unsigned what = tl_sim_below(&l->rng, 4);
    struct tl_sim_record r = {
        .time = now(l), .process = TL_SIM_LOADING_FIRST + l->process, .address = PLUGIN};
    if (l->settled)
        return TL_OK;
    if (what == 0 && *plugin >= 0) {
        r.unloads = true;
        r.file = (unsigned)*plugin;
        *plugin = -1;
        return record(l, &r);
    }
    if (what != 1)
        return TL_OK;
    r.file = TL_SIM_FILE_PLUGIN + tl_sim_below(&l->rng, TL_SIM_PLUGINS);
    l->changes += l->was_there[l->process] && (int)r.file != *plugin;
    l->was_there[l->process] = true;
    *plugin = (int)r.file;
    return record(l, &r);
}

/* Run the system call and return to one of the processes, at the end of its loop. */
static int run_kernel(struct tl_sim_loading *l)
{
    const unsigned caller = TL_SIM_FILE_MAIN + l->process;
    const struct tl_sim_context kernel = context_of(l, 1);
    int rc = tl_sim_etm4_exception(l->etm, CALL, MAIN + l->files[caller].n - 4, KERNEL, &kernel);
    if (rc == TL_OK)
        rc = insn(l, KERNEL, TL_SIM_FILE_KERNEL, 0);
    for (unsigned trip = 0; rc == TL_OK && trip < TRIPS; trip++) {
        struct tl_sim_branch again = {.taken = trip + 1 < TRIPS, .target = KERNEL + 4};
        rc = insn(l, KERNEL, TL_SIM_FILE_KERNEL, 1);
        if (rc == TL_OK)
            rc = branch(l, &again, KERNEL, TL_SIM_FILE_KERNEL, 2, 1);
        if (rc == TL_OK && trip == TRIPS / 4)
            rc = serve(l);
    }
    if (tl_sim_percent(&l->rng, 40))
        l->process ^= 1;
    const unsigned next = TL_SIM_FILE_MAIN + l->process;
    const uint32_t last = (uint32_t)(l->files[next].n / 4) - 1;
    struct tl_sim_branch eret = {
        .indirect = true, .eret = true, .taken = true, .target = MAIN + 4 * (uint64_t)last};
    if (rc == TL_OK)
        rc = branch(l, &eret, KERNEL, TL_SIM_FILE_KERNEL, 3, 0);
    struct tl_sim_branch b = {.taken = true, .target = MAIN};
    return rc == TL_OK ? branch(l, &b, MAIN, next, last, 0) : rc;
}

int tl_sim_loading_run(struct tl_sim_loading *l, unsigned n)
{
    int rc = TL_OK;
    for (; rc == TL_OK && n > 0; n--) {
        rc = run_main(l);
        if (rc == TL_OK)
            rc = run_kernel(l);
    }
    return rc == TL_OK ? tl_sim_etm4_flush(l->etm) : rc;
}
