/** What a command may use of the world around it: where it prints, what it reads, its environment. */
import { text } from 'node:stream/consumers'

export interface Terminal {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether a person reads what goes to `out`. */
  readonly isTTY: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readInput: () => Promise<string>
}

export function processTerminal(): Terminal {
  return {
    out: (line) => void process.stdout.write(line),
    err: (line) => void process.stderr.write(line),
    isTTY: process.stdout.isTTY === true,
    env: process.env,
    cwd: process.cwd(),
    readInput: () => text(process.stdin),
  }
}
