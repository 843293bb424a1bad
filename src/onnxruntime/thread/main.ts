/**
 * A thread of ONNX Runtime: a Worker that loads models and runs them, one request at a time.
 * Sessions belong to the process, so any such thread can run any session. `scripts/build.mjs`
 * builds it into a script of its own.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { LINE_ARGS, takeFrom } from '../../core/work-line.js';
import { answerRequests, crewKoffi, whileLoading } from '../../native/crew-thread.js';
import { candidatePaths, thisMachine } from '../../native/find.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { LibraryNotFoundError } from '../../native/library-not-found.js';
import { openLibrary } from '../../native/open-library.js';
import { copyBytes } from './copy-bytes.js';
import type { Answers, LibraryPlace, LoadUnderWay, Refusal, Request } from './messages.js';
import { OrtLibrary } from './ort-library.js';
import { giveWay } from './niceness.js';
import { loadRecorded, record, releaseRecorded } from './recording.js';
import { Refused } from './refused.js';
import { bind, run } from './run.js';
import { loadSession } from './session.js';

const libraries = new Map<string, OrtLibrary>();

/** Returns the file of a build with the CUDA provider, if one is installed. */
function buildWithCuda(place: LibraryPlace): string | undefined {
  const machine = { ...thisMachine(), env: place.env, modules: place.modules };
  for (const path of candidatePaths(KNOWN_LIBRARIES.onnxruntime, machine, [])) {
    if (existsSync(path) && existsSync(join(dirname(path), 'libonnxruntime_providers_cuda.so')))
      return path;
  }
  return undefined;
}

function find(place: LibraryPlace): OrtLibrary {
  const path = place.cuda ? buildWithCuda(place) : undefined;
  const machine = { ...thisMachine(), env: place.env, modules: place.modules };
  const opened = whileLoading(() =>
    openLibrary(
      crewKoffi(),
      KNOWN_LIBRARIES.onnxruntime,
      path === undefined ? { machine } : { path },
    ),
  );
  const known = libraries.get(opened.path) ?? new OrtLibrary(crewKoffi(), opened);
  libraries.set(opened.path, known);
  return known;
}

function libraryAt(path: string): OrtLibrary {
  let known = libraries.get(path);
  if (known === undefined) {
    known = new OrtLibrary(
      crewKoffi(),
      whileLoading(() => openLibrary(crewKoffi(), KNOWN_LIBRARIES.onnxruntime, { path })),
    );
    libraries.set(path, known);
  }
  return known;
}

type Answering = {
  readonly [K in Request['kind']]: (
    request: Extract<Request, { kind: K }>,
    tell: (message: LoadUnderWay) => void,
  ) => Answers[K];
};

const ANSWERING: Answering = {
  find: ({ place }) => find(place).info,
  load: (request, tell) => {
    giveWay(request.niceness);
    const ort = find(request.place);
    // This loads the CUDA provider, which is a library of its own.
    const load = (): Answers['load'] =>
      (request.recorded ? loadRecorded : loadSession)(ort, request, (options) => {
        tell({ path: ort.path, options });
      });
    return request.providers.includes('cuda') ? whileLoading(load) : load();
  },
  cancel: ({ path, options }) => {
    const ort = libraryAt(path);
    if (ort.api >= 22) ort.do('SessionOptionsSetLoadCancellationFlag', options, true);
    return undefined;
  },
  runOptions: ({ path }) => libraryAt(path).give('CreateRunOptions'),
  run: (request) => {
    giveWay(request.niceness);
    return run(libraryAt(request.path), request);
  },
  record: (request) => {
    giveWay(request.niceness);
    return record(libraryAt(request.path), request);
  },
  bind: (request) => bind(libraryAt(request.path), request),
  line: ({ path, niceness, memory }) => {
    giveWay(niceness);
    const ort = libraryAt(path);
    takeFrom(memory, (entries, at) => {
      ort.do('RunBound', ...entries.subarray(at, at + LINE_ARGS));
    });
    return undefined;
  },
  terminate: ({ path, runOptions }) => {
    libraryAt(path).do('RunOptionsSetTerminate', runOptions);
    return undefined;
  },
  take: ({ path, values }) => {
    const ort = libraryAt(path);
    for (const { value, data, to, bytes } of values) {
      if (to !== 0 && bytes > 0) copyBytes(crewKoffi(), to, data, bytes);
      ort.call('ReleaseValue', value);
    }
    return undefined;
  },
  release: ({ path, session, runOptions }) => {
    const ort = libraryAt(path);
    for (const each of runOptions) ort.call('ReleaseRunOptions', each);
    if (session !== 0) ort.call('ReleaseSession', session);
    return undefined;
  },
  releaseRecorded: ({ path, ordinal, session, stream }) => {
    releaseRecorded(libraryAt(path), ordinal, session, stream);
    return undefined;
  },
  address: ({ buffer }) => Number(crewKoffi().address(new Uint8Array(buffer))),
};

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LibraryNotFoundError)
    return { reason: 'no-library', message: error.message };
  return {
    reason: 'internal',
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

answerRequests((request: Request, tell) => {
  const answer = ANSWERING[request.kind] as (
    request: Request,
    tell: (message: LoadUnderWay) => void,
  ) => Answers[keyof Answers];
  return answer(request, tell);
}, refusalOf);
