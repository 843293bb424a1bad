/**
 * Photographs from files, and the picture as a PNG file's bytes, on a thread of their own: this one
 * has its event loop to keep.
 */
import { Worker } from 'node:worker_threads';

import type { Image } from '../image.js';
import type { Labelled, PictureTitles } from './boxes-picture.js';

export type PictureRequest =
  | { readonly kind: 'read'; readonly path: string }
  | {
      readonly kind: 'draw';
      readonly photographs: readonly Labelled[];
      readonly titles: PictureTitles;
    };

/** Packed RGB, or a PNG file's bytes. */
export type PictureReply = {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
};

type FromThread = { readonly id: number } & (
  { readonly value: PictureReply } | { readonly error: string }
);

/** tsx, which the demo is run by, sees to the main thread's modules only. */
const THREAD =
  `import('tsx/esm/api').then(({ register }) => { register(); return ` +
  `import(${JSON.stringify(new URL('./pictures-thread.ts', import.meta.url).href)}); })`;

export class Pictures implements AsyncDisposable {
  private readonly worker = new Worker(THREAD, { eval: true });
  private readonly waiting = new Map<
    number,
    { resolve: (value: PictureReply) => void; reject: (error: Error) => void }
  >();
  private next = 0;

  constructor() {
    this.worker.on('message', (message: FromThread) => {
      const asked = this.waiting.get(message.id)!;
      this.waiting.delete(message.id);
      if ('value' in message) asked.resolve(message.value);
      else asked.reject(new Error(message.error));
    });
    this.worker.on('error', (error) => {
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    });
  }

  /** @throws Error with a one-line message that names the path */
  read(path: string): Promise<Image> {
    return this.ask({ kind: 'read', path });
  }

  /** The photographs in a grid, with what was found on them. */
  draw(photographs: readonly Labelled[], titles: PictureTitles): Promise<PictureReply> {
    return this.ask({ kind: 'draw', photographs, titles });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker.terminate();
  }

  private ask(request: PictureRequest): Promise<PictureReply> {
    return new Promise((resolve, reject) => {
      const id = this.next++;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ ...request, id });
    });
  }
}
