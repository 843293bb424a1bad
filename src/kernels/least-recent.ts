/**
 * A map with room for so many entries and bytes, from which those go first that were used longest
 * ago.
 */

export interface Room {
  readonly entries: number;
  readonly bytes: number;
}

interface Entry<V> {
  readonly value: V;
  /**
   * Undefined while it is being made: it is not let go, since whoever asks next would make it again
   * beside it.
   */
  bytes: number | undefined;
}

export class LeastRecent<V> {
  private readonly room: Room;
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry<V>>();
  private total = 0;

  constructor(room: Room) {
    this.room = room;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Of all entries that are there for good. */
  get bytes(): number {
    return this.total;
  }

  /** Its value, which is thereby the last that was used. */
  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  /** `bytes`: undefined for what is still being made, until {@link settle} says it. */
  set(key: string, value: V, bytes?: number): void {
    this.delete(key);
    this.entries.set(key, { value, bytes: undefined });
    if (bytes !== undefined) this.settle(key, value, bytes);
  }

  /** How large it became. Nothing happens where another value has taken its place. */
  settle(key: string, value: V, bytes: number): void {
    const entry = this.entries.get(key);
    if (entry?.value !== value || entry.bytes !== undefined) return;
    entry.bytes = bytes;
    this.total += bytes;
    this.makeRoom(entry);
  }

  delete(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.total -= entry.bytes ?? 0;
  }

  /** The entry that has just come stays, however large it is. */
  private makeRoom(newest: Entry<V>): void {
    for (const [key, entry] of this.entries) {
      if (this.entries.size <= this.room.entries && this.total <= this.room.bytes) return;
      if (entry !== newest && entry.bytes !== undefined) this.delete(key);
    }
  }
}
