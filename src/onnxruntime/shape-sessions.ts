/**
 * Sessions of one model on the CUDA provider. ONNX Runtime, from 1.20 on, has cuDNN plan a session's convolutions for the shapes of the
 * run before, and again where these change: of a detector that runs in 1 ms that took 30 ms, and 170 where all algorithms are
 * measured. So shapes that come in turns get sessions of their own.
 */

interface Entry {
  readonly session: number;
  /** Those of its last run; undefined before the first. */
  shapes: string | undefined;
}

/** Shapes that are remembered as having been there. */
const MOST_KNOWN = 256;

export class ShapeSessions {
  /** The one that was used last at the end. */
  private readonly entries: Entry[];
  private readonly most: number;
  private readonly loadAnother: () => Promise<number | undefined>;
  private readonly known = new Set<string>();
  private loading: Promise<void> | undefined;
  /** There can be no more. */
  private full: boolean;

  /** @param load another session of the model; undefined where there is no room for one. What it rejects with is nobody's: runs go on with those that are there */
  constructor(first: number, most: number, load: () => Promise<number | undefined>) {
    this.entries = [{ session: first, shapes: undefined }];
    this.most = most;
    this.loadAnother = load;
    this.full = most <= 1;
  }

  get count(): number {
    return this.entries.length;
  }

  /** The session for a run on inputs of these shapes, as a text that tells them from others. */
  take(shapes: string): number {
    if (this.most <= 1) return this.entries[0]!.session;
    let at = this.entries.findIndex((entry) => entry.shapes === shapes);
    if (at === -1) {
      at = this.entries.findIndex((entry) => entry.shapes === undefined);
      // Shapes that were never there before may never be again.
      if (at === -1 && this.known.has(shapes)) this.grow();
      this.remember(shapes);
    }
    const [entry] = this.entries.splice(Math.max(0, at), 1);
    entry!.shapes = shapes;
    this.entries.push(entry!);
    return entry!.session;
  }

  /** All sessions, to be released; call it once no run is under way and none will be. */
  async end(): Promise<readonly number[]> {
    this.full = true;
    await this.loading;
    return this.entries.map(({ session }) => session);
  }

  private remember(shapes: string): void {
    if (this.known.size >= MOST_KNOWN) this.known.delete(this.known.values().next().value!);
    this.known.add(shapes);
  }

  private grow(): void {
    if (this.full || this.loading !== undefined) return;
    const add = (session: number | undefined): void => {
      this.loading = undefined;
      if (session === undefined) this.full = true;
      else this.entries.push({ session, shapes: undefined });
      if (this.entries.length >= this.most) this.full = true;
    };
    this.loading = this.loadAnother().then(add, () => { add(undefined); });
  }
}
