/* source.c: the kernel's clocks, facts about them, and the lab's emulated clocks. */
#include "platform/timestamp/source.h"

#include "platform/oscillator/oscillator.h"
#include "platform/sysfs/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

enum {
    SANDWICH_TRIES = 3,
    SANDWICH_TRIES_MAX = 12, /* until a sandwich narrower than SANDWICH_GOOD_NS was seen */
    SANDWICH_GOOD_NS = 400,
    SUSPEND_NS_MIN = 5000000, /* BOOTTIME and MONOTONIC can't be read at the same instant */
    VMCLOCK_SIZE = 4096,
    VMCLOCK_MAGIC = 0x4b4c4356,
    VMCLOCK_MARKER_OFFSET = 16,
};

struct time_source {
    struct oscillator lab; /* page NULL: no lab */
    struct sandwich_ring sandwiches;
    int64_t jump_ns; /* a step of REALTIME that was not reported yet */
    int64_t slept_ns, lab_slept_ns;
    uint32_t lab_marker, lab_source_lost;
    int64_t clocksource_looked_ns;
    char clocksource[64];
    char boot_id[40];
    const volatile uint8_t *vmclock;
    uint64_t vm_marker;
    uint64_t reads; /* nonce of emulated reads */
};

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t slept_ns(void)
{
    /* the least of three: a preemption between the reads would look like a suspend */
    int64_t slept = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const int64_t monotonic = clock_ns(CLOCK_MONOTONIC);
        const int64_t d = clock_ns(CLOCK_BOOTTIME) - monotonic;
        slept = d < slept ? d : slept;
    }
    return slept;
}

static uint64_t vm_marker(const struct time_source *s)
{
    uint64_t marker;
    memcpy(&marker, (const void *)(s->vmclock + VMCLOCK_MARKER_OFFSET), sizeof(marker));
    return marker;
}

/* /dev/vmclock0 (VMClock): its marker changes when the virtual machine is moved. Most machines don't have it. */
static void open_vmclock(struct time_source *s)
{
    const int fd = open("/dev/vmclock0", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    void *page = mmap(NULL, VMCLOCK_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) {
        uint32_t magic;
        memcpy(&magic, page, sizeof(magic));
        if (magic == VMCLOCK_MAGIC) {
            s->vmclock = page;
            s->vm_marker = vm_marker(s);
        } else {
            munmap(page, VMCLOCK_SIZE);
        }
    }
}

int time_source_open(struct time_source **ret_source)
{
    struct time_source *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return -ENOMEM;
    }
    const int r = oscillator_open_env(&s->lab);
    if (r < 0 && r != -ENODATA) {
        free(s);
        return r;
    }
    if (sysfs_text(NULL, CLOCKSOURCE, s->clocksource, sizeof(s->clocksource)) < 0) {
        s->clocksource[0] = 0;
    }
    if (sysfs_text(NULL, "/proc/sys/kernel/random/boot_id", s->boot_id, sizeof(s->boot_id)) < 0) {
        s->boot_id[0] = 0;
    }
    s->slept_ns = slept_ns();
    if (s->lab.host != NULL) {
        s->lab_slept_ns = oscillator_suspended_ns(s->lab.host, clock_ns(CLOCK_MONOTONIC_RAW));
        s->lab_marker = s->lab.host->disruption_marker;
        s->lab_source_lost = s->lab.host->clocksource_lost;
    }
    open_vmclock(s);
    time_source_sandwich(s);
    *ret_source = s;
    return 0;
}

struct time_source *time_source_close(struct time_source *s)
{
    if (s != NULL) {
        if (s->lab.page != NULL) {
            oscillator_close(&s->lab);
        }
        if (s->vmclock != NULL) {
            munmap((void *)(uintptr_t)s->vmclock, VMCLOCK_SIZE);
        }
        free(s);
    }
    return NULL;
}

bool time_source_is_lab(const struct time_source *s)
{
    return s->lab.host != NULL;
}

bool time_source_lab_nic_stamps(const struct time_source *s)
{
    return s->lab.host != NULL && s->lab.host->stamps == OSCILLATOR_STAMPS_NIC;
}

