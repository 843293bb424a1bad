/**
 * Times stages on several streams with device events. All times count from one origin event, so
 * that stages of different streams share a time axis and their overlap shows.
 */
import type { CoreDevice, Event, Stream } from 'async-cuda/core';

export type StreamName = 'A' | 'B';

/** One stage on the device's time axis; milliseconds since the first command. */
export interface StageTime {
  readonly name: string;
  readonly stream: StreamName;
  readonly start: number;
  readonly end: number;
}

interface Mark {
  readonly name: string;
  readonly stream: StreamName;
  readonly start: Event;
  readonly end: Event;
}

export class StageClock {
  readonly #device: CoreDevice;
  readonly #streams: Readonly<Record<StreamName, Stream>>;
  readonly #origin: Event;
  readonly #marks: Mark[] = [];

  /** Time zero is when stream A comes to this point. */
  constructor(device: CoreDevice, streams: Readonly<Record<StreamName, Stream>>) {
    this.#device = device;
    this.#streams = streams;
    this.#origin = device.createEvent({ timing: true });
    streams.A.record(this.#origin);
  }

  /**
   * Calls `enqueue` between two events on the stream. Returns the second one, for other streams to
   * wait for.
   */
  time(stream: StreamName, name: string, enqueue: (stream: Stream) => void): Event {
    const mark = {
      name,
      stream,
      start: this.#device.createEvent({ timing: true }),
      end: this.#device.createEvent({ timing: true }),
    };
    this.#streams[stream].record(mark.start);
    enqueue(this.#streams[stream]);
    this.#streams[stream].record(mark.end);
    this.#marks.push(mark);
    return mark.end;
  }

  /** Waits for all stages; their times in the order in which they were enqueued. */
  async times(): Promise<StageTime[]> {
    return Promise.all(
      this.#marks.map(async ({ name, stream, start, end }) => ({
        name,
        stream,
        start: await this.#origin.elapsed(start),
        end: await this.#origin.elapsed(end),
      })),
    );
  }

  [Symbol.dispose](): void {
    this.#origin.close();
    for (const { start, end } of this.#marks) {
      start.close();
      end.close();
    }
  }
}
