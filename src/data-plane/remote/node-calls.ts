/** Calls between nodes: a stream that carries a JSON object `{ask}`, and `{ok}` or `{fault}` back. */
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { type Message, readMessage } from '../../link/wire/agent-rpc.ts'
import type { Mux } from '../../link/wire/mux.ts'
import { typeHead } from '../../link/wire/stream-types.ts'
import { MESSAGE_BYTES } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import type { NodePlane } from './node-identity.ts'

/** The type number of a call; neither an agent's session nor a relayed stream uses it. */
export const CALL_TYPE = 0x72656c63

/** Answers another node: with one JSON value, or by throwing an error whose message is sent to it. */
export type AnswerNode = (from: NodePlane, value: unknown) => Promise<unknown>

/** Why a call has no answer. */
export class NodeCallFault extends Error {
  /**
   * `unreachable`: the call was not sent. `closed`: the link broke; `timeout`: no answer came in time; after either, it may
   * have been carried out. `failed`: the other node says so. `invalid`: the call or its answer is too large or not JSON.
   */
  readonly reason: 'unreachable' | 'closed' | 'timeout' | 'failed' | 'invalid'

  constructor(reason: NodeCallFault['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NodeCallFault'
    this.reason = reason
  }
}

export interface NodeCallsOptions {
  readonly answer: AnswerNode
  readonly log: Logger
  /** Instead of the limits below, for tests. */
  readonly askMs?: number | undefined
  readonly answerMs?: number | undefined
  readonly maxCalls?: number | undefined
}

/** Largest question or answer, in bytes. */
export const CALL_BYTES = MESSAGE_BYTES

/** Most values and keys of a question or answer, which may list all that a node has online. Reading it yields to other work. */
const CALL_VALUES = 100_000

const bounds = { maxBytes: CALL_BYTES, maxValues: CALL_VALUES }

/** How long a question may take to arrive, in milliseconds. */
const ASK_MS = 10_000

/** How long answering may take, in milliseconds: longer than any wait for a database. */
const ANSWER_MS = 30_000

/** Most calls at once, each with at most a question and an answer in memory. */
const MAX_CALLS = 64

/** Characters of an error's message that are sent. */
const MESSAGE_CHARACTERS = 1000

/** Answers the calls of other nodes. */
export class NodeCalls {
  readonly #options: NodeCallsOptions
  readonly #maxCalls: number
  readonly #failed: MinuteLog<{ readonly node: string; readonly err: unknown }>
  #open = 0

  constructor(options: NodeCallsOptions) {
    this.#options = options
    this.#maxCalls = options.maxCalls ?? MAX_CALLS
    this.#failed = new MinuteLog((fields, count) => {
      options.log.warn({ ...fields, count }, 'call from another node failed')
    })
  }

  /** Takes a stream with a call. */
  accept(stream: WireStream, from: NodePlane): void {
    if (this.#open >= this.#maxCalls) {
      reply(stream, { fault: 'too many calls at once' })
      return
    }
    this.#open++
    const timer = setTimeout(() => stream.reset('stream_refused'), this.#options.askMs ?? ASK_MS).unref()
    const done = async (message: Message | WireError): Promise<void> => {
      clearTimeout(timer)
      if (message instanceof WireError) this.#refuse(stream, from, message)
      else reply(stream, await this.#answer(from, message.ask))
      this.#open--
    }
    readMessage(stream, (message) => void done(message), bounds)
  }

  /** Writes pending log lines. */
  close(): void {
    this.#failed.close()
  }

  #refuse(stream: WireStream, { nodeId }: NodePlane, err: WireError): void {
    // The caller may give up at any time.
    if (stream.isClosed) return
    this.#failed.note({ node: nodeId, err }, `${nodeId} ${err.code}`)
    reply(stream, { fault: err.message })
  }

  async #answer(from: NodePlane, value: unknown): Promise<object> {
    const { answer, answerMs = ANSWER_MS } = this.#options
    const { promise: late, resolve } = Promise.withResolvers<object>()
    const timer = setTimeout(() => resolve({ fault: 'no answer in time' }), answerMs).unref()
    try {
      return await Promise.race([answer(from, value).then((ok) => ({ ok: ok ?? null })), late])
    } catch (err) {
      this.#failed.note({ node: from.nodeId, err }, from.nodeId)
      return { fault: (err instanceof Error ? err.message : String(err)).slice(0, MESSAGE_CHARACTERS) }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Sends a call and gives its answer; rejects with a `NodeCallFault`. */
export async function callNode(session: Mux, value: unknown, withinMs: number): Promise<unknown> {
  const bytes = encoded({ ask: value })
  if (bytes instanceof Error) throw new NodeCallFault('invalid', bytes.message, { cause: bytes })
  const stream = session.open(Buffer.concat([typeHead(CALL_TYPE), bytes]))
  if (stream instanceof WireError)
    throw new NodeCallFault('unreachable', 'no stream could be opened', { cause: stream })
  const { promise, resolve } = Promise.withResolvers<Message | NodeCallFault>()
  const timer = setTimeout(() => {
    resolve(new NodeCallFault('timeout', `no answer in ${withinMs} ms`))
    stream.reset()
  }, withinMs)
  readMessage(stream, (message) => resolve(message instanceof WireError ? unanswered(message) : message), bounds)
  const message = await promise
  clearTimeout(timer)
  stream.close()
  if (message instanceof NodeCallFault) throw message
  if (typeof message.fault === 'string') throw new NodeCallFault('failed', message.fault)
  return message.ok
}

function unanswered(cause: WireError): NodeCallFault {
  const isInvalid = cause.code === 'message_invalid' || cause.code === 'message_too_large'
  return new NodeCallFault(isInvalid ? 'invalid' : 'closed', `no answer: ${cause.message}`, { cause })
}

function reply(stream: WireStream, message: object): void {
  const bytes = encoded(message)
  stream.write(bytes instanceof Error ? Buffer.from(JSON.stringify({ fault: bytes.message })) : bytes)
  stream.close()
}

function encoded(message: object): Buffer | Error {
  try {
    const bytes = Buffer.from(JSON.stringify(message))
    return bytes.length <= CALL_BYTES ? bytes : new Error(`the message is longer than ${CALL_BYTES} bytes`)
  } catch (cause) {
    return new Error('the message is not JSON', { cause })
  }
}
