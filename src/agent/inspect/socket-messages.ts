/**
 * Compressed messages of a WebSocket as they were before (RFC 7692). Usually each refers to those before it in its direction,
 * so it can be read as long as none of them was missed; nothing is unpacked until somebody looks.
 */
import { promisify } from 'node:util'
import { constants, inflateRaw } from 'node:zlib'
import type { Sender } from './connection-watch.ts'
import type { InspectedFrame } from './inspected-exchange.ts'
import { unmasked } from './websocket-reader.ts'

/** The longest message that is unpacked, in bytes: a few bytes may become gigabytes. */
const MAX_MESSAGE = 1024 * 1024

/** How far back a message may refer, in bytes. */
const WINDOW_BYTES = 32 * 1024

/** What senders leave off at the end of each message (section 7.2.1). */
const TAIL = Buffer.of(0, 0, 0xff, 0xff)

const inflate = promisify(inflateRaw)

/** Of one direction. */
interface Reading {
  /** Whether each message stands for itself. */
  readonly isFresh: boolean
  /** The end of what the messages so far said; undefined once one of them could not be read. */
  before: Buffer | undefined
  /** The frames of the message that is not complete; undefined when it is not compressed. */
  parts: Buffer[] | undefined
  partsBytes: number
}

const NOTHING: Buffer = Buffer.alloc(0)

export class SocketMessages {
  /** Undefined when nothing was agreed on that is known here. */
  readonly #readings: Readonly<Record<Sender, Reading>> | undefined
  #next = 1

  /** `extensions` is what the service agreed to: the header of its answer. */
  constructor(extensions: string) {
    const [name, ...params] = extensions.split(';').map((part) => part.trim().toLowerCase())
    // With another extension beside it, nobody here knows what the bits of a frame mean.
    if (name !== 'permessage-deflate' || extensions.includes(',')) return
    const reading = (isFresh: boolean): Reading => ({ isFresh, before: NOTHING, parts: undefined, partsBytes: 0 })
    this.#readings = {
      client: reading(params.includes('client_no_context_takeover')),
      service: reading(params.includes('server_no_context_takeover')),
    }
  }

  /** The compressed message that ends with this frame, which comes after the one that was read last; undefined for none. */
  async read(frame: InspectedFrame): Promise<Buffer | undefined> {
    const readings = this.#readings
    if (!readings) return undefined
    if (frame.number !== this.#next) for (const each of Object.values(readings)) lose(each)
    this.#next = frame.number + 1
    const reading = readings[frame.from]
    if (frame.type === 'text' || frame.type === 'binary') {
      reading.parts = frame.isCompressed ? [] : undefined
      reading.partsBytes = 0
    } else if (frame.type !== 'continuation') return undefined
    if (!reading.parts) return undefined
    reading.partsBytes += frame.size
    if (frame.size > frame.bytes.length || reading.partsBytes > MAX_MESSAGE) {
      lose(reading)
      return undefined
    }
    reading.parts.push(unmasked(frame))
    return frame.isLast ? this.#finish(reading) : undefined
  }

  async #finish(reading: Reading): Promise<Buffer | undefined> {
    const { parts, before, isFresh } = reading
    reading.parts = undefined
    if (!parts || !before) return undefined
    try {
      const message = await inflate(Buffer.concat([...parts, TAIL]), {
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: MAX_MESSAGE,
        ...(before.length > 0 && { dictionary: before }),
      })
      if (!isFresh) reading.before = Buffer.concat([before, message.subarray(-WINDOW_BYTES)]).subarray(-WINDOW_BYTES)
      return message
    } catch {
      lose(reading)
      return undefined
    }
  }
}

/** A message could not be read; others that do not refer to it can. */
function lose(reading: Reading): void {
  reading.parts = undefined
  if (!reading.isFresh) reading.before = undefined
}
