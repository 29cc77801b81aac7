/**
 * Measures the event loop turns of workers by their own processor time, which separates the server's part of a delay
 * from that of a busy machine. Node loads this file into every server process (`--import`); it measures in workers.
 */
import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Turn, TurnProbe } from '../support/turn-probe.ts'

/** The environment variable with the folder where each worker writes its turns. */
export const TURNS_FOLDER = 'CHAOS_TURNS_FOLDER'

interface Measured extends Turn {
  /** In milliseconds since 1970. */
  readonly at: number
}

/** How often the longest turn since the last write is written, in milliseconds. */
const WRITE_MS = 500

/** The longest turn of any worker between two times; undefined when none was measured. */
export function longestTurn(folder: string, from: number, to: number): Turn | undefined {
  const turns = readdirSync(folder).flatMap(
    (name) =>
      readFileSync(join(folder, name), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Measured), // written below
  )
  return turns
    .filter(({ at }) => at >= from && at <= to)
    .sort((a, b) => a.cpuMs - b.cpuMs)
    .at(-1)
}

const folder = process.env[TURNS_FOLDER]
if (folder !== undefined && process.argv.includes('run-worker')) {
  const probe = new TurnProbe()
  const file = join(folder, String(process.pid))
  const write = (): void => {
    const measured: Measured = { at: Date.now(), ...probe.take() }
    appendFileSync(file, `${JSON.stringify(measured)}\n`)
  }
  setInterval(write, WRITE_MS).unref()
}
