/* SPDX-License-Identifier: MIT */
/* A program that a compiler can make faster once it knows which of several possible functions is
 * called. */
static unsigned long seed = 1;

static unsigned long next(void)
{
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed >> 33;
}

/* Some work that takes a while. */
static unsigned long work(int what, unsigned long a, unsigned long b)
{
    switch (what) {
    case 0:
        return a + b;
    case 1:
        a = a * 3 + (b ^ a);
        b = (b << 3) - a;
        a ^= b >> 5;
        b += a * 17;
        return a / (b | 1) + b % (a | 1);
    case 2:
        a = (a | b) * 5;
        b ^= a >> 7;
        a += b << 2;
        b *= 29;
        a -= b / 11;
        return a * b + (a >> 9) % 13;
    case 3:
        a -= b * 7;
        b = (b & a) + 1;
        a = a / b + (a << 4);
        b ^= a * 31;
        return (a ^ b) / 3 + b % 7;
    case 4:
        a = (a + 9) * b;
        b = b / 5 + (a >> 3);
        a ^= b * 37;
        b += a / 19;
        return a % (b | 1) + (b << 1);
    case 5:
        a ^= b + 0x55;
        b = (b * 41) ^ (a >> 2);
        a += b / 23;
        b -= a % 29;
        return a * 43 + (b >> 11);
    case 6:
        a += (b << 6) / 47;
        b ^= a * 53;
        a -= b >> 13;
        b = b % 59 + a;
        return (a | 3) * (b | 5) / 61;
    case 7:
        a = a % 67 + b * 71;
        b += a >> 1;
        a ^= b / 73;
        b = (b << 5) ^ a;
        return a / 79 + b * 83;
    default:
        return a % 89 + b / 97 + (a ^ b) * 101 + (a >> 17) % 103;
    }
}

static unsigned long rare(unsigned long a, unsigned long b)
{
    unsigned long sum = 0;
    for (int i = 0; i < 9; i++)
        sum += work(i, a, sum) + work(8 - i, sum, b);
    return sum;
}

static unsigned long usual(unsigned long a, unsigned long b)
{
    return (a ^ b) + 1;
}

/* Which function is called is only known at run time. */
unsigned long (*handlers[16])(unsigned long, unsigned long) = {
    usual, usual, usual, usual, usual, usual, usual, usual,
    usual, usual, usual, usual, usual, usual, usual, rare};

void _start(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const unsigned long x = next();
        sum += handlers[x % 97 ? x & 7 : 15](x, sum);
    }
    __asm__ volatile("syscall" : : "a"(60), "D"(sum & 1) : "rcx", "r11", "memory");
    __builtin_unreachable();
}
