/**
 * A stand-in for nvJPEG and for the functions of libcuda that are called beside it: it reads the
 * size of a JPEG, writes pixels that depend on their place, and records its arguments.
 */
import koffi from 'koffi';

import { StandInLibrary } from '../core/stand-in-library.js';

const TEXT = `
#include <stdlib.h>
#include <unistd.h>
typedef struct { unsigned char *channel[4]; size_t pitch[4]; } Image;
static int delay, active, most, states, streams, handles, refused_flags, lie;
API void standin_set(int delay_us, int refused, int wrong_size) {
  delay = delay_us;
  refused_flags = refused;
  lie = wrong_size;
  most = 0;
}
API int standin_most(void) { return most; }
API int standin_alive(void) { return states * 10000 + streams * 100 + handles; }
static void *made(int *count) {
  pthread_mutex_lock(&lock);
  ++*count;
  pthread_mutex_unlock(&lock);
  return malloc(16);
}
static void gone(int *count, void *what) {
  pthread_mutex_lock(&lock);
  --*count;
  pthread_mutex_unlock(&lock);
  free(what);
}
API int nvjpegGetProperty(int type, int *value) { *value = (int[]){13, 9, 1}[type]; return 0; }
API int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned int flags, void **handle) {
  note("nvjpegCreateEx %d %d %d %u", backend, device != NULL, pinned != NULL, flags);
  if (flags & refused_flags) return 2;
  *handle = made(&handles);
  return 0;
}
API int nvjpegDestroy(void *handle) { note("nvjpegDestroy"); gone(&handles, handle); return 0; }
API int nvjpegJpegStateCreate(void *handle, void **state) {
  *state = made(&states);
  return handle == NULL;
}
API int nvjpegJpegStateDestroy(void *state) { gone(&states, state); return 0; }
static int size(const unsigned char *data, size_t length, int *width, int *height) {
  for (size_t at = 2; at + 9 < length; at += 2 + (data[at + 2] << 8 | data[at + 3])) {
    if (data[at] != 0xff) return 3;
    if (data[at + 1] < 0xc0 || data[at + 1] > 0xc2) continue;
    *height = data[at + 5] << 8 | data[at + 6];
    *width = data[at + 7] << 8 | data[at + 8];
    return 0;
  }
  return 3;
}
API int nvjpegGetImageInfo(void *handle, const unsigned char *data, size_t length, int *components,
    int *subsampling, int *widths, int *heights) {
  *components = 3;
  *subsampling = 0;
  int status = size(data, length, widths, heights);
  *widths += lie;
  return status;
}
static int engines, batch_status;
API void standin_hardware(int count, int status) { engines = count; batch_status = status; }
API int nvjpegGetHardwareDecoderInfo(void *handle, unsigned *count, unsigned *cores) {
  *count = (unsigned)engines;
  *cores = 1;
  return handle == NULL;
}
typedef struct { int width, height, baseline; } Parsed;
API int nvjpegJpegStreamCreate(void *handle, Parsed **stream) {
  *stream = calloc(1, sizeof **stream);
  pthread_mutex_lock(&lock);
  states++;
  pthread_mutex_unlock(&lock);
  return handle == NULL;
}
API int nvjpegJpegStreamDestroy(Parsed *stream) { gone(&states, stream); return 0; }
API int nvjpegJpegStreamParseHeader(
    void *handle, const unsigned char *data, size_t length, Parsed *stream) {
  stream->baseline = 0;
  for (size_t at = 2; at + 9 < length && data[at] == 0xff;
      at += 2 + (data[at + 2] << 8 | data[at + 3]))
    if (data[at + 1] == 0xc0) stream->baseline = 1;
  return size(data, length, &stream->width, &stream->height) || handle == NULL;
}
API int nvjpegJpegStreamGetFrameDimensions(Parsed *stream, unsigned *width, unsigned *height) {
  *width = (unsigned)(stream->width + lie);
  *height = (unsigned)stream->height;
  return 0;
}
API int nvjpegDecodeBatchedSupported(void *handle, Parsed *stream, int *supported) {
  *supported = stream->baseline ? 0 : 2;
  return handle == NULL;
}
static int batch_count, batch_format;
API int nvjpegDecodeBatchedInitialize(
    void *handle, void *state, int count, int threads, int format) {
  batch_count = count;
  batch_format = format;
  return handle == NULL || state == NULL || threads != 1;
}
API int nvjpegDecodeBatched(void *handle, void *state, const unsigned char *const *data,
    const size_t *lengths, Image *to, void *stream) {
  note("nvjpegDecodeBatched %d, format %d, pitch %zu", batch_count, batch_format, to->pitch[0]);
  static int batches;
  pthread_mutex_lock(&lock);
  int others = batches++;
  pthread_mutex_unlock(&lock);
  if (others) note("nvjpegDecodeBatched beside another");
  if (delay) usleep(delay);
  pthread_mutex_lock(&lock);
  batches--;
  pthread_mutex_unlock(&lock);
  if (batch_status) return batch_status;
  for (int i = 0; i < batch_count; i++) {
    int width, height, channels = batch_format == 2 ? 1 : 3;
    size(data[i], lengths[i], &width, &height);
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width * channels; x++)
        to[i].channel[0][y * to[i].pitch[0] + x] = (unsigned char)(x + 7 * y + lengths[i]);
  }
  return 0;
}
API int nvjpegDecode(void *handle, void *state, const unsigned char *data, size_t length,
    int format, Image *to, void *stream) {
  int width, height, channels = format == 2 ? 1 : 3;
  size(data, length, &width, &height);
  pthread_mutex_lock(&lock);
  if (++active > most) most = active;
  pthread_mutex_unlock(&lock);
  if (delay) usleep(delay);
  note("nvjpegDecode %dx%d of %zu bytes, format %d, pitch %zu, others %d", width, height, length,
      format, to->pitch[0], to->channel[1] != NULL || to->pitch[1] != 0);
  if (answer() == 0) {
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width * channels; x++)
        to->channel[0][y * to->pitch[0] + x] = (unsigned char)(x + 7 * y + length);
  }
  pthread_mutex_lock(&lock);
  active--;
  pthread_mutex_unlock(&lock);
  return answer();
}
API int cuCtxSetCurrent(void *context) { note("cuCtxSetCurrent %zu", (size_t)context); return 0; }
API int cuStreamCreate(void **stream, unsigned int flags) {
  note("cuStreamCreate %u", flags);
  *stream = made(&streams);
  return 0;
}
API int cuStreamSynchronize(void *stream) { note("cuStreamSynchronize"); return 0; }
API int cuStreamDestroy_v2(void *stream) { gone(&streams, stream); return 0; }
`;

