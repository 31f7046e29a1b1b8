/* foliot-inspect.c: reads this machine once, prints the sheet of its facts as JSON, and ends. systemd starts it for each
 * connection to its socket (packaging/foliot-inspect.socket), with the connection as its output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "platform/config/command_line.h"
#include "platform/json/json.h"
#include "service/audit/sheet_json.h"
#include "service/inspect/inspect.h"

enum { TEXT_MAX = 8 << 20, CAPTURE_MS = 20000 };

static int print(const struct sheet *s)
{
    struct json_writer j;
    const char *text;
    size_t size;

    json_writer_init(&j, TEXT_MAX);
    sheet_write(&j, s);
    int r = json_writer_finish(&j, &text, &size);
    if (r == 0) {
        r = fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0 ? 0 : -errno;
    }
    json_writer_done(&j);
    return r;
}

int main(int argc, char *argv[])
{
    struct inspect_config config = inspect_usual;
    const char *checks = NULL;
    int first = 0, r;
    const struct option_entry entries[] = {
        {"root", 0, OPTION_TEXT, &config.root, .value = "FOLDER",
         .help = "read below this folder, as if it were /"},
        {"checks", 0, OPTION_TEXT, &checks, .value = "FOLDER",
         .help = "run the site's programs in this folder [/etc/foliot/checks.d]"},
        {"run", 0, OPTION_TEXT, &config.run_folder, .value = "FOLDER",
         .help = "record hanging collectors in this folder [/run/foliot-inspect]"},
        {"deadline", 0, OPTION_INT, &config.deadline_ms, 10, 600000, .value = "MS",
         .help = "of each collector [2000]"},
        {"mount-deadline", 0, OPTION_INT, &config.mount_deadline_ms, 10, 600000, .value = "MS",
         .help = "for each mount to answer [5000]"},
        {"site-deadline", 0, OPTION_INT, &config.site_deadline_ms, 10, 600000, .value = "MS",
         .help = "for the site's programs together [60000]"},
        {"gpu-library", 0, OPTION_TEXT, &config.gpu_library, .value = "FILE",
         .help = "instead of libnvidia-ml.so.1 or libamd_smi.so; for a root none is asked without "
                 "it"},
        {"agent", 0, OPTION_TEXT, &config.agent_socket, .value = "SOCKET",
         .help =
             "of this host's agent [/run/foliot/agent.sock]; for a root none is asked without it"},
        {"capture", 0, OPTION_TEXT, &config.capture, .value = "FOLDER",
         .help = "also copy what was read into this folder: a tree of files without names, "
                 "addresses and serial "
                 "numbers of this machine"},
        {"slow", 0, OPTION_TEXT, &config.slow, .value = "NAME",
         .help = "for tests: this collector never ends"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
        {"version", 'V', OPTION_VERSION, .help = "version"},
    };
    const struct option_set set = {
        .program = "foliot-inspect",
        .usage =
            "usage: foliot-inspect [OPTIONS]\n\nReads this machine once and prints its facts as "
            "JSON.\n",
        .after = "\nExit status: 0 a sheet was printed, 1 it failed, 2 wrong usage.\n",
        .entries = entries,
        .count = ARRAY_COUNT(entries)};

    r = command_line_read(&set, argc, argv, &first);
    if (r != COMMAND_LINE_GOOD) {
        return r;
    }
    /* the site's programs run on this machine only, not for a tree of another machine */
    config.checks = checks != NULL ? checks : config.root != NULL ? NULL : config.checks;
    if (config.root != NULL && config.run_folder == inspect_usual.run_folder) {
        config.run_folder = NULL;
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (config.capture != NULL && config.deadline_ms == inspect_usual.deadline_ms) {
        config.deadline_ms = CAPTURE_MS; /* each file is read twice, and written */
    }
    if (config.capture != NULL && mkdir(config.capture, 0700) < 0) {
        fprintf(stderr, "foliot-inspect: %s: expected a folder that does not exist yet: %s\n",
                config.capture, strerror(errno));
        return 1;
    }
    struct sheet *s = sheet_new();
    r = s == NULL ? -ENOMEM : inspect_host(&config, s);
    if (r == 0) {
        r = print(s);
    }
    sheet_free(s);
    if (r < 0) {
        fprintf(stderr, "foliot-inspect: %s: %s\n",
                config.root != NULL ? config.root : "this machine", strerror(-r));
    }
    return r < 0 ? 1 : 0;
}
