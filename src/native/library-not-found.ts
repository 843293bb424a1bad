/** What is thrown where a library is not on the machine. */

/** No library was found under any of the names and folders tried. */
export class LibraryNotFoundError extends Error {
  override readonly name = 'LibraryNotFoundError';
  /** Every path that was tried, in order, with the loader's answer. */
  declare readonly tried: readonly { path: string; reason: string }[];
  constructor(library: string, tried: readonly { path: string; reason: string }[], advice: string) {
    super(
      `${library} was not found. ` +
        `${advice}\nTried:\n${tried.map((t) => `  ${t.path}: ${t.reason}`).join('\n')}`,
    );
    // Whoever prints the error has them in its message: forty more objects behind that would hide
    // what to do.
    Object.defineProperty(this, 'tried', { value: tried });
  }

  /**
   * One that was thrown on another thread, as the cause of an error that has all of its message.
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
