/* A driver library that pynvml loads as libnvidia-ml.so.1. What it plays is read from the environment:

   FAKE_NVML_UTIL        utilisation of each GPU in percent, as "90,0"; as many GPUs as values
   FAKE_NVML_MEMORY      used memory of each GPU in MiB, as "1024,0"
   FAKE_NVML_MEMORY_FILE a file with the same, read at each call
   FAKE_NVML_PROCESSES   "gpu:pid:MiB[:SM percent],..."
   FAKE_NVML_PROCESSES_FILE a file with the same, read at each call
   FAKE_NVML_SLOW_US     how long a utilisation call takes
   FAKE_NVML_HANG        a GPU whose utilisation calls never return
   FAKE_NVML_LOST        "gpu:n": lost after n utilisation calls
   FAKE_NVML_MIG         a GPU in MIG mode with two instances
   FAKE_NVML_NO_POWER    any value: power draw is not supported
   FAKE_NVML_GPM         any value: GPM works. FAKE_NVML_GPM_LIES: supported it says, and fails
   FAKE_NVML_INIT        what nvmlInitWithFlags returns; -1: nothing, ever
*/
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };
enum { MAX_GPUS = 8, MIB = 1 << 20, INSTANCES = 2 };
static const unsigned long long TOTAL_MIB = 81920;

typedef struct { int gpu, instance; } Device;
static Device gpus[MAX_GPUS], instances[MAX_GPUS][INSTANCES];
static int calls[MAX_GPUS];

static const char *setting(const char *name) { const char *v = getenv(name); return v && *v ? v : 0; }
static int number(const char *name, int otherwise) { const char *v = setting(name); return v ? atoi(v) : otherwise; }

static int nth(const char *list, int n, int otherwise) {
    for (; list && n; n--) { list = strchr(list, ','); if (list) list++; }
    return list ? atoi(list) : otherwise;
}

static int count(void) {
    const char *list = setting("FAKE_NVML_UTIL");
    int n = list != 0;
    for (; list && *list; list++) n += *list == ',';
    return n;
}

static int lost(Device *d) {
    const char *v = setting("FAKE_NVML_LOST");
    return v && atoi(v) == d->gpu && calls[d->gpu] >= atoi(strchr(v, ':') + 1);
}

static int mig(Device *d) { return number("FAKE_NVML_MIG", -1) == d->gpu; }

