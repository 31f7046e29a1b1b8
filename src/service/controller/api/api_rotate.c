/* api_rotate.c: replaces the authority and the fleet key, at the API. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum { LEFT_SHOWN = 100, AFTER_S = 600 };

static void put_time(struct json_writer *j, const char *key, int64_t s)
{
    json_put_int_if(j, key, s != 0, s * NS_PER_S);
}

void api_get_rotation(struct api_call *call)
{
    const struct controller *c = call->c;
    struct json_writer *j = call->j;
    struct rotate_keys keys;
    uint32_t left = 0, behind = 0;
    const bool rotating = rotate_in_progress(c);
    rotate_keys(c, &keys);
    json_put_object(j, NULL);
    json_put_object(j, "authority");
    json_put_bool(j, "rotating", rotating);
    json_put_int(j, "not_after_utc_ns", c->authority_not_after * NS_PER_S);
    json_put_array(j, "hosts_left");
    for (uint32_t i = 0; i < c->host_count; i++) {
        behind += c->hosts[i]->member && c->hosts[i]->keys_version != c->keys_version;
        if (rotating && !rotate_done_by(c, c->hosts[i]) && left++ < LEFT_SHOWN) {
            json_put_string(j, NULL, c->hosts[i]->name);
        }
    }
    json_put_end(j);
    json_put_uint(j, "hosts_left_count", left);
    json_put_end(j);
    json_put_object(j, "fleet_key");
    json_put_uint(j, "id", keys.id);
    json_put_int_if(j, "next_id", keys.next_id != 0, keys.next_id);
    put_time(j, "next_used_utc_ns", keys.next_at);
    put_time(j, "old_ends_utc_ns", keys.retire_at);
    json_put_uint(j, "hosts_behind", behind);
    json_put_end(j);
    json_put_end(j);
    api_answer(call);
}

static void finish(struct api_call *call, int r, const char *what, const char *step)
{
    if (r == -EBUSY) {
        api_error(call, 409, "rotating", "the last %s rotation isn't over: foliot host rotate",
                  what);
        return;
    }
    if (r < 0) {
        controller_say(LOG_ERR, "the rotation of the %s fails: %s: %s", what, step, strerror(-r));
        api_error(call, 503, "not-stored", "the rotation of the %s fails: %s: %s", what, step,
                  strerror(-r));
        return;
    }
    if (api_audit(call, "rotate", what)) {
        controller_say(LOG_NOTICE, "the %s is rotated by %s", what, call->who);
        json_writer_reset(call->j);
        api_get_rotation(call);
    }
}

void api_post_rotation(struct api_call *call)
{
    struct controller *c = call->c;
    const char *step = NULL, *what = json_string_value(json_object_get(call->body, "what"));
    const json_t *after = json_object_get(call->body, "after_s");
    const bool end = json_is_true(json_object_get(call->body, "finish"));
    const int64_t after_s = after == NULL ? AFTER_S : json_integer_value(after);
    if (what != NULL && strcmp(what, "authority") == 0) {
        if (end && !rotate_in_progress(c)) {
            api_error(call, 409, "not-rotating", "no rotation of the authority is in progress");
            return;
        }
        const int r = end ? rotate_finish(c, &step) : rotate_authority(c, &step);
        finish(call, r, "authority", step);
    } else if (what != NULL && strcmp(what, "fleet-key") == 0 && after_s >= 1 &&
               after_s <= 30 * 86400) {
        const int r = rotate_fleet_key(c, after_s, &step);
        finish(call, r, "fleet key", step);
    } else {
        api_error(call, 400, "bad-body",
                  "expected what: authority or fleet-key; after_s: 1 to 2592000");
    }
}
