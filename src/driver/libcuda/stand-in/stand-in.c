/*
 * A stand-in for libcuda: records every call as a line of text and returns the scripted results. stand-in.ts generates the
 * entry points from header-facts.ts, and replaces the last line by them.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef struct { int type; int id; } Location;
typedef struct { char name[64]; int result; int times; } Result;
typedef struct { char name[64]; int arg; size_t size; unsigned char data[256]; } Write;
typedef struct { char name[64]; int arg; size_t size; } Peek;

static char text[1 << 16];
static size_t length;
static Result results[64]; static int resultCount;
static Write writes[64]; static int writeCount;
static Peek peeks[64]; static int peekCount;
static struct { uint64_t offset, size; } params[512]; static int paramCount;
static char infoLog[256], errorLog[256];
static unsigned char cubin[] = {0x7f, 'E', 'L', 'F', 1, 2, 3};

static void put(const char *format, uint64_t value) {
  length += (size_t)snprintf(text + length, sizeof text - length, format, (unsigned long long)value);
}
static void putText(const char *s) { length += (size_t)snprintf(text + length, sizeof text - length, "%s", s); }
static void putBytes(const void *p, size_t size) {
  for (size_t i = 0; i < size; i++) put("%02llx", ((const unsigned char *)p)[i]);
}

API const char *standin_log(void) { return text; }
API void standin_reset(void) {
  length = 0; text[0] = 0;
  resultCount = writeCount = peekCount = paramCount = 0;
  infoLog[0] = errorLog[0] = 0;
}
API void standin_forget_log(void) { length = 0; text[0] = 0; }
/* The next `times` calls of `name` return `result`; -1 for all of them. */
API void standin_return(const char *name, int result, int times) {
  Result *r = &results[resultCount++];
  snprintf(r->name, sizeof r->name, "%s", name); r->result = result; r->times = times;
}
/* `name` writes these bytes through its argument `arg`. */
API void standin_write(const char *name, int arg, const void *data, size_t size) {
  Write *w = &writes[writeCount++];
  snprintf(w->name, sizeof w->name, "%s", name); w->arg = arg; w->size = size; memcpy(w->data, data, size);
}
/* `name` also records the `size` bytes that its argument `arg` points to. */
API void standin_peek(const char *name, int arg, size_t size) {
  Peek *p = &peeks[peekCount++];
  snprintf(p->name, sizeof p->name, "%s", name); p->arg = arg; p->size = size;
}
/* The result of cuFuncGetParamInfo for the next parameter of every function. */
API void standin_param(uint64_t offset, uint64_t size) {
  params[paramCount].offset = offset; params[paramCount].size = size; paramCount++;
}
API void standin_forget_params(void) { paramCount = 0; }
API void standin_jit_logs(const char *info, const char *error) {
  snprintf(infoLog, sizeof infoLog, "%s", info); snprintf(errorLog, sizeof errorLog, "%s", error);
}
API uint64_t standin_cubin(void) { return (uint64_t)(uintptr_t)cubin; }
API uint64_t standin_cubin_size(void) { return sizeof cubin; }

static int resultOf(const char *name) {
  for (int i = 0; i < resultCount; i++) {
    if (strcmp(results[i].name, name) != 0 || results[i].times == 0) continue;
    if (results[i].times > 0) results[i].times--;
    return results[i].result;
  }
  return 0;
}

/* Options of the JIT: recorded as key=value, and the two logs filled in. */
static void jit(uint64_t count, uint64_t keysAt, uint64_t valuesAt) {
  const int32_t *keys = (const int32_t *)(uintptr_t)keysAt;
  uint64_t *values = (uint64_t *)(uintptr_t)valuesAt;
  putText(" {");
  for (uint64_t i = 0; i < count; i++) {
    if (keys[i] == 3) strcpy((char *)(uintptr_t)values[i], infoLog);
    else if (keys[i] == 5) strcpy((char *)(uintptr_t)values[i], errorLog);
    else { put(" %llu", (uint64_t)keys[i]); put("=%llu", values[i]); }
  }
  putText(" }");
}

