/** What a stream waits for before its next command is executed. */
export interface Wait {
  readonly reason: 'hold' | 'event' | 'launches' | 'memory' | 'peer' | 'made' | 'capture';
  /**
   * By reason: the slot of the hold, the handle of the event, the slot of the stream that lacks
   * memory, the number of the device whose event is `value`, the handle of the object that does not
   * exist yet, or the number of the capture.
   */
  readonly on: number;
  readonly value: number;
  /**
   * Whether the wait is all that the command does, as with a hold. Any other command is executed
   * after its wait.
   */
  readonly consumed: boolean;
}
