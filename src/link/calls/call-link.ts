/** Calls between two planes, by name: some are answered, others only tell something. */
import type { Logger } from '../../lib/log/create-log.ts'
import { errorOf, isPlainError, type PlainError, plainError } from '../../model/plain-error.ts'
import type { Channel } from './plane-channel.ts'

/** What one side does for the other, by name: one plain argument, one plain answer. */
// biome-ignore lint/suspicious/noExplicitAny: handlers of all arguments fit, each checked where it is called
export type Calls = { readonly [name: string]: (argument: any) => unknown }

/** Why a call got no answer. */
export class LinkFault extends Error {
  /** `closed`: the link broke, and the call may or may not have been carried out. `timeout`: no answer in time. */
  readonly reason: 'closed' | 'timeout'

  constructor(reason: LinkFault['reason'], name: string) {
    super(reason === 'closed' ? `the link closed before ${name} was answered` : `${name} was not answered in time`)
    this.name = 'LinkFault'
    this.reason = reason
  }
}

export interface CallOptions {
  /** How long to wait for the answer, in milliseconds. */
  readonly withinMs?: number
  /** Whether a link that reconnects must not repeat the call, since it may have been carried out. */
  readonly isOnce?: boolean
}

/** How long an answer may take by default, in milliseconds: longer than any wait for a database. */
export const CALL_MS = 30_000

interface Asked {
  readonly name: string
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** `[0, name, argument]` tells, `[id, name, argument]` asks. */
type Call = readonly [id: number, name: string, argument: unknown]

/** `[-id, value]` and `[-id, null, error]` answer. */
type Answer = readonly [id: number, value: unknown] | readonly [id: number, value: null, error: PlainError]

export class CallLink<Theirs extends Calls, Ours extends Calls> {
  readonly #channel: Channel
  readonly #ours: () => Ours | undefined
  readonly #log: Logger
  readonly #asked = new Map<number, Asked>()
  readonly #closed = Promise.withResolvers<void>()
  #lastId = 0
  #isClosed = false

  /**
   * Answers with `ours` from now on; a function gives handlers that exist only later. What a handler throws goes to the
   * caller; when the call was only told, it is logged.
   */
  constructor(channel: Channel, ours: Ours | (() => Ours | undefined), { log }: { readonly log: Logger }) {
    this.#channel = channel
    this.#ours = typeof ours === 'function' ? ours : () => ours
    this.#log = log
    channel.open({
      message: (message) => this.#received(message),
      closed: () => this.#onClosed(),
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Resolves when the link is closed, by whichever side. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Resolves with the answer; rejects with what the other side threw, or with a `LinkFault`. */
  ask<Name extends keyof Theirs & string>(
    name: Name,
    argument: Parameters<Theirs[Name]>[0],
    { withinMs = CALL_MS }: CallOptions = {},
  ): Promise<Awaited<ReturnType<Theirs[Name]>>> {
    if (this.#isClosed) return Promise.reject(new LinkFault('closed', name))
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const timer = setTimeout(() => {
      this.#settled(id)
      reject(new LinkFault('timeout', name))
    }, withinMs).unref()
    this.#asked.set(id, { name, resolve, reject, timer })
    try {
      this.#channel.send([id, name, argument])
    } catch (error) {
      this.#settled(id)
      reject(error)
    }
    return promise as Promise<Awaited<ReturnType<Theirs[Name]>>> // as the other side's type says
  }

  /** Sends a call that needs no answer; does nothing once the link is closed. */
  tell<Name extends keyof Theirs & string>(name: Name, argument: Parameters<Theirs[Name]>[0]): void {
    if (!this.#isClosed) this.#channel.send([0, name, argument])
  }

  /** Sends what is buffered, then closes. */
  close(): void {
    this.#channel.close()
  }

  #received(message: unknown): void {
    if (isAnswer(message)) this.#answered(message)
    else if (isCall(message)) this.#called(message)
    else this.#log.error(notHandled)
  }

  #called([id, name, argument]: Call): void {
    if (id > 0) void this.#answer(id, name, argument)
    else void this.#run(name, argument).catch((err: unknown) => this.#log.error({ err, name }, notHandled))
  }

  #answered(answer: Answer): void {
    const asked = this.#settled(-answer[0])
    if (answer.length === 3) asked?.reject(errorOf(answer[2]))
    else asked?.resolve(answer[1])
  }

  /** Takes a call off the list of those that wait for an answer. */
  #settled(id: number): Asked | undefined {
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    clearTimeout(asked?.timer)
    return asked
  }

  async #answer(id: number, name: string, argument: unknown): Promise<void> {
    try {
      this.#channel.send([-id, await this.#run(name, argument)])
    } catch (error) {
      this.#channel.send([-id, null, plainError(error)])
    }
  }

  async #run(name: string, argument: unknown): Promise<unknown> {
    const ours: Calls = this.#ours() ?? {}
    const handler = Object.hasOwn(ours, name) ? ours[name] : undefined
    if (!handler)
      throw new Error(`the other process does not know the call ${name}; it runs another version of Postern`)
    return handler(argument)
  }

  #onClosed(): void {
    this.#isClosed = true
    for (const { name, reject, timer } of this.#asked.values()) {
      clearTimeout(timer)
      reject(new LinkFault('closed', name))
    }
    this.#asked.clear()
    this.#closed.resolve()
  }
}

const notHandled = 'message from another process could not be handled'

function isCall(message: unknown): message is Call {
  return Array.isArray(message) && Number.isInteger(message[0]) && message[0] >= 0 && typeof message[1] === 'string'
}

function isAnswer(message: unknown): message is Answer {
  if (!Array.isArray(message) || !Number.isInteger(message[0]) || message[0] >= 0) return false
  return message.length === 2 || (message.length === 3 && isPlainError(message[2]))
}
