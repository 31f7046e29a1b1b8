/* foliot_text.h: how figures, times and colours look on a terminal; the same in every command.
 *
 * The format functions write into a `struct cell`, a value, so that several fit into one printf.
 * Colour is used only where the stream is a terminal and NO_COLOR is unset or empty (no-color.org).
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cell {
    char text[96];
};

/* Cut at the cell's end. */
struct cell text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "12 ns", "3.42 us", "-1.20 ms", "5.0 s": three figures. */
struct cell text_ns(int64_t ns);
/* The same in microseconds always, for columns that are compared. */
struct cell text_us(int64_t ns);
/* "2026-11-21 02:45:12.123456 UTC", as sentences of findings have it: the one format of times. */
struct cell text_time(int64_t utc_ns);
/* "5 s", "3 min", "2 h", "4 d". */
struct cell text_age(int64_t ns);
/* "200 Mbit/s". */
struct cell text_rate(int64_t bps);
/* "0.02 %". */
struct cell text_ppm(int64_t ppm);

/* "90min", "1d": as in the rule files, the other way round. False: said on stderr what was expected. */
bool span_parse(const char *text, int64_t *ret_ns);

/* One field of an object in words; "–" for null or missing. */
struct cell field_ns(const json_t *object, const char *name);
struct cell field_us(const json_t *object, const char *name);
struct cell field_integer(const json_t *object, const char *name);
struct cell field_ppm(const json_t *object, const char *name);
/* As text_time; "-" if it is not known. */
struct cell field_time(const json_t *object, const char *name);
struct cell field_text(const json_t *object, const char *name);
bool field_get(const json_t *object, const char *name, int64_t *ret_value);
/* "" if it is no string. */
const char *field_string(const json_t *object, const char *name);
bool field_true(const json_t *object, const char *name);

enum colour {
    COLOUR_NONE,
    COLOUR_GOOD,
    COLOUR_WARN,
    COLOUR_BAD,
    COLOUR_DIM,
    COLOUR_BOLD,
};
bool colour_wanted(FILE *stream);
/* The escape sequences, or "" where no colour is wanted. */
const char *colour_begin(FILE *stream, enum colour colour);
const char *colour_end(FILE *stream);
/* For libsmartcols, which takes a name. NULL: none. */
const char *colour_name(enum colour colour);
enum colour colour_of_status(const char *status);

/* Columns of the terminal; 100 where there is none. */
int text_columns(FILE *stream);
