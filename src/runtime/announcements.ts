/**
 * Events of this device that streams of other devices wait for. The event's status word records
 * that its record has been issued, from when on the driver can wait for it; and, where the other
 * device's driver cannot wait for it, that the device has reached it.
 *
 * An announced event is not recorded again until every stream that requested the announcement has
 * waited.
 */
import type { Driver } from '../driver/driver.js';
import { CUresult } from '../ground/result.js';
import { HANDLE, WORD } from './layout.js';
import type { SharedTables } from './layout.js';

export class Announcements {
  private readonly driver: Driver;
  private readonly tables: SharedTables;
  /** Events whose record is set aside, and whether the device must have reached them. */
  private readonly unrecorded = new Map<number, boolean>();
  /** Events that the device has yet to reach. */
  private readonly ahead = new Set<number>();

  constructor(driver: Driver, tables: SharedTables) {
    this.driver = driver;
    this.tables = tables;
  }

  /** Whether events have to be queried. */
  get waiting(): boolean {
    return this.ahead.size !== 0;
  }

  announce(event: number, mustBeReached: boolean, recordIsAside: boolean): void {
    if (recordIsAside)
      this.unrecorded.set(event, mustBeReached || this.unrecorded.get(event) === true);
    else this.publish(event, mustBeReached);
  }

  /** Is called when the record of the event, which was set aside, has been issued. */
  recorded(event: number): void {
    const mustBeReached = this.unrecorded.get(event);
    if (mustBeReached === undefined) return;
    this.unrecorded.delete(event);
    this.publish(event, mustBeReached);
  }

  /** The event is to be destroyed: no stream waits for it any more. */
  forget(event: number): void {
    this.unrecorded.delete(event);
    this.ahead.delete(event);
  }

  /**
   * Queries the events that are ahead. A stream that met a fault never reaches its events; the word
   * `lost` records that.
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

  private publish(event: number, mustBeReached: boolean): void {
    // The status does not go back from "reached" to "announced".
    Atomics.compareExchange(this.tables.status, event, HANDLE.live, HANDLE.announced);
    if (mustBeReached && Atomics.load(this.tables.status, event) === HANDLE.announced)
      this.ahead.add(event);
  }
}
