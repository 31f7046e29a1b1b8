/* control.c: the management network, the controller in it, and how hosts join. */
#include "lab/control.h"

#include "lab/agents.h"
#include "lab/machine.h"
#include "platform/http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_TRIES  200
#define START_US     25000
#define COMMAND_SIZE (PATH_MAX + 16)

static void space_of(const struct lab *lab, char ret_space[64])
{
    snprintf(ret_space, 64, "foliot-%s-mgmt", lab->name);
}

/* ---- the network ---- */

static int make_network(const struct lab *lab, const char *space)
{
    const int hosts = lab->scenario.fabric.hosts;
    char *text = NULL;
    size_t size = 0;
    FILE *ip = open_memstream(&text, &size);
    const char *argv[] = {"ip", "-batch", "-", NULL};
    if (ip == NULL) {
        return -ENOMEM;
    }
    fprintf(ip, "netns add %s\n", space);
    for (int h = 0; h < hosts; h++) {
        char host[64];
        lab_space(lab, NODE_HOST, h, host);
        fprintf(ip, "link add m%d netns %s type veth peer name mgmt0 netns %s\n", h, space, host);
    }
    fclose(ip);
    int r = machine_run(argv, text);
    free(text);
    return r;
}

static int fill_space(const struct lab *lab, const char *space, int host)
{
    char text[512];
    const char *argv[] = {"ip", "-netns", space, "-batch", "-", NULL};
    int used = 0;
    if (host >= 0) {
        snprintf(text, sizeof(text), "addr add 172.31.0.%d/16 dev mgmt0\nlink set mgmt0 up\n",
                 2 + host);
        return machine_run(argv, text);
    }
    snprintf(text, sizeof(text),
             "link set lo up\nlink add br0 type bridge\naddr add 172.31.0.1/16 dev br0\n"
             "link set br0 up\n");
    int r = machine_run(argv, text);
    for (int h = 0; h < lab->scenario.fabric.hosts && r == 0; h++) {
        used +=
            snprintf(text + used, sizeof(text) - (size_t)used, "link set m%d master br0 up\n", h);
        if (used > (int)sizeof(text) - 64 || h + 1 == lab->scenario.fabric.hosts) {
            r = machine_run(argv, text);
            used = 0;
        }
    }
    return r;
}

/* ---- programs ---- */

static int enter_space(const void *space)
{
    return machine_enter_network((const char *)space);
}

/* The output may hold a token, so only root may read the file. */
static int run_to_file(const char *file, struct machine_task task)
{
    const int output = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (output < 0) {
        return -errno;
    }
    task.output = &output;
    const int r = machine_spawn(&task);
    close(output);
    return r;
}

/* ---- the controller ---- */

/* The controller gets its own rules and receivers: with those of a real controller on this machine it would page people. */
static int write_controller(const struct lab *lab, int api_port, const char *file)
{
    char text[1024], alerts[LAB_TEXT_SIZE + 32];
    snprintf(alerts, sizeof(alerts), "%s/alerts.yaml", lab->folder);
    snprintf(text, sizeof(text),
             "data_dir: %s/controller\nlisten: " LAB_CONTROLLER "\napi_listen: 127.0.0.1:%d\n"
             "report: 2s\nbeat: 500ms\nalerts: %s\n",
             lab->folder, api_port, alerts);
    const int r = machine_write_file(alerts, "version: 1 # man foliot-alerts.yaml\n");
    return r < 0 ? r : machine_write_file(file, text);
}

/* The socket is on this machine's own loopback address; the controller serves it from another namespace. */
static int open_api(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0) {
        const int r = -errno;
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    return fd;
}

