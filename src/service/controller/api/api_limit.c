/* api_limit.c: limits for one token, so that it can't starve others: requests, time of the loop and of the history thread, and
 * answers of that thread that wait. A viewer's share is small. Operators and admins reach their limits only if one of their
 * programs runs wild. */
#include "service/controller/api/api.h"
#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum {
    VIEWER_RATE = 50, /* requests a second */
    VIEWER_BURST = 200,
    ACTOR_RATE = 1000, /* of operators and admins */
    ACTOR_BURST = 5000,
    VIEWER_TASKS = 16, /* answers of the history thread that wait */
    ACTOR_TASKS = 128,
};
#define VIEWER_WORK 0.2 /* of a second, each second */
#define ACTOR_WORK  0.8
#define WORK_BURST  2.0 /* seconds at once */

static bool is_viewer(const struct token *t)
{
    return t->role[0] == 'v';
}

static void refill(struct token *t, int64_t now_ns)
{
    const bool viewer = is_viewer(t);
    const double seconds = (double)(now_ns - t->limit.at_ns) * 1e-9,
                 most = viewer ? VIEWER_BURST : ACTOR_BURST;
    const bool first = t->limit.at_ns == 0;
    t->limit.at_ns = now_ns;
    t->limit.requests += seconds * (viewer ? VIEWER_RATE : ACTOR_RATE);
    t->limit.work_s += seconds * (viewer ? VIEWER_WORK : ACTOR_WORK);
    t->limit.requests = first || t->limit.requests > most ? most : t->limit.requests;
    t->limit.work_s = first || t->limit.work_s > WORK_BURST ? WORK_BURST : t->limit.work_s;
}

bool api_limit_admits(struct api_call *call, struct token *token)
{
    refill(token, controller_mono().ns);
    if (token->limit.requests < 1 || token->limit.work_s <= 0) {
        call->c->count.api_limited++;
        api_error(call, 429, "too-often",
                  token->limit.work_s <= 0
                      ? "what this token asked for took too long: come again later"
                      : "this token asks too often: at most %d requests a second",
                  is_viewer(token) ? VIEWER_RATE : ACTOR_RATE);
        return false;
    }
    token->limit.requests -= 1;
    return true;
}

bool api_limit_task(struct api_call *call)
{
    struct token *t = token_by_id(call->c, call->token);
    if (t != NULL && t->limit.tasks >= (is_viewer(t) ? VIEWER_TASKS : ACTOR_TASKS)) {
        call->c->count.api_limited++;
        api_error(call, 429, "too-often", "this token asks for too much history at once");
        return false;
    }
    return true;
}

void api_limit_task_begins(struct controller *c, int64_t token)
{
    struct token *t = token_by_id(c, token);
    if (t != NULL) {
        t->limit.tasks++;
    }
}

void api_limit_task_ends(struct controller *c, int64_t token, int64_t took_ns)
{
    struct token *t = token_by_id(c, token);
    if (t != NULL) {
        t->limit.tasks -= t->limit.tasks > 0;
        t->limit.work_s -= (double)took_ns * 1e-9;
    }
}

void api_limit_worked(struct controller *c, int64_t token, int64_t took_ns)
{
    struct token *t = token_by_id(c, token);
    if (t != NULL) {
        t->limit.work_s -= (double)took_ns * 1e-9;
    }
}

bool api_limit_works(struct controller *c, int64_t token)
{
    struct token *t = token_by_id(c, token);
    if (t != NULL) {
        refill(t, controller_mono().ns);
    }
    return t == NULL || t->limit.work_s > 0;
}
