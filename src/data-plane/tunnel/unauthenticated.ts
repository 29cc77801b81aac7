/**
 * Accepts the connections of a listener: counts them, finds their source behind trusted hops, and sets a time limit for
 * authentication.
 */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { type ListenOn, listenOn, listenText } from '../../lib/net/listen-on.ts'
import { type Peer, peerOf } from '../../lib/net/peer.ts'
import { agentSockets } from '../../lib/net/socket-options.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import { Admission, type Crowd } from './admission.ts'
import { PendingLogin } from './pending-login.ts'
import type { ListenerLimits } from './tunnel-limits.ts'

export interface UnauthenticatedOptions
  extends Pick<PlaneContext, 'now' | 'log' | 'meet' | 'admits' | 'caps' | 'descriptors'> {
  readonly limits: ListenerLimits
}

export abstract class UnauthenticatedConnections {
  readonly #options: UnauthenticatedOptions
  readonly #meet: MeetVisitor
  readonly #admission: Admission
  readonly #tcp: Server
  readonly #sockets = new Set<Socket>()
  /** Connections from a load balancer that has not named the source yet. */
  readonly #unmet = new Set<Socket>()
  readonly #crowds: MinuteLog<{ readonly peer: string; readonly reason: Crowd }>
  readonly #noisy: MinuteLog<{ readonly peer: string }>

  constructor(options: UnauthenticatedOptions) {
    const { limits, now, log, meet = meetVisitors([]), admits } = options
    this.#options = options
    this.#meet = admits ? meetAdmitted(meet, admits) : meet
    this.#crowds = new MinuteLog((fields, connections) => {
      log.warn({ ...fields, connections }, 'unauthenticated agent connections dropped to make room for newer ones')
    })
    this.#noisy = new MinuteLog((fields, failures) => log.warn({ ...fields, failures }, 'agent logins keep failing'))
    this.#admission = new Admission(limits, now)
    this.#tcp = createServer(agentSockets, (socket) => this.#accept(socket))
  }

  /** Unauthenticated connections: how many there are, how many had to make room, how many failed. */
  get metrics(): Pick<Admission, 'unproven' | 'turnedAway' | 'failures'> {
    const { unproven, turnedAway, failures } = this.#admission
    return { unproven, turnedAway, failures }
  }

  /** All connections, authenticated or not. */
  get connections(): number {
    return this.#sockets.size
  }

  listen(on: ListenOn): Promise<AddressInfo> {
    return listenOn(this.#tcp, on, (error) => {
      const { descriptors, log } = this.#options
      if (descriptors) descriptors.failed(error, listenText(on))
      else log.error({ error }, 'agent listener failed')
    })
  }

  /** Accepts no more connections, and closes unauthenticated ones. */
  stop(): void {
    this.#tcp.close()
    this.#admission.dropAll()
    for (const socket of this.#unmet) socket.destroy()
    this.#crowds.close()
    this.#noisy.close()
  }

  /** Resolves when the last connection is closed; sessions must be ended separately. */
  async closed(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  /** Called with a socket from which nothing was read; it is closed when the time limit is over. */
  protected abstract begin(socket: Socket, trial: PendingLogin, peer: Peer): void

  #accept(socket: Socket): void {
    socket.on('error', () => {})
    if (this.#options.descriptors?.admits(socket, 'agents') === false) return
    const peer = peerOf(socket, this.#options.now())
    // A socket without an address is closed already.
    if (!peer || this.#options.caps?.accept(socket) === false) {
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    this.#unmet.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#unmet.delete(socket)
    })
    this.#meet(socket, peer, (agent) => {
      this.#unmet.delete(socket)
      if (agent && this.#isTooMany(socket, agent)) socket.destroy()
      else if (agent) this.#try(socket, agent)
      else {
        socket.destroy()
        this.#options.log.debug({ peer: peer.ip }, 'trusted proxy sent no valid PROXY header')
      }
    })
  }

  /** D68. Counts handshakes too: each connection begins one. */
  #isTooMany(socket: Socket, { ip }: Peer): boolean {
    const { caps } = this.#options
    return caps !== undefined && !(caps.admit(socket, ip) && caps.shake(ip))
  }

  #try(socket: Socket, peer: Peer): void {
    const { limits, log } = this.#options
    const trial = new PendingLogin({
      socket,
      peer,
      admission: this.#admission,
      limits,
      log,
      onNoisy: (ip) => this.#noisy.note({ peer: ip }),
    })
    const reason = this.#admission.enter(trial)
    if (reason !== undefined) this.#crowds.note({ peer: peer.ip, reason })
    this.begin(socket, trial, peer)
  }
}
