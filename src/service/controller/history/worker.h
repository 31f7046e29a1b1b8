/* worker.h: a thread for what would hold up the loop: reading history, sealing it, copying the
 * store's log into its file.
 *
 * A job is a struct that begins with a worker_job. `run` is called in the thread with a store of the
 * thread's own, which sees what is committed, and touches nothing else of the controller; `done` is
 * called in the loop afterwards and owns the job. Jobs run one at a time, in order; `first` goes
 * before all that wait. Closing waits for the one that runs, and calls every `done`; what waits then,
 * and what is added from then on, is not run: let the job say so unless `run` says otherwise. */
#pragma once
#include <systemd/sd-event.h>

#include "platform/store/store.h"

struct worker;
struct worker_job {
    void (*run)(struct worker_job *job, struct store *store);
    void (*done)(struct worker_job *job);
    int64_t took_ns;         /* in the thread; for `done` */
    struct worker_job *next; /* the worker's own */
};

/* store_path NULL: a thread without a store. */
MUST_CHECK int worker_open(sd_event *loop, const char *store_path, struct worker **ret);
void worker_close(struct worker *w); /* NULL is fine */
void worker_add(struct worker *w, struct worker_job *job, bool first);
size_t worker_waiting(const struct worker *w); /* added and not done */
