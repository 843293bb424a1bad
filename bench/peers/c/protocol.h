/*
 * The clock and the line protocol of bench/peers/program.ts, for C peers of all kinds. A peer fills
 * `measurements` and ends with serveLines(measurements, count, versions), where versions is JSON to
 * go on with: `, "name": "1.0"`.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char failure[256];
#define FAIL(...) do { snprintf(failure, sizeof failure, __VA_ARGS__); return; } while (0)

/* Microseconds. */
static double __attribute__((unused)) now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

#define MAX_SAMPLES 100000
static double samples[MAX_SAMPLES];
static int sampleCount;
static void sample(double value) { if (sampleCount < MAX_SAMPLES) samples[sampleCount++] = value; }

typedef struct { const char *name; void (*run)(const long *args); } Measurement;

/* Answers one line per line: `NAME INTEGER…`. */
static int serveLines(const Measurement *measurements, int count, const char *versions) {
  printf("{\"ready\": true, \"versions\": {\"gcc\": \"%s\"%s}}\n", __VERSION__, versions);
  fflush(stdout);
  char line[1024];
  while (fgets(line, sizeof line, stdin)) {
    char name[64];
    long args[8] = {0};
    int at = 0, n = 0;
    if (sscanf(line, "%63s%n", name, &at) != 1) continue;
    for (char *rest = line + at, *end; n < 8; rest = end) {
      args[n] = strtol(rest, &end, 10);
      if (end == rest) break;
      n++;
    }
    const Measurement *found = NULL;
    for (int i = 0; i < count; i++)
      if (!strcmp(measurements[i].name, name)) found = &measurements[i];
    sampleCount = 0;
    failure[0] = 0;
    if (found) found->run(args);
    else snprintf(failure, sizeof failure, "no measurement %s", name);
    if (failure[0]) printf("{\"error\": \"%s\"}\n", failure);
    else {
      printf("{\"samples\": [");
      for (int i = 0; i < sampleCount; i++) printf(i ? ",%.5g" : "%.5g", samples[i]);
      printf("]}\n");
    }
    fflush(stdout);
  }
  return 0;
}
