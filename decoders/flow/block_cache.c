/* SPDX-License-Identifier: MIT */
/*
 * An open-addressing hash of (pc, instruction set, space, view), with blocks in arena memory.
 *
 * Traces execute the same few thousand blocks over and over, mostly moving from one to the next by
 * the taken and next links; the hash serves indirect branches and returns. Unmapped addresses are
 * not cached, so input full of invented addresses cannot fill the memory; the cost of invented
 * entry points into mapped code is bounded by the owner, see tl_block_cache_bytes().
 */
#include "flow/block.h"

#include "base/buf.h"
#include "base/pages.h"
#include "isa/x86.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ARENA_CHUNK ((size_t)256 << 10)
#define LARGE       (TL_HUGE_PAGE / 4) /* a cache whose chunks are huge pages */
#define FIRST_SLOTS 1024u              /* a power of two */

#define CACHE_LINE 64u
static_assert(CACHE_LINE % TL_BLOCK_SLACK == 0, "code ends with whole pieces");
static_assert(CACHE_LINE >= TL_BLOCK_TAIL, "a line after it is enough to read");

/* The memory an address refers to. */
struct place {
    uint64_t view;
    unsigned space;
};

static bool same_place(struct place a, struct place b)
{
    return a.view == b.view && a.space == b.space;
}

/*
 * `coded` starts on a cache line of its own: it mostly fits in one, so copying it reads only that
 * line. For a block that has not run recently, ideally only its first line is read.
 */
struct entry {
    struct tl_block block;
    struct place place;
    struct entry *rest; /* behind as many of its instructions as were executed alone last time */
    _Alignas(CACHE_LINE) uint8_t coded[];
};

/* The hash identifies a block almost uniquely, so that other blocks need not be read. */
struct slot {
    uint64_t hash;
    struct entry *entry; /* NULL: free */
};

/*
 * Address ranges that a view does not map. If much of the executed code is not in the image, trace
 * asks for it constantly. Views do not change, so these entries stay valid.
 */
#define UNMAPPED 64u /* a power of two; indexed by page of the requested address */

struct chunk {
    struct chunk *next;
    size_t size;
    _Alignas(CACHE_LINE) uint8_t bytes[];
};

/* The region found last; the next block is usually in it too. */
struct mapped {
    struct place place;
    uint64_t at;
    struct tl_bytes code;
};

/* A block of which only the first instructions were executed: the rest is a block, too. */
struct begun {
    const struct tl_block *block; /* NULL: none */
    uint32_t n, bytes;            /* executed */
};

struct tl_block_cache {
    struct tl_block_cache_size size; /* must be first */
    const struct tl_image *image;
    struct tl_isa_options options;
    uint64_t view;
    struct slot *slots;
    uint32_t mask;
    uint32_t used;
    struct place first;   /* place of the first request; space 0: no request yet */
    bool plural;          /* there were others: compare a block's place too */
    struct chunk *chunks; /* newest first; allocation continues in the first */
    size_t chunk_used;
    tl_block_code *code;     /* NULL: none */
    struct tl_buf scratch;   /* its output for the block being decoded */
    struct tl_block nothing; /* returned by tl_block_get() for unmapped memory */
    struct tl_unmapped_range unmapped[UNMAPPED];
    struct mapped mapped;
    struct begun begun;
};

int tl_block_cache_new(struct tl_block_cache **out, const struct tl_image *image,
                       const struct tl_isa_options *options)
{
    struct tl_block_cache *cache = calloc(1, sizeof *cache);
    struct slot *slots = calloc(FIRST_SLOTS, sizeof *slots);
    if (!cache || !slots) {
        free(cache);
        free(slots);
        return TL_NOMEM;
    }
    cache->image = image;
    cache->options = *options;
    cache->slots = slots;
    cache->mask = FIRST_SLOTS - 1;
    cache->size.bytes = FIRST_SLOTS * sizeof *slots;
    cache->nothing.end = TL_BLOCK_UNMAPPED;
    cache->nothing.function = TL_NO_FUNCTION;
    *out = cache;
    return TL_OK;
}

