/* A receiver of NVTX calls: built with -DTOOL it is a tool that is attached by InitializeInjectionNvtx2, otherwise it
 * is libnvToolsExt. In both cases it records the ranges. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char text[4096];
static size_t used;

static void note(const char* what, const char* message) {
  if (used < sizeof text) used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s\n", what, message[0] ? " " : "", message);
}

const char* tool_log(void) { return text; }
void tool_forget(void) { used = 0; text[0] = 0; }

static int push(const char* message) { note("push", message); return 0; }
static int pop(void) { note("pop", ""); return 0; }

#ifdef TOOL

typedef void (*Function)(void);
typedef struct { size_t size; int (*get)(int module, Function*** table, unsigned* size); } Callbacks;
typedef struct { size_t size; uint32_t version, reserved; void (*set)(uint32_t); } VersionInfo;

int InitializeInjectionNvtx2(const void* (*get_table)(uint32_t)) {
  static const unsigned sizes[] = { 0, 16, 9, 15, 7, 16, 7 };
  const VersionInfo* version = get_table(3);
  const Callbacks* callbacks = get_table(1);
  Function** table;
  unsigned size;
  if (get_table(2) != NULL || version == NULL || version->size != sizeof *version || version->version != 3) return 0;
  version->set(3);
  if (callbacks == NULL || callbacks->size != sizeof *callbacks || callbacks->get(7, &table, &size) != 0) return 0;
  for (int module = 6; module >= 1; module--) {
    /* Either pointer may be null. */
    if (callbacks->get(module, NULL, &size) != 1 || callbacks->get(module, &table, NULL) != 1) return 0;
    if (size != sizes[module] || table[0] != NULL || table[size] != NULL) return 0;
    for (unsigned i = 1; i < size; i++) if (table[i] == NULL || *table[i] != NULL) return 0;
  }
#ifdef REFUSES
  return 0;
#endif
#ifndef IDLE
  *table[9] = (Function)push;
  *table[11] = (Function)pop;
#endif
  note("attached", "");
  return 1;
}

#else

int nvtxRangePushA(const char* message) { return push(message); }
int nvtxRangePop(void) { return pop(); }

#endif
