/* foliot_text.c: how figures, times and colours are shown on a terminal. */
#include "app/foliot_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/time.h"
#include "core/finding/finding.h"

#define UNKNOWN "–"

struct cell text_format(const char *format, ...)
{
    struct cell cell;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cell.text, sizeof(cell.text), format, arguments);
    va_end(arguments);
    return cell;
}

/* Three digits: 1.23, 12.3, 123. */
static struct cell figures(double value, const char *unit)
{
    struct cell cell;
    const double size = fabs(value);
    const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;

    snprintf(cell.text, sizeof(cell.text), "%.*f %s", decimals, value, unit);
    return cell;
}

struct cell text_ns(int64_t ns)
{
    const double value = (double)ns, size = fabs(value);
    struct cell cell;

    if (size < 1e3) {
        snprintf(cell.text, sizeof(cell.text), "%" PRId64 " ns", ns);
        return cell;
    }
    return size < 1e6   ? figures(value / 1e3, "us")
           : size < 1e9 ? figures(value / 1e6, "ms")
                        : figures(value / 1e9, "s");
}

struct cell text_us(int64_t ns)
{
    return figures((double)ns / 1e3, "us");
}

struct cell text_time(int64_t utc_ns)
{
    char text[40];

    finding_time_text(utc_ns, text, sizeof(text));
    return text_format("%s UTC", text);
}

struct cell text_age(int64_t ns)
{
    const double s = (double)ns / 1e9;
    struct cell cell;

    if (s < 10) {
        snprintf(cell.text, sizeof(cell.text), "%.1f s", s);
    } else if (s < 120) {
        snprintf(cell.text, sizeof(cell.text), "%.0f s", s);
    } else if (s < 7200) {
        snprintf(cell.text, sizeof(cell.text), "%.0f min", s / 60);
    } else if (s < 172800) {
        snprintf(cell.text, sizeof(cell.text), "%.0f h", s / 3600);
    } else {
        snprintf(cell.text, sizeof(cell.text), "%.0f d", s / 86400);
    }
    return cell;
}

struct cell text_rate(int64_t bps)
{
    const double rate = (double)bps;
    struct cell cell;

    if (rate >= 1e9) {
        snprintf(cell.text, sizeof(cell.text), "%g Gbit/s", rate / 1e9);
    } else {
        snprintf(cell.text, sizeof(cell.text), "%g Mbit/s", rate / 1e6);
    }
    return cell;
}

struct cell text_ppm(int64_t ppm)
{
    struct cell cell;

    if (ppm == 0) {
        snprintf(cell.text, sizeof(cell.text), "0 %%");
    } else {
        snprintf(cell.text, sizeof(cell.text), "%.3g %%", (double)ppm / 1e4);
    }
    return cell;
}

bool field_get(const json_t *object, const char *name, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_integer(value)) {
        *ret_value = json_integer_value(value);
        return true;
    }
    if (json_is_real(value) && fabs(json_real_value(value)) < 9e18) {
        *ret_value = (int64_t)json_real_value(value);
        return true;
    }
    return false;
}

static struct cell field_as(const json_t *object, const char *name, struct cell (*text)(int64_t))
{
    struct cell unknown = {UNKNOWN};
    int64_t value;

    return field_get(object, name, &value) ? text(value) : unknown;
}

static struct cell text_integer(int64_t value)
{
    struct cell cell;

    snprintf(cell.text, sizeof(cell.text), "%" PRId64, value);
    return cell;
}

struct cell field_ns(const json_t *object, const char *name)
{
    return field_as(object, name, text_ns);
}

struct cell field_us(const json_t *object, const char *name)
{
    return field_as(object, name, text_us);
}

struct cell field_integer(const json_t *object, const char *name)
{
    return field_as(object, name, text_integer);
}

struct cell field_ppm(const json_t *object, const char *name)
{
    return field_as(object, name, text_ppm);
}

struct cell field_time(const json_t *object, const char *name)
{
    struct cell unknown = {"-"};
    int64_t value;

    return field_get(object, name, &value) ? text_time(value) : unknown;
}

struct cell field_text(const json_t *object, const char *name)
{
    struct cell cell = {UNKNOWN};
    const char *text = json_string_value(json_object_get(object, name));

    if (text != NULL) {
        snprintf(cell.text, sizeof(cell.text), "%s", text);
    }
    return cell;
}

const char *field_string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

bool field_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

bool colour_wanted(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fileno(stream)) && (no_color == NULL || *no_color == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

const char *colour_begin(FILE *stream, enum colour colour)
{
    static const char *const sequences[] = {
        [COLOUR_NONE] = "",          [COLOUR_GOOD] = "\033[32m", [COLOUR_WARN] = "\033[33m",
        [COLOUR_BAD] = "\033[1;31m", [COLOUR_DIM] = "\033[2m",   [COLOUR_BOLD] = "\033[1m",
    };

    return colour_wanted(stream) ? sequences[colour] : "";
}

const char *colour_end(FILE *stream)
{
    return colour_wanted(stream) ? "\033[0m" : "";
}

const char *colour_name(enum colour colour)
{
    static const char *const names[] = {
        [COLOUR_GOOD] = "green",   [COLOUR_WARN] = "yellow", [COLOUR_BAD] = "red",
        [COLOUR_DIM] = "darkgray", [COLOUR_BOLD] = "bold",
    };

    return (size_t)colour < ARRAY_COUNT(names) ? names[colour] : NULL;
}

enum colour colour_of_status(const char *status)
{
    static const struct {
        const char *word;
        enum colour colour;
    } words[] = {
        {"SYNCED", COLOUR_GOOD},   {"alive", COLOUR_GOOD},    {"ok", COLOUR_GOOD},
        {"up", COLOUR_GOOD},       {"honest", COLOUR_GOOD},   {"HOLDOVER", COLOUR_WARN},
        {"lossy", COLOUR_WARN},    {"warn", COLOUR_WARN},     {"flapping", COLOUR_WARN},
        {"DISRUPTED", COLOUR_BAD}, {"dead", COLOUR_BAD},      {"fail", COLOUR_BAD},
        {"down", COLOUR_BAD},      {"dishonest", COLOUR_BAD}, {"gone", COLOUR_BAD},
        {"UNKNOWN", COLOUR_BAD},
    };

    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strcmp(status, words[i].word) == 0) {
            return words[i].colour;
        }
    }
    return COLOUR_NONE;
}

int text_columns(FILE *stream)
{
    struct winsize size;

    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 100;
}

bool span_parse(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"s", NS_PER_S},
                 {"min", 60 * NS_PER_S},
                 {"m", 60 * NS_PER_S},
                 {"h", 3600 * NS_PER_S},
                 {"d", 86400 * NS_PER_S}};
    char *end = NULL;
    const double value = strtod(text, &end);

    for (size_t k = 0; k < ARRAY_COUNT(units) && end != text && value > 0 && value < 1e6; k++) {
        if (strcmp(end, units[k].name) == 0) {
            *ret_ns = (int64_t)(value * (double)units[k].ns);
            return true;
        }
    }
    return false;
}
