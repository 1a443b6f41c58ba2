/* A stand-in for NVIDIA's management library: answers from a text file, so that every path is met without a card.
 *
 * NVML_STAND_IN names the file. A line is a word and a value; `card` begins the next GPU.
 *     driver 570.124.06 | nvml 12.570 | cuda 12080 | init CODE | count CODE | hang WORD
 *     card: bus, name, memory, bar1, capability 9.0, link "5 5 16 16" (now, most, lanes, most lanes), ecc, mig, busy, state, handle CODE
 *     card: temperature, power, limit and usual (milliwatts), used (bytes of memory), clock "1410 2520" (now, most; MHz), slowed (bits)
 *     card: process "PID BYTES" and drawing "PID BYTES", once for each process; sleepy WORD: waits for ever when WORD is asked of it
 *     lost N: from the N-th question on this card is gone (NVML's code 15)
 * A number "~97" is another one below 97 whenever it is asked.
 * A word that is missing is answered with "Not Supported" (3). `hang WORD` waits for ever when WORD is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, SMALL = 7, LOST = 15 };
enum { CARDS = 16, WORDS = 40, LENGTH = 96 };

struct card { int words, asked; char key[WORDS][LENGTH], value[WORDS][LENGTH]; };
static struct card machine, cards[CARDS];
static unsigned count;

static const char *word(const struct card *of, const char *key)
{
    for (int i = 0; i < of->words; i++)
        if (!strcmp(of->key[i], key)) return of->value[i];
    return NULL;
}

static void load(void)
{
    const char *path = getenv("NVML_STAND_IN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256], key[LENGTH], value[LENGTH];
    struct card *to = &machine;
    memset(&machine, 0, sizeof machine);
    memset(cards, 0, sizeof cards);
    count = 0;
    while (file && fgets(line, sizeof line, file)) {
        int found = sscanf(line, " %95s %95[^\n]", key, value);
        if (found < 1 || key[0] == '#') continue;
        if (!strcmp(key, "card")) { if (count < CARDS) to = &cards[count++]; continue; }
        if (to->words == WORDS) continue;
        strcpy(to->key[to->words], key);
        strcpy(to->value[to->words++], found == 2 ? value : "");
    }
    if (file) fclose(file);
}

static void maybe_hang(const char *asked)
{
    const char *at = word(&machine, "hang");
    while (at && !strcmp(at, asked)) sleep(1);
}

/* Everything that is asked of a card comes by here. */
static int answer(struct card *of, const char *key, const char **value)
{
    const char *gone = word(of, "lost"), *sleepy = word(of, "sleepy");
    maybe_hang(key);
    while (sleepy && !strcmp(sleepy, key)) sleep(1);
    if (gone && ++of->asked >= atoi(gone)) return LOST;
    *value = word(of, key);
    return *value ? OK : UNSUPPORTED;
}

static int text(struct card *of, const char *key, char *to, unsigned room)
{
    const char *value;
    int said = answer(of, key, &value);
    if (said) return said;
    if (strlen(value) >= room) return SMALL;
    strcpy(to, value);
    return OK;
}

static int number(struct card *of, const char *key, unsigned long long *to)
{
    const char *value;
    int said = answer(of, key, &value);
    if (!said && *value == '~') *to = (unsigned)(of->asked++ * 2654435761u) % strtoull(value + 1, NULL, 0);
    else if (!said) *to = strtoull(value, NULL, 0);
    return said;
}

static int link_part(struct card *of, int part, unsigned *to)
{
    const char *value;
    unsigned parts[4];
    int said = answer(of, "link", &value);
    if (said) return said;
    if (sscanf(value, "%u %u %u %u", &parts[0], &parts[1], &parts[2], &parts[3]) != 4) return UNSUPPORTED;
    *to = parts[part];
    return OK;
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    load();
    maybe_hang("init");
    return word(&machine, "init") ? atoi(word(&machine, "init")) : OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : code == 18 ? "Driver/library version mismatch" : "Unknown Error"; }

int nvmlSystemGetDriverVersion(char *to, unsigned room) { return text(&machine, "driver", to, room); }
int nvmlSystemGetNVMLVersion(char *to, unsigned room) { return text(&machine, "nvml", to, room); }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { unsigned long long n; int said = number(&machine, "cuda", &n); if (!said) *to = (int)n; return said; }
int nvmlDeviceGetCount_v2(unsigned *to)
{
    maybe_hang("count");
    if (word(&machine, "count")) return atoi(word(&machine, "count"));
    *to = count;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct card **to)
{
    if (index >= count) return INVALID;
    *to = &cards[index];
    return word(*to, "handle") ? atoi(word(*to, "handle")) : OK;
}

