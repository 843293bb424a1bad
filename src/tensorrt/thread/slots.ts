/**
 * The places of methods in the virtual tables of TensorRT's classes, by version, and how many slots
 * each table has there. Written by scripts/tensorrt-slots.mjs from the order of functions in
 * NVIDIA's headers.
 */

/** The slots of a class: of its methods by name, and their number as `slots`. */
export type ClassSlots = Readonly<Record<string, number>>;

/** Reads `Class: method slot, …;`. */
function slots(text: string): Readonly<Record<string, ClassSlots>> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+):([^;]*);/g)].map(([, name, pairs]) => [
      name!,
      Object.fromEntries(
        [...pairs!.matchAll(/(\w+) (\d+)/g)].map(([, method, slot]) => [method!, Number(slot)]),
      ),
    ]),
  );
}

export const SLOTS = {
  '8': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 22, deserializeCudaEngine 2, setErrorRecorder 7, setMaxThreads 10,
      getMaxThreads 11, setEngineHostCodeAllowed 20, getEngineHostCodeAllowed 21, getNbDLACores 5;
    CudaEngine: slots 50, getNbLayers 9, serialize 10, createExecutionContext 11, isRefittable 15,
      getName 21, getNbOptimizationProfiles 22, createEngineInspector 33, getTensorShape 34,
      getTensorDataType 35, getTensorLocation 36, isShapeInferenceIO 37, getTensorIOMode 38,
      getTensorVectorizedDim 43, getTensorFormatDesc 42, getProfileShape 44, getNbIOTensors 45,
      getIOTensorName 46, getNbAuxStreams 49, getDeviceMemorySize 14,
      createExecutionContextWithoutDeviceMemory 13, setErrorRecorder 28;
    ExecutionContext: slots 51, setProfiler 6, getOptimizationProfile 14,
      setOptimizationProfileAsync 25, setEnqueueEmitsProfile 26, reportToProfiler 28,
      setInputShape 29, getTensorShape 30, setTensorAddress 32, inferShapes 35,
      setOutputAllocator 39, getMaxOutputSize 41, enqueueV3 44, setErrorRecorder 21,
      setAuxStreams 50;
    EngineInspector: slots 9, setExecutionContext 2, getLayerInformation 4, getEngineInformation 5;
    Tensor: slots 25, setName 2, getName 3, getDimensions 5, getType 7, isShapeTensor 21,
      getDimensionName 24;
    OptimizationProfile: slots 10, setDimensions 2, getDimensions 3, setShapeValues 4,
      getNbShapeValues 5, setExtraMemoryTarget 7, getExtraMemoryTarget 8, isValid 9;
    NetworkDefinition: slots 55, getNbLayers 17, getNbInputs 19, getInput 20, getNbOutputs 21,
      getOutput 22, setName 35, getName 36, markOutput 3, unmarkOutput 32, setErrorRecorder 53;
    TimingCache: slots 5, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 60, setFlag 15, getFlag 16, addOptimizationProfile 29,
      getNbOptimizationProfiles 30, setProfilingVerbosity 31, getProfilingVerbosity 32,
      createTimingCache 44, setTimingCache 45, getTimingCache 46, setMemoryPoolLimit 47,
      getMemoryPoolLimit 48, setBuilderOptimizationLevel 51, getBuilderOptimizationLevel 52,
      setHardwareCompatibilityLevel 53, getHardwareCompatibilityLevel 54, setMaxAuxStreams 58,
      getMaxAuxStreams 59, setPreviewFeature 49;
    Builder: slots 23, platformHasFastFp16 4, platformHasFastInt8 5, platformHasTf32 16,
      getNbDLACores 7, createBuilderConfig 9, createNetworkV2 11, createOptimizationProfile 12,
      setErrorRecorder 13, reset 15, buildSerializedNetwork 17, isNetworkSupported 18,
      setMaxThreads 20, getMaxThreads 21;
    Refitter: slots 18, refitCudaEngine 3, setErrorRecorder 10, setNamedWeights 12,
      getMissingWeights 13, getAllWeights 14, setMaxThreads 16;
    Parser: slots 9, parse 0, parseFromFile 1, supportsOperator 4, getNbErrors 6, getError 7,
      clearErrors 8;
    ParserError: slots 6, code 0, desc 1, file 2, line 3, func 4, node 5;
  `),
  '10': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 24, deserializeCudaEngine 3, setErrorRecorder 9, setMaxThreads 12,
      getMaxThreads 13, setEngineHostCodeAllowed 21, getEngineHostCodeAllowed 22, getNbDLACores 7;
    CudaEngine: slots 59, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 8,
      getName 9, getNbOptimizationProfiles 10, createEngineInspector 18, getTensorShape 19,
      getTensorDataType 20, getTensorLocation 21, isShapeInferenceIO 22, getTensorIOMode 23,
      getTensorVectorizedDim 28, getTensorFormatDesc 27, getProfileShape 29, getNbIOTensors 30,
      getIOTensorName 31, getNbAuxStreams 33, getDeviceMemorySize 7, getDeviceMemorySizeV2 52,
      getStreamableWeightsSize 46, setWeightStreamingBudgetV2 48, getWeightStreamingBudgetV2 49,
      getWeightStreamingAutomaticBudget 50, createExecutionContextWithoutDeviceMemory 6,
      setErrorRecorder 13;
    ExecutionContext: slots 55, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 17, setEnqueueEmitsProfile 18, reportToProfiler 20,
      setInputShape 21, getTensorShape 22, setTensorAddress 24, inferShapes 28,
      setOutputAllocator 32, getMaxOutputSize 34, enqueueV3 37, setErrorRecorder 14,
      setAuxStreams 42;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 25, setName 2, getName 3, getDimensions 5, getType 7, isShapeTensor 21,
      getDimensionName 24;
    OptimizationProfile: slots 12, setDimensions 2, getDimensions 3, setShapeValues 4,
      setShapeValuesV2 10, getNbShapeValues 5, setExtraMemoryTarget 7, getExtraMemoryTarget 8,
      isValid 9;
    NetworkDefinition: slots 91, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 30, getName 31, markOutput 3, unmarkOutput 26, setErrorRecorder 47;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 68, setFlag 11, getFlag 12, addOptimizationProfile 25,
      getNbOptimizationProfiles 26, setProfilingVerbosity 27, getProfilingVerbosity 28,
      createTimingCache 40, setTimingCache 41, getTimingCache 42, setMemoryPoolLimit 43,
      getMemoryPoolLimit 44, setBuilderOptimizationLevel 47, getBuilderOptimizationLevel 48,
      setHardwareCompatibilityLevel 49, getHardwareCompatibilityLevel 50, setMaxAuxStreams 54,
      getMaxAuxStreams 55, setProgressMonitor 56, setPreviewFeature 45;
    Builder: slots 23, platformHasFastFp16 2, platformHasFastInt8 3, platformHasTf32 13,
      getNbDLACores 5, createBuilderConfig 7, createNetworkV2 8, createOptimizationProfile 9,
      setErrorRecorder 10, reset 12, buildSerializedNetwork 14, isNetworkSupported 15,
      setMaxThreads 17, getMaxThreads 18;
    Refitter: slots 27, refitCudaEngine 4, setErrorRecorder 11, setNamedWeights 13,
      getMissingWeights 14, getAllWeights 15, setMaxThreads 17;
    Parser: slots 25, parse 0, parseFromFile 1, supportsOperator 4, getNbErrors 5, getError 6,
      clearErrors 7;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 10, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  '11': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 23, deserializeCudaEngine 3, setErrorRecorder 8, setMaxThreads 11,
      getMaxThreads 12, setEngineHostCodeAllowed 20, getEngineHostCodeAllowed 21, getNbDLACores 6;
    CudaEngine: slots 51, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 14, getTensorShape 15,
      getTensorDataType 16, getTensorLocation 17, isShapeInferenceIO 18, getTensorIOMode 19,
      getTensorVectorizedDim 24, getTensorFormatDesc 23, getProfileShape 25, getNbIOTensors 26,
      getIOTensorName 27, getNbAuxStreams 29, getDeviceMemorySizeV2 44, getStreamableWeightsSize 38,
      setWeightStreamingBudgetV2 40, getWeightStreamingBudgetV2 41,
      getWeightStreamingAutomaticBudget 42, setErrorRecorder 10;
    ExecutionContext: slots 53, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 16, setEnqueueEmitsProfile 17, reportToProfiler 19,
      setInputShape 20, getTensorShape 21, setTensorAddress 23, inferShapes 27,
      setOutputAllocator 31, getMaxOutputSize 33, enqueueV3 36, setErrorRecorder 13,
      setAuxStreams 41;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 19, setName 2, getName 3, getDimensions 5, getType 6, isShapeTensor 15,
      getDimensionName 18;
    OptimizationProfile: slots 10, setDimensions 2, getDimensions 3, setShapeValuesV2 8,
      getNbShapeValues 4, setExtraMemoryTarget 5, getExtraMemoryTarget 6, isValid 7;
    NetworkDefinition: slots 89, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 30, getName 31, markOutput 3, unmarkOutput 26, setErrorRecorder 46;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 57, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 20, getNbDLACores 3, createBuilderConfig 5, createNetworkV2 6,
      createOptimizationProfile 7, setErrorRecorder 8, reset 10, buildSerializedNetwork 11,
      isNetworkSupported 12, setMaxThreads 14, getMaxThreads 15;
    Refitter: slots 23, refitCudaEngine 4, setErrorRecorder 7, setNamedWeights 9,
      getMissingWeights 10, getAllWeights 11, setMaxThreads 13;
    Parser: slots 23, parse 0, parseFromFile 1, supportsOperator 2, getNbErrors 3, getError 4,
      clearErrors 5;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 10, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  'rtx-1.3': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 26, deserializeCudaEngine 3, setErrorRecorder 9, setMaxThreads 12,
      getMaxThreads 13, setEngineHostCodeAllowed 21, getEngineHostCodeAllowed 22, getNbDLACores 7;
    CudaEngine: slots 57, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 16, getTensorShape 17,
      getTensorDataType 18, getTensorLocation 19, isShapeInferenceIO 20, getTensorIOMode 21,
      getTensorVectorizedDim 26, getTensorFormatDesc 25, getProfileShape 27, getNbIOTensors 28,
      getIOTensorName 29, getNbAuxStreams 31, getDeviceMemorySizeV2 50, getStreamableWeightsSize 44,
      setWeightStreamingBudgetV2 46, getWeightStreamingBudgetV2 47,
      getWeightStreamingAutomaticBudget 48, setErrorRecorder 11;
    ExecutionContext: slots 54, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 17, setEnqueueEmitsProfile 18, reportToProfiler 20,
      setInputShape 21, getTensorShape 22, setTensorAddress 24, inferShapes 28,
      setOutputAllocator 32, getMaxOutputSize 34, enqueueV3 37, setErrorRecorder 14,
      setAuxStreams 42;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 16, setName 2, getName 3, getDimensions 5, getType 7, isShapeTensor 12,
      getDimensionName 15;
    OptimizationProfile: slots 12, setDimensions 2, getDimensions 3, setShapeValues 4,
      setShapeValuesV2 10, getNbShapeValues 5, setExtraMemoryTarget 7, getExtraMemoryTarget 8,
      isValid 9;
    NetworkDefinition: slots 85, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 28, getName 29, markOutput 3, unmarkOutput 26, setErrorRecorder 45;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 59, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 21, platformHasFastFp16 2, platformHasFastInt8 3, platformHasTf32 13,
      getNbDLACores 5, createBuilderConfig 7, createNetworkV2 8, createOptimizationProfile 9,
      setErrorRecorder 10, reset 12, buildSerializedNetwork 14, isNetworkSupported 15,
      setMaxThreads 17, getMaxThreads 18;
    Refitter: slots 27, refitCudaEngine 4, setErrorRecorder 11, setNamedWeights 13,
      getMissingWeights 14, getAllWeights 15, setMaxThreads 17;
    Parser: slots 25, parse 0, parseFromFile 1, supportsOperator 4, getNbErrors 5, getError 6,
      clearErrors 7;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 10, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  'rtx-1.4': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 26, deserializeCudaEngine 3, setErrorRecorder 9, setMaxThreads 12,
      getMaxThreads 13, setEngineHostCodeAllowed 21, getEngineHostCodeAllowed 22, getNbDLACores 7;
    CudaEngine: slots 57, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 16, getTensorShape 17,
      getTensorDataType 18, getTensorLocation 19, isShapeInferenceIO 20, getTensorIOMode 21,
      getTensorVectorizedDim 26, getTensorFormatDesc 25, getProfileShape 27, getNbIOTensors 28,
      getIOTensorName 29, getNbAuxStreams 31, getDeviceMemorySizeV2 50, getStreamableWeightsSize 44,
      setWeightStreamingBudgetV2 46, getWeightStreamingBudgetV2 47,
      getWeightStreamingAutomaticBudget 48, setErrorRecorder 11;
    ExecutionContext: slots 55, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 17, setEnqueueEmitsProfile 18, reportToProfiler 20,
      setInputShape 21, getTensorShape 22, setTensorAddress 24, inferShapes 28,
      setOutputAllocator 32, getMaxOutputSize 34, enqueueV3 37, setErrorRecorder 14,
      setAuxStreams 42;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 16, setName 2, getName 3, getDimensions 5, getType 7, isShapeTensor 12,
      getDimensionName 15;
    OptimizationProfile: slots 12, setDimensions 2, getDimensions 3, setShapeValues 4,
      setShapeValuesV2 10, getNbShapeValues 5, setExtraMemoryTarget 7, getExtraMemoryTarget 8,
      isValid 9;
    NetworkDefinition: slots 87, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 28, getName 29, markOutput 3, unmarkOutput 26, setErrorRecorder 45;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 59, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 21, platformHasFastFp16 2, platformHasFastInt8 3, platformHasTf32 13,
      getNbDLACores 5, createBuilderConfig 7, createNetworkV2 8, createOptimizationProfile 9,
      setErrorRecorder 10, reset 12, buildSerializedNetwork 14, isNetworkSupported 15,
      setMaxThreads 17, getMaxThreads 18;
    Refitter: slots 27, refitCudaEngine 4, setErrorRecorder 11, setNamedWeights 13,
      getMissingWeights 14, getAllWeights 15, setMaxThreads 17;
    Parser: slots 25, parse 0, parseFromFile 1, supportsOperator 4, getNbErrors 5, getError 6,
      clearErrors 7;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 10, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  'rtx-1.5': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 25, deserializeCudaEngine 3, setErrorRecorder 8, setMaxThreads 11,
      getMaxThreads 12, setEngineHostCodeAllowed 20, getEngineHostCodeAllowed 21, getNbDLACores 6;
    CudaEngine: slots 51, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 14, getTensorShape 15,
      getTensorDataType 16, getTensorLocation 17, isShapeInferenceIO 18, getTensorIOMode 19,
      getTensorVectorizedDim 24, getTensorFormatDesc 23, getProfileShape 25, getNbIOTensors 26,
      getIOTensorName 27, getNbAuxStreams 29, getDeviceMemorySizeV2 44, getStreamableWeightsSize 38,
      setWeightStreamingBudgetV2 40, getWeightStreamingBudgetV2 41,
      getWeightStreamingAutomaticBudget 42, setErrorRecorder 10;
    ExecutionContext: slots 54, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 16, setEnqueueEmitsProfile 17, reportToProfiler 19,
      setInputShape 20, getTensorShape 21, setTensorAddress 23, inferShapes 27,
      setOutputAllocator 31, getMaxOutputSize 33, enqueueV3 36, setErrorRecorder 13,
      setAuxStreams 41;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 15, setName 2, getName 3, getDimensions 5, getType 6, isShapeTensor 11,
      getDimensionName 14;
    OptimizationProfile: slots 10, setDimensions 2, getDimensions 3, setShapeValuesV2 8,
      getNbShapeValues 4, setExtraMemoryTarget 5, getExtraMemoryTarget 6, isValid 7;
    NetworkDefinition: slots 87, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 28, getName 29, markOutput 3, unmarkOutput 26, setErrorRecorder 44;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 59, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 18, getNbDLACores 3, createBuilderConfig 5, createNetworkV2 6,
      createOptimizationProfile 7, setErrorRecorder 8, reset 10, buildSerializedNetwork 11,
      isNetworkSupported 12, setMaxThreads 14, getMaxThreads 15;
    Refitter: slots 23, refitCudaEngine 4, setErrorRecorder 7, setNamedWeights 9,
      getMissingWeights 10, getAllWeights 11, setMaxThreads 13;
    Parser: slots 23, parse 0, parseFromFile 1, supportsOperator 2, getNbErrors 3, getError 4,
      clearErrors 5;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 10, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  'rtx-1.6': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 27, deserializeCudaEngine 3, setErrorRecorder 8, setMaxThreads 11,
      getMaxThreads 12, setEngineHostCodeAllowed 20, getEngineHostCodeAllowed 21, getNbDLACores 6;
    CudaEngine: slots 54, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 14, getTensorShape 15,
      getTensorDataType 16, getTensorLocation 17, isShapeInferenceIO 18, getTensorIOMode 19,
      getTensorVectorizedDim 24, getTensorFormatDesc 23, getProfileShape 25, getNbIOTensors 26,
      getIOTensorName 27, getNbAuxStreams 29, getDeviceMemorySizeV2 44, getStreamableWeightsSize 38,
      setWeightStreamingBudgetV2 40, getWeightStreamingBudgetV2 41,
      getWeightStreamingAutomaticBudget 42, setErrorRecorder 10;
    ExecutionContext: slots 54, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 16, setEnqueueEmitsProfile 17, reportToProfiler 19,
      setInputShape 20, getTensorShape 21, setTensorAddress 23, inferShapes 27,
      setOutputAllocator 31, getMaxOutputSize 33, enqueueV3 36, setErrorRecorder 13,
      setAuxStreams 41;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 15, setName 2, getName 3, getDimensions 5, getType 6, isShapeTensor 11,
      getDimensionName 14;
    OptimizationProfile: slots 10, setDimensions 2, getDimensions 3, setShapeValuesV2 8,
      getNbShapeValues 4, setExtraMemoryTarget 5, getExtraMemoryTarget 6, isValid 7;
    NetworkDefinition: slots 87, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 28, getName 29, markOutput 3, unmarkOutput 26, setErrorRecorder 44;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 62, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 18, getNbDLACores 3, createBuilderConfig 5, createNetworkV2 6,
      createOptimizationProfile 7, setErrorRecorder 8, reset 10, buildSerializedNetwork 11,
      isNetworkSupported 12, setMaxThreads 14, getMaxThreads 15;
    Refitter: slots 23, refitCudaEngine 4, setErrorRecorder 7, setNamedWeights 9,
      getMissingWeights 10, getAllWeights 11, setMaxThreads 13;
    Parser: slots 23, parse 0, parseFromFile 1, supportsOperator 2, getNbErrors 3, getError 4,
      clearErrors 5;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 11, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
  'rtx-1.7': slots(`
    HostMemory: slots 5, data 2, size 3;
    Runtime: slots 29, deserializeCudaEngine 3, setErrorRecorder 8, setMaxThreads 11,
      getMaxThreads 12, setEngineHostCodeAllowed 20, getEngineHostCodeAllowed 21, getNbDLACores 6;
    CudaEngine: slots 56, getNbLayers 3, serialize 4, createExecutionContext 5, isRefittable 6,
      getName 7, getNbOptimizationProfiles 8, createEngineInspector 14, getTensorShape 15,
      getTensorDataType 16, getTensorLocation 17, isShapeInferenceIO 18, getTensorIOMode 19,
      getTensorVectorizedDim 24, getTensorFormatDesc 23, getProfileShape 25, getNbIOTensors 26,
      getIOTensorName 27, getNbAuxStreams 29, getDeviceMemorySizeV2 44, getStreamableWeightsSize 38,
      setWeightStreamingBudgetV2 40, getWeightStreamingBudgetV2 41,
      getWeightStreamingAutomaticBudget 42, setErrorRecorder 10;
    ExecutionContext: slots 54, setProfiler 5, getOptimizationProfile 11,
      setOptimizationProfileAsync 16, setEnqueueEmitsProfile 17, reportToProfiler 19,
      setInputShape 20, getTensorShape 21, setTensorAddress 23, inferShapes 27,
      setOutputAllocator 31, getMaxOutputSize 33, enqueueV3 36, setErrorRecorder 13,
      setAuxStreams 41;
    EngineInspector: slots 9, setExecutionContext 3, getLayerInformation 5, getEngineInformation 6;
    Tensor: slots 15, setName 2, getName 3, getDimensions 5, getType 6, isShapeTensor 11,
      getDimensionName 14;
    OptimizationProfile: slots 12, setDimensions 2, getDimensions 3, setShapeValuesV2 8,
      getNbShapeValues 4, setExtraMemoryTarget 5, getExtraMemoryTarget 6, isValid 7;
    NetworkDefinition: slots 88, getNbLayers 12, getNbInputs 14, getInput 15, getNbOutputs 16,
      getOutput 17, setName 28, getName 29, markOutput 3, unmarkOutput 26, setErrorRecorder 44;
    TimingCache: slots 8, serialize 2, combine 3, reset 4;
    BuilderConfig: slots 62, setFlag 9, getFlag 10, addOptimizationProfile 23,
      getNbOptimizationProfiles 24, setProfilingVerbosity 25, getProfilingVerbosity 26,
      createTimingCache 29, setTimingCache 30, getTimingCache 31, setMemoryPoolLimit 32,
      getMemoryPoolLimit 33, setBuilderOptimizationLevel 36, getBuilderOptimizationLevel 37,
      setHardwareCompatibilityLevel 38, getHardwareCompatibilityLevel 39, setMaxAuxStreams 43,
      getMaxAuxStreams 44, setProgressMonitor 45, setPreviewFeature 34;
    Builder: slots 18, getNbDLACores 3, createBuilderConfig 5, createNetworkV2 6,
      createOptimizationProfile 7, setErrorRecorder 8, reset 10, buildSerializedNetwork 11,
      isNetworkSupported 12, setMaxThreads 14, getMaxThreads 15;
    Refitter: slots 24, refitCudaEngine 4, setErrorRecorder 7, setNamedWeights 9,
      getMissingWeights 10, getAllWeights 11, setMaxThreads 13;
    Parser: slots 24, parse 0, parseFromFile 1, supportsOperator 2, getNbErrors 3, getError 4,
      clearErrors 5;
    ParserError: slots 12, code 0, desc 1, file 2, line 3, func 4, node 5, nodeName 6,
      nodeOperator 7;
    ParserRefitter: slots 11, refitFromBytes 0, getNbErrors 2, getError 3, clearErrors 4;
  `),
};
