/** Where connections to a door arrive: over TCP, counted, met through trusted hops, and on trial until they prove who they are. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../lib/clock.ts'
import type { Descriptors } from '../lib/files/descriptors.ts'
import type { Logger } from '../lib/log/log.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import type { ConnectionCaps } from '../lib/net/connection-caps.ts'
import { type ListenOn, listenOn, listenText } from '../lib/net/listen-on.ts'
import { type Peer, peerOf } from '../lib/net/peer.ts'
import { agentSockets } from '../lib/net/socket-options.ts'
import type { MeetVisitor } from '../lib/net/trusted-hop.ts'
import { Admission, type Crowd } from './admission.ts'
import type { DoorLimits } from './limits.ts'
import { Trial } from './trial.ts'

export interface DoorstepOptions {
  /** Finds out whose connection it is, where a load balancer stands in front. */
  readonly meet: MeetVisitor
  readonly caps: ConnectionCaps | undefined
  readonly limits: DoorLimits
  readonly now: Clock
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  /** Not a byte of the socket was read; it is closed when the trial is over time. */
  readonly onTrial: (socket: Socket, trial: Trial, peer: Peer) => void
}

export class Doorstep {
  readonly #options: DoorstepOptions
  readonly #admission: Admission
  readonly #tcp: Server
  readonly #sockets = new Set<Socket>()
  readonly #trials = new Set<Trial>()
  /** From a load balancer that has not told yet for whom. */
  readonly #unmet = new Set<Socket>()
  readonly #crowds: MinuteLog<{ readonly peer: string; readonly reason: Crowd }>
  readonly #noisy: MinuteLog<{ readonly peer: string }>

  constructor(options: DoorstepOptions) {
    const { limits, now, log } = options
    this.#options = options
    this.#crowds = new MinuteLog((fields, connections) => {
      log.warn({ ...fields, connections }, 'agent connections turned away')
    })
    this.#noisy = new MinuteLog((fields, failures) => log.warn({ ...fields, failures }, 'agent logins keep failing'))
    this.#admission = new Admission(limits, now)
    this.#tcp = createServer(agentSockets, (socket) => this.#accept(socket))
  }

  /** Of connections that have not proved who they are: how many there are, had to make room, and failed. */
  get numbers(): Pick<Admission, 'unproven' | 'turnedAway' | 'failures'> {
    const { unproven, turnedAway, failures } = this.#admission
    return { unproven, turnedAway, failures }
  }

  /** All connections, whoever they are. */
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

  /** Accepts nobody more, and drops whoever has not proved who it is. */
  stop(): void {
    this.#tcp.close()
    for (const trial of [...this.#trials]) trial.drop()
    for (const socket of this.#unmet) socket.destroy()
    this.#crowds.close()
    this.#noisy.close()
  }

  /** Resolves when the last connection is closed. */
  async closed(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  #accept(socket: Socket): void {
    socket.on('error', () => {})
    if (this.#options.descriptors?.admits(socket, 'agents') === false) return
    const peer = peerOf(socket, this.#options.now())
    // Without an address it is gone already.
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
    this.#options.meet(socket, peer, (agent) => {
      this.#unmet.delete(socket)
      if (agent && this.#isTooMany(socket, agent)) socket.destroy()
      else if (agent) this.#try(socket, agent)
      else {
        socket.destroy()
        this.#options.log.debug({ peer: peer.ip }, 'a trusted proxy did not say whose connection it is')
      }
    })
  }

  /** D68. Handshakes too: one begins here for each connection. */
  #isTooMany(socket: Socket, { ip }: Peer): boolean {
    const { caps } = this.#options
    return caps !== undefined && !(caps.admit(socket, ip) && caps.shake(ip))
  }

  #try(socket: Socket, peer: Peer): void {
    const { limits, log, onTrial } = this.#options
    const trial = new Trial({
      socket,
      peer,
      admission: this.#admission,
      limitMs: limits.authenticationMs,
      lateRefusalMs: limits.lateRefusalMs,
      log,
      onNoisy: (ip) => this.#noisy.note({ peer: ip }),
      onOver: () => this.#trials.delete(trial),
    })
    this.#trials.add(trial)
    const reason = this.#admission.enter(trial)
    if (reason !== undefined) this.#crowds.note({ peer: peer.ip, reason })
    onTrial(socket, trial, peer)
  }
}
