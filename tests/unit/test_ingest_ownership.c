/* SPDX-License-Identifier: MIT */
/*
 * Who may append to a trace: all interleavings of three servers and a rig.
 *
 * Each server is a spool (server/raw/spool.h, the real code with its threads) on a backend of
 * its own, all sharing one memory, whose leases and fences are those that lakes are tested with;
 * and a session that does what owning a trace requires: lease, open, append, close, release.
 * Threads are coroutines here, and each operation on the backend is a point where a server may be
 * stopped, forever or until its lease has expired and others have continued. The search visits
 * every state that can be reached by these actions, within limits on their number:
 *
 * - connect: the rig connects to a server; the bytes after the acknowledged ones differ from before
 * - send: the rig sends a byte
 * - drop: the connection ends; acknowledgements in flight are lost
 * - step: a server performs its operation on the backend and continues to the next one
 * - fail: the medium refuses the operation after doing half of it
 * - expire: the lease expires
 *
 * In every state, what was acknowledged is in the store as it was sent; no two servers have
 * successfully appended different bytes at the same offset; and a fresh server can take over and
 * finish. Each rule of ownership is also broken on purpose, which the search must find.
 */
#include "unit/stepped_servers.h"

#include <cmocka.h>

enum {
    LONGEST = 96, /* actions of a path */
    MAX = 32,     /* actions possible in one state */
    FINISH = 200  /* operations after which a fresh server must have finished */
};

struct limits {
    unsigned connects, expiries, fails;
    unsigned bytes; /* of the capture */
    bool reads;     /* servers are also stopped before operations that only read */
};

/* ---- actions ---- */

enum kind { CONNECT, SEND, DROP, STEP, FAIL, EXPIRE };

struct action {
    uint8_t kind, server;
    uint8_t routine; /* THREADS: its session, otherwise a thread of its spool */
};

static struct routine *routine_of(struct action a)
{
    struct server *const s = &world.servers[a.server];
    return routine(s, a.routine);
}

static struct routine *stopped(struct server *s)
{
    for (size_t i = 0; i <= THREADS; i++)
        if (routine(s, i)->where == AT_OPERATION)
            return routine(s, i);
    return NULL;
}

static void connect_to(struct server *s)
{
    world.connects++;
    world.at = s->number;
    world.attempt++;
    world.answered = false;
    s->connected = true;
    s->attempt = world.attempt;
    s->piece = -1;
    see(s, 1000 + world.attempt);
    begin(&s->session, s, session, s);
    run_on(s);
}

static void send_byte(struct server *s)
{
    const char byte = (char)('A' + 4 * world.attempt + world.sent);
    world.given[world.attempt][world.sent++] = byte;
    s->piece = byte;
    see(s, (uint64_t)byte);
    s->session.where = READY;
    run_on(s);
}

static void drop(struct server *s)
{
    world.at = -1;
    s->connected = false;
    see(s, 2000);
    if (s->session.where == AT_RIG)
        s->session.where = READY;
    run_on(s);
}

static void step(struct routine *r, bool refuse)
{
    world.refuse = refuse;
    world.fails += refuse;
    r->where = READY;
    resume(r);
    world.refuse = false;
    run_on(r->server);
}

static void expire(void)
{
    tl_backend_memory_expire(world.memory, trace);
    world.held = false;
    world.expiries++;
}

static void act(struct action a)
{
    struct server *const s = &world.servers[a.server];
    switch ((enum kind)a.kind) {
    case CONNECT:
        connect_to(s);
        break;
    case SEND:
        send_byte(s);
        break;
    case DROP:
        drop(s);
        break;
    case STEP:
    case FAIL:
        step(routine_of(a), a.kind == FAIL);
        break;
    case EXPIRE:
        expire();
        break;
    }
}

