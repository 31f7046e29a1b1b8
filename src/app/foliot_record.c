/* foliot_record.c: `foliot record`: writes the last minutes of the input of the agent's core modules into a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_client.h"
#include "app/foliot_text.h"

#define TIMEOUT_MS 10000

static void default_name(const char *host, char *buffer, size_t size)
{
    const time_t now = time(NULL);
    struct tm tm;
    char when[32];

    gmtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
    snprintf(buffer, size, "foliot-%.40s-%s.record", *host != '\0' ? host : "host", when);
}

static int save(struct client *client, const json_t *answer, const char *path)
{
    int64_t size = 0;

    if (!field_get(answer, "size_bytes", &size) || size < 0) {
        return -EPROTO;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        fprintf(stderr, "foliot record: %s: %s\n", path, strerror(errno));
        return -EPROTO; /* already printed */
    }
    int r = client_copy(client, (size_t)size, TIMEOUT_MS, fd);
    if (r == 0 && fsync(fd) < 0) {
        r = -errno;
    }
    close(fd);
    if (r < 0) {
        fprintf(stderr, "foliot record: %s: %s; removed\n", path, strerror(-r));
        unlink(path);
    }
    return r;
}

static int record(const struct options *options, const char *file)
{
    struct client client;
    json_t *answer = NULL;
    char name[128];
    int r = client_open(&client, options->targets[0].path);

    if (r < 0) {
        client_explain(&options->targets[0], r);
        return EXIT_UNREACHABLE;
    }
    r = client_send(&client, "get", "record");
    if (r == 0) {
        r = client_receive(&client, TIMEOUT_MS, &answer);
    }
    if (r == 0) {
        default_name(field_string(answer, "host"), name, sizeof(name));
        file = file != NULL ? file : name;
        r = save(&client, answer, file);
    }
    if (r == 0) {
        int64_t oldest = 0, newest = 0;
        (void)field_get(answer, "oldest_mono_ns", &oldest);
        (void)field_get(answer, "newest_mono_ns", &newest);
        printf("%s: %s events over %s, %s bytes. foliot sim replay %s\n", file,
               field_integer(answer, "events").text, text_age(newest - oldest).text,
               field_integer(answer, "size_bytes").text, file);
    } else {
        client_explain(&options->targets[0], r);
    }
    json_decref(answer);
    client_close(&client);
    return r == 0 ? EXIT_WELL : EXIT_UNREACHABLE;
}

int command_record(int argc, char *argv[])
{
    const char *file = NULL;
    const struct option_entry own[] = {{"output", 'o', OPTION_TEXT, &file, .expected = "a file"}};
    struct options options;
    int status = options_parse_with(&options, command_find("record"), own, 1, argc, argv);

    if (status == 0 && !options.help) {
        if (options.target_count != 1) {
            fputs("foliot record: one agent at a time: --host\n", stderr);
            status = EXIT_USAGE;
        } else {
            status = record(&options, file);
        }
    }
    options_done(&options);
    return status;
}
