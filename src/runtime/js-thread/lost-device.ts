/** Makes the error of a device that met a fault: the fault, and the commands in flight. */
import { CudaCheckError, CudaDeviceLostError } from '../../ground/errors.js';
import type { CheckReport } from '../../ground/check-report.js';
import { errorFromFailure } from '../error-of-failure.js';
import type { Failure } from '../failure.js';
import { describeInFlight, inFlight } from '../in-flight.js';
import type { Names } from '../in-flight.js';
import type { SharedState } from '../layout.js';
import type { ProviderConfig } from '../messages.js';
import type { RuntimeEvents } from './events.js';

/** The device, as its error names it. */
export interface LostDevice {
  readonly title: string;
  readonly provider: ProviderConfig['provider'];
  readonly shared: SharedState;
  /** The position after the last record in the ring. */
  readonly position: number;
  readonly names: Names;
}

/** Makes the error. `failure.reports` contain the origins of their memory already. */
export function lostDeviceError(
  failure: Failure,
  { title, provider, shared, position, names }: LostDevice,
): CudaDeviceLostError | CudaCheckError {
  const { reports } = failure;
  const cause = errorFromFailure(
    reports === undefined ? failure : { ...failure, message: checkMessage(reports) },
    undefined,
  );
  const again =
    provider === 'cpu'
      ? 'Open the device again to go on.'
      : 'On a GPU the process cannot use the device again, nor any other GPU: restart it.';
  const work = inFlight(shared, position, names);
  const options = {
    cause,
    driverName: cause.driverName,
    driverCode: cause.driverCode,
    operation: failure.call,
  };
  return reports === undefined
    ? new CudaDeviceLostError(
        `${title} met a fault and is lost: ` +
          `${cause.message.replace(/\.?$/, '.')}${describeInFlight(work)} ${again}`,
        options,
        work,
      )
    : new CudaCheckError(
        `${checkMessage(reports)}\n${title} is lost.${describeInFlight(work)} ${again}`,
        reports,
        options,
        work,
      );
}

/**
 * Adds the properties of a report's memory that only the JavaScript thread has: its label, and
 * where it was made.
 */
export function withOrigin(report: CheckReport, events: RuntimeEvents): CheckReport {
  const { memory } = report;
  const origin = memory?.root === undefined ? undefined : events.origin(memory);
  if (memory === undefined || origin === undefined) return report;
  return {
    ...report,
    message: `${report.message}\n  that is ${origin.label}, made\n${origin.stack}`,
    memory: { ...memory, ...origin },
  };
}

/** Returns the message of an error with several reports. */
function checkMessage(reports: readonly CheckReport[]): string {
  const more = reports.length > 1 ? `\n(and ${reports.length - 1} more: see \`reports\`)` : '';
  const seed = reports[0]?.seed === undefined ? '' : `\n(schedule: { seed: ${reports[0].seed} })`;
  return `${reports[0]?.message ?? ''}${more}${seed}`;
}
