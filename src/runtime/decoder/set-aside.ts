/**
 * The effects of parked streams' commands on other commands: events whose record is set aside,
 * events that are still waited for, and captures whose end is set aside.
 */
import type { Driver } from '../../driver/driver.js';
import type { Announcements } from '../announcements.js';
import { HANDLE, SLOT_HOLD, SLOT_WORDS } from '../layout.js';
import type { SharedState } from '../layout.js';
import { peek } from '../shared-words.js';

export class SetAside {
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly announcements: Announcements;
  /**
   * Events whose record is set aside: the number of the last record that was set aside, and of the
   * last that was resumed. Numbers increase by one within an entry and are never those of an
   * earlier entry, because a wait may outlive an entry.
   */
  private readonly records = new Map<number, { aside: number; resumed: number }>();
  private recordsAside = 0;
  /**
   * The number of waits for each event that are set aside. An event that is destroyed meanwhile is
   * destroyed after the last of them.
   */
  private readonly waits = new Map<number, number>();
  private readonly doomed = new Set<number>();
  /** Captures, and bodies of conditional nodes, whose end is set aside. */
  private readonly ends = new Set<number>();

  constructor(driver: Driver, shared: SharedState, announcements: Announcements) {
    this.driver = driver;
    this.shared = shared;
    this.announcements = announcements;
  }

  /** The number of the event's last record that was set aside; undefined where there is none. */
  lastRecord(event: number): number | undefined {
    return this.records.size === 0 ? undefined : this.records.get(event)?.aside;
  }

  /** Whether record number `value` of the event, which was set aside, has been issued. */
  isRecordIssued(event: number, value: number): boolean {
    const record = this.records.get(event);
    return record === undefined || ((record.resumed - value) | 0) >= 0;
  }

  recordAside(event: number): void {
    const record = this.records.get(event);
    this.recordsAside = (this.recordsAside + 1) | 0;
    if (record === undefined)
      this.records.set(event, { aside: this.recordsAside, resumed: (this.recordsAside - 1) | 0 });
    else record.aside = (record.aside + 1) | 0;
  }

  recordResumed(event: number): void {
    const record = this.records.get(event);
    if (record === undefined) return;
    record.resumed = (record.resumed + 1) | 0;
    if (record.resumed !== record.aside) return;
    this.records.delete(event);
    this.announcements.recorded(event);
  }

  /** Sets a wait aside. Returns the number of the record that it waits for. */
  waitAside(event: number): number {
    this.waits.set(event, (this.waits.get(event) ?? 0) + 1);
    return this.records.get(event)?.aside ?? this.recordsAside;
  }

  waitResumed(event: number): void {
    const waits = this.waits.get(event)! - 1;
    if (waits > 0) {
      this.waits.set(event, waits);
      return;
    }
    this.waits.delete(event);
    if (this.doomed.delete(event)) this.destroy(event);
  }

  endAside(capture: number): void {
    this.ends.add(capture);
  }

  endResumed(capture: number): void {
    this.ends.delete(capture);
  }

  /** Whether the end of a capture, or of a body, is set aside. */
  isEndAside(capture: number): boolean {
    return this.ends.has(capture);
  }

  /** Whether the hold has not been released up to `value`. */
  isHeld(slot: number, value: number): boolean {
    return ((value - peek(this.shared.slots, slot * SLOT_WORDS + SLOT_HOLD)) | 0) > 0;
  }

  /** Destroys an event, after the waits for it that are set aside. */
  destroyEvent(handle: number): void {
    if (this.waits.has(handle)) this.doomed.add(handle);
    else this.destroy(handle);
  }

  private destroy(handle: number): void {
    const { values, failure, status } = this.shared;
    const event = values[handle]!;
    this.announcements.forget(handle);
    values[handle] = 0;
    failure[handle] = 0;
    Atomics.store(status, handle, HANDLE.released);
    if (event !== 0) this.driver.cuEventDestroy(event);
  }
}
