/** The beginning of a relayed stream: a request for a tunnel, and the answer that it is reached or why not. */

import { DialFault, type DialReason, type DialRequest, VERSION_CHARACTERS } from '../../model/dial.ts'
import { parseMessage } from '../wire/agent-rpc.ts'
import { typeHead } from '../wire/stream-types.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'

/**
 * The type number of a relayed stream; no agent's session uses it. During an upgrade old and new planes relay to each other:
 * fields may be added, since unknown ones are ignored, but an incompatible request needs another number.
 */
export const RELAY_TYPE = 0x72656c31

/**
 * The type number of a stream that carries the calls of one plane to another of its node. A plane of an earlier version, during an
 * upgrade, refuses it.
 */
export const WORKER_CALLS_TYPE = 0x72656c70

/** The type number of an empty stream, by which a plane says that it is leaving and wants no new streams. */
export const LEAVE_TYPE = 0x72656c39

/** Longest preamble or answer, in bytes; a session sends it in one frame. */
export const PREAMBLE_BYTES = 8 * 1024

/** Most characters of a fault's message that are sent. */
const MESSAGE_CHARACTERS = 1000

/** A request or an answer is a length, in this many bytes, and a JSON object; the answer for success has length 0. */
const LENGTH_BYTES = 2

const isProto = oneOf<DialRequest['proto']>('http', 'https', 'tcp', 'tls')
const isEdge = oneOf<DialRequest['edge']>('none', 'tcp', 'tls', 'https')
/**
 * The reasons that a plane may send. `unreachable` is not among them: a plane that answers was reached, so only the dialling end
 * finds that.
 */
const isReason = oneOf<DialReason>('offline', 'busy', 'timeout', 'refused')

/** The answer for a tunnel that was reached. */
export const REACHED = Buffer.alloc(LENGTH_BYTES)

/** The head of a relayed stream, for `Mux.open`; undefined when the request is too long. */
export function buildPreamble(request: DialRequest): Buffer | undefined {
  const part = buildPart(request)
  if (!part) return undefined
  return Buffer.concat([typeHead(RELAY_TYPE), part])
}

export function buildFault({ reason, message }: DialFault): Buffer {
  const known = isReason(reason) ? reason : 'offline'
  const part = buildPart({ reason: known, message: message.slice(0, MESSAGE_CHARACTERS) })
  return part ?? Buffer.alloc(0) // never: the message is cut
}

/** The length and the JSON of an object; undefined when it is too long. */
export function buildPart(value: object): Buffer | undefined {
  const json = JSON.stringify(value)
  const length = Buffer.byteLength(json)
  if (length > PREAMBLE_BYTES) return undefined
  const part = Buffer.allocUnsafe(LENGTH_BYTES + length)
  part.writeUInt16BE(length)
  part.write(json, LENGTH_BYTES)
  return part
}

/**
 * Reads one preamble or answer from a stream without a sink, and calls `done` once with its bytes. They are undefined when the
 * stream ended within the preamble or answer, or when its length is not allowed. The bytes after it are left to whoever attaches.
 */
export function readPart(stream: WireStream, done: (bytes: Buffer | undefined) => void): void {
  let length: number | undefined
  const finish = (bytes: Buffer | undefined): void => {
    stream.onArrival = undefined
    done(bytes)
  }
  const proceed = (): void => {
    length ??= stream.take(LENGTH_BYTES)?.readUInt16BE(0)
    const isAllowed = length === undefined || length <= PREAMBLE_BYTES
    const bytes = length !== undefined && isAllowed ? takeAll(stream, length) : undefined
    if (bytes || !isAllowed || stream.isClosed || stream.isEndReceived) finish(bytes)
  }
  stream.onArrival = proceed
  proceed()
}

function takeAll(stream: WireStream, length: number): Buffer | undefined {
  return length === 0 ? Buffer.alloc(0) : stream.take(length)
}

/** Undefined when the bytes are not a request. */
export function parseRequest(bytes: Buffer): DialRequest | undefined {
  const message = parseMessage(bytes)
  if (message instanceof WireError) return undefined
  const { tunnelId, ip, port, proto, edge, passthroughTls, requestId, version } = message
  if (typeof tunnelId !== 'string' || typeof ip !== 'string' || typeof passthroughTls !== 'boolean') return undefined
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 0 || port > 65_535) return undefined
  if (!isProto(proto) || !isEdge(edge)) return undefined
  if (requestId !== undefined && typeof requestId !== 'string') return undefined
  if (version !== undefined && (typeof version !== 'string' || version.length > VERSION_CHARACTERS)) return undefined
  return {
    ...{ tunnelId, ip, port, proto, edge, passthroughTls },
    ...(requestId !== undefined && { requestId }),
    ...(version !== undefined && { version }),
  }
}

/** Undefined when the bytes are not a fault. */
export function parseFault(bytes: Buffer): DialFault | undefined {
  const fields = parseMessage(bytes)
  if (fields instanceof WireError) return undefined
  const { reason, message } = fields
  return isReason(reason) && typeof message === 'string' ? new DialFault(reason, message) : undefined
}

function oneOf<T>(...values: readonly T[]): (value: unknown) => value is T {
  const all: readonly unknown[] = values
  return (value): value is T => all.includes(value)
}
