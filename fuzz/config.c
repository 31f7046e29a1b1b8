/* config.c: the YAML reader of all configuration files. It names the place of each error. */
#include "platform/config/config.h"

#include <string.h>

#include "fuzz.h"

static size_t walk(const struct config_node *node)
{
    size_t count = 0;

    ASSERT(config_line(node) > 0 && config_column(node) > 0);
    ASSERT(config_kind(node) != CONFIG_SCALAR || config_text(node) != NULL);
    for (const struct config_node *n = config_first(node); n != NULL; n = config_next(n)) {
        ASSERT(config_kind(node) != CONFIG_MAP || config_key(n) != NULL);
        walk(n);
        count++;
    }
    ASSERT(count == config_count(node));
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_error error = {""};
    struct config *config = NULL;

    if (config_parse("input", (const char *)data, size, &config, &error) < 0) {
        ASSERT(error.text[0] != 0 && config == NULL);
        return 0;
    }
    const struct config_node *root = config_root(config);
    int64_t number = 0;
    double real = 0;
    bool yes = false;
    struct span span = {0};
    walk(root);
    /* Each kind of value, from any text under these keys. */
    (void)(config_int(root, "a", -5, 1000, &number, &error) +
           config_double(root, "b", -1, 1, &real, &error) + config_bool(root, "c", &yes, &error) +
           config_span(root, "d", span_s(-1), span_s(1), &span, &error));
    ASSERT(number >= -5 && number <= 1000 && real >= -1 && real <= 1);
    ASSERT(span.ns >= -NS_PER_S && span.ns <= NS_PER_S);
    config_free(config);
    return 0;
}
