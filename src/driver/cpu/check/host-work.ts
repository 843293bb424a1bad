// What the host's operations in streams do with memory, and what it races with.

import type { CheckReport } from '../../../ground/check-report.js';
import { hex } from '../failure.js';
import type { Stream } from '../streams/stream.js';
import type { Work } from '../kernels/launch-watch.js';
import type { MemoryMap } from './memory-map.js';
import type { RaceCheck } from './race-check.js';
import type { ReportWriter } from './reports.js';
import type { StreamOrder } from '../streams/stream-order.js';

export type HostAction = 'read' | 'write' | 'signal';

export class HostWork {
  private readonly scheduler: { readonly current: Stream | undefined };
  private readonly races: RaceCheck;
  private readonly order: StreamOrder;
  private readonly map: MemoryMap;
  private readonly reports: ReportWriter;
  /** The running operation. */
  private work: Work | undefined = undefined;

  constructor(
    scheduler: { readonly current: Stream | undefined },
    races: RaceCheck,
    order: StreamOrder,
    map: MemoryMap,
    reports: ReportWriter,
  ) {
    this.scheduler = scheduler;
    this.races = races;
    this.order = order;
    this.map = map;
    this.reports = reports;
  }

  /** A race of the running operation, or undefined. */
  access(address: number, bytes: number, action: HostAction): CheckReport | undefined {
    const stream = this.scheduler.current;
    if (stream === undefined) return undefined;
    const work = this.workOf(stream);
    const found = this.races.hostAccess(work, address, bytes, action);
    if (found === undefined) return undefined;
    const memory = this.map.find(undefined, found.address);
    return this.reports.report(
      'race',
      `race of two streams at ${hex(found.address)}: nothing orders the two accesses`,
      {
        place: { action: `${action === 'read' ? 'read' : 'write'} (${work.name})` },
        other: this.reports.placeOf(found.earlier),
        address: found.address,
        memory,
      },
    );
  }

  private workOf(stream: Stream): Work {
    const sequence = stream.completed + 1;
    const known = this.work;
    if (known?.stream === stream && known.sequence === sequence) return known;
    this.order.begins(stream);
    const work = {
      stream,
      sequence,
      name: stream.head!.describe(),
      launch: undefined,
      first: this.races.number(1),
      blocks: 1,
    };
    this.work = work;
    this.races.begin(work);
    return work;
  }
}
