/** A channel of an SSH connection as a byte stream, which bypasses the library's own stream. */
import type { Channel } from 'ssh2'
import { type ByteSink, type ByteStream, keepBytes } from '../../lib/bytes/byte-stream.ts'
import type { SshLink } from './ssh-link.ts'

/** The first window of a channel, in bytes; it grows while the reader keeps up. */
const FIRST_WINDOW = 256 * 1024

/** The same when there are many channels: each client could fill all windows while nobody reads. */
const SMALL_WINDOW = 32 * 1024
const MANY_CHANNELS = 256

/** The first window of the next channel on a connection that has this many. */
export function firstWindow(channels: number): number {
  return channels > MANY_CHANNELS ? SMALL_WINDOW : FIRST_WINDOW
}

const LARGEST_WINDOW = 2 * 1024 * 1024

/** The smallest packet size that a client may ask for, in bytes: every packet costs us the same, however small. */
export const LEAST_PACKET = 1024

/**
 * The library's own stream accepts bytes beyond the window it granted, buffers two megabytes for every stalled reader, and closes
 * both directions when one ends.
 */
export class ChannelStream implements ByteStream {
  readonly #channel: Channel
  readonly #link: SshLink
  #sink: ByteSink | undefined
  /** Received, but not handed to a sink yet. */
  #unread: Buffer[] = []
  #isPaused = true
  #isEndReceived = false
  #isEndReported = false
  /** Written, but not sent yet: the client's window is used up, or the connection is full. */
  #unsent: Buffer[] = []
  #isSending = false
  #isWriterWaiting = false
  #isEnding = false
  #isEndSent = false
  #isClosed = false
  #error: Error | undefined
  readonly #first: number
  #window: number
  /** Bytes read since the window was last refilled. */
  #read = 0
  #wasPaused = false

  /** `window` is the window that the client was granted when the channel was opened, in bytes. */
  constructor(channel: Channel, link: SshLink, window: number) {
    this.#channel = channel
    this.#link = link
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
    const hasRoom = this.#unsent.length === 0 && !this.#isSending && !this.#link.isFull
    if (!hasRoom) {
      this.#isWriterWaiting = true
      if (this.#link.isFull) this.#link.awaitRoom(this)
    }
    return hasRoom
  }

  /** The library copies bytes into its packet, so bytes that can be sent at once need no copy of ours. */
  writeLent(chunk: Buffer): boolean {
    const isFree = this.#unsent.length === 0 && !this.#isSending && !this.#link.isFull
    return this.write(isFree && this.#channel.outgoing.window >= chunk.length ? chunk : keepBytes(chunk))
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
    // Later, so that the caller of `attach` is not called back before it returns.
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

  /** The connection has room again. */
  drain(): void {
    if (this.#isClosed) return
    this.#send()
    this.#notifyRoom()
  }

  /** Sends nothing more. Bytes that arrived before are still delivered, unless there was an error. */
  #close(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#error ??= error
    if (this.#unsent.length > 0 || this.#isSending) {
      this.#error ??= new Error('the client closed the channel before all was sent')
    }
    this.#unsent = []
    this.#link.giveBack(this.#window - this.#first)
    this.#deliver()
  }

  /** Replaces the library's own handler; always returns false, so that the library leaves the window to us. */
  #received(chunk: Buffer | null): boolean {
    if (chunk === null) this.#receivedEnd()
    else if (!this.#isClosed) this.#receivedBytes(chunk)
    return false
  }

  #receivedEnd(): void {
    // The library makes the same call for the end of one direction and for the close of the channel.
    if (this.#channel.incoming.state === 'closed') {
      this.#link.closed(this)
      this.#close(this.#isEndReceived ? undefined : new Error('the client closed the channel before its end'))
      return
    }
    this.#isEndReceived = true
    this.#deliver()
    this.#closeIfOver()
  }

  #receivedBytes(chunk: Buffer): void {
    this.#link.carried('in', chunk.length)
    if (this.#channel.incoming.window < 0) this.#link.drop('it sent more on a channel than it may')
    else if (this.#sink && !this.#isPaused && this.#unread.length === 0) this.#give(this.#sink, chunk)
    else this.#unread.push(chunk)
  }

  #give(sink: ByteSink, chunk: Buffer): void {
    // Each packet has its own memory, so the bytes could be kept. They are still lent, because relays gather lent bytes.
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
    if (isRead && this.#isEndReceived && !this.#isEndReported && !this.#error) {
      this.#isEndReported = true
      sink.end()
    }
    if (this.#isClosed && (isRead || this.#error)) this.#notifyClosed()
  }

  /** Grants the bytes that were read once they are half of the window; doubles the window if the reader never paused. */
  #refill(bytes: number): void {
    this.#read += bytes
    if (this.#isClosed || this.#isEndReceived || this.#read < this.#window / 2) return
    let more = 0
    if (!this.#wasPaused && this.#window < LARGEST_WINDOW && this.#link.borrow(this.#window)) more = this.#window
    this.#window += more
    this.#link.grant(this.#channel, this.#read + more)
    this.#read = 0
    this.#wasPaused = false
  }

  #send(): void {
    while (!this.#isSending && !this.#isClosed && !this.#link.isFull) {
      const chunk = this.#unsent.shift()
      if (!chunk) break
      this.#isSending = true
      // Calls back as soon as the client's window has room for the whole chunk.
      this.#channel._write(chunk, 'latin1', () => {
        this.#isSending = false
        this.#link.carried('out', chunk.length)
        if (this.#isClosed) return
        if (this.#unsent.length > 0) queueMicrotask(() => this.#send())
        else this.#notifyRoom()
      })
    }
    if (this.#unsent.length > 0 && this.#link.isFull) this.#link.awaitRoom(this)
    this.#sendEnd()
  }

  #sendEnd(): void {
    // `eof`, because `end` would close the other direction too.
    if (!this.#isEnding || this.#isEndSent || this.#unsent.length > 0 || this.#isSending) return
    this.#isEndSent = true
    this.#channel.eof()
    this.#closeIfOver()
  }

  #notifyRoom(): void {
    this.#sendEnd()
    if (!this.#isWriterWaiting || this.#isClosed || this.#unsent.length > 0 || this.#isSending) return
    if (this.#link.isFull) {
      this.#link.awaitRoom(this)
      return
    }
    this.#isWriterWaiting = false
    this.#sink?.drain()
  }

  /** Closes the channel once both directions have ended; the client then closes its side too. */
  #closeIfOver(): void {
    if (this.#isEndReceived && this.#isEndSent) this.#channel.close()
  }

  #notifyClosed(): void {
    const sink = this.#sink
    if (!sink) return
    this.#sink = undefined
    sink.closed(this.#error)
  }
}
