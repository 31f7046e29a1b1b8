/* nvml.c: a library that answers as NVIDIA's management library does, and misbehaves as $FAKE_NVML tells:
 *   hang FUNCTION · crash FUNCTION · late FUNCTION · error N FUNCTION; FUNCTION may be "all". Else it is well: four GPUs of
 * test/audit/machines/roce.txt. With WITHOUT_SOME it lacks two functions, and has the older name of a third. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS = 4, LINKS = 18, OUT_OF_LINKS = 2 };
static const unsigned buses[GPUS] = {0x1b, 0x3d, 0x9b, 0xbb};

/* What the function answers; 0: well. */
static int mood(const char *function)
{
    const char *text = getenv("FAKE_NVML");
    char word[16] = "", of[64] = "";
    int code = 0;

    if (text == NULL ||
        (sscanf(text, "error %d %63s", &code, of) != 2 &&
         sscanf(text, "%15s %63s", word, of) != 2) ||
        (strcmp(of, function) != 0 && strcmp(of, "all") != 0)) {
        return 0;
    }
    while (strcmp(word, "hang") == 0) {
        pause();
    }
    if (strcmp(word, "crash") == 0) {
        raise(SIGSEGV);
    }
    if (strcmp(word, "late") == 0) {
        sleep(10);
    }
    return code;
}

#define ANSWER(name, arguments, ...)                                                               \
    int name arguments;                                                                            \
    int name arguments                                                                             \
    {                                                                                              \
        const int answer = mood(#name);                                                            \
        if (answer == 0) {                                                                         \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return answer;                                                                             \
    }

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
