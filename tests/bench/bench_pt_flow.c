/* SPDX-License-Identifier: MIT */
/*
 * Flow of Intel PT compared with libipt in the same run: trace bytes of one processor, with the
 * image available, to paths, to STF records in memory, and to sealed shards with their index in
 * files, by one thread. Inputs: real traces, repeated, where available, and generated ones: a
 * program that loops, and one of 4096 functions whose blocks are each executed once or twice
 * (cold). Rates are by processor time; those of two threads are by wall-clock time.
 */
#include "base/crew.h"
#include "bench/report.h"
#include "builder/build.h"
#include "decode/kept.h"
#include "decode/split.h"
#include "lake.h"
#include "sim/pt_flow_encoder.h"
#include "sim/x86_walk.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "unit/data.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_LIBIPT
#include <intel-pt.h>
#define PEER "libipt, insn"
#else
#define PEER NULL
#endif

#define BYTES  (8u << 20)
#define BLOCK  (4u << 20) /* bytes per push */
#define TAKE   (256u << 10)
#define SHARD  (1u << 20) /* instructions */
#define ROUNDS 5

enum to { PATHS, RECORDS, SHARDS };

struct part {
    char file[64];
    uint64_t offset, size, address;
};

struct bench {
    const char *name;
    struct tl_bytes trace;
    struct tl_image *image;
    struct part parts[8];
    unsigned n_parts;
    enum to to;
    unsigned threads;
    struct tl_stf_flow *flow;
    struct tl_build *build;
    struct tl_packer *packer;
    uint64_t insns, theirs;
    uint64_t expected; /* instructions; 0: unknown */
    uint64_t met;      /* parts decoded ahead that were used */
};

static void die(const char *why)
{
    fprintf(stderr, "bench_pt_flow: %s\n", why);
    exit(1);
}

/* ---- ours ------------------------------------------------------------------------------------ */

static uint64_t count(const struct tl_item *items, size_t n)
{
    uint64_t insns = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == TL_ITEM_PATH)
            insns += items[i].value;
        else if (items[i].kind == TL_ITEM_BLOCK)
            insns += items[i].n;
    return insns;
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct bench *const b = context;
    struct tl_stf_flow_at at = {0};
    b->insns += count(items, n);
    if (b->build)
        return tl_build_items(b->build, items, n);
    if (!b->flow)
        return TL_OK;
    if (tl_stf_flow_items(b->flow, items, n, UINT64_MAX, &at) < 0)
        die("no records");
    if (tl_stf_flow_bytes(b->flow).n >= TAKE)
        tl_stf_flow_take(b->flow);
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return TL_OK;
}

/* Write a full shard to a file. */
static int seal(void *context, struct tl_view *view)
{
    struct bench *const b = context;
    struct tl_buf shard = {0};
    char path[] = "/tmp/bench_pt_flow.XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || unlink(path) < 0 ||
        tl_view_encode(view, TL_CHUNK_MARKERS, b->packer, &shard, NULL) < 0 ||
        write(fd, shard.p, shard.n) != (ssize_t)shard.n || close(fd) < 0)
        die("no shard");
    tl_buf_fini(&shard);
    tl_view_put(view);
    return TL_OK;
}

static void begin_shards(struct bench *b)
{
    const struct tl_build_options options = {.protocol = TL_PROTO_PT,
                                             .isa = TL_ISA_X64,
                                             .shard_insns = SHARD,
                                             .image = b->image,
                                             .seal = seal,
                                             .context = b};
    if (tl_packer_new(&b->packer) < 0 || tl_build_new(&b->build, &options) < 0)
        die("no shards");
}

static void end_shards(struct bench *b)
{
    if (b->build && tl_build_finish(b->build) < 0)
        die("no shards");
    tl_build_free(b->build);
    tl_packer_free(b->packer);
    b->build = NULL;
    b->packer = NULL;
}

static void ours(void *context)
{
    struct bench *const b = context;
    const struct tl_stream_sink sink = {
        .context = b,
        .items = on_items,
        .loss = on_loss,
        .paths = true,
        .code = b->to == PATHS ? NULL : tl_stf_block_code}; /* encode records only if needed */
    struct tl_source source = {.protocol = TL_PROTO_PT};
    const struct tl_stf_flow_options stf = {.isa = TL_ISA_X64};
    struct tl_share share = {0};
    struct tl_stream_decoder *d;
    struct tl_fail fail;
    b->insns = 0;
    b->flow = NULL;
    if (b->threads > 1 && tl_crew_new(&share.crew, b->threads) < 0)
        die("no crew");
    if (b->to == RECORDS && tl_stf_flow_new(&b->flow, &stf, NULL) < 0)
        die("no records");
    if (b->to == SHARDS)
        begin_shards(b);
    const int rc = b->threads > 1
                       ? tl_split_new(&d, &tl_pt_ops, &source, b->image, &sink, &share, &fail)
                       : tl_pt_ops.create(&d, &source, b->image, &sink, &fail);
    if (rc < 0)
        die(fail.text);
    for (size_t at = 0; at < b->trace.n; at += BLOCK) {
        const size_t some = b->trace.n - at < BLOCK ? b->trace.n - at : BLOCK;
        const struct tl_run run = {b->trace.p + at, some, at, NULL};
        if (d->ops->push(d, &run) < 0 || d->ops->flush(d) < 0)
            die("push");
    }
    if (d->ops->finish(d, TL_LOSS_CUT_OFF) < 0)
        die("finish");
    end_shards(b);
    b->met = b->threads > 1 ? tl_split_met(d) : 0;
    d->ops->destroy(d);
    tl_stf_flow_free(b->flow);
    tl_crew_free(share.crew);
    tl_kept_rooms_free(share.rooms);
}

