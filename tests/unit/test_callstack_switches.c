/* SPDX-License-Identifier: MIT */
/*
 * Stacks across everything that is not a call: signals, exceptions that replace each other, jumps
 * over frames, threads, coroutines.
 */
#include "callstack_world.h"

/* ---- exceptions ------------------------------------------------------------------------------ */

static void tail_chained_exceptions_replace_each_other(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    exception(w, AT('b', 4));
    for (char handler = 'p'; handler < 'u'; handler++) {
        const char expected[] = {'a', 'b', handler, 0};
        step(w, AT(handler, 0), RETURN);
        STACK(expected);
        note(w, TL_ITEM_ERET, 0);
        if (handler + 1 < 'u')
            exception(w, 0);
    }
    step(w, AT('b', 4), RETURN);
    STACK("ab");
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

/* The outer handler continues after those that follow the one that interrupted it. */
static void tail_chained_inside_a_handler(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), PLAIN);
    exception(w, AT('a', 4));
    step(w, AT('p', 0), PLAIN);
    exception(w, AT('p', 4));
    step(w, AT('q', 0), CALL);
    step(w, AT('r', 0), RETURN);
    step(w, AT('q', 4), RETURN);
    note(w, TL_ITEM_ERET, 0);
    exception(w, 0);
    step(w, AT('s', 0), RETURN);
    STACK("aps");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('p', 4), RETURN);
    STACK("ap");
    note(w, TL_ITEM_ERET, 0);
    exception(w, 0);
    step(w, AT('t', 0), RETURN);
    STACK("at");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

/* … where the interrupted code is not known, or the address is told again. */
static void tail_chained_from_the_first_handler(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('p', 0), RETURN);
    note(w, TL_ITEM_ERET, 0);
    exception(w, 0);
    step(w, AT('q', 0), RETURN);
    STACK("q");
    note(w, TL_ITEM_ERET, 0);
    exception(w, AT('b', 8));
    step(w, AT('r', 0), RETURN);
    STACK("br");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('b', 8), PLAIN);
    STACK("b");
}

static void late_and_preempting_exceptions(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), PLAIN);
    exception(w, AT('a', 4)); /* nothing of its handler runs before another one's */
    exception(w, AT('a', 4));
    step(w, AT('q', 0), RETURN);
    STACK("aq");
    note(w, TL_ITEM_ERET, 0);
    exception(w, 0); /* then its own */
    STACK("a");
    exception(w, AT('p', 0)); /* interrupted before its first instruction */
    step(w, AT('r', 0), RETURN);
    STACK("apr");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('p', 0), RETURN);
    STACK("ap");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

static void a_gap_inside_a_handler(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    exception(w, AT('b', 4));
    step(w, AT('p', 0), PLAIN);
    note(w, TL_ITEM_GAP, TL_GAP_OVERFLOW);
    step(w, AT('p', 40), RETURN);
    STACK("abp");
    note(w, TL_ITEM_ERET, 0);
    step(w, AT('b', 4), RETURN);
    STACK("ab");
}

/* ---- signals --------------------------------------------------------------------------------- */

/* a called b, which is interrupted at 4; user code alone is traced. */
static void interrupted(struct world *w)
{
    begin(w);
    mode(w, true);
    note(w, TL_ITEM_TRACE_ON, 0);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    off(w);
}

/* The handler at its end returns to code that makes the system call. */
static void sigreturn(struct world *w, char handler, uint64_t at)
{
    step(w, AT(handler, at), RETURN);
    step(w, AT('z', 0), PLAIN);
    off(w);
}

static void nothing_but_system_calls(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    for (unsigned i = 1; i < 5; i++) {
        step(w, AT('b', 4 * i), PLAIN);
        STACK("ab");
        off(w);
    }
}

