/* net_client.c: finds a plugin, and hides the differences between the versions of the network table. */
#include "app/perf/net_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The table of one version. */
#define TABLE(c, v) ((const struct nccl_net_v##v *)(c)->table)

/* -- finding the plugin */

static const void *table_of(void *library, int version)
{
    char name[32];

    snprintf(name, sizeof(name), "ncclNetPlugin_v%d", version);
    return dlsym(library, name);
}

static void *load(struct net_client *client, const char *format, const char *folder,
                  const char *plugin)
{
    if ((size_t)snprintf(client->path, sizeof(client->path), format, folder, plugin) >=
        sizeof(client->path)) {
        return NULL;
    }
    return dlopen(client->path, RTLD_NOW | RTLD_LOCAL);
}

/* As NCCL: first the name itself, then libnccl-net-NAME.so. Then beside this program, for a build that isn't installed. */
static void *find(struct net_client *client, const char *plugin)
{
    static const char *const near[] = {"",
                                       "../lib/",
                                       "../plugin/",
                                       "../../test/reference/",
                                       "../lib/x86_64-linux-gnu/",
                                       "../lib/aarch64-linux-gnu/"};
    char self[PATH_MAX], folder[PATH_MAX + 64], *slash;
    void *library = load(client, "%s%s", "", plugin);
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (library == NULL && strchr(plugin, '/') == NULL) {
        library = load(client, "%slibnccl-net-%s.so", "", plugin);
    }
    if (library != NULL || length <= 0 || strchr(plugin, '/') != NULL) {
        return library;
    }
    self[length] = '\0';
    slash = strrchr(self, '/');
    slash[1] = '\0';
    for (size_t i = 0; library == NULL && i < ARRAY_COUNT(near); i++) {
        snprintf(folder, sizeof(folder), "%s%s", self, near[i]);
        library = load(client, "%s%s", folder, plugin);
        if (library == NULL) {
            library = load(client, "%slibnccl-net-%s.so", folder, plugin);
        }
    }
    return library;
}

int net_client_open(struct net_client *client, const char *plugin, int version, char *ret_why,
                    size_t why_size)
{
    const int high = version != 0 ? version : NET_VERSION_MAX;
    const int low = version != 0 ? version : NET_VERSION_MIN;

    *client = (struct net_client){0};
    void *library = find(client, plugin);
    if (library == NULL) {
        snprintf(ret_why, why_size, "%s", dlerror());
        return -ENOENT;
    }
    for (int v = high; v >= low; v--) {
        const void *table = table_of(library, v);
        if (table != NULL) {
            client->library = library;
            client->version = v;
            client->table = table;
            memcpy(&client->name, table, sizeof(client->name));
            return 0;
        }
    }
    snprintf(ret_why, why_size, "%s has no network table of version %d to %d", client->path, low,
             high);
    dlclose(library);
    return -ENOTSUP;
}

void net_client_close(struct net_client *client)
{
    if (client->library != NULL) {
        dlclose(client->library);
        client->library = NULL;
    }
}

/* -- init and devices */

enum nccl_result net_init(struct net_client *c, uint64_t comm_id, nccl_logger logger,
                          void **ret_context)
{
    struct nccl_net_config config = {NCCL_UNDEFINED};

    *ret_context = NULL;
    if (c->version >= 11) {
        c->users++;
        return TABLE(c, 12)->init(ret_context, comm_id, &config, logger, NULL);
    }
    if (c->users++ > 0) {
        return NCCL_SUCCESS;
    }
    return c->version == 10 ? TABLE(c, 10)->init(logger, NULL) : TABLE(c, 9)->init(logger);
}

enum nccl_result net_finalize(struct net_client *c, void *context)
{
    c->users--;
    return c->version >= 11 ? TABLE(c, 12)->finalize(context) : NCCL_SUCCESS;
}

enum nccl_result net_devices(const struct net_client *c, int *ret_count)
{
    return TABLE(c, 12)->devices(ret_count);
}

/* Fills the properties that all versions have. */
#define COPY_COMMON(to, from)                                                                      \
    ((to)->name = (from).name, (to)->pci_path = (from).pci_path, (to)->guid = (from).guid,         \
     (to)->pointer_support = (from).pointer_support, (to)->speed_mbps = (from).speed_mbps,         \
     (to)->port = (from).port, (to)->latency_us = (from).latency_us,                               \
     (to)->comm_max = (from).comm_max, (to)->receive_max = (from).receive_max)

static void copy_merged(struct nccl_net_properties_v12 *to, const struct nccl_merged *from)
{
    to->merged.count = from->count;
    memcpy(to->merged.devices, from->devices, sizeof(from->devices));
}

enum nccl_result net_properties(const struct net_client *c, int device,
                                struct nccl_net_properties_v12 *ret)
{
    union {
        struct nccl_net_properties_v6 v6;
        struct nccl_net_properties_v7 v7;
        struct nccl_net_properties_v8 v8;
        struct nccl_net_properties_v9 v9;
        struct nccl_net_properties_v11 v11;
        struct nccl_net_properties_v12 v12;
        unsigned char bytes[256];
    } p;

