/** What a stream waits for before its next command is carried out. */
export interface Wait {
  readonly reason: 'hold' | 'event' | 'launches' | 'memory' | 'peer' | 'made' | 'capture';
  /**
   * By reason: slot of the hold, handle of the event, slot of the stream that is short of memory,
   * number of the device whose event is `value`, handle of what does not exist yet, or number of
   * the capture.
   */
  readonly on: number;
  readonly value: number;
  /**
   * Whether the wait is all that the command does, as with a hold. Any other command is carried out
   * after its wait.
   */
  readonly consumed: boolean;
}
