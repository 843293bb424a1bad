/** Waiting for work that cannot be cancelled: an abort ends the wait, not the work. */

/**
 * The promise's value. Rejects with the signal's reason as soon as the signal aborts. Where it is
 * aborted already, `start` is not called.
 */
export async function unlessAborted<T>(
  signal: AbortSignal | undefined,
  start: () => Promise<T>,
): Promise<T> {
  if (signal === undefined) return start();
  signal.throwIfAborted();
  const work = start();
  // After an abort the result is dropped, so a later rejection is handled here.
  work.catch(() => undefined);
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}
