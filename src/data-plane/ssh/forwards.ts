/** The forwards of one connection: the addresses that the client asked us to listen on, and the tunnels they became. */
import type { Tunnel } from '../tunnel/session-types.ts'
import { type ForwardAddress, usualPort } from './forward-plan.ts'
import type { ForwardReply } from './ssh-link.ts'

export interface Forward {
  readonly asked: ForwardAddress
  readonly reply: ForwardReply
  /** Set once it is online. */
  tunnel?: Tunnel
  /** The same place, with the port that the client was told, perhaps before it is online. */
  announced?: ForwardAddress
  isCancelled?: boolean
}

/** The first of the made-up ports that clients are told when the number does not matter, so that each forward has its own. */
const MADE_UP_PORTS = 40_000

export class Forwards {
  readonly #all = new Set<Forward>()
  /** By tunnel id, because they are looked up for every visitor. */
  readonly #online = new Map<string, Forward>()

  get size(): number {
    return this.#all.size
  }

  [Symbol.iterator](): IterableIterator<Forward> {
    return this.#all.values()
  }

  add(forward: Forward): void {
    this.#all.add(forward)
  }

  /** Whether the client asks for the same place again; port 0 is a new one each time. */
  has({ address, port }: ForwardAddress): boolean {
    return port !== 0 && [...this.#all].some(({ asked }) => asked.address === address && asked.port === port)
  }

  /** The forward that the client knows by this place. */
  at({ address, port }: ForwardAddress): Forward | undefined {
    return [...this.#all].find(
      ({ asked, announced = asked }) => announced.address === address && announced.port === port,
    )
  }

  /** Where the client listens for a tunnel. */
  addressOf(tunnelId: string): ForwardAddress | undefined {
    return this.#online.get(tunnelId)?.announced
  }

  /** Notes that a forward is online as `tunnel`; returns the port to tell the client. */
  begin(forward: Forward, tunnel: Tunnel): number {
    forward.tunnel = tunnel
    this.#online.set(tunnel.id, forward)
    return this.announce(forward, tunnel)
  }

  /** The port to tell the client, which stays the same; without a tunnel any that is not in use. */
  announce(forward: Forward, tunnel?: Tunnel): number {
    const { address, port } = forward.asked
    forward.announced ??= { address, port: port === 0 ? this.#portFor(tunnel) : port }
    return forward.announced.port
  }

  delete(forward: Forward): void {
    this.#all.delete(forward)
    if (forward.tunnel) this.#online.delete(forward.tunnel.id)
  }

  deleteOf(tunnel: Tunnel): void {
    const forward = this.#online.get(tunnel.id)
    if (forward) this.delete(forward)
  }

  /** For TCP the real port, unless another forward was told it. Otherwise any port that is not in use: the usual one first. */
  #portFor({ endpoint }: Partial<Tunnel> = {}): number {
    const [, real] = endpoint?.proto === 'tcp' ? (/:(\d+)$/.exec(endpoint.open.hostport) ?? []) : []
    const taken = new Set([...this.#all].map(({ asked, announced = asked }) => announced.port))
    if (real !== undefined && !taken.has(Number(real))) return Number(real)
    const usual = usualPort(endpoint?.proto ?? '')
    if (!taken.has(usual)) return usual
    let port = MADE_UP_PORTS
    while (taken.has(port)) port++
    return port
  }
}
