/**
 * The methods of TensorRT's classes that are called, by class: their arguments and results. Their
 * places in the classes' virtual tables are in `slots.ts`, by version.
 */

/**
 * The type of an argument or a result: numbers by their width; `text` is a char const*, `object` a
 * pointer to a C++ object, `bytes` a pointer to the caller's memory; `dims` is Dims by reference
 * (as a result, by value), `dimsValue` by value; `weights` is Weights by value.
 */
export type NativeType =
  | 'void'
  | 'bool'
  | 'i32'
  | 'u32'
  | 'i64'
  | 'size'
  | 'f32'
  | 'text'
  | 'object'
  | 'bytes'
  | 'dims'
  | 'dimsValue'
  | 'weights';

/** `[result, ...arguments]`, without the object itself. */
export type Signature = readonly [NativeType, ...NativeType[]];

export const METHODS = {
  HostMemory: { data: ['object'], size: ['size'] },
  Runtime: {
    // The last is an IPluginFactory, up to version 8.
    deserializeCudaEngine: ['object', 'bytes', 'size', 'object'],
    setErrorRecorder: ['void', 'object'],
    setMaxThreads: ['bool', 'i32'],
    getMaxThreads: ['i32'],
    setEngineHostCodeAllowed: ['void', 'bool'],
    getEngineHostCodeAllowed: ['bool'],
    getNbDLACores: ['i32'],
  },
  CudaEngine: {
    getNbLayers: ['i32'],
    serialize: ['object'],
    createExecutionContext: ['object', 'i32'],
    isRefittable: ['bool'],
    getName: ['text'],
    getNbOptimizationProfiles: ['i32'],
    createEngineInspector: ['object'],
    getTensorShape: ['dims', 'text'],
    getTensorDataType: ['i32', 'text'],
    getTensorLocation: ['i32', 'text'],
    isShapeInferenceIO: ['bool', 'text'],
    getTensorIOMode: ['i32', 'text'],
    getTensorVectorizedDim: ['i32', 'text'],
    getTensorFormatDesc: ['text', 'text'],
    getProfileShape: ['dims', 'text', 'i32', 'i32'],
    getNbIOTensors: ['i32'],
    getIOTensorName: ['text', 'i32'],
    getNbAuxStreams: ['i32'],
    getDeviceMemorySize: ['size'],
    getDeviceMemorySizeV2: ['i64'],
    getStreamableWeightsSize: ['i64'],
    setWeightStreamingBudgetV2: ['bool', 'i64'],
    getWeightStreamingBudgetV2: ['i64'],
    getWeightStreamingAutomaticBudget: ['i64'],
    createExecutionContextWithoutDeviceMemory: ['object'],
    setErrorRecorder: ['void', 'object'],
  },
  ExecutionContext: {
    setProfiler: ['void', 'object'],
    getOptimizationProfile: ['i32'],
    setOptimizationProfileAsync: ['bool', 'i32', 'object'],
    setEnqueueEmitsProfile: ['void', 'bool'],
    reportToProfiler: ['bool'],
    setInputShape: ['bool', 'text', 'dims'],
    getTensorShape: ['dims', 'text'],
    setTensorAddress: ['bool', 'text', 'object'],
    inferShapes: ['i32', 'i32', 'bytes'],
    setOutputAllocator: ['bool', 'text', 'object'],
    getMaxOutputSize: ['i64', 'text'],
    enqueueV3: ['bool', 'object'],
    setErrorRecorder: ['void', 'object'],
    setAuxStreams: ['void', 'bytes', 'i32'],
  },
  EngineInspector: {
    setExecutionContext: ['bool', 'object'],
    getLayerInformation: ['text', 'i32', 'i32'],
    getEngineInformation: ['text', 'i32'],
  },
  Tensor: {
    setName: ['void', 'text'],
    getName: ['text'],
    getDimensions: ['dims'],
    getType: ['i32'],
    isShapeTensor: ['bool'],
    getDimensionName: ['text', 'i32'],
  },
  OptimizationProfile: {
    setDimensions: ['bool', 'text', 'i32', 'dims'],
    getDimensions: ['dims', 'text', 'i32'],
    setShapeValues: ['bool', 'text', 'i32', 'bytes', 'i32'],
    setShapeValuesV2: ['bool', 'text', 'i32', 'bytes', 'i32'],
    getNbShapeValues: ['i32', 'text'],
    setExtraMemoryTarget: ['bool', 'f32'],
    getExtraMemoryTarget: ['f32'],
    isValid: ['bool'],
  },
  NetworkDefinition: {
    getNbLayers: ['i32'],
    getNbInputs: ['i32'],
    getInput: ['object', 'i32'],
    getNbOutputs: ['i32'],
    getOutput: ['object', 'i32'],
    setName: ['void', 'text'],
    getName: ['text'],
    markOutput: ['void', 'object'],
    unmarkOutput: ['void', 'object'],
    setErrorRecorder: ['void', 'object'],
  },
  TimingCache: { serialize: ['object'], combine: ['bool', 'object', 'bool'], reset: ['bool'] },
  BuilderConfig: {
    setFlag: ['void', 'i32'],
    getFlag: ['bool', 'i32'],
    addOptimizationProfile: ['i32', 'object'],
    getNbOptimizationProfiles: ['i32'],
    setProfilingVerbosity: ['void', 'i32'],
    getProfilingVerbosity: ['i32'],
    createTimingCache: ['object', 'bytes', 'size'],
    setTimingCache: ['bool', 'object', 'bool'],
    getTimingCache: ['object'],
    setMemoryPoolLimit: ['void', 'i32', 'size'],
    getMemoryPoolLimit: ['size', 'i32'],
    setBuilderOptimizationLevel: ['void', 'i32'],
    getBuilderOptimizationLevel: ['i32'],
    setHardwareCompatibilityLevel: ['void', 'i32'],
    getHardwareCompatibilityLevel: ['i32'],
    setMaxAuxStreams: ['void', 'i32'],
    getMaxAuxStreams: ['i32'],
    setProgressMonitor: ['void', 'object'],
    setPreviewFeature: ['void', 'i32', 'bool'],
  },
  Builder: {
    platformHasFastFp16: ['bool'],
    platformHasFastInt8: ['bool'],
    platformHasTf32: ['bool'],
    getNbDLACores: ['i32'],
    createBuilderConfig: ['object'],
    createNetworkV2: ['object', 'u32'],
    createOptimizationProfile: ['object'],
    setErrorRecorder: ['void', 'object'],
    reset: ['void'],
    buildSerializedNetwork: ['object', 'object', 'object'],
    isNetworkSupported: ['bool', 'object', 'object'],
    setMaxThreads: ['bool', 'i32'],
    getMaxThreads: ['i32'],
  },
  Refitter: {
    refitCudaEngine: ['bool'],
    setErrorRecorder: ['void', 'object'],
    setNamedWeights: ['bool', 'text', 'weights'],
    getMissingWeights: ['i32', 'i32', 'bytes'],
    getAllWeights: ['i32', 'i32', 'bytes'],
    setMaxThreads: ['bool', 'i32'],
  },
  // The ONNX parser's classes are pure interfaces: their tables are those of the objects
  // themselves.
  Parser: {
    parse: ['bool', 'bytes', 'size', 'text'],
    parseFromFile: ['bool', 'text', 'i32'],
    supportsOperator: ['bool', 'text'],
    getNbErrors: ['i32'],
    getError: ['object', 'i32'],
    clearErrors: ['void'],
  },
  ParserError: {
    code: ['i32'],
    desc: ['text'],
    file: ['text'],
    line: ['i32'],
    func: ['text'],
    node: ['i32'],
    nodeName: ['text'],
    nodeOperator: ['text'],
  },
  ParserRefitter: {
    refitFromBytes: ['bool', 'bytes', 'size', 'text'],
    getNbErrors: ['i32'],
    getError: ['object', 'i32'],
    clearErrors: ['void'],
  },
} as const satisfies Record<string, Record<string, Signature>>;

export type ClassName = keyof typeof METHODS;
export type MethodName<C extends ClassName> = keyof (typeof METHODS)[C] & string;

/**
 * Classes whose own object holds the virtual table; for the others it is the table of the object
 * that they point to.
 */
export const INTERFACES: ReadonlySet<ClassName> = new Set([
  'Parser',
  'ParserError',
  'ParserRefitter',
]);