static size_t possible(const struct limits *limits, struct action out[static MAX])
{
    size_t n = 0;
    bool fresh = false; /* servers that have done nothing yet are equivalent */
    for (uint8_t i = 0; i < SERVERS; i++) {
        struct server *const s = &world.servers[i];
        const bool unused = s->session.where == OVER && s->attempt == 0;
        if (world.at < 0 && world.connects < limits->connects && s->session.where == OVER &&
            world.acked < world.bytes && !(unused && fresh))
            out[n++] = (struct action){CONNECT, i};
        fresh = fresh || unused;
        if (world.at == i && world.answered && s->session.where == AT_RIG &&
            world.sent < world.bytes)
            out[n++] = (struct action){SEND, i};
        if (world.at == i)
            out[n++] = (struct action){DROP, i};
        for (uint8_t k = THREADS + 1; k-- > 0;)
            if (routine(s, k)->where == AT_OPERATION)
                out[n++] = (struct action){STEP, i, k};
        for (uint8_t k = 0; k < THREADS; k++)
            if (s->threads[k].where == AT_OPERATION && world.fails < limits->fails)
                out[n++] = (struct action){FAIL, i, k};
    }
    if (world.held && world.expiries < limits->expiries)
        out[n++] = (struct action){EXPIRE, 0};
    for (size_t i = 0; i < n / 2; i++) { /* rare actions first: they find most violations */
        const struct action last = out[n - 1 - i];
        out[n - 1 - i] = out[i];
        out[i] = last;
    }
    return n;
}

/* ---- worlds ---- */

static void make_world(enum rule rule)
{
    struct tl_backend *const memory = world.memory, *const unfenced = world.unfenced;
    for (size_t i = 0; i <= SERVERS; i++) {
        struct server *const s = &world.servers[i];
        char *stacks[THREADS + 1];
        for (size_t k = 0; k <= THREADS; k++)
            stacks[k] = routine(s, k)->stack;
        *s = (struct server){.base.ops = &seen_ops, .number = (int)i, .piece = -1, .distrusts = -1};
        for (size_t k = 0; k <= THREADS; k++)
            routine(s, k)->stack = stacks[k];
        s->session.where = OVER;
        s->real = memory;
    }
    world.memory = memory;
    world.unfenced = unfenced;
    world.rule = rule;
    world.held = false;
    world.at = -1;
    world.attempt = 0;
    world.acked = world.sent = 0;
    world.connects = world.expiries = world.fails = 0;
    memset(world.acknowledged, 0, sizeof world.acknowledged);
    memset(world.given, 0, sizeof world.given);
    memset(world.appended, 0, sizeof world.appended);
    for (size_t i = 0; i <= SERVERS; i++) {
        struct server *const s = &world.servers[i];
        assert_int_equal(tl_backend_memory_attach(memory, &s->real), TL_OK);
        world.creating = s;
        assert_int_equal(tl_spool_new(&s->spool, &s->base, &(struct tl_spool_options){0}, NULL),
                         TL_OK);
        run_on(s);
    }
}

/* Let everything finish, and free it. */
static void end_world(void)
{
    char before[sizeof world.wrong]; /* later violations are not caused by the path */
    memcpy(before, world.wrong, sizeof before);
    world.at = -1;
    for (size_t i = 0; i <= SERVERS; i++) {
        struct server *const s = &world.servers[i];
        s->connected = false;
        while (s->session.where != OVER) {
            if (s->session.where == AT_RIG)
                s->session.where = READY;
            if (stopped(s))
                stopped(s)->where = READY;
            run_on(s);
        }
        world.creating = s;
        tl_spool_free(s->spool);
        tl_backend_free(s->real);
    }
    assert_int_equal(tl_backend_remove_all(world.memory, "", NULL), TL_OK);
    memcpy(world.wrong, before, sizeof before);
}

static void replay(enum rule rule, const struct action *path, size_t n)
{
    make_world(rule);
    for (size_t i = 0; i < n; i++)
        act(path[i]);
}

