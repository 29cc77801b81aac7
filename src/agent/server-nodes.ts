/** Where an agent finds its server: at the address that it was given, and at nodes that the server told it of. */
import { MAX_NODE_ADDRESSES } from '../wire/messages/commands.ts'
import { formatServer, parseServer, type ServerAddress } from './server-address.ts'

export class ServerNodes {
  readonly #given: ServerAddress
  /** Returns a number from 0 up to, but not including, 1. */
  readonly #random: () => number
  #told: readonly ServerAddress[] = []
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

  /** The server told where its other nodes are, as `host:port`; anything else is left out. */
  told(addresses: readonly string[]): void {
    this.#told = addresses.slice(0, MAX_NODE_ADDRESSES).flatMap((text) => nodeAddress(text) ?? [])
  }

  /** Whether it was told of any other node. */
  get hasOthers(): boolean {
    return this.#told.length > 0
  }

  /**
   * Where to connect, in order: where it was last, then at the given address, and then at any other. Last of all at
   * `avoided`, where the agent has a session already.
   */
  all({ avoided }: { readonly avoided?: ServerAddress | undefined } = {}): readonly ServerAddress[] {
    return distinct([...(this.#last ? [this.#last] : []), this.#given, ...this.#shuffled()], avoided)
  }

  /** Where to connect, in order, when the node at `server` is about to stop. */
  awayFrom(
    server: ServerAddress,
    { avoided }: { readonly avoided?: ServerAddress | undefined } = {},
  ): readonly ServerAddress[] {
    const others = this.#shuffled().filter((each) => formatServer(each) !== formatServer(server))
    return distinct([...others, this.#given], avoided)
  }

  /** So that not all agents of a node go to the same other one. */
  #shuffled(): ServerAddress[] {
    return this.#told
      .map((server) => ({ server, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ server }) => server)
  }
}

/** With a port: every node says its own. */
function nodeAddress(text: string): ServerAddress | undefined {
  if (!/:\d+$/.test(text)) return undefined
  try {
    return parseServer(text)
  } catch {
    return undefined
  }
}

/** Each once, and `avoided` last if it is among them. */
function distinct(servers: readonly ServerAddress[], avoided: ServerAddress | undefined): ServerAddress[] {
  const byText = new Map(servers.map((server) => [formatServer(server), server]))
  const text = avoided && formatServer(avoided)
  const last = text !== undefined && byText.get(text)
  if (last) byText.delete(text)
  return [...byText.values(), ...(last ? [last] : [])]
}
