/**
 * Graphs.
 */
import { CUresult } from '../../ground/result.js';
import { NativeMemory, STRUCTURE } from '../../native/native-memory.js';
import { CUgraphExecUpdateResult } from '../flags.js';
import type {
  CUcontext,
  CUgraph,
  CUgraphConditionalHandle,
  CUgraphExec,
  CUgraphNode,
  CUstream,
} from '../handles.js';
import type { ConditionalNodeParams, GraphExecUpdateResult } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { readHandles, writeHandles } from './handle-lists.js';
import { KeptPointer } from './node-ffi.js';
import { plainCalls } from './plain-calls.js';
import {
  CONDITIONAL_NODE_PARAMS,
  EXEC_UPDATE_RESULT_INFO,
  writeConditionalNode,
} from './structures.js';

/** Graphs. */
export interface GraphCalls {
  cuGraphCreate(): CUgraph;
  cuGraphDestroy(graph: CUgraph): void;
  cuGraphClone(graph: CUgraph): CUgraph;
  cuGraphGetNodes(graph: CUgraph): CUgraphNode[];
  /**
   * Returns a CUgraphNodeType: 0 kernel, 1 memcpy, 2 memset, 3 host, 4 graph, 5 empty, 6 wait
   * event, 7 event record, …
   */
  cuGraphNodeGetType(node: CUgraphNode): number;
  /**
   * Creates the condition of a conditional node of the graph; kernels of the same context set it
   * with cudaGraphSetConditional. `flags`: CU_GRAPH_COND_ASSIGN_DEFAULT 1: each launch begins with
   * `defaultLaunchValue`. CUDA 12.3 or later.
   */
  cuGraphConditionalHandleCreate(
    graph: CUgraph,
    ctx: CUcontext,
    defaultLaunchValue: number,
    flags: number,
  ): CUgraphConditionalHandle;
  /**
   * Adds a conditional node, the only kind that is not made by capture. Returns its bodies, which
   * belong to the graph. CUDA 12.3 or later.
   */
  cuGraphAddNode(
    graph: CUgraph,
    dependencies: readonly CUgraphNode[],
    conditional: ConditionalNodeParams,
  ): { node: CUgraphNode; bodies: CUgraph[] };
  /** Writes DOT text to `path`. `flags`: CU_GRAPH_DEBUG_DOT_FLAGS_*. */
  cuGraphDebugDotPrint(graph: CUgraph, path: string, flags: number): void;
  cuGraphInstantiate(graph: CUgraph, flags: number): CUgraphExec;
  cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph): GraphExecUpdateResult;
  cuGraphExecDestroy(exec: CUgraphExec): void;
  cuGraphUpload(exec: CUgraphExec, stream: CUstream): void;
  cuGraphLaunch(exec: CUgraphExec, stream: CUstream): void;
}