/* Check that everything acknowledged is stored. */
static void check_store(void)
{
    struct tl_spool_reader *reader;
    struct tl_buf bytes = {0};
    uint64_t end = 0;
    if (world.acked == 0)
        return;
    if (tl_spool_end(world.memory, trace, &end, NULL) < 0 || end < world.acked) {
        wrong("acknowledged bytes are not in the store any more");
        return;
    }
    assert_int_equal(tl_spool_reader_new(&reader, world.memory, trace), TL_OK);
    while (bytes.n < world.acked)
        if (tl_spool_read(reader, bytes.n, world.acked, &bytes, NULL) < 0) {
            wrong("acknowledged bytes cannot be read");
            break;
        }
    for (size_t i = 0; i < bytes.n && i < world.acked; i++) {
        const char byte = (char)bytes.p[i];
        bool given = false;
        for (unsigned k = 1; k <= world.attempt; k++)
            given = given || world.given[k][i] == byte;
        if (!given)
            wrong("the store has a byte that was never sent");
        if (world.acknowledged[i] == 0)
            world.acknowledged[i] = byte;
        if (world.acknowledged[i] != byte)
            wrong("the store has another byte than the one that was acknowledged");
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&bytes);
}

/* Check that a fresh server can take over, whatever the others are doing, and finish. */
static void check_progress(void)
{
    struct server *const s = &world.servers[SERVERS];
    if (world.at >= 0)
        drop(&world.servers[world.at]);
    expire();
    connect_to(s);
    for (unsigned i = 0; i < FINISH && world.acked < world.bytes; i++) {
        if (stopped(s))
            step(stopped(s), false);
        else if (s->session.where == AT_RIG && world.sent < world.bytes)
            send_byte(s);
        else
            break;
    }
    if (world.acked < world.bytes)
        wrong("a server that takes over does not get to the capture's end");
    check_store();
}

/* ---- the search ---- */

static uint64_t state(void)
{
    uint64_t hash = store_hash();
    for (size_t i = 0; i < SERVERS; i++) {
        const struct server *const s = &world.servers[i];
        const uint64_t one[] = {s->seen,
                                s->connected,
                                s->attempt,
                                s->threads[0].where,
                                s->threads[1].where,
                                s->session.where,
                                (uint64_t)s->distrusts};
        hash = mix(hash, one, sizeof one);
    }
    const uint64_t rest[] = {(uint64_t)world.at,    world.answered, world.attempt,
                             world.acked,           world.sent,     world.held,
                             (uint64_t)world.owner, world.expiries, world.fails};
    hash = mix(hash, rest, sizeof rest);
    hash = mix(hash, world.acknowledged, sizeof world.acknowledged);
    return mix(hash, world.given, sizeof world.given);
}

struct set { /* a set of hashes; 0: empty slot */
    uint64_t *table;
    size_t n, size;
};

static bool is_new(struct set *set, uint64_t key)
{
    key += key == 0;
    if (2 * (set->n + 1) > set->size) {
        const size_t size = set->size ? 2 * set->size : 4096;
        uint64_t *const table = calloc(size, sizeof *table);
        for (size_t i = 0; i < set->size; i++)
            if (set->table[i]) {
                size_t at = set->table[i] % size;
                while (table[at])
                    at = (at + 1) % size;
                table[at] = set->table[i];
            }
        free(set->table);
        set->table = table;
        set->size = size;
    }
    size_t at = key % set->size;
    for (; set->table[at]; at = (at + 1) % set->size)
        if (set->table[at] == key)
            return false;
    set->table[at] = key;
    set->n++;
    return true;
}

static struct {
    struct set states;
    /* store contents with what the rig knows, from which a fresh server was already checked */
    struct set stores;
    enum rule rule;
    struct limits limits;
    struct action path[LONGEST];
    size_t longest;
    uint64_t moves;
} search;

static void print_path(size_t n)
{
    static const char *const names[] = {"connect", "send", "drop", "step", "fail", "expire"};
    for (size_t i = 0; i < n; i++)
        print_message("%s%s %u", i ? ", " : "  ", names[search.path[i].kind],
                      search.path[i].server);
    print_message("\n");
}

