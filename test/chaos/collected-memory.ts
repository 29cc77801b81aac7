/**
 * Measures what processes of a server still hold after their garbage is collected, which separates a leak from memory that is
 * merely not needed back yet. Node loads this file into every server process (`--import`, with `--expose-gc`).
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/until.ts'

/** The environment variable with the folder where processes find what they are asked, and answer. */
export const MEMORY_FOLDER = 'CHAOS_MEMORY_FOLDER'

const LOOK_MS = 500

/** The resident memory of each process after a collection, in MiB; `round` is a new one each time. */
export async function collectedMemory(folder: string, round: string, pids: readonly number[]): Promise<number[]> {
  mkdirSync(join(folder, round))
  return Promise.all(
    pids.map((pid) =>
      until(`process ${pid} has collected its garbage`, () => {
        const file = join(folder, round, String(pid))
        return existsSync(file) ? Number(readFileSync(file, 'utf8')) : undefined
      }),
    ),
  )
}

const folder = process.env[MEMORY_FOLDER]
const collect = globalThis.gc
if (folder !== undefined && collect) {
  let round = 0
  const look = (): void => {
    const at = join(folder, String(round))
    if (!existsSync(at)) return
    round++
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    writeFileSync(join(at, String(process.pid)), String(process.memoryUsage.rss() / 1024 ** 2))
  }
  setInterval(look, LOOK_MS).unref()
}
