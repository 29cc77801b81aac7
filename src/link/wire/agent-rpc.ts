/** Calls: each is a stream that carries a JSON object and, for most, another one back. */
import { BadJson, MAX_JSON_VALUES, parseJson, readJson } from '../../lib/text/json.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import { ByteQueue } from './byte-queue.ts'
import type { Mux } from './mux.ts'
import { type StreamType, typeHead } from './stream-types.ts'
import { MESSAGE_BYTES, MESSAGE_DEPTH } from './wire-bounds.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

/** A message in its wire form. */
export type Message = Readonly<Record<string, unknown>>

/** Messages longer than this take more than a millisecond or so to parse. */
const LARGE_MESSAGE_BYTES = 16 * 1024

/** How long a command may go unanswered, in milliseconds; some agents never answer (D44). */
export const CALL_TIMEOUT_MS = 10_000

/**
 * Reads one message and calls `done` once: with the message, or with the error. Senders wait for the answer before they
 * end their side, so the last bracket completes a message.
 */
export function readMessage(
  stream: WireStream,
  done: (message: Message | WireError) => void,
  { maxBytes = MESSAGE_BYTES, maxValues = MAX_JSON_VALUES } = {},
): void {
  const scanner = new JsonScanner()
  const bytes = new ByteQueue()
  let isDone = false
  const finish = (result: Message | WireError): void => {
    isDone = true
    done(result)
  }
  stream.attach({
    data(chunk) {
      if (isDone) return
      const found = scanner.scan(chunk)
      if (found === 'bad') return finish(invalid('the message is not a JSON object'))
      if (bytes.length + found.bytes > maxBytes) {
        return finish(new WireError('message_too_large', 'peer', `the message is longer than ${maxBytes} bytes`))
      }
      bytes.push(chunk.subarray(0, found.bytes))
      if (!found.isWhole) return
      const whole = bytes.take(bytes.length) ?? Buffer.alloc(0)
      if (whole.length <= LARGE_MESSAGE_BYTES) return finish(parseMessage(whole))
      isDone = true
      void readLargeMessage(whole, maxValues, done)
    },
    // Errors are made only when they are reported, since each captures a stack.
    end() {
      if (!isDone) finish(invalid('the stream ended within the message'))
    },
    drain() {},
    closed(error) {
      if (!isDone) finish(error ?? invalid('the stream closed within the message'))
    },
  })
}

/** Answers and closes the stream: some agents wait for its end, others never send theirs. */
export function answer(stream: WireStream, message: Message): void {
  stream.write(Buffer.from(JSON.stringify(message)))
  stream.close()
}

/** Sends a message, or its bytes, as a stream of `type` and resolves with the answer, or with why there is none. Never rejects. */
export function call(
  mux: Mux,
  type: number,
  message: Message | Buffer,
  { timeoutMs = CALL_TIMEOUT_MS, maxBytes = MESSAGE_BYTES, maxValues = MAX_JSON_VALUES } = {},
): Promise<Message | WireError> {
  const stream = mux.open(messageHead(type, message))
  if (stream instanceof WireError) return Promise.resolve(stream)
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(new WireError('timed_out', 'peer', `the peer did not answer in ${timeoutMs} ms`))
      stream.reset('stream_cancelled')
    }, timeoutMs)
    const done = (result: Message | WireError): void => {
      clearTimeout(timer)
      stream.close()
      resolve(result)
    }
    readMessage(stream, done, { maxBytes, maxValues })
  })
}

/** Sends a message that has no answer. */
export function tell(mux: Mux, type: StreamType, message: Message): WireError | undefined {
  const stream = mux.open(messageHead(type, message))
  if (stream instanceof WireError) return stream
  stream.close()
  return undefined
}

/** The type number and the message in one write: some agents read the number in a single read. */
function messageHead(type: number, message: Message | Buffer): Buffer {
  return Buffer.concat([typeHead(type), Buffer.isBuffer(message) ? message : Buffer.from(JSON.stringify(message))])
}

/** Parses the bytes of one JSON object. */
export function parseMessage(bytes: Buffer): Message | WireError {
  try {
    return asMessage(parseJson(bytes, { maxDepth: MESSAGE_DEPTH, maxValues: MAX_JSON_VALUES }))
  } catch (error) {
    return invalidJson(error)
  }
}

/** Uses its own turns of the event loop, between receiving the message and using it. */
async function readLargeMessage(
  bytes: Buffer,
  maxValues: number,
  done: (message: Message | WireError) => void,
): Promise<void> {
  await ownTurn()
  const message = await readJson(bytes, { maxDepth: MESSAGE_DEPTH, maxValues }).then(asMessage, invalidJson)
  await ownTurn()
  done(message)
}

function asMessage(value: unknown): Message | WireError {
  return isMessage(value) ? value : invalid('the message is not a JSON object')
}

function invalidJson(cause: unknown): WireError {
  if (!(cause instanceof BadJson)) throw cause
  return invalid('the message is not acceptable JSON', cause)
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(what: string, cause?: unknown): WireError {
  return new WireError('message_invalid', 'peer', what, { cause })
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Finds the end of a JSON object while its bytes arrive: senders do not mark the end of messages. */
class JsonScanner {
  #depth = 0
  #inString = false
  #isEscaped = false

  /** How many bytes of `chunk` belong to the object: all of them while it is open; `'bad'` when it is not an object. */
  scan(chunk: Buffer): { readonly bytes: number; readonly isWhole: boolean } | 'bad' {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#inString = false
      } else if (byte === QUOTE) {
        if (this.#depth === 0) return 'bad'
        this.#inString = true
      } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        if (this.#depth === 0 && byte === OPEN_LIST) return 'bad'
        if (++this.#depth > MESSAGE_DEPTH) return 'bad'
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        if (--this.#depth < 0) return 'bad'
        if (this.#depth === 0) return { bytes: i + 1, isWhole: true }
      } else if (this.#depth === 0 && !isSpace(byte)) return 'bad'
    }
    return { bytes: chunk.length, isWhole: false }
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