static void explore(size_t n)
{
    struct action actions[MAX];
    const size_t n_actions = possible(&search.limits, actions);
    search.longest = n > search.longest ? n : search.longest;
    assert_true(n < LONGEST);
    const uint64_t rig[] = {store_hash(), world.acked, world.attempt};
    const bool continues_from_here = is_new(&search.stores, mix(rig[0], rig, sizeof rig));
    /* The current world is used for the first action; it is created again for the others. */
    for (size_t i = 0; i < n_actions && !world.wrong[0]; i++) {
        if (i > 0) {
            end_world();
            replay(search.rule, search.path, n);
        }
        search.path[n] = actions[i];
        act(actions[i]);
        search.moves++;
        check_store();
        if (world.wrong[0])
            print_path(n + 1);
        else if (is_new(&search.states, state()))
            explore(n + 1);
    }
    if (world.wrong[0] || !continues_from_here)
        return;
    end_world();
    replay(search.rule, search.path, n);
    check_progress();
    if (world.wrong[0])
        print_path(n);
}

/* Returns whether all invariants hold in all states. */
static bool search_all(enum rule rule, struct limits limits)
{
    memset(&search, 0, sizeof search);
    world.wrong[0] = 0;
    search.rule = rule;
    search.limits = limits;
    world.reads = limits.reads;
    world.bytes = limits.bytes;
    make_world(rule);
    explore(0);
    end_world();
    print_message("%s: %zu states, %zu moves, paths of up to %zu\n",
                  world.wrong[0] ? world.wrong : "holds", search.states.n, (size_t)search.moves,
                  search.longest);
    free(search.states.table);
    free(search.stores.table);
    return !world.wrong[0];
}

/* With TL_FAULT_ROUNDS, including the large searches. */
static void rules_hold(void **nothing)
{
    static const struct limits limits[] = {
        {.connects = 3, .expiries = 2, .bytes = 1},
        {.connects = 2, .expiries = 1, .bytes = 2},
        {.connects = 2, .expiries = 1, .fails = 1, .bytes = 1},
        {.connects = 2, .expiries = 2, .bytes = 1, .reads = true},
        {.connects = 3, .expiries = 1, .bytes = 2},
        {.connects = 2, .expiries = 2, .bytes = 2, .fails = 1, .reads = true},
    };
    const size_t n = sizeof limits / sizeof *limits - (getenv("TL_FAULT_ROUNDS") ? 0 : 2);
    for (size_t i = 0; i < n; i++)
        assert_true(search_all(RULES_HOLD, limits[i]));
}

static void broken_rules_are_found(void **nothing)
{
    static const struct {
        enum rule rule;
        struct limits limits;
    } broken[] = {
        {WRITES_PAST_THE_FENCE, {.connects = 2, .expiries = 1, .bytes = 1}},
        {OPENS_BEFORE_IT_OWNS, {.connects = 2, .expiries = 1, .bytes = 1}},
        {RELEASES_BEFORE_IT_CLOSES, {.connects = 2, .expiries = 1, .bytes = 1}},
        {REMEMBERS_OF_FORMER_OWNING, {.connects = 3, .expiries = 1, .bytes = 2}},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_false(search_all(broken[i].rule, broken[i].limits));
}

static int set_up(void **nothing)
{
    return tl_backend_memory(&world.memory) < 0 ||
           tl_backend_memory_attach(world.memory, &world.unfenced) < 0;
}

static int tear_down(void **nothing)
{
    for (size_t i = 0; i <= SERVERS; i++)
        for (size_t k = 0; k <= THREADS; k++)
            free(routine(&world.servers[i], k)->stack);
    tl_backend_free(world.unfenced);
    tl_backend_free(world.memory);
    return 0;
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("skipped: sanitizers do not follow stacks that are changed");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_hold),
        cmocka_unit_test(broken_rules_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
