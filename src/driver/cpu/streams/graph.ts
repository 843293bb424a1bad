/**
 * A graph: operations and their dependencies. Nodes are only ever added after the nodes they depend
 * on, so the order of the list is an order in which they may run.
 */
import { CUgraphNodeType } from '../../flags.js';
import type { Allocation } from '../memory/device-memory.js';
import type { Operation } from './operation.js';
import type { Condition } from './condition.js';
import { GraphPlan } from './graph-plan.js';
import type { StreamContext, StreamMachine } from './stream-context.js';

export interface GraphNode {
  readonly handle: number;
  readonly graph: Graph;
  readonly operation: Operation;
  readonly dependencies: readonly GraphNode[];
}

/**
 * The memory of a graph's allocation nodes. It is taken when the node is made, since its address is
 * known from then on, and freed when the graph and everything made from it are gone.
 */
export class GraphMemory {
  /** Allocations of each launch; `freed`: whether the launch also frees it. */
  readonly allocations: { allocation: Allocation; freed: boolean; bytes: number }[] = [];
  /** The conditions of conditional nodes. */
  readonly conditions: Condition[] = [];
  private users = 0;

  use(): this {
    this.users++;
    return this;
  }

  drop(context: StreamContext): void {
    if (--this.users > 0) return;
    for (const { allocation } of this.allocations) {
      if (allocation.memory.at(allocation.address) === allocation)
        allocation.memory.retire(allocation);
      context.afterQueuedWork(() => allocation.memory.giveBack(allocation.range));
    }
    this.allocations.length = 0;
    for (const { range } of this.conditions)
      context.afterQueuedWork(() => {
        context.memory.giveBack(range);
      });
    this.conditions.length = 0;
  }
}

export class Graph {
  readonly handle: number;
  readonly context: StreamContext;
  readonly nodes: GraphNode[] = [];
  readonly memory: GraphMemory;
  /**
   * Whether it is a body of a conditional node. A body exists as long as the graph that has the
   * node.
   */
  readonly isBody: boolean;
  private readonly machine: StreamMachine;

  /** `within`: the graph whose conditional node this is a body of. */
  constructor(context: StreamContext, within?: Graph) {
    this.context = context;
    this.machine = context.machine;
    this.isBody = within !== undefined;
    this.memory = within === undefined ? new GraphMemory().use() : within.memory;
    this.handle = this.machine.newHandle();
  }

  /** Whether one of its nodes is conditional. */
  get isConditional(): boolean {
    return this.nodes.some(
      ({ operation }) => operation.nodeType === CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL,
    );
  }

  /**
   * Gives the graph its handle. A graph exists from the beginning of its capture, and has a handle
   * once that has ended, or was queried.
   */
  publish(): void {
    this.machine.graphs.set(this.handle, this);
    for (const node of this.nodes) this.machine.graphNodes.set(node.handle, node);
  }

  add(operation: Operation, dependencies: readonly GraphNode[]): GraphNode {
    const node: GraphNode = {
      handle: this.machine.newHandle(),
      graph: this,
      operation,
      dependencies: [...dependencies],
    };
    this.nodes.push(node);
    return node;
  }

  clone(): Graph {
    const clone = new Graph(this.context);
    const twins = new Map<GraphNode, GraphNode>();
    for (const node of this.nodes) {
      twins.set(
        node,
        clone.add(
          node.operation.copy(),
          node.dependencies.map((dependency) => twins.get(dependency)!),
        ),
      );
    }
    return clone;
  }

  plan(): GraphPlan {
    const numbers = new Map(this.nodes.map((node, index) => [node, index]));
    return new GraphPlan(
      this.nodes.map((node) => node.operation.copy()),
      this.nodes.map((node) => node.dependencies.map((dependency) => numbers.get(dependency)!)),
    );
  }

  destroy(): void {
    this.machine.graphs.delete(this.handle);
    for (const node of this.nodes) {
      this.machine.graphNodes.delete(node.handle);
      for (const body of node.operation.bodies) body.destroy();
    }
    if (!this.isBody) this.memory.drop(this.context);
  }

  /**
   * Returns the graph in the DOT language; the bodies of a conditional node are clusters beside it.
   */
  dot(): string {
    const lines = this.dotLines('  ');
    return `digraph graph_${this.handle} {\n${lines.join('\n')}${lines.length > 0 ? '\n' : ''}}\n`;
  }

  private dotLines(indent: string): string[] {
    const lines = this.nodes.map(
      (node) =>
        `${indent}n${node.handle} [shape="box", ` +
        `label="${node.operation.describe().replace(/["\\]/g, '\\$&')}"];`,
    );
    for (const node of this.nodes) {
      for (const dependency of node.dependencies)
        lines.push(`${indent}n${dependency.handle} -> n${node.handle};`);
      node.operation.bodies.forEach((body, index) => {
        lines.push(
          `${indent}subgraph cluster_${body.handle} {`,
          `${indent}  label="body ${index} of n${node.handle}";`,
          ...body.dotLines(`${indent}  `),
          `${indent}}`,
        );
        if (body.nodes.length > 0)
          lines.push(`${indent}n${node.handle} -> n${body.nodes[0]!.handle} [style="dashed"];`);
      });
    }
    return lines;
  }
}

/** An executable graph. An update replaces the plan of later launches; queued ones keep theirs. */
export class GraphExec {
  readonly handle: number;
  readonly context: StreamContext;
  /** The memory that each plan uses. */
  private readonly memories: GraphMemory[];
  plan: GraphPlan;
  /** The plan that a stream is running: launches of a graph never overlap. */
  runningPlan: GraphPlan | undefined = undefined;

  /** Whether a launch frees what the last one has left allocated. */
  readonly freesOnLaunch: boolean;

  constructor(
    context: StreamContext,
    plan: GraphPlan,
    memory: GraphMemory,
    freesOnLaunch: boolean,
  ) {
    this.freesOnLaunch = freesOnLaunch;
    this.handle = context.machine.newHandle();
    this.context = context;
    this.plan = plan;
    this.memories = [memory.use()];
  }

  get memory(): GraphMemory {
    return this.memories[0]!;
  }

  /**
   * Makes later launches run another graph of the same shape. Conditions of the old one may still
   * be used by queued launches.
   */
  replace(plan: GraphPlan, memory: GraphMemory): void {
    this.plan = plan;
    if (!this.memories.includes(memory)) this.memories.push(memory.use());
  }

  destroy(): void {
    this.context.machine.graphExecs.delete(this.handle);
    for (const memory of this.memories) memory.drop(this.context);
  }
}
