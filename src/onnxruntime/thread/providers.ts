/**
 * Execution providers, which compute the nodes of a session. The CPU's provider always exists, and
 * takes the nodes that no other one takes.
 */
import { findLibrary } from '../../native/find.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import type { LibraryRow } from '../../native/libraries.js';
import { loadForGood } from '../../native/open-library.js';
import type { CudaSettings, ProviderName } from './messages.js';
import type { OrtLibrary } from './ort-library.js';
import { Refused } from './refused.js';

/** Libraries that the CUDA provider is linked to. */
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
 * Adds a provider to the options of a session. `stream`: the driver's stream for runs that are to
 * be recorded; otherwise 0.
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
  // A setting that equals the default is left out, since older versions do not have it.
  const settings: Readonly<Record<string, string>> = {
    device_id: String(ordinal),
    cudnn_conv_algo_search: search,
    ...(layout === 'nhwc' ? { prefer_nhwc: '1' } : {}),
    ...(fuse ? { fuse_conv_bias: '1' } : {}),
    // With this setting the library refuses models of which another provider computes something, or
    // that decide what to compute.
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
    ort.call('ReleaseCUDAProviderOptions', cuda);
  }
}

/** The loader's message about a library that it does not find. */
const MISSING = /lib([A-Za-z]+)\.so\.([\d.]+): cannot open shared object file/;

/**
 * The provider is linked to libraries that may be in wheels, which the loader does not search: a
 * missing library is loaded from where `findLibrary` finds it, and the provider is tried again.
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
