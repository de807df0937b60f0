/* SPDX-License-Identifier: MIT */
/*
 * Copies members between structs that name them alike: a row of the lake, a message, a struct of
 * the client library. The compiler checks each member as in an assignment.
 */
#ifndef TL_MEMBERS_H
#define TL_MEMBERS_H

/*
 * TL_COPY_MEMBERS(to, from, pc, calls, self) is to->pc = from->pc, to->calls = from->calls and
 * to->self = from->self. `to` and `from` are pointers, and evaluated once for each member, of which
 * there are 1 to 12.
 */
#define TL_COPY_MEMBERS(to, from, ...)                                                             \
    do {                                                                                           \
        TL_MEMBERS_CHOOSE(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)                   \
        (to, from, __VA_ARGS__)                                                                    \
    } while (0)

/* The macro for as many members as are given: these push its number to the place of `n`. */
#define TL_MEMBERS_CHOOSE(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, n, ...) TL_MEMBERS_##n

#define TL_MEMBERS_1(to, from, name) (to)->name = (from)->name;
#define TL_MEMBERS_2(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_1(to, from, __VA_ARGS__)
#define TL_MEMBERS_3(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_2(to, from, __VA_ARGS__)
#define TL_MEMBERS_4(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_3(to, from, __VA_ARGS__)
#define TL_MEMBERS_5(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_4(to, from, __VA_ARGS__)
#define TL_MEMBERS_6(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_5(to, from, __VA_ARGS__)
#define TL_MEMBERS_7(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_6(to, from, __VA_ARGS__)
#define TL_MEMBERS_8(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_7(to, from, __VA_ARGS__)
#define TL_MEMBERS_9(to, from, name, ...)                                                          \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_8(to, from, __VA_ARGS__)
#define TL_MEMBERS_10(to, from, name, ...)                                                         \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_9(to, from, __VA_ARGS__)
#define TL_MEMBERS_11(to, from, name, ...)                                                         \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_10(to, from, __VA_ARGS__)
#define TL_MEMBERS_12(to, from, name, ...)                                                         \
    TL_MEMBERS_1(to, from, name) TL_MEMBERS_11(to, from, __VA_ARGS__)

#endif