/* ---- libipt ---------------------------------------------------------------------------------- */

#ifdef HAVE_LIBIPT
static struct pt_image *their_image(const struct bench *b)
{
    struct pt_image *const image = pt_image_alloc(NULL);
    for (unsigned i = 0; i < b->n_parts; i++)
        if (pt_image_add_file(image, b->parts[i].file, b->parts[i].offset, b->parts[i].size, NULL,
                              b->parts[i].address) < 0)
            die("libipt: image");
    return image;
}

static void their_config(const struct bench *b, struct pt_config *config)
{
    pt_config_init(config);
    config->begin = (uint8_t *)(uintptr_t)b->trace.p;
    config->end = config->begin + b->trace.n;
}

static void insn_by_insn(void *context)
{
    struct bench *const b = context;
    struct pt_config config;
    their_config(b, &config);
    struct pt_image *const image = their_image(b);
    struct pt_insn_decoder *const d = pt_insn_alloc_decoder(&config);
    pt_insn_set_image(d, image);
    b->theirs = 0;
    int status;
    while ((status = pt_insn_sync_forward(d)) >= 0) {
        struct pt_event event;
        struct pt_insn insn;
        while (status >= 0) {
            if (status & pts_event_pending) {
                status = pt_insn_event(d, &event, sizeof event);
                continue;
            }
            status = pt_insn_next(d, &insn, sizeof insn);
            b->theirs += status >= 0;
        }
        if (status == -pte_eos)
            break;
    }
    pt_insn_free_decoder(d);
    pt_image_free(image);
}

static void block_by_block(void *context)
{
    struct bench *const b = context;
    struct pt_config config;
    their_config(b, &config);
    struct pt_image *const image = their_image(b);
    struct pt_block_decoder *const d = pt_blk_alloc_decoder(&config);
    pt_blk_set_image(d, image);
    int status;
    while ((status = pt_blk_sync_forward(d)) >= 0) {
        struct pt_event event;
        struct pt_block block;
        while (status >= 0)
            status = status & pts_event_pending ? pt_blk_event(d, &event, sizeof event)
                                                : pt_blk_next(d, &block, sizeof block);
        if (status == -pte_eos)
            break;
    }
    pt_blk_free_decoder(d);
    pt_image_free(image);
}
#endif

/* ---- inputs ---------------------------------------------------------------------------------- */

static double by_clock(struct bench *b, unsigned threads)
{
    double best = 1e9;
    b->threads = threads;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const double begin = bench_now();
        ours(b);
        const double took = bench_now() - begin;
        best = took < best ? took : best;
    }
    b->threads = 1;
    return best;
}

static const char *only; /* measure only inputs whose names contain this */

static void measure(struct bench *b)
{
    if (!strstr(b->name, only))
        return;
    static const char *const what[] = {"paths", "STF records", "sealed shards"};
    double theirs = 0;
    char name[96];
    b->threads = 1;
    ours(b);
    if (b->expected && b->insns != b->expected)
        die("another way is followed");
    const double insns = (double)b->insns / 1e6, mb = (double)b->trace.n / 1e6;
#ifdef HAVE_LIBIPT
    theirs = insns / bench_best_cpu(ROUNDS, insn_by_insn, b);
    if (b->theirs < b->expected) /* it continues to the next branch after the end of the trace */
        die("libipt loses its way");
    snprintf(name, sizeof name, "%s, libipt's blocks", b->name);
    bench_report("pt flow", name, insns / bench_best_cpu(ROUNDS, block_by_block, b), "Minsn/s",
                 PEER, theirs);
#endif
    for (unsigned to = PATHS; to <= SHARDS; to++) {
        b->to = (enum to)to;
        const double took = bench_best_cpu(ROUNDS, ours, b);
        snprintf(name, sizeof name, "%s, %s", b->name, what[to]);
        bench_report_trace("pt flow", name, insns / took, "Minsn/s", theirs > 0 ? PEER : NULL,
                           theirs, mb / took);
    }
    b->to = PATHS;
    const double one = by_clock(b, 1), two = by_clock(b, 2);
    const uint64_t met = b->met;
    snprintf(name, sizeof name, "%s, two threads (%llu parts ahead)", b->name,
             (unsigned long long)met);
    bench_report("pt flow", name, insns / two, "Minsn/s", "one thread", insns / one);
}

static void add_part(struct bench *b, const char *file, uint64_t offset, uint64_t size,
                     uint64_t address)
{
    struct part *const part = &b->parts[b->n_parts++];
    snprintf(part->file, sizeof part->file, "%s", file);
    part->offset = offset;
    part->size = size;
    part->address = address;
}