/* Finds the word in a file that begins with `prefix`. */
static int find_word(const char *file, const char *prefix, char ret_word[LAB_TEXT_SIZE])
{
    char line[512];
    FILE *f = fopen(file, "re");
    int r = -EPROTO;
    while (f != NULL && r < 0 && fgets(line, sizeof(line), f) != NULL) {
        const char *at = strstr(line, prefix);
        if (at != NULL) {
            snprintf(ret_word, LAB_TEXT_SIZE, "%.*s", (int)strcspn(at, " \r\n"), at);
            r = 0;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return r;
}

static int start_controller(const struct lab *lab, const char *space, int api_port,
                            char ret_join[LAB_TEXT_SIZE], char ret_admin[LAB_TEXT_SIZE])
{
    char program[PATH_MAX], config[LAB_TEXT_SIZE + 32], words[LAB_TEXT_SIZE + 32], uses[16];
    char ready[LAB_TEXT_SIZE + 32];
    const int socket = open_api(api_port);
    if (socket < 0) {
        return socket;
    }
    lab_program(lab, "foliot-controller", program);
    snprintf(config, sizeof(config), "%s/controller.yaml", lab->folder);
    snprintf(words, sizeof(words), "%s/controller.init", lab->folder);
    snprintf(ready, sizeof(ready), "%s/controller/ports", lab->folder);
    snprintf(uses, sizeof(uses), "%d", lab->scenario.fabric.hosts);
    const char *init[] = {program,      "--config", config, "init", "--address",
                          "172.31.0.1", "--uses",   uses,   NULL};
    const char *serve[] = {program, "--config", config, NULL};
    int r = write_controller(lab, api_port, config);
    if (r == 0) {
        r = run_to_file(words,
                        (struct machine_task){.argv = init, .enter = enter_space, .data = space});
    }
    if (r == 0 && ((r = find_word(words, "flj_", ret_join)) < 0 ||
                   (r = find_word(words, "fla_", ret_admin)) < 0)) {
        fprintf(stderr, "foliot lab: %s: expected two tokens, found no more than one\n", words);
    }
    snprintf(words, sizeof(words), "%s/controller.log", lab->folder);
    if (r == 0) {
        r = run_to_file(words, (struct machine_task){.argv = serve,
                                                     .enter = enter_space,
                                                     .data = space,
                                                     .socket = &socket,
                                                     .stays = true});
    }
    close(socket);
    for (int i = 0; r == 0 && access(ready, F_OK) < 0; i++) {
        usleep(START_US);
        r = i == START_TRIES ? -ETIMEDOUT : 0;
    }
    return r;
}

/* ---- the hosts ---- */

struct joiner {
    const struct lab *lab;
    int host;
};

static int enter_host(const void *data)
{
    const struct joiner *joiner = (const struct joiner *)data;
    return lab_host_enter(joiner->lab, joiner->host);
}

static int join_host(const struct lab *lab, int host, const char *token)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    char program[PATH_MAX], folder[LAB_TEXT_SIZE], config[LAB_TEXT_SIZE + 32], name[16];
    char words[LAB_TEXT_SIZE + 32], nics[16][16], leaves[16][16];
    const char *argv[16 + 4 * 16];
    int n = 0;
    lab_program(lab, "foliot-agent", program);
    lab_host_folder(lab, host, folder);
    snprintf(config, sizeof(config), "%s/agent.yaml", folder);
    snprintf(words, sizeof(words), "%s/join.log", folder);
    snprintf(name, sizeof(name), "host%d", host);
    const char *head[] = {program, "join",     LAB_CONTROLLER, token,         "--host",
                          name,    "--config", config,         "--state-dir", folder};
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) {
        argv[n++] = head[i];
    }
    for (int i = 0; i < f->nics_per_host; i++) {
        snprintf(nics[i], sizeof(nics[i]), "nic%d", i);
        snprintf(leaves[i], sizeof(leaves[i]), "leaf%d", lab_leaf_declared(lab, host, i));
        argv[n++] = "--nic";
        argv[n++] = nics[i];
        argv[n++] = "--leaf";
        argv[n++] = leaves[i];
    }
    argv[n] = NULL;
    const struct joiner joiner = {lab, host};
    return run_to_file(words,
                       (struct machine_task){.argv = argv, .enter = enter_host, .data = &joiner});
}

