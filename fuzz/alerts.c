/* alerts.c: an alerts.yaml of any bytes. An engine can use what is taken. What is refused has words. */
#include "service/alert/file.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct alert_file file;
    struct config_error error = {""};
    struct alert_config config = {0};

    if (alert_file_parse("input", (const char *)data, size, &file, &error) < 0) {
        ASSERT(error.text[0] != 0);
        return 0;
    }
    ASSERT(file.rule_count <= ALERT_RULE_MAX && file.receiver_count <= ALERT_RECEIVER_MAX &&
           file.route_count <= ALERT_ROUTE_MAX && file.window_count <= ALERT_WINDOW_MAX);
    for (size_t i = 0; i < file.rule_count; i++) {
        ASSERT(alert_rule_check(&file.rules[i]) == NULL);
        ASSERT(alert_file_find(&file, file.rules[i].name) == (int)i);
    }
    for (size_t i = 0; i < file.receiver_count; i++) {
        ASSERT(file.receivers[i].kind <= RECEIVER_COMMAND && file.receivers[i].name[0] != 0);
    }
    alert_file_config(&file, &config);
    config.alert_max = config.incident_max = config.watch_max = 16;
    config.first_incident = 1;
    struct alerts *engine = alerts_new(&config, (struct mono){1});
    ASSERT(engine != NULL);
    alerts_tick(engine, (struct mono){NS_PER_S});
    alerts_free(engine);
    return 0;
}
