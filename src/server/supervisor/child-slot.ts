/** The seat of one child: it is filled again whenever its child ends, until the seat is given up. */
import type { ServerHandle } from '../../lib/net/early-listener.ts'
import type { Child, ChildEnd, Launch } from './launch.ts'
import type { ChildRole, FromChild, ToChild } from './process-messages.ts'
import { RestartPause } from './restart-pause.ts'

interface SeatOptions {
  readonly role: ChildRole
  /** The slot of a worker; 0 for the control process. */
  readonly slot: number
  readonly launch: Launch
  readonly newId: () => string
  readonly now: () => number
  /** Called when a child was launched and awaits its first message. */
  readonly began: (seat: ChildSlot) => void
  readonly heard: (seat: ChildSlot, message: FromChild) => void
  readonly ended: (seat: ChildSlot, ending: Ending) => void
}

/** A child that ended. */
export interface Ending extends ChildEnd {
  readonly id: string
  /** Why it could not start, if it reported that. */
  readonly reason: string | undefined
  readonly livedMs: number
  /** When the next one starts, in milliseconds; undefined when none does. */
  readonly againInMs: number | undefined
}

export class ChildSlot {
  readonly role: ChildRole
  readonly slot: number
  readonly #options: SeatOptions
  readonly #pause = new RestartPause()
  /** The id of the present child, or of the last one. */
  id = ''
  isReady = false
  /** Whether it was sent the settings to start with. */
  hasBegun = false
  /** Whether it confirms other settings; undefined until that is known. */
  answersUse: boolean | undefined
  /** Whether a child that ends is replaced. */
  isKept = false
  #child: Child | undefined
  #began = 0
  #reason: string | undefined
  #timer: NodeJS.Timeout | undefined
  #onEmpty: (() => void)[] = []

  constructor(options: SeatOptions) {
    this.#options = options
    this.role = options.role
    this.slot = options.slot
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  fill(): void {
    const { launch, newId, now, heard, began, role } = this.#options
    this.id = newId()
    this.#began = now()
    this.#reason = undefined
    this.hasBegun = false
    this.answersUse = undefined
    this.#child = launch(role, {
      message: (message) => {
        if (message.type === 'failed') this.#reason = message.reason
        else heard(this, message)
      },
      ended: (end) => this.#onEnded(end),
    })
    began(this)
  }

  /** Sends a message to the present child, if any. */
  send(message: ToChild, handle?: ServerHandle): void {
    this.#child?.send(message, handle)
  }

  /** Asks the child to end, and resolves when it has; kills it after `limitMs`. It is not replaced. */
  async end(how: 'drain' | 'stop', limitMs: number): Promise<void> {
    this.isKept = false
    clearTimeout(this.#timer)
    const child = this.#child
    if (!child) return
    child.send({ type: how })
    const timer = setTimeout(() => child.kill(), limitMs)
    await new Promise<void>((resolve) => this.#onEmpty.push(resolve))
    clearTimeout(timer)
  }

  async kill(): Promise<void> {
    this.#child?.kill()
    await this.end('stop', 0)
  }

  #onEnded(end: ChildEnd): void {
    const { now, ended } = this.#options
    this.#child = undefined
    this.isReady = false
    const livedMs = now() - this.#began
    const againInMs = this.isKept ? this.#pause.after(livedMs) : undefined
    if (againInMs !== undefined) this.#timer = setTimeout(() => this.fill(), againInMs)
    ended(this, { ...end, id: this.id, reason: this.#reason, livedMs, againInMs })
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }
}
