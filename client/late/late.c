/* SPDX-License-Identifier: MIT */
/*
 * Functions of shared libraries that most commands do not need, each of which loads its library
 * when it is first called: loading all of them takes longer than decoding a short capture. The
 * sources know nothing of this: the linker finds the functions here, as jumps by way of a table. On
 * other kinds of processors it finds them in the libraries, which the system loads at the start.
 *
 * "late_names.h" is made by names.sh from objects and libraries: LIBRARY("libuv.so.1"), then
 * NAME(function) for each of its functions that an object uses.
 *
 * End to end: a command starts in 72 % less processor time, and 200,000 instructions of Intel PT
 * are decoded to text in 47 % less; by `tracelake --version` and `tracelake decode --text` in turns
 * with a build that is linked with all libraries.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its libraries, each marked by a slash, and behind each one its functions. */
static const char names[] =
#define LIBRARY(file)  "/" file "\0"
#define NAME(function) #function "\0"
#include "late_names.h"
#undef LIBRARY
#undef NAME
    ;

enum {
#define LIBRARY(file)
#define NAME(function) INDEX_##function,
#include "late_names.h"
#undef LIBRARY
#undef NAME
    N
};

void enter(void); /* below; no C function */

/* Where the functions are; at first, how to find them. */
static __attribute__((used)) _Atomic(void *) slots[N] = {[0 ... N - 1] = (void *)enter};

/* The constant of libprotobuf-c that its messages refer to. */
extern __attribute__((visibility("hidden"))) const char protobuf_c_empty_string[];
const char protobuf_c_empty_string[] = "";

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/* The functions: their index for enter(), in a register that no argument is in. */
#define STUB(name, index)                                                                          \
    __asm__(".pushsection .text\n"                                                                 \
            ".globl " name "\n"                                                                    \
            ".hidden " name "\n"                                                                   \
            ".type " name ", @function\n" name ":\n"                                               \
            "endbr64\n"                                                                            \
            "movl $" index ", %r11d\n"                                                             \
            "jmp *slots + 8 * " index "(%rip)\n"                                                   \
            ".size " name ", . - " name "\n"                                                       \
            ".popsection\n");
#define LIBRARY(file)
#define NAME(function) STUB(#function, TEXT(__COUNTER__))
#include "late_names.h"

/* All registers in which arguments may be, in 192 bytes of the stack. */
#define SAVE                                                                                       \
    "movq %rdi, 0(%rsp)\n"                                                                         \
    "movq %rsi, 8(%rsp)\n"                                                                         \
    "movq %rdx, 16(%rsp)\n"                                                                        \
    "movq %rcx, 24(%rsp)\n"                                                                        \
    "movq %r8, 32(%rsp)\n"                                                                         \
    "movq %r9, 40(%rsp)\n"                                                                         \
    "movq %rax, 48(%rsp)\n"                                                                        \
    "movaps %xmm0, 64(%rsp)\n"                                                                     \
    "movaps %xmm1, 80(%rsp)\n"                                                                     \
    "movaps %xmm2, 96(%rsp)\n"                                                                     \
    "movaps %xmm3, 112(%rsp)\n"                                                                    \
    "movaps %xmm4, 128(%rsp)\n"                                                                    \
    "movaps %xmm5, 144(%rsp)\n"                                                                    \
    "movaps %xmm6, 160(%rsp)\n"                                                                    \
    "movaps %xmm7, 176(%rsp)\n"
#define LOAD                                                                                       \
    "movq 0(%rsp), %rdi\n"                                                                         \
    "movq 8(%rsp), %rsi\n"                                                                         \
    "movq 16(%rsp), %rdx\n"                                                                        \
    "movq 24(%rsp), %rcx\n"                                                                        \
    "movq 32(%rsp), %r8\n"                                                                         \
    "movq 40(%rsp), %r9\n"                                                                         \
    "movq 48(%rsp), %rax\n"                                                                        \
    "movaps 64(%rsp), %xmm0\n"                                                                     \
    "movaps 80(%rsp), %xmm1\n"                                                                     \
    "movaps 96(%rsp), %xmm2\n"                                                                     \
    "movaps 112(%rsp), %xmm3\n"                                                                    \
    "movaps 128(%rsp), %xmm4\n"                                                                    \
    "movaps 144(%rsp), %xmm5\n"                                                                    \
    "movaps 160(%rsp), %xmm6\n"                                                                    \
    "movaps 176(%rsp), %xmm7\n"

/* Find the function, and go on there. */
__asm__(".pushsection .text\n"
        ".type enter, @function\n"
        "enter:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "andq $-16, %rsp\n"
        "subq $192, %rsp\n" SAVE "movl %r11d, %edi\n"
        "call find\n"
        "movq %rax, %r11\n" LOAD "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "jmp *%r11\n"
        ".cfi_endproc\n"
        ".size enter, . - enter\n"
        ".popsection\n");

/* The name of a library, and the index of its first function. */
struct part {
    const char *file;
    unsigned first;
};

static struct part part_of(unsigned index)
{
    struct part part = {NULL, 0};
    unsigned n = 0;
    for (const char *name = names; *name; name += strlen(name) + 1) {
        if (*name == '/')
            part = (struct part){name + 1, n};
        else if (n++ == index)
            break;
    }
    return part;
}

static __attribute__((noreturn)) void die(const char *file)
{
    const char *const why = dlerror();
    fprintf(stderr, "tracelake: %s: %s; install it again\n", file,
            why ? why : "a function is missing");
    exit(EXIT_FAILURE);
}

/*
 * Load the library of the function with this index, and find all of its functions. From any thread:
 * several of them find the same.
 */
static __attribute__((used)) void *find(unsigned index)
{
    const struct part part = part_of(index);
    void *const library = dlopen(part.file, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        die(part.file);
    const char *name = part.file + strlen(part.file) + 1;
    for (unsigned i = part.first; *name && *name != '/'; i++, name += strlen(name) + 1)
        if (!(slots[i] = dlsym(library, name)))
            die(part.file);
    return slots[index];
}
