/** A TCP or TLS socket as a byte stream. */
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { type ByteSink, type ByteStream, kept } from './byte-stream.ts'
import { readLent, stopLending } from './lent-reads.ts'
import { noteRead } from './read-memory.ts'
import { StagedWrites } from './staged-writes.ts'

export interface SocketStreamOptions {
  /**
   * Whether the stream reads everything the other end has sent before a failed write ends it. For connections to
   * services: one that refuses an upload answers and closes, and the next write fails; the answer must not be lost to
   * that. Applies to sockets only; other duplexes lose nothing when a write fails.
   */
  readonly outlivesFailedWrite?: boolean
}

/** Takes over `socket`, which must allow half-open connections; nobody else may read it or listen to it from here on. */
export function socketStream(socket: Duplex, options: SocketStreamOptions = {}): ByteStream {
  return new SocketStream(socket, options)
}

type Callback = (error?: Error | null) => void

/** One for all: most visitors leave like this, and an error that says where it was made costs as much as a small read. */
const closedEarly = new Error('the connection closed early')

/** The socket's handler for a write that failed. */
const failing = Symbol('failing')
/** The callback that reports a write to Node. Node uses the same one for every write, so it is wrapped only once. */
const wrote = Symbol('wrote')

interface DeferringSocket extends Duplex {
  [failing]?: (error: Error, done: Callback) => void
  [wrote]?: Callback
}

// One function for all sockets that allocates nothing per write: as cheap as Node's own `_write`, which it wraps.
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
  /** Tells Node that a write failed, which destroys the socket. */
  #failWrite: (() => void) | undefined

  constructor(socket: Duplex, { outlivesFailedWrite = false }: SocketStreamOptions) {
    this.#socket = socket
    this.#staged = new StagedWrites(socket, () => this.#drain())
    socket.on('error', (error: Error) => {
      this.#error ??= error
    })
    socket.on('end', () => {
      this.#isEnded = true
      // Node emits `end` even on a paused socket, when nothing is left to read.
      if (!this.#isPaused) this.#tellEnd()
      this.#failWrite?.()
    })
    socket.on('drain', () => this.#drain())
    socket.on('close', () => {
      this.#close()
      this.#leave()
    })
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
    // While our own end is still being sent Node cannot reset, and after a failed attempt the socket never closes.
    const isEnding = socket.writableEnded && !socket.writableFinished
    // To a peer that takes the end of the connection as the end of a message, a plain close would look clean.
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

  /** Node destroys a socket whose write failed, and drops unread bytes. This delays that until everything is read. */
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

  /** Returns false when reading should stop for now. */
  #lend(chunk: Buffer): boolean {
    // TLS passes on all it has deciphered even when paused: Node queues it, and emits it first, as `data`.
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
    if (!this.#isEnded || !this.#socket.writableFinished) this.#error ??= closedEarly
    this.#sink?.closed(this.#error)
  }

  /**
   * Nobody needs the socket any more. Those of TLS live until the next full collection, however short their connection was:
   * Node gives each a property of its own (`defineHandleReading`), and so a hidden class, which points to it. What was made
   * for the connection must not live on with it, and be copied twice meanwhile.
   */
  #leave(): void {
    const socket = this.#socket
    EventEmitter.prototype.removeAllListeners.call(socket)
    socket.on('error', ignore)
    if (socket instanceof Socket) stopLending(socket)
  }

  /** A sink that throws ends this connection and nothing else. */
  #fail(cause: unknown): void {
    this.#error ??= new Error('the handler of a connection failed', { cause })
    this.#socket.destroy()
  }
}

function ignore(): void {}
