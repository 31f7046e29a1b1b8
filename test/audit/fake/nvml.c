/* nvml.c: a library with the functions of NVIDIA's management library. $FAKE_NVML makes it misbehave (mood.h). Without that it
 * has the four GPUs of test/audit/machines/roce.txt. With WITHOUT_SOME it lacks two functions, and has the older name of a
 * third. */
#define MOOD "FAKE_NVML"
#include "mood.h"

enum { GPUS = 4, LINKS = 18, OUT_OF_LINKS = 2 };
static const unsigned buses[GPUS] = {0x1b, 0x3d, 0x9b, 0xbb};

struct pci {
    char old_address[16];
    unsigned domain, bus, device, model, board;
    char address[32];
};
struct fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

ANSWER(nvmlInit_v2, (void), )
ANSWER(nvmlShutdown, (void), )
ANSWER(nvmlSystemGetCudaDriverVersion_v2, (int *version), *version = 12040)
ANSWER(nvmlDeviceGetCount_v2, (unsigned *count), *count = GPUS)
ANSWER(nvmlDeviceGetHandleByIndex_v2, (unsigned i, void **gpu), *gpu = (void *)&buses[i])
ANSWER(nvmlDeviceGetPciInfo_v3, (void *gpu, struct pci *pci), memset(pci, 0, sizeof(*pci));
       pci->bus = *(const unsigned *)gpu)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, (void *gpu, unsigned *n), (void)gpu; *n = 700000)
ANSWER(nvmlDeviceGetPcieReplayCounter, (void *gpu, unsigned *n), (void)gpu; *n = 3)
ANSWER(nvmlDeviceGetPersistenceMode, (void *gpu, unsigned *n), (void)gpu; *n = 1)
ANSWER(nvmlDeviceGetComputeMode, (void *gpu, unsigned *n), (void)gpu; *n = 0)
ANSWER(nvmlDeviceGetEccMode, (void *gpu, unsigned *n, unsigned *later), (void)gpu; *n = *later = 1)
ANSWER(nvmlDeviceGetMigMode, (void *gpu, unsigned *n, unsigned *later), (void)gpu; *n = *later = 0)
ANSWER(nvmlDeviceGetMaxClockInfo, (void *gpu, unsigned which, unsigned *n), (void)gpu; (void)which;
       *n = 1980)
ANSWER(nvmlDeviceGetTotalEccErrors,
       (void *gpu, unsigned kind, unsigned counter, unsigned long long *n), (void)gpu;
       (void)kind; (void)counter; *n = 0)
#ifndef WITHOUT_SOME
ANSWER(nvmlDeviceGetRemappedRows, (void *gpu, unsigned *a, unsigned *b, unsigned *c, unsigned *d),
       (void)gpu;
       *a = *b = *c = *d = 0)
ANSWER(nvmlDeviceGetGpuFabricInfo, (void *gpu, struct fabric *f), (void)gpu; f->status = 0;
       f->state = 3)
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, (void *gpu, unsigned long long *n), (void)gpu;
       *n = 0)
#else
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, (void *gpu, unsigned long long *n), (void)gpu;
       *n = 0)
#endif
ANSWER(
    nvmlDeviceGetNvLinkState, (void *gpu, unsigned link, unsigned *up), (void)gpu;
    if (link >= LINKS) { return OUT_OF_LINKS; } *up = 1)
