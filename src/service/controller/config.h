/* config.h: the controller's configuration file: its values and their sizes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/time.h"
#include "platform/config/config.h"

#define CONTROLLER_DATA_DEFAULT   "/var/lib/foliot-controller"
#define CONTROLLER_CONFIG_DEFAULT "/etc/foliot/controller.yaml"
#define CONTROLLER_PORT           7638
#define CONTROLLER_API_PORT       7639
#define CONTROLLER_COMMIT_MS      50
#define CONTROLLER_PATH_SIZE      256
#define CONTROLLER_SLOT_NS        (10 * NS_PER_S)
#define CONTROLLER_SEAL_NS        (600 * NS_PER_S)
#define CONTROLLER_API_NAMES_MAX  16
#define CONTROLLER_API_NAME_SIZE  254

struct controller_config {
    char path[CONTROLLER_PATH_SIZE], data_dir[CONTROLLER_PATH_SIZE];
    char listen[80], api_listen[80];
    char api_socket[CONTROLLER_PATH_SIZE + 16]; /* empty: the default path; "none": no socket */
    /* alerts.yaml; empty: the default path, if the file exists */
    char alerts[CONTROLLER_PATH_SIZE];
    char levels[CONTROLLER_PATH_SIZE]; /* levels.yaml; the same */
    char audit[CONTROLLER_PATH_SIZE];  /* audit.yaml; the same */
    char api_certificate[CONTROLLER_PATH_SIZE], api_key[CONTROLLER_PATH_SIZE];
    /* further names of the API's certificate */
    char api_names[CONTROLLER_API_NAMES_MAX][CONTROLLER_API_NAME_SIZE];
    size_t api_name_count;
    bool metrics_open; /* /metrics needs no token */
    struct {
        char url[512], authorization_file[CONTROLLER_PATH_SIZE], authority[CONTROLLER_PATH_SIZE];
        bool paths;
    } remote; /* target of remote write; url empty: none */
    uint32_t report_ms, beat_ms;
    int64_t record_bytes_max; /* 0: no recording */
    int64_t certificate_s;    /* lifetime of a host's certificate */
    int64_t keep_fine_ns, keep_middle_ns, keep_coarse_ns, keep_events_ns;
};
/* path NULL: defaults. A missing file: defaults, unless must_be. -EINVAL with error->text. */
MUST_CHECK int controller_config_load(const char *path, bool must_be, struct controller_config *ret,
                                      struct config_error *error);

/* True if the API is served without TLS: only if it listens on the loopback address, and has no configured key. */
bool controller_api_plain(const struct controller_config *config);
