/* SPDX-License-Identifier: MIT */
/* A process that pushes and decodes on a real folder is killed at random moments, and another one
 * continues. The final result is the same as without kills. */
#include "faults.h"

#include <signal.h>
#include <sys/wait.h>

static struct tl_lake *open_folder(const char *dir, bool is_virtual)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = fault_options(dir, is_virtual);
    /* The lease of a killed process is released, but not immediately. */
    for (int i = 0; i < 240000; i++) {
        const int r = tl_lake_open(&lake, &options, &fail);
        if (r >= 0)
            return lake;
        if (r != TL_DENIED)
            break;
        usleep(1000);
    }
    fprintf(stderr, "%s\n", fail.text);
    return NULL;
}

/* In the child: report durable bytes through the pipe. */
static void report(void *context, uint64_t offset)
{
    const ssize_t n = write(*(int *)context, &offset, sizeof(offset));
    if (n < 0)
        _exit(3);
}

static void child(const char *dir, bool is_virtual, const struct capture *c, uint64_t seed,
                  int pipe)
{
    struct tl_lake *lake = open_folder(dir, is_virtual);
    if (!lake || !fault_push(lake, "t", c, &seed, report, &pipe))
        _exit(2);
    for (;;) { /* decoding continues until the process is killed */
        fault_house(lake, c, &seed);
        usleep(1000);
    }
}

/* The child's last report. */
static uint64_t listen_to(int pipe)
{
    uint64_t offset = 0, next;
    while (read(pipe, &next, sizeof(next)) == sizeof(next))
        offset = next;
    return offset;
}

static uint64_t kill_one(const char *dir, bool is_virtual, const struct capture *c,
                         uint64_t *random)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const uint64_t seed = fault_random(random);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(dir, is_virtual, c, seed, ends[1]);
    }
    close(ends[1]);
    usleep((unsigned)(fault_random(random) % 60000));
    kill(pid, SIGKILL);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        fail_msg("the child ended by itself with status %d", WEXITSTATUS(status));
    const uint64_t acked = listen_to(ends[0]);
    close(ends[0]);
    return acked;
}

static void remove_folder(const char *dir)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

static void kill_many(bool is_virtual)
{
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 20000);
    const unsigned rounds = fault_rounds(12);
    unsigned kills = 0, made = 0;
    for (unsigned round = 0; round < rounds; round++) {
        char dir[] = "/tmp/tl-faults-XXXXXX";
        assert_non_null(mkdtemp(dir));
        uint64_t acked = 0;
        for (unsigned i = 0; i < 1 + fault_random(&random) % 5; i++, kills++) {
            const uint64_t now = kill_one(dir, is_virtual, &c, &random);
            acked = now > acked ? now : acked;
        }
        struct tl_lake *lake = open_folder(dir, is_virtual);
        assert_non_null(lake);
        uint64_t durable;
        bool complete;
        if (acked > 0) {
            assert_int_equal(tl_lake_offset(lake, "t", &durable, &complete), TL_OK);
            assert_true(durable >= acked);
        }
        assert_true(fault_push(lake, "t", &c, &random, NULL, NULL));
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
        fault_check(lake, "t", &c);
        made += fault_virtual(lake, "t");
        tl_lake_close(lake);
        remove_folder(dir);
    }
    assert_true((made > 0) == is_virtual);
    print_message("%u kills in %u captures\n", kills, rounds);
    capture_free(&c);
}

static void kills_lose_nothing(void **state)
{
    (void)state;
    kill_many(false);
}

static void kills_lose_nothing_of_virtual_shards(void **state)
{
    (void)state;
    kill_many(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_lose_nothing),
        cmocka_unit_test(kills_lose_nothing_of_virtual_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
