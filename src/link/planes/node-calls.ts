/** Calls between nodes: a stream that carries a JSON object `{ask}`, and `{ok}` or `{fault}` back. */
import { inTime } from '../../lib/in-time.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { Groups } from '../../lib/multi-map.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { call, type Message, readMessage } from '../wire/agent-rpc.ts'
import type { Mux } from '../wire/mux.ts'
import { MESSAGE_BYTES } from '../wire/wire-bounds.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import type { NodePlane } from './node-identity.ts'

/** The type number of a call; neither an agent's session nor a relayed stream uses it. */
export const CALL_TYPE = 0x72656c63

/** The type number of a call that the data plane which it reaches answers by itself. */
export const PLANE_CALL_TYPE = 0x72656c64

/** Answers another node: with one JSON value, or by throwing an error whose message is sent to it. */
export type AnswerNode = (from: NodePlane, value: unknown) => Promise<unknown>

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

/** Most calls of one node at once, each with at most a question and an answer in memory. */
export const MAX_CALLS = 64

/** Characters of an error's message that are sent. */
const MESSAGE_CHARACTERS = 1000

/** Answers the calls of other nodes. */
export class NodeCalls {
  readonly #options: NodeCallsOptions
  readonly #maxCalls: number
  readonly #failed: MinuteLog<{ readonly node: string; readonly err: unknown }>
  readonly #open = new Groups<WireStream>()

  constructor(options: NodeCallsOptions) {
    this.#options = options
    this.#maxCalls = options.maxCalls ?? MAX_CALLS
    this.#failed = new MinuteLog((fields, count) => {
      options.log.warn({ ...fields, count }, 'call from another node failed')
    })
  }

  /** Takes a stream with a call. */
  accept(stream: WireStream, from: NodePlane): void {
    const { nodeId } = from
    if ([...this.#open.get(nodeId)].length >= this.#maxCalls) {
      refuseCall(stream)
      return
    }
    this.#open.add(nodeId, stream)
    const timer = setTimeout(() => stream.reset('stream_refused'), this.#options.askMs ?? ASK_MS).unref()
    const done = async (message: Message | WireError): Promise<void> => {
      clearTimeout(timer)
      if (message instanceof WireError) this.#refuse(stream, from, message)
      else reply(stream, await this.#answer(from, message.ask))
      this.#open.delete(nodeId, stream)
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
    try {
      const ok = await inTime(answer(from, value), answerMs, () => new Error('no answer in time'))
      return { ok: ok ?? null }
    } catch (err) {
      this.#failed.note({ node: from.nodeId, err }, from.nodeId)
      return { fault: (err instanceof Error ? err.message : String(err)).slice(0, MESSAGE_CHARACTERS) }
    }
  }
}

/** Sends a call and gives its answer; rejects with a `LinkFault`. */
export async function callNode(
  session: Mux,
  value: unknown,
  withinMs: number,
  type: typeof CALL_TYPE | typeof PLANE_CALL_TYPE = CALL_TYPE,
): Promise<unknown> {
  const bytes = encoded({ ask: value })
  if (bytes instanceof Error) throw new LinkFault('invalid', bytes.message, { cause: bytes })
  const message = await call(session, type, bytes, { timeoutMs: withinMs, ...bounds })
  if (message instanceof WireError) throw unansweredBy(message, withinMs)
  if (typeof message.fault === 'string') throw new LinkFault('failed', message.fault)
  return message.ok
}

function unansweredBy(cause: WireError, withinMs: number): LinkFault {
  const { code, side, message } = cause
  if (code === 'timed_out') return new LinkFault('timeout', `no answer in ${withinMs} ms`)
  const isInvalid = code === 'message_invalid' || code === 'message_too_large'
  const lost = side === 'us' ? 'unreachable' : 'closed'
  return new LinkFault(isInvalid ? 'invalid' : lost, `no answer: ${message}`, { cause })
}

/** Answers a call of a node that has too many open. */
export function refuseCall(stream: WireStream): void {
  reply(stream, { fault: 'too many calls at once' })
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
