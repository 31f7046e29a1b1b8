/* json.h: writes JSON with one call per value, into one growing buffer with a limit. (jansson uses the names json_*, too.)
 *
 * No tree is built. The writer adds commas. Errors stick: after the first one (-ENOMEM, or -ENOSPC at the limit) calls do
 * nothing, and json_writer_finish() returns it. So callers need not check between calls. A NaN or infinite double is written
 * as null: an unknown value is null.
 *
 *     struct json_writer j;
 *     json_writer_init(&j, 1 << 20);
 *     json_put_object(&j, NULL);
 *     json_put_int(&j, "version", 1);
 *     json_put_array(&j, "nics");
 *     ...
 *     json_put_end(&j);
 *     json_put_end(&j);
 *     r = json_writer_finish(&j, &text, &size); // valid until json_writer_done or json_writer_reset */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

struct json_writer {
    char *text;
    size_t size, capacity, limit;
    int error;
    unsigned depth;
    bool comma[JSON_DEPTH_MAX];
    char close[JSON_DEPTH_MAX];
};

void json_writer_init(struct json_writer *j, size_t limit);
void json_writer_reset(struct json_writer *j); /* empties, keeps the memory */
void json_writer_done(struct json_writer *j);
/* Returns the text, with a newline and a 0 after it (*ret_size includes the newline). Asserts that all objects and arrays are
 * closed. */
MUST_CHECK int json_writer_finish(struct json_writer *j, const char **ret_text, size_t *ret_size);

/* `key` is NULL inside an array and at the top. Keys are written without escapes: they are literals. */
void json_put_object(struct json_writer *j, const char *key);
void json_put_array(struct json_writer *j, const char *key);
void json_put_end(struct json_writer *j); /* ends the innermost object or array */
void json_put_int(struct json_writer *j, const char *key, int64_t value);
/* values above INT64_MAX are written as INT64_MAX */
void json_put_uint(struct json_writer *j, const char *key, uint64_t value);
void json_put_double(struct json_writer *j, const char *key, double value);
void json_put_bool(struct json_writer *j, const char *key, bool value);
void json_put_null(struct json_writer *j, const char *key);
/* NULL is written as null. Special characters are escaped; bytes that are no UTF-8 become U+FFFD. */
void json_put_string(struct json_writer *j, const char *key, const char *value);
/* Writes "0123456789abcdef"; 0 (not known) is written as null. */
void json_put_hex64(struct json_writer *j, const char *key, uint64_t value);
/* Writes JSON that this writer made before, unchanged. */
void json_put_raw(struct json_writer *j, const char *key, const char *json);
/* Writes null if !known. */
void json_put_int_if(struct json_writer *j, const char *key, bool known, int64_t value);
