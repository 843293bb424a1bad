/**
 * A map with room for a number of entries and bytes. The least recently used entries are dropped
 * first.
 */

export interface Room {
  readonly entries: number;
  readonly bytes: number;
}

interface Entry<V> {
  readonly value: V;
  /**
   * Undefined while the value is being made. Such an entry is not dropped, because the next caller
   * would make it a second time.
   */
  bytes: number | undefined;
}

export class LeastRecent<V> {
  private readonly room: Room;
  /** Entries in the order of their last use. */
  private readonly entries = new Map<string, Entry<V>>();
  private total = 0;

  constructor(room: Room) {
    this.room = room;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Bytes of all entries that are made. */
  get bytes(): number {
    return this.total;
  }

  /** Gives an entry's value, which is then the most recently used. */
  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  /**
   * Adds an entry. `bytes`: undefined for a value that is still being made, until {@link settle}
   * sets it.
   */
  set(key: string, value: V, bytes?: number): void {
    this.delete(key);
    this.entries.set(key, { value, bytes: undefined });
    if (bytes !== undefined) this.settle(key, value, bytes);
  }

  /**
   * Sets the bytes of a value that was being made. Nothing happens where another value has taken
   * its place.
   */
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

  /** Drops entries beyond the limits. The newest entry stays, however large it is. */
  private makeRoom(newest: Entry<V>): void {
    for (const [key, entry] of this.entries) {
      if (this.entries.size <= this.room.entries && this.total <= this.room.bytes) return;
      if (entry !== newest && entry.bytes !== undefined) this.delete(key);
    }
  }
}
