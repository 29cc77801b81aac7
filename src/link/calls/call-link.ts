/** Calls between two processes, by the names of a typed table: some are answered, others only tell something. */
import type { Logger } from '../../lib/log/create-log.ts'
import { noAnswerFault } from '../../model/link-fault.ts'
import { errorOf, isPlainError, type PlainError, plainError } from '../../model/plain-error.ts'
import type { Channel } from './plane-channel.ts'

/** What one side does for the other, by name: one plain argument, one plain answer. Handlers may learn who asks. */
// biome-ignore lint/suspicious/noExplicitAny: handlers of all arguments fit, each checked where it is called
export type Calls = { readonly [name: string]: (argument: any, from: string) => unknown }

export type Argument<Table extends Calls, Name extends keyof Table> = Parameters<Table[Name]>[0]
export type Answer<Table extends Calls, Name extends keyof Table> = Awaited<ReturnType<Table[Name]>>

export interface CallOptions<Answered = unknown> {
  /** How long to wait for the answer, in milliseconds. */
  readonly withinMs?: number
  /** Whether a link that reconnects must not repeat the call, since it may have been carried out. */
  readonly isOnce?: boolean
  /** Gets an answer that comes later, but within `CALL_MS`. Without this, a late answer is dropped. */
  readonly late?: (answer: Answered) => void
}

/** How long an answer may take by default, in milliseconds: longer than any wait for a database. */
export const CALL_MS = 30_000

type Take = (answer: unknown) => void

interface Asked {
  readonly name: string
  readonly resolve: Take
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

/** `[0, name, argument]` tells, `[id, name, argument]` asks. */
type CallMessage = readonly [id: number, name: string, argument: unknown]

/** `[-id, value]` and `[-id, null, error]` answer. */
type AnswerMessage = readonly [id: number, value: unknown] | readonly [id: number, value: null, error: PlainError]

interface CallLinkOptions {
  readonly log: Logger
  /** Tells the other end who asks, for its handlers. */
  readonly self?: string
}

export class CallLink<Theirs extends Calls, Ours extends Calls> {
  readonly #channel: Channel
  readonly #ours: () => Ours | undefined
  readonly #log: Logger
  readonly #asked = new Map<number, Asked>()
  readonly #closed = Promise.withResolvers<void>()
  /** Who is at the other end, if it has said so. */
  #from = ''
  #lastId = 0
  #isClosed = false

  /**
   * Answers with `ours` from now on; a function gives handlers that exist only later. What a handler throws goes to the
   * caller; when the call was only told, it is logged.
   */
  constructor(channel: Channel, ours: Ours | (() => Ours | undefined), { log, self }: CallLinkOptions) {
    this.#channel = channel
    this.#ours = typeof ours === 'function' ? ours : () => ours
    this.#log = log
    channel.open({
      message: (message) => this.#received(message),
      closed: () => this.#onClosed(),
    })
    if (self !== undefined) channel.send(self)
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
    argument: Argument<Theirs, Name>,
    { withinMs = CALL_MS, late }: CallOptions<Answer<Theirs, Name>> = {},
  ): Promise<Answer<Theirs, Name>> {
    if (this.#isClosed) return Promise.reject(noAnswerFault('closed', name))
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Answer<Theirs, Name>>()
    // The other side's type says what the answer is.
    this.#expect(id, withinMs, { name, resolve: resolve as Take, reject }, late as Take | undefined)
    try {
      this.#channel.send([id, name, argument])
    } catch (error) {
      this.#settled(id)
      reject(error)
    }
    return promise
  }

  /** Sends a call that needs no answer; does nothing once the link is closed. */
  tell<Name extends keyof Theirs & string>(name: Name, argument: Argument<Theirs, Name>): void {
    if (!this.#isClosed) this.#channel.send([0, name, argument])
  }

  /** Sends what is buffered, then closes. */
  close(): void {
    this.#channel.close()
  }

  #received(message: unknown): void {
    if (isAnswer(message)) this.#answered(message)
    else if (isCall(message)) this.#called(message)
    else if (typeof message === 'string') this.#from = message
    else this.#log.error(notHandled)
  }

  #called([id, name, argument]: CallMessage): void {
    if (id > 0) void this.#answer(id, name, argument)
    else void this.#run(name, argument).catch((err: unknown) => this.#log.error({ err, name }, notHandled))
  }

  #answered(answer: AnswerMessage): void {
    const asked = this.#settled(-answer[0])
    if (answer.length === 3) asked?.reject(errorOf(answer[2]))
    else asked?.resolve(answer[1])
  }

  /** Lists a call that waits for its answer, and after that time perhaps for a late one. */
  #expect(id: number, withinMs: number, call: Omit<Asked, 'timer'>, late?: Take): void {
    const timer = setTimeout(() => {
      this.#settled(id)
      call.reject(noAnswerFault('timeout', call.name))
      if (late) this.#expect(id, CALL_MS, { name: call.name, resolve: late, reject() {} })
    }, withinMs).unref()
    this.#asked.set(id, { ...call, timer })
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
    return handler(argument, this.#from)
  }

  #onClosed(): void {
    this.#isClosed = true
    for (const { name, reject, timer } of this.#asked.values()) {
      clearTimeout(timer)
      reject(noAnswerFault('closed', name))
    }
    this.#asked.clear()
    this.#closed.resolve()
  }
}

const notHandled = 'message from another process could not be handled'

function isCall(message: unknown): message is CallMessage {
  return Array.isArray(message) && Number.isInteger(message[0]) && message[0] >= 0 && typeof message[1] === 'string'
}

function isAnswer(message: unknown): message is AnswerMessage {
  if (!Array.isArray(message) || !Number.isInteger(message[0]) || message[0] >= 0) return false
  return message.length === 2 || (message.length === 3 && isPlainError(message[2]))
}