/* Records the parameters of a launch, read as a driver reads them. */
static void launchParams(uint64_t kernelParamsAt, uint64_t extraAt) {
  void **kernelParams = (void **)(uintptr_t)kernelParamsAt;
  void **extra = (void **)(uintptr_t)extraAt;
  if (kernelParams != NULL) {
    putText(" params");
    for (int i = 0; i < paramCount; i++) { putText(i == 0 ? " " : ","); putBytes(kernelParams[i], params[i].size); }
  }
  if (extra != NULL) {
    const void *buffer = NULL; size_t size = 0;
    for (; *extra != NULL; extra += 2) {
      if (*extra == (void *)1) buffer = extra[1];
      else if (*extra == (void *)2) size = *(size_t *)extra[1];
    }
    putText(" buffer "); putBytes(buffer, size);
  }
}

static void launchConfig(uint64_t at) {
  const unsigned char *config = (const unsigned char *)(uintptr_t)at;
  putText(" config "); putBytes(config, 28); /* up to sharedMemBytes */
  put(" stream %llx", *(const uint64_t *)(config + 32));
  uint32_t count; memcpy(&count, config + 48, 4);
  const unsigned char *attributes = (const unsigned char *)(uintptr_t)*(const uint64_t *)(config + 40);
  for (uint32_t i = 0; i < count; i++) {
    put(" attribute %llu:", *(const uint32_t *)(attributes + 72 * i));
    putBytes(attributes + 72 * i + 8, 12);
  }
}

static int record(const char *name, const uint64_t *args, int count) {
  putText(name);
  for (int i = 0; i < count; i++) put(" %llx", args[i]);
  for (int i = 0; i < peekCount; i++) {
    if (strcmp(peeks[i].name, name) != 0) continue;
    putText(" ["); putBytes((const void *)(uintptr_t)args[peeks[i].arg], peeks[i].size); putText("]");
  }
  if (strcmp(name, "cuLaunchKernel") == 0) launchParams(args[9], args[10]);
  if (strcmp(name, "cuLaunchKernelEx") == 0) { launchConfig(args[0]); launchParams(args[2], args[3]); }
  if (strcmp(name, "cuOccupancyMaxActiveClusters") == 0) launchConfig(args[2]);
  if (strcmp(name, "cuModuleLoadDataEx") == 0) jit(args[2], args[3], args[4]);
  if (strcmp(name, "cuLibraryLoadData") == 0) jit(args[4], args[2], args[3]);
  if (strcmp(name, "cuLinkCreate_v2") == 0) jit(args[0], args[1], args[2]);
  putText("\n");

  if (strcmp(name, "cuFuncGetParamInfo") == 0) {
    if (args[1] >= (uint64_t)paramCount) return 1;
    *(uint64_t *)(uintptr_t)args[2] = params[args[1]].offset;
    *(uint64_t *)(uintptr_t)args[3] = params[args[1]].size;
  }
  if (strcmp(name, "cuKernelGetName") == 0) *(const char **)(uintptr_t)args[0] = "saxpy";
  if (strcmp(name, "cuLinkComplete") == 0) {
    *(uint64_t *)(uintptr_t)args[1] = standin_cubin();
    *(uint64_t *)(uintptr_t)args[2] = sizeof cubin;
  }
  if (strcmp(name, "cuDriverGetVersion") == 0 && args[0] > 4096) *(int *)(uintptr_t)args[0] = VERSION;
  for (int i = 0; i < writeCount; i++) {
    void *target = (void *)(uintptr_t)args[writes[i].arg];
    if (strcmp(writes[i].name, name) == 0 && target != NULL) memcpy(target, writes[i].data, writes[i].size);
  }
  return resultOf(name);
}

#include ENTRY_POINTS
