/**
 * The nodes of a graph, ready to run, and the run itself: nodes whose dependencies have ended take
 * turns, as streams do, so that parallel branches make progress together and one that waits delays
 * only what depends on it.
 */
import { CUgraphExecUpdateResult, CUgraphNodeType } from '../../flags.js';
import { Operation, STEP } from './operation.js';
import type { Slice } from './operation.js';
import type { GraphExec } from './graph.js';

export class GraphPlan {
  readonly operations: readonly Operation[];
  readonly dependencies: readonly (readonly number[])[];
  private readonly dependents: readonly (readonly number[])[];
  private readonly open: Int32Array;
  private readonly ready: number[] = [];
  /** The index of the next turn among the ready nodes. */
  private turn = 0;
  private left = 0;

  constructor(operations: readonly Operation[], dependencies: readonly (readonly number[])[]) {
    this.operations = operations;
    this.dependencies = dependencies;
    const dependents: number[][] = operations.map(() => []);
    dependencies.forEach((list, index) =>
      list.forEach((dependency) => dependents[dependency]!.push(index)),
    );
    this.dependents = dependents;
    this.open = new Int32Array(operations.length);
  }

  get isConditional(): boolean {
    return this.operations.some(
      ({ nodeType }) => nodeType === CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL,
    );
  }

  /** The graph is launched. This is called once, however often its parts run. */
  launchBegins(): void {
    for (const operation of this.operations) operation.launchBegins();
  }

  begin(): void {
    this.left = this.operations.length;
    this.ready.length = 0;
    this.turn = 0;
    for (let i = 0; i < this.operations.length; i++) {
      this.operations[i]!.restart();
      this.open[i] = this.dependencies[i]!.length;
      if (this.open[i] === 0) this.ready.push(i);
    }
  }

  /** Runs until a full step was made, or nothing can be done. */
  step(slice: Slice): number {
    const { ready } = this;
    let fruitless = 0;
    while (this.left > 0) {
      if (this.turn >= ready.length) this.turn = 0;
      const index = ready[this.turn]!;
      const outcome = this.operations[index]!.step(slice);
      switch (outcome) {
        case STEP.done:
          fruitless = 0;
          this.left--;
          ready.splice(this.turn, 1);
          for (const dependent of this.dependents[index]!)
            if (--this.open[dependent]! === 0) ready.push(dependent);
          // Small nodes follow each other without a turn of the scheduler, but not beyond the time
          // slice.
          if (this.left > 0 && slice.expired()) return STEP.paused;
          break;
        case STEP.more:
          this.turn++;
          return STEP.more;
        case STEP.blocked:
          this.turn++;
          if (++fruitless >= ready.length) return STEP.blocked;
          break;
        default:
          return outcome;
      }
    }
    return STEP.done;
  }

  copy(): GraphPlan {
    return new GraphPlan(
      this.operations.map((operation) => operation.copy()),
      this.dependencies,
    );
  }

  /**
   * Whether an exec that runs `old` may run this plan instead: a CUgraphExecUpdateResult and the
   * node that differs.
   */
  replaces(old: GraphPlan): { result: number; node: number } {
    const changed = CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (old.operations.length !== this.operations.length) return { result: changed, node: -1 };
    for (let i = 0; i < this.operations.length; i++) {
      const now = this.dependencies[i]!;
      const before = new Set(old.dependencies[i]);
      if (now.length !== before.size || !now.every((dependency) => before.has(dependency)))
        return { result: changed, node: i };
      const operation = this.operations[i]!;
      const was = old.operations[i]!;
      if (operation.nodeType !== was.nodeType) {
        return {
          result: CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
          node: i,
        };
      }
      const result = operation.replaces(was);
      if (result !== CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return { result, node: i };
    }
    return { result: CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS, node: -1 };
  }
}

/**
 * One launch of an executable graph in a stream. It keeps the plan, so the exec may be updated or
 * destroyed meanwhile.
 */
export class GraphLaunchOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH;
  private readonly exec: GraphExec;
  private readonly plan: GraphPlan;
  private running = false;

  /** Some of its nodes may be visible to the host. */
  override get meets(): 'host' {
    return 'host';
  }

  constructor(exec: GraphExec) {
    super();
    this.exec = exec;
    this.plan = exec.plan;
  }

  step(slice: Slice): number {
    if (!this.running) {
      if (this.exec.runningPlan !== undefined) return STEP.blocked;
      this.exec.runningPlan = this.plan;
      this.running = true;
      this.plan.launchBegins();
      this.plan.begin();
    }
    const outcome = this.plan.step(slice);
    if (outcome === STEP.done || outcome === STEP.fault) {
      this.exec.runningPlan = undefined;
      this.running = false;
    }
    return outcome;
  }

  /** In another graph, the launched one becomes a child that runs by itself. */
  copy(): Operation {
    return new ChildGraphOperation(this.plan.copy());
  }

  describe(): string {
    return `graph of ${this.plan.operations.length} nodes`;
  }
}

/** A node that is a graph. */
export class ChildGraphOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH;
  private readonly plan: GraphPlan;
  private running = false;

  constructor(plan: GraphPlan) {
    super();
    this.plan = plan;
  }

  step(slice: Slice): number {
    if (!this.running) this.plan.begin();
    const outcome = this.plan.step(slice);
    this.running = outcome !== STEP.done;
    return outcome;
  }

  override restart(): void {
    this.running = false;
  }

  copy(): Operation {
    return new ChildGraphOperation(this.plan.copy());
  }

  describe(): string {
    return `graph of ${this.plan.operations.length} nodes`;
  }

  override replaces(old: Operation): number {
    return this.plan.replaces((old as ChildGraphOperation).plan).result;
  }
}
