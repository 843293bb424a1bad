/** Work that cannot be taken back once it is under way: whoever waits for it stops waiting. */

/**
 * The promise's value; rejects with the signal's reason as soon as it is aborted, and before
 * `start` is called where it was.
 */
export async function unlessAborted<T>(
  signal: AbortSignal | undefined,
  start: () => Promise<T>,
): Promise<T> {
  if (signal === undefined) return start();
  signal.throwIfAborted();
  const work = start();
  // Nobody hears of it once the signal was first.
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