export const GRAPH_CALLS = {
  cuGraphCreate: {
    since: '10.0',
    symbols: ['cuGraphCreate'],
    args: ['uintptr_t phGraph', 'uint32_t flags'],
  },
  cuGraphDestroy: {
    since: '10.0',
    symbols: ['cuGraphDestroy'],
    args: ['uintptr_t hGraph'],
    plain: true,
  },
  cuGraphClone: {
    since: '10.0',
    symbols: ['cuGraphClone'],
    args: ['uintptr_t* phGraphClone', 'uintptr_t originalGraph'],
    plain: true,
  },
  cuGraphGetNodes: {
    since: '10.0',
    symbols: ['cuGraphGetNodes'],
    args: ['uintptr_t hGraph', 'uintptr_t nodes', 'uintptr_t numNodes'],
  },
  cuGraphNodeGetType: {
    since: '10.0',
    symbols: ['cuGraphNodeGetType'],
    args: ['uintptr_t hNode', 'int* type'],
    plain: true,
  },
  cuGraphConditionalHandleCreate: {
    since: '12.3',
    symbols: ['cuGraphConditionalHandleCreate'],
    args: [
      'uint64_t* pHandle_out',
      'uintptr_t hGraph',
      'uintptr_t ctx',
      'uint32_t defaultLaunchValue',
      'uint32_t flags',
    ],
    plain: (_graph, _ctx, defaultLaunchValue, flags) =>
      `default ${defaultLaunchValue}, flags ${flags}`,
  },
  cuGraphAddNode: {
    since: '12.3',
    symbols: ['cuGraphAddNode_v2'],
    args: [
      'uintptr_t phGraphNode',
      'uintptr_t hGraph',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'uintptr_t nodeParams',
    ],
  },
  cuGraphDebugDotPrint: {
    since: '11.3',
    symbols: ['cuGraphDebugDotPrint'],
    args: ['uintptr_t hGraph', 'const char* path', 'uint32_t flags'],
    plain: (_graph, path) => path,
  },
  cuGraphInstantiate: {
    since: '11.4',
    symbols: ['cuGraphInstantiateWithFlags'],
    args: ['uintptr_t* phGraphExec', 'uintptr_t hGraph', 'uint64_t flags'],
    plain: (_graph, flags) => `flags ${flags}`,
  },
  cuGraphExecUpdate_v2: {
    since: '12.0',
    symbols: ['cuGraphExecUpdate_v2'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hGraph', 'uintptr_t resultInfo'],
  },
  cuGraphExecUpdate_v1: {
    since: '10.2',
    symbols: ['cuGraphExecUpdate'],
    args: [
      'uintptr_t hGraphExec',
      'uintptr_t hGraph',
      'uintptr_t hErrorNode_out',
      'uintptr_t updateResult_out',
    ],
  },
  cuGraphExecDestroy: {
    since: '10.0',
    symbols: ['cuGraphExecDestroy'],
    args: ['uintptr_t hGraphExec'],
    plain: true,
  },
  cuGraphUpload: {
    since: '11.1',
    symbols: ['cuGraphUpload'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hStream'],
    plain: true,
  },
  cuGraphLaunch: {
    since: '10.0',
    symbols: ['cuGraphLaunch'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hStream'],
    nodeFfi: true,
  },
} as const satisfies RowsOf<GraphCalls>;

export function graphCalls(binding: Binding): GraphCalls {
  const { koffi, calls, pointerCalls, scratch } = binding;
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const structure = out0 + STRUCTURE;
  const {
    cuGraphCreate,
    cuGraphGetNodes,
    cuGraphAddNode,
    cuGraphExecUpdate_v1,
    cuGraphExecUpdate_v2,
    cuGraphLaunch,
  } = calls;
  const { cuGraphLaunch: launchPointers } = pointerCalls;
  const execPointer = new KeptPointer();
  const streamPointer = new KeptPointer();

  return {
    ...plainCalls(binding, GRAPH_CALLS),
    cuGraphCreate() {
      const r = cuGraphCreate.run(out0, 0);
      if (r !== 0) throw cuGraphCreate.failure(r);
      return scratch.u64(0);
    },
    cuGraphGetNodes(graph) {
      scratch.setU64(0, 0);
      let r = cuGraphGetNodes.run(graph, 0, out0);
      if (r !== 0) throw cuGraphGetNodes.failure(r);
      const count = scratch.u64(0);
      if (count === 0) return [];
      const nodes = new NativeMemory(koffi, 8 * count);
      r = cuGraphGetNodes.run(graph, nodes.address, out0);
      if (r !== 0) throw cuGraphGetNodes.failure(r);
      return Array.from({ length: Math.min(count, scratch.u64(0)) }, (_, i) => nodes.u64(8 * i));
    },
    cuGraphAddNode(graph, dependencies, conditional) {
      writeConditionalNode(scratch, STRUCTURE, conditional);
      const nodes = writeHandles(koffi, dependencies);
      const r = cuGraphAddNode.run(
        out0,
        graph,
        nodes?.address ?? 0,
        0,
        dependencies.length,
        structure,
      );
      if (r !== 0)
        throw cuGraphAddNode.failure(
          r,
          `a conditional node of type ${conditional.type} with ${conditional.size} bodies`,
        );
      return {
        node: scratch.u64(0),
        bodies: readHandles(
          koffi,
          scratch.u64(STRUCTURE + CONDITIONAL_NODE_PARAMS.phGraph_out),
          conditional.size,
        ),
      };
    },
    /**
     * A graph that does not fit is an answer (CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE), anything else
     * an error.
     */
    cuGraphExecUpdate(exec, graph) {
      if (cuGraphExecUpdate_v2.available) {
        scratch.bytes.fill(0, STRUCTURE, STRUCTURE + EXEC_UPDATE_RESULT_INFO.size);
        const r = cuGraphExecUpdate_v2.run(exec, graph, structure);
        if (r !== 0 && r !== CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
          throw cuGraphExecUpdate_v2.failure(r);
        const reason = scratch.i32[(STRUCTURE + EXEC_UPDATE_RESULT_INFO.result) >> 2]!;
        return {
          result: updateResult(r, reason),
          errorNode: scratch.u64(STRUCTURE + EXEC_UPDATE_RESULT_INFO.errorNode),
        };
      }
      scratch.setU64(0, 0);
      scratch.setU64(8, 0);
      const r = cuGraphExecUpdate_v1.run(exec, graph, out0, out1);
      if (r !== 0 && r !== CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        throw cuGraphExecUpdate_v1.failure(r);
      return { result: updateResult(r, scratch.i32[2]!), errorNode: scratch.u64(0) };
    },
    cuGraphLaunch(exec, stream) {
      const r =
        launchPointers === undefined
          ? cuGraphLaunch.run(exec, stream)
          : launchPointers(execPointer.of(exec), streamPointer.of(stream));
      if (r !== 0) throw cuGraphLaunch.failure(r);
    },
  };
}

/** A failed update never reads as a success, even where the driver gave no reason. */
function updateResult(result: CUresult, reason: number): number {
  if (
    result === CUresult.CUDA_SUCCESS ||
    reason !== CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
  )
    return reason;
  return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR;
}
