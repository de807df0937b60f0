/* SPDX-License-Identifier: MIT */
#include "sim/etm4_encoder.h"

#include "base/bytes.h"
#include "sim/program_rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETURN_STACK  16
#define ATOMS_KEPT    24       /* number in the longest atom packet */
#define CYCLES_MASK   0xfffffu /* TRCIDR2.CCSIZE below: 20 bits */
#define TRACE_INFO_CC 1u

struct executed {
    uint64_t pc;
    uint32_t encoding;
};

struct tl_sim_etm4 {
    struct tl_sim_etm4_options options;
    struct tl_buf *out;
    tl_sim_truth_sink *truth;
    void *truth_context;
    int result; /* the first error */
    struct tl_sim_rng rng;

    bool on;
    bool need_sync;
    bool popped;    /* the last branch was taken from the return stack */
    bool at_target; /* nothing has executed since the target of the last taken branch */

    struct tl_sim_context context;
    uint64_t address[3];
    uint64_t atoms; /* not yet written, the oldest in bit 0 */
    unsigned n_atoms;
    uint64_t stack[RETURN_STACK]; /* return addresses, the newest last */
    unsigned n_stack;
    struct executed *executed; /* since the last P0 element */
    size_t n_executed, cap_executed;

    uint64_t synced_at; /* value of `made` at the last A-Sync */
    uint64_t made;
    uint64_t cycles; /* since the last cycle count */
    bool cycles_known;
    uint64_t ticks;
    uint64_t timestamp;      /* as in the last packet */
    uint64_t next_timestamp; /* ticks */
    unsigned uncommitted;
};

/* ---- bytes --------------------------------------------------------------------------------- */

static void put_bytes(struct tl_sim_etm4 *e, const uint8_t *p, size_t n)
{
    if (e->result == 0)
        e->result = tl_buf_add(e->out, p, n);
    e->made += n;
}

static void put_byte(struct tl_sim_etm4 *e, unsigned byte)
{
    const uint8_t b = (uint8_t)byte;
    put_bytes(e, &b, 1);
}

/* Write a field in bytes with a continuation flag in bit 7. */
static void put_field(struct tl_sim_etm4 *e, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(e, 0x80 | (value & 0x7f));
    put_byte(e, (unsigned)value);
}

static void report(struct tl_sim_etm4 *e, struct tl_sim_truth truth)
{
    if (e->result == 0 && e->truth != NULL)
        e->result = e->truth(e->truth_context, &truth);
}

static void report_executed(struct tl_sim_etm4 *e, bool taken)
{
    for (size_t i = 0; i < e->n_executed; i++)
        report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_INSN,
                                        .pc = e->executed[i].pc,
                                        .encoding = e->executed[i].encoding,
                                        .taken = taken && i + 1 == e->n_executed});
    e->n_executed = 0;
}

static void report_context(struct tl_sim_etm4 *e)
{
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_CONTEXT,
                                    .el = e->context.el,
                                    .context_id = e->options.context_id ? e->context.context_id : 0,
                                    .vmid = e->options.vmid ? e->context.vmid : 0});
}

/* ---- atoms --------------------------------------------------------------------------------- */

/* Format 6: at least three E and one more atom; its header in `header`. */
static unsigned format6(uint64_t atoms, unsigned n, uint8_t *header)
{
    unsigned run = 0;
    while (run < n && run < 23 && atoms >> run & 1)
        run++;
    if (run == n)
        run--; /* the last E is the closing one */
    if (run < 3)
        return 0;
    *header = (uint8_t)((atoms >> run & 1 ? 0xc0 : 0xe0) + run - 3);
    return run + 1;
}

/* Choose the longest packet for the oldest atoms. */
static unsigned choose_atoms(uint64_t atoms, unsigned n, uint8_t *header)
{
    static const struct {
        uint8_t n, bits, header;
    } patterns[] = {{5, 0x1e, 0xf5}, {5, 0x00, 0xd5}, {5, 0x0a, 0xd6}, {5, 0x15, 0xd7},
                    {4, 0x0e, 0xdc}, {4, 0x00, 0xdd}, {4, 0x0a, 0xde}, {4, 0x05, 0xdf}};
    const unsigned longest = format6(atoms, n, header);
    if (longest > 5)
        return longest;
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++)
        if (n >= patterns[k].n && longest < patterns[k].n &&
            (atoms & ((1u << patterns[k].n) - 1)) == patterns[k].bits) {
            *header = patterns[k].header;
            return patterns[k].n;
        }
    if (longest > 0)
        return longest;
    if (n >= 3) {
        *header = (uint8_t)(0xf8 | (atoms & 7));
        return 3;
    }
    *header = n == 2 ? (uint8_t)(0xd8 | (atoms & 3)) : (uint8_t)(0xf6 | (atoms & 1));
    return n;
}

