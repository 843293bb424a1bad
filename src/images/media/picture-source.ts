/** Sources of pictures: files, or the bytes of files. */
import { open } from 'node:fs/promises';

import { CudaError, CudaFormatError } from '../../core/index.js';
import { checkText, invalid, pathOfUrl } from '../../ground/arguments.js';
import { isArrayBuffer, isBytes, isUrl, ownBytes } from '../../ground/other-realms.js';
import { firstLine } from './sharp.js';

/**
 * A path, a `file:` URL, or the bytes of a file, also in shared memory. Bytes must not be changed
 * until the picture is decoded.
 */
export type PictureSource = string | URL | Uint8Array | ArrayBuffer;

/** A source that was checked. */
export interface CheckedSource {
  readonly input: string | Uint8Array;
  /** Its name in errors. */
  readonly name: string;
}

/** @throws CudaArgumentError for what is no source, another kind of URL, and zero bytes */
export function sourceOf(argument: string, source: unknown): CheckedSource {
  if (isUrl(source)) {
    if (source.protocol !== 'file:')
      throw invalid(
        argument,
        'a path, a file: URL or the bytes of a file',
        source.href,
        'Fetch it first, and pass await response.arrayBuffer().',
      );
    const path = pathOfUrl(argument, source);
    return { input: path, name: path };
  }
  if (typeof source === 'string' && source !== '') {
    checkText(argument, source);
    return { input: source, name: source };
  }
  const bytes = isArrayBuffer(source) ? new Uint8Array(source) : source;
  if (!isBytes(bytes))
    throw invalid(argument, 'a path, a file: URL or the bytes of a file', source);
  if (bytes.length === 0) throw invalid(argument, 'the bytes of a file, at least one', source);
  return { input: ownBytes(bytes), name: `${argument} (${bytes.length} bytes)` };
}

/**
 * Gives the error for a source that gave no picture: its file cannot be read (ERR_CUDA_NOT_FOUND),
 * or is no picture (ERR_CUDA_FORMAT).
 */
export async function refusalOf(
  { input, name }: CheckedSource,
  cause: unknown,
): Promise<CudaError> {
  const unread = typeof input === 'string' ? await unreadable(input) : undefined;
  if (unread === undefined)
    return new CudaFormatError('image', `${name}: ${firstLine(cause)}`, undefined, { cause });
  const { code = '' } = unread;
  const what =
    code === 'ENOENT' || code === 'ENOTDIR'
      ? 'there is no such file'
      : code === 'EISDIR'
        ? 'it is a folder'
        : 'it cannot be read';
  return new CudaError(
    'ERR_CUDA_NOT_FOUND',
    `image: ${name}: ${what} (${firstLine(unread)}). Pass the path of a picture, or its bytes.`,
    { cause: unread },
  );
}

/** The file system's error for a file; undefined where it can be read. */
async function unreadable(path: string): Promise<NodeJS.ErrnoException | undefined> {
  try {
    const file = await open(path);
    try {
      await file.read(new Uint8Array(1), 0, 1, 0);
    } finally {
      await file.close();
    }
    return undefined;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}
