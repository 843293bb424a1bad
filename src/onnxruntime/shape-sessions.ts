/**
 * Sessions of one model on the CUDA provider. ONNX Runtime, from 1.20 on, has cuDNN plan a
 * session's convolutions for the shapes of the run before, and again where these change: of a
 * detector that runs in 1 ms that took 30 ms, and 170 where all algorithms are measured. So shapes
 * that come in turns get sessions of their own.
 */

interface Entry {
  readonly session: number;
  /** Those of its last run; undefined before the first. */
  shapes: string | undefined;
}

/** Shapes that are remembered as having been there. */
const MOST_KNOWN = 256;

/** How there come to be more. */
export interface More {
  /** At once, the first among them. */
  readonly most: number;
  /**
   * Another session of the model; undefined where there is no room for one. What it rejects with is
   * nobody's: runs go on with those that are there.
   */
  readonly load: () => Promise<number | undefined>;
  /** No more are loaded. */
  readonly end: () => void;
}

export class ShapeSessions {
  readonly most: number;
  /** The one that was used last at the end. */
  private readonly entries: Entry[];
  private readonly more: More | undefined;
  private readonly known = new Set<string>();
  private loading: Promise<void> | undefined = undefined;
  /** There can be no more. */
  private full: boolean;

  constructor(first: number, more?: More) {
    this.entries = [{ session: first, shapes: undefined }];
    this.more = more;
    this.most = more?.most ?? 1;
    this.full = this.most <= 1;
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

  /**
   * Sessions of their own for these shapes, as far as there is room: none has to be loaded when
   * they come. Before the first run.
   */
  async prepare(shapes: readonly string[]): Promise<void> {
    for (const each of new Set(shapes)) {
      let entry = this.entries.find((known) => known.shapes === undefined);
      if (entry === undefined && !this.full) {
        this.grow();
        await this.loading;
        entry = this.entries.find((known) => known.shapes === undefined);
      }
      if (entry === undefined) return;
      entry.shapes = each;
      this.remember(each);
    }
  }

  /** All sessions, to be released; call it once no run is under way and none will be. */
  async end(): Promise<readonly number[]> {
    this.full = true;
    await this.loading;
    this.more?.end();
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
    this.loading = this.more!.load().then(add, () => {
      add(undefined);
    });
  }
}
