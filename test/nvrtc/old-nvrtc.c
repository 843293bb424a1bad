/* Stands in for an NVRTC of another version: it tells which, knows some architectures, and compiles
 * nothing: it is out of memory, or fails otherwise. */
#include <dlfcn.h>

int nvrtcVersion(int* major, int* minor) { *major = MAJOR; *minor = MINOR; return 0; }
const char* nvrtcGetErrorString(int result) {
  return result == 1 ? "NVRTC_ERROR_OUT_OF_MEMORY" : "NVRTC_ERROR_INTERNAL_ERROR";
}
int nvrtcGetNumSupportedArchs(int* count) { *count = 2; return 0; }
int nvrtcGetSupportedArchs(int* archs) { archs[0] = 90; archs[1] = 100; return 0; }
int nvrtcCreateProgram(void** program, const char* source, const char* name, int count,
    const char** headers, const char** names) {
  (void)program; (void)source; (void)name; (void)count; (void)headers; (void)names;
#ifdef BUILTINS
  /* Looks for its second library as NVRTC does. */
  return dlopen(BUILTINS, RTLD_NOW) ? 1 : 11;
#endif
  return MAJOR == 13 ? 1 : 11;
}
