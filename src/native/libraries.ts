/**
 * NVIDIA's libraries and their names, newest first: `find.ts` looks for them, and `async-cuda info`
 * lists them. A sub-path (`async-cuda/images`, …) opens its library by its row here.
 *
 * The Windows names were taken from NVIDIA's packages and are not tested.
 */

/** The names of a library, and where it comes from. */
export interface LibraryRow {
  /** The name in messages. */
  readonly name: string;
  /** The soname without `lib` and `.so`, e.g. `nvrtc`. */
  readonly base: string;
  /** Major versions in the soname, newest first. */
  readonly versions: readonly string[];
  /** File names on Windows, newest first. */
  readonly windows: readonly string[];
  /** Whether it comes with the driver, with the CUDA toolkit, or as a package of its own. */
  readonly from: 'driver' | 'toolkit' | 'package';
  /**
   * Environment variables that name the file or its folder. They have precedence over all other
   * places.
   */
  readonly environment: readonly string[];
  /**
   * Variables of other libraries in whose folder this one lies. The folder that such a variable
   * names, or that of its file, is tried first.
   */
  readonly beside?: readonly string[];
  /** Python packages that contain it, the one for the newest CUDA first. */
  readonly wheels?: readonly string[];
  /** Folders in Python's site-packages besides `nvidia/<package>/lib`. */
  readonly wheelFolders?: readonly string[];
  /** Whether its file may have the whole version in its name: `libonnxruntime.so.1.23.2`. */
  readonly wholeVersion?: boolean;
  /**
   * The npm package that contains it, and the folder in the package; `{platform}` and `{arch}` are
   * Node's.
   */
  readonly npm?: { readonly name: string; readonly folder: string };
}

function toolkit(
  name: string,
  base: string,
  versions: readonly string[],
  windows: readonly string[],
  wheel?: string,
): LibraryRow {
  // Up to CUDA 12 the packages' names end with the version.
  const wheels =
    wheel === undefined
      ? []
      : [
          wheel,
          ...versions.flatMap((version) =>
            version === '13' ? [] : [`${wheel}-cu${parseInt(version, 10)}`],
          ),
        ];
  return { name, base, versions, windows, from: 'toolkit', environment: [variable(base)], wheels };
}

function variable(base: string): string {
  return `ASYNC_CUDA_${base.toUpperCase()}`;
}

/** The NVIDIA driver's library. */
export const LIBCUDA: LibraryRow = {
  name: 'CUDA driver',
  base: 'cuda',
  versions: ['1'],
  windows: ['nvcuda.dll'],
  from: 'driver',
  environment: ['ASYNC_CUDA_LIBCUDA'],
};

