/* foliot_audit_checks.c: `foliot audit checks` and `explain`: the catalogue as a table, as JSON, as the page docs/audit.md,
 * and as the manual foliot-audit-checks(7). */
#include <stdio.h>
#include <string.h>

#include "app/foliot_audit.h"
#include "app/foliot_foreign.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "service/audit/check_json.h"

enum { TEXT_MAX = 1 << 20 };

static int print_json(void)
{
    struct json_writer j;
    const char *text;
    size_t size;

    json_writer_init(&j, TEXT_MAX);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 1);
    json_put_string(&j, "kind", "audit-checks");
    json_put_array(&j, "checks");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        catalogue_check_put(&j, check_at(i));
    }
    json_put_end(&j);
    json_put_end(&j);
    if (json_writer_finish(&j, &text, &size) == 0) {
        fwrite(text, 1, size, stdout);
    }
    json_writer_done(&j);
    return EXIT_WELL;
}

/* A heading for the next part. */
static const char *next_part(uint32_t i)
{
    const char *part = check_part_name(check_at(i));

    return i > 0 && strcmp(part, check_part_name(check_at(i - 1))) == 0 ? NULL : part;
}

static int print_markdown(void)
{
    char text[CHECK_COMPARES_SIZE], costs[CHECK_COMPARES_SIZE];

    puts("| check | passes when | compares with | severity | cost | reads | shown on "
         "|\n|---|---|---|---|---|---|---|");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        const struct check *c = check_at(i);
        printf("| `%s` | %s | %s | %s | %s | ", c->id, c->title, check_compares(c, text),
               check_severity_name(c->severity), check_costs(c, costs));
        for (int k = 0; k < CHECK_FACTS_MAX && c->facts[k] != FACT_COUNT; k++) {
            printf("%s`%s`", k > 0 ? ", " : "", fact_name(c->facts[k]));
        }
        printf(" | %s |\n", check_shown_on(c));
    }
    return EXIT_WELL;
}

/* Escapes what scdoc takes for markup. */
static void print_escaped(const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\_*#~<>[]", *text) != NULL) {
            putchar('\\');
        }
        putchar(*text);
    }
}

static int print_man(void)
{
    char text[CHECK_COMPARES_SIZE], costs[CHECK_COMPARES_SIZE];

    puts("foliot-audit-checks(7) \"\" \"Foliot\"\n\n# NAME\n\nfoliot-audit-checks - what *foliot "
         "audit* looks at\n\n"
         "# DESCRIPTION\n\nThe checks of this release, printed from its own table. _foliot audit "
         "explain CHECK_ has one of them.\n"
         "The numbers behind a limit can be set in _audit.yaml_.\n\nEach line names what a check "
         "was "
         "shown on. On files and facts three things were shown: with a fault it fails, without the "
         "fault it passes, without its source it is unknown. On the others the first two were.\n\n"
         "*files*\n\tmachines as files, made up from public documentation\n\n*facts*\n\ta fact "
         "made up beside such a machine: only a controller has it\n\n*lab*\n\treal packets between "
         "network name spaces\n\n*kernel*\n\ta running kernel\n\n*soft-RoCE*\n\tthe kernel's RoCE "
         "without hardware, in a virtual machine\n\nNo check was shown on a machine with a GPU or "
         "an "
         "RDMA NIC.");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        const struct check *c = check_at(i);
        if (i == 0 || c->group != check_at(i - 1)->group) {
            printf("\n# %u %s\n", c->group, check_group_name(c->group));
        }
        fputs("\n*", stdout);
        print_escaped(c->id);
        printf("* (%s, %s, cost: %s, compares with: %s; shown on: %s)\n\t",
               check_subject_name(c->subject), check_severity_name(c->severity),
               check_costs(c, costs), check_compares(c, text), check_shown_on(c));
        print_escaped(c->title);
        fputs(". ", stdout);
        print_escaped(c->why);
        fputs(" Remedy: ", stdout);
        print_escaped(c->remedy);
        fputs(" Source: ", stdout);
        print_escaped(c->origin);
        puts(".");
    }
    puts("\n# SEE ALSO\n\n*foliot*(1), *foliot-inspect*(8)");
    return EXIT_WELL;
}

int audit_checks(const struct audit_options *o)
{
    static const char *const titles[] = {"CHECK", "SEVERITY", "PASSES WHEN", NULL};

    if (o->json || o->markdown || o->man) {
        return o->json ? print_json() : o->markdown ? print_markdown() : print_man();
    }
    for (uint32_t i = 0; i < CATALOGUE_COUNT;) {
        printf("%s%u %s: %s\n", i > 0 ? "\n" : "", check_at(i)->group,
               check_group_name(check_at(i)->group), next_part(i));
        struct libscols_table *table = table_new(titles);
        do {
            struct libscols_line *line = table != NULL ? table_line(table) : NULL;
            if (line != NULL) {
                table_put(line, 0, check_at(i)->id);
                table_put(line, 1, check_severity_name(check_at(i)->severity));
                table_put(line, 2, check_at(i)->title);
            }
            i++;
        } while (i < CATALOGUE_COUNT && next_part(i) == NULL);
        if (table != NULL) {
            table_show(table, stdout);
        }
    }
    printf("\n%u checks. One in full: foliot audit explain CHECK\n", CATALOGUE_COUNT);
    return EXIT_WELL;
}

int audit_explain(const struct audit_options *o, const char *id)
{
    const struct check *c = check_by_id(id);
    char text[CHECK_COMPARES_SIZE], costs[CHECK_COMPARES_SIZE];

    if (c == NULL) {
        fprintf(stderr, "foliot audit: no check '%s'; foliot audit checks lists them\n",
                foreign_text(id).text);
        return EXIT_USAGE;
    }
    if (o->json) {
        struct json_writer j;
        const char *all;
        size_t size;
        json_writer_init(&j, TEXT_MAX);
        catalogue_check_put(&j, c);
        if (json_writer_finish(&j, &all, &size) == 0) {
            fwrite(all, 1, size, stdout);
        }
        json_writer_done(&j);
        return EXIT_WELL;
    }
    printf("%s: %s\n\n  part       %u %s, %s\n  subject    %s\n  severity   %s\n  cost       %s\n  "
           "compares   with %s\n",
           c->id, c->title, c->group, check_group_name(c->group), check_part_name(c),
           check_subject_name(c->subject), check_severity_name(c->severity), check_costs(c, costs),
           check_compares(c, text));
    if (c->unit != NULL) {
        printf("  limits     fail %.15g, warn %.15g (%s); audit.yaml sets them\n", c->fail, c->warn,
               c->unit);
    }
    if (c->words != NULL) {
        printf("  values     %s\n", c->words);
    }
    for (int i = 0; i < CHECK_FACTS_MAX && c->facts[i] != FACT_COUNT; i++) {
        printf("  %-10s %s: %s\n", i == 0 ? "reads" : "", fact_name(c->facts[i]),
               fact_what(c->facts[i]));
    }
    if (c->applies.is != NULL) {
        printf("  only where %s is %s%s\n", fact_name(c->applies.fact),
               c->applies.not ? "not " : "", c->applies.is);
    }
    printf("  shown on   %s: none of it a machine with a GPU or an RDMA NIC\n", check_shown_on(c));
    printf("  source     %s\n\nwhy: %s\nremedy: %s\n", c->origin, c->why, c->remedy);
    return EXIT_WELL;
}
