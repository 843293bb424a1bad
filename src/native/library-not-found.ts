/** The error where a library is not on the machine. */

/**
 * No library was found under any of the names and folders tried. Its message lists them, and says
 * how to get the library.
 *
 * @example
 * ```ts no-run
 * try {
 *   openLibcuda();
 * } catch (error) {
 *   if (!(error instanceof LibraryNotFoundError)) throw error;
 *   console.log(error.tried.length > 0); // true
 * }
 * ```
 */
export class LibraryNotFoundError extends Error {
  override readonly name = 'LibraryNotFoundError';
  /** Every path that was tried, in order, with the loader's reason. */
  declare readonly tried: readonly { path: string; reason: string }[];
  constructor(library: string, tried: readonly { path: string; reason: string }[], advice: string) {
    super(
      `${library} was not found. ` +
        `${advice}\nTried:\n${tried.map((t) => `  ${t.path}: ${t.reason}`).join('\n')}`,
    );
    // The paths are part of the message. Forty more objects after it would hide the advice when the
    // error is printed, so the property is not enumerable.
    Object.defineProperty(this, 'tried', { value: tried });
  }

  /**
   * Makes a copy of an error that was thrown on another thread, as the cause of an error that has
   * its whole message.
   */
  static from(
    message: string,
    tried: readonly { path: string; reason: string }[],
  ): LibraryNotFoundError {
    const error = new LibraryNotFoundError('', tried, '');
    error.message = message.split('\nTried:')[0]!;
    return error;
  }
}
