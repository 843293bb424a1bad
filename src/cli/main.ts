#!/usr/bin/env node
/** The program `async-cuda`. */
import { runCommandLine } from './command-line.js';

void runCommandLine(process.argv.slice(2), process.stdout, process.stderr).then((status) => {
  process.exitCode = status;
});
