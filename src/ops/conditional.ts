/**
 * Operations that run, or do not, depending on what the device has computed. Where the work is
 * recorded each is a conditional node of the graph; otherwise the host reads the condition and
 * queues the choice.
 */
import { CudaError, DeviceBuffer, graphIf, graphSwitch, graphWhile } from '../core/index.js';
import type { ConditionName } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { checkSupported, loadedSetter } from '../core/condition-setter.js';
import { isPromise } from '../ground/other-realms.js';
import { Link } from './chain.js';
import { Later, NotLoaded, after, whenKnown } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

/**
 * One element of a tensor of whole numbers or bool, as a condition. A tensor of one element is such
 * an element.
 */
export interface DecidingTensor {
  readonly buffer: DeviceBuffer<ConditionName>;
  readonly layout: { readonly offset: number };
  readonly size: number;
}

/** A condition: the one element of a tensor, or of a buffer. */
export type Decider = DecidingTensor | DeviceBuffer<ConditionName>;

type Decide<T> = (value: T) => Node<unknown>;
/** The work of a choice. Its value is not used. */
type Choice<T> = (value: T) => Node<unknown>;

/** The element as a buffer. */
function elementOf(what: string, given: unknown): DeviceBuffer<ConditionName> {
  const tensor = given as Partial<DecidingTensor> | null | undefined;
  const whole = given instanceof DeviceBuffer ? given : tensor?.buffer;
  if (
    !(whole instanceof DeviceBuffer) ||
    (!(given instanceof DeviceBuffer) && tensor?.layout === undefined)
  ) {
    throw invalid(
      `${what}(condition)`,
      'a callback that returns a tensor of one element, or an operation that produces one',
      given,
    );
  }
  const size = given instanceof DeviceBuffer ? given.length : tensor!.size;
  if (size !== 1)
    throw invalid(
      `${what}(condition)`,
      'a tensor of one element',
      given,
      'Take one with slice(…).',
    );
  if (whole.dtype.kind === 'float' || whole.dtype.kind === 'complex')
    throw invalid(
      `${what}(condition)`,
      'a tensor of whole numbers or bool',
      given,
      'Compare in a kernel, and write whether it holds.',
    );
  const offset = given instanceof DeviceBuffer ? 0 : tensor!.layout!.offset;
  return whole.slice(offset, offset + 1) as DeviceBuffer<ConditionName>;
}

/** The value of the element, read back. */
function valueOf(run: Run, element: DeviceBuffer<ConditionName>): Submitted<number> {
  if (run.mode === 'block')
    return Number((element.readBlocking(run.stream) as ArrayLike<number>)[0]);
  return new Later(
    element.read(run.stream).then((values) => Number((values as ArrayLike<number>)[0])),
    true,
    'nothing',
  );
}

/**
 * The work of a choice or a body. Its value, and the memory that it has made, are passed to no
 * step.
 */
function dropped(run: Run, queued: Submitted<unknown>, mark: number): Submitted<undefined> {
  return run.endStep(
    queued instanceof Later
      ? run.goOn(queued, () => undefined, { queued: queued.queued })
      : undefined,
    mark,
  );
}

/** Checks, before the first node is recorded, that the kernel that reads elements is loaded. */
function checkReady(run: Run, what: string): void {
  checkSupported(run.device, `${what}(…)`, false);
  const setter = loadedSetter(run.device);
  if (isPromise(setter)) throw new NotLoaded(setter);
}

/** Records a body in a graph. */
function recordBody(run: Run, body: Node<unknown>): void {
  run.apart(() => {
    if (body.submit(run) instanceof Later)
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'a value of the host cannot be recorded in a graph: read it after graph.replay().',
      );
  });
}

/**
 * Runs one of the operations that the callbacks make of the value, or none: {@link DeviceOp.when},
 * {@link DeviceOp.choose}.
 */
abstract class Chosen<T> extends Link<T, T> {
  protected readonly what: string;
  protected readonly choices: readonly Choice<T>[];
  private readonly decide: Decide<T>;

  constructor(before: Node<T>, what: string, decide: Decide<T>, choices: readonly Choice<T>[]) {
    super(before, what);
    this.what = what;
    this.decide = decide;
    this.choices = choices;
  }