static void free_chunks(struct tl_block_cache *cache)
{
    while (cache->chunks) {
        struct chunk *chunk = cache->chunks;
        cache->chunks = chunk->next;
        free(chunk);
    }
}

void tl_block_cache_free(struct tl_block_cache *cache)
{
    if (!cache)
        return;
    free_chunks(cache);
    tl_buf_fini(&cache->scratch);
    free(cache->slots);
    free(cache);
}

void tl_block_cache_reset(struct tl_block_cache *cache)
{
    free_chunks(cache);
    cache->chunk_used = 0;
    memset(cache->slots, 0, ((size_t)cache->mask + 1) * sizeof *cache->slots);
    cache->used = 0;
    cache->begun.block = NULL;
    cache->size.bytes = ((size_t)cache->mask + 1) * sizeof *cache->slots;
}

/* Allocate whole cache lines, followed by at least one more: TL_BLOCK_TAIL. */
static void *allocate(struct tl_block_cache *cache, size_t n)
{
    n = (n + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    if (!cache->chunks || n + CACHE_LINE > cache->chunks->size - cache->chunk_used) {
        const size_t usual = cache->size.bytes < LARGE ? ARENA_CHUNK : TL_HUGE_PAGE;
        const size_t min = sizeof(struct chunk) + n + CACHE_LINE;
        static_assert(sizeof(struct chunk) % CACHE_LINE == 0, "whole lines");
        const size_t size = min > usual ? min : usual;
        struct chunk *chunk = tl_pages(size);
        if (!chunk)
            return NULL;
        chunk->next = cache->chunks;
        chunk->size = size - sizeof *chunk;
        cache->chunks = chunk;
        cache->chunk_used = 0;
        cache->size.bytes += size;
    }
    void *p = cache->chunks->bytes + cache->chunk_used;
    cache->chunk_used += n;
    return p;
}

/* ---- hash -------------------------------------------------------------------------------- */

/*
 * Blocks in the same piece of code have adjacent slots, since they are often requested together.
 * The low bits are the offset within the piece: a cache line, or as many instructions as a line of
 * slots has place for where cycle counts may make a block of each instruction.
 */
static uint64_t hash(uint64_t pc, unsigned isa, unsigned space, uint64_t view)
{
    enum { PLACES = CACHE_LINE / sizeof(struct slot) };
    const unsigned insn = isa == TL_ISA_T32 ? 2 : isa == TL_ISA_A32 ? 4 : sizeof(struct slot);
    const uint64_t at = pc / insn;
    const uint64_t key = at / PLACES ^ (uint64_t)isa << 56 ^ (uint64_t)space << 48 ^ view << 32;
    const uint64_t h = key * 0x9e3779b97f4a7c15ULL;
    const uint64_t low = at % PLACES * sizeof(struct slot) + pc % insn;
    return (h ^ h >> 32) * CACHE_LINE | low;
}

/* Index at which the search for a slot begins. */
static inline uint64_t first_slot(const struct tl_block_cache *cache, uint64_t h)
{
    return h / sizeof(struct slot) & cache->mask;
}

/* The slot of the block with this hash and key, or the free slot for it. */
static inline struct slot *find_slot(const struct tl_block_cache *cache, uint64_t h, unsigned space,
                                     unsigned isa, uint64_t pc)
{
    for (uint64_t i = first_slot(cache, h);; i = (i + 1) & cache->mask) {
        struct slot *const s = &cache->slots[i];
        const struct entry *const e = s->entry;
        if (!e || (s->hash == h && e->block.pc == pc && e->block.isa == isa &&
                   (!cache->plural || same_place(e->place, (struct place){cache->view, space}))))
            return s;
    }
}

static int grow_slots(struct tl_block_cache *cache)
{
    const uint32_t mask = cache->mask * 2 + 1;
    const size_t size = ((size_t)mask + 1) * sizeof(struct slot);
    struct slot *const slots = tl_pages(size);
    if (!slots)
        return TL_NOMEM;
    memset(slots, 0, size);
    for (uint32_t i = 0; i <= cache->mask; i++) {
        const struct slot *const s = &cache->slots[i];
        uint64_t at = s->hash / sizeof *slots & mask;
        while (s->entry && slots[at].entry)
            at = (at + 1) & mask;
        if (s->entry)
            slots[at] = *s;
    }
    free(cache->slots);
    cache->slots = slots;
    cache->size.bytes += ((size_t)mask - cache->mask) * sizeof *slots;
    cache->mask = mask;
    return TL_OK;
}

/* ---- decoding ---------------------------------------------------------------------------- */

/* Can trace or flow change direction at this instruction? */
static bool ends_block(enum tl_isa isa, const struct tl_insn *insn)
{
    switch (insn->kind) {
    case TL_INSN_PLAIN:
        return false;
    case TL_INSN_TRAP: /* ETM reports a trap as an exception, and only if it was taken */
        return isa != TL_ISA_A64 && isa != TL_ISA_A32 && isa != TL_ISA_T32;
    default:
        return true;
    }
}

/* Append the encoded form of the instruction at the block's end. */
static int put_insn(struct tl_block_cache *cache, struct tl_block *b, const struct tl_insn *insn,
                    const uint8_t *code)
{
    struct tl_buf *const out = &cache->scratch;
    const int rc = tl_buf_reserve(out, TL_BLOCK_CODE);
    if (rc < 0)
        return rc;
    b->last_coded = cache->code(out->p + out->n, b->pc + b->size, code, insn->size, insn->encoding,
                                (enum tl_isa)b->isa);
    out->n += b->last_coded;
    return TL_OK;
}

static void close_block(struct tl_block *b, const struct tl_insn *last, bool in_it)
{
    tl_block_set_last(b, last);
    b->last_size = last->size;
    b->conditional |= in_it;
    enum tl_block_turn taken = TL_TURN_OTHER;
    if (b->end != TL_BLOCK_WAYPOINT)
        taken = TL_TURN_OTHER;
    else if (last->kind == TL_INSN_BRANCH && last->next_isa == b->isa)
        taken = last->link ? TL_TURN_CALL : TL_TURN_BRANCH;
    else if (last->kind == TL_INSN_INDIRECT && !last->link)
        taken = last->is_return ? TL_TURN_RETURN : TL_TURN_INDIRECT;
    else if (last->kind == TL_INSN_SYNC || last->kind == TL_INSN_WAIT ||
             last->kind == TL_INSN_TRANSACT)
        taken = TL_TURN_STRAIGHT;
    b->turn[0] = taken == TL_TURN_OTHER ? TL_TURN_OTHER : TL_TURN_STRAIGHT;
    const bool turns = taken != TL_TURN_OTHER && taken != TL_TURN_STRAIGHT;
    b->turn[1] = (uint8_t)(taken | (turns ? TL_STEP_TAKEN : 0));
}

/* Value of an instruction of `size` bytes, as in struct tl_insn. */
static uint32_t x86_encoding(const uint8_t *code, unsigned size)
{
    uint32_t value;
    memcpy(&value, code, sizeof value);
    return size < 4 ? value & ((1u << 8 * size) - 1) : value;
}

/*
 * Add the following instructions while they are frequent ones that do not change the flow; `*last`
 * is set to the last one added, if any. Returns TL_NOMEM.
 */
static int add_quick(struct tl_block_cache *cache, struct tl_block *b, struct tl_bytes code,
                     struct tl_insn *last)
{
    unsigned size, one = 0;
    for (; b->n < TL_BLOCK_MAX && code.n - b->size > TL_X86_MAX; b->n++, b->size += one) {
        size = tl_x86_quick(b->isa, code.p + b->size);
        if (size == 0 || size > TL_X86_MAX)
            break;
        one = size;
        const struct tl_insn insn = {.encoding = x86_encoding(code.p + b->size, one),
                                     .size = (uint8_t)one};
        if (cache->code && put_insn(cache, b, &insn, code.p + b->size) < 0)
            return TL_NOMEM;
    }
    if (one > 0)
        *last = (struct tl_insn){.size = (uint8_t)one, .next_isa = b->isa};
    return TL_OK;
}

/* A jump by a table that the image has is a direct one: the table counts as constant. */
static void use_table(const struct tl_block_cache *cache, unsigned space, enum tl_isa isa,
                      struct tl_insn *insn)
{
    const unsigned size = isa == TL_ISA_RV64 ? 8 : 4;
    const uint64_t at = (cache->options.jvt & ~UINT64_C(63)) + (insn->table - 1u) * size;
    const struct tl_bytes entry = tl_image_view_at(cache->image, cache->view, space, at);
    if (!cache->options.jvt || entry.n < size)
        return;
    insn->kind = TL_INSN_BRANCH;
    insn->target = (size == 8 ? tl_le64(entry.p) : tl_le32(entry.p)) & ~UINT64_C(1);
}

/* Decode from b->pc to the block's end; the encoded form goes to cache->scratch. */
static int decode(struct tl_block_cache *cache, unsigned space, struct tl_block *b,
                  struct tl_bytes code)
{
    struct tl_insn insn = {0};
    unsigned it_left = 0; /* remaining instructions of a T32 IT block */
    bool in_it = false;
    const enum tl_isa isa = b->isa;
    const bool is_x86 = tl_isa_is_x86(isa);
    b->end = TL_BLOCK_FULL;
    tl_buf_reset(&cache->scratch);
    while (b->n < TL_BLOCK_MAX) {
        if (is_x86 && add_quick(cache, b, code, &insn) < 0)
            return TL_NOMEM;
        if (b->n == TL_BLOCK_MAX)
            break;
        const struct tl_bytes rest = {code.p + b->size, code.n - b->size};
        struct tl_insn one;
        const int rc = tl_insn_decode(isa, &cache->options, b->pc + b->size, rest, &one);
        if (rc == TL_AGAIN || rc == TL_UNSUPPORTED || (rc < 0 && rest.n < one.size)) {
            b->end = TL_BLOCK_UNMAPPED;
            break;
        }
        if (rc < 0)
            one.kind = TL_INSN_TRAP; /* undefined: if it was executed, it trapped */
        if (b->n + tl_insn_companions(isa, b->pc + b->size, &one) >= TL_BLOCK_MAX)
            break;
        b->traps |= one.kind == TL_INSN_TRAP;
        b->binds |= one.binds;
        if (one.table)
            use_table(cache, space, isa, &one);
        insn = one;
        if (cache->code && put_insn(cache, b, &insn, rest.p) < 0)
            return TL_NOMEM;
        b->size += insn.size;
        b->n++;
        in_it = it_left > 0;
        it_left = insn.it_length ? insn.it_length : it_left - in_it;
        if (ends_block(isa, &insn)) {
            b->end = TL_BLOCK_WAYPOINT;
            break;
        }
    }
    if (b->n > 0)
        close_block(b, &insn, in_it);
    return TL_OK;
}

/* Bytes of the first `n` instructions of a block in `coded`. TL_NOMEM. */
static int64_t coded_bytes(struct tl_block_cache *cache, const struct tl_block *b, uint32_t n)
{
    int64_t bytes = 0;
    if (tl_buf_reserve(&cache->scratch, TL_BLOCK_CODE) < 0)
        return TL_NOMEM;
    for (uint32_t at = 0; n > 0; n--) {
        struct tl_insn insn;
        tl_block_insn(b, at, &insn);
        bytes += cache->code(cache->scratch.p, b->pc + at, b->code + at, insn.size, insn.encoding,
                             (enum tl_isa)b->isa);
        at += insn.size;
    }
    return bytes;
}

/*
 * Make `b` of what is left of a block that was begun, if it begins there. Cycle counts and data
 * trace split blocks at each instruction: decoding the rest each time would be quadratic. Not where
 * properties of single instructions matter. Returns whether it did, or TL_NOMEM.
 */
static int take_rest(struct tl_block_cache *cache, unsigned space, struct tl_block *b)
{
    enum { IT_MAX = 4 }; /* the last one may be conditional by an IT that is not in the rest */
    const struct begun *const begun = &cache->begun;
    const struct tl_block *const all = begun->block;
    if (!all || all->pc + begun->bytes != b->pc || all->isa != b->isa ||
        !same_place(((const struct entry *)all)->place, (struct place){cache->view, space}) ||
        all->n <= begun->n || all->end == TL_BLOCK_FULL || all->traps || all->binds ||
        (all->isa == TL_ISA_T32 && all->conditional && all->n <= begun->n + IT_MAX + 1))
        return false;
    const int64_t coded = cache->code ? coded_bytes(cache, all, begun->n) : 0;
    if (coded < 0)
        return (int)coded;
    const uint64_t pc = b->pc;
    *b = *all;
    b->pc = pc;
    b->n -= begun->n;
    b->size -= begun->bytes;
    b->code += begun->bytes;
    b->go[0] = b->go[1] = NULL;
    b->function = TL_NO_FUNCTION;
    if (cache->code) {
        b->coded += coded;
        b->coded_size -= (uint32_t)coded;
    }
    return true;
}

void tl_block_cache_begun(struct tl_block_cache *cache, const struct tl_block *block, uint32_t n,
                          uint32_t bytes)
{
    cache->begun = (struct begun){block, n, bytes};
}

static enum tl_block_waits waits_for(const struct tl_block *b)
{
    if (b->end == TL_BLOCK_FULL)
        return TL_WAITS_STRAIGHT;
    if (b->end == TL_BLOCK_UNMAPPED)
        return TL_WAITS_OTHER;
    switch (b->last_kind) {
    case TL_INSN_BRANCH:
        return b->target_isa != b->isa ? TL_WAITS_OTHER
               : b->conditional        ? TL_WAITS_OUTCOME
                                       : TL_WAITS_NOTHING;
    case TL_INSN_INDIRECT:
        return b->is_return ? TL_WAITS_RETURN : TL_WAITS_ADDRESS;
    case TL_INSN_RETURN_EX:
    case TL_INSN_TRAP:
        return TL_WAITS_OTHER;
    default:
        return TL_WAITS_NOTHING;
    }
}

static bool begins_function(const struct tl_image *image, uint32_t function, uint64_t pc)
{
    size_t n;
    return function != TL_NO_FUNCTION && tl_image_symbols(image, &n)[function].address == pc;
}

/* Is TL_STEP_OUT in steps of this block? */
static bool leads_out(const struct tl_block_cache *cache, unsigned space, const struct tl_block *b,
                      bool taken)
{
    if ((taken && b->leave > TL_LEAVE_JUMP) || b->turn[taken] >= TL_TURN_OTHER)
        return true; /* or to where only the trace tells */
    const uint64_t to = taken && b->leave == TL_LEAVE_JUMP ? b->target : b->pc + b->size;
    if (tl_image_symbol_goes_on(cache->image, b->function, to))
        return false;
    const int64_t function = tl_image_view_symbol(cache->image, cache->view, space, to);
    return (function < 0 ? TL_NO_FUNCTION : (uint32_t)function) != b->function;
}

/* Process-unique number of a block; wraps after 2^32 blocks. */
static uint32_t next_number(void)
{
    static atomic_uint numbers;
    uint32_t number;
    while ((number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed)) == 0)
        ;
    return number;
}

