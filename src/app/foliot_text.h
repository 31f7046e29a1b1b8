/* foliot_text.h: the one form of figures, times and colours on a terminal, for every command.
 *
 * The format functions return a `struct cell` by value, so one printf can use several. Colour is used only if the stream is a
 * terminal and NO_COLOR is unset or empty (no-color.org). */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cell {
    char text[96];
};

/* A text that is too long for the cell is cut. */
struct cell text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "12 ns", "3.42 us", "-1.20 ms", "5.0 s": three figures. */
struct cell text_ns(int64_t ns);
/* The same, always in microseconds, for columns that are compared. */
struct cell text_us(int64_t ns);
/* "2026-11-21 02:45:12.123456 UTC". All commands and findings show times in this form. */
struct cell text_time(int64_t utc_ns);
/* "5 s", "3 min", "2 h", "4 d". */
struct cell text_age(int64_t ns);
/* "200 Mbit/s". */
struct cell text_rate(int64_t bps);
/* "0.02 %". */
struct cell text_ppm(int64_t ppm);

/* Reads a time such as "90min" or "1d", in the form of the rule files. False: the expected form was printed on stderr. */
bool span_parse(const char *text, int64_t *ret_ns);

/* One field of an object as text; "–" if it is null or missing. */
struct cell field_ns(const json_t *object, const char *name);
struct cell field_us(const json_t *object, const char *name);
struct cell field_integer(const json_t *object, const char *name);
struct cell field_ppm(const json_t *object, const char *name);
/* As text_time(); "-" if it is unknown. */
struct cell field_time(const json_t *object, const char *name);
struct cell field_text(const json_t *object, const char *name);
bool field_get(const json_t *object, const char *name, int64_t *ret_value);
/* "" if the field is no string. */
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
/* The escape sequences, or "" if no colour is wanted. */
const char *colour_begin(FILE *stream, enum colour colour);
const char *colour_end(FILE *stream);
/* The colour's name, for libsmartcols. NULL: none. */
const char *colour_name(enum colour colour);
enum colour colour_of_status(const char *status);

/* The width of the terminal in columns; 100 without a terminal. */
int text_columns(FILE *stream);
