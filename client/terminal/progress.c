/* SPDX-License-Identifier: MIT */
/*
 * Draws a progress line on standard error, overwritten in place. It appears only after a second and
 * only on a terminal, so that short commands and logs stay free of it.
 */
#include "terminal/progress.h"

#include "base/now.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FIRST_MS = 1000, EVERY_MS = 200 };

static struct {
    pthread_mutex_t lock;
    bool on, shown, first;
    char what[96];
    const char *unit;
    int64_t begun, next; /* ms */
    uint64_t from;       /* value at the first step: the rate excludes it */
    pthread_t clock;     /* shows the elapsed time */
    bool ticking;        /* the clock thread is running */
    pthread_cond_t over;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

bool tl_progress_wanted(void)
{
    return isatty(STDERR_FILENO);
}

static void begin_locked(const char *what, const char *unit)
{
    line.on = line.first = true;
    snprintf(line.what, sizeof line.what, "%s", what);
    line.unit = unit;
    line.begun = tl_monotonic_ms();
    line.next = line.begun + FIRST_MS;
}

void tl_progress_begin(const char *what, const char *unit)
{
    if (!tl_progress_wanted())
        return;
    pthread_mutex_lock(&line.lock);
    begin_locked(what, unit);
    pthread_mutex_unlock(&line.lock);
}

static void clear_locked(void)
{
    if (line.shown)
        fputs("\r\033[K", stderr);
    line.shown = false;
}

/* At most as wide as the terminal: a line that wraps cannot be overwritten. */
static void print_locked(const char *text)
{
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
                       ? (size_t)size.ws_col - 1
                       : 79;
    size_t n = 0;
    for (; text[n] && width > 0; n++)
        width -= ((unsigned char)text[n] & 0xc0) != 0x80;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    fprintf(stderr, "\r%.*s\033[K", (int)n, text);
    fflush(stderr);
    line.shown = true;
}

static void show_locked(uint64_t done, uint64_t total, const char *more, int64_t now)
{
    const bool bytes = strcmp(line.unit, "B") == 0;
    const double scale = bytes ? 1 << 20 : 1e6;
    const char *const unit = bytes ? "MiB" : line.unit;
    const char *const million = bytes ? "" : "M ";
    const double seconds = (double)(now - line.begun) / 1000;
    char text[512];
    int n = snprintf(text, sizeof text, "%s: %.1f", line.what, (double)done / scale);
    if (total)
        n += snprintf(text + n, sizeof text - (size_t)n, " of %.1f", (double)total / scale);
    n += snprintf(text + n, sizeof text - (size_t)n, " %s%s", million, unit);
    if (total)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %.0f %%",
                      100.0 * (double)done / (double)total);
    n += snprintf(text + n, sizeof text - (size_t)n, ", %.1f %s%s/s",
                  (double)(done - line.from) / scale / seconds, million, unit);
    if (more && *more)
        snprintf(text + n, sizeof text - (size_t)n, ", %s", more);
    print_locked(text);
}

void tl_progress_step(uint64_t done, uint64_t total, const char *more)
{
    if (!line.on)
        return;
    pthread_mutex_lock(&line.lock);
    const int64_t now = tl_monotonic_ms();
    if (line.on && line.first)
        line.from = done;
    line.first = false;
    if (line.on && now >= line.next) {
        line.next = now + EVERY_MS;
        show_locked(done, total, more, now);
    }
    pthread_mutex_unlock(&line.lock);
}

static void *tick(void *context)
{
    pthread_mutex_lock(&line.lock);
    while (line.on) {
        char text[128];
        (void)tl_cond_wait_until(&line.over, &line.lock, tl_monotonic_ns() + TL_NS_PER_S);
        if (!line.on || tl_monotonic_ms() < line.next)
            continue;
        snprintf(text, sizeof text, "%s: %lld s", line.what,
                 (long long)(tl_monotonic_ms() - line.begun) / 1000);
        print_locked(text);
    }
    pthread_mutex_unlock(&line.lock);
    return NULL;
}

void tl_progress_wait(const char *what)
{
    if (!tl_progress_wanted())
        return;
    pthread_mutex_lock(&line.lock);
    begin_locked(what, "s");
    /* Signals are left to the waiting thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    line.ticking = pthread_create(&line.clock, NULL, tick, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    line.on = line.ticking;
    pthread_mutex_unlock(&line.lock);
}

void tl_progress_end(void)
{
    pthread_mutex_lock(&line.lock);
    clear_locked();
    const bool ticking = line.ticking;
    line.on = line.ticking = false;
    pthread_cond_signal(&line.over);
    pthread_mutex_unlock(&line.lock);
    if (ticking)
        pthread_join(line.clock, NULL);
}

void tl_progress_hide(void)
{
    pthread_mutex_lock(&line.lock);
    clear_locked();
    pthread_mutex_unlock(&line.lock);
}
