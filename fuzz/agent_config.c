/* agent_config.c: the agent's YAML file with its peers list, and the key file, by way of files in memory. */
#include "service/agent/config.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("input", MFD_CLOEXEC);
    struct config_error error = {""};
    struct agent_config *config = NULL;
    struct agent_keys keys;
    char path[64];

    ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size && fchmod(fd, 0600) == 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (agent_config_load(path, NULL, NULL, &config, &error) == 0) {
        ASSERT(config->nic_count > 0 && config->nic_count <= HOST_NIC_MAX);
        for (uint32_t i = 0; i < config->nic_count; i++) {
            ASSERT(config->nics[i].peer < config->peer_count);
        }
        for (uint32_t i = 0; i < config->peer_count; i++) {
            ASSERT(config->peers[i].nic.index < FLEET_NIC_MAX);
            ASSERT(i == 0 || config->peers[i - 1].nic.index < config->peers[i].nic.index);
            ASSERT(agent_config_host_name(config, config->peers[i].host) != NULL);
        }
        agent_config_free(config);
    } else {
        ASSERT(error.text[0] != 0);
    }
    if (agent_keys_load(path, &keys, &error) == 0) {
        ASSERT(keys.count > 0 && keys.count <= AGENT_KEY_MAX);
    }
    close(fd);
    return 0;
}
