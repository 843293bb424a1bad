// A TensorRT that is none: objects with the same virtual tables, whose functions write down what
// they are called with. A plan is text: "plan <rows> <columns>"; its engine copies x, padded by a
// row and a column of zeros, to y where there is a GPU.
#include <dlfcn.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>
#define API extern "C" __attribute__((visibility("default")))
static std::mutex lock;
static std::string lines, taken;
static int refuse;
template <typename... A> static void note(const char *format, A... args) {
  char line[512];
  snprintf(line, sizeof line, format, args...);
  std::lock_guard<std::mutex> held(lock);
  lines += line;
  lines += '\n';
}
API const char *standin_take() {
  std::lock_guard<std::mutex> held(lock);
  taken = lines;
  lines.clear();
  return taken.c_str();
}
API void standin_answer(int value) { refuse = value; }
static int told_rows = 1, alive;
API int standin_alive() { return alive; }
API void standin_rows(int rows) { told_rows = rows; }
API int getInferLibVersion() { return VERSION; }

struct Dims { int32_t nbDims; EXTENT d[8]; };
struct Logger { void **table; };
static Logger *logger;
static void say(int severity, const char *text) {
  reinterpret_cast<void (*)(Logger *, int, const char *)>(logger->table[LOG])(
      logger, severity, text);
}

// An object: its class's table, and what implements it, which is the object itself behind another
// table.
struct Impl { void **table; void *owner; };
struct Object {
  void **table;
  Impl *impl;
  Impl own;
  int rows, columns;
  long x, y;
  int batch;
  void *profiler;
  bool open;
  void *allocator;
};
static void nothing() {}
static int64_t none() { return 0; }
static void destroy(Object *object) {
  note("delete %p", nullptr);
  {
    std::lock_guard<std::mutex> held(lock);
    alive--;
  }
  object->table = nullptr;
  delete object;
}
static void *const public_table[] = {(void *)nothing, (void *)destroy};
static Object *make(void **table) {
  Object *object = new Object{};
  { std::lock_guard<std::mutex> held(lock); alive++; }
  object->table = (void **)public_table;
  object->own.table = table;
  object->own.owner = object;
  object->impl = &object->own;
  return object;
}
static Object *of(Impl *impl) { return (Object *)impl->owner; }
static void *memory_table[5];
static void *memory_data(Impl *impl) { static char plan[] = "plan 1 2"; return plan; }
static size_t memory_size(Impl *impl) { return 8; }

static void *context_table[CONTEXT_SLOTS], *engine_table[ENGINE_SLOTS],
    *runtime_table[RUNTIME_SLOTS], *inspector_table[9];
