/**
 * A channel of an SSH connection as a stream of bytes. The library's own stream is passed by: it takes bytes beyond the
 * window it granted, holds two megabytes for every reader that stalls, and closes both ways when one ends.
 */
import type { Channel } from 'ssh2'
import { type ByteSink, type ByteStream, kept } from '../lib/bytes/byte-stream.ts'

/** What a channel needs of the connection that carries it. */
export interface Carrier {
  /** Whether what is sent now would only wait: for the socket, or for keys that are being exchanged. */
  readonly isFull: boolean
  /** Calls `drain` once there is room again. */
  awaitRoom(stream: ChannelStream): void
  /** Bytes that the client may send on a channel before some are read. */
  grant(channel: Channel, bytes: number): void
  /** Takes part of what all channels together may grant beyond their first window; false when there is none left. */
  borrow(bytes: number): boolean
  giveBack(bytes: number): void
  /** The client broke the rules of the protocol. */
  violated(what: string): void
  carried(way: 'in' | 'out', bytes: number): void
  /** The client has let go of the channel. */
  closed(stream: ChannelStream): void
}

/** What a channel may send first, in bytes; more once its reader keeps up. */
const FIRST_WINDOW = 256 * 1024

/** The same when there are many already: they all could send it, and nobody need read. */
const SMALL_WINDOW = 32 * 1024
const MANY_CHANNELS = 256

/** What the next channel may send first, of a connection that has so many. */
export function firstWindow(channels: number): number {
  return channels > MANY_CHANNELS ? SMALL_WINDOW : FIRST_WINDOW
}

const LARGEST_WINDOW = 2 * 1024 * 1024

/** The least a client must take in one packet, in bytes: each costs us the same, however small. */
export const LEAST_PACKET = 1024

export class ChannelStream implements ByteStream {
  readonly #channel: Channel
  readonly #carrier: Carrier
  #sink: ByteSink | undefined
  /** Came already, and was not wanted yet. */
  #unread: Buffer[] = []
  #isPaused = true
  #isEndReceived = false
  #isEndTold = false
  /** Written, and not yet sent: the client grants no more, or the connection is full. */
  #unsent: Buffer[] = []
  #isSending = false
  #isWriterWaiting = false
  #isEnding = false
  #isEndSent = false
  #isClosed = false
  #error: Error | undefined
  readonly #first: number
  #window: number
  /** Read since the window was last filled up. */
  #read = 0
  #wasPaused = false

  /** `window` is what the client was granted when the channel was opened, in bytes. */
  constructor(channel: Channel, carrier: Carrier, window: number) {
    this.#channel = channel
    this.#carrier = carrier
    this.#first = window
    this.#window = window
    channel.incoming.window = window
    channel.push = (chunk: Buffer | null) => this.#received(chunk)
    channel.on('error', () => {})
  }