    memset(&p, 0xa5, sizeof(p)); /* NCCL clears nothing either */
    /* All versions have this slot, but with different arguments. The plugin knows the version it fills. */
    enum nccl_result result = TABLE(c, 12)->get_properties(device, &p.v12);
    if (result != NCCL_SUCCESS) {
        return result;
    }
    memset(ret, 0, sizeof(*ret));
    ret->merged.count = 1;
    ret->merged.devices[0] = device;
    ret->p2p_size_max = ret->collective_size_max = (size_t)NCCL_NET_SIZE_MAX_V8;
    ret->rail = ret->plane = NCCL_UNDEFINED;
    switch (c->version) {
    case 6:
        COPY_COMMON(ret, p.v6);
        break;
    case 7:
        COPY_COMMON(ret, p.v7);
        break;
    case 8:
        COPY_COMMON(ret, p.v8);
        ret->registration_is_global = p.v8.registration_is_global;
        break;
    case 9:
    case 10:
        COPY_COMMON(ret, p.v9);
        ret->p2p_size_max = p.v9.p2p_size_max;
        ret->collective_size_max = p.v9.collective_size_max;
        copy_merged(ret, &p.v9.merged);
        break;
    case 11:
        COPY_COMMON(ret, p.v11);
        ret->p2p_size_max = p.v11.p2p_size_max;
        ret->collective_size_max = p.v11.collective_size_max;
        ret->multi_request_max = p.v11.multi_request_max;
        copy_merged(ret, &p.v11.merged);
        break;
    default:
        *ret = p.v12;
        break;
    }
    return result;
}

/* -- connections */

enum nccl_result net_listen(const struct net_client *c, void *context, int device, void *handle,
                            void **ret_listen_comm)
{
    return c->version >= 11 ? TABLE(c, 12)->listen(context, device, handle, ret_listen_comm)
                            : TABLE(c, 10)->listen(device, handle, ret_listen_comm);
}

enum nccl_result net_connect(const struct net_client *c, void *context, int device, void *handle,
                             void **ret_send_comm)
{
    struct nccl_net_config config = {NCCL_UNDEFINED};
    struct nccl_device_handle *device_handle = NULL;

    if (c->version >= 11) {
        return TABLE(c, 12)->connect(context, device, handle, ret_send_comm, &device_handle);
    }
    if (c->version == 10) {
        return TABLE(c, 10)->connect(device, &config, handle, ret_send_comm, &device_handle);
    }
    return c->version >= 7 ? TABLE(c, 9)->connect(device, handle, ret_send_comm, &device_handle)
                           : TABLE(c, 6)->connect(device, handle, ret_send_comm);
}

enum nccl_result net_accept(const struct net_client *c, void *listen_comm, void **ret_receive_comm)
{
    struct nccl_device_handle *device_handle = NULL;

    return c->version >= 7 ? TABLE(c, 12)->accept(listen_comm, ret_receive_comm, &device_handle)
                           : TABLE(c, 6)->accept(listen_comm, ret_receive_comm);
}

enum nccl_result net_close_send(const struct net_client *c, void *comm)
{
    return TABLE(c, 12)->close_send(comm);
}
enum nccl_result net_close_receive(const struct net_client *c, void *comm)
{
    return TABLE(c, 12)->close_receive(comm);
}
enum nccl_result net_close_listen(const struct net_client *c, void *comm)
{
    return TABLE(c, 12)->close_listen(comm);
}

/* -- data */

enum nccl_result net_register(const struct net_client *c, void *comm, void *data, size_t size,
                              void **ret_mhandle)
{
    *ret_mhandle = NULL;
    if (c->version >= 8) {
        return TABLE(c, 12)->reg_mr(comm, data, size, NCCL_POINTER_HOST, ret_mhandle);
    }
    return size > INT_MAX
               ? NCCL_INTERNAL_ERROR
               : TABLE(c, 7)->reg_mr(comm, data, (int)size, NCCL_POINTER_HOST, ret_mhandle);
}

enum nccl_result net_deregister(const struct net_client *c, void *comm, void *mhandle)
{
    return TABLE(c, 12)->dereg_mr(comm, mhandle);
}

enum nccl_result net_isend(const struct net_client *c, void *send_comm, void *data, size_t size,
                           int tag, void *mhandle, void **ret_request)
{
    if (c->version >= 10) {
        return TABLE(c, 12)->isend(send_comm, data, size, tag, mhandle, NULL, ret_request);
    }
    if (c->version == 9) {
        return TABLE(c, 9)->isend(send_comm, data, size, tag, mhandle, ret_request);
    }
    return size > (size_t)NCCL_NET_SIZE_MAX_V8
               ? NCCL_INTERNAL_ERROR
               : TABLE(c, 8)->isend(send_comm, data, (int)size, tag, mhandle, ret_request);
}

enum nccl_result net_irecv(const struct net_client *c, void *receive_comm,
                           const struct net_receive *receive, void **request)
{
    struct net_receive r = *receive; /* the table's arrays aren't const */
    void *phandles[NET_GROUP_MAX] = {NULL};
    int sizes[NET_GROUP_MAX];

    if (c->version >= 10) {
        return TABLE(c, 12)->irecv(receive_comm, r.count, r.data, r.sizes, r.tags, r.mhandles,
                                   phandles, request);
    }
    if (c->version == 9) {
        return TABLE(c, 9)->irecv(receive_comm, r.count, r.data, r.sizes, r.tags, r.mhandles,
                                  request);
    }
    for (int i = 0; i < r.count; i++) {
        if (r.sizes[i] > (size_t)NCCL_NET_SIZE_MAX_V8) {
            return NCCL_INTERNAL_ERROR;
        }
        sizes[i] = (int)r.sizes[i];
    }
    *request = NULL;
    return TABLE(c, 8)->irecv(receive_comm, r.count, r.data, sizes, r.tags, r.mhandles, request);
}

enum nccl_result net_test(const struct net_client *c, void *request, int *ret_done, int *ret_sizes)
{
    return TABLE(c, 12)->test(request, ret_done, ret_sizes);
}

const char *net_result_name(int result)
{
    static const char *const names[] = {
        "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
        "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
        "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};

    return result >= 0 && (size_t)result < ARRAY_COUNT(names) ? names[result] : "an unknown result";
}
