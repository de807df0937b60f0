/* SPDX-License-Identifier: MIT */
/*
 * The clock of a lake in its store. The state is stored every ten minutes, and when the lake is
 * closed, by servers whose clock is settled: what a wrong one counts is not left to others.
 */
#include "base/journal.h"
#include "lake/lakeint.h"
#include "lake/summed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAVE_NS     INT64_C(600000000000)
#define DAY_NS      INT64_C(86400000000000)
#define DAILY_PART  4
#define DAILY_LEAST 8

static const char key[] = "k/clock";

static bool read_file(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

void tl_lake_boot(char out[static TL_BOOT_BYTES])
{
    (void)!read_file("/proc/sys/kernel/random/boot_id", out, TL_BOOT_BYTES);
    out[strcspn(out, "\n")] = '\0';
}

static void read_times(struct tl_age_times *out)
{
    char text[64];
    *out = (struct tl_age_times){tl_wall_ns(), tl_monotonic_ns(), -1, ""};
    if (read_file("/proc/uptime", text, sizeof text))
        out->uptime = (int64_t)(strtod(text, NULL) * 1e9);
    tl_lake_boot(out->boot);
}

int64_t tl_lake_now(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->clock_lock);
    const int64_t now = tl_age_now(&lake->clock, tl_monotonic_ns());
    pthread_mutex_unlock(&lake->clock_lock);
    return now;
}

int64_t tl_lake_age(struct tl_lake *lake, int64_t stamp, int64_t now_ns)
{
    pthread_mutex_lock(&lake->clock_lock);
    const int64_t age = tl_age_of(&lake->clock, stamp, now_ns);
    pthread_mutex_unlock(&lake->clock_lock);
    return age;
}

bool tl_lake_clock_settled(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->clock_lock);
    const bool settled = tl_age_settled(&lake->clock);
    pthread_mutex_unlock(&lake->clock_lock);
    return settled;
}

bool tl_lake_may_age_out(struct tl_lake *lake, size_t total, int64_t now_ns)
{
    struct tl_age_clock *const clock = &lake->clock;
    pthread_mutex_lock(&lake->clock_lock);
    if (now_ns - clock->window >= DAY_NS || now_ns < clock->window) {
        clock->window = now_ns;
        clock->removed = 0;
    }
    const uint64_t part = total / DAILY_PART;
    const bool may = clock->removed < (part > DAILY_LEAST ? part : DAILY_LEAST);
    pthread_mutex_unlock(&lake->clock_lock);
    return may;
}

void tl_lake_aged_out(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->clock_lock);
    lake->clock.removed++;
    pthread_mutex_unlock(&lake->clock_lock);
}

static void report(enum tl_age_event event, int64_t by)
{
    static const char *const texts[] = {
        [TL_AGE_STEPPED] = "the machine's clock differs: nothing is removed because of its age",
        [TL_AGE_AGREES] = "the machine's clock is right again: retention goes on",
        [TL_AGE_BELIEVED] = "the machine's clock has lasted and is believed: retention goes on"};
    struct tl_journal_line line;
    if (event == TL_AGE_SAME)
        return;
    tl_journal_begin(&line, event == TL_AGE_STEPPED ? TL_JOURNAL_WARNING : TL_JOURNAL_INFO,
                     texts[event]);
    tl_journal_text(&line, "direction", by < 0 ? "behind" : "ahead");
    tl_journal_seconds(&line, "seconds", (uint64_t)(by < 0 ? -by : by));
    tl_journal_end(&line);
}

/* Store the state if it is settled. If it cannot be stored, some minutes count less. */
static bool store(struct tl_lake *lake, const struct tl_age_times *times)
{
    char text[TL_AGE_TEXT];
    pthread_mutex_lock(&lake->clock_lock);
    const bool settled = tl_age_settled(&lake->clock);
    tl_age_text(&lake->clock, times, text);
    pthread_mutex_unlock(&lake->clock_lock);
    const struct tl_buf state = {.p = (uint8_t *)text, .n = strlen(text)};
    return settled && tl_summed_put(lake, key, &state, NULL) >= 0;
}

static void save(struct tl_lake *lake, const struct tl_age_times *times)
{
    if (store(lake, times))
        lake->clock_saved = times->monotonic;
}

void tl_lake_clock_open(struct tl_lake *lake)
{
    struct tl_age_times times;
    struct tl_buf text = {0};
    if (!lake->times)
        lake->times = read_times;
    lake->times(&times);
    const bool has = tl_summed_get(lake, key, &text) >= 0;
    pthread_mutex_lock(&lake->clock_lock);
    const enum tl_age_event event = tl_age_begin(&lake->clock, has ? (char *)text.p : NULL, &times);
    const int64_t by = times.wall - lake->clock.now;
    pthread_mutex_unlock(&lake->clock_lock);
    tl_buf_fini(&text);
    report(event, by);
}

int tl_lake_clock_check(struct tl_lake *lake, bool repair)
{
    struct tl_age_times times;
    struct tl_buf text = {0};
    const int r = tl_summed_get(lake, key, &text);
    tl_buf_fini(&text);
    if (r == TL_BAD && repair && lake->times) {
        lake->times(&times);
        store(lake, &times);
    }
    return r == TL_NOTFOUND ? TL_OK : r;
}

void tl_lake_clock_tick(struct tl_lake *lake)
{
    struct tl_age_times times;
    int64_t by;
    lake->times(&times);
    pthread_mutex_lock(&lake->clock_lock);
    const enum tl_age_event event = tl_age_tick(&lake->clock, &times, &by);
    pthread_mutex_unlock(&lake->clock_lock);
    report(event, by);
    if (!lake->clock_saved || event == TL_AGE_BELIEVED ||
        times.monotonic - lake->clock_saved >= SAVE_NS)
        save(lake, &times);
}

void tl_lake_clock_close(struct tl_lake *lake)
{
    struct tl_age_times times;
    if (!lake->times)
        return;
    lake->times(&times);
    save(lake, &times);
}

void tl_lake_set_times(struct tl_lake *lake, tl_lake_times *times)
{
    lake->times = times;
}
