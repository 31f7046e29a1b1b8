/* worker.h: a thread for work that would block the loop: reading history, sealing it, copying the store's log into its file.
 *
 * A job is a struct that begins with a worker_job. The thread calls `run` with its own store, which sees committed data. `run`
 * touches nothing else of the controller. Afterwards the loop calls `done`, which owns the job. Jobs run one at a time, in
 * order; `first` puts a job before all that wait. Closing waits for the job that runs, and calls `done` of every job. Jobs
 * that wait then, or are added later, are not run. So a job must start in a failed state that only `run` changes. */
#pragma once
#include <systemd/sd-event.h>

#include "platform/store/store.h"

struct worker;
struct worker_job {
    void (*run)(struct worker_job *job, struct store *store);
    void (*done)(struct worker_job *job);
    int64_t took_ns;         /* time in the thread; valid in `done` */
    struct worker_job *next; /* the worker's own */
};

/* store_path NULL: a thread without a store. */
MUST_CHECK int worker_open(sd_event *loop, const char *store_path, struct worker **ret);
void worker_close(struct worker *w); /* NULL is allowed */
void worker_add(struct worker *w, struct worker_job *job, bool first);
size_t worker_waiting(const struct worker *w); /* jobs that were added and are not done */
