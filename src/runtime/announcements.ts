/**
 * Events of this device that streams of other devices wait for. They are told, in the event's
 * status word, that the record has been issued, from when on the driver can wait for it; and where
 * their driver cannot, that the device has reached it.
 *
 * An event that is announced is not recorded again until everyone who asked for it has waited.
 */
import type { Driver } from '../driver/driver.js';
import { CUresult } from '../ground/result.js';
import { HANDLE, WORD } from './layout.js';
import type { SharedTables } from './layout.js';

export class Announcements {
  private readonly driver: Driver;
  private readonly tables: SharedTables;
  /** Events whose record is set aside, and whether they must be reached. */
  private readonly unrecorded = new Map<number, boolean>();
  /** Events that the device has yet to reach. */
  private readonly ahead = new Set<number>();

  constructor(driver: Driver, tables: SharedTables) {
    this.driver = driver;
    this.tables = tables;
  }

  /** Whether the device has to be asked about an event. */
  get waiting(): boolean {
    return this.ahead.size !== 0;
  }

  announce(event: number, mustBeReached: boolean, recordIsAside: boolean): void {
    if (recordIsAside)
      this.unrecorded.set(event, mustBeReached || this.unrecorded.get(event) === true);
    else this.tell(event, mustBeReached);
  }

  /** The record of the event, which was set aside, has been issued. */
  recorded(event: number): void {
    const mustBeReached = this.unrecorded.get(event);
    if (mustBeReached === undefined) return;
    this.unrecorded.delete(event);
    this.tell(event, mustBeReached);
  }

  /** The event is to be destroyed: nobody waits for it any more. */
  forget(event: number): void {
    this.unrecorded.delete(event);
    this.ahead.delete(event);
  }

  /**
   * Asks the device about the events that are ahead. A stream that met a fault never reaches them;
   * the word `lost` tells that.
   */
  poll(): void {
    const { control, values } = this.tables;
    if (Atomics.load(control, WORD.lost) !== 0) this.ahead.clear();
    for (const event of this.ahead) {
      if (this.driver.cuEventQuery(values[event]!) !== CUresult.CUDA_SUCCESS) continue;
      this.ahead.delete(event);
      Atomics.store(this.tables.status, event, HANDLE.reached);
    }
  }

  private tell(event: number, mustBeReached: boolean): void {
    // Not where it was told already: "reached" says more.
    Atomics.compareExchange(this.tables.status, event, HANDLE.live, HANDLE.announced);
    if (mustBeReached && Atomics.load(this.tables.status, event) === HANDLE.announced)
      this.ahead.add(event);
  }
}
