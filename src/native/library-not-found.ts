/** What is thrown where a library is not on the machine. */

/** No library was found under any of the names and folders tried. */
export class LibraryNotFoundError extends Error {
  override readonly name = 'LibraryNotFoundError';
  /** Every path that was tried, in order, with the loader's answer. */
  readonly tried: readonly { path: string; reason: string }[];
  constructor(library: string, tried: readonly { path: string; reason: string }[], advice: string) {
    super(`${library} was not found. ${advice}\nTried:\n${tried.map((t) => `  ${t.path}: ${t.reason}`).join('\n')}`);
    this.tried = tried;
  }

  /** One that was thrown on another thread. */
  static from(message: string, tried: readonly { path: string; reason: string }[]): LibraryNotFoundError {
    const error = new LibraryNotFoundError('', tried, '');
    error.message = message;
    return error;
  }
}
