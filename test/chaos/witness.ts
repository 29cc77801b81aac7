/**
 * Watches the machine through a process that works for a moment and answers. When even that is slow, waits for several
 * processes in turn exceed their limits, and no node is at fault.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Owner } from '../support/upstream.ts'

/** Pause between two probes, in milliseconds. */
const ASK_MS = 100

/** How long it works for an answer, in microseconds of processor time: about one TLS handshake. */
const WORK_US = 3000

/** The machine stands still when an answer takes longer, in milliseconds: a visit to another node is some ten turns. */
const SLOW_MS = 150

/** Times in milliseconds since 1970. */
export interface SlowSpan {
  readonly from: number
  readonly to: number
}

export class Witness {
  readonly #spans: SlowSpan[] = []
  /** When the pending probe was sent. */
  #askedAt: number | undefined

  /** The spans in which the machine was slow, up to now. */
  get slow(): readonly SlowSpan[] {
    const now = Date.now()
    const open = this.#askedAt !== undefined && now - this.#askedAt > SLOW_MS
    return open ? [...this.#spans, { from: this.#askedAt ?? now, to: now }] : this.#spans
  }

  /** The time since `from` without the spans in which the machine was slow, in milliseconds. */
  since(from: number): number {
    const now = Date.now()
    return now - from - slowMs(this.slow, from, now)
  }

  asked(): void {
    this.#askedAt = Date.now()
  }

  answered(): void {
    const to = Date.now()
    const from = this.#askedAt ?? to
    this.#askedAt = undefined
    if (to - from > SLOW_MS) this.#spans.push({ from, to })
  }
}

/** How long the machine was slow between two times, in milliseconds. */
export function slowMs(slow: readonly SlowSpan[], from: number, to: number): number {
  return slow.reduce((sum, span) => sum + Math.max(0, Math.min(span.to, to) - Math.max(span.from, from)), 0)
}

/** Watches until its owner ends. */
export async function startWitness(owner: Owner): Promise<Witness> {
  const witness = new Witness()
  const child = fork(fileURLToPath(import.meta.url))
  const ended = once(child, 'exit')
  let timer: NodeJS.Timeout | undefined
  const ask = (): void => {
    witness.asked()
    if (child.connected) child.send('')
  }
  child.on('message', () => {
    witness.answered()
    timer = setTimeout(ask, ASK_MS)
  })
  owner.after(async () => {
    child.removeAllListeners('message')
    clearTimeout(timer)
    child.kill('SIGKILL')
    await ended
  })
  await once(child, 'spawn')
  ask()
  return witness
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit())
  process.on('message', () => {
    const begun = process.cpuUsage()
    while (process.cpuUsage(begun).user < WORK_US);
    process.send?.('')
  })
}
