/* The inner loops of exact draws, each in one pass. `kernel.py` loads them; where they were not built, numpy
 * does the same in several passes, with the same values out of the same bits. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 64 };

/* Which source this was built from: a library that is older than its source is not used. */
uint32_t dalenius_source(void) { return SOURCE; }

/* Lists where words of a block are `unsure` or more, and returns how many. Nearly all eights of words have
 * none of them. */
INLINE size_t list_block(const uint32_t *words, size_t start, uint32_t unsure, int64_t *todo) {
    uint8_t open[BLOCK];
    size_t found = 0;
    for (size_t i = 0; i < BLOCK; i++) open[i] = words[start + i] >= unsure;
    for (size_t eight = 0; eight < BLOCK; eight += 8) {
        uint64_t any;
        memcpy(&any, open + eight, sizeof any);
        if (!any) continue;
        for (size_t i = eight; i < eight + 8; i++) {
            todo[found] = (int64_t)(start + i);
            found += open[i];
        }
    }
    return found;
}

/* The same for what is left after the last block. */
INLINE size_t list_rest(const uint32_t *words, size_t start, size_t end, uint32_t unsure, int64_t *todo) {
    size_t found = 0;
    for (size_t i = start; i < end; i++) {
        todo[found] = (int64_t)i;
        found += words[i] >= unsure;
    }
    return found;
}

/* A word of 32 bits is the slot of a draw and, below it, the place in a bin: `values` are the integers that
 * words propose. Lists where slots are not sure, their words being `unsure` or more; returns how many. */
WIDE size_t dalenius_propose(const uint32_t *restrict words, size_t count, const uint32_t *restrict firsts,
                             uint32_t rest, uint32_t mask, uint32_t unsure, int64_t *restrict todo,
                             uint32_t *restrict values) {
    size_t found = 0, start = 0;
    for (; start + BLOCK <= count; start += BLOCK) {
        for (size_t i = start; i < start + BLOCK; i++)
            values[i] = firsts[words[i] >> rest] + (words[i] & mask);
        found += list_block(words, start, unsure, todo + found);
    }
    for (size_t i = start; i < count; i++) values[i] = firsts[words[i] >> rest] + (words[i] & mask);
    return found + list_rest(words, start, count, unsure, todo + found);
}

/* Layers against lines around the law. A row is: its layer, the lower and the upper line, their slope; the
 * first is that of slot `sure`. V is known to 2^-32. Says what passes, and lists what is between the lines;
 * returns how many those are. */
WIDE size_t dalenius_settle(size_t count, int64_t sure, const int64_t *restrict slots,
                            const int64_t *restrict places, const uint32_t *restrict bits,
                            const double (*restrict lines)[4], uint8_t *restrict passed,
                            int64_t *restrict between) {
    const double grain = 0x1p-32;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const double *line = lines[slots[i] - sure];
        double least = line[0] + (double)bits[i] * grain, along = line[3] * (double)places[i];
        int below = least + grain <= line[1] + along;
        passed[i] = (uint8_t)below;
        between[found] = (int64_t)i;
        found += !below & (least < line[2] + along);
    }
    return found;
}

/* `add`: total <- (total in whole steps, toward zero, saturated at `limit`, + noise) * factor.
 * `onto`: the same with noise that words propose, where slots are sure; lists where they are not. */

#define FOR_REALS(real, sum, add, onto)                                                                      \
    INLINE real sum(real total, int32_t noise, real inverse, real limit, real factor) {                      \
        real steps = total * inverse;                                                                        \
        steps = steps < limit ? steps : limit;                                                               \
        steps = steps > -limit ? steps : -limit;                                                             \
        return (real)((int32_t)steps + noise) * factor;                                                      \
    }                                                                                                        \
                                                                                                             \
    WIDE void add(real *restrict total, const int32_t *restrict noise, size_t count, real inverse,           \
                  real limit, real factor) {                                                                 \
        for (size_t i = 0; i < count; i++) total[i] = sum(total[i], noise[i], inverse, limit, factor);       \
    }                                                                                                        \
                                                                                                             \
    WIDE size_t onto(const uint32_t *restrict words, size_t count, const uint32_t *restrict firsts,          \
                     uint32_t rest, uint32_t mask, uint32_t unsure, int64_t *restrict todo,                  \
                     real *restrict total, real inverse, real limit, real factor) {                          \
        size_t found = 0, start = 0;                                                                         \
        for (; start + BLOCK <= count; start += BLOCK) {                                                     \
            real before[BLOCK];                                                                              \
            size_t some = list_block(words, start, unsure, todo + found);                                    \
            for (size_t i = 0; i < some; i++) before[i] = total[todo[found + i]];                            \
            for (size_t i = start; i < start + BLOCK; i++) {                                                 \
                int32_t noise = (int32_t)(firsts[words[i] >> rest] + (words[i] & mask));                     \
                total[i] = sum(total[i], noise, inverse, limit, factor);                                     \
            }                                                                                                \
            for (size_t i = 0; i < some; i++) total[todo[found + i]] = before[i];                            \
            found += some;                                                                                   \
        }                                                                                                    \
        for (size_t i = start; i < count; i++) {                                                             \
            int32_t noise = (int32_t)(firsts[words[i] >> rest] + (words[i] & mask));                         \
            if (words[i] < unsure) total[i] = sum(total[i], noise, inverse, limit, factor);                  \
        }                                                                                                    \
        return found + list_rest(words, start, count, unsure, todo + found);                                 \
    }

FOR_REALS(float, sum_single, dalenius_add_single, dalenius_onto_single)
FOR_REALS(double, sum_double, dalenius_add_double, dalenius_onto_double)