static unsigned unmapped_slot(uint64_t pc)
{
    return (pc ^ pc >> 6) >> 12 & (UNMAPPED - 1);
}

static void note_unmapped(struct tl_block_cache *cache, unsigned space, uint64_t pc)
{
    struct tl_unmapped_range *const range = &cache->unmapped[unmapped_slot(pc)];
    range->view = cache->view;
    range->space = space;
    tl_image_view_void(cache->image, cache->view, space, pc, &range->first, &range->last);
}

static struct tl_block *nothing_at(struct tl_block_cache *cache, enum tl_isa isa, uint64_t pc)
{
    cache->nothing.pc = pc;
    cache->nothing.isa = cache->nothing.target_isa = (uint8_t)isa;
    return &cache->nothing;
}

static struct tl_bytes code_at(struct tl_block_cache *cache, unsigned space, uint64_t pc)
{
    struct mapped *const m = &cache->mapped;
    const struct place place = {cache->view, space};
    if (pc - m->at >= m->code.n || !same_place(m->place, place))
        *m = (struct mapped){place, pc, tl_image_view_at(cache->image, cache->view, space, pc)};
    if (m->code.n == 0)
        return m->code;
    return (struct tl_bytes){m->code.p + (pc - m->at), m->code.n - (size_t)(pc - m->at)};
}

