/**
 * The text of an error for what the checker found.
 */
import type { CheckReport } from '../../../ground/check-report.js';

/** Number of findings that an error describes in full. */
const DESCRIBED = 3;

/** Returns the text of an error for several findings. */
export function summary(reports: readonly CheckReport[]): string {
  const described = reports.slice(0, DESCRIBED).map(({ message }) => message);
  if (reports.length > DESCRIBED) described.push(`(and ${reports.length - DESCRIBED} more)`);
  const [first] = reports;
  if (first?.seed !== undefined) described.push(`(schedule: { seed: ${first.seed} })`);
  return described.join('\n');
}
