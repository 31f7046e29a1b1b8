/* listen.c: opens the ports and sockets for agents and for users of the API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include "base/paths.h"
#include "service/controller/api/api.h"
#include "service/controller/api/live.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/state.h"
#include "service/controller/listen.h"

enum {
    AGENT_CONNECTION_MAX = 30000,
    API_CONNECTION_MAX = 1024,
    API_ADDRESS_MAX = 256,
    API_LOCAL_MAX = 256,
    API_HEAD_MS = 5000,
    API_BODY_MAX = 1 << 20, /* the highest limit; most requests have a lower one: api_on_head */
    STREAM_WAITING_MAX = 1 << 20,
    API_UNTAKEN_MAX = 256 << 20,
    ARRIVING_MAX = 256 << 20, /* packed bytes: 10,000 hosts with 26 KB each at once */
    ARRIVE_MS = 10000,
};

int listen_agents(struct controller *c)
{
    const struct http_server_config agents = {.loop = c->loop,
                                              .address = c->config.listen,
                                              .key = c->server_key,
                                              .certificate = c->server_certificate,
                                              .trust = c->authority,
                                              .body_max = MESSAGE_BODY_MAX,
                                              .connection_max = AGENT_CONNECTION_MAX,
                                              .arriving_max = ARRIVING_MAX,
                                              .arrive_ms = ARRIVE_MS,
                                              .idle_s = 90,
                                              .on_head = ingest_on_head,
                                              .on_request = ingest_on_request,
                                              .on_gone = ingest_on_gone,
                                              .context = c};
    const int r = http_server_open(&agents, &c->agents);
    if (r < 0) {
        controller_say(LOG_ERR, "listen %s: %s", c->config.listen, strerror(-r));
    }
    return r;
}

/* A socket from systemd (or a program with the same protocol): a socket unit with FileDescriptorName=. 0: none. */
static int handed_socket(const char *name)
{
    char **names = NULL;
    const int count = sd_listen_fds_with_names(0, &names);
    int fd = 0;
    for (int i = 0; i < count; i++) {
        fd = fd == 0 && strcmp(names[i], name) == 0 ? SD_LISTEN_FDS_START + i : fd;
        free(names[i]);
    }
    free(names);
    return fd;
}

/* True for a Unix socket, or a socket on the loopback address: no other machine can read its traffic. */
static bool stays_here(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    const struct sockaddr_in *in = (const void *)&address;
    const struct sockaddr_in6 *in6 = (const void *)&address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        return false;
    }
    return address.ss_family == AF_UNIX ||
           (address.ss_family == AF_INET && (ntohl(in->sin_addr.s_addr) >> 24) == 127) ||
           (address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr));
}

/* Common settings of the API's servers. The caller adds the address and the clients' rights. */
static struct http_server_config api_config(struct controller *c)
{
    return (struct http_server_config){.loop = c->loop,
                                       .body_max = API_BODY_MAX,
                                       .arrive_ms = ARRIVE_MS,
                                       .idle_s = 60,
                                       .stream_max = STREAM_WAITING_MAX,
                                       .untaken_max = API_UNTAKEN_MAX,
                                       .web = true,
                                       .on_head = api_on_head,
                                       .on_request = api_on_request,
                                       .on_gone = api_on_gone,
                                       .on_drained = api_stream_drained,
                                       .context = c};
}

int listen_api(struct controller *c)
{
    char *key = NULL, *certificate = NULL;
    int r = 0;
    if (c->config.api_key[0] != 0) {
        r = tls_read_file(c->config.api_key, &key);
        r = r < 0 ? r : tls_read_file(c->config.api_certificate, &certificate);
    }
    const int handed = handed_socket("api");
    const bool plain = c->api_plain = handed == 0 ? controller_api_plain(&c->config)
                                                  : c->config.api_key[0] == 0 && stays_here(handed);
    struct http_server_config api = api_config(c);
    api.address = c->config.api_listen;
    api.socket = handed;
    api.key = plain ? NULL : key != NULL ? key : c->api_key;
    api.certificate = plain ? NULL : certificate != NULL ? certificate : c->api_certificate;
    api.connection_max = API_CONNECTION_MAX;
    api.address_max = API_ADDRESS_MAX;
    api.head_ms = API_HEAD_MS;
    struct tls_certificate shown;
    if (api.certificate != NULL && tls_certificate_read(api.certificate, &shown) == 0) {
        c->api_not_after = shown.not_after;
    }
    r = r < 0 ? r : http_server_open(&api, &c->api);
    if (r < 0) {
        controller_say(LOG_ERR, "api_listen %s: %s", c->config.api_listen, strerror(-r));
    }
    tls_wipe(key);
    free(certificate);
    return r;
}

/* The controller in the default directory uses CONTROLLER_SOCKET_PATH, which the CLI knows. Other controllers on this machine
 * (of a lab, of tests) have their socket beside their store. */
static void place_socket(struct controller_config *config)
{
    if (config->api_socket[0] != 0) {
        return;
    }
    if (strcmp(config->data_dir, CONTROLLER_DATA_DEFAULT) == 0) {
        snprintf(config->api_socket, sizeof(config->api_socket), CONTROLLER_SOCKET_PATH);
        (void)mkdir(CONTROLLER_SOCKET_FOLDER, 0755);
    } else {
        snprintf(config->api_socket, sizeof(config->api_socket), "%s/api.sock", config->data_dir);
    }
}

/* Serves the same API for users of this machine. If this fails, the controller serves without it. */
void listen_local(struct controller *c)
{
    place_socket(&c->config);
    struct http_server_config api = api_config(c);
    api.address = c->config.api_socket;
    api.connection_max = API_LOCAL_MAX;
    const int r =
        strcmp(c->config.api_socket, "none") == 0 ? 0 : http_server_open(&api, &c->api_local);
    if (r < 0) {
        controller_say(
            LOG_WARNING, "api_socket %s: %s: the API is at api_listen alone", c->config.api_socket,
            r == -EEXIST ? "expected a socket or nothing there, found another file" : strerror(-r));
    }
}

/* Writes the file with the ports, for scripts, and for tests that let the system choose a port. It is not synced: it is valid
 * only for this run, and on a busy disk a sync may block the loop for seconds. */
void listen_write_ports(struct controller *c)
{
    char path[CONTROLLER_PATH_SIZE + 32], beside[CONTROLLER_PATH_SIZE + 40];
    snprintf(path, sizeof(path), "%s/ports", c->config.data_dir);
    snprintf(beside, sizeof(beside), "%s.new", path);
    FILE *file = fopen(beside, "we");
    bool good = file != NULL && fprintf(file, "agents %u\napi %u\n", http_server_port(c->agents),
                                        http_server_port(c->api)) > 0;
    good = file != NULL && fclose(file) == 0 && good;
    if (!good || rename(beside, path) < 0) {
        controller_say(LOG_WARNING, "%s: can't be written", path);
    }
}
