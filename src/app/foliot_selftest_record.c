/* foliot_selftest_record.c: see foliot_selftest_rdma.h: `foliot selftest rdma --record FILE`. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/foliot_selftest_rdma.h"
#include "platform/sysfs/sysfs.h"
#include "service/inspect/capture.h"

#define PATH_SIZE 1024
#define TEXT_SIZE 4096
#define DEVICES   "/sys/class/infiniband"

void selftest_record_begin(struct selftest_record *r, const char *root)
{
    const char *place = getenv("TMPDIR");

    scrub_init(&r->scrub);
    capture_names(&r->scrub, root);
    snprintf(r->folder, sizeof(r->folder), "%s/foliot-record-XXXXXX",
             place != NULL && strlen(place) < 32 ? place : "/tmp");
    r->begun = mkdtemp(r->folder) != NULL;
    r->error = r->begun ? 0 : -errno;
    if (r->begun) {
        capture_begin(&r->scrub, r->folder);
    }
}

/* ---- the kernel's files, as the capture kept them ---- */

static void put_file(FILE *out, int folder, const char *name, const char *path)
{
    char text[TEXT_SIZE];
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    if (fd >= 0) {
        close(fd);
    }
    if (n > 0) { /* otherwise the file was only listed, not read */
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
        fprintf(out, "%s\t%s\n", path, text);
    }
}

static void put_link(FILE *out, int folder, const char *name, const char *path)
{
    char target[PATH_SIZE];
    const ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

    if (n > 0) {
        fprintf(out, "%s\t-> %.*s\n", path, (int)n, target);
    }
}

/* Writes the files sorted by name, so that two recordings of one machine have the same order. Removes the files that it wrote. */
static void put_folder(FILE *out, int parent, const char *name, const char *path)
{
    char below[PATH_SIZE];
    struct dirent **entries = NULL;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int count = fd < 0 ? 0 : scandirat(fd, ".", &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        const char *one = entries[i]->d_name;
        struct stat status;
        const bool fits = snprintf(below, sizeof(below), "%s/%s", path, one) < PATH_SIZE;
        if (strcmp(one, ".") != 0 && strcmp(one, "..") != 0 && fits &&
            fstatat(fd, one, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            if (S_ISDIR(status.st_mode)) {
                put_folder(out, fd, one, below);
            } else if (S_ISLNK(status.st_mode)) {
                put_link(out, fd, one, below);
            } else {
                put_file(out, fd, one, below);
            }
            (void)unlinkat(fd, one, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
        }
        free(entries[i]);
    }
    free(entries);
    if (fd >= 0) {
        close(fd);
    }
}

/* ---- the library's answers ---- */

/* Writes a GID in the kernel's form, scrubbed as in a GID's file, so that both are the same. */
static void put_gid(const struct selftest_record *r, FILE *out, const char *path,
                    const struct rdma_gid *gid)
{
    char text[64], file[PATH_SIZE];
    size_t at = 0;

    for (size_t i = 0; i < 16; i += 2) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i > 0 ? ":" : "",
                               gid->gid[i], gid->gid[i + 1]);
    }
    snprintf(text + at, sizeof(text) - at, "\n");
    snprintf(file, sizeof(file), DEVICES "/any/ports/1/gids/%u", gid->index);
    fprintf(out, "%s/gids/%u\t%s ", path, gid->index, rdma_gid_type_name(gid->type));
    if (scrub_file(&r->scrub, file, text, out) < 0) {
        fputs("refused\n", out);
    }
}

static void put_lid(const struct selftest_record *r, FILE *out, const char *path, const char *name,
                    uint32_t lid)
{
    char text[32];

    snprintf(text, sizeof(text), "0x%x\n", lid);
    fprintf(out, "%s/%s\t", path, name);
    if (scrub_file(&r->scrub, DEVICES "/any/ports/1/lid", text, out) < 0) {
        fputs("refused\n", out);
    }
}

static void put_limits(FILE *out, const char *path, const struct rdma_limits *l)
{
    fprintf(
        out,
        "%s/limits\tqp %u sends %u sge %u cq %u cqe %u memories %u ports %u dmabuf %d stamps %d "
        "clock_khz %" PRIu64 "\n",
        path, l->qp, l->sends, l->sge, l->cq, l->cqe, l->memories, l->ports, l->dmabuf,
        l->cqe_stamps, l->clock_khz);
}

