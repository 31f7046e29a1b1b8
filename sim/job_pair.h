/* job_pair.h: a simulated queue pair: job_pair.c is its NIC, job_rdma.c its calls for a process (io_rdma.h). */
#pragma once
#include "sim/job_private.h"

#define PAIR_PSN_MASK   0xffffffu
#define PAIR_WINDOW_MAX 64
#define PAIR_PORT       4791

enum pair_state { PAIR_OPENING, PAIR_INIT, PAIR_CONNECTING, PAIR_RTS, PAIR_ERROR };
struct memory {
    struct io_rdma_memory keys; /* must be first */
    uint32_t renewed;           /* devices */
    uint8_t *data;
    size_t size;
    struct memory *next;
};

struct pair {
    bool used;   /* the NIC has it */
    bool open;   /* the process has it */
    bool linger; /* closed, but posted messages still go */
    uint32_t generation;
    enum pair_state state;
    int process;
    int error; /* for opened(), connected(), poll() */
    uint32_t nic;
    uint16_t port;
    struct io_qp_config config;
    struct io_qp_timeouts timeouts;
    uint8_t *memory; /* cells to send from, then cells to receive into */
    uint32_t psn;    /* of its first message */
    uint32_t peer, peer_generation;
    int64_t ready_at; /* OPENING, CONNECTING: done at this time */
    /* out: messages [acked, posted); those in [acked, next) are on their way */
    uint64_t acked, next, posted;
    struct {
        uint32_t cell, size;
        struct io_rdma_write write; /* size 0: none */
    } * sends;                      /* by number modulo config.sends */
    uint32_t window;
    uint32_t tries, rnr_tries;
    int64_t timeout_at, rnr_until; /* 0: none */
    /* in */
    uint32_t expected; /* PSN */
    bool gap_told;
    uint32_t *posted_cells;
    uint32_t first_cell, cell_count;
    int64_t late_until; /* ERROR: until then the NIC writes */
    bool flushed;
    bool over; /* ERROR: an event reports it before the receives are flushed */
    int64_t linger_until;
    /* completions */
    struct io_qp_done *done;
    uint32_t done_first, done_count;
    bool armed, queued;
    uint64_t tag;
    int64_t timer; /* when it is queued; 0: not */
};

static inline struct pair *pair_at(struct job_world *w, uint32_t index)
{
    return w->pairs[index];
}

void pair_set_timer(struct job_world *w, uint32_t index); /* for the next event that is due */
bool pair_has_news(const struct pair *x);
void pair_tell(struct job_world *w, uint32_t index); /* wakes its process for news */
void pair_pump(struct job_world *w, uint32_t index); /* sends as much as it may */
/* Goes to ERROR: posted sends end at once, the first with this status; posted receives end later (pair_flush). */
void pair_fail(struct job_world *w, uint32_t index, enum io_qp_status status);
void pair_flush(struct job_world *w, uint32_t index);
void pair_forget(struct job_world *w, uint32_t index); /* frees its number */
uint8_t *pair_receive_cell(const struct pair *x, uint32_t cell);
uint32_t sim_device(const struct job_world *w, uint32_t nic); /* its keys are named by it */
/* The device whose keys it takes. */
uint32_t pair_device(const struct job_world *w, const struct pair *x);
