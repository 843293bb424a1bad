/**
 * The functions of ONNX Runtime's C API that are used, by their places in the structure OrtApi. The
 * places are part of the library's ABI: new functions are appended, and none is moved or removed
 * (onnxruntime_c_api.h, "new APIs must be added at the end").
 *
 * `status`: the function returns an OrtStatus*, null where it succeeded.
 */

type Returned = 'status' | 'void' | 'text' | 'number';

interface Slot {
  readonly slot: number;
  readonly returns: Returned;
  /** Types of the arguments, as koffi names them. */
  readonly args: readonly string[];
}

const P = 'uintptr_t';
const TEXT = 'const char*';

function slot(number: number, args: readonly string[], returns: Returned = 'status'): Slot {
  return { slot: number, returns, args };
}

const release = (number: number): Slot => slot(number, [P], 'void');

export const SLOTS = {
  CreateStatus: slot(0, ['int', TEXT], 'number'),
  GetErrorCode: slot(1, [P], 'number'),
  GetErrorMessage: slot(2, [P], 'text'),
  CreateEnv: slot(3, ['int', TEXT, P]),
  CreateSession: slot(7, [P, process.platform === 'win32' ? 'const char16_t*' : TEXT, P, P]),
  CreateSessionFromArray: slot(8, [P, P, 'size_t', P, P]),
  Run: slot(9, [P, P, 'const char**', P, 'size_t', 'const char**', 'size_t', P]),
  /** {@link SLOTS.Run}, with names that are in memory. */
  RunBound: slot(9, [P, P, P, P, 'size_t', P, 'size_t', P]),
  CreateSessionOptions: slot(10, [P]),
  SetSessionLogSeverityLevel: slot(22, [P, 'int']),
  SetSessionGraphOptimizationLevel: slot(23, [P, 'int']),
  SetIntraOpNumThreads: slot(24, [P, 'int']),
  SetInterOpNumThreads: slot(25, [P, 'int']),
  SessionGetInputCount: slot(30, [P, P]),
  SessionGetOutputCount: slot(31, [P, P]),
  SessionGetInputTypeInfo: slot(33, [P, 'size_t', P]),
  SessionGetOutputTypeInfo: slot(34, [P, 'size_t', P]),
  SessionGetInputName: slot(36, [P, 'size_t', P, P]),
  SessionGetOutputName: slot(37, [P, 'size_t', P, P]),
  CreateRunOptions: slot(39, [P]),
  RunOptionsSetTerminate: slot(46, [P]),
  RunOptionsUnsetTerminate: slot(47, [P]),
  CreateTensorWithDataAsOrtValue: slot(49, [P, P, 'size_t', P, 'size_t', 'int', P]),
  GetTensorMutableData: slot(51, [P, P]),
  CastTypeInfoToTensorInfo: slot(55, [P, P]),
  GetOnnxTypeFromTypeInfo: slot(56, [P, P]),
  GetTensorElementType: slot(60, [P, P]),
  GetDimensionsCount: slot(61, [P, P]),
  GetDimensions: slot(62, [P, P, 'size_t']),
  GetSymbolicDimensions: slot(63, [P, P, 'size_t']),
  GetTensorTypeAndShape: slot(65, [P, P]),
  CreateMemoryInfo: slot(68, [TEXT, 'int', 'int', 'int', P]),
  MemoryInfoGetName: slot(71, [P, P]),
  AllocatorFree: slot(76, [P, P]),
  GetAllocatorWithDefaultOptions: slot(78, [P]),
  ReleaseStatus: release(93),
  ReleaseMemoryInfo: release(94),
  ReleaseSession: release(95),
  ReleaseValue: release(96),
  ReleaseRunOptions: release(97),
  ReleaseTypeInfo: release(98),
  ReleaseTensorTypeAndShapeInfo: release(99),
  ReleaseSessionOptions: release(100),
  GetAvailableProviders: slot(125, [P, P]),
  ReleaseAvailableProviders: slot(126, [P, 'int']),
  AddSessionConfigEntry: slot(130, [P, TEXT, TEXT]),
  AddRunConfigEntry: slot(165, [P, TEXT, TEXT]),
  SessionOptionsAppendExecutionProviderCuda: slot(204, [P, P]),
  CreateCUDAProviderOptions: slot(205, [P]),
  UpdateCUDAProviderOptions: slot(206, [P, 'const char**', 'const char**', 'size_t']),
  ReleaseCUDAProviderOptions: release(208),
  GetBuildInfoString: slot(254, [], 'text'),
  UpdateCUDAProviderOptionsWithValue: slot(263, [P, TEXT, P]),
  /** Since 1.22. */
  SessionOptionsSetLoadCancellationFlag: slot(293, [P, 'bool']),
} as const satisfies Record<string, Slot>;

export type ApiFunction = keyof typeof SLOTS;