/** The libraries that async-cuda uses or lists, by key. */
export const KNOWN_LIBRARIES = {
  cuda: LIBCUDA,
  nvml: {
    name: 'NVML',
    base: 'nvidia-ml',
    versions: ['1'],
    windows: ['nvml.dll'],
    from: 'driver',
    environment: ['ASYNC_CUDA_NVML'],
  },
  cudart: toolkit(
    'CUDA runtime',
    'cudart',
    ['13', '12', '11.0'],
    ['cudart64_13.dll', 'cudart64_12.dll', 'cudart64_110.dll'],
    'nvidia-cuda-runtime',
  ),
  // The library is part of toolkits up to 12; NVTX 3 consists of headers only.
  nvtx: toolkit('NVTX', 'nvToolsExt', ['1'], ['nvToolsExt64_1.dll']),
  nvrtc: toolkit(
    'NVRTC',
    'nvrtc',
    ['13', '12', '11.2'],
    ['nvrtc64_130_0.dll', 'nvrtc64_120_0.dll', 'nvrtc64_112_0.dll'],
    'nvidia-cuda-nvrtc',
  ),
  nvJitLink: toolkit(
    'nvJitLink',
    'nvJitLink',
    ['13', '12'],
    ['nvJitLink_130_0.dll', 'nvJitLink_120_0.dll'],
    'nvidia-nvjitlink',
  ),
  nppc: toolkit(
    'NPP core',
    'nppc',
    ['13', '12', '11'],
    ['nppc64_13.dll', 'nppc64_12.dll', 'nppc64_11.dll'],
    'nvidia-npp',
  ),
  nppig: toolkit(
    'NPP geometry',
    'nppig',
    ['13', '12', '11'],
    ['nppig64_13.dll', 'nppig64_12.dll', 'nppig64_11.dll'],
    'nvidia-npp',
  ),
  nppidei: toolkit(
    'NPP data exchange',
    'nppidei',
    ['13', '12', '11'],
    ['nppidei64_13.dll', 'nppidei64_12.dll', 'nppidei64_11.dll'],
    'nvidia-npp',
  ),
  nppicc: toolkit(
    'NPP colour',
    'nppicc',
    ['13', '12', '11'],
    ['nppicc64_13.dll', 'nppicc64_12.dll', 'nppicc64_11.dll'],
    'nvidia-npp',
  ),
  nppif: toolkit(
    'NPP filters',
    'nppif',
    ['13', '12', '11'],
    ['nppif64_13.dll', 'nppif64_12.dll', 'nppif64_11.dll'],
    'nvidia-npp',
  ),
  nppial: toolkit(
    'NPP arithmetic',
    'nppial',
    ['13', '12', '11'],
    ['nppial64_13.dll', 'nppial64_12.dll', 'nppial64_11.dll'],
    'nvidia-npp',
  ),
  nppitc: toolkit(
    'NPP thresholds',
    'nppitc',
    ['13', '12', '11'],
    ['nppitc64_13.dll', 'nppitc64_12.dll', 'nppitc64_11.dll'],
    'nvidia-npp',
  ),
  nppist: toolkit(
    'NPP statistics',
    'nppist',
    ['13', '12', '11'],
    ['nppist64_13.dll', 'nppist64_12.dll', 'nppist64_11.dll'],
    'nvidia-npp',
  ),
  nvjpeg: toolkit(
    'nvJPEG',
    'nvjpeg',
    ['13', '12', '11'],
    ['nvjpeg64_13.dll', 'nvjpeg64_12.dll', 'nvjpeg64_11.dll'],
    'nvidia-nvjpeg',
  ),
  cublas: toolkit(
    'cuBLAS',
    'cublas',
    ['13', '12', '11'],
    ['cublas64_13.dll', 'cublas64_12.dll', 'cublas64_11.dll'],
    'nvidia-cublas',
  ),
  cublasLt: toolkit(
    'cuBLASLt',
    'cublasLt',
    ['13', '12', '11'],
    ['cublasLt64_13.dll', 'cublasLt64_12.dll', 'cublasLt64_11.dll'],
    'nvidia-cublas',
  ),
  cudnn: {
    name: 'cuDNN',
    base: 'cudnn',
    versions: ['9', '8'],
    windows: ['cudnn64_9.dll', 'cudnn64_8.dll'],
    from: 'package',
    environment: [variable('cudnn')],
    wheels: ['nvidia-cudnn-cu13', 'nvidia-cudnn-cu12'],
  },
  nccl: {
    name: 'NCCL',
    base: 'nccl',
    versions: ['2'],
    windows: [],
    from: 'package',
    environment: [variable('nccl')],
    wheels: ['nvidia-nccl-cu13', 'nvidia-nccl-cu12'],
  },
  nvinfer: {
    name: 'TensorRT',
    base: 'nvinfer',
    versions: ['11', '10', '8'],
    windows: ['nvinfer_11.dll', 'nvinfer_10.dll', 'nvinfer.dll'],
    from: 'package',
    environment: ['ASYNC_CUDA_TENSORRT', variable('nvinfer')],
    wheels: ['tensorrt-cu13', 'tensorrt-cu12'],
    wheelFolders: ['tensorrt_libs'],
  },
  nvonnxparser: {
    name: 'TensorRT ONNX parser',
    base: 'nvonnxparser',
    versions: ['11', '10', '8'],
    windows: ['nvonnxparser_11.dll', 'nvonnxparser_10.dll', 'nvonnxparser.dll'],
    from: 'package',
    environment: [variable('nvonnxparser')],
    beside: ['ASYNC_CUDA_TENSORRT', variable('nvinfer')],
    wheels: ['tensorrt-cu13', 'tensorrt-cu12'],
    wheelFolders: ['tensorrt_libs'],
  },
  nvinferLean: {
    name: 'TensorRT lean runtime',
    base: 'nvinfer_lean',
    versions: ['11', '10', '8'],
    windows: ['nvinfer_lean_11.dll', 'nvinfer_lean_10.dll', 'nvinfer_lean.dll'],
    from: 'package',
    environment: ['ASYNC_CUDA_TENSORRT_LEAN'],
    wheels: ['tensorrt-lean-cu13', 'tensorrt-lean-cu12'],
    wheelFolders: ['tensorrt_lean_libs'],
  },
  tensorrtRtx: {
    name: 'TensorRT for RTX',
    base: 'tensorrt_rtx',
    versions: ['1'],
    windows: ['tensorrt_rtx_1.dll', 'tensorrt_rtx.dll'],
    from: 'package',
    environment: ['ASYNC_CUDA_TENSORRT_RTX'],
    wheels: ['tensorrt-rtx-cu13', 'tensorrt-rtx-cu12'],
    wheelFolders: ['tensorrt_rtx_libs'],
  },
  tensorrtRtxParser: {
    name: 'TensorRT for RTX ONNX parser',
    base: 'tensorrt_onnxparser_rtx',
    versions: ['1'],
    windows: ['tensorrt_onnxparser_rtx_1.dll', 'tensorrt_onnxparser_rtx.dll'],
    from: 'package',
    environment: ['ASYNC_CUDA_TENSORRT_RTX_PARSER'],
    beside: ['ASYNC_CUDA_TENSORRT_RTX'],
    wheels: ['tensorrt-rtx-cu13', 'tensorrt-rtx-cu12'],
    wheelFolders: ['tensorrt_rtx_libs'],
  },
  curand: toolkit('cuRAND', 'curand', ['10'], ['curand64_10.dll'], 'nvidia-curand'),
  cufft: toolkit(
    'cuFFT',
    'cufft',
    ['12', '11', '10'],
    ['cufft64_12.dll', 'cufft64_11.dll', 'cufft64_10.dll'],
    'nvidia-cufft',
  ),
  onnxruntime: {
    name: 'ONNX Runtime',
    base: 'onnxruntime',
    versions: ['1'],
    windows: ['onnxruntime.dll'],
    from: 'package',
    environment: [variable('onnxruntime')],
    wheels: ['onnxruntime', 'onnxruntime-gpu'],
    wheelFolders: ['onnxruntime/capi'],
    wholeVersion: true,
    npm: { name: 'onnxruntime-node', folder: 'bin/napi-v6/{platform}/{arch}' },
  },
} as const satisfies Record<string, LibraryRow>;

