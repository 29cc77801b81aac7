/** Opens visitors' connections through a session, within what its agent can handle. */

import type { Mux } from '../../link/wire/mux.ts'
import type { PeerTraits } from '../../link/wire/mux-peer.ts'
import { buildProxyHead } from '../../link/wire/proxy-header.ts'
import { RUST_STREAMS } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import { AgentBacklog } from './agent-backlog.ts'
import type { Tunnel } from './session-types.ts'

/** A tunnel, by the id that its agent uses. */
type Dialled = Pick<Tunnel, 'wireId'>

/** Streams of a session reserved for heartbeats, calls and commands. */
const SPARE_STREAMS = 16

export class Dialler {
  readonly #mux: Mux
  readonly #now: () => number
  readonly #maxStreams: number
  /** Whether the agent has small queues that must not fill up. */
  readonly #isFragile: boolean
  readonly #tellsRequestIds: boolean
  readonly #untaken = new WeakMap<Dialled, AgentBacklog>()

  constructor(
    mux: Mux,
    { maxStreams, readsRequestIds }: PeerTraits,
    { now = () => performance.now() }: { now?: () => number } = {},
  ) {
    this.#mux = mux
    this.#now = now
    this.#maxStreams = maxStreams - SPARE_STREAMS
    this.#isFragile = maxStreams <= RUST_STREAMS
    this.#tellsRequestIds = readsRequestIds
  }

  /** Opens a stream at once, except with fragile agents, where it may wait briefly. */
  open(tunnel: Dialled, request: DialRequest): WireStream | DialFault | Promise<WireStream | DialFault> {
    if (!this.#isFragile) return this.#open(tunnel, request)
    const untaken = this.#untakenOf(tunnel)
    if (untaken.hasRoom()) return this.#open(tunnel, request, untaken)
    return untaken.wait().then((hasRoom) => {
      if (hasRoom) return this.#open(tunnel, request, untaken)
      return new DialFault('busy', 'the application behind the tunnel does not accept connections')
    })
  }

  /** Sends the head in one frame: some agents serve nothing else while it is incomplete. */
  #open(
    tunnel: Dialled,
    { ip, port, proto, edge, passthroughTls, requestId = '' }: DialRequest,
    untaken?: AgentBacklog,
  ): WireStream | DialFault {
    if (this.#mux.isClosed) return new DialFault('offline', 'the session of the tunnel is over')
    if (this.#mux.size >= this.#maxStreams) {
      return new DialFault('busy', 'the agent has as many open connections as it can handle')
    }
    const clientAddr = ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
    const head = buildProxyHead({
      id: tunnel.wireId,
      clientAddr,
      proto,
      edgeType: edge,
      passthroughTls,
      requestId: this.#tellsRequestIds ? requestId : '',
    })
    const stream = this.#mux.open(head)
    if (stream instanceof WireError) return new DialFault('offline', stream.message, { cause: stream })
    untaken?.add(stream, head.length)
    return stream
  }

  #untakenOf(tunnel: Dialled): AgentBacklog {
    const found = this.#untaken.get(tunnel)
    if (found) return found
    const untaken = new AgentBacklog(this.#now)
    this.#untaken.set(tunnel, untaken)
    return untaken
  }
}
