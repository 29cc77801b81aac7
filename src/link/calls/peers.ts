/** Calls among equals: each peer answers the calls of one table, and asks the others, over a channel to each. */
import type { Logger } from '../../lib/log/create-log.ts'
import { noAnswerFault } from '../../model/link-fault.ts'
import { type Answer, type Argument, CallLink, type CallOptions, type Calls } from './call-link.ts'
import type { Channel } from './plane-channel.ts'

interface PeersOptions {
  readonly self: string
  /** Opens a channel on which this peer asks another; undefined when there is no way to it. */
  readonly channelTo: (peerId: string) => Channel | undefined
  readonly log: Logger
}

type WhenMoved = (came: readonly string[], left: readonly string[]) => void

/** Each end of a channel only asks, or only answers. */
type None = Record<never, never>

export class Peers<Table extends Calls> {
  readonly self: string
  readonly #options: PeersOptions
  readonly #handlers: Record<string, Calls[string]> = {}
  readonly #links = new Map<string, CallLink<Table, None>>()
  readonly #whenMoved: WhenMoved[] = []
  #others: readonly string[] = []

  constructor(options: PeersOptions) {
    this.self = options.self
    this.#options = options
  }

  /** The other peers that are reachable now. */
  others(): readonly string[] {
    return this.#others
  }

  /** Sets the other peers. */
  use(others: readonly string[]): void {
    const before = this.#others
    this.#others = others
    const came = others.filter((id) => !before.includes(id))
    const left = before.filter((id) => !others.includes(id))
    for (const id of left) {
      this.#links.get(id)?.close()
      this.#links.delete(id)
    }
    if (came.length + left.length > 0) for (const moved of this.#whenMoved) moved(came, left)
  }

  /** Calls `moved` with the peers that came and those that left, whenever any do. */
  whenMoved(moved: WhenMoved): void {
    this.#whenMoved.push(moved)
  }

  /** Rejects with what the other peer threw, or with a `LinkFault`. */
  async ask<Name extends keyof Table & string>(
    peerId: string,
    name: Name,
    argument: Argument<Table, Name>,
    options?: CallOptions<Answer<Table, Name>>,
  ): Promise<Answer<Table, Name>> {
    const link = this.#linkTo(peerId)
    if (!link) throw noAnswerFault('closed', name)
    return link.ask(name, argument, options)
  }

  /** What is told arrives in order; what is told to a peer that is gone is lost. */
  tell<Name extends keyof Table & string>(peerId: string, name: Name, argument: Argument<Table, Name>): void {
    this.#linkTo(peerId)?.tell(name, argument)
  }

  /** Tells every other peer. */
  tellAll<Name extends keyof Table & string>(name: Name, argument: Argument<Table, Name>): void {
    for (const id of this.#others) this.tell(id, name, argument)
  }

  /** Handles what others ask or tell under this name. */
  serve<Name extends keyof Table & string>(name: Name, handler: Table[Name]): void {
    this.#handlers[name] = handler
  }

  /** Answers another peer, which has opened this channel. */
  accept(channel: Channel): void {
    const { log } = this.#options
    new CallLink<None, Calls>(channel, this.#handlers, { log })
  }

  #linkTo(peerId: string): CallLink<Table, None> | undefined {
    const known = this.#links.get(peerId)
    if (known) return known
    const { self, channelTo, log } = this.#options
    const channel = channelTo(peerId)
    if (!channel) return undefined
    const link = new CallLink<Table, None>(channel, {}, { log, self })
    this.#links.set(peerId, link)
    void link.closed.then(() => {
      if (this.#links.get(peerId) === link) this.#links.delete(peerId)
    })
    return link
  }
}