static void put_atoms(struct tl_sim_etm4 *e, unsigned keep)
{
    while (e->n_atoms > keep) {
        uint8_t header = 0;
        const unsigned n = choose_atoms(e->atoms, e->n_atoms, &header);
        put_byte(e, header);
        e->atoms >>= n;
        e->n_atoms -= n;
    }
}

static void add_atom(struct tl_sim_etm4 *e, bool taken)
{
    e->atoms |= (uint64_t)taken << e->n_atoms++;
    put_atoms(e, ATOMS_KEPT);
}

/* ---- speculation --------------------------------------------------------------------------- */

static void commit(struct tl_sim_etm4 *e, unsigned n)
{
    if (n == 0)
        return;
    put_atoms(e, 0);
    put_byte(e, 0x2d);
    put_field(e, n);
    e->uncommitted -= n;
}

static void commit_all(struct tl_sim_etm4 *e)
{
    commit(e, e->uncommitted);
}

/* Call before a P0 element: commits older ones if too many are uncommitted. */
static void count_p0(struct tl_sim_etm4 *e)
{
    if (e->options.max_spec_depth == 0)
        return;
    if (e->uncommitted >= e->options.max_spec_depth)
        commit(e, tl_sim_between(&e->rng, 1, e->uncommitted));
    e->uncommitted++;
}

/* Write atoms of a path that turns out not to be taken, and their cancellation. */
static void stray(struct tl_sim_etm4 *e)
{
    const unsigned room = e->options.max_spec_depth - e->uncommitted;
    const unsigned n = room > 0 ? tl_sim_between(&e->rng, 1, room < 5 ? room : 5) : 0;
    if (n == 0)
        return;
    for (unsigned k = 0; k < n; k++)
        add_atom(e, tl_sim_percent(&e->rng, 50));
    put_atoms(e, 0);
    put_byte(e, 0x2e);
    put_field(e, n);
}

static void branch_atom(struct tl_sim_etm4 *e, bool taken, bool may_mispredict)
{
    count_p0(e);
    if (e->options.max_spec_depth > 0 && may_mispredict && tl_sim_percent(&e->rng, 8)) {
        add_atom(e, !taken);
        put_atoms(e, 0);
        put_byte(e, 0x30);
        return;
    }
    add_atom(e, taken);
}

/* ---- addresses and contexts ---------------------------------------------------------------- */

static void put_context_fields(struct tl_sim_etm4 *e)
{
    const struct tl_sim_context *c = &e->context;
    uint8_t bytes[9];
    size_t n = 1;

    bytes[0] = (uint8_t)(c->el | 0x10 | (c->ns ? 0x20 : 0));
    if (e->options.vmid) {
        bytes[0] |= 0x40;
        tl_put_le32(bytes + n, c->vmid);
        n += !e->options.ete && e->options.minor == 0 ? 1 : 4;
    }
    if (e->options.context_id) {
        bytes[0] |= 0x80;
        tl_put_le32(bytes + n, c->context_id);
        n += 4;
    }
    put_bytes(e, bytes, n);
}

static void put_long(struct tl_sim_etm4 *e, uint64_t address, bool wide)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, address);
    bytes[0] = address >> 2 & 0x7f;
    bytes[1] = address >> 9 & 0x7f;
    put_bytes(e, bytes, wide ? 8 : 4);
}

/* An address in the shortest form, with a context if one is required. */
static void put_address(struct tl_sim_etm4 *e, uint64_t address, bool with_context)
{
    const uint64_t differs = address ^ e->address[0];
    const bool wide = differs >> 32 != 0;
    bool context_done = false;

    put_atoms(e, 0);
    if (address == e->address[0]) {
        put_byte(e, 0x90);
    } else if (address == e->address[1]) {
        put_byte(e, 0x91);
    } else if (address == e->address[2]) {
        put_byte(e, 0x92);
    } else if (differs >> 9 == 0) {
        put_byte(e, 0x95);
        put_byte(e, address >> 2 & 0x7f);
    } else if (differs >> 17 == 0) {
        put_byte(e, 0x95);
        put_byte(e, 0x80 | (address >> 2 & 0x7f));
        put_byte(e, address >> 9 & 0xff);
    } else if (with_context) {
        put_byte(e, wide ? 0x85 : 0x82);
        put_long(e, address, wide);
        put_context_fields(e);
        context_done = true;
    } else {
        put_byte(e, wide ? 0x9d : 0x9a);
        put_long(e, address, wide);
    }
    if (with_context && !context_done) {
        put_byte(e, 0x81);
        put_context_fields(e);
    }
    e->address[2] = e->address[1];
    e->address[1] = e->address[0];
    e->address[0] = address;
}