static struct mono mono_of_raw(const struct time_source *s, int64_t raw_ns)
{
    return s->lab.host != NULL ? oscillator_mono(s->lab.host, raw_ns) : (struct mono){raw_ns};
}

struct mono time_source_now(struct time_source *s)
{
    return mono_of_raw(s, clock_ns(CLOCK_MONOTONIC_RAW));
}

int64_t time_source_kernel_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t time_source_wall_ns(struct time_source *s)
{
    return s->lab.host != NULL ? oscillator_realtime_ns(s->lab.host, clock_ns(CLOCK_MONOTONIC_RAW))
                               : clock_ns(CLOCK_REALTIME);
}

void time_source_sandwich(struct time_source *s)
{
    struct sandwich best = {.width_ns = INT64_MAX};
    int64_t before = clock_ns(CLOCK_MONOTONIC_RAW);
    for (int i = 0;
         i < SANDWICH_TRIES || (best.width_ns > SANDWICH_GOOD_NS && i < SANDWICH_TRIES_MAX); i++) {
        const int64_t realtime = clock_ns(CLOCK_REALTIME);
        const int64_t after = clock_ns(CLOCK_MONOTONIC_RAW);
        if (after - before < best.width_ns) {
            best = (struct sandwich){before + (after - before) / 2, realtime, after - before};
        }
        before = after;
    }
    sandwich_add(&s->sandwiches, &best);
    if (s->sandwiches.jump_ns != 0) {
        s->jump_ns = s->sandwiches.jump_ns;
    }
}

bool time_source_stamp(struct time_source *s, int64_t realtime_ns, uint32_t nic,
                       struct nic_time *ret_stamp, uint32_t *ret_error_ns)
{
    int64_t raw = 0;
    uint32_t error = 0;
    if (!sandwich_convert(&s->sandwiches, realtime_ns, &raw, &error)) {
        return false;
    }
    if (s->lab.host == NULL) {
        *ret_stamp = (struct nic_time){raw};
    } else {
        /* all hosts share one kernel clock, which cancels this error: so it is added here */
        raw += oscillator_conversion_error_ns(s->lab.host, s->sandwiches.count, error);
        *ret_stamp = s->lab.host->stamps == OSCILLATOR_STAMPS_NIC
                         ? oscillator_nic(s->lab.host, nic, raw)
                         : (struct nic_time){oscillator_mono(s->lab.host, raw).ns};
    }
    *ret_error_ns = error;
    return true;
}

bool time_source_raw_of_wall(struct time_source *s, int64_t realtime_ns, int64_t *ret_raw_ns,
                             uint32_t *ret_error_ns)
{
    return sandwich_convert(&s->sandwiches, realtime_ns, ret_raw_ns, ret_error_ns);
}

static bool lab_fact(struct time_source *s, struct node_clock_fact *fact)
{
    const struct oscillator_host *h = s->lab.host;
    if (h == NULL) {
        return false;
    }
    const int64_t slept = oscillator_suspended_ns(h, clock_ns(CLOCK_MONOTONIC_RAW));
    if (slept - s->lab_slept_ns > SUSPEND_NS_MIN) {
        fact->kind = CLOCK_FACT_SUSPENDED;
        fact->amount_ns = slept - s->lab_slept_ns;
        s->lab_slept_ns = slept;
        return true;
    }
    const uint32_t marker = h->disruption_marker, lost = h->clocksource_lost;
    if (marker != s->lab_marker) {
        fact->kind = CLOCK_FACT_VM_MARKER;
        s->lab_marker = marker;
        return true;
    }
    if (lost != s->lab_source_lost) {
        fact->kind = CLOCK_FACT_SOURCE;
        s->lab_source_lost = lost;
        return true;
    }
    return false;
}

static bool clocksource_changed(struct time_source *s, int64_t now_ns)
{
    if (now_ns - s->clocksource_looked_ns < NS_PER_S) {
        return false;
    }
    s->clocksource_looked_ns = now_ns;
    char text[sizeof(s->clocksource)];
    const int size = sysfs_text(NULL, CLOCKSOURCE, text, sizeof(text));
    if (size <= 0 || strcmp(text, s->clocksource) == 0) {
        return false;
    }
    memcpy(s->clocksource, text, (size_t)size + 1);
    return true;
}