static void put_statuses(FILE *out, const char *path, const char *name,
                         const uint32_t counts[RDMA_STATUS_MAX])
{
    fprintf(out, "%s/fence/%s\t", path, name);
    for (int i = 0; i < RDMA_STATUS_MAX; i++) {
        if (counts[i] > 0) {
            fprintf(out, "%d:%u ", i, counts[i]);
        }
    }
    putc('\n', out);
}

static void put_fence(FILE *out, const char *path, const struct port *p)
{
    const struct rdma_trial *t = &p->trial;

    fprintf(out,
            "%s/fence/rounds\tmade %u moved_after_return %u moved_after_marker %u out_of_order %u "
            "no_marker %u writes %" PRIu64 " bytes_after_marker %" PRIu64 "\n",
            path, t->rounds, t->moved_after_return, t->moved_after_marker, t->out_of_order,
            t->no_marker, t->writes, t->bytes_after_marker);
    fprintf(out,
            "%s/fence/ns\tconnect_p50 %" PRId64 " connect_max %" PRId64 " marker_p50 %" PRId64
            " marker_max %" PRId64 "\n",
            path, t->connect_ns_p50, t->connect_ns_max, t->marker_ns_p50, t->marker_ns_max);
    put_statuses(out, path, "sends", t->sends);
    put_statuses(out, path, "receives", t->receives);
    fprintf(out, "%s/fence/verdict\t%s\n", path, selftest_verdict(p->verdict));
}

static void put_port(const struct selftest_record *r, FILE *out, const struct port *p)
{
    const struct rdma_port_now *n = &p->now;
    char device[SCRUB_NAME_SIZE], of_device[SCRUB_NAME_SIZE + 16], path[SCRUB_NAME_SIZE + 48];

    snprintf(of_device, sizeof(of_device), "/verbs/%s",
             scrub_part(&r->scrub, DEVICES, p->facts->device, device));
    snprintf(path, sizeof(path), "%s/ports/%u", of_device, p->facts->port);
    if (p->step != NULL) {
        fprintf(out, "%s/failed\t%d %s\n", path, -p->error, p->step);
    }
    if (!p->opened) {
        return;
    }
    put_limits(out, of_device, &p->limits);
    fprintf(out,
            "%s/now\tstate %u active_mtu %u mtu %u lmc %u sl %u infiniband %d grh %d gids %u pkeys "
            "%u\n",
            path, n->state, n->active_mtu, n->mtu, n->lmc, n->sl, n->infiniband, n->grh_required,
            n->gids, n->pkeys);
    put_lid(r, out, path, "lid", n->lid);
    put_lid(r, out, path, "sm_lid", n->sm_lid);
    for (int i = 0; i < p->gid_count; i++) {
        put_gid(r, out, path, &p->gids[i]);
    }
    if (p->tried) {
        put_fence(out, path, p);
    }
}

int selftest_record_write(struct selftest_record *r, const char *file, const struct port *ports,
                          int count)
{
    FILE *out = r->begun ? fopen(file, "we") : NULL;

    sysfs_watch(NULL, NULL);
    if (out == NULL) {
        return r->begun ? -errno : r->error;
    }
    fputs("# foliot selftest rdma --record, version 1. Addresses, GUIDs and names are others than "
          "the machine's.\n",
          out);
    put_folder(out, AT_FDCWD, r->folder, "");
    for (int i = 0; i < count; i++) {
        put_port(r, out, &ports[i]);
    }
    return fclose(out) != 0 ? -errno : 0;
}

/* Removes the files that were not written. */
void selftest_record_end(struct selftest_record *r)
{
    FILE *nowhere = r->begun ? fopen("/dev/null", "we") : NULL;

    sysfs_watch(NULL, NULL);
    if (nowhere != NULL) {
        put_folder(nowhere, AT_FDCWD, r->folder, "");
        fclose(nowhere);
    }
    if (r->begun) {
        (void)rmdir(r->folder);
    }
}