int nvmlInitWithFlags(unsigned flags) {
    for (int g = 0; g < MAX_GPUS; g++) {
        gpus[g] = (Device){g, -1};
        for (int i = 0; i < INSTANCES; i++) instances[g][i] = (Device){g, i};
    }
    if (number("FAKE_NVML_INIT", SUCCESS) < 0) for (;;) pause();
    return number("FAKE_NVML_INIT", SUCCESS);
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = count(); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "999.1"); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Device **d) { *d = &gpus[i]; return SUCCESS; }
int nvmlDeviceGetName(Device *d, char *text, unsigned size) { snprintf(text, size, "Fake GPU"); return SUCCESS; }
int nvmlDeviceGetUUID(Device *d, char *text, unsigned size) {
    snprintf(text, size, d->instance < 0 ? "GPU-fake-%d" : "MIG-fake-%d-%d", d->gpu, d->instance);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(Device *d, unsigned *rates) {
    if (mig(d)) return NOT_SUPPORTED;
    if (number("FAKE_NVML_HANG", -1) == d->gpu) for (;;) pause();
    usleep(number("FAKE_NVML_SLOW_US", 0));
    __sync_fetch_and_add(&calls[d->gpu], 1);
    if (lost(d)) return GPU_IS_LOST;
    rates[0] = nth(setting("FAKE_NVML_UTIL"), d->gpu, 0);
    rates[1] = rates[0] / 2;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(Device *d, unsigned long long *memory) {
    char text[256] = "";
    const char *file = setting("FAKE_NVML_MEMORY_FILE");
    FILE *opened = file ? fopen(file, "r") : 0;
    if (opened) { if (!fgets(text, sizeof text, opened)) text[0] = 0; fclose(opened); }
    if (lost(d)) return GPU_IS_LOST;
    memory[0] = TOTAL_MIB * MIB;
    memory[2] = (unsigned long long)nth(*text ? text : setting("FAKE_NVML_MEMORY"), d->gpu, 0) * MIB;
    memory[1] = memory[0] - memory[2];
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Device *d, unsigned *milliwatts) {
    if (setting("FAKE_NVML_NO_POWER")) return NOT_SUPPORTED;
    if (lost(d)) return GPU_IS_LOST;
    *milliwatts = 250500;
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(Device *d, int kind, unsigned *mhz) { *mhz = 1000 + kind; return lost(d) ? GPU_IS_LOST : SUCCESS; }
int nvmlDeviceGetCurrentClocksEventReasons(Device *d, unsigned long long *bits) {
    if (!setting("FAKE_NVML_REASONS")) return NOT_SUPPORTED;
    *bits = number("FAKE_NVML_REASONS", 0);
    return lost(d) ? GPU_IS_LOST : SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(Device *d, int kind, unsigned *mhz) { *mhz = 1980 + kind; return SUCCESS; }
int nvmlDeviceGetTemperature(Device *d, int sensor, unsigned *celsius) { *celsius = 40; return lost(d) ? GPU_IS_LOST : SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *milliwatts) { *milliwatts = 700000; return SUCCESS; }
int nvmlDeviceGetPersistenceMode(Device *d, int *mode) { *mode = 1; return SUCCESS; }
int nvmlDeviceGetCudaComputeCapability(Device *d, int *major, int *minor) { *major = 9; *minor = 0; return SUCCESS; }

int nvmlDeviceGetMigMode(Device *d, unsigned *now, unsigned *pending) { *now = *pending = mig(d); return SUCCESS; }
int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *n) { *n = INSTANCES + 1; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned i, Device **instance) {
    if (i >= INSTANCES) return NOT_FOUND;
    *instance = &instances[d->gpu][i];
    return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(Device *d, unsigned *id) { *id = 7 + d->instance; return SUCCESS; }

typedef struct { unsigned long long stamp_us, value; } Sample;
int nvmlDeviceGetSamples(Device *d, int kind, unsigned long long since_us, int *type, unsigned *n, Sample *samples) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (mig(d)) return NOT_SUPPORTED;
    if (!nth(setting("FAKE_NVML_UTIL"), d->gpu, 0)) return NOT_FOUND; /* an idle GPU keeps none */
    *type = 1;
    *n = 3;
    for (unsigned i = 0; samples && i < *n; i++) {
        samples[i].stamp_us = now.tv_sec * 1000000ULL + now.tv_nsec / 1000 - 20000 * (*n - i);
        samples[i].value = nth(setting("FAKE_NVML_UTIL"), d->gpu, 0);
    }
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
typedef struct { unsigned pid; unsigned long long stamp_us; unsigned sm, memory, encoder, decoder; } Use;
typedef struct { int gpu, pid, mib, sm; } Played;

/* The processes on a GPU, as many as fit; those without a share of SMs are not counted where it is asked for. */
static unsigned played(Device *d, int with_sm, Played *into, unsigned size) {
    char text[1024] = "";
    unsigned found = 0;
    const char *file = setting("FAKE_NVML_PROCESSES_FILE");
    FILE *opened = file ? fopen(file, "r") : 0;
    if (opened) { if (!fgets(text, sizeof text, opened)) text[0] = 0; fclose(opened); }
    for (const char *p = file ? text : setting("FAKE_NVML_PROCESSES"); p; p = strchr(p, ',') ? strchr(p, ',') + 1 : 0) {
        Played one = {0};
        if (sscanf(p, "%d:%d:%d:%d", &one.gpu, &one.pid, &one.mib, &one.sm) < 3 || one.gpu != d->gpu) continue;
        if ((one.sm || !with_sm) && found < size) into[found++] = one;
    }
    return found;
}

enum { MAX_PROCESSES = 16 };
int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *n, Process *processes) {
    Played found[MAX_PROCESSES];
    unsigned size = *n;
    *n = played(d, 0, found, MAX_PROCESSES);
    if (processes ? *n > size : *n > 0) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *n; i++)
        processes[i] = (Process){found[i].pid, (unsigned long long)found[i].mib * MIB, ~0u, ~0u};
    return SUCCESS;
}

int nvmlDeviceGetProcessUtilization(Device *d, Use *uses, unsigned *n, unsigned long long since_us) {
    Played found[MAX_PROCESSES];
    unsigned size = *n;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *n = played(d, 1, found, MAX_PROCESSES);
    if (uses ? *n > size : *n > 0) return INSUFFICIENT_SIZE;
    if (!*n) return NOT_FOUND; /* nobody computed */
    for (unsigned i = 0; i < *n; i++)
        uses[i] = (Use){found[i].pid, now.tv_sec * 1000000ULL + now.tv_nsec / 1000, found[i].sm};
    return SUCCESS;
}

/* GPM: a snapshot is a point in time; the engine's metric between two of them is the
   utilisation, that of the SMs half of it, every other (what the SMs hold, such as tensor pipes) a quarter. */
typedef struct { int gpu, taken; } Snapshot;
typedef struct { unsigned metric; int result; double value; const char *names[3]; } Metric;
typedef struct { unsigned version, n; Snapshot *before, *now; Metric metrics[333]; } MetricsGet;
int nvmlGpmQueryDeviceSupport(Device *d, unsigned *support) {
    support[1] = setting("FAKE_NVML_GPM") || setting("FAKE_NVML_GPM_LIES");
    return SUCCESS;
}
int nvmlGpmSampleAlloc(Snapshot **sample) { *sample = calloc(1, sizeof **sample); return SUCCESS; }
int nvmlGpmSampleFree(Snapshot *sample) { free(sample); return SUCCESS; }
int nvmlGpmSampleGet(Device *d, Snapshot *sample) {
    if (setting("FAKE_NVML_GPM_LIES")) return NOT_SUPPORTED;
    *sample = (Snapshot){d->gpu, 1};
    return lost(d) ? GPU_IS_LOST : SUCCESS;
}
int nvmlGpmMigSampleGet(Device *d, unsigned instance, Snapshot *sample) { return nvmlGpmSampleGet(d, sample); }
int nvmlGpmMetricsGet(MetricsGet *get) {
    double util = nth(setting("FAKE_NVML_UTIL"), get->now->gpu, 0);
    if (!get->before->taken || !get->now->taken) return NOT_SUPPORTED;
    for (unsigned i = 0; i < get->n; i++) {
        get->metrics[i].result = get->metrics[i].metric == 10 ? NOT_SUPPORTED : SUCCESS; /* no DRAM metric */
        get->metrics[i].value = util / (get->metrics[i].metric == 1 ? 1 : get->metrics[i].metric == 2 ? 2 : 4);
    }
    return SUCCESS;
}
