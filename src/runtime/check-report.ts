/** What the checking device is asked and what it finds, for the layers that do not see the driver. */
export type { CheckKind, CheckMemory, CheckOptions, CheckPlace, CheckReport } from '../driver/check-report.js';
