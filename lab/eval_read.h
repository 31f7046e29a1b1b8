/* eval_read.h: reads every clock of a lab at one instant of the machine's raw clock.
 *
 * A reading is what any program on the host would get: the present clock page, and the host's own raw clock at that instant,
 * from the lab's oscillators. All hosts are read for the same instant, so every difference is an error. */
#pragma once
#include "lab/eval_judge.h"
#include "lab/lab.h"
#include "platform/oscillator/oscillator.h"
#include "platform/shm/shm.h"

struct eval_host {
    const struct oscillator_host *oscillator;
    struct shm_page page;
    bool is_open;
    unsigned long inode;
};

struct eval_reader {
    const struct lab *lab;
    struct oscillator oscillator;
    struct eval_host hosts[LAB_HOST_MAX];
    bool reads_nics; /* also one reading for each NIC's clock */
    int clock_count;
    int64_t looked_ns;
    unsigned long inode; /* of the oscillators' file */
    bool is_gone;        /* the lab was removed, or replaced by another of its name */
};

/* Clocks are numbered: first the hosts, then (lab file `stamps: nic`) host 0's NICs, host 1's NICs … */
MUST_CHECK int eval_reader_open(struct eval_reader *r, const struct lab *lab);
void eval_reader_close(struct eval_reader *r);
/* "host3", "host3.1" */
void eval_clock_name(const struct eval_reader *r, int clock, char ret_name[32]);
/* Fills ret_readings[clock_count]; returns the instant. */
int64_t eval_read(struct eval_reader *r, struct eval_reading *ret_readings);
/* The difference of a clock's own oscillator from the machine's raw clock: the clock's error before it joined. */
int64_t eval_clock_own(const struct eval_reader *r, int clock, int64_t raw_ns);
