/* amdsmi.c: a library with the functions of AMD's management library. $FAKE_AMDSMI makes it misbehave (mood.h). Without that it
 * has the four GPUs of test/audit/machines/amd.txt, one for each socket. With WITHOUT_SOME it lacks a function, and has the power
 * limit in the struct of an older release. */
#define MOOD "FAKE_AMDSMI"
#include "mood.h"

#include <stdint.h>

enum { GPUS = 4 };
static const uint64_t addresses[GPUS] = {0x1b00, 0x3d00, 0x9b00, 0xbb00};

ANSWER(amdsmi_init, (uint64_t flags), (void)flags)
ANSWER(amdsmi_shut_down, (void), )
ANSWER(
    amdsmi_get_socket_handles, (uint32_t * count, void **sockets),
    for (uint32_t i = 0; i < GPUS && i < *count;
         i++) { sockets[i] = (void *)&addresses[i]; } *count = GPUS)
ANSWER(amdsmi_get_processor_handles, (void *socket, uint32_t *count, void **gpus), *count = 1;
       gpus[0] = socket)
ANSWER(amdsmi_get_gpu_bdf_id, (void *gpu, uint64_t *bdf), *bdf = *(const uint64_t *)gpu)
#ifndef WITHOUT_SOME
ANSWER(amdsmi_get_power_cap_info, (void *gpu, uint32_t sensor, uint64_t *cap), (void)gpu;
       (void)sensor; cap[0] = cap[1] = 750000000)
ANSWER(amdsmi_get_gpu_pci_replay_counter, (void *gpu, uint64_t *n), (void)gpu; *n = 2)
#else
ANSWER(
    amdsmi_get_power_cap_info, (void *gpu, uint32_t sensor, uint32_t *cap), (void)gpu; (void)sensor;
    for (int i = 0; i < 5; i++) { cap[i] = 750; })
#endif
