/* deliver_internal.h: what deliver.c (queues, the thread) and deliver_send.c (one attempt) share. */
#pragma once
#include <curl/curl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "service/alert/deliver.h"

enum { ANSWER_KEPT = 120 };

struct job {
    struct alert_notice notice;
    struct job *next;
};

struct delivery_queue { /* the notices for one receiver */
    struct alert_receiver receiver;
    struct job *first, *last; /* under the lock */
    struct deliver_counters count;
    /* only the thread uses these */
    CURL *easy;
    bool in_curl;
    pid_t child;
    int child_fd;
    unsigned attempts;
    int64_t due_ms, started_ms; /* when to try; when the command began */
    char *body;
    size_t size, sent;
    char key[64], answer[ANSWER_KEPT + 1];
    size_t answer_size;
    struct curl_slist *headers, *to;
    char words[CURL_ERROR_SIZE];
};

struct deliver {
    pthread_t thread;
    pthread_mutex_t lock;
    CURLM *multi;
    bool stop;
    int64_t stop_at_ms;
    deliver_on_trouble on_trouble;
    void *context;
    size_t lane_count;
    struct delivery_queue lanes[];
};

int64_t deliver_now_ms(void);

/* Ends an attempt. final: the notice is not sent again. */
void deliver_failed(struct deliver *d, struct delivery_queue *l, const char *words, bool final);
void deliver_taken(struct deliver *d, struct delivery_queue *l);

/* Starts an attempt over HTTP or SMTP. The body is ready; the attempt ends when curl reports it. */
void deliver_start_curl(struct deliver *d, struct delivery_queue *l);
void deliver_on_curl_done(struct deliver *d, struct delivery_queue *l, CURLcode code);

/* Starts an attempt by a command, which reads the body from its input. It ends when deliver_look_at_command() finds that the
 * command ended or ran too long. */
void deliver_start_command(struct deliver *d, struct delivery_queue *l,
                           const struct alert_notice *n);
void deliver_look_at_command(struct deliver *d, struct delivery_queue *l);