static bool same_context(const struct tl_sim_context *a, const struct tl_sim_context *b)
{
    return a->el == b->el && a->ns == b->ns && a->context_id == b->context_id && a->vmid == b->vmid;
}

/* Output the current address, and the context if it has changed. */
static void arrive(struct tl_sim_etm4 *e, uint64_t pc, const struct tl_sim_context *after)
{
    const bool changed = !same_context(&e->context, after);
    e->context = *after;
    put_address(e, pc, changed);
    if (changed)
        report_context(e);
}

/* ---- synchronisation, times ---------------------------------------------------------------- */

static void put_sync(struct tl_sim_etm4 *e)
{
    static const uint8_t async[12] = {[11] = 0x80};
    const unsigned sections =
        (e->options.cycle_count ? 0x09u : 0) | (e->options.max_spec_depth > 0 ? 0x04u : 0);

    put_atoms(e, 0);
    put_bytes(e, async, sizeof async);
    put_byte(e, 0x01);
    put_byte(e, sections);
    if (sections & 0x01)
        put_byte(e, TRACE_INFO_CC);
    if (sections & 0x04)
        put_field(e, e->uncommitted);
    if (sections & 0x08)
        put_field(e, e->options.threshold);
    memset(e->address, 0, sizeof e->address);
    e->timestamp = 0;
    e->n_stack = 0;
    e->need_sync = false;
    e->synced_at = e->made;
}

/* Synchronise if it is due, at `pc`, with nothing executed since the last P0 element. */
static void sync_if_due(struct tl_sim_etm4 *e, uint64_t pc)
{
    if (e->made - e->synced_at < e->options.sync_every || e->popped)
        return;
    commit_all(e);
    put_sync(e);
    put_address(e, pc, true);
    report_context(e);
}

static void put_cycles(struct tl_sim_etm4 *e)
{
    const uint64_t extra = (e->cycles & CYCLES_MASK) - e->options.threshold;
    const unsigned depth = e->options.max_spec_depth;
    const bool commits = !e->options.commit_opt;
    const unsigned n = commits ? tl_sim_between(&e->rng, 1, e->uncommitted) : 0;

    put_atoms(e, 0);
    if (!e->cycles_known) {
        put_byte(e, 0x0f);
        if (commits)
            put_field(e, n);
    } else if (extra < 4 && n <= 4) {
        put_byte(e, 0x10 | (commits ? (n - 1) << 2 : 0) | (unsigned)extra);
    } else if (extra < 16 && commits && n <= 16 && (n > 8 || depth < 8)) {
        put_byte(e, 0x0c);
        put_byte(e, (n - 1) << 4 | (unsigned)extra);
    } else if (extra < 16 && n <= depth && n + 15 >= depth) {
        put_byte(e, 0x0d);
        put_byte(e, (n + 15 - depth) << 4 | (unsigned)extra);
    } else {
        put_byte(e, 0x0e);
        if (commits)
            put_field(e, n);
        put_field(e, extra);
    }
    e->uncommitted -= n;
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_CYCLES,
                                    .taken = e->cycles_known,
                                    .value = e->cycles_known ? e->cycles & CYCLES_MASK : 0});
    e->cycles = 0;
    e->cycles_known = true;
}

static void cycles_if_due(struct tl_sim_etm4 *e)
{
    if (!e->options.cycle_count || (e->cycles & CYCLES_MASK) < e->options.threshold)
        return;
    if (!e->options.commit_opt && e->uncommitted == 0)
        return; /* a cycle count belongs to a commit */
    put_cycles(e);
}

static void timestamp_if_due(struct tl_sim_etm4 *e)
{
    const uint64_t value = e->ticks;
    uint64_t differs = value ^ e->timestamp;
    unsigned bytes = 1;

    if (!e->options.timestamps || value < e->next_timestamp)
        return;
    put_atoms(e, 0);
    if (e->options.ts_marker)
        put_byte(e, 0x88);
    put_byte(e, e->options.cycle_count ? 0x03 : 0x02);
    for (differs >>= 7; differs != 0 && bytes < 9; bytes++)
        differs >>= 7;
    for (unsigned k = 0; k < bytes; k++) {
        const unsigned more = k + 1 < bytes ? 0x80 : 0;
        put_byte(e, k == 8 ? value >> 56 & 0xff : more | (value >> 7 * k & 0x7f));
    }
    if (e->options.cycle_count)
        put_field(e, e->cycles & CYCLES_MASK);
    e->timestamp = value;
    e->next_timestamp = value + e->options.timestamp_every;
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_TIME, .value = value});
}

