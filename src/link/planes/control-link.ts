/** A data plane's link to its control plane, which may go away and come back. */
import type { Logger } from '../../lib/log/create-log.ts'
import { LinkFault, noAnswerFault } from '../../model/link-fault.ts'
import { CALL_MS, CallLink, type CallOptions } from '../calls/call-link.ts'
import type { Channel } from '../calls/plane-channel.ts'
import type { Attachment, ControlCalls, PlaneCalls, PlaneSecrets } from './plane-calls.ts'

/** How long agents and visitors wait for what the control plane looks up, in milliseconds. */
export const LOOKUP_MS = 6000

/** What callers need of the link. */
export type Control = Pick<ControlLink, 'ask' | 'tell'>

/** What the link needs once the data plane is built. */
interface AttachedPlane {
  readonly calls: PlaneCalls
  /** What is online here at this moment. */
  readonly attachment: () => Attachment
}

interface AskOptions extends CallOptions {
  /** How long to wait until a control plane is there, in milliseconds; by default as long as for its answer. */
  readonly attachedWithinMs?: number
}

type Link = CallLink<ControlCalls, PlaneCalls>

/**
 * While the control plane is away, the data plane goes on with what it has, and calls wait. The data plane attaches again when
 * the control plane is back.
 */
export class ControlLink {
  readonly #log: Logger
  #plane: AttachedPlane | undefined
  /** The present link; the plane may not be attached over it yet. */
  #link: Link | undefined
  #attached: Link | undefined
  /** Callers that wait for a link, or until the plane is attached. */
  readonly #waiting = new Set<() => void>()
  #isClosed = false

  constructor({ log }: { readonly log: Logger }) {
    this.#log = log
  }

  /** Switches to another channel; resolves when that is closed. */
  async use(channel: Channel): Promise<void> {
    const link: Link = new CallLink(channel, () => this.#plane?.calls, { log: this.#log })
    if (this.#isClosed) return link.close()
    this.#attached = undefined
    this.#link?.close()
    this.#link = link
    this.#wake()
    if (this.#plane) await this.#attach(link, this.#plane)
    await link.closed
    if (this.#attached === link) this.#attached = undefined
    if (this.#link === link) this.#link = undefined
  }

  /** Fetches what the plane needs before it can be built. */
  async secrets(): Promise<PlaneSecrets> {
    for (;;) {
      const link = this.#link
      if (this.#isClosed) throw noAnswerFault('closed', 'secrets')
      if (!link || link.isClosed) await this.#changed()
      else {
        try {
          return await link.ask('secrets', null)
        } catch (error) {
          // A fault of the link: try again, or on the next link.
          if (!(error instanceof LinkFault)) throw error
        }
      }
    }
  }

  /** Attaches the data plane, which is built by now; again whenever the control plane comes back. */
  async start(plane: AttachedPlane): Promise<void> {
    this.#plane = plane
    if (this.#link) await this.#attach(this.#link, plane)
  }

  get isAttached(): boolean {
    return this.#current !== undefined
  }

  /** Asks as soon as a control plane is there; rejects with its error, or with a `LinkFault` when none answers in time. */
  async ask<Name extends keyof ControlCalls>(
    name: Name,
    argument: Parameters<ControlCalls[Name]>[0],
    { withinMs = CALL_MS, isOnce = false, attachedWithinMs = withinMs }: AskOptions = {},
  ): Promise<Awaited<ReturnType<ControlCalls[Name]>>> {
    const begun = performance.now()
    const deadline = begun + withinMs
    for (;;) {
      const link = this.#current ?? (await this.#awaited(name, begun + attachedWithinMs))
      try {
        return await link.ask(name, argument, { withinMs: Math.max(1, deadline - performance.now()) })
      } catch (error) {
        const mayRepeat = error instanceof LinkFault && error.reason === 'closed' && !isOnce && !this.#isClosed
        if (!mayRepeat) throw error
      }
    }
  }

  /** Tells the control plane, if it is there; one that comes back is told everything anew. */
  tell<Name extends keyof ControlCalls>(name: Name, argument: Parameters<ControlCalls[Name]>[0]): void {
    this.#attached?.tell(name, argument)
  }

  close(): void {
    this.#isClosed = true
    this.#link?.close()
    this.#wake()
  }

  /** The link over which this plane is attached. */
  get #current(): Link | undefined {
    return this.#attached?.isClosed ? undefined : this.#attached
  }

  async #attach(link: Link, { attachment }: AttachedPlane): Promise<void> {
    try {
      const attaching = link.ask('attach', attachment())
      // Calls told from here on arrive after the attachment.
      this.#attached = link
      await attaching
      this.#wake()
    } catch (err) {
      if (this.#attached === link) this.#attached = undefined
      if (this.#isClosed || link.isClosed) return
      this.#log.error({ err }, 'control plane refused to attach this data plane; reconnecting')
      // A link that is not attached is useless; `ControlConnection` tries again.
      link.close()
    }
  }

  async #awaited(name: string, deadline: number): Promise<Link> {
    for (;;) {
      const link = this.#current
      if (link) return link
      const leftMs = deadline - performance.now()
      if (this.#isClosed) throw noAnswerFault('closed', name)
      if (leftMs <= 0) throw noAnswerFault('timeout', name)
      await this.#changed(leftMs)
    }
  }

  /** Resolves when the state of the link may have changed, or after the given time. */
  async #changed(withinMs?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = withinMs === undefined ? undefined : setTimeout(resolve, withinMs).unref()
    this.#waiting.add(resolve)
    await promise
    this.#waiting.delete(resolve)
    clearTimeout(timer)
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }
}
