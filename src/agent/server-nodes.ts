/** Where an agent finds its server: at its configured address, and at the nodes that the server announced. */
import { MAX_NODE_ADDRESSES } from '../link/wire/messages/command-messages.ts'
import { formatServer, parseServer, type ServerAddress } from './server-address.ts'

export class ServerNodes {
  readonly #given: ServerAddress
  /** Returns a number from 0 up to, but not including, 1. */
  readonly #random: () => number
  #announced: readonly ServerAddress[] = []
  /** Where it was last online. */
  #last: ServerAddress | undefined

  constructor(given: ServerAddress, random: () => number) {
    this.#given = given
    this.#random = random
  }

  /** The agent is online there. */
  isAt(server: ServerAddress): void {
    this.#last = server
  }

  /** Takes the addresses of other nodes from the server, as `host:port`; anything else is ignored. */
  announced(addresses: readonly string[]): void {
    this.#announced = addresses.slice(0, MAX_NODE_ADDRESSES).flatMap((text) => nodeAddress(text) ?? [])
  }

  /** Whether the server has announced other nodes. */
  get hasOthers(): boolean {
    return this.#announced.length > 0
  }

  /**
   * Where to connect, in order: the node of the last session, the configured address, then the others. `avoided`, where the
   * agent already has a session, comes last.
   */
  all({ avoided }: { readonly avoided?: ServerAddress | undefined } = {}): readonly ServerAddress[] {
    return distinct([...(this.#last ? [this.#last] : []), this.#given, ...this.#shuffled()], avoided)
  }

  /** Where to connect, in order, if the node at `server` is about to stop. */
  awayFrom(
    server: ServerAddress,
    { avoided }: { readonly avoided?: ServerAddress | undefined } = {},
  ): readonly ServerAddress[] {
    const others = this.#shuffled().filter((each) => formatServer(each) !== formatServer(server))
    return distinct([...others, this.#given], avoided)
  }

  /** In random order, so that not all agents of a node go to the same other one. */
  #shuffled(): ServerAddress[] {
    return this.#announced
      .map((server) => ({ server, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ server }) => server)
  }
}

/** A port is required: every node announces its own. */
function nodeAddress(text: string): ServerAddress | undefined {
  if (!/:\d+$/.test(text)) return undefined
  try {
    return parseServer(text)
  } catch {
    return undefined
  }
}

/** Removes duplicates, and puts `avoided` last if it is among them. */
function distinct(servers: readonly ServerAddress[], avoided: ServerAddress | undefined): ServerAddress[] {
  const byText = new Map(servers.map((server) => [formatServer(server), server]))
  const text = avoided && formatServer(avoided)
  const last = text !== undefined && byText.get(text)
  if (last) byText.delete(text)
  return [...byText.values(), ...(last ? [last] : [])]
}
