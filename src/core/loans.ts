/**
 * Events of one device that streams of other devices wait for. Until each of these streams has got
 * past its wait, such an event is neither recorded again nor destroyed: the wait would then be for
 * something later, which may itself wait for the waiting stream.
 */
import type { CompletionSlot } from '../runtime/completion.js';
import type { Runtime } from '../runtime/runtime.js';

interface Borrower {
  readonly runtime: Runtime;
  readonly slot: CompletionSlot;
  /** The number of its wait. */
  readonly value: number;
}

interface Loan {
  borrowers: Borrower[];
  readonly ended: () => void;
}

export class Loans {
  /** The loans by the event's handle. */
  private readonly loans = new Map<number, Loan>();

  /**
   * Adds a stream that waits for the event. `ended` is called once, some time after the last such
   * stream has got past its wait. Call {@link settled} before choosing an event: its stream records
   * an event again once the loan has ended.
   */
  lend(event: number, borrower: Borrower, ended: () => void): void {
    const loan = this.loans.get(event);
    if (loan === undefined) this.loans.set(event, { borrowers: [borrower], ended });
    else loan.borrowers.push(borrower);
  }

  isLent(event: number): boolean {
    const loan = this.loans.get(event);
    return loan !== undefined && !this.over(event, loan);
  }

  /** Whether the event has been lent, and `ended` has not been called. */
  has(event: number): boolean {
    return this.loans.has(event);
  }

  /** Ends the loans whose waits have ended; returns whether no loan is left. */
  settled(): boolean {
    let all = true;
    for (const [event, loan] of this.loans) if (!this.over(event, loan)) all = false;
    return all;
  }

  private over(event: number, loan: Loan): boolean {
    loan.borrowers = loan.borrowers.filter(
      ({ runtime, slot, value }) => !runtime.hasCrossed(slot, value),
    );
    // A runtime on this thread makes progress only while its completions are polled.
    for (const { runtime } of loan.borrowers) if (runtime.isInline) runtime.completion.kick();
    if (loan.borrowers.length > 0) return false;
    this.loans.delete(event);
    loan.ended();
    return true;
  }
}
