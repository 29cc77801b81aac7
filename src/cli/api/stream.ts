/** Prints a stream of resources as they come, one per line. */
import { plural } from '../../lib/text/plural.ts'
import { printable } from '../../lib/text/printable.ts'
import { Failure } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { cell } from '../text-table.ts'
import type { ApiAnswer, Follow } from './api-client.ts'
import { rowOf } from './list.ts'

interface Streamed {
  readonly kind: string
  readonly noun: string
  /** The columns; without them, lines are JSON. */
  readonly shown?: readonly string[]
}

/** How long a slow reader has for the last lines, in milliseconds. */
const LAST_LINES_MS = 2000

/** Prints until the server ends the stream, which is a failure. */
export async function printStream(
  terminal: Terminal,
  stream: ReturnType<Follow>,
  { kind, noun, shown }: Streamed,
): Promise<void> {
  const lines = terminal.openLines((lost) => `${lost} lines were dropped: the reader is too slow\n`)
  for await (const { name, data } of stream) {
    if (name === 'missed')
      terminal.err(`some ${plural(noun)} were skipped because too many came at once: ${printable(data)}\n`)
    if (name === kind) lines.write(shown ? lineOf(data, shown) : `${data}\n`)
  }
  await lines.flush(LAST_LINES_MS)
  throw new Failure('the server ended the stream; it may be stopping, or the API key was deleted')
}

function lineOf(data: string, shown: readonly string[]): string {
  // Our own server wrote it.
  const row = rowOf(JSON.parse(data) as ApiAnswer, shown)
  return `${Object.values(row).map(cell).join('\t')}\n`
}
