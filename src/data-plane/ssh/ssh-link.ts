/** Wraps the library's SSH connection: reports logins, forwards and terminals, opens channels, and keeps limits. */
import type { Socket } from 'node:net'
import type { AuthContext, Channel, Incoming, Session } from 'ssh2'
import { noteRead } from '../../lib/bytes/read-memory.ts'
import { limitTime } from '../../lib/net/time-limit.ts'
import { DialFault } from '../../model/dial.ts'
import { ChannelStream, firstWindow, LEAST_PACKET } from './channel-stream.ts'
import type { ForwardAddress } from './forward-plan.ts'
import { prepareKeys, writeByTurns } from './patches/fast-ciphers.ts'
import { handleGuesses } from './patches/kex-guess.ts'
import { RoundTrips } from './patches/round-trips.ts'
import { answerRunning } from './patches/running-requests.ts'
import { announceSignatureAlgorithms } from './patches/server-sig-algs.ts'
import { type KeyOffer, rsaSignature } from './proof.ts'
import type { SshConnection } from './ssh-connection.ts'
import type { SshLimits } from './ssh-limits.ts'
import { SshTerminal } from './ssh-terminal.ts'

/** A client tries to log in. Exactly one of the three answers, once. */
export interface LoginAttempt {
  readonly user: string
  readonly method: string
  readonly offer: KeyOffer | undefined
  /** Lets the client in. */
  accept(): void
  /** Says that the key would be accepted: the client may prove that it holds it. */
  encourage(): void
  reject(): void
}

/** Answers a forward, once: later answers are ignored. Replies are sent in the order of the requests. */
export interface ForwardReply {
  accept(port: number): void
  reject(): void
}

/** What all channels of a connection together may grant beyond their first windows, in bytes. */
const SHARED_WINDOW = 32 * 1024 * 1024

/** With more unsent bytes than this, reading stops: a client that sends requests and never reads must not fill our memory. */
const MAX_UNSENT = 4 * 1024 * 1024

/** What a client may send while one of its forwards is being decided, not counting channels, in bytes. */
const MAX_WHILE_DECIDING = 1024 * 1024

/** How long sending the last bytes to a client may take, in milliseconds. */
const LAST_WORDS_MS = 1000

/** The rate of the slowest line whose client keeps its name, in bytes per millisecond. */
const SLOW_LINE_RATE = 8

/**
 * Longest wait for a sign of life, however many bytes are on their way, in milliseconds. OpenSSH reports what it has read
 * at least every 128 KiB, so on such a line something comes from it sooner.
 */
const LONGEST_CHECK_MS = 20_000

const PACKET_BYTES = 32 * 1024

const message = { disconnect: 1, banner: 53 } as const

/** RFC 4253 §11.1. */
const disconnects = { service: 7, ended: 11, login: 14 } as const

export class SshLink {
  readonly #client: Incoming
  readonly #socket: Socket
  readonly #limits: SshLimits
  /** Decides about everything that the client asks for. */
  #owner: SshConnection | undefined
  /** The client's software, such as `OpenSSH_9.2p1`. */
  readonly software: string
  readonly #waiting = new Set<ChannelStream>()
  readonly #hearing = new Set<() => void>()
  readonly roundTrips: RoundTrips
  /** Counted since the start, because the library keeps terminals that were closed without a command. */
  #terminals = 0
  /** Open connections of visitors. */
  channels = 0
  #borrowed = 0
  #undecided = 0
  /** Bytes received since a forward has been waiting for its decision. */
  #heard = 0
  /** The time limit of a key exchange, during which everything to be sent waits in memory. */
  #exchange: NodeJS.Timeout | undefined
  #isEnding = false
  #reason: string | undefined
  bytesIn = 0
  bytesOut = 0