/* Prefetch for the blocks most likely to be requested next: their slots, and the code of the
 * farther one. */
static void expect_next(const struct tl_block_cache *cache, const struct tl_block *b,
                        unsigned space)
{
    if (b->last_kind != TL_INSN_BRANCH)
        return;
    const uint64_t ways[] = {b->pc + b->size, b->target};
    for (unsigned i = 0; i < 2; i++)
        __builtin_prefetch(
            &cache->slots[first_slot(cache, hash(ways[i], b->isa, space, cache->view))]);
    if (b->target - cache->mapped.at < cache->mapped.code.n)
        __builtin_prefetch(cache->mapped.code.p + (b->target - cache->mapped.at));
}

/* Add a block to the cache, in the free `slot` for it; `coded`: its encoded form exists, else it is
 * in the scratch buffer. NULL: out of memory. */
static struct tl_block *keep_block(struct tl_block_cache *cache, struct slot *slot, uint64_t h,
                                   unsigned space, struct tl_block *b, bool coded)
{
    const size_t n = cache->code && !coded ? cache->scratch.n : 0;
    expect_next(cache, b, space);
    const int64_t function = tl_image_view_symbol(cache->image, cache->view, space, b->pc);
    if (function >= 0)
        b->function = (uint32_t)function;

    if (cache->used >= cache->mask / 4 * 3) {
        if (grow_slots(cache) < 0)
            return NULL;
        slot = find_slot(cache, h, space, b->isa, b->pc);
    }
    struct entry *entry = allocate(cache, sizeof *entry + n);
    if (!entry)
        return NULL;
    if (cache->code && !coded) {
        memcpy(entry->coded, cache->scratch.p, n);
        b->coded = entry->coded;
        b->coded_size = (uint32_t)n;
    }
    b->odd = b->last_size != 2 && b->last_size != 4;
    const bool plain =
        b->coded && (!b->odd || tl_isa_is_x86(b->isa)) && b->last_kind != TL_INSN_RETURN_EX;
    b->plain = plain ? b->isa : TL_ISA_NONE;
    b->entry = begins_function(cache->image, b->function, b->pc);
    b->waits = (uint8_t)waits_for(b);
    for (unsigned taken = 0; taken < 2; taken++)
        b->turn[taken] = (uint8_t)((b->turn[taken] & ~TL_STEP_OUT) |
                                   (leads_out(cache, space, b, taken) ? TL_STEP_OUT : 0));
    b->number = next_number();
    entry->block = *b;
    entry->place = (struct place){cache->view, space};
    entry->rest = NULL;
    *slot = (struct slot){.hash = h, .entry = entry};
    cache->used++;
    return &entry->block;
}

