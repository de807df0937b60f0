/* SPDX-License-Identifier: MIT */
/* A process that is stopped while its lease expires cannot append anything when it continues. */
#include "rados/rados.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORD = 1000, LIMIT_S = 240 };

static char url[1200];

/* Append records consisting of one letter as long as the lease holds; each synced one is reported
 * as a byte. */
static int append(char letter, int reported)
{
    struct tl_backend *b;
    struct tl_lease *lease;
    struct tl_log *log;
    char bytes[RECORD];
    uint64_t size;
    memset(bytes, letter, sizeof bytes);
    const struct tl_bytes part = {(const uint8_t *)bytes, sizeof bytes};
    if (tl_backend_rados(&b, url, NULL) < 0 || b->ops->lease(b, "rig", &lease, NULL) < 0 ||
        b->ops->log_open(b, "r/rig/0", true, &log, &size, NULL) < 0)
        return 1;
    for (;;) {
        int r = log->ops->log_write(log, size, &part, 1, NULL);
        if (r >= 0)
            r = log->ops->log_sync(log, NULL);
        if (r < 0)
            return r == TL_DENIED ? 0 : 2;
        size += RECORD;
        if (write(reported, &letter, 1) != 1)
            return 3;
    }
}

static void take(struct tl_backend *b, struct tl_lease **lease)
{
    const time_t end = time(NULL) + LIMIT_S;
    while (b->ops->lease(b, "rig", lease, NULL) == TL_DENIED) {
        assert_true(time(NULL) < end);
        /* the cluster sends no notification */
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    assert_non_null(*lease);
}

static void a_stopped_holder_is_fenced(void **state)
{
    const char *const pool = getenv("TL_RADOS");
    struct tl_backend *b;
    struct tl_lease *lease = NULL;
    struct tl_log *log;
    struct tl_buf out = {0};
    uint64_t size;
    int pipes[2], status;
    char reported[4096];
    (void)state;
    if (!pool) {
        print_message("skipped: TL_RADOS is not set\n");
        skip();
    }
    snprintf(url, sizeof url, "%s&namespace=fence-%d&index=3&lease=1", pool, (int)getpid());
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(append('a', pipes[1]));
    close(pipes[1]);
    for (int i = 0; i < 20; i++) /* it has begun its work */
        assert_int_equal(read(pipes[0], reported, 1), 1);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(tl_backend_rados(&b, url, NULL), TL_OK);
    take(b, &lease);
    /* Everything reported as durable is stored; possibly one more record, whose acknowledgement was
     * lost. */
    assert_int_equal(b->ops->log_open(b, "r/rig/0", true, &log, &size, NULL), TL_OK);
    const uint64_t taken_over = size;
    char bytes[RECORD];
    memset(bytes, 'b', sizeof bytes);
    const struct tl_bytes part = {(const uint8_t *)bytes, sizeof bytes};
    for (int i = 0; i < 5; i++, size += RECORD) {
        assert_int_equal(log->ops->log_write(log, size, &part, 1, NULL), TL_OK);
        assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    }
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("it ended with signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0); /* TL_DENIED */
    uint64_t acked = 20;
    for (ssize_t n; (n = read(pipes[0], reported, sizeof reported)) > 0;)
        acked += (uint64_t)n;
    assert_true(taken_over == acked * RECORD || taken_over == (acked + 1) * RECORD);
    assert_int_equal(log->ops->log_write(log, size, &part, 1, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    log->ops->log_close(log);
    assert_int_equal(tl_backend_get_all(b, "r/rig/0", &out, NULL), TL_OK);
    assert_int_equal(out.n, taken_over + 6 * RECORD);
    for (size_t i = 0; i < out.n; i++)
        assert_int_equal(out.p[i], i < taken_over ? 'a' : 'b');
    tl_buf_fini(&out);
    b->ops->lease_release(lease);
    tl_backend_free(b);
    close(pipes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stopped_holder_is_fenced)};
    signal(SIGPIPE, SIG_IGN); /* see rados.h */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
