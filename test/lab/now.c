/* now.c: an ordinary program. It asks libfoliot-clock for fleet time COUNT times, about 20 ms apart. Beside each answer it prints
 * the machine's raw time just before and just after it. All hosts of a lab share that time, and only a test may use it. With
 * COUNT 0 it prints what a call costs. usage: now COUNT */
#include <foliot/clock.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void print_cost(void)
{
    enum { CALLS = 100000, ROUNDS = 15 };
    int64_t best = INT64_MAX;
    struct foliot_time now;

    for (int round = 0; round < ROUNDS; round++) {
        const int64_t begin = raw_ns();
        for (int i = 0; i < CALLS; i++) {
            foliot_now(&now);
        }
        const int64_t spent = raw_ns() - begin;
        best = spent < best ? spent : best;
    }
    printf("%.1f ns a call\n", (double)best / CALLS);
}

int main(int argc, char **argv)
{
    const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;

    if (count == 0) {
        print_cost();
    }
    for (long i = 0; i < count; i++) {
        struct foliot_time now;
        const int64_t before = raw_ns();
        const enum foliot_status status = foliot_now(&now);
        const int64_t after = raw_ns();
        printf("%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", (int)status,
               before, after, now.earliest_ns, now.latest_ns, now.estimate_ns);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return 0;
}