static void a_signal(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    step(w, AT('p', 0), CALL);
    STACK("abp");
    step(w, AT('q', 0), PLAIN);
    off(w); /* a system call in the handler */
    step(w, AT('q', 4), RETURN);
    STACK("abpq");
    sigreturn(w, 'p', 4);
    STACK("abz");
    step(w, AT('b', 4), RETURN);
    STACK("ab");
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

static void signals_one_after_another(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    sigreturn(w, 'p', 0);
    sigreturn(w, 'q', 0); /* pending, delivered at once */
    sigreturn(w, 'q', 0);
    STACK("abz");
    step(w, AT('b', 4), PLAIN);
    STACK("ab");
}

static void nested_signals(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    step(w, AT('p', 0), CALL);
    step(w, AT('q', 0), PLAIN);
    off(w);
    step(w, AT('r', 0), PLAIN); /* another signal */
    off(w);
    step(w, AT('p', 0), PLAIN); /* one with the same handler */
    STACK("abpqrp");
    sigreturn(w, 'p', 4);
    sigreturn(w, 'r', 4);
    step(w, AT('q', 4), RETURN);
    STACK("abpq");
    sigreturn(w, 'p', 4);
    step(w, AT('b', 4), PLAIN);
    STACK("ab");
}

static void sigreturn_to_another_place(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    sigreturn(w, 'p', 0);
    step(w, AT('b', 0x80), PLAIN);
    STACK("ab");
    off(w);
    sigreturn(w, 'p', 0);
    step(w, AT('a', 0x80), PLAIN);
    STACK("a");
}

static void siglongjmp_out_of_a_handler(void **state)
{
    struct world *const w = *state;
    for (unsigned i = 0; i < 2; i++) {
        interrupted(w);
        step(w, AT('p', 0), CALL);
        step(w, AT('y', 0), i ? JUMP : RETURN);
        step(w, AT('a', 0x20), PLAIN);
        STACK("a");
    }
}

/* Frames that are only counted come back, too. */
static void interrupted_deep_in_recursion(void **state)
{
    struct world *const w = *state;
    enum { DEEP = TL_CALLSTACK_MAX + 300 };
    for (unsigned kernel = 0; kernel < 2; kernel++) {
        begin(w);
        mode(w, true);
        for (unsigned i = 1; i < DEEP; i++)
            step(w, AT('b', 0), CALL);
        step(w, AT('b', 0), PLAIN);
        assert_int_equal(tl_callstack_depth(&w->calls), DEEP);
        if (kernel)
            exception(w, AT('b', 4));
        else
            off(w);
        step(w, AT('p', 0), CALL);
        assert_int_equal(tl_callstack_depth(&w->calls), DEEP + 1);
        step(w, AT('q', 0), RETURN);
        assert_int_equal(tl_callstack_depth(&w->calls), DEEP + 2);
        if (kernel)
            step(w, AT('p', 4), ERET);
        else
            sigreturn(w, 'p', 4);
        step(w, AT('b', 4), RETURN);
        assert_int_equal(tl_callstack_depth(&w->calls), DEEP);
        for (unsigned i = 2; i < DEEP; i++)
            step(w, AT('b', 4), RETURN);
        step(w, AT('b', 4), PLAIN);
        assert_int_equal(tl_callstack_depth(&w->calls), 1);
    }
}

/* The same with a kernel that is traced. */
static void a_signal_through_the_kernel(void **state)
{
    struct world *const w = *state;
    begin(w);
    mode(w, true);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    exception(w, AT('b', 4));
    mode(w, false);
    step(w, AT('k', 0), CALL);
    step(w, AT('l', 0), RETURN);
    STACK("abkl");
    step(w, AT('k', 4), ERET);
    note(w, TL_ITEM_ERET, 0);
    mode(w, true);
    step(w, AT('p', 0), RETURN);
    STACK("abp");
    step(w, AT('z', 0), PLAIN);
    exception(w, AT('z', 4));
    mode(w, false);
    step(w, AT('k', 0), ERET);
    STACK("abzk");
    mode(w, true);
    step(w, AT('b', 4), RETURN);
    STACK("ab");
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

/* Filters that switch tracing off and on at functions are no signals: frames are not invented. */
static void filters_are_no_signals(void **state)
{
    struct world *const w = *state;
    interrupted(w);
    for (unsigned i = 0; i < 100; i++) {
        step(w, AT(i % 2 ? 'b' : 'a', 0), i % 3 ? PLAIN : RETURN);
        off(w);
    }
    assert_true(w->depth <= 2);
    begin(w); /* in a mode that is no program's */
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    off(w);
    step(w, AT('p', 0), PLAIN);
    STACK("p");
}

/* Code that is not traced calls functions that are. */
static void callbacks(void **state)
{
    struct world *const w = *state;
    begin(w);
    mode(w, true);
    step(w, AT('a', 0), CALL); /* something like qsort() */
    for (unsigned i = 0; i < 3; i++) {
        off(w);
        step(w, AT('c', 0), PLAIN);
        STACK("ac");
        step(w, AT('c', 4), RETURN);
    }
    off(w);
    step(w, AT('a', 4), PLAIN);
    STACK("a");
}

/* ---- jumps over frames ----------------------------------------------------------------------- */

static void longjmp_over_frames(void **state)
{
    struct world *const w = *state;
    for (unsigned i = 0; i < 2; i++) {
        begin(w);
        for (char f = 'a'; f < 'i'; f++)
            step(w, AT(f, 0), CALL);
        step(w, AT('y', 0), i ? JUMP : RETURN);
        step(w, AT('c', 0x100), RETURN);
        STACK("abc");
        step(w, AT('b', 4), PLAIN);
        STACK("ab");
    }
}

/* An indirect jump to the begin of a function is a tail call, also if that one is active. */
static void tail_calls_stay(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), CALL);
    step(w, AT('c', 0), JUMP);
    step(w, AT('b', 0), RETURN);
    STACK("abb");
    step(w, AT('b', 4), RETURN);
    STACK("ab");
}