  constructor(client: Incoming, { software, limits }: { readonly software: string; readonly limits: SshLimits }) {
    this.#client = client
    this.#socket = client._sock
    this.#limits = limits
    this.software = software
    this.roundTrips = new RoundTrips(client._protocol, () => this.#socket.bytesWritten)
  }

  /** Starts serving; call it at once, because the library does not wait for listeners. */
  serve(owner: SshConnection): void {
    this.#owner = owner
    const client = this.#client
    handleGuesses(client._protocol)
    answerRunning(client)
    announceSignatureAlgorithms(client._protocol, (payload) => this.#send(payload))
    client.on('error', (error: Error) => {
      this.#reason ??= error.message
      this.#endSoon()
    })
    // The client sends no more. Without this, a client that does not read would stay online as long as bytes wait for it.
    client.on('end', () => this.#endSoon())
    client.on('handshake', () => {
      clearTimeout(this.#exchange)
      this.#exchange = undefined
    })
    client.on('close', () => {
      clearTimeout(this.#exchange)
      for (const heard of this.#hearing) heard()
      this.#owner?.closed(this.#reason ?? 'the connection was closed')
      this.#owner = undefined
    })
    client.on('authentication', (context: AuthContext) => owner.login(this.#loginOf(context)))
    client.on('ready', () => {
      // The client may have left while its key was looked up.
      if (!this.#isEnding && !this.#socket.destroyed) owner.ready()
    })
    writeByTurns(client._protocol, this.#socket)
    client.on('handshake', () => prepareKeys(client._protocol))
    client.on('rekey', () => this.#drained())
    client.on('request', (accept, reject, name: string, data) => this.#request(accept, reject, name, data))
    client.on('session', (accept: () => Session, reject: () => void) => this.#session(accept, reject))
    client.on('tcpip', (_accept: unknown, reject: () => void) => {
      reject()
      owner.unserved('direct')
    })
    this.#socket.on('drain', () => this.#drained())
    this.#socket.on('data', (chunk: Buffer) => this.#hear(chunk.length))
  }

  /** Whether bytes sent now would only wait, for the socket or for a key exchange. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain || this.#client._protocol._kexinit !== undefined
  }

  /** Calls the stream's `drain` once there is room again. */
  awaitRoom(stream: ChannelStream): void {
    this.#waiting.add(stream)
  }

  /** Allows the client to send this many more bytes on a channel. */
  grant(channel: Channel, bytes: number): void {
    channel.incoming.window += bytes
    this.#client._protocol.channelWindowAdjust(channel.outgoing.id, bytes)
  }

  /** Reserves bytes of the window that all channels share beyond their first windows; false when too few are left. */
  borrow(bytes: number): boolean {
    if (this.#borrowed + bytes > SHARED_WINDOW) return false
    this.#borrowed += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#borrowed -= bytes
  }

  /** Counts bytes of visitors. */
  carried(way: 'in' | 'out', bytes: number): void {
    if (way === 'out') this.bytesOut += bytes
    else {
      this.bytesIn += bytes
      this.#heard -= bytes
    }
  }

  /** The client has closed the channel. */
  closed(stream: ChannelStream): void {
    this.#waiting.delete(stream)
    this.channels--
  }

  /** Opens a channel to the client's service. */
  open(at: ForwardAddress, from: { readonly ip: string; readonly port: number }): Promise<ChannelStream | DialFault> {
    if (this.#isEnding) return Promise.resolve(new DialFault('offline', 'the session of the tunnel is over'))
    if (this.channels >= this.#limits.channels) {
      return Promise.resolve(new DialFault('busy', 'the client has reached its limit of open connections'))
    }
    const { promise, resolve } = Promise.withResolvers<ChannelStream | DialFault>()
    this.channels++
    const window = firstWindow(this.channels)
    let isOverdue = false
    const overdue = setTimeout(() => {
      isOverdue = true
      resolve(new DialFault('timeout', 'the client did not connect to its service in time'))
    }, this.#limits.dialMs)
    const id = this.#client._chanMgr.add((error, channel) => {
      clearTimeout(overdue)
      if (error) {
        this.channels--
        resolve(new DialFault('refused', 'the client could not connect to its service', { cause: error }))
        return
      }
      const stream = new ChannelStream(channel, this, window)
      if (channel.outgoing.packetSize < LEAST_PACKET) {
        this.drop(`its packets are shorter than ${LEAST_PACKET} bytes`)
        resolve(new DialFault('offline', 'the session of the tunnel is over'))
      } else if (isOverdue) stream.reset()
      else resolve(stream)
    })
    const ends = { boundAddr: at.address, boundPort: at.port, remoteAddr: from.ip, remotePort: from.port }
    this.#client._protocol.forwardedTcpip(id, window, PACKET_BYTES, ends)
    return promise
  }

  /**
   * Sends a keep-alive; resolves with whether anything came from the client within `ms`, or later on a slow line, where the
   * keep-alive waits behind visitors' data.
   */
  isAlive(ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const finish = (isAlive: boolean): void => {
      callOff()
      this.#hearing.delete(heard)
      resolve(isAlive)
    }
    const heard = (): void => finish(!this.#isEnding)
    const patience = Math.min(ms + this.roundTrips.unansweredBytes / SLOW_LINE_RATE, LONGEST_CHECK_MS)
    const callOff = limitTime(patience, () => finish(false))
    this.#hearing.add(heard)
    if (this.#client._protocol._kexinit === undefined) this.#client._protocol.ping()
    return promise
  }

  /** Sends a text that clients show during the login. */
  banner(text: string): void {
    if (!this.#isEnding) this.#send(Buffer.concat([Buffer.of(message.banner), string(`${text}\r\n`), string('')]))
  }

  /** Ends the connection with a text that clients show. */
  disconnect(text: string, why: keyof typeof disconnects = 'ended'): void {
    if (this.#isEnding) return
    this.#reason ??= text
    this.#send(Buffer.concat([Buffer.of(message.disconnect), number(disconnects[why]), string(text), string('')]))
    this.#endSoon()
  }

  /** Ends the connection at once, without a message. */
  drop(reason: string): void {
    this.#reason ??= reason
    this.#isEnding = true
    this.#socket.destroy()
  }

  #send(payload: Buffer): void {
    if (!this.#socket.writable) return
    const { _packetRW: packets, _cipher: cipher } = this.#client._protocol
    const start = packets.write.allocStartKEX
    const packet = packets.write.alloc(payload.length, true)
    packet.set(payload, start)
    cipher.encrypt(packets.write.finalize(packet, true))
  }

  #endSoon(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#socket.end()
    setTimeout(() => this.#socket.destroy(), LAST_WORDS_MS).unref()
  }

  #hear(bytes: number): void {
    // The library deciphered as many bytes into new memory.
    noteRead(bytes)
    for (const heard of this.#hearing) heard()
    if (this.#client._protocol._kexinit !== undefined) {
      this.#exchange ??= setTimeout(() => {
        this.drop('it took too long to exchange keys')
      }, this.#limits.authenticationMs).unref()
    }
    if (this.#undecided > 0) {
      this.#heard += bytes
      if (this.#heard > MAX_WHILE_DECIDING) this.drop('it sent too much before its forward was decided')
    }
    if (this.#socket.writableLength > MAX_UNSENT && !this.#socket.isPaused()) {
      this.#socket.pause()
      this.#socket.once('drain', () => this.#socket.resume())
    }
  }

  #drained(): void {
    for (const stream of [...this.#waiting]) {
      if (this.isFull) return
      this.#waiting.delete(stream)
      stream.drain()
    }
  }

  #request(
    accept: ((port?: number) => void) | undefined,
    reject: (() => void) | undefined,
    name: string,
    data: { readonly bindAddr?: string; readonly bindPort?: number },
  ): void {
    const at = { address: data.bindAddr ?? '', port: data.bindPort ?? 0 }
    if (name === 'tcpip-forward') this.#forward(at, accept, reject)
    else if (name === 'cancel-tcpip-forward') {
      accept?.()
      this.#owner?.cancel(at)
    } else {
      reject?.()
      this.#owner?.unserved('socket')
    }
  }

  #forward(at: ForwardAddress, accept: ((port?: number) => void) | undefined, reject: (() => void) | undefined): void {
    if (this.#undecided++ === 0) this.#heard = 0
    let isDecided = false
    const decide = (answer: () => void): void => {
      if (isDecided) return
      isDecided = true
      this.#undecided--
      if (!this.#isEnding) answer()
    }
    this.#owner?.forward(at, {
      accept: (port) => decide(() => accept?.(port)),
      reject: () => decide(() => reject?.()),
    })
  }

  #loginOf(context: AuthContext): LoginAttempt {
    // The library throws when replies and logins that arrived together are out of step.
    const answer = (say: () => void) => () => {
      // The client may have left while its key was looked up. The library would let it in all the same, and send it keep-alives.
      if (this.#isEnding || this.#socket.destroyed) return
      try {
        say()
      } catch {
        this.drop('it sent more logins before the last was answered')
      }
    }
    return {
      user: context.username,
      method: context.method,
      offer: offerOf(context),
      accept: answer(() => context.accept()),
      encourage: answer(() => {
        // Dropbear signs with the algorithm named in our answer. The library would name the key's type, so set the client's.
        if (context.key && context.hashAlgo !== undefined) context.key.algo = rsaSignature(context.hashAlgo)
        context.accept()
      }),
      reject: answer(() => context.reject(['publickey'])),
    }
  }

  #session(accept: () => Session, reject: () => void): void {
    if (this.#terminals >= this.#limits.terminals) {
      reject()
      return
    }
    const session = accept()
    if (session._chanInfo.outgoing.packetSize < LEAST_PACKET) {
      this.drop(`its packets are shorter than ${LEAST_PACKET} bytes`)
      return
    }
    this.#terminals++
    this.#owner?.terminal(new SshTerminal(session))
  }
}

/** Only for the method `publickey`: host-based logins send a key and a signature as well. */
function offerOf({ method, key, hashAlgo: hash, signature, blob }: AuthContext): KeyOffer | undefined {
  if (method !== 'publickey' || key?.algo === undefined || !key.data) return undefined
  return { type: key.algo, blob: key.data, hash, proof: signature && blob && { signature, signed: blob } }
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([number(bytes.length), bytes])
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
