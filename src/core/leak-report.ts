/** What a checked device reports when it is closed: objects that the program did not close. */
import type { CheckMemory, CheckReport } from '../ground/check-report.js';
import { DeviceArray } from './array.js';
import type { CoreDevice } from './device.js';

/** Leaks that closing a device reports one by one as warnings of the process. */
const MOST_LEAK_WARNINGS = 5;

/** Reports the objects that are open, before closing the device closes them. */
export function reportLeaks(device: CoreDevice): void {
  let warnings = 0;
  const report = (what: string, memory: Omit<CheckMemory, 'space' | 'offset'>): void => {
    const message =
      `${what} was not closed before the ` +
      `device${memory.stack === undefined ? '' : `; it was made\n${memory.stack}`}`;
    const leak: CheckReport = {
      kind: 'leak',
      message,
      count: 1,
      memory: { space: 'global', offset: 0, ...memory },
    };
    if (device.emit('check', leak)) return;
    warnings++;
    if (warnings <= MOST_LEAK_WARNINGS)
      process.emitWarning(message, { type: 'CudaWarning', code: 'CUDA_LEAK' });
  };
  for (const allocation of device.objects.allocations) {
    report(allocation.toString(), {
      address: device.runtime.shared.values[allocation.handle]!,
      bytes: allocation.bytes,
      ...device.origins.of(allocation),
    });
  }
  for (const object of device.objects.owned) {
    if (!(object instanceof DeviceArray)) continue;
    report(object.toString(), {
      address: 0,
      bytes: object.length * object.dtype.bytes,
      label: object.toString(),
    });
  }
  if (warnings <= MOST_LEAK_WARNINGS) return;
  process.emitWarning(
    `${warnings - MOST_LEAK_WARNINGS} more were not closed before the device. ` +
      `device.on('check', …) reports each.`,
    { type: 'CudaWarning', code: 'CUDA_LEAK' },
  );
}
