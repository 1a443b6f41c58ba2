/* A stand-in for the driver's CUDA library: enough of it for a kernel to "run", and every way in which it goes wrong.
 *
 * CUDA_STAND_IN is a list of words: gpus=N, init=CODE (cuInit), launch=CODE, wrong (one value), hang (in cuCtxSynchronize),
 * crash (there), on=N (only GPU N goes wrong).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int current;
static unsigned memory[256];

static const char *told(const char *word)
{
    const char *all = getenv("CUDA_STAND_IN"), *at = all ? strstr(all, word) : NULL;
    return at ? at + strlen(word) : NULL;
}

static int number(const char *word, int otherwise)
{
    const char *at = told(word);
    return at ? atoi(at) : otherwise;
}

static int here(void) { return number("on=", current) == current; }

int cuInit(unsigned flags) { (void)flags; return number("init=", 0); }
int cuGetErrorName(int code, const char **name) { *name = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" : NULL; return *name ? 0 : 1; }
int cuDeviceGetCount(int *count) { *count = number("gpus=", 2); return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGet(int *device, int at) { *device = current = at; return 0; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, (size_t)length, "Stand-in GPU"); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { (void)which; (void)device; *value = 9; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = memory; return 0; }
int cuCtxSetCurrent(void *context) { (void)context; return 0; }
int cuModuleLoadData(void **module, const char *text) { *module = memory; return strstr(text, ".target sm_50") && strstr(text, "st.global.u32") ? 0 : 218; }
int cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; *function = memory; return strcmp(name, "fill") ? 500 : 0; }
int cuMemAlloc_v2(void **at, size_t size) { *at = memory; return size == sizeof memory ? 0 : 2; }

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra)
{
    (void)function, (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    if (here() && told("launch=")) return number("launch=", 0);
    if (*(void **)arguments[0] != memory || gx != 1 || bx != 256) return 1;
    for (unsigned at = 0; at < 256; at++) memory[at] = 3 * at + 1;
    if (here() && told("wrong")) memory[17] = 0;
    return 0;
}

int cuCtxSynchronize(void)
{
    if (here() && told("hang")) for (;;) sleep(1);
    if (here() && told("crash")) raise(SIGSEGV);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, void *from, size_t size) { memcpy(to, from, size); return 0; }