// Contexts.
static bool set_shape(Impl *impl, const char *name, Dims *dims) {
  note("setInputShape %s %d %ld %ld", name, dims->nbDims, (long)dims->d[0], (long)dims->d[1]);
  of(impl)->batch = (int)dims->d[0];
  return dims->nbDims == 2;
}
static bool set_address(Impl *impl, const char *name, long address) {
  note("setTensorAddress %s %d", name, address != 0);
  (name[0] == 'x' ? of(impl)->x : of(impl)->y) = address;
  return true;
}
static Dims context_shape(Impl *impl, const char *name) {
  return {2,
      {name[0] == 'x'          ? of(impl)->batch
              : of(impl)->open ? -1
                               : of(impl)->batch + 1,
          name[0] == 'x' ? of(impl)->columns : of(impl)->columns + 1}};
}
static int64_t output_size(Impl *impl, const char *) {
  return (int64_t)(of(impl)->batch + 1) * (of(impl)->columns + 1) * 4;
}
static bool set_allocator(Impl *impl, const char *name, void *allocator) {
  note("setOutputAllocator %s", name);
  of(impl)->allocator = allocator;
  return true;
}
// An output whose first extent is what standin_rows said.
static bool give_shape(Object *context, void *stream) {
  void **allocator = (void **)context->allocator;
  if (allocator == nullptr) { say(1, "no allocator"); return false; }
  void **table = (void **)*allocator;
#ifdef OUTPUT_VERSION
  if (reinterpret_cast<int (*)(void *)>(table[OUTPUT_VERSION])(allocator) != 1) {
    say(1, "another interface version");
    return false;
  }
#endif
  long size = (long)told_rows * (context->columns + 1) * 4;
  if (reinterpret_cast<long (*)(void *, const char *, long, uint64_t, uint64_t, void *)>(
          table[OUTPUT_REALLOCATE])(allocator, "y", context->y, size, 256, stream) != context->y) {
    say(1, "IOutputAllocator returned nullptr for an allocation request");
    return false;
  }
  Dims dims = {2, {told_rows, (EXTENT)(context->columns + 1)}};
  reinterpret_cast<void (*)(void *, const char *, const Dims &)>(table[OUTPUT_NOTIFY])(
      allocator, "y", dims);
  return true;
}
static int infer(Impl *impl, int, void *) { return 0; }
static int current_profile(Impl *) { return 0; }
static void set_profiler(Impl *impl, void *profiler) { of(impl)->profiler = profiler; }
static bool report(Impl *impl) {
  void **profiler = (void **)of(impl)->profiler;
  if (profiler == nullptr) return false;
  reinterpret_cast<void (*)(void *, const char *, float)>(((void **)*profiler)[PROFILER])(
      profiler, "pad", 0.25f);
  return true;
}
static bool enqueue(Impl *impl, void *stream) {
  Object *context = of(impl);
  note("enqueueV3 %d", stream != nullptr);
  if (refuse != 0) {
    say(1, refuse == 2 ? "out of memory while it runs" : "the stand-in was told to refuse");
    return false;
  }
  if (context->open && !give_shape(context, stream)) return false;
  typedef int (*Copy)(long, long, size_t, void *);
  typedef int (*Fill)(long, unsigned char, size_t, void *);
  static void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  // The stand-in on a CPU device has no addresses that it could reach.
  if (cuda == nullptr) return true;
  static Copy copy = (Copy)dlsym(cuda, "cuMemcpyDtoDAsync_v2");
  static Fill fill = (Fill)dlsym(cuda, "cuMemsetD8Async");
  int rows = context->batch, columns = context->columns;
  if (fill(context->y, 0, (size_t)(rows + 1) * (columns + 1) * 4, stream) != 0) return false;
  for (int row = 0; row < rows; row++)
    if (copy(context->y + (long)row * (columns + 1) * 4, context->x + (long)row * columns * 4,
            (size_t)columns * 4, stream) != 0)
      return false;
  return true;
}
static Object *make_context(Impl *impl, int strategy) {
  note("createExecutionContext %d", strategy);
  if (refuse == 3) { say(1, "out of memory: no room for a context"); return nullptr; }
  Object *context = make(context_table);
  context->rows = of(impl)->rows;
  context->columns = of(impl)->columns;
  context->batch = context->rows;
  context->open = of(impl)->open;
  return context;
}
static Object *make_user_context(Impl *impl) { return make_context(impl, 2); }
// Engines.
static int one(Impl *) { return 1; }
static int two(Impl *) { return 2; }
static bool no(Impl *) { return false; }
static const char *title(Impl *) { return "pad"; }
static const char *tensor_name(Impl *, int i) { return i == 0 ? "x" : "y"; }
static Dims tensor_shape(Impl *impl, const char *name) {
  bool x = name[0] == 'x';
  return {2,
      {(EXTENT)(of(impl)->rows < 0 || (of(impl)->open && !x) ? -1
               : x                                           ? of(impl)->rows
                                                             : of(impl)->rows + 1),
          (EXTENT)(x ? of(impl)->columns : of(impl)->columns + 1)}};
}
static Dims profile_shape(Impl *impl, const char *, int, int select) {
  return {2,
      {of(impl)->rows >= 0  ? of(impl)->rows
              : select == 0 ? 1
              : select == 1 ? 4
                            : 8,
          of(impl)->columns}};
}
static int data_type(Impl *, const char *) { return 0; }
static int io_mode(Impl *, const char *name) { return name[0] == 'x' ? 1 : 2; }
static int vectorized(Impl *, const char *) { return -1; }
static int64_t budget = 100;
static int64_t streamable(Impl *) { return 1000; }
static int64_t get_budget(Impl *) { return budget; }
static bool set_budget(Impl *, int64_t bytes) { budget = bytes; return bytes <= 1000; }
static int64_t megabyte(Impl *) { return 1 << 20; }
static Object *serialize(Impl *) { return make(memory_table); }
static const char *information(Impl *, int) { return "{\"Layers\":[\"pad\"]}"; }
static const char *layer_information(Impl *, int, int) { return "{\"Name\":\"pad\"}"; }
static Object *inspector(Impl *) { return make(inspector_table); }
static Object *deserialize(Impl *, const char *plan, size_t size) {
  int rows, columns;
  std::string text(plan, size);
  if (sscanf(text.c_str(), "plan %d %d", &rows, &columns) != 2) {
    say(1,
        text.rfind("other", 0) == 0
            ? "The engine plan file is not compatible with this version of TensorRT"
            : "Serialization assertion magicTagRead == kMAGIC_TAG failed");
    return nullptr;
  }
  Object *engine = make(engine_table);
  engine->rows = rows;
  engine->columns = columns;
  engine->open = text.find("open") != std::string::npos;
  note("deserialize %d %d", rows, columns);
  return engine;
}
API void *createInferRuntime_INTERNAL(Logger *given, int version) {
  logger = given;
  for (auto table : {context_table, engine_table, runtime_table}) {
    size_t n = table == context_table ? CONTEXT_SLOTS
        : table == engine_table       ? ENGINE_SLOTS
                                      : RUNTIME_SLOTS;
    for (size_t i = 0; i < n; i++) table[i] = (void *)none;
  }
  for (auto &slot : inspector_table) slot = (void *)none;
  for (auto &slot : memory_table) slot = (void *)none;
  memory_table[2] = (void *)memory_data;
  memory_table[3] = (void *)memory_size;
  inspector_table[EngineInspector_getEngineInformation] = (void *)information;
  inspector_table[EngineInspector_getLayerInformation] = (void *)layer_information;
  runtime_table[Runtime_deserializeCudaEngine] = (void *)deserialize;
  runtime_table[Runtime_getMaxThreads] = (void *)one;
  void **e = engine_table;
  e[CudaEngine_getNbLayers] = (void *)one;
  e[CudaEngine_serialize] = (void *)serialize;
  e[CudaEngine_createExecutionContext] = (void *)make_context;
#ifdef CudaEngine_createExecutionContextWithoutDeviceMemory
  e[CudaEngine_createExecutionContextWithoutDeviceMemory] = (void *)make_user_context;
#endif
  e[CudaEngine_isRefittable] = (void *)no;
  e[CudaEngine_getName] = (void *)title;
  e[CudaEngine_getNbOptimizationProfiles] = (void *)one;
  e[CudaEngine_createEngineInspector] = (void *)inspector;
  e[CudaEngine_getTensorShape] = (void *)tensor_shape;
  e[CudaEngine_getTensorDataType] = (void *)data_type;
  e[CudaEngine_getTensorIOMode] = (void *)io_mode;
  e[CudaEngine_getTensorVectorizedDim] = (void *)vectorized;
  e[CudaEngine_getProfileShape] = (void *)profile_shape;
  e[CudaEngine_getNbIOTensors] = (void *)two; e[CudaEngine_getIOTensorName] = (void *)tensor_name; 
#ifdef CudaEngine_getDeviceMemorySizeV2
  e[CudaEngine_getDeviceMemorySizeV2] = (void *)megabyte;
  e[CudaEngine_getStreamableWeightsSize] = (void *)streamable;
  e[CudaEngine_setWeightStreamingBudgetV2] = (void *)set_budget;
  e[CudaEngine_getWeightStreamingBudgetV2] = (void *)get_budget;
  e[CudaEngine_getWeightStreamingAutomaticBudget] = (void *)megabyte;
#endif
  void **c = context_table;
  c[ExecutionContext_setInputShape] = (void *)set_shape;
  c[ExecutionContext_setTensorAddress] = (void *)set_address;
  c[ExecutionContext_getTensorShape] = (void *)context_shape;
  c[ExecutionContext_inferShapes] = (void *)infer;
  c[ExecutionContext_getOptimizationProfile] = (void *)current_profile;
  c[ExecutionContext_enqueueV3] = (void *)enqueue;
  c[ExecutionContext_setOutputAllocator] = (void *)set_allocator;
  c[ExecutionContext_getMaxOutputSize] = (void *)output_size;
  c[ExecutionContext_setProfiler] = (void *)set_profiler;
  c[ExecutionContext_reportToProfiler] = (void *)report;
  return make(runtime_table);
}
