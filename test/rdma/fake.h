/* fake.h: what a test tells the fake libibverbs.so.1. It lives in one process: queue pairs of one device reach each other by
 * their numbers, and a request is executed when it is posted. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct fake_control {
    const char *refuse; /* the name of a function without ibv_, or NULL */
    int refuse_nth;     /* the nth call of it from now on (1: the next) fails ... */
    int refuse_errno;   /* ... with this */
    bool
        gone; /* the devices were taken away: every call fails with ENODEV, and is silent all the same */
    bool no_list; /* the kernel has no RDMA */
    int lag; /* so many writes are acknowledged and not yet in memory: the oldest lands when a newer one comes */
    bool
        lies; /* the last of them land 10 ms after the marker was seen, and not before it as the standard asks */
    bool no_flush; /* receives are never flushed: the marker doesn't come */
    bool drop;     /* the path is dead: nothing is acknowledged, and the queue pair gives up */
    int status;    /* of the next completion, an enum ibv_wc_status; the rest of it is garbage */
    int calls;     /* how many functions were called */
    int open;      /* what was opened and not closed */
};

/* By dlsym("fake_control"), "fake_event". FOLIOT_FAKE_VERBS_LAG and _LIES in the environment set both at the start. */
typedef struct fake_control *(*fake_control_function)(void);
/* An asynchronous event (enum ibv_event_type) of port `port` or queue pair `qp`. */
typedef void (*fake_event_function)(int event, int port, uint32_t qp);