static __attribute__((noinline)) struct tl_block *decode_new(struct tl_block_cache *cache,
                                                             struct slot *slot, uint64_t h,
                                                             unsigned space, enum tl_isa isa,
                                                             uint64_t pc)
{
    struct tl_block b;
    tl_block_init(&b, pc, isa);
    const int rest = take_rest(cache, space, &b);
    if (rest)
        return rest < 0 ? NULL : keep_block(cache, slot, h, space, &b, true);
    b.end = TL_BLOCK_UNMAPPED;
    const struct tl_bytes code = code_at(cache, space, pc);
    b.code = code.p;
    if (code.n > 0 && decode(cache, space, &b, code) < 0)
        return NULL;
    if (b.end == TL_BLOCK_UNMAPPED && b.size == code.n && b.n > 0 &&
        tl_image_view_at(cache->image, cache->view, space, pc + b.size).n > 0)
        b.end = TL_BLOCK_FULL; /* memory bound to a context begins or ends here */
    if (b.n == 0) {
        if (code.n == 0)
            note_unmapped(cache, space, pc);
        return nothing_at(cache, isa, pc);
    }
    return keep_block(cache, slot, h, space, &b, false);
}

void tl_block_cache_code(struct tl_block_cache *cache, tl_block_code *code)
{
    cache->code = code;
    cache->begun.block = NULL;
}

