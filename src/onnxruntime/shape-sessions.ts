/**
 * Sessions of one model on the CUDA provider. ONNX Runtime, from 1.20 on, has cuDNN plan a
 * session's convolutions for the shapes of the run before, and again where these change: for a
 * detector that runs in 1 ms that took 30 ms, and 170 where all algorithms are measured. So shapes
 * that come in turns get sessions of their own.
 */

interface Entry {
  readonly session: number;
  /** The shapes of its last run; undefined before the first. */
  shapes: string | undefined;
}

/** The most shapes that are remembered. */
const MOST_KNOWN = 256;

/** How further sessions are loaded. */
export interface More {
  /** The most sessions, including the first. */
  readonly most: number;
  /**
   * Loads another session of the model; undefined where there is no room for one. A rejection is
   * ignored: runs continue with the existing sessions.
   */
  readonly load: () => Promise<number | undefined>;
  /** Called when no more sessions will be loaded. */
  readonly end: () => void;
}

export class ShapeSessions {
  readonly most: number;
  /** The sessions; the one that was used last is at the end. */
  private readonly entries: Entry[];
  private readonly more: More | undefined;
  private readonly known = new Set<string>();
  private loading: Promise<void> | undefined = undefined;
  /** Whether there can be no more sessions. */
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

  /**
   * Returns the session for a run on inputs of these shapes, given as a text that is different for
   * different shapes.
   */
  take(shapes: string): number {
    if (this.most <= 1) return this.entries[0]!.session;
    let at = this.entries.findIndex((entry) => entry.shapes === shapes);
    if (at === -1) {
      at = this.entries.findIndex((entry) => entry.shapes === undefined);
      // Shapes that come for the first time may never be repeated.
      if (at === -1 && this.known.has(shapes)) this.grow();
      this.remember(shapes);
    }
    const [entry] = this.entries.splice(Math.max(0, at), 1);
    entry!.shapes = shapes;
    this.entries.push(entry!);
    return entry!.session;
  }

  /**
   * Loads sessions for these shapes, as far as there is room, so that none has to be loaded when
   * they come. Call it before the first run.
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

  /** Returns all sessions, to be released; call it once no run is under way and none will be. */
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
