/**
 * Execution providers: who computes what a session consists of. The CPU's is always there, and
 * takes what no other does.
 */
import { findLibrary } from '../../native/find.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import type { LibraryRow } from '../../native/libraries.js';
import { loadForGood } from '../../native/open-library.js';
import type { CudaSettings, ProviderName } from './messages.js';
import type { OrtLibrary } from './ort-library.js';
import { Refused } from './refused.js';

/** Libraries that the CUDA provider asks the loader for. */
const CUDA_LIBRARIES: readonly LibraryRow[] = [
  KNOWN_LIBRARIES.cudart,
  KNOWN_LIBRARIES.cublasLt,
  KNOWN_LIBRARIES.cublas,
  KNOWN_LIBRARIES.curand,
  KNOWN_LIBRARIES.cufft,
  KNOWN_LIBRARIES.cudnn,
  KNOWN_LIBRARIES.nvrtc,
  KNOWN_LIBRARIES.nvJitLink,
];

/** From this version on all its builds compute convolutions with channels last. */
const NHWC_SINCE = 20;

/**
 * `stream`: of the driver, what its runs go to where they are to be recorded; else 0.
 *
 * @throws Refused where the library does not have the provider, or cannot load it
 */
export function appendProvider(
  ort: OrtLibrary,
  options: number,
  provider: ProviderName,
  ordinal: number,
  cudaSettings: CudaSettings,
  stream: number,
): void {
  if (provider === 'cpu') return;
  if (!ort.providers.includes('CUDAExecutionProvider')) {
    throw new Refused({
      reason: 'unsupported',
      message:
        `${ort.name} was built without the CUDA provider; it has ${ort.providers.join(', ')}. ` +
        'Install onnxruntime-gpu (pip), or onnxruntime-node with its GPU libraries, or name ' +
        'its folder in ASYNC_CUDA_ONNXRUNTIME',
    });
  }
  const isRecent = ort.api >= NHWC_SINCE;
  const {
    search,
    layout = isRecent ? 'nhwc' : 'nchw',
    fuse = isRecent && layout === 'nhwc',
  } = cudaSettings;
  // A version that does not know of something is not asked for what it does anyway.
  const settings: Readonly<Record<string, string>> = {
    device_id: String(ordinal),
    cudnn_conv_algo_search: search,
    ...(layout === 'nhwc' ? { prefer_nhwc: '1' } : {}),
    ...(fuse ? { fuse_conv_bias: '1' } : {}),
    // Models of which another provider computes something, or that decide what to compute, are
    // refused.
    ...(stream === 0 ? {} : { enable_cuda_graph: '1' }),
  };
  const cuda = ort.give('CreateCUDAProviderOptions');
  try {
    ort.do(
      'UpdateCUDAProviderOptions',
      cuda,
      Object.keys(settings),
      Object.values(settings),
      Object.keys(settings).length,
    );
    if (stream !== 0)
      ort.do('UpdateCUDAProviderOptionsWithValue', cuda, 'user_compute_stream', stream);
    withLibraries(ort, () => {
      ort.do('SessionOptionsAppendExecutionProviderCuda', options, cuda);
    });
  } finally {
    ort.ask('ReleaseCUDAProviderOptions', cuda);
  }
}

/** What the loader says of a library that it does not find. */
const MISSING = /lib([A-Za-z]+)\.so\.([\d.]+): cannot open shared object file/;

/**
 * The provider is linked to libraries that may lie in wheels, where the loader does not look: the
 * one that it misses is loaded from where we find it, and the provider is tried again.
 */
function withLibraries(ort: OrtLibrary, append: () => void): void {
  const loaded = new Set<string>();
  for (;;) {
    try {
      append();
      return;
    } catch (error) {
      const [file, base, version] =
        (error instanceof Refused ? MISSING.exec(error.message) : null) ?? [];
      if (file === undefined || loaded.has(file)) throw error;
      loaded.add(file);
      const row = CUDA_LIBRARIES.find((each) => each.base === base);
      const found = row === undefined ? undefined : findLibrary({ ...row, versions: [version!] });
      if (found === undefined || !('path' in found)) throw error;
      loadForGood(ort.koffi, found.path, { global: true });
    }
  }
}
