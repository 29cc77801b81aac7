/**
 * Watches the machine: a process that works for a moment, and answers. When even that is slow, whoever waits for several
 * processes in turn runs into limits, and no node is to blame.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Owner } from '../support/upstream.ts'

/** Between two questions, in milliseconds. */
const ASK_MS = 100

/** How long it works for an answer, in microseconds of processor time: about as long as for a TLS handshake. */
const WORK_US = 3000

/** What takes longer is a machine that stands still, in milliseconds: a visit to another node is some ten such turns. */
const SLOW_MS = 150

/** Times in milliseconds since 1970. */
export interface SlowSpan {
  readonly from: number
  readonly to: number
}

export class Witness {
  readonly #spans: SlowSpan[] = []
  /** When the question that is open was asked. */
  #askedAt: number | undefined

  /** Times at which the machine was slow, until now. */
  get slow(): readonly SlowSpan[] {
    const now = Date.now()
    const open = this.#askedAt !== undefined && now - this.#askedAt > SLOW_MS
    return open ? [...this.#spans, { from: this.#askedAt ?? now, to: now }] : this.#spans
  }

  /** How long ago something was, in milliseconds of a machine that was not slow. */
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

/** How much of a time the machine was slow, in milliseconds. */
export function slowMs(slow: readonly SlowSpan[], from: number, to: number): number {
  return slow.reduce((sum, span) => sum + Math.max(0, Math.min(span.to, to) - Math.max(span.from, from)), 0)
}

/** Watches until its owner is done. */
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
