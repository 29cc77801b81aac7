/** Follows the log of a server for lines about upgrades and faults; lines about visitors are skipped. */
import { closeSync, openSync, readSync } from 'node:fs'

export interface LogLine {
  /** In milliseconds since 1970. */
  readonly at: number
  readonly level: string
  readonly msg: string
  readonly text: string
}

/** How often the file is read, in milliseconds. */
const READ_MS = 20

const BYTES_AT_ONCE = 1024 * 1024

/** Selects the lines worth keeping among thousands, before they are parsed. */
const kept = /upgrad|process|"level":"?(warn|error|fatal|[456]0)/

export class ServerLog {
  readonly lines: LogLine[] = []
  readonly #file: number
  readonly #timer: NodeJS.Timeout
  readonly #buffer = Buffer.alloc(BYTES_AT_ONCE)
  readonly #waiting = new Set<() => void>()
  #rest = ''

  constructor(path: string) {
    this.#file = openSync(path, 'r')
    this.#timer = setInterval(() => this.#read(), READ_MS).unref()
  }

  /** The first match from index `from` on; rejects when there is none in time. */
  async says(wanted: RegExp, { from, limitMs }: { from: number; limitMs: number }): Promise<LogLine> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.lines.slice(from).find(({ text }) => wanted.test(text))
        if (!found) return
        over()
        resolve(found)
      }
      const timer = setTimeout(() => {
        over()
        reject(new Error(`the log does not say ${wanted} within ${limitMs} ms`))
      }, limitMs)
      const over = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
      }
      this.#waiting.add(look)
      look()
    })
  }

  close(): void {
    clearInterval(this.#timer)
    closeSync(this.#file)
  }

  #read(): void {
    for (;;) {
      const length = readSync(this.#file, this.#buffer)
      if (length === 0) break
      const lines = (this.#rest + this.#buffer.toString('utf8', 0, length)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const text of lines) if (kept.test(text)) this.#take(text)
    }
    for (const look of [...this.#waiting]) look()
  }

  #take(text: string): void {
    try {
      const { time, level, msg } = JSON.parse(text) as { time: string; level: string; msg: string } // as in any line of ours
      this.lines.push({ at: Date.parse(time), level, msg, text })
    } catch {
      // Output of Node about a program that it cannot run.
      this.lines.push({ at: Date.now(), level: 'none', msg: text, text })
    }
  }
}
