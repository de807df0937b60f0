/* SPDX-License-Identifier: MIT */
/*
 * A real folder on a failing medium: at each change of a file in turn, by our own code or by
 * SQLite, the medium is full, broken, or writes only half; or the power fails, and only synced data
 * remains.
 */
#include "faults.h"
#include "medium.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char base[] = "/dev/shm/tl-folder-XXXXXX";
static char dir[64];

static void make_base(void)
{
    if (!mkdtemp(base)) {
        snprintf(base, sizeof(base), "/tmp/tl-folder-XXXXXX");
        assert_non_null(mkdtemp(base));
    }
    snprintf(dir, sizeof(dir), "%s/lake", base);
}

static void empty_base(void)
{
    char command[128];
    medium_watch(NULL);
    snprintf(command, sizeof(command), "rm -rf '%s'/*", base);
    assert_int_equal(system(command), 0);
}

static int try_open(struct tl_lake **lake, struct tl_fail *fail)
{
    const struct tl_lake_options options = fault_options(dir, false);
    *fail = (struct tl_fail){0};
    return tl_lake_open(lake, &options, fail);
}

/* Refuse changes; nothing is restarted, except that a refused opening is repeated. */
static uint64_t refuse_one(const struct capture *c, uint64_t *random, uint64_t after,
                           uint64_t count, enum medium_fault fault)
{
    struct tl_lake *lake;
    struct tl_fail fail;
    unsigned tries = 0;
    medium_watch(dir);
    const uint64_t before = medium_changes();
    medium_refuse(after, count, fault);
    while (try_open(&lake, &fail) < 0) {
        assert_true(fail.code == TL_NOSPACE || fail.code == TL_IO);
        assert_true(strlen(fail.text) > 10);
        assert_true(++tries < 100);
    }
    while (!fault_push(lake, "t", c, random, NULL, NULL))
        assert_true(++tries < 1000);
    if (count > 0)
        fault_house(lake, c, random);
    medium_refuse(0, 0, MEDIUM_EIO);
    while (!fault_push(lake, "t", c, random, NULL, NULL))
        assert_true(++tries < 1000);
    fault_check(lake, "t", c);
    tl_lake_close(lake);
    const uint64_t changes = medium_changes() - before;
    /* And after a restart. */
    medium_watch(NULL);
    assert_int_equal(try_open(&lake, &fail), TL_OK);
    fault_check(lake, "t", c);
    tl_lake_close(lake);
    empty_base();
    return changes;
}

static void refusals_are_overcome(void **state)
{
    (void)state;
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 12000);
    const uint64_t changes = refuse_one(&c, &random, 0, 0, MEDIUM_EIO);
    assert_true(changes > 50);
    const unsigned rounds = fault_rounds(40);
    for (unsigned i = 0; i < rounds; i++)
        refuse_one(&c, &random, fault_random(&random) % (2 * changes),
                   1 + fault_random(&random) % 6, (enum medium_fault)(fault_random(&random) % 3));
    print_message("%llu changes in an undisturbed run, %u disturbed ones\n",
                  (unsigned long long)changes, rounds);
    capture_free(&c);
}

/* ---- power ---------------------------------------------------------------------------------- */

static void report(void *context, uint64_t offset)
{
    const ssize_t n = write(*(int *)context, &offset, sizeof(offset));
    if (n < 0)
        _exit(3);
}

/* Nothing is refused before the power fails. At that moment other threads would see the folder
 * replaced, so they wait for the end. */
static void end_life(int status)
{
    sleep(60);
    _exit(status);
}

/*
 * With the power goes the machine, and with it the boot that a mark of what was being decoded
 * names (decoding/suspect.h): such an end is not the trace's.
 */
static void end_boot(void)
{
    char command[320];
    snprintf(command, sizeof(command), "rm -f '%s/turns'", dir);
    assert_int_equal(system(command), 0);
}

/* Run one life in a child process until the power fails. Returns the last acknowledged offset. */
static uint64_t live(const struct capture *c, uint64_t *random)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    uint64_t seed = fault_random(random);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct tl_lake *lake;
        struct tl_fail fail;
        close(ends[0]);
        mkdir(dir, 0777);
        medium_watch(dir);
        medium_track(fault_random(&seed));
        medium_refuse(fault_random(&seed) % 400, 1, MEDIUM_POWER);
        if (try_open(&lake, &fail) < 0) {
            fprintf(stderr, "%s\n", fail.text);
            end_life(2);
        }
        if (!fault_push(lake, "t", c, &seed, report, &ends[1]))
            end_life(4);
        for (;;) {
            fault_house(lake, c, &seed);
            usleep(500);
        }
    }
    close(ends[1]);
    uint64_t acked = 0, next;
    while (read(ends[0], &next, sizeof(next)) == sizeof(next))
        acked = next;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != MEDIUM_CUT)
        fail_msg("the process ended by itself: %x", (unsigned)status);
    end_boot();
    return acked;
}

static void power_cuts_lose_nothing(void **state)
{
    (void)state;
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 12000);
    const unsigned rounds = fault_rounds(12);
    unsigned cuts = 0;
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t acked = 0;
        for (unsigned i = 0; i < 1 + fault_random(&random) % 5; i++, cuts++) {
            const uint64_t now = live(&c, &random);
            acked = now > acked ? now : acked;
        }
        struct tl_lake *lake;
        struct tl_fail fail;
        if (try_open(&lake, &fail) < 0)
            fail_msg("%s", fail.text);
        uint64_t durable;
        bool complete;
        if (acked > 0) {
            assert_int_equal(tl_lake_offset(lake, "t", &durable, &complete), TL_OK);
            assert_true(durable >= acked);
        }
        assert_true(fault_push(lake, "t", &c, &random, NULL, NULL));
        fault_check(lake, "t", &c);
        tl_lake_close(lake);
        empty_base();
    }
    print_message("%u power cuts in %u captures\n", cuts, rounds);
    capture_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_overcome),
        cmocka_unit_test(power_cuts_lose_nothing),
    };
    make_base();
    const int r = cmocka_run_group_tests(tests, NULL, NULL);
    empty_base();
    rmdir(base);
    return r;
}
