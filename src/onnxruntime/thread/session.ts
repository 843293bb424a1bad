/** A model as a session: made with its options, and its inputs and outputs. */
import { NativeMemory } from '../../native/native-memory.js';
import { appendProvider } from './providers.js';
import type { LoadRequest, Loaded, ProviderName, ValueInfo } from './messages.js';
import { LOG_FATAL } from './ort-library.js';
import type { OrtLibrary } from './ort-library.js';
import { Refused } from './refused.js';
import type { ApiFunction } from './slots.js';

/** ONNX_TYPE_TENSOR */
const TENSOR = 1;
/** ONNXType */
const KINDS: readonly string[] = [
  'unknown',
  'tensor',
  'sequence',
  'map',
  'opaque',
  'sparse tensor',
  'optional',
];

/**
 * Loads a session. `loading` receives the options, by which another thread can cancel the load.
 * `stream`: the driver's stream for runs that are to be recorded; otherwise 0, for the library's
 * own.
 */
export function loadSession(
  ort: OrtLibrary,
  request: LoadRequest,
  loading: (options: number) => void,
  stream = 0,
): Loaded {
  // The environment is made first: the library reports a provider that cannot be loaded through the
  // environment's logger.
  const { env } = ort;
  const options = ort.give('CreateSessionOptions');
  try {
    ort.do('SetSessionLogSeverityLevel', options, LOG_FATAL);
    ort.do('SetSessionGraphOptimizationLevel', options, request.optimisation);
    if (request.threads > 0) ort.do('SetIntraOpNumThreads', options, request.threads);
    if (request.restsBetween)
      ort.do('AddSessionConfigEntry', options, 'session.force_spinning_stop', '1');
    if (!request.spinning) {
      for (const pool of ['intra_op', 'inter_op'])
        ort.do('AddSessionConfigEntry', options, `session.${pool}.allow_spinning`, '0');
    }
    if (request.interOpThreads > 0) ort.do('SetInterOpNumThreads', options, request.interOpThreads);
    const { provider, passedOver } = chosenProvider(ort, options, request, stream);
    loading(options);
    const session = createSession(ort, env, options, request);
    try {
      return {
        library: ort.info,
        session,
        stream,
        provider,
        passedOver,
        inputs: values(ort, session, 'Input'),
        outputs: values(ort, session, 'Output'),
      };
    } catch (error) {
      ort.call('ReleaseSession', session);
      throw error;
    }
  } finally {
    ort.call('ReleaseSessionOptions', options);
  }
}

function chosenProvider(
  ort: OrtLibrary,
  options: number,
  { providers, lenient, ordinal, cuda }: LoadRequest,
  stream: number,
): { provider: ProviderName; passedOver: string | undefined } {
  let passedOver: string | undefined;
  for (const provider of providers) {
    try {
      appendProvider(ort, options, provider, ordinal, cuda, stream);
      return { provider, passedOver };
    } catch (error) {
      if (!lenient || !(error instanceof Refused)) throw error;
      if (error.refusal.reason === 'status') passedOver = error.refusal.message;
    }
  }
  return { provider: 'cpu', passedOver };
}

function createSession(
  ort: OrtLibrary,
  env: number,
  options: number,
  { model }: LoadRequest,
): number {
  if ('path' in model) return ort.give('CreateSession', env, model.path, options);
  const { bytes } = model;
  const address = bytes.byteLength === 0 ? 0 : Number(ort.koffi.address(new Uint8Array(bytes)));
  try {
    return ort.give('CreateSessionFromArray', env, address, bytes.byteLength, options);
  } finally {
    // The session has its own copy. This thread makes so little garbage that the bytes would stay
    // in memory for long.
    if (bytes instanceof ArrayBuffer) (bytes as { resize?(bytes: number): void }).resize?.(0);
  }
}

function values(ort: OrtLibrary, session: number, side: 'Input' | 'Output'): ValueInfo[] {
  const count = ort.give(`SessionGet${side}Count`, session);
  return Array.from({ length: count }, (_, i) => {
    const name = ort.giveOwnText(`SessionGet${side}Name`, session, i);
    const info = ort.give(`SessionGet${side}TypeInfo` satisfies ApiFunction, session, i);
    try {
      const kind = ort.giveInt('GetOnnxTypeFromTypeInfo', info);
      if (kind !== TENSOR) {
        throw new Refused({
          reason: 'unsupported',
          message:
            `${side.toLowerCase()} '${name}' of the model is a ` +
            `${KINDS[kind] ?? 'value of another kind'}: only tensors can be given and taken`,
        });
      }
      return { name, ...tensorInfo(ort, ort.give('CastTypeInfoToTensorInfo', info)) };
    } finally {
      ort.call('ReleaseTypeInfo', info);
    }
  });
}

function tensorInfo(ort: OrtLibrary, info: number): Omit<ValueInfo, 'name'> {
  const { type, shape } = typeAndShape(ort, info);
  const names = new NativeMemory(ort.koffi, Math.max(8, shape.length * 8));
  ort.do('GetSymbolicDimensions', info, names.address, shape.length);
  return {
    type,
    shape,
    dimensions: shape.map((_, i) =>
      names.u64(i * 8) === 0 ? '' : ort.pointedText(names.address + i * 8),
    ),
  };
}

/** Reads an OrtTensorTypeAndShapeInfo. */
export function typeAndShape(ort: OrtLibrary, info: number): { type: number; shape: number[] } {
  const type = ort.giveInt('GetTensorElementType', info);
  const rank = ort.give('GetDimensionsCount', info);
  const extents = new NativeMemory(ort.koffi, Math.max(8, rank * 8));
  ort.do('GetDimensions', info, extents.address, rank);
  return {
    type,
    shape: Array.from({ length: rank }, (_, i) => Number(BigInt.asIntN(64, extents.bits64(i * 8)))),
  };
}
