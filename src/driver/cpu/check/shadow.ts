/**
 * The state of each byte of device memory: whether it may be accessed, whether it has been written,
 * and what it is part of. A page of 64 KiB whose bytes have the same state takes one byte.
 */

export const BYTE = {
  live: 1,
  written: 2,
  freed: 4,
  readOnly: 8,
  spaceMask: 0x30,
  global: 0,
  shared: 0x10,
  local: 0x20,
  param: 0x30,
} as const;

const PAGE_BITS = 16;
export const PAGE = 2 ** PAGE_BITS;

export class Shadow {
  private readonly pages: (Uint8Array | undefined)[] = [];
  private readonly uniform = new Uint8Array(2 ** (32 - PAGE_BITS));

  /** Returns the state of every byte of the page; the array is made if the page is uniform. */
  page(number: number): Uint8Array {
    return (this.pages[number] ??= new Uint8Array(PAGE).fill(this.uniform[number]!));
  }

  at(address: number): number {
    const number = address >>> PAGE_BITS;
    const page = this.pages[number];
    return page === undefined ? this.uniform[number]! : page[address & (PAGE - 1)]!;
  }

  set(address: number, bytes: number, state: number): void {
    this.spans(address, bytes, (number, from, to) => {
      if (to - from === PAGE) {
        this.pages[number] = undefined;
        this.uniform[number] = state;
      } else if (this.pages[number] !== undefined || this.uniform[number] !== state) {
        this.page(number).fill(state, from, to);
      }
    });
  }

  /** Marks live bytes as written; others do not change. */
  written(address: number, bytes: number): void {
    this.spans(address, bytes, (number, from, to) => {
      const page = this.pages[number];
      if (page === undefined) {
        const state = this.uniform[number]!;
        if ((state & (BYTE.live | BYTE.written)) !== BYTE.live) return;
        if (to - from === PAGE) {
          this.uniform[number] = state | BYTE.written;
          return;
        }
      }
      const states = page ?? this.page(number);
      for (let i = from; i < to; i++)
        if ((states[i]! & BYTE.live) !== 0) states[i]! |= BYTE.written;
    });
  }

  /** A copy makes its target as written as its source was. */
  copied(to: number, from: number, bytes: number): void {
    const whole = this.allWritten(from, bytes);
    if (whole) {
      this.written(to, bytes);
      return;
    }
    // As in memmove, the source is read before anything changes.
    const taken = new Uint8Array(bytes);
    for (let i = 0; i < bytes; i++) taken[i] = this.at(from + i) & BYTE.written;
    for (let i = 0; i < bytes; i++) {
      const address = to + i;
      const page = this.page(address >>> PAGE_BITS);
      const at = address & (PAGE - 1);
      page[at] = (page[at]! & ~BYTE.written) | taken[i]!;
    }
  }

  private allWritten(address: number, bytes: number): boolean {
    let all = true;
    this.spans(address, bytes, (number, from, to) => {
      const page = this.pages[number];
      if (page === undefined) all &&= (this.uniform[number]! & BYTE.written) !== 0;
      else for (let i = from; i < to && all; i++) all = (page[i]! & BYTE.written) !== 0;
    });
    return all;
  }

  private spans(
    address: number,
    bytes: number,
    each: (number: number, from: number, to: number) => void,
  ): void {
    const end = address + bytes;
    for (let at = address; at < end;) {
      const number = Math.floor(at / PAGE);
      const start = number * PAGE;
      const to = Math.min(end, start + PAGE);
      each(number, at - start, to - start);
      at = to;
    }
  }

  /** A bit for each unwritten byte, of as many as an access has. */
  unwritten(address: number, bytes: number): number {
    const states = this.page(address >>> 16);
    const from = address & 65535;
    let mask = 0;
    for (let i = 0; i < bytes; i++) if ((states[from + i]! & BYTE.written) === 0) mask |= 1 << i;
    return mask;
  }

  /** Bytes were stored as they were loaded: those of `unwritten` are now unwritten. */
  stored(address: number, bytes: number, unwritten: number): void {
    if (unwritten === 0) return;
    const states = this.page(address >>> 16);
    const from = address & 65535;
    for (let i = 0; i < bytes; i++)
      if (((unwritten >>> i) & 1) !== 0) states[from + i]! &= ~BYTE.written;
  }
}
