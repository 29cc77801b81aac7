/** The outgoing side of a session, and its order: one write per turn, control frames first, streams in turn. */
import { Batch } from './batch.ts'
import { FIN } from './frame.ts'
import type { MuxStream } from './stream.ts'
import type { Transport } from './transport.ts'
import { Turns } from './turns.ts'
import {
  EAGER_MESSAGES,
  GOAWAY_TEXT_BYTES,
  LONE_FRAME_BYTES,
  PENDING_RESETS,
  SHARED_FRAME_BYTES,
  STREAM_ID_LIMIT,
} from './wire-bounds.ts'
import { type WireCode, wireCodes } from './wire-error.ts'

/** Every agent ignores WNDINC for this stream: a frame without effect. */
const NO_STREAM = STREAM_ID_LIMIT

interface Reset {
  readonly id: number
  readonly code: WireCode
  readonly withFin: boolean
}

export class MuxOutbox {
  readonly #transport: Transport
  readonly #schedule: (run: () => void) => void
  readonly #maxResets: number
  readonly #batch = new Batch()
  /** Streams that have a frame to send. */
  readonly #ready = new Turns<MuxStream>(1)
  /** Streams that owe their peer credit. */
  readonly #owed = new Turns<MuxStream>(2)
  /** Streams whose writers wait for the batch to be sent. */
  readonly #waiting = new Turns<MuxStream>(4)
  readonly #runTurn = (): void => {
    this.#isScheduled = false
    this.#flush()
  }
  readonly #runPrompt = (): void => this.#flush()
  readonly #runEarly = (): void => {
    if (this.#gathered >= EAGER_MESSAGES) this.#flush()
  }
  #resets: Reset[] = []
  #bytesOut = 0
  /** How many messages were queued since the last write. */
  #gathered = 0
  #isKickDue = false
  #isScheduled = false
  #isBlocked = false
  #isClosed = false

  constructor(transport: Transport, schedule: (run: () => void) => void, maxResets = PENDING_RESETS) {
    this.#transport = transport
    this.#schedule = schedule
    this.#maxResets = maxResets
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  addReady(stream: MuxStream): void {
    if (this.#isClosed) return
    if (this.#ready.add(stream)) {
      this.#count()
      if (stream.isPrompt) process.nextTick(this.#runPrompt)
    }
    this.#wake()
  }

  /** Takes as many lent bytes as fit, unless another stream has data to send; returns their number. */
  takeLent(stream: MuxStream, chunk: Buffer): number {
    const batch = this.#batch
    if (this.#isClosed || this.#ready.size > 0 || batch.isFull) return 0
    let taken = 0
    while (taken < chunk.length && stream.isClear && batch.room > 0)
      taken += stream.emitLent(batch, chunk, taken, Math.min(LONE_FRAME_BYTES, batch.room))
    // Sending now, and not at the end of the turn, makes room, so that the writer need not stop.
    if (batch.isFull && !this.#isBlocked) this.#send()
    this.#count()
    this.#wake()
    return taken
  }

  /** Whether a writer may go on; if not, its stream's `proceed` is called when the batch is sent. */
  hasRoomFor(stream: MuxStream): boolean {
    if (this.#batch.isFull) this.#waiting.add(stream)
    return !this.#batch.isFull
  }

  addCredit(stream: MuxStream): void {
    if (this.#isClosed) return
    this.#owed.add(stream)
    this.#wake()
  }

  /** False when too many resets are pending because the peer does not read them. */
  addReset(reset: Reset): boolean {
    // A peer that goes on sending on a stream gets one reset a turn, not one a frame.
    if (this.#resets.at(-1)?.id === reset.id) return true
    if (this.#resets.length >= this.#maxResets) return false
    this.#resets.push(reset)
    this.#wake()
    return true
  }

  /** Sends a frame without effect, unless something else is sent this turn. */
  kick(): void {
    this.#isKickDue = true
    this.#wake()
  }

  /** Credit that is due is still sent: without a window, a peer could never learn that the stream is closed. */
  forget(stream: MuxStream): void {
    this.#ready.remove(stream)
    this.#waiting.remove(stream)
  }

  /** The transport has room again. */
  drained(): void {
    this.#isBlocked = false
    this.#flush()
  }

  /** Sends one batch, a GOAWAY, and then nothing more. */
  close(lastId: number, code: WireCode, text: string): void {
    if (this.#isClosed) return
    this.#fill()
    // A sink that was called meanwhile may have ended the session.
    if (this.#isClosed) return
    this.stop()
    this.#batch.goAway(lastId, wireCodes[code], Buffer.from(text).subarray(0, GOAWAY_TEXT_BYTES))
    this.#send()
    this.#transport.end()
  }

  stop(): void {
    this.#isClosed = true
    this.#ready.takeAll()
    this.#owed.takeAll()
    this.#waiting.takeAll()
    this.#resets = []
  }

  /** Counts a message. Many are sent early, so that the peer can start on them while the turn goes on. */
  #count(): void {
    if (++this.#gathered === EAGER_MESSAGES) queueMicrotask(this.#runEarly)
  }

  #wake(): void {
    if (this.#isScheduled || this.#isBlocked || this.#isClosed) return
    this.#isScheduled = true
    this.#schedule(this.#runTurn)
  }

  #flush(): void {
    if (this.#isBlocked || this.#isClosed) return
    this.#gathered = 0
    this.#fill()
    if (this.#isClosed) return
    if (this.#isKickDue && this.#batch.bytes === 0) this.#batch.credit(NO_STREAM, 1)
    this.#isKickDue = false
    this.#send()
    this.#callWaiting()
    if (this.#ready.size > 0 || this.#owed.size > 0 || this.#resets.length > 0) this.#wake()
  }

  #fill(): void {
    const batch = this.#batch
    while (!batch.isFull) {
      const stream = this.#owed.shift()
      if (stream === undefined) break
      const credit = stream.window.credit()
      if (credit > 0) batch.credit(stream.id, credit)
    }
    if (batch.isFull) return
    if (this.#resets.length > 0) this.#fillResets()
    // A stream with more to send goes to the back of the queue, and this loop comes to it again.
    for (let stream = this.#ready.shift(); stream !== undefined; stream = this.#ready.shift()) {
      const max = this.#ready.size > 0 ? SHARED_FRAME_BYTES : LONE_FRAME_BYTES
      if (stream.emit(batch, max)) this.#ready.add(stream)
      if (batch.isFull) break
    }
  }

  #fillResets(): void {
    // A batch has room for this many; the others are sent with later batches.
    const rest = this.#resets.splice(PENDING_RESETS)
    for (const { id, code, withFin } of this.#resets) {
      if (withFin) this.#batch.data(id, FIN, 0)
      this.#batch.reset(id, wireCodes[code])
    }
    this.#resets = rest
  }

  #send(): void {
    if (this.#batch.bytes === 0) return
    this.#bytesOut += this.#batch.bytes
    if (!this.#batch.sendTo(this.#transport)) this.#isBlocked = true
  }

  #callWaiting(): void {
    if (this.#waiting.size === 0) return
    // Takes all of them first, so that a stream that must wait again waits for the next batch.
    for (const stream of this.#waiting.takeAll()) stream.proceed()
  }
}
