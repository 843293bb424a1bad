/**
 * Graphs.
 */
import type { Driver } from '../driver.js';
import { CUgraphExecUpdateResult } from '../flags.js';
import { CUresult } from '../../ground/result.js';
import type { Binding } from './binding.js';
import { readHandles, writeHandles } from './handle-lists.js';
import { NativeMemory, STRUCTURE } from '../../native/native-memory.js';
import { KeptPointer } from './node-ffi.js';
import {
  CONDITIONAL_NODE_PARAMS,
  EXEC_UPDATE_RESULT_INFO,
  writeConditionalNode,
} from './structures.js';

type GraphCalls = Pick<
  Driver,
  | 'cuGraphConditionalHandleCreate'
  | 'cuGraphAddNode'
  | 'cuGraphCreate'
  | 'cuGraphDestroy'
  | 'cuGraphClone'
  | 'cuGraphGetNodes'
  | 'cuGraphNodeGetType'
  | 'cuGraphDebugDotPrint'
  | 'cuGraphInstantiate'
  | 'cuGraphExecUpdate'
  | 'cuGraphExecDestroy'
  | 'cuGraphUpload'
  | 'cuGraphLaunch'
>;

export function graphCalls({ koffi, calls, pointerCalls, scratch }: Binding): GraphCalls {
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const structure = out0 + STRUCTURE;
  const {
    cuGraphCreate,
    cuGraphDestroy,
    cuGraphClone,
    cuGraphGetNodes,
    cuGraphNodeGetType,
    cuGraphDebugDotPrint,
    cuGraphConditionalHandleCreate,
    cuGraphAddNode,
    cuGraphInstantiate,
    cuGraphExecUpdate_v1,
    cuGraphExecUpdate_v2,
    cuGraphExecDestroy,
    cuGraphUpload,
    cuGraphLaunch,
  } = calls;
  const { cuGraphLaunch: launchPointers } = pointerCalls;
  const execPointer = new KeptPointer();
  const streamPointer = new KeptPointer();

  return {
    cuGraphCreate() {
      const r = cuGraphCreate.run(out0, 0);
      if (r !== 0) throw cuGraphCreate.failure(r);
      return scratch.u64(0);
    },
    cuGraphDestroy(graph) {
      const r = cuGraphDestroy.run(graph);
      if (r !== 0) throw cuGraphDestroy.failure(r);
    },
    cuGraphClone(graph) {
      const r = cuGraphClone.run(out0, graph);
      if (r !== 0) throw cuGraphClone.failure(r);
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
    cuGraphNodeGetType(node) {
      const r = cuGraphNodeGetType.run(node, out0);
      if (r !== 0) throw cuGraphNodeGetType.failure(r);
      return scratch.i32[0]!;
    },
    cuGraphConditionalHandleCreate(graph, ctx, defaultLaunchValue, flags) {
      const r = cuGraphConditionalHandleCreate.run(out0, graph, ctx, defaultLaunchValue, flags);
      if (r !== 0)
        throw cuGraphConditionalHandleCreate.failure(
          r,
          `default ${defaultLaunchValue}, flags ${flags}`,
        );
      return scratch.bits64(0);
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
    cuGraphDebugDotPrint(graph, path, flags) {
      const r = cuGraphDebugDotPrint.run(graph, path, flags);
      if (r !== 0) throw cuGraphDebugDotPrint.failure(r, path);
    },
    cuGraphInstantiate(graph, flags) {
      const r = cuGraphInstantiate.run(out0, graph, flags);
      if (r !== 0) throw cuGraphInstantiate.failure(r, `flags ${flags}`);
      return scratch.u64(0);
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
    cuGraphExecDestroy(exec) {
      const r = cuGraphExecDestroy.run(exec);
      if (r !== 0) throw cuGraphExecDestroy.failure(r);
    },
    cuGraphUpload(exec, stream) {
      const r = cuGraphUpload.run(exec, stream);
      if (r !== 0) throw cuGraphUpload.failure(r);
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
