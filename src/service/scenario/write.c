/* write.c: writes a scenario as a file, with the tables that the reader uses. */
#include "service/scenario/fields.h"

#include "base/time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Uses the largest unit that gives a whole number: 1500ms, not 1.5s. */
static void write_span(FILE *to, int64_t ns)
{
    static const struct {
        int64_t ns;
        const char *unit;
    } units[] = {{60 * NS_PER_S, "min"}, {NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}};

    for (size_t i = 0; i < ARRAY_COUNT(units) && ns != 0; i++) {
        if (ns % units[i].ns == 0) {
            fprintf(to, "%" PRId64 "%s", ns / units[i].ns, units[i].unit);
            return;
        }
    }
    fprintf(to, "%" PRId64 "ns", ns);
}

/* Writes the shortest text that is read as the same number. */
static void write_number(FILE *to, double value)
{
    char text[40];

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, to);
}

static size_t size_of(const struct field *f)
{
    switch (f->kind) {
    case FIELD_INT:
    case FIELD_CHOICE:
        return sizeof(int);
    case FIELD_BYTES:
    case FIELD_SPAN:
        return sizeof(int64_t);
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_TARGET:
        return sizeof(struct scenario_target);
    default:
        return sizeof(double);
    }
}

static void write_value(FILE *to, const struct field *f, const void *place)
{
    char target[SCENARIO_TEXT_SIZE];

    switch (f->kind) {
    case FIELD_INT:
        fprintf(to, "%d", *(const int *)place);
        break;
    case FIELD_BYTES:
        fprintf(to, "%" PRId64, *(const int64_t *)place);
        break;
    case FIELD_BOOL:
        fputs(*(const bool *)place ? "yes" : "no", to);
        break;
    case FIELD_CHOICE:
        fputs(f->choices[*(const unsigned *)place], to);
        break;
    case FIELD_SPAN:
        write_span(to, *(const int64_t *)place);
        break;
    case FIELD_SPAN_DOUBLE:
        write_span(to, (int64_t) * (const double *)place);
        break;
    case FIELD_TARGET:
        scenario_target_text(place, target, sizeof(target));
        fputs(target, to);
        break;
    case FIELD_NUMBER:
    case FIELD_SHARE:
        write_number(to, *(const double *)place);
        break;
    }
}

/* Writes the fields that differ from the defaults. Returns the separator for the next field. */
static const char *write_fields(FILE *to, const struct field *fields, size_t count,
                                const void *base, const void *defaults, const char *before)
{
    for (size_t i = 0; i < count; i++) {
        const struct field *f = &fields[i];
        const void *place = (const char *)base + f->offset;
        if (memcmp(place, (const char *)defaults + f->offset, size_of(f)) != 0) {
            fprintf(to, "%s%s: ", before, f->key);
            write_value(to, f, place);
            before = ", ";
        }
    }
    return before;
}

static void write_section(FILE *to, const char *key, const struct field *fields, size_t count,
                          const void *base, const void *defaults)
{
    fprintf(to, "%s: {", key);
    (void)write_fields(to, fields, count, base, defaults, "");
    fputs("}\n", to);
}

static void write_faults(FILE *to, const struct scenario *s)
{
    fputs(s->fault_count > 0 ? "faults:\n" : "", to);
    for (int i = 0; i < s->fault_count; i++) {
        struct scenario_fault defaults;
        const char *needs = scenario_fault_rules[s->fault[i].kind].needs;
        scenario_fault_init(&defaults);
        for (size_t k = 0; k < scenario_fault_field_count && needs != NULL; k++) {
            const struct field *f = &scenario_fault_fields[k];
            if (strcmp(f->key, needs) == 0) {
                /* differs from every value: so it is always written */
                memset((char *)&defaults + f->offset, 0x5a, size_of(f));
            }
        }
        fprintf(to, "  - {kind: %s", scenario_fault_name(s->fault[i].kind));
        (void)write_fields(to, scenario_fault_fields, scenario_fault_field_count, &s->fault[i],
                           &defaults, ", ");
        fputs("}\n", to);
    }
}

static void write_traffic(FILE *to, const struct scenario *s)
{
    struct scenario_traffic defaults;

    scenario_traffic_init(&defaults, s);
    defaults.kind = (enum scenario_traffic_kind) - 1; /* so it is always written */
    fputs(s->traffic_count > 0 ? "traffic:\n" : "", to);
    for (int i = 0; i < s->traffic_count; i++) {
        fputs("  - {", to);
        (void)write_fields(to, scenario_traffic_fields, scenario_traffic_field_count,
                           &s->traffic[i], &defaults, "");
        fputs("}\n", to);
    }
}

static void write_bounds(FILE *to, const struct scenario *s)
{
    static const char *const relations[] = {"below", "above", "equals"};

    fputs(s->bound_count > 0 ? "bounds:\n" : "", to);
    for (int i = 0; i < s->bound_count; i++) {
        const struct scenario_bound *b = &s->bound[i];
        fprintf(to, "  - {what: %s, %s: ", b->what, relations[b->relation]);
        write_number(to, b->limit);
        if (b->from_ns > 0) {
            fputs(", from: ", to);
            write_span(to, b->from_ns);
        }
        if (b->until_ns != s->duration_ns) {
            fputs(", until: ", to);
            write_span(to, b->until_ns);
        }
        if (b->fault >= 0) {
            fprintf(to, ", fault: %d", b->fault);
        }
        fputs("}\n", to);
    }
}

int scenario_write(const struct scenario *s, FILE *to)
{
    static const char *const worlds[] = {"none", "sim", "lab", "both"};
    struct scenario *defaults = malloc(sizeof(*defaults));

    if (defaults == NULL) {
        return -ENOMEM;
    }
    scenario_init(defaults);
    fprintf(to, "name: %s\nwhy: >-\n  %s\nworld: %s\n", s->name, s->why, worlds[s->world & 3]);
    fprintf(to, "%s%sseed: %" PRIu64 "\nduration: ", s->slow ? "slow: yes\n" : "",
            s->wire ? "wire: yes\n" : "", s->seed);
    write_span(to, s->duration_ns);
    fputc('\n', to);
    write_section(to, "fabric", scenario_fabric_fields, scenario_fabric_field_count, &s->fabric,
                  &defaults->fabric);
    write_section(to, "clocks", scenario_clocks_fields, scenario_clocks_field_count, &s->clocks,
                  &defaults->clocks);
    write_traffic(to, s);
    write_faults(to, s);
    write_bounds(to, s);
    free(defaults);
    return ferror(to) ? -EIO : 0;
}