  protected abstract choiceOf(value: number): Choice<T> | undefined;
  protected abstract record(
    run: Run,
    element: DeviceBuffer<ConditionName>,
    bodies: readonly (() => void)[],
  ): void;

  next(value: T, run: Run): Submitted<T> {
    const { choices, decide } = this;
    if (run.recording) checkReady(run, this.what);
    const { mark } = run;
    return whenKnown(run, decide(value).submit(run), (given) => {
      if (run.recording) {
        this.record(
          run,
          elementOf(this.what, given),
          choices.map((choice) => (): void => {
            recordBody(run, choice(value));
          }),
        );
        return value;
      }
      // A tensor that was made for the condition is closed after the copy of its element.
      const element = run.endStep(
        valueOf(run, elementOf(this.what, given)),
        Math.min(mark, run.mark),
      );
      return whenKnown(run, element, (decided) => {
        const choice = this.choiceOf(decided);
        if (choice === undefined) return value;
        const { mark: begun } = run;
        return after(run, dropped(run, choice(value).submit(run), begun), value);
      });
    });
  }
}

export class When<T> extends Chosen<T> {
  protected choiceOf(value: number): Choice<T> | undefined {
    return this.choices[value !== 0 ? 0 : 1];
  }

  protected record(
    run: Run,
    element: DeviceBuffer<ConditionName>,
    [then, otherwise]: readonly (() => void)[],
  ): void {
    graphIf(run.stream, element, then!, otherwise);
  }
}

export class Choose<T> extends Chosen<T> {
  protected choiceOf(value: number): Choice<T> | undefined {
    return this.choices[value];
  }

  protected record(
    run: Run,
    element: DeviceBuffer<ConditionName>,
    bodies: readonly (() => void)[],
  ): void {
    graphSwitch(run.stream, element, bodies);
  }
}

/** Runs the body repeatedly: {@link DeviceOp.repeatWhile}. */
export class RepeatWhile<T> extends Link<T, T> {
  private readonly decide: Decide<T>;
  private readonly body: Choice<T>;

  constructor(before: Node<T>, decide: Decide<T>, body: Choice<T>) {
    super(before, 'repeatWhile');
    this.decide = decide;
    this.body = body;
  }

  next(value: T, run: Run): Submitted<T> {
    if (run.recording) return this.record(run, value);
    for (;;) {
      const goesOn = this.turn(run, value);
      if (goesOn instanceof Later)
        return run.goOn(new Later(this.rest(run, goesOn, value), false), () => value);
      if (!goesOn) return value;
    }
  }

  /** One turn: whether the condition holds. The body has then been queued. */
  private turn(run: Run, value: T): Submitted<boolean> {
    const { decide, body } = this;
    const { mark } = run;
    return whenKnown(run, decide(value).submit(run), (given) => {
      const element = run.endStep(
        valueOf(run, elementOf('repeatWhile', given)),
        Math.min(mark, run.mark),
      );
      return whenKnown(run, element, (decided): Submitted<boolean> => {
        if (decided === 0) return false;
        const { mark: begun } = run;
        return after(run, dropped(run, body(value).submit(run), begun), true);
      });
    });
  }

  /** It is a loop, not a chain of promises, which would grow with each turn. */
  private async rest(run: Run, first: Later<boolean>, value: T): Promise<void> {
    let goesOn = await first.promise;
    while (goesOn) {
      run.checkAwaited();
      goesOn = await run.settled(run.resume(() => this.turn(run, value)));
    }
  }

  /** Records the condition twice: before the node, and after the body. */
  private record(run: Run, value: T): T {
    const { decide, body } = this;
    checkReady(run, 'repeatWhile');
    const evaluate = (): DeviceBuffer<ConditionName> =>
      elementOf('repeatWhile', decide(value).submit(run));
    const element = evaluate();
    graphWhile(run.stream, element, () => {
      recordBody(run, body(value));
      run.apart(() => {
        const again = evaluate();
        // Memory that a graph allocates is at another address for each allocation.
        if (
          again.memory !== element.memory ||
          again.byteOffset !== element.byteOffset ||
          again.dtype.bytes !== element.dtype.bytes
        )
          element.copyFrom(run.stream, again);
      });
    });
    return value;
  }
}
