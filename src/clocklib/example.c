/* example.c: prints fleet time, once or every second: what a program that uses libfoliot-clock looks
 * like. cc example.c $(pkg-config --cflags --libs foliot-clock) */
#include <foliot/clock.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    static const char *const names[] = {"not synchronised", "synced", "holdover", "disrupted"};
    const long times = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    const int r = foliot_clock_open(); /* optional: only to say why there is no time */

    if (r < 0) {
        fprintf(stderr, "no fleet time on this host: %s\n", strerror(-r));
    }
    for (long i = 0; i < times; i++) {
        struct foliot_time now;
        if (i > 0) {
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        }
        const enum foliot_status status = foliot_now(&now);
        if (now.latest_ns == INT64_MAX) {
            printf("%s\n", names[status]);
            continue;
        }
        printf("%" PRId64 ".%09" PRId64 " s  +- %" PRId64 " ns certainly, +- %" PRId64
               " ns likely  %s, epoch %" PRIu32 "\n",
               now.estimate_ns / 1000000000, now.estimate_ns % 1000000000,
               now.latest_ns - now.estimate_ns, now.likely_ns, names[status], now.epoch);
    }
    return 0;
}
