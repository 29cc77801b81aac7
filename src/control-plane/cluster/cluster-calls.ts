/** Calls between nodes: to act on a session that only one has, to read exchanges and traffic, and to prove a name. */
import type { NameChallenge } from '../../link/planes/plane-calls.ts'
import { Refusal } from '../../model/errors.ts'
import { errorOf, isPlainError, plainError } from '../../model/plain-error.ts'
import type { AgentCommand } from '../../model/presence.ts'

/** What a node does for others. Each is harmless for a session that it does not have, or not any more. */
export interface NodeServices {
  command(sessionId: string, command: AgentCommand): Promise<void>
  /** Ends a session whose agent has come back at another node. */
  endSession(sessionId: string): Promise<void>
  /** Asks its agent for a sign of life; resolves when it has given one, or its session is over. */
  proveAlive(sessionId: string): Promise<void>
  /** Tells about its exchanges; see `ExchangeAsk`. */
  exchanges(ask: unknown): Promise<unknown>
  /** Tells how its traffic went in a `Period`. */
  traffic(ask: unknown): Promise<unknown>
  /** Answers a `NameChallenge` from now on; resolves with whether all of its planes do. */
  showChallenge(ask: unknown): Promise<unknown>
}

const commands: readonly string[] = ['restart', 'stop', 'update'] satisfies AgentCommand[]

/** The services of another node. `carry` sends it a call, and rejects when the node cannot be reached. */
export function servicesOf(carry: (call: object) => Promise<unknown>): NodeServices {
  const call = async (name: keyof NodeServices, given: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const answer = await carry({ name, ...given })
    if (isFailed(answer)) throw errorOf(answer.error)
    return fieldsOf(answer).value
  }
  const tell = async (...given: Parameters<typeof call>): Promise<void> => void (await call(...given))
  return {
    command: (sessionId, command) => tell('command', { sessionId, command }),
    endSession: (sessionId) => tell('endSession', { sessionId }),
    proveAlive: (sessionId) => tell('proveAlive', { sessionId }),
    exchanges: (ask) => call('exchanges', { ask }),
    traffic: (ask) => call('traffic', { ask }),
    showChallenge: (ask) => call('showChallenge', { ask }),
  }
}

/** Answers a call of another node; never rejects. */
export async function answerCall(services: NodeServices, value: unknown): Promise<object> {
  try {
    return { value: await serve(services, value) }
  } catch (error) {
    return { error: plainError(error) }
  }
}

async function serve(services: NodeServices, value: unknown): Promise<unknown> {
  const { name, sessionId, command, ask } = fieldsOf(value)
  if (name === 'exchanges' || name === 'traffic' || name === 'showChallenge') return services[name](ask)
  if (typeof sessionId !== 'string') throw unknown('call')
  if (name === 'endSession' || name === 'proveAlive') return services[name](sessionId)
  if (name !== 'command') throw unknown('call')
  if (!isCommand(command)) throw unknown('command')
  return services.command(sessionId, command)
}

/** A newer version may ask for more than this one knows. */
function unknown(what: 'call' | 'command'): Refusal {
  const msg = `the node of the session does not know this ${what}; upgrade it to the version of the other nodes`
  return new Refusal('INTERNAL', msg)
}

/** Reads a challenge that another node asks this one to answer; undefined when it is none that this version knows. */
export function readChallenge(value: unknown): NameChallenge | undefined {
  const { name, kind, token, answer } = fieldsOf(value)
  if (typeof name !== 'string' || typeof token !== 'string' || typeof answer !== 'string') return undefined
  return kind === 'http-01' || kind === 'tls-alpn-01' ? { name, kind, token, answer } : undefined
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function isCommand(value: unknown): value is AgentCommand {
  return typeof value === 'string' && commands.includes(value)
}

function isFailed(answer: unknown): answer is { readonly error: Parameters<typeof errorOf>[0] } {
  return typeof answer === 'object' && answer !== null && 'error' in answer && isPlainError(answer.error)
}