bool time_source_next_fact(struct time_source *s, struct node_clock_fact *ret_fact)
{
    struct node_clock_fact fact = {.local = UINT32_MAX};
    const int64_t slept = slept_ns();
    if (slept - s->slept_ns > SUSPEND_NS_MIN) {
        fact.kind = CLOCK_FACT_SUSPENDED;
        fact.amount_ns = slept - s->slept_ns;
        s->slept_ns = slept;
    } else if (s->jump_ns != 0) {
        fact.kind = CLOCK_FACT_REALTIME_STEP;
        fact.amount_ns = s->jump_ns;
        s->jump_ns = 0;
    } else if (s->vmclock != NULL && vm_marker(s) != s->vm_marker) {
        fact.kind = CLOCK_FACT_VM_MARKER;
        s->vm_marker = vm_marker(s);
    } else if (clocksource_changed(s, clock_ns(CLOCK_MONOTONIC_RAW))) {
        fact.kind = CLOCK_FACT_SOURCE;
    } else if (!lab_fact(s, &fact)) {
        return false;
    }
    *ret_fact = fact;
    return true;
}

void time_source_anchor(struct time_source *s, struct node_anchor *ret_anchor)
{
    struct node_anchor a = {.bound_ns = INT64_MAX};
    const int64_t before = clock_ns(CLOCK_MONOTONIC_RAW);
    if (s->lab.host != NULL) {
        /* the emulated CLOCK_REALTIME is not disciplined: it helps at the start, and is no source of UTC */
        a.at = oscillator_mono(s->lab.host, before);
        a.utc_ns = oscillator_realtime_ns(s->lab.host, before);
        *ret_anchor = a;
        return;
    }
    a.utc_ns = clock_ns(CLOCK_REALTIME);
    const int64_t after = clock_ns(CLOCK_MONOTONIC_RAW);
    a.at = (struct mono){before + (after - before) / 2};
    struct timex t = {0};
    const int state = adjtimex(&t);
    if (state != -1 && state != TIME_ERROR && (t.status & STA_UNSYNC) == 0) {
        a.trusted = 1;
        a.bound_ns = t.maxerror * NS_PER_US + (after - before);
    }
    *ret_anchor = a;
}

void time_source_pass(struct time_source *s, int64_t *ret_raw_ns, int64_t *ret_coarse_ns,
                      int64_t *ret_suspended_ns, uint64_t *ret_marker)
{
    *ret_raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    *ret_coarse_ns = clock_ns(CLOCK_REALTIME_COARSE);
    *ret_suspended_ns = s->slept_ns;
    *ret_marker = s->vmclock != NULL ? s->vm_marker : 0;
    if (s->lab.host != NULL) {
        *ret_suspended_ns += s->lab_slept_ns;
    }
}

bool time_source_lab_bracket(struct time_source *s, uint32_t nic, struct node_bracket *ret_bracket)
{
    const struct oscillator_host *h = s->lab.host;
    if (h == NULL || nic >= h->nic_count) {
        return false;
    }
    const int64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
    int64_t latch = 0, done = 0;
    oscillator_read(h, nic, begin, ++s->reads, &latch, &done);
    /* The end of the read is a microsecond ahead. The stamps are computed, so there is no need to wait. */
    *ret_bracket = (struct node_bracket){.before = oscillator_mono(h, begin),
                                         .nic = oscillator_nic(h, nic, latch),
                                         .after = oscillator_mono(h, done),
                                         .local = nic};
    return true;
}

const char *time_source_clocksource(const struct time_source *s)
{
    return s->clocksource;
}

bool clocksource_is_slow(const char *name)
{
    static const char *const slow[] = {"", "hpet", "acpi_pm", "jiffies"};

    for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++) {
        if (strcmp(name, slow[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *time_source_boot_id(const struct time_source *s)
{
    return s->boot_id;
}
