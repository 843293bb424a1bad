/**
 * A peer in a process of its own, which stays alive so that its rounds can take turns with ours.
 *
 * The protocol is lines. At its start the program prints `{"ready": true, "versions": {…}}`, or
 * `{"absent": "why"}` and ends. Then for each line `NAME ARGUMENT…` on its standard input it runs
 * one round and prints `{"samples": […], "notes": {…}}` or `{"error": "what"}`. It ends when its
 * standard input does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import type { Round } from '../benchmark.js';

/** PyTorch's import alone takes ten seconds from a cold disk. */
const START_TIMEOUT_MS = 120_000;
const ROUND_TIMEOUT_MS = 60_000;

interface Reply {
  ready?: boolean;
  versions?: Record<string, string>;
  absent?: string;
  samples?: number[];
  notes?: Record<string, number>;
  error?: string;
}

/** The peer is absent on this machine. The message has the reason. */
export class PeerAbsent extends Error {}

export class Program {
  versions: Readonly<Record<string, string>> = {};
  private readonly child: ChildProcess;
  private readonly name: string;
  private answer: ((reply: Reply | Error) => void) | undefined;
  private ended: Error | undefined;
  private complaints = '';

  private constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    // Otherwise Python writes its compiled files into the repository.
    this.child = spawn(command, args, {
      stdio: 'pipe',
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.complaints = (this.complaints + text).slice(-2000);
    });
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      if (line.startsWith('{')) this.deliver(JSON.parse(line) as Reply);
    });
    this.child.on('error', (error) => this.end(error.message));
    this.child.on('close', (code, signal) => this.end(`ended (${signal ?? code})`));
    this.child.stdin!.on('error', () => undefined);
  }

  /** @throws PeerAbsent where the program reports it, cannot be started, or ends at once */
  static async start(name: string, command: string, args: readonly string[]): Promise<Program> {
    const program = new Program(name, command, args);
    const reply = await program.next(START_TIMEOUT_MS).catch((error: unknown) => {
      throw new PeerAbsent(error instanceof Error ? error.message : String(error));
    });
    if (reply.absent !== undefined || reply.ready !== true) {
      program.close();
      throw new PeerAbsent(reply.absent ?? `${name} said ${JSON.stringify(reply)}`);
    }
    program.versions = reply.versions ?? {};
    return program;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Runs one round. One at a time. */
  async round(request: string): Promise<Round> {
    if (this.ended !== undefined) throw this.ended;
    this.child.stdin!.write(`${request}\n`);
    const { error, samples, notes } = await this.next(ROUND_TIMEOUT_MS);
    if (error !== undefined) throw new Error(`${this.name}: ${error}`);
    if (samples === undefined) throw new Error(`${this.name}: a reply without samples`);
    return notes === undefined ? { samples } : { samples, notes };
  }

  close(): void {
    this.child.stdin!.end();
    this.child.kill();
  }

  private next(timeout: number): Promise<Reply> {
    if (this.ended !== undefined) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.child.kill('SIGKILL');
        this.end(`gave no answer within ${timeout / 1000} s`);
      }, timeout);
      this.answer = (reply) => {
        clearTimeout(timer);
        this.answer = undefined;
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      };
    });
  }

  private deliver(reply: Reply): void {
    this.answer?.(reply);
  }

  private end(what: string): void {
    const complaint = this.complaints.trim().split('\n').at(-1) ?? '';
    this.ended ??= new Error(`${this.name}: ${what}${complaint === '' ? '' : `: ${complaint}`}`);
    this.answer?.(this.ended);
  }
}