/** The file names of a library on a platform, the most specific first. */
export function fileNames(row: LibraryRow, platform: NodeJS.Platform): readonly string[] {
  if (platform === 'win32') return row.windows;
  return [...row.versions.map((version) => `lib${row.base}.so.${version}`), `lib${row.base}.so`];
}

/** Returns sentences about how to get a library that was not found. */
export function howToGet(row: LibraryRow): string {
  const [variableName] = row.environment;
  const elsewhere = `Where it lies elsewhere, set ${variableName} to its path.`;
  if (row.from === 'driver') {
    return (
      'Install the NVIDIA driver; in a container, start it with the NVIDIA container toolkit ' +
      `(docker run --gpus all). ${elsewhere} Without a GPU, use the CPU device.`
    );
  }
  if (row.npm !== undefined)
    return (
      `Install it with \`npm install ${row.npm.name}\`, or with \`pip install ` +
      `${(row.wheels ?? []).join('` or `pip install ')}\` in the active Python environment. ` +
      `${elsewhere}`
    );
  const [newest, ...older] = row.wheels ?? [];
  const wheel =
    newest === undefined
      ? ''
      : `with \`pip install ` +
        `${newest}\`${older.length === 0 ? '' : ` (for older CUDA: ${older.join(', ')})`} in ` +
        'the active Python environment';
  const package_ =
    row.from === 'toolkit' ? 'with the CUDA toolkit' : 'with its package from NVIDIA';
  return `Install it ${wheel === '' ? package_ : `${wheel}, or ${package_}`}. ${elsewhere}`;
}