/* Call after each P0 element, with execution at `pc`. */
static void after_p0(struct tl_sim_etm4 *e, uint64_t pc)
{
    if (e->options.max_spec_depth > 0 && tl_sim_percent(&e->rng, 4))
        stray(e);
    cycles_if_due(e);
    timestamp_if_due(e);
    sync_if_due(e, pc);
}

/* ---- what the core does -------------------------------------------------------------------- */

int tl_sim_etm4_new(struct tl_sim_etm4 **e, const struct tl_sim_etm4_options *options,
                    struct tl_buf *out, tl_sim_truth_sink *truth, void *context)
{
    struct tl_sim_etm4 *new = calloc(1, sizeof *new);
    *e = new;
    if (new == NULL)
        return TL_NOMEM;
    new->options = *options;
    if (new->options.timestamp_every == 0)
        new->options.timestamp_every = 20000;
    if (new->options.sync_every == 0)
        new->options.sync_every = 4096;
    if (new->options.threshold < 4)
        new->options.threshold = 4;
    if (new->options.max_spec_depth == 0)
        new->options.commit_opt = true; /* there is nothing to commit */
    new->rng.state = 0x5eed;
    new->out = out;
    new->truth = truth;
    new->truth_context = context;
    new->need_sync = true;
    return TL_OK;
}

void tl_sim_etm4_free(struct tl_sim_etm4 *e)
{
    if (e == NULL)
        return;
    free(e->executed);
    free(e);
}

int tl_sim_etm4_on(struct tl_sim_etm4 *e, uint64_t pc, const struct tl_sim_context *context)
{
    if (e->need_sync)
        put_sync(e);
    put_byte(e, 0x04);
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_TRACE_ON});
    e->on = true;
    e->n_stack = 0;
    e->n_executed = 0;
    e->popped = false;
    e->at_target = false;
    e->cycles = 0;
    e->cycles_known = false;
    e->context = *context;
    put_address(e, pc, true);
    report_context(e);
    return e->result;
}

int tl_sim_etm4_off(struct tl_sim_etm4 *e)
{
    if (!e->on)
        return e->result;
    put_atoms(e, 0);
    commit_all(e);
    e->on = false;
    e->n_executed = 0;
    return e->result;
}

int tl_sim_etm4_overflow(struct tl_sim_etm4 *e)
{
    if (!e->on)
        return e->result;
    put_atoms(e, 0);
    commit_all(e);
    put_byte(e, 0x00);
    put_byte(e, 0x05);
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_OVERFLOW});
    e->on = false;
    e->need_sync = true;
    e->n_executed = 0;
    return e->result;
}

static void execute(struct tl_sim_etm4 *e, uint64_t pc, uint32_t encoding, unsigned cycles)
{
    if (e->result == 0)
        e->result = tl_grow(&e->executed, &e->cap_executed, e->n_executed + 1, sizeof *e->executed);
    if (e->result == 0)
        e->executed[e->n_executed++] = (struct executed){pc, encoding};
    e->cycles += cycles;
    e->at_target = false;
}

int tl_sim_etm4_insn(struct tl_sim_etm4 *e, uint64_t pc, uint32_t encoding, unsigned cycles)
{
    if (e->on)
        execute(e, pc, encoding, cycles);
    return e->result;
}

static void push_return(struct tl_sim_etm4 *e, uint64_t address)
{
    if (e->n_stack == RETURN_STACK) {
        memmove(e->stack, e->stack + 1, sizeof e->stack - sizeof e->stack[0]);
        e->n_stack--;
    }
    e->stack[e->n_stack++] = address;
}

/* True if a return goes to the top of the return stack, so that no address is needed. */
static bool pop_return(struct tl_sim_etm4 *e, const struct tl_sim_branch *branch)
{
    if (!branch->is_return || e->n_stack == 0 || e->stack[e->n_stack - 1] != branch->target)
        return false;
    e->n_stack--;
    return true;
}

int tl_sim_etm4_branch(struct tl_sim_etm4 *e, const struct tl_sim_branch *branch, unsigned cycles)
{
    const bool stack = e->options.return_stack && !e->options.branch_broadcast;

    if (!e->on)
        return e->result;
    execute(e, branch->pc, branch->encoding, cycles);
    report_executed(e, branch->taken);
    branch_atom(e, branch->taken, !branch->indirect);
    e->popped = false;
    if (branch->taken) {
        e->popped = stack && branch->indirect && pop_return(e, branch);
        if (branch->link && stack)
            push_return(e, branch->pc + 4);
        if (branch->eret)
            report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_ERET});
        if ((branch->indirect || e->options.branch_broadcast) && !e->popped)
            arrive(e, branch->target, &branch->after);
        if (branch->eret && !e->options.ete)
            put_byte(e, 0x07);
    }
    e->at_target = branch->taken;
    after_p0(e, branch->taken ? branch->target : branch->pc + 4);
    return e->result;
}