/* ---- several stacks -------------------------------------------------------------------------- */

static void threads_of_a_process(void **state)
{
    struct world *const w = *state;
    begin(w);
    mode(w, true);
    thread(w, 1);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    for (unsigned i = 0; i < 3; i++) {
        off(w);
        thread(w, 2); /* runs the same functions */
        if (i == 0) {
            step(w, AT('d', 0), CALL);
            step(w, AT('b', 0), PLAIN);
        }
        step(w, AT('b', 4 + 4 * i), PLAIN);
        STACK("db");
        off(w);
        thread(w, 1);
        step(w, AT('b', 4 + 4 * i), PLAIN);
        STACK("ab");
    }
    off(w);
    thread(w, 2);
    step(w, AT('p', 0), PLAIN); /* it gets a signal */
    STACK("dbp");
    sigreturn(w, 'p', 4);
    step(w, AT('b', 16), RETURN);
    STACK("db");
    step(w, AT('d', 4), RETURN);
    STACK("d");
}

/* Tasks whose kernel is traced, told apart by where they continue. */
static void tasks_of_a_kernel(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    exception(w, AT('b', 4));
    step(w, AT('k', 0), ERET);
    step(w, AT('d', 0x10), CALL); /* another task */
    step(w, AT('e', 0), PLAIN);
    STACK("de");
    exception(w, AT('e', 4));
    step(w, AT('k', 0), ERET);
    step(w, AT('b', 4), PLAIN);
    STACK("ab");
    exception(w, AT('b', 8));
    step(w, AT('k', 0), ERET);
    step(w, AT('e', 4), RETURN);
    STACK("de");
    step(w, AT('d', 0x14), PLAIN);
    STACK("d");
}

