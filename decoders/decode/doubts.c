/* SPDX-License-Identifier: MIT */
/*
 * Counts how often, and how soon, the way is lost in a file. In captures decoded with other
 * programs it was lost after 1 to 7 changes of the flow, and less than once in 20 times with damage
 * that showed; in captures of which 1 to 5 % of the bytes were random, after 5 to 100, and nearly
 * each second loss came with damage that showed.
 */
#include "decode/doubts.h"

#include "image/elfs.h"

enum {
    TURNS_MAX = 64, /* of one loss, so that long ways through other files count little */
    LOST_LEAST = 32,
    TURNS_MISFIT = 5, /* where packets do not fit the program either, or are damaged */
    TURNS_MOST = 8,   /* on the average, of another program */
    DAMAGE_MOST = 8   /* losses for each damage, at least */
};

/* Changes of the flow in an item, counted from its end, up to `most`. */
static unsigned turns_of(const struct tl_item *item, unsigned most)
{
    unsigned turns = 0;
    if (item->kind == TL_ITEM_BLOCK)
        return item->flags & TL_ITEM_TAKEN ? 1 : 0;
    for (uint32_t i = item->n; i-- > 0 && turns < most;)
        turns += tl_path_taken(item->path[i]);
    return turns;
}

static bool is_flow(const struct tl_item *item)
{
    return item->kind == TL_ITEM_PATH || item->kind == TL_ITEM_BLOCK;
}

/* Where a loss was: the last instructions before it. */
static uint64_t place_of(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BLOCK ? item->block->pc
                                       : tl_path_block(item->path[item->n - 1])->pc;
}

static void add(atomic_uint_fast64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t get(const atomic_uint_fast64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* The way behind items[0..n), if it was `before` in front of them. */
static struct tl_doubts_way way_behind(const struct tl_item *items, size_t n,
                                       const struct tl_doubts_way *before)
{
    struct tl_doubts_way way = {0};
    size_t i = n;
    for (; i > 0 && way.turns < TURNS_MAX && items[i - 1].kind != TL_ITEM_GAP; i--) {
        const struct tl_item *const item = &items[i - 1];
        if (!is_flow(item) || item->n == 0)
            continue;
        if (way.place == 0)
            way.place = place_of(item);
        way.turns += turns_of(item, (unsigned)(TURNS_MAX - way.turns));
    }
    if (i > 0)
        return way;
    way.turns = way.turns + before->turns < TURNS_MAX ? way.turns + before->turns : TURNS_MAX;
    way.place = way.place ? way.place : before->place;
    return way;
}

static void note_loss(struct tl_doubts *doubts, const struct tl_image *image,
                      const struct tl_doubts_way *way)
{
    const int64_t elf = way->place ? tl_image_elf_at(image, way->place) : -1;
    if (elf < 0 || elf >= TL_DOUBTED_ELFS)
        return;
    add(&doubts->lost[elf], 1);
    add(&doubts->turns[elf], way->turns);
}

void tl_doubts_look(struct tl_doubts *doubts, const struct tl_image *image,
                    const struct tl_item *items, size_t n, struct tl_doubts_way *way)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind != TL_ITEM_GAP)
            continue;
        if (items[i].sub == TL_GAP_NO_PATH) {
            const struct tl_doubts_way lost = way_behind(items, i, way);
            note_loss(doubts, image, &lost);
        } else if (items[i].sub == TL_GAP_BAD_PACKET || items[i].sub == TL_GAP_TRANSPORT) {
            add(&doubts->damaged, 1);
        }
    }
    *way = way_behind(items, n, way);
}

void tl_doubts_misfit(struct tl_doubts *doubts)
{
    add(&doubts->misfits, 1);
}

/* Is the way lost so often, and so soon, that it is another program's? */
static bool is_other(const struct tl_doubts *doubts, size_t elf)
{
    const uint64_t lost = get(&doubts->lost[elf]), misfits = get(&doubts->misfits);
    const uint64_t gaps = get(&doubts->damaged), damaged = gaps > misfits ? gaps - misfits : 0;
    const uint64_t turns = DAMAGE_MOST * misfits > lost ? TURNS_MISFIT : TURNS_MOST;
    return lost >= LOST_LEAST && lost >= DAMAGE_MOST * damaged &&
           get(&doubts->turns[elf]) <= turns * lost;
}

int64_t tl_doubts_next(const struct tl_doubts *doubts, const struct tl_image *image, size_t from)
{
    for (size_t i = from; i < TL_DOUBTED_ELFS && i < tl_image_elfs(image); i++)
        if (is_other(doubts, i))
            return (int64_t)i;
    return -1;
}

static void count_state(atomic_uint_fast64_t *count, struct tl_state *s)
{
    uint64_t n = get(count);
    tl_state_u64(s, &n);
    atomic_store_explicit(count, n, memory_order_relaxed);
}

void tl_doubts_state(struct tl_doubts *doubts, struct tl_doubts_way *way, struct tl_state *s)
{
    tl_state_u64(s, &way->turns);
    tl_state_u64(s, &way->place);
    for (size_t i = 0; i < TL_DOUBTED_ELFS; i++) {
        count_state(&doubts->lost[i], s);
        count_state(&doubts->turns[i], s);
    }
    count_state(&doubts->misfits, s);
    count_state(&doubts->damaged, s);
}