int nvmlDeviceGetName(struct card *of, char *to, unsigned room) { return text(of, "name", to, room); }
int nvmlDeviceGetCurrPcieLinkGeneration(struct card *of, unsigned *to) { return link_part(of, 0, to); }
int nvmlDeviceGetMaxPcieLinkGeneration(struct card *of, unsigned *to) { return link_part(of, 1, to); }
int nvmlDeviceGetCurrPcieLinkWidth(struct card *of, unsigned *to) { return link_part(of, 2, to); }
int nvmlDeviceGetMaxPcieLinkWidth(struct card *of, unsigned *to) { return link_part(of, 3, to); }
int nvmlDeviceGetFanSpeed(struct card *of, unsigned *to) { unsigned long long n; int said = number(of, "fan", &n); if (!said) *to = (unsigned)n; return said; }
int nvmlDeviceGetPowerManagementLimit(struct card *of, unsigned *to) { unsigned long long n; int said = number(of, "limit", &n); if (!said) *to = (unsigned)n; return said; }
int nvmlDeviceGetPowerManagementDefaultLimit(struct card *of, unsigned *to) { unsigned long long n; int said = number(of, "usual", &n); if (!said) *to = (unsigned)n; return said; }
int nvmlDeviceGetCurrentClocksThrottleReasons(struct card *of, unsigned long long *to) { return number(of, "slowed", to); }
int nvmlDeviceGetPerformanceState(struct card *of, unsigned *to) { unsigned long long n; int said = number(of, "state", &n); if (!said) *to = (unsigned)n; return said; }
int nvmlDeviceGetUtilizationRates(struct card *of, unsigned to[2]) { unsigned long long n; int said = number(of, "busy", &n); if (!said) to[0] = to[1] = (unsigned)n; return said; }
int nvmlDeviceGetMemoryInfo(struct card *of, unsigned long long to[3])
{
    const char *used = word(of, "used");
    int said = number(of, "memory", &to[0]);
    if (said) return said;
    to[2] = used ? strtoull(used, NULL, 0) : 0;
    to[1] = to[0] - to[2];
    return OK;
}
int nvmlDeviceGetBAR1MemoryInfo(struct card *of, unsigned long long to[3]) { unsigned long long n; int said = number(of, "bar1", &n); if (!said) { to[0] = to[1] = n; to[2] = 0; } return said; }
static int pair(struct card *of, const char *key, unsigned *now, unsigned *then) { unsigned long long n; int said = number(of, key, &n); if (!said) *now = *then = (unsigned)n; return said; }
int nvmlDeviceGetEccMode(struct card *of, unsigned *now, unsigned *then) { return pair(of, "ecc", now, then); }
int nvmlDeviceGetMigMode(struct card *of, unsigned *now, unsigned *then) { return pair(of, "mig", now, then); }
int nvmlDeviceGetCudaComputeCapability(struct card *of, int *major, int *minor)
{
    const char *value;
    int said = answer(of, "capability", &value);
    if (said) return said;
    return sscanf(value, "%d.%d", major, minor) == 2 ? OK : UNSUPPORTED;
}

static int count_of(struct card *of, const char *key, unsigned *to) { unsigned long long n; int said = number(of, key, &n); if (!said) *to = (unsigned)n; return said; }
int nvmlDeviceGetTemperature(struct card *of, int sensor, unsigned *to) { (void)sensor; return count_of(of, "temperature", to); }
int nvmlDeviceGetPowerUsage(struct card *of, unsigned *to) { return count_of(of, "power", to); }
int nvmlDeviceGetEnforcedPowerLimit(struct card *of, unsigned *to) { return count_of(of, "limit", to); }
static int clock_part(struct card *of, int part, unsigned *to)
{
    const char *value;
    unsigned parts[2];
    int said = answer(of, "clock", &value);
    if (said) return said;
    if (sscanf(value, "%u %u", &parts[0], &parts[1]) != 2) return UNSUPPORTED;
    *to = parts[part];
    return OK;
}
int nvmlDeviceGetClockInfo(struct card *of, int kind, unsigned *to) { (void)kind; return clock_part(of, 0, to); }
int nvmlDeviceGetMaxClockInfo(struct card *of, int kind, unsigned *to) { (void)kind; return clock_part(of, 1, to); }

struct process { unsigned pid; unsigned long long bytes; unsigned instance, compute; };
static int processes(struct card *of, const char *key, unsigned *count_to, struct process *to)
{
    const char *first;
    unsigned room = *count_to, found = 0;
    int said = answer(of, key, &first);
    if (said == LOST) return LOST;
    for (int i = 0; i < of->words; i++) {
        if (strcmp(of->key[i], key)) continue;
        if (to && found < room) {
            memset(&to[found], 0, sizeof *to);
            sscanf(of->value[i], "%u %llu", &to[found].pid, &to[found].bytes);
        }
        found++;
    }
    *count_to = found;
    return found > room ? SMALL : OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct card *of, unsigned *n, struct process *to) { return processes(of, "process", n, to); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct card *of, unsigned *n, struct process *to) { return processes(of, "drawing", n, to); }

struct place { char old[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(struct card *of, struct place *to)
{
    memset(to, 0, sizeof *to);
    return text(of, "bus", to->bus_id, sizeof to->bus_id);
}
