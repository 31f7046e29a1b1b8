/* json.c: the streaming writer. */
#include "platform/json/json.h"

#include "base/plain.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_writer_init(struct json_writer *j, size_t limit)
{
    *j = (struct json_writer){.limit = limit};
}

void json_writer_reset(struct json_writer *j)
{
    j->size = 0;
    j->error = 0;
    j->depth = 0;
    j->comma[0] = false;
}

void json_writer_done(struct json_writer *j)
{
    free(j->text);
    *j = (struct json_writer){0};
}

static void put(struct json_writer *j, const char *bytes, size_t size)
{
    if (j->error != 0) {
        return;
    }
    const size_t need = j->size + size + 2; /* + newline and 0 */
    if (need > j->limit) {
        j->error = -ENOSPC;
        return;
    }
    if (need > j->capacity) {
        size_t capacity = j->capacity == 0 ? 4096 : j->capacity;
        while (capacity < need) {
            capacity *= 2;
        }
        char *larger = realloc(j->text, capacity);
        if (larger == NULL) {
            j->error = -ENOMEM;
            return;
        }
        j->text = larger;
        j->capacity = capacity;
    }
    memcpy(j->text + j->size, bytes, size);
    j->size += size;
}

static void put_text(struct json_writer *j, const char *text)
{
    put(j, text, strlen(text));
}

int json_writer_finish(struct json_writer *j, const char **ret_text, size_t *ret_size)
{
    if (j->error != 0) {
        return j->error;
    }
    ASSERT(j->depth == 0 && j->size > 0);
    j->text[j->size++] = '\n';
    j->text[j->size] = 0;
    *ret_text = j->text;
    *ret_size = j->size;
    return 0;
}

static void put_key(struct json_writer *j, const char *key)
{
    if (j->depth > 0) {
        if (j->comma[j->depth - 1]) {
            put(j, ",", 1);
        }
        j->comma[j->depth - 1] = true;
    }
    if (key != NULL) {
        put(j, "\"", 1);
        put_text(j, key);
        put(j, "\":", 2);
    }
}

static void open_level(struct json_writer *j, const char *key, const char *open, char close)
{
    put_key(j, key);
    put(j, open, 1);
    ASSERT(j->depth < JSON_DEPTH_MAX);
    j->comma[j->depth] = false;
    j->close[j->depth++] = close;
}

void json_put_object(struct json_writer *j, const char *key)
{
    open_level(j, key, "{", '}');
}

void json_put_array(struct json_writer *j, const char *key)
{
    open_level(j, key, "[", ']');
}

void json_put_end(struct json_writer *j)
{
    ASSERT(j->depth > 0);
    put(j, &j->close[--j->depth], 1);
}

/* Writes backwards from `end`. This is ten times as fast as snprintf, and a series has thousands of numbers. */
static const char *digits(char *end, uint64_t value, bool minus)
{
    *end = 0;
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (minus) {
        *--end = '-';
    }
    return end;
}

void json_put_int(struct json_writer *j, const char *key, int64_t value)
{
    char text[32];
    put_key(j, key);
    put_text(j, digits(text + sizeof(text) - 1, value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                       value < 0));
}

/* Most JSON readers (jansson too) refuse a whole text if one number is larger than this. Some numbers come from other hosts. */
void json_put_uint(struct json_writer *j, const char *key, uint64_t value)
{
    char text[32];
    put_key(j, key);
    put_text(j, digits(text + sizeof(text) - 1, value < INT64_MAX ? value : INT64_MAX, false));
}

void json_put_double(struct json_writer *j, const char *key, double value)
{
    char text[40];
    if (!isfinite(value)) {
        json_put_null(j, key);
        return;
    }
    snprintf(text, sizeof(text), "%.9g", value);
    put_key(j, key);
    put_text(j, text);
}

void json_put_bool(struct json_writer *j, const char *key, bool value)
{
    put_key(j, key);
    put_text(j, value ? "true" : "false");
}

void json_put_null(struct json_writer *j, const char *key)
{
    put_key(j, key);
    put_text(j, "null");
}

void json_put_string(struct json_writer *j, const char *key, const char *value)
{
    if (value == NULL) {
        json_put_null(j, key);
        return;
    }
    put_key(j, key);
    put(j, "\"", 1);
    for (const char *s = value; *s != 0;) {
        const size_t n = utf8_length(s);
        if (n == 0) {
            put(j, "\xef\xbf\xbd", 3);
            s++;
            continue;
        }
        if (*s == '"' || *s == '\\') {
            put(j, "\\", 1);
        }
        if (n == 1 && ((unsigned char)*s < 0x20 || *s == 0x7f)) {
            char text[8];
            snprintf(text, sizeof(text), "\\u%04x", (unsigned)*s);
            put_text(j, text);
        } else {
            put(j, s, n);
        }
        s += n;
    }
    put(j, "\"", 1);
}

void json_put_raw(struct json_writer *j, const char *key, const char *json)
{
    put_key(j, key);
    put_text(j, json);
}

void json_put_hex64(struct json_writer *j, const char *key, uint64_t value)
{
    char text[20];
    snprintf(text, sizeof(text), "%016" PRIx64, value);
    json_put_string(j, key, value != 0 ? text : NULL);
}

void json_put_int_if(struct json_writer *j, const char *key, bool known, int64_t value)
{
    if (known) {
        json_put_int(j, key, value);
    } else {
        json_put_null(j, key);
    }
}
