/** What a command uses of its surroundings: its output, its input and its environment. */
import { text } from 'node:stream/consumers'
import { LineSink } from '../lib/log/line-sink.ts'
import { standardPort } from '../lib/log/standard-output.ts'

/** The output of a long-running command: a slow reader does not block it, and a stalled one does not fill its memory. */
export type LineOutput = Pick<LineSink, 'write' | 'flush'>

export interface Terminal {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether a person reads what goes to `out`. */
  readonly isTTY: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readInput: () => Promise<string>
  /** `out` for a long-running command; `notice` makes the line that reports dropped lines. */
  readonly openLines: (notice: (lost: number) => string) => LineOutput
  /** Sets what happens when `out` cannot be written; by default the command ends. */
  readonly onOutFailed: (run: (error: NodeJS.ErrnoException) => void) => void
}

export function processTerminal(): Terminal {
  let failed = endCommand
  process.stdout.on('error', (error) => failed(error))
  // There is nowhere left to report this.
  process.stderr.on('error', () => {})
  return {
    out: (line) => void process.stdout.write(line),
    err: (line) => void process.stderr.write(line),
    isTTY: process.stdout.isTTY === true,
    env: process.env,
    cwd: process.cwd(),
    readInput: () => text(process.stdin),
    openLines: (notice) => new LineSink({ port: standardPort(process.stdout), notice }),
    onOutFailed: (run) => {
      failed = run
    },
  }
}

/** A reader that closed the pipe (`postern … | head`) is no failure; a full disk is. */
function endCommand({ code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`error: standard output cannot be written: ${message}\n`, () => process.exit(1))
}
