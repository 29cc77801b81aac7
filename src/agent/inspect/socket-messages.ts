/** Decompresses the messages of a WebSocket (RFC 7692). */
import { promisify } from 'node:util'
import { constants, inflateRaw } from 'node:zlib'
import type { Sender } from './connection-watch.ts'
import type { InspectedFrame } from './inspected-exchange.ts'
import { unmask } from './websocket-reader.ts'

/** The longest message that is decompressed, in bytes: a few bytes may become gigabytes. */
const MAX_MESSAGE = 1024 * 1024

/** How far back a message may refer, in bytes. */
const WINDOW_BYTES = 32 * 1024

/** What senders cut off at the end of each message (section 7.2.1). */
const TAIL = Buffer.of(0, 0, 0xff, 0xff)

const inflate = promisify(inflateRaw)

/** The state of one direction. */
interface Reading {
  /** Whether each message is compressed independently. */
  readonly isFresh: boolean
  /** The last bytes of the messages so far; undefined once one of them could not be read. */
  before: Buffer | undefined
  /** The frames of the incomplete message; undefined if it is not compressed. */
  parts: Buffer[] | undefined
  partsBytes: number
}

const NOTHING: Buffer = Buffer.alloc(0)

/**
 * Most messages refer to earlier ones of their direction, so a message can be read if none before it was missed. Nothing is
 * decompressed until somebody looks.
 */
export class SocketMessages {
  /** Undefined if no known compression was negotiated. */
  readonly #readings: Readonly<Record<Sender, Reading>> | undefined
  #next = 1

  /** `extensions` is what the service accepted: the header of its response. */
  constructor(extensions: string) {
    const [name, ...params] = extensions.split(';').map((part) => part.trim().toLowerCase())
    // With another extension beside it, the meaning of the bits of a frame is unknown.
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
    reading.parts.push(unmask(frame))
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

/** Called when a message could not be read; others that do not refer to it still can. */
function lose(reading: Reading): void {
  reading.parts = undefined
  if (!reading.isFresh) reading.before = undefined
}