int tl_sim_etm4_exception(struct tl_sim_etm4 *e, unsigned type, uint64_t back, uint64_t target,
                          const struct tl_sim_context *after)
{
    if (!e->on)
        return e->result;
    const bool same = e->at_target && !e->popped;

    report_executed(e, false);
    count_p0(e);
    put_atoms(e, 0);
    put_byte(e, 0x06);
    put_byte(e, (same ? 0x40u : 0x01u) | (type & 0x1f) << 1);
    put_address(e, back, false);
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_EXCEPTION, .pc = back, .value = type});
    arrive(e, target, after);
    e->popped = false;
    e->at_target = true;
    after_p0(e, target);
    return e->result;
}

int tl_sim_etm4_event(struct tl_sim_etm4 *e, unsigned bits)
{
    if (!e->on)
        return e->result;
    put_atoms(e, 0);
    put_byte(e, 0x70 | (bits & 0xf));
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_EVENT, .value = bits & 0xf});
    return e->result;
}

int tl_sim_etm4_ite(struct tl_sim_etm4 *e, unsigned el, uint64_t value)
{
    uint8_t bytes[10] = {0x09, (uint8_t)el};

    if (!e->on || !e->options.ete || e->options.minor < 3)
        return e->result;
    put_atoms(e, 0);
    tl_put_le64(bytes + 2, value);
    put_bytes(e, bytes, sizeof bytes);
    report(e, (struct tl_sim_truth){.kind = TL_SIM_TRUTH_ITE, .el = (uint8_t)el, .value = value});
    return e->result;
}

void tl_sim_etm4_time(struct tl_sim_etm4 *e, uint64_t ticks)
{
    e->ticks = ticks;
}

int tl_sim_etm4_flush(struct tl_sim_etm4 *e)
{
    put_atoms(e, 0);
    commit_all(e);
    return e->result;
}

/* ---- registers ----------------------------------------------------------------------------- */

int tl_sim_etm4_source(const struct tl_sim_etm4_options *options, struct tl_source *source)
{
    const bool commit_opt = options->commit_opt || options->max_spec_depth == 0;
    const uint32_t vmid_size = !options->ete && options->minor == 0 ? 1 : 4;
    const struct {
        const char *name;
        uint64_t value;
    } registers[] = {
        {"TRCCONFIGR",
         1u | (uint32_t)options->branch_broadcast << 3 | (uint32_t)options->cycle_count << 4 |
             (uint32_t)options->context_id << 6 | (uint32_t)options->vmid << 7 |
             (uint32_t)options->timestamps << 11 | (uint32_t)options->return_stack << 12},
        {"TRCTRACEIDR", options->trace_id},
        /* branch broadcast, cycle counts, return stack, 4 events, 64-bit timestamps, COMMTRANS */
        {"TRCIDR0", 0x48000ea1u | (uint32_t)options->ts_marker << 23 | (uint32_t)commit_opt << 29},
        {"TRCIDR1", options->ete ? 0x4100fff0u : 0x4100f403u | (uint32_t)options->minor << 4},
        /* 64-bit addresses, 32-bit context ID, 20-bit cycle counts */
        {"TRCIDR2", 0x10000088u | vmid_size << 10},
        {"TRCIDR8", options->max_spec_depth},
        {"TRCDEVARCH", 0x47705a13u | (uint32_t)options->minor << 16},
    };

    memset(source, 0, sizeof *source);
    snprintf(source->name, sizeof source->name, "cs.%02x", options->trace_id);
    source->id = options->trace_id;
    source->protocol = options->ete ? TL_PROTO_ETE : TL_PROTO_ETM4;
    if (options->ete)
        snprintf(source->type, sizeof source->type, "ETE");
    else
        snprintf(source->type, sizeof source->type, "ETM4.%u", options->minor);
    snprintf(source->core, sizeof source->core, "ARM-AA64");
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++) {
        if (strcmp(registers[i].name, "TRCDEVARCH") == 0 && !options->ete)
            continue;
        const int result = tl_source_set_reg(source, registers[i].name, registers[i].value);
        if (result < 0)
            return result;
    }
    return TL_OK;
}
