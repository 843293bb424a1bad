/** TensorRT's failures as errors. */
import { CLASS_NAME } from '../ground/named-error.js';
import {
  CudaArgumentError,
  CudaDisposedError,
  CudaError,
  CudaLibraryError,
  CudaOutOfMemoryError,
} from '../core/index.js';
import type { ParserProblem, RefusalDetails, RefusalKind } from './thread/refused.js';

export type { ParserProblem } from './thread/refused.js';

/**
 * The error for a model that the ONNX parser refuses, with all messages of the parser.
 *
 * @example
 * ```ts no-run
 * const builder = await Builder.create();
 * const parser = await OnnxParser.create(await builder.createNetwork());
 * try {
 *   await parser.parseFile('model.onnx');
 * } catch (error) {
 *   if (!(error instanceof OnnxParserError)) throw error;
 *   console.log(error.problems[0]?.operator); // UnknownOperator
 * }
 * await builder.close();
 * ```
 */
export class OnnxParserError extends CudaLibraryError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'OnnxParserError';

  override readonly name = 'OnnxParserError';
  /** The problems in the parser's order. */
  readonly problems: readonly ParserProblem[];

  constructor(message: string, call: string, problems: readonly ParserProblem[]) {
    super(message, {
      library: 'TensorRT',
      call,
      status: 0,
      statusName: problems[0]?.code ?? 'false',
    });
    this.problems = problems;
  }
}

export function refusedError({
  kind,
  message,
  details,
}: {
  kind: RefusalKind;
  message: string;
  details: RefusalDetails;
}): CudaError {
  switch (kind) {
    case 'no-library':
      return new CudaError('ERR_CUDA_NO_LIBRARY', message);
    case 'unsupported':
      return new CudaError('ERR_CUDA_UNSUPPORTED', message);
    case 'argument':
      return new CudaArgumentError(details.argument ?? 'argument', message);
    case 'memory':
      return new CudaOutOfMemoryError(message);
    case 'parse':
      return new OnnxParserError(message, details.call ?? 'parse', details.problems ?? []);
    case 'library':
      return new CudaLibraryError(message, {
        library: 'TensorRT',
        call: details.call ?? '',
        status: 0,
        statusName: 'failed',
      });
    case 'closed':
      return new CudaDisposedError(message);
    case 'internal':
      return new CudaError('ERR_CUDA_INTERNAL', message);
  }
}