/** Sets its behaviour. */
export interface StandInSettings {
  /** Duration of a decode in milliseconds. */
  readonly delay?: number;
  /** Flags of nvjpegCreateEx that it refuses. */
  readonly refusedFlags?: number;
  /** Added to the width that nvjpegGetImageInfo returns. */
  readonly wrongWidth?: number;
}

export class StandInNvjpeg extends StandInLibrary {
  private readonly change: (delay: number, refused: number, wrong: number) => void;
  private readonly own: (engines: number, status: number) => void;
  private readonly count: () => number;
  private readonly counted: () => number;

  constructor() {
    super('nvjpeg', TEXT);
    const library = koffi.load(this.path);
    this.change = library.func(
      'void standin_set(int delay, int refused, int wrong)',
    ) as StandInNvjpeg['change'];
    this.own = library.func(
      'void standin_hardware(int engines, int status)',
    ) as StandInNvjpeg['own'];
    this.count = library.func('int standin_most()') as () => number;
    this.counted = library.func('int standin_alive()') as () => number;
  }

  set({ delay = 0, refusedFlags = 0, wrongWidth = 0 }: StandInSettings = {}): void {
    this.change(delay * 1000, refusedFlags, wrongWidth);
  }

  /**
   * Sets the number of hardware decoders, and the status of nvjpegDecodeBatched. They take baseline
   * JPEGs only.
   */
  setHardware(engines: number, status = 0): void {
    this.own(engines, status);
  }

  /** The largest number of JPEGs that were decoded at once. */
  get mostAtOnce(): number {
    return this.count();
  }

  /** The number of states, streams and handles that exist. */
  get alive(): { states: number; streams: number; handles: number } {
    const all = this.counted();
    return {
      states: Math.floor(all / 10000),
      streams: Math.floor(all / 100) % 100,
      handles: all % 100,
    };
  }
}

/** The pixels that it writes for a JPEG of so many bytes. */
export function standInPixels(
  length: number,
  width: number,
  height: number,
  channels: number,
): number[] {
  return Array.from(
    { length: width * height * channels },
    (_, i) => ((i % (width * channels)) + 7 * Math.floor(i / (width * channels)) + length) & 0xff,
  );
}
