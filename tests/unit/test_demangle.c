/* SPDX-License-Identifier: MIT */
/* Names of C++ and Rust, hostile ones among them; parts of names; names that must fit. */
#include "image/demangle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *mangled, const char *want)
{
    char out[TL_DEMANGLED];
    assert_int_equal(tl_demangle(mangled, out), strlen(want));
    assert_string_equal(out, want);
}

static void names(void **state)
{
    (void)state;
    expect("_ZNSt6vectorIiSaIiEE9push_backEOi",
           "std::vector<int, std::allocator<int> >::push_back(int&&)");
    expect("_Z1fv.part.0", "f() [clone .part.0]");
    expect("__Z1fv", "f()");
    expect("_Z1fv@plt", "f()@plt");
    expect("_ZNSt8ios_base4InitC1Ev@@GLIBCXX_3.4", "std::ios_base::Init::Init()@@GLIBCXX_3.4");
    expect("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    expect("_ZN5alloc7raw_vec12Buf$LT$T$GT$3new17h0123456789abcdefE",
           "alloc::raw_vec::Buf<T>::new");
    expect("_RNvC6_123foo3bar", "123foo::bar");
    expect("_RNvNtCsbmNqQUJIY6D_4core3fmt5write", "core::fmt::write");
    static const char *const plain[] = {"main",        "",    "_", "_Z",   "_Zzz", "_R", "_start",
                                        "__libc_main", "_ZN", "i", "Z1fv", "_R_",  "$x", "@plt"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        expect(plain[i], "");
}

/* Each part doubles the output: 200 bytes give gigabytes. */
static size_t make_bomb(char *out, unsigned parts)
{
    size_t n = (size_t)sprintf(out, "_Z1f1aIiiE");
    for (unsigned i = 0; i < parts; i++) {
        char before[8];
        if (i == 0)
            strcpy(before, "S_");
        else
            sprintf(before, "S%X_", i - 1);
        n += (size_t)sprintf(out + n, "S_I%s%sE", before, before);
    }
    return n;
}

static void *explode(void *context)
{
    (void)context;
    static char text[1 << 17], out[TL_DEMANGLED];
    for (unsigned parts = 1; parts < 200; parts++) {
        make_bomb(text, parts);
        assert_true(tl_demangle(text, out) < TL_DEMANGLED);
    }
    /* deep: pointers to pointers, templates in templates, names in names */
    static const char *const deep[][2] = {
        {"_Z1f", "P"},  {"_Z1f", "1aI"}, {"_Z", "N1a"}, {"_RINvC1a1b", "INvC1a1b"},
        {"_RMC0", "R"}, {"_R", "B_"},    {"_Z1f", "F"}, {"_Z1fDp", "Dp"},
        {"_Z", "L"}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        for (size_t depth = 1; depth < 100000; depth = depth * 3 / 2 + 1) {
            size_t n = strlen(strcpy(text, deep[i][0]));
            for (size_t k = 0; k < depth && n + 16 < sizeof text; k++)
                n += strlen(strcpy(text + n, deep[i][1]));
            assert_true(tl_demangle(text, out) < TL_DEMANGLED);
            assert_true(tl_demangle(strcat(text, "i"), out) < TL_DEMANGLED);
        }
    return NULL;
}

/* With as little stack as the server's threads have. */
static void hostile_names(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    char text[4096], out[TL_DEMANGLED];
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 1u << 20), 0);
    assert_int_equal(pthread_create(&thread, &attributes, explode, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    make_bomb(text, 40);
    const size_t n = tl_demangle(text, out);
    if (n > 0) /* a usable part, and it says that it is one */
        assert_string_equal(out + n - 3, "\xe2\x80\xa6");
}

/* Bytes of any kind after what begins a mangled name. */
static void random_names(void **state)
{
    (void)state;
    static const char letters[] = "_ZNKS0123456789IEJFPRCDTabcdefilmnostvwxyz$.";
    uint64_t seed = 1;
    char text[64], out[TL_DEMANGLED];
    for (unsigned i = 0; i < 100000; i++) {
        size_t n = (size_t)sprintf(text, i % 3 == 0 ? "_R" : i % 3 == 1 ? "_Z" : "_ZN");
        for (seed = seed * 6364136223846793005u + 1; n < 4 + (seed >> 60) * 3; n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[n] = letters[(seed >> 33) % (sizeof letters - 1)];
        }
        text[n] = '\0';
        assert_true(tl_demangle(text, out) < TL_DEMANGLED);
        tl_demangled_base(out, i & 1);
        char small[24];
        assert_true(strlen(tl_name_fit(out, small, sizeof small)) < sizeof small);
    }
}

static void expect_base(const char *name, bool templates, const char *want)
{
    char text[256];
    strcpy(text, name);
    tl_demangled_base(text, templates);
    assert_string_equal(text, want);
}

static void bases(void **state)
{
    (void)state;
    expect_base("f(int)", false, "f");
    expect_base("void f<int>(char) const", false, "f<int>");
    expect_base("void f<int>(char) const", true, "f");
    expect_base("a::b<c(int)>::d() [clone .cold]", true, "a::b::d");
    expect_base("(anonymous namespace)::f(void (*)(int))", true, "(anonymous namespace)::f");
    expect_base("f(int)::{lambda(char)#1}::operator()(char) const", false,
                "f(int)::{lambda(char)#1}::operator()");
    expect_base("std::ostream& std::operator<< <char>(std::ostream&, char)", false,
                "std::operator<< <char>");
    expect_base("a::operator unsigned long() const", false, "a::operator unsigned long");
    expect_base("operator new(unsigned long)", false, "operator new");
    expect_base("a::operator->()", true, "a::operator->");
    expect_base("core::fmt::write", true, "core::fmt::write");
    expect_base("a::f::<u8>", true, "a::f");
    expect_base("<a::B as c::D>::e", false, "<a::B as c::D>::e");
    expect_base("vtable for a::B", false, "vtable for a::B");
    expect_base("((((", true, "((((");
    expect_base("", true, "");
}

static void expect_without_last(const char *name, const char *want)
{
    char text[TL_DEMANGLED];
    strcpy(text, name);
    tl_drop_last_template(text);
    assert_string_equal(text, want);
}

static void last_templates(void **state)
{
    (void)state;
    expect_without_last("A<int, 5>::conv<std::vector<char> >", "A<int, 5>::conv");
    expect_without_last("A<int>::f", "A<int>::f");
    expect_without_last("r::gen::<3, &str>", "r::gen");
    expect_without_last("<r::S<u8>>::f::<u8>", "<r::S<u8>>::f");
    expect_without_last("V<int>::operator< <char>", "V<int>::operator<");
    expect_without_last("V<int>::operator->", "V<int>::operator->");
    expect_without_last("V::operator<", "V::operator<");
    expect_without_last("<r::S<u8>>", "<r::S<u8>>");
    expect_without_last("", "");
}

static void expect_fit(const char *name, size_t size, const char *want)
{
    char out[128];
    assert_string_equal(tl_name_fit(name, out, size), want);
}

static void fitting_names(void **state)
{
    (void)state;
    const char *const name = "std::map<int, std::string>::find(std::pair<int, int> const&)";
    expect_fit(name, 128, name);
    expect_fit(name, 48, "std::map<…>::find(std::pair<…> const&)");
    expect_fit(name, 30, "std::map<…>::find(…)");
    expect_fit(name, 12, "std::map…");
    expect_fit("a::operator<<(unsigned)", 19, "a::operator<<(…)");
    expect_fit("f()", 4, "f()");
    expect_fit("f()", 3, "");
    expect_fit("äöü", 6, "ä…");
    expect_fit("", 1, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names), cmocka_unit_test(hostile_names),  cmocka_unit_test(random_names),
        cmocka_unit_test(bases), cmocka_unit_test(last_templates), cmocka_unit_test(fitting_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
