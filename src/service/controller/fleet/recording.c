/* recording.c: the file with the brain's input. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "core/brain/brain.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/recording.h"
#include "service/record/brain_record.h"

int recording_open(struct controller *c)
{
    char path[CONTROLLER_PATH_SIZE + 32], before[CONTROLLER_PATH_SIZE + 32];
    c->brain = brain_new();
    if (c->brain == NULL) {
        return -ENOMEM;
    }
    if (!c->serves || c->config.record_bytes_max == 0) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/" RECORD_FILE, c->config.data_dir);
    snprintf(before, sizeof(before), "%s/" RECORD_BEFORE, c->config.data_dir);
    int r = rename(path, before) < 0 && errno != ENOENT ? -errno : 0;
    r = r < 0 ? r
              : brain_recorder_open(&c->recorder, path, c->config.record_bytes_max,
                                    controller_utc_ns());
    if (r < 0) {
        controller_say(LOG_WARNING, "%s can't be written: %s. Nothing is recorded", path,
                       strerror(-r));
        return 0;
    }
    const struct brain_witness witness = brain_recorder_witness(c->recorder);
    brain_witness(c->brain, &witness);
    return 0;
}

/* Closes the file: it is a whole recording of the input so far. */
static void end(struct controller *c)
{
    brain_witness(c->brain, NULL);
    c->recorder = brain_recorder_close(c->recorder);
}

void recording_second(struct controller *c)
{
    if (c->recorder == NULL) {
        return;
    }
    brain_recorder_flush(c->recorder);
    const struct brain_recorder_report report = brain_recorder_report(c->recorder);
    if (report.error != 0) {
        controller_say(LOG_WARNING, "the recording ends at %lld bytes: %s", (long long)report.bytes,
                       strerror(report.error));
        end(c);
    } else if (report.full) {
        controller_say(LOG_NOTICE,
                       "the recording has %lld bytes, all that record_mib allows: it ends here",
                       (long long)report.bytes);
        end(c);
    }
}

void recording_close(struct controller *c)
{
    if (c->recorder != NULL) {
        end(c);
    }
    brain_delete(c->brain);
    c->brain = NULL;
}
