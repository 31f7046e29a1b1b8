/* foliot_jobs_run.c: finds the processes of a job's newest run. An agent also reports processes that ended lately. So a job
 * that was started again under its name would look like one run. */
#include <stdlib.h>
#include <string.h>

#include "app/foliot_jobs.h"
#include "app/foliot_text.h"

struct member {
    json_t *list; /* a list of processes, and the place in it */
    size_t at;
    struct job_id id;
    int64_t user, rank, began_ago, ended_ago; /* FLOW_UNKNOWN: no rank; it runs */
    bool earlier;
};

static int64_t get(const json_t *object, const char *name, int64_t otherwise)
{
    int64_t value;
    return field_get(object, name, &value) ? value : otherwise;
}

static int by_age(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    const int by_id = strcmp(a->id.text, b->id.text);
    return by_id != 0           ? by_id
           : a->user != b->user ? (a->user > b->user) - (a->user < b->user)
                                : (a->began_ago > b->began_ago) - (a->began_ago < b->began_ago);
}

static int by_place(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    return a->list != b->list ? (a->list > b->list) - (a->list < b->list)
                              : (a->at < b->at) - (a->at > b->at);
}

static bool same_job(const struct member *a, const struct member *b)
{
    return strcmp(a->id.text, b->id.text) == 0 && a->user == b->user;
}

/* Newest first. A process belongs to an earlier run if it had ended when the newest one began, or if a newer one has its rank. */
static size_t mark(struct member *list, size_t count)
{
    size_t earlier = 0;
    for (size_t i = 0, newest = 0; i < count; i++) {
        struct member *m = &list[i];
        newest = same_job(m, &list[newest]) ? newest : i;
        m->earlier = m->ended_ago != FLOW_UNKNOWN && m->ended_ago > list[newest].began_ago;
        for (size_t k = newest; k < i && !m->earlier && m->rank != FLOW_UNKNOWN; k++) {
            m->earlier = !list[k].earlier && list[k].rank == m->rank;
        }
        earlier += m->earlier;
    }
    return earlier;
}

size_t jobs_drop_earlier_runs(json_t *const answers[], size_t count)
{
    size_t all = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        all += json_array_size(json_object_get(answers[i], "processes"));
    }
    struct member *list = calloc(all + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        json_t *processes = json_object_get(answers[i], "processes");
        for (size_t k = 0; k < json_array_size(processes); k++) {
            const json_t *p = json_array_get(processes, k);
            list[used++] = (struct member){
                .list = processes,
                .at = k,
                .id = job_id(p),
                .user = get(p, "user", 0),
                .rank = get(p, "rank", FLOW_UNKNOWN),
                .began_ago = get(p, "age_ns", 0) + get(p, "silent_ns", 0), /* at its last report */
                .ended_ago = get(p, "ended_ns", FLOW_UNKNOWN)};
        }
    }
    if (used > 0) {
        qsort(list, used, sizeof(*list), by_age);
    }
    const size_t earlier = list != NULL ? mark(list, used) : 0;
    if (earlier > 0) {
        qsort(list, used, sizeof(*list), by_place); /* from each list's end */
    }
    for (size_t i = 0; earlier > 0 && i < used; i++) {
        if (list[i].earlier) {
            (void)json_array_remove(list[i].list, list[i].at);
        }
    }
    free(list);
    return earlier;
}