  write(chunk: Buffer): boolean {
    if (this.#isClosed || this.#isEnding) return false
    this.#unsent.push(chunk)
    this.#send()
    const hasRoom = this.#unsent.length === 0 && !this.#isSending && !this.#carrier.isFull
    if (!hasRoom) {
      this.#isWriterWaiting = true
      if (this.#carrier.isFull) this.#carrier.awaitRoom(this)
    }
    return hasRoom
  }

  /** A packet of the library's is a copy, so what can leave at once needs no other. */
  writeLent(chunk: Buffer): boolean {
    const isFree = this.#unsent.length === 0 && !this.#isSending && !this.#carrier.isFull
    return this.write(isFree && this.#channel.outgoing.window >= chunk.length ? chunk : kept(chunk))
  }

  end(): void {
    if (this.#isClosed || this.#isEnding) return
    this.#isEnding = true
    this.#sendEnd()
  }

  reset(): void {
    this.#error ??= new Error('the channel was given up')
    this.#channel.close()
    this.#close()
  }

  attach(sink: ByteSink): void {
    this.#sink = sink
    // Not before who attaches knows the stream.
    if (this.#isClosed) process.nextTick(() => this.resume())
    else this.resume()
  }

  pause(): void {
    this.#isPaused = true
    this.#wasPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#deliver()
  }

  /** There is room on the connection again. */
  drain(): void {
    if (this.#isClosed) return
    this.#send()
    this.#tellRoom()
  }

  /** Nothing more is sent; what came already is still handed over, unless something went wrong. */
  #close(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#error ??= error
    if (this.#unsent.length > 0 || this.#isSending) {
      this.#error ??= new Error('the client closed the channel before all was sent')
    }
    this.#unsent = []
    this.#carrier.giveBack(this.#window - this.#first)
    this.#deliver()
  }

  /** In place of the library's own: always false, so that it leaves the window to us. */
  #received(chunk: Buffer | null): boolean {
    if (chunk === null) this.#receivedEnd()
    else if (!this.#isClosed) this.#receivedBytes(chunk)
    return false
  }

  #receivedEnd(): void {
    // The end of one way and the close of both are told by the same call.
    if (this.#channel.incoming.state === 'closed') {
      this.#carrier.closed(this)
      this.#close(this.#isEndReceived ? undefined : new Error('the client closed the channel before its end'))
      return
    }
    this.#isEndReceived = true
    this.#deliver()
    this.#closeIfOver()
  }

  #receivedBytes(chunk: Buffer): void {
    this.#carrier.carried('in', chunk.length)
    if (this.#channel.incoming.window < 0) this.#carrier.violated('it sent more on a channel than it may')
    else if (this.#sink && !this.#isPaused && this.#unread.length === 0) this.#give(this.#sink, chunk)
    else this.#unread.push(chunk)
  }

  #give(sink: ByteSink, chunk: Buffer): void {
    // Every packet is deciphered into memory of its own, so it may be kept; who passes it on gathers what is lent.
    if (sink.lent) sink.lent(chunk)
    else sink.data(chunk)
    this.#refill(chunk.length)
  }

  #deliver(): void {
    const sink = this.#sink
    if (!sink) return
    while (!this.#isPaused && !this.#error) {
      const chunk = this.#unread.shift()
      if (!chunk) break
      this.#give(sink, chunk)
    }
    const isRead = this.#unread.length === 0 && !this.#isPaused
    if (isRead && this.#isEndReceived && !this.#isEndTold && !this.#error) {
      this.#isEndTold = true
      sink.end()
    }
    if (this.#isClosed && (isRead || this.#error)) this.#tellClosed()
  }

  /** Grants what was read once that is half of the window; who reads without a pause is granted more. */
  #refill(bytes: number): void {
    this.#read += bytes
    if (this.#isClosed || this.#isEndReceived || this.#read < this.#window / 2) return
    let more = 0
    if (!this.#wasPaused && this.#window < LARGEST_WINDOW && this.#carrier.borrow(this.#window)) more = this.#window
    this.#window += more
    this.#carrier.grant(this.#channel, this.#read + more)
    this.#read = 0
    this.#wasPaused = false
  }

  #send(): void {
    while (!this.#isSending && !this.#isClosed && !this.#carrier.isFull) {
      const chunk = this.#unsent.shift()
      if (!chunk) break
      this.#isSending = true
      // Calls back at once when the client granted enough, otherwise when it has.
      this.#channel._write(chunk, 'latin1', () => {
        this.#isSending = false
        this.#carrier.carried('out', chunk.length)
        if (this.#isClosed) return
        if (this.#unsent.length > 0) queueMicrotask(() => this.#send())
        else this.#tellRoom()
      })
    }
    if (this.#unsent.length > 0 && this.#carrier.isFull) this.#carrier.awaitRoom(this)
    this.#sendEnd()
  }

  #sendEnd(): void {
    // `eof`, since `end` would close the other way too.
    if (!this.#isEnding || this.#isEndSent || this.#unsent.length > 0 || this.#isSending) return
    this.#isEndSent = true
    this.#channel.eof()
    this.#closeIfOver()
  }

  #tellRoom(): void {
    this.#sendEnd()
    if (!this.#isWriterWaiting || this.#isClosed || this.#unsent.length > 0 || this.#isSending) return
    if (this.#carrier.isFull) {
      this.#carrier.awaitRoom(this)
      return
    }
    this.#isWriterWaiting = false
    this.#sink?.drain()
  }

  /** Both ways have ended in order: the client closes too once it hears of it. */
  #closeIfOver(): void {
    if (this.#isEndReceived && this.#isEndSent) this.#channel.close()
  }

  #tellClosed(): void {
    const sink = this.#sink
    if (!sink) return
    this.#sink = undefined
    sink.closed(this.#error)
  }
}
