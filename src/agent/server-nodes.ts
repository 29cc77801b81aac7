/** Where an agent finds its server: at the address that it was given, and at nodes that the server told it of. */
import { MAX_NODE_ADDRESSES } from '../wire/messages/commands.ts'
import { AgentFault } from './fault.ts'
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

  /** Where to connect, in order: the given address first, and any other node when nobody answers there. */
  get all(): readonly ServerAddress[] {
    return distinct([this.#given, ...this.#shuffled(), ...(this.#last ? [this.#last] : [])])
  }

  /** Where to connect, in order, when the node at `server` is about to stop. */
  awayFrom(server: ServerAddress): readonly ServerAddress[] {
    const others = this.#shuffled().filter((each) => formatServer(each) !== formatServer(server))
    return distinct([...others, this.#given])
  }

  /** So that not all agents of a node go to the same other one. */
  #shuffled(): ServerAddress[] {
    return this.#told
      .map((server) => ({ server, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ server }) => server)
  }
}

/** Connects at the first address where that works. Rejects with the fault of the first, which is the one to put right. */
export async function connectFirst<T>(
  servers: readonly ServerAddress[],
  connect: (server: ServerAddress) => Promise<T>,
): Promise<T> {
  let first: unknown
  for (const server of servers) {
    try {
      return await connect(server)
    } catch (error) {
      first ??= error
      // What a server refuses for good, its other nodes refuse too.
      if (error instanceof AgentFault && ['refused', 'closed'].includes(error.code) && !error.mayPass) break
    }
  }
  throw first
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

function distinct(servers: readonly ServerAddress[]): ServerAddress[] {
  return [...new Map(servers.map((server) => [formatServer(server), server])).values()]
}
