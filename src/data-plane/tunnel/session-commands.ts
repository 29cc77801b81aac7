/** Commands to an agent: restart, stop, update, and their outcomes (D43 to D46). */
import { printable } from '../../lib/text/printable.ts'
import { CALL_TIMEOUT_MS, call } from '../../link/wire/agent-rpc.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import { buildUpdate, restartCommand, stopCommand } from '../../link/wire/messages/command-messages.ts'
import { parseAnswer } from '../../link/wire/messages/error-text.ts'
import type { Mux } from '../../link/wire/mux.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import { Refusal } from '../../model/errors.ts'
import type { AgentCommand } from '../../model/presence.ts'

/** Largest answer to a command, in bytes: it is one sentence. */
const ANSWER_BYTES = 16 * 1024

/** How much of the agent's own words is repeated, in characters. */
const MAX_WORDS = 500

const messages = {
  restart: restartCommand,
  stop: stopCommand,
  update: buildUpdate({ version: '', permitMajorVersion: false }),
} as const

/** The commands of one session, one at a time. */
export class AgentCommands {
  readonly #mux: Mux
  readonly #agent: AuthRequest
  readonly #timeoutMs: number
  #pending: AgentCommand | undefined

  constructor(mux: Mux, agent: AuthRequest, { timeoutMs = CALL_TIMEOUT_MS }: { timeoutMs?: number } = {}) {
    this.#mux = mux
    this.#agent = agent
    this.#timeoutMs = timeoutMs
  }

  /** Number of streams that a command holds open. */
  get pending(): number {
    return this.#pending === undefined ? 0 : 1
  }

  /** Resolves once the agent has acknowledged it; throws a `Refusal` that says why it did not. */
  async send(command: AgentCommand): Promise<void> {
    const reason = this.#agent[`${command}Unsupported`]
    if (reason !== '') {
      throw new Refusal('COMMAND_UNSUPPORTED', `the agent does not support ${command}: ${words(reason ?? TOO_OLD)}`)
    }
    if (this.#pending !== undefined) {
      throw new Refusal('COMMAND_PENDING', `the agent has not yet answered the command ${this.#pending}; try again`)
    }
    this.#pending = command
    try {
      await this.#ask(command)
    } finally {
      this.#pending = undefined
    }
  }

  async #ask(command: AgentCommand): Promise<void> {
    const options = { timeoutMs: this.#timeoutMs, maxBytes: ANSWER_BYTES }
    const message = await call(this.#mux, streamTypes[command], messages[command], options)
    const answer = message instanceof WireError ? message : parseAnswer(message)
    if (answer instanceof WireError) throw refusalOf(command, answer, this.#timeoutMs)
    if (answer.error === '') return
    // D44: an update is refused because of the agent's current state, which may change.
    throw new Refusal(command === 'update' ? 'COMMAND_REFUSED' : 'COMMAND_FAILED', words(answer.error))
  }
}

const TOO_OLD = 'it is too old to know this command'

function refusalOf(command: AgentCommand, cause: WireError, timeoutMs: number): Refusal {
  if (cause.code === 'timed_out') {
    const seconds = timeoutMs / 1000
    return new Refusal('COMMAND_TIMEOUT', `the agent did not answer the command ${command} in ${seconds} s`, { cause })
  }
  if (cause.side === 'connection') {
    return new Refusal('COMMAND_FAILED', `the session ended before the agent answered the command ${command}`, {
      cause,
    })
  }
  return new Refusal(
    'COMMAND_FAILED',
    `the command ${command} could not be sent to the agent: ${words(cause.message)}`,
    { cause },
  )
}

/** The agent's own words, on one line and cut to length. */
function words(text: string): string {
  return printable(text.trim().slice(0, MAX_WORDS)).toWellFormed()
}
