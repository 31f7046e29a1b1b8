/* true_clock.c: FOLDER: writes a clock page there with the truth: fleet time is this machine's raw clock, to the nanosecond.
 * All hosts of a lab share that clock. A program that reads the page (FOLIOT_RUNTIME_DIR=FOLDER, without the lab's oscillator)
 * stamps true times. So it measures delays of jobs in labs without agents, and checks delays of jobs in labs with agents. It
 * runs until it is killed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "now.h"
#include "wire/clock_page.h"

/* Readers refuse pages of another boot. */
static void read_boot_id(uint8_t *id)
{
    char text[40] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    int digits = 0;

    if (f == NULL || fgets(text, sizeof(text), f) == NULL) {
        text[0] = '\0';
    }
    for (const char *p = text; *p != '\0' && digits < 32; p++) {
        if (*p != '-' && *p != '\n') {
            const int digit = *p >= 'a' ? *p - 'a' + 10 : *p - '0';
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void renew(struct clock_page *page)
{
    const int64_t now = now_ns(CLOCK_MONOTONIC_RAW);
    struct clock_page_terms *t = &page->terms;

    t->written = t->pass_raw = now;
    t->line_from = t->map_from = now;
    t->prior = t->line = t->map = (struct linear_map){.r = now};
    t->pass_coarse = now_ns(CLOCK_REALTIME_COARSE);
    t->pass_suspended = now_ns(CLOCK_BOOTTIME) - now_ns(CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
    static struct clock_page page = {.terms = {.status = CLOCK_PAGE_SYNCED,
                                               .timeline = 1,
                                               .epoch = 1,
                                               .void_after = INT64_MAX,
                                               .h_ns = 1,
                                               .p00 = 1e-6,
                                               .guard = INT64_MAX},
                                     .utc_bound_ns = -1};
    int fd = -1;

    if (argc == 2 && chdir(argv[1]) == 0) {
        fd = open(CLOCK_PAGE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    }
    if (fd < 0 || ftruncate(fd, CLOCK_PAGE_SIZE) < 0) {
        fprintf(stderr, "usage: true_clock FOLDER\n");
        return EXIT_FAILURE;
    }
    struct clock_page_memory *memory =
        mmap(NULL, CLOCK_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return EXIT_FAILURE;
    }
    read_boot_id(page.boot_id);
    clock_page_init(memory, (uint64_t)getpid() << 1);
    page.terms.since = now_ns(CLOCK_MONOTONIC_RAW) - 10 * NS_PER_S;
    for (;;) {
        renew(&page);
        clock_page_write(memory, &page);
        nanosleep(&(struct timespec){.tv_nsec = 100 * NS_PER_MS}, NULL);
    }
}
