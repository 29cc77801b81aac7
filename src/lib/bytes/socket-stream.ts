/** A socket as a stream of bytes: what a TCP or TLS connection looks like to those who only move bytes. */
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { type ByteSink, type ByteStream, kept } from './byte-stream.ts'
import { readLent } from './lent-reads.ts'
import { noteRead } from './read-memory.ts'
import { StagedWrites } from './staged-writes.ts'

export interface SocketStreamOptions {
  /**
   * Whether all that the other end has sent is read before a failed write ends the stream. For connections to services:
   * one that refuses an upload answers and closes, and its answer must not be lost to the write that comes after. Sockets
   * alone: what else carries bytes loses nothing that way.
   */
  readonly outlivesFailedWrite?: boolean
}

/** Takes over `socket`, which must allow half-open connections; nobody else may read it or listen to it from here on. */
export function socketStream(socket: Duplex, options: SocketStreamOptions = {}): ByteStream {
  return new SocketStream(socket, options)
}

type Callback = (error?: Error | null) => void

/** What is done with a write that failed. */
const failing = Symbol('failing')
/** How Node is told of a write, once for the life of the socket: it has one callback for all of them. */
const wrote = Symbol('wrote')

interface DeferringSocket extends Duplex {
  [failing]?: (error: Error, done: Callback) => void
  [wrote]?: Callback
}

// One function for all sockets, on which nothing is made for a write: as cheap as the one of Node that it stands before.
function deferredWrite(this: DeferringSocket, chunk: unknown, encoding: BufferEncoding, done: Callback): void {
  Socket.prototype._write.call(this, chunk, encoding, this[wrote] ?? tellWrites(this, done))
}

function deferredWritev(
  this: DeferringSocket,
  chunks: Parameters<NonNullable<Duplex['_writev']>>[0],
  done: Callback,
): void {
  Socket.prototype._writev?.call(this, chunks, this[wrote] ?? tellWrites(this, done))
}

function tellWrites(socket: DeferringSocket, done: Callback): Callback {
  socket[wrote] = (error) => {
    if (error) socket[failing]?.(error, done)
    else done(error)
  }
  return socket[wrote]
}

class SocketStream implements ByteStream {
  readonly #socket: Duplex
  readonly #staged: StagedWrites
  #sink: ByteSink | undefined
  #error: Error | undefined
  #isEnded = false
  #isEndTold = false
  #isPaused = false
  #isWriterWaiting = false
  #isClosed = false
  /** Tells Node that a write failed, which ends the socket. */
  #failWrite: (() => void) | undefined

  constructor(socket: Duplex, { outlivesFailedWrite = false }: SocketStreamOptions) {
    this.#socket = socket
    this.#staged = new StagedWrites(socket, () => this.#drain())
    socket.on('error', (error: Error) => {
      this.#error ??= error
    })
    socket.on('end', () => {
      this.#isEnded = true
      // Node tells the end of a paused socket too, when nothing else waits to be read.
      if (!this.#isPaused) this.#tellEnd()
      this.#failWrite?.()
    })
    socket.on('drain', () => this.#drain())
    socket.on('close', () => this.#close())
    if (outlivesFailedWrite && socket instanceof Socket) this.#deferFailedWrites(socket)
    if (socket.destroyed) process.nextTick(() => this.#close())
  }

  write(chunk: Buffer): boolean {
    if (this.#isClosed || this.#socket.writableEnded) return false
    this.#staged.flush()
    return this.#noteRoom(this.#socket.write(chunk))
  }

  writeLent(chunk: Buffer): boolean {
    if (this.#isClosed || this.#socket.writableEnded) return false
    return this.#noteRoom(this.#staged.write(chunk))
  }

  end(): void {
    if (this.#socket.writableEnded) return
    this.#staged.flush()
    this.#socket.end()
  }

  reset(): void {
    this.#error ??= new Error('we reset the connection')
    const socket = this.#socket
    // While our own end is on its way Node cannot reset, and having failed at it never closes.
    const isEnding = socket.writableEnded && !socket.writableFinished
    // A plain close looks like a clean end to a peer that counts on the end of the connection as the end of a message.
    if (socket instanceof Socket && !(socket instanceof TLSSocket) && !isEnding) socket.resetAndDestroy()
    else socket.destroy()
  }

  attach(sink: ByteSink): void {
    const isFirst = this.#sink === undefined
    this.#sink = sink
    if (this.#isClosed) {
      sink.closed(this.#error)
      return
    }
    this.#isPaused = this.#isEndTold = false
    if (isFirst) {
      const isLent = readLent(this.#socket, (chunk) => this.#lend(chunk))
      this.#socket.on('data', (chunk: Buffer) => {
        if (!isLent) noteRead(chunk.length)
        this.#take(chunk)
      })
    }
    this.#socket.resume()
    if (this.#isEnded) this.#tellEnd()
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#socket.resume()
    if (this.#isEnded) this.#tellEnd()
  }

  /** Node destroys a socket whose write failed, with all that came and is not read yet. Here that waits for the end of the reads. */
  #deferFailedWrites(socket: DeferringSocket): void {
    socket[failing] = (error, done) => {
      if (this.#isEnded || this.#isClosed) done(error)
      else {
        this.#failWrite = () => {
          this.#failWrite = undefined
          done(error)
        }
      }
    }
    socket._write = deferredWrite
    socket._writev = deferredWritev
  }

  /** False when there should be no more for now. */
  #lend(chunk: Buffer): boolean {
    // TLS hands on all that it has deciphered, paused or not: Node keeps that, and gives it first as `data`.
    if (this.#isPaused || this.#socket.readableLength > 0) return this.#socket.push(kept(chunk))
    const sink = this.#sink
    try {
      if (sink?.lent) sink.lent(chunk)
      else sink?.data(kept(chunk))
    } catch (cause) {
      this.#fail(cause)
    }
    return !this.#isPaused
  }

  #take(chunk: Buffer): void {
    try {
      this.#sink?.data(chunk)
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #noteRoom(hasRoom: boolean): boolean {
    if (!hasRoom) this.#isWriterWaiting = true
    return hasRoom
  }

  #drain(): void {
    if (!this.#isWriterWaiting || this.#isClosed || !this.#staged.hasRoom) return
    this.#isWriterWaiting = false
    try {
      this.#sink?.drain()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #tellEnd(): void {
    if (!this.#sink || this.#isEndTold || this.#isClosed) return
    this.#isEndTold = true
    try {
      this.#sink.end()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #close(): void {
    if (this.#isClosed) return
    if (this.#isEnded) this.#tellEnd()
    this.#isClosed = true
    this.#failWrite?.()
    this.#staged.clear()
    if (!this.#isEnded || !this.#socket.writableFinished) this.#error ??= new Error('the connection closed early')
    this.#sink?.closed(this.#error)
  }

  /** What a sink throws ends this connection and nothing else. */
  #fail(cause: unknown): void {
    this.#error ??= new Error('the handler of a connection failed', { cause })
    this.#socket.destroy()
  }
}
