/**
 * Events of one device that streams of others wait for. Until each of them has got past its wait,
 * such an event is neither recorded again nor destroyed: the wait would be for something later,
 * which may itself wait for the waiter.
 */
import type { CompletionSlot } from '../runtime/completion.js';
import type { Runtime } from '../runtime/runtime.js';

interface Borrower {
  readonly runtime: Runtime;
  readonly slot: CompletionSlot;
  /** Number of its wait. */
  readonly value: number;
}

interface Loan {
  borrowers: Borrower[];
  readonly giveBack: () => void;
}

export class Loans {
  /** By the event's handle. */
  private readonly loans = new Map<number, Loan>();

  /**
   * `giveBack` is called, once, some time after the last of its borrowers has got past its wait.
   * Call {@link settled} before the event is chosen: one that is given back is in use again.
   */
  lend(event: number, borrower: Borrower, giveBack: () => void): void {
    const loan = this.loans.get(event);
    if (loan === undefined) this.loans.set(event, { borrowers: [borrower], giveBack });
    else loan.borrowers.push(borrower);
  }

  isLent(event: number): boolean {
    const loan = this.loans.get(event);
    return loan !== undefined && !this.over(event, loan);
  }

  /** Whether the event is given back yet, or is going to be. */
  knows(event: number): boolean {
    return this.loans.has(event);
  }

  /** Takes back what can be; returns whether that is all. */
  settled(): boolean {
    let all = true;
    for (const [event, loan] of this.loans) if (!this.over(event, loan)) all = false;
    return all;
  }

  private over(event: number, loan: Loan): boolean {
    loan.borrowers = loan.borrowers.filter(
      ({ runtime, slot, value }) => !runtime.hasCrossed(slot, value),
    );
    // Whoever works on this thread only works while somebody waits.
    for (const { runtime } of loan.borrowers) if (runtime.isInline) runtime.completion.kick();
    if (loan.borrowers.length > 0) return false;
    this.loans.delete(event);
    loan.giveBack();
    return true;
  }
}