static void tasks_that_cannot_be_told_apart(void **state)
{
    struct world *const w = *state;
    begin(w);
    for (char task = 'a'; task < 'c'; task++) {
        step(w, AT(task, 0x10), CALL);
        step(w, AT('f', 0), PLAIN);
        exception(w, AT('f', 4));
        step(w, AT('k', 0), ERET);
    }
    step(w, AT('h', 0x10), PLAIN);
    exception(w, AT('h', 0x14));
    step(w, AT('k', 0), ERET);
    step(w, AT('f', 4), PLAIN); /* of a or of b? */
    STACK("f");
}

/* swapcontext() returns on another stack; both call it from the same function. */
static void coroutines(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('y', 0), CALL);
    step(w, AT('s', 0), RETURN); /* to the begin of the other */
    step(w, AT('c', 0), CALL);
    step(w, AT('d', 0), CALL);
    STACK("cd");
    step(w, AT('y', 0), CALL);
    step(w, AT('s', 0), RETURN);
    step(w, AT('y', 4), RETURN); /* of which? */
    step(w, AT('a', 4), CALL);
    STACK("a");
    step(w, AT('y', 0), CALL);
    STACK("ay");
    step(w, AT('s', 0), RETURN);
    step(w, AT('y', 4), RETURN);
    step(w, AT('d', 4), RETURN);
    STACK("cd");
    step(w, AT('c', 4), CALL);
    STACK("c");
    step(w, AT('y', 0), CALL);
    step(w, AT('s', 0), RETURN);
    step(w, AT('y', 4), RETURN);
    step(w, AT('a', 8), PLAIN);
    STACK("a");
}

/* After lost trace the other stacks may not be as they were. */
static void lost_trace_ends_all_stacks(void **state)
{
    struct world *const w = *state;
    begin(w);
    step(w, AT('a', 0), CALL);
    step(w, AT('b', 0), PLAIN);
    exception(w, AT('b', 4));
    step(w, AT('k', 0), ERET);
    step(w, AT('d', 0x10), PLAIN);
    note(w, TL_ITEM_GAP, TL_GAP_OVERFLOW);
    step(w, AT('d', 0x20), PLAIN);
    exception(w, AT('d', 0x24));
    step(w, AT('k', 0), ERET);
    step(w, AT('b', 4), PLAIN);
    STACK("b");
}

int main(void)
{
    static struct world world;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(tail_chained_exceptions_replace_each_other, &world),
        cmocka_unit_test_prestate(tail_chained_inside_a_handler, &world),
        cmocka_unit_test_prestate(tail_chained_from_the_first_handler, &world),
        cmocka_unit_test_prestate(late_and_preempting_exceptions, &world),
        cmocka_unit_test_prestate(a_gap_inside_a_handler, &world),
        cmocka_unit_test_prestate(nothing_but_system_calls, &world),
        cmocka_unit_test_prestate(a_signal, &world),
        cmocka_unit_test_prestate(signals_one_after_another, &world),
        cmocka_unit_test_prestate(nested_signals, &world),
        cmocka_unit_test_prestate(sigreturn_to_another_place, &world),
        cmocka_unit_test_prestate(siglongjmp_out_of_a_handler, &world),
        cmocka_unit_test_prestate(interrupted_deep_in_recursion, &world),
        cmocka_unit_test_prestate(a_signal_through_the_kernel, &world),
        cmocka_unit_test_prestate(filters_are_no_signals, &world),
        cmocka_unit_test_prestate(callbacks, &world),
        cmocka_unit_test_prestate(longjmp_over_frames, &world),
        cmocka_unit_test_prestate(tail_calls_stay, &world),
        cmocka_unit_test_prestate(threads_of_a_process, &world),
        cmocka_unit_test_prestate(tasks_of_a_kernel, &world),
        cmocka_unit_test_prestate(tasks_that_cannot_be_told_apart, &world),
        cmocka_unit_test_prestate(coroutines, &world),
        cmocka_unit_test_prestate(lost_trace_ends_all_stacks, &world),
    };
    world.image = image_of_functions();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tl_image_free(world.image);
    return failed;
}
