/**
 * The event that any record may name in its fourth word: it is recorded on the stream after the
 * command.
 */
import type { Driver } from '../../driver/driver.js';
import { OP } from '../commands.js';
import { unmadeBy } from '../layout.js';
import type { SharedState } from '../layout.js';
import type { Failures } from './failures.js';

export class TrailingEvent {
  private readonly driver: Driver;
  private readonly shared: SharedState;
  private readonly failures: Failures;

  constructor(driver: Driver, shared: SharedState, failures: Failures) {
    this.driver = driver;
    this.shared = shared;
    this.failures = failures;
  }

  record(event: number, stream: number, root: number): void {
    if (unmadeBy(this.shared, stream) !== 0) return;
    try {
      this.driver.cuEventRecord(this.shared.values[event]!, this.shared.streams[stream]!);
    } catch (error) {
      this.failures.failWithout(error, OP.record, stream, root);
    }
  }
}
