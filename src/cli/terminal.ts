/** What a command may use of the world around it: where it prints, what it reads, its environment. */
import { text } from 'node:stream/consumers'
import { LineSink } from '../lib/log/line-sink.ts'
import { standardPort } from '../lib/log/standard-output.ts'

/** Lines of a command that runs for long: a slow reader does not hold it, and a stalled one does not fill its memory. */
export type LineOutput = Pick<LineSink, 'write' | 'flush'>

export interface Terminal {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether a person reads what goes to `out`. */
  readonly isTTY: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readInput: () => Promise<string>
  /** `out` for a command that runs for long; `notice` tells of lines that were dropped. */
  readonly openLines: (notice: (lost: number) => string) => LineOutput
  /** Says what to do when `out` cannot be written; without it the command ends. */
  readonly onOutFailed: (run: (error: NodeJS.ErrnoException) => void) => void
}

export function processTerminal(): Terminal {
  let failed = endCommand
  process.stdout.on('error', (error) => failed(error))
  // Nobody is left to tell.
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

/** The reader of our output went away (`postern … | head`): that is no failure. A full disk is. */
function endCommand({ code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`error: standard output cannot be written: ${message}\n`, () => process.exit(1))
}