void tl_block_cache_view(struct tl_block_cache *cache, uint64_t view)
{
    cache->view = view;
}

static inline const struct tl_unmapped_range *unmapped_at(const struct tl_block_cache *cache,
                                                          unsigned space, uint64_t pc)
{
    const struct tl_unmapped_range *const range = &cache->unmapped[unmapped_slot(pc)];
    return pc - range->first <= range->last - range->first && range->space == (uint8_t)space &&
                   range->view == cache->view
               ? range
               : NULL;
}

const struct tl_unmapped_range *tl_block_unmapped_at(const struct tl_block_cache *cache,
                                                     unsigned space, uint64_t pc)
{
    return unmapped_at(cache, space, pc);
}

/* Where the entry for the rest of the block begun last is, if that is what begins at `pc`; NULL: it
 * is another block. */
static struct entry **rest_at(const struct tl_block_cache *cache, struct place place,
                              enum tl_isa isa, uint64_t pc)
{
    const struct begun *const begun = &cache->begun;
    struct entry *const all = (struct entry *)(uintptr_t)begun->block;
    return all && all->block.pc + begun->bytes == pc && all->block.isa == isa &&
                   same_place(all->place, place)
               ? &all->rest
               : NULL;
}

struct tl_block *tl_block_get(struct tl_block_cache *cache, unsigned space, enum tl_isa isa,
                              uint64_t pc)
{
    const struct place place = {cache->view, (uint8_t)space};
    struct entry **const rest = rest_at(cache, place, (uint8_t)isa, pc);
    if (rest && *rest && (*rest)->block.pc == pc)
        return &(*rest)->block;
    if (unmapped_at(cache, space, pc))
        return nothing_at(cache, isa, pc);
    const uint64_t h = hash(pc, (uint8_t)isa, (uint8_t)space, cache->view);
    if (!cache->first.space)
        cache->first = place;
    cache->plural |= !same_place(cache->first, place);
    struct slot *const slot = find_slot(cache, h, (uint8_t)space, (uint8_t)isa, pc);
    if (!slot->entry) {
        struct tl_block *const b = decode_new(cache, slot, h, (uint8_t)space, isa, pc);
        if (rest && b && b->n > 0)
            *rest = (struct entry *)b;
        return b;
    }
    if (rest)
        *rest = slot->entry;
    return &slot->entry->block;
}