static void repeat(struct tl_buf *all, struct tl_bytes once)
{
    while (all->n < BYTES)
        if (tl_buf_add(all, once.p, once.n) < 0)
            die("memory");
}

static void real(const char *name, const char *elf)
{
    char trace[512], image[512], in_data[64];
    struct tl_buf once = {0}, all = {0}, file = {0};
    struct bench b = {.name = name};
    snprintf(in_data, sizeof in_data, "pt/stepped/%s.pt", name);
    if (!test_data(trace, sizeof trace, in_data)) {
        printf("%s: not there\n", name);
        return;
    }
    snprintf(in_data, sizeof in_data, "pt/stepped/%s", elf);
    if (!test_data(image, sizeof image, in_data) ||
        tl_buf_read_file(&once, trace, 1 << 24, NULL) < 0 ||
        tl_buf_read_file(&file, image, 1 << 24, NULL) < 0 || tl_image_new(&b.image) < 0 ||
        tl_image_add_elf(b.image, (struct tl_bytes){file.p, file.n}, 0, TL_SPACE_ANY, elf, NULL) <
            0 ||
        tl_image_freeze(b.image) < 0)
        die(name);
    repeat(&all, (struct tl_bytes){once.p, once.n});
    b.trace = (struct tl_bytes){all.p, all.n};
    const Elf64_Ehdr *const head = (const void *)file.p;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *const p = (const void *)(file.p + head->e_phoff + i * sizeof *p);
        char link[64];
        snprintf(link, sizeof link, "/tmp/bench_pt_flow.%d", (int)getpid());
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            unlink(link);
            if (symlink(image, link) < 0)
                die("symlink");
            add_part(&b, link, p->p_offset, p->p_filesz, p->p_vaddr);
        }
    }
    measure(&b);
    for (unsigned i = 0; i < b.n_parts; i++)
        unlink(b.parts[i].file);
    tl_image_free(b.image);
    tl_buf_fini(&once);
    tl_buf_fini(&all);
    tl_buf_fini(&file);
}

/* Add `code`, at `base`, for both decoders. */
static void add_code(struct bench *b, struct tl_bytes code, uint64_t base)
{
    char file[64];
    snprintf(file, sizeof file, "/tmp/bench_pt_flow.%d.%u", (int)getpid(), b->n_parts);
    FILE *const f = fopen(file, "wb");
    if (!f || fwrite(code.p, 1, code.n, f) != code.n || fclose(f))
        die(file);
    add_part(b, file, 0, code.n, base);
    if (tl_image_add_bytes(b->image, base, code, TL_SPACE_ANY, NULL, NULL) < 0)
        die("image");
}

static void measure_made_up(struct bench *b)
{
    if (tl_image_freeze(b->image) < 0)
        die("image");
    measure(b);
    for (unsigned i = 0; i < b->n_parts; i++)
        unlink(b->parts[i].file);
    tl_image_free(b->image);
}

/* A small program that runs for long, with all kinds of instructions and packets. */
static void circles(void)
{
    struct tl_sim_rng rng = {7};
    const struct tl_sim_pt_flow_options options = {
        .kernel = true, .user = true, .long_tnt = true, .psb_period = 4096};
    struct tl_sim_x86_program program;
    struct tl_sim_pt_flow flow;
    struct tl_buf all = {0};
    struct bench b = {.name = "made up, warm"};
    if (tl_image_new(&b.image) < 0)
        die("image");
    tl_sim_x86_program_init(&program, tl_sim_rand(&rng), 40);
    tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
    tl_sim_pt_flow_run(&flow, 200000);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++)
        add_code(&b, (struct tl_bytes){program.parts[zone].code.p, program.parts[zone].code.n},
                 program.parts[zone].base);
    repeat(&all, (struct tl_bytes){flow.pt.out.p, flow.pt.out.n});
    b.trace = (struct tl_bytes){all.p, all.n};
    measure_made_up(&b);
    tl_buf_fini(&all);
    tl_sim_pt_flow_fini(&flow);
    tl_sim_x86_program_fini(&program);
}

/* 4096 functions in 2 MB of code, each executed once or twice, in any order. */
static void cold(void)
{
    struct tl_sim_x86_walk walk;
    struct bench b = {.name = "made up, cold"};
    if (tl_image_new(&b.image) < 0)
        die("image");
    tl_sim_x86_walk_init(&walk, 7, 4096, 6000);
    add_code(&b, (struct tl_bytes){walk.code.p, walk.code.n}, TL_SIM_WALK_BASE);
    b.trace = (struct tl_bytes){walk.trace.p, walk.trace.n};
    b.expected = walk.insns;
    measure_made_up(&b);
    tl_sim_x86_walk_fini(&walk);
}

/* All inputs, or the ones named. */
int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : "";
    tl_lake_share_heaps();
    real("one-cpu", "stroll.elf");
    real("cyc-long-tnt", "walk.elf");
    real("noretcomp", "ramble.elf");
    real("no-time", "stroll.elf");
    circles();
    cold();
    return 0;
}
