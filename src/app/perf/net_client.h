/* net_client.h: any network plugin, of any version from 6 to 12, as one interface, as NCCL's own shims do.
 *
 * A client loads a plugin, takes the newest table that it has (or the wanted one), and calls it with the arguments of v12. What
 * an older version lacks is left out or imitated, as NCCL does: messages above 1 GiB are refused below v9, the hint for early
 * completion is not passed on, init runs once for each process below v11.
 *
 * The caller must follow NCCL's rules for threads, which are those of the plugin ABI: one thread makes service calls, another
 * makes data calls, and two threads never make data calls of one communicator at the same time. */
#pragma once
#include <stdbool.h>

#include "base/bug.h"
#include "plugin/abi_net.h"

#define NET_VERSION_MIN 6
#define NET_VERSION_MAX 12
#define NET_GROUP_MAX   8 /* buffers per grouped receive that this client asks for */

struct net_client {
    void *library;
    int version;
    const char *name;
    const void *table;
    int users; /* calls of init without their finalize yet */
    char path[4096];
};

/* Loads `plugin`: a path, a library's name, or a suffix as in NCCL_NET_PLUGIN (x: libnccl-net-x.so, found by the loader, else
 * beside this program and in ../lib). version 0: the newest. Returns 0, or -errno with the reason in `ret_why`. */
MUST_CHECK int net_client_open(struct net_client *client, const char *plugin, int version,
                               char *ret_why, size_t why_size);
/* dlclose. The caller has finalized all contexts. */
void net_client_close(struct net_client *client);

enum nccl_result net_init(struct net_client *c, uint64_t comm_id, nccl_logger logger,
                          void **ret_context);
enum nccl_result net_finalize(struct net_client *c, void *context);
enum nccl_result net_devices(const struct net_client *c, int *ret_count);
enum nccl_result net_properties(const struct net_client *c, int device,
                                struct nccl_net_properties_v12 *ret_properties);
enum nccl_result net_listen(const struct net_client *c, void *context, int device, void *handle,
                            void **ret_listen_comm);
enum nccl_result net_connect(const struct net_client *c, void *context, int device, void *handle,
                             void **ret_send_comm);
enum nccl_result net_accept(const struct net_client *c, void *listen_comm, void **ret_receive_comm);
enum nccl_result net_register(const struct net_client *c, void *comm, void *data, size_t size,
                              void **ret_mhandle);
enum nccl_result net_deregister(const struct net_client *c, void *comm, void *mhandle);
enum nccl_result net_isend(const struct net_client *c, void *send_comm, void *data, size_t size,
                           int tag, void *mhandle, void **ret_request);

/* One grouped receive. *request holds NCCL_OPTIONAL_COMPLETION or NULL when called. */
struct net_receive {
    int count;
    void *data[NET_GROUP_MAX];
    size_t sizes[NET_GROUP_MAX];
    int tags[NET_GROUP_MAX];
    void *mhandles[NET_GROUP_MAX];
};
enum nccl_result net_irecv(const struct net_client *c, void *receive_comm,
                           const struct net_receive *receive, void **request);
enum nccl_result net_test(const struct net_client *c, void *request, int *ret_done, int *ret_sizes);
enum nccl_result net_close_send(const struct net_client *c, void *comm);
enum nccl_result net_close_receive(const struct net_client *c, void *comm);
enum nccl_result net_close_listen(const struct net_client *c, void *comm);

/* "ncclRemoteError" and so on. */
const char *net_result_name(int result);