static int keep(const struct lab *lab, const char *name, const char *text)
{
    char file[LAB_TEXT_SIZE + 32];
    snprintf(file, sizeof(file), "%s/%s", lab->folder, name);
    int r = machine_write_file(file, text);
    return r == 0 && chmod(file, 0600) < 0 ? -errno : r;
}

int lab_control_up(const struct lab *lab, int api_port)
{
    char space[64], join[LAB_TEXT_SIZE], admin[LAB_TEXT_SIZE], address[LAB_TEXT_SIZE];
    const char *what = "its network";
    space_of(lab, space);
    int r = make_network(lab, space);
    for (int h = -1; h < lab->scenario.fabric.hosts && r == 0; h++) {
        char host[64];
        lab_space(lab, NODE_HOST, h, host);
        r = fill_space(lab, h < 0 ? space : host, h);
    }
    if (r == 0) {
        what = "its start failed: see controller.log and controller.init";
        r = start_controller(lab, space, api_port, join, admin);
    }
    for (int h = 0; h < lab->scenario.fabric.hosts && r == 0; h++) {
        what = "a host could not join: see its join.log";
        r = join_host(lab, h, join);
    }
    snprintf(address, sizeof(address), "http://127.0.0.1:%d/", api_port);
    if (r == 0) {
        what = "the files dashboard and token could not be written";
        r = keep(lab, "dashboard", address);
        r = r < 0 ? r : keep(lab, "token", admin);
    }
    if (r == -EADDRINUSE) {
        fprintf(stderr,
                "foliot lab: expected port %d of 127.0.0.1 to be free, it is taken: "
                "--controller=PORT\n",
                api_port);
    } else if (r < 0) {
        fprintf(stderr, "foliot lab: %s: controller: %s: %s\n", lab->folder, what, strerror(-r));
    }
    return r;
}

static bool read_line(const char *name, const char *file, char ret_text[LAB_TEXT_SIZE])
{
    char path[LAB_TEXT_SIZE + 32];
    snprintf(path, sizeof(path), LAB_ROOT "/%s/%s", name, file);
    FILE *f = fopen(path, "re");
    const bool good = f != NULL && fgets(ret_text, LAB_TEXT_SIZE, f) != NULL;
    if (f != NULL) {
        fclose(f);
    }
    return good;
}

bool lab_control_read(const char *name, char ret_address[LAB_TEXT_SIZE],
                      char ret_token[LAB_TEXT_SIZE])
{
    return read_line(name, "dashboard", ret_address) && read_line(name, "token", ret_token);
}

struct code_answer {
    char code[LAB_TEXT_SIZE];
    bool good;
};

static void on_code(void *context, const struct http_result *r)
{
    struct code_answer *a = context;
    json_t *body = r->error == 0 && r->status == 200 ? json_loadb(r->body, r->size, 0, NULL) : NULL;
    const char *code = json_string_value(json_object_get(body, "code"));
    a->good = code != NULL;
    snprintf(a->code, sizeof(a->code), "%s", code != NULL ? code : "");
    json_decref(body);
}

bool lab_sign_in_code(const char *address, const char *token, char ret_code[LAB_TEXT_SIZE])
{
    char url[LAB_TEXT_SIZE + 32], bearer[LAB_TEXT_SIZE + 32];
    struct code_answer a = {.good = false};
    snprintf(url, sizeof(url), "%sapi/v1/sign-in/codes", address);
    snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", token);
    const char *const headers[] = {bearer, NULL};
    const struct http_call call = {.url = url,
                                   .headers = headers,
                                   .body = "{}",
                                   .size = 2,
                                   .answer_max = 4096,
                                   .timeout_ms = 5000};
    if (http_call_now(&call, on_code, &a) < 0 || !a.good) {
        return false;
    }
    memcpy(ret_code, a.code, sizeof(a.code));
    return true;
}
